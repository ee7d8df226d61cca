/* A node is forgotten: nothing of what it said is left, all else is as it was. */
#include <fcntl.h>
#include <sys/file.h>

#include "tests/lib/forget_fixture.h"

TEST(forget, nothing_of_it_is_left_and_all_else_is_there)
{
	struct hfix *fx = hfix_new();
	struct story s;
	struct forgot g = {0};
	record_story(fx, &s);
	forget_fine(fx, &g, s.secret->node);
	assert_string_equal(g.code, "key = '" SECRET "'\nprint(key)");
	assert_string_equal(g.kernel_id, "k1");
	assert_string_equal(g.msg_id, "m-secret");
	assert_forgotten(fx);
	assert_int_equal(g.n, 3);
	assert_string_equal(g.pairs[0].was, s.secret->node);
	assert_string_equal(g.pairs[1].was, s.later->node);
	assert_string_equal(g.pairs[2].was, s.last->node);
	const char *secret = now_of(&g, s.secret->node), *later = now_of(&g, s.later->node);
	assert_code(fx, s.first->node, "a = 1", NULL, "as it was");
	assert_code(fx, secret, "# forgotten\n", s.first->node, NULL);
	assert_code(fx, later, "b = 2", secret, "of later");
	assert_code(fx, now_of(&g, s.last->node), "c = 3", later, "of last");
	assert_code(fx, s.other->node, "d = 4", NULL, NULL);
	free(g.json);
	hfix_free(fx);
}

TEST(forget, it_stays_a_node_that_says_that_it_was)
{
	struct hfix *fx = hfix_new();
	struct story s;
	struct forgot g = {0};
	record_story(fx, &s);
	forget_fine(fx, &g, s.secret->node);
	struct history_question q = {
		.what = HISTORY_NODE, .history = HISTORY_A, .node = "In[2]", .kernel_id = "k1"};
	cJSON *tree = ask_tree(fx, &q);
	assert_string_equal(text_at(tree, "id"), now_of(&g, s.secret->node));
	assert_string_equal(text_at(tree, "summary"), "(forgotten)");
	assert_string_equal(text_at(tree, "status"), "error");
	assert_string_equal(text_at(tree, "msg_id"), "m-secret");
	assert_null(cJSON_GetObjectItem(tree, "error"));
	assert_true(cJSON_IsTrue(cJSON_GetObjectItem(tree, "forgotten")));
	cJSON_Delete(tree);
	tree = ask_node(fx, s.first->node);
	assert_null(cJSON_GetObjectItem(tree, "forgotten"));
	cJSON_Delete(tree);
	free(g.json);
	hfix_free(fx);
}

TEST(forget, an_old_id_leads_to_the_new_one)
{
	struct hfix *fx = hfix_new();
	struct story s;
	struct forgot g = {0};
	char prefix[13];
	record_story(fx, &s);
	forget_fine(fx, &g, s.secret->node);
	(void)snprintf(prefix, sizeof prefix, "%.12s", s.later->node);
	const char *names[] = {s.later->node, prefix};
	for (int round = 0; round < 2; round++) {
		for (size_t i = 0; i < ARRAY_LEN(names); i++) {
			cJSON *tree = ask_node(fx, names[i]);
			assert_string_equal(text_at(tree, "id"), now_of(&g, s.later->node));
			cJSON_Delete(tree);
		}
		char command[128];
		hfix_close(fx); /* and so it does after the index was lost */
		(void)snprintf(command, sizeof command, "rm %s/index.sqlite*", fx->folder);
		shell(command);
		hfix_open(fx);
	}
	free(g.json);
	hfix_free(fx);
}

TEST(forget, packed_ones_too)
{
	struct hfix *fx = hfix_new();
	struct story s;
	struct forgot g = {0};
	record_story(fx, &s);
	free(git(fx, HISTORY_A, "gc -q"));
	hfix_reopen(fx);
	assert_true(is_found(fx, SECRET) && is_found(fx, PIXELS));
	forget_fine(fx, &g, s.secret->node);
	assert_forgotten(fx);
	free(g.json);
	hfix_free(fx);
}

/* What a packing that was killed leaves, and a pack that git would keep. */
TEST(forget, half_made_and_kept_packs_too)
{
	struct hfix *fx = hfix_new();
	struct story s;
	struct forgot g = {0};
	char command[512];
	record_story(fx, &s);
	(void)snprintf(command, sizeof command,
		"cd %s/" HISTORY_A ".git && git repack -q -a -d && cd objects/pack &&"
		" echo " SECRET " > .tmp-17-pack-ab.pack && echo " SECRET " > tmp_pack_xyz &&"
		" for p in pack-*.pack; do touch ${p%%pack}keep; done",
		fx->folder);
	shell(command);
	hfix_reopen(fx);
	forget_fine(fx, &g, s.secret->node);
	assert_forgotten(fx);
	free(g.json);
	hfix_free(fx);
}

/* A packing, a copy, or git's processes of a gateway that was killed. */
TEST(forget, who_packs_is_waited_for_and_runs_go_on)
{
	struct hfix *fx = hfix_new();
	struct story s;
	struct forgot g = {0};
	char path[256], command[512];
	record_story(fx, &s);
	(void)snprintf(path, sizeof path, "%s/" HISTORY_A ".git/objects/pack", fx->folder);
	int lock = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	assert_int_equal(flock(lock, LOCK_EX), 0);
	begin_forget(fx, &g, NULL, s.secret->node);
	for (int i = 0; i < 20; i++) {
		char id[16];
		(void)snprintf(id, sizeof id, "n%d", i);
		await_fine(fx, record_cell(fx, id, id, "out"));
	}
	assert_false(g.done);
	assert_true(is_found(fx, SECRET));
	/* Their commits lead to the secret, and are newer than the wish to forget. */
	(void)snprintf(command, sizeof command,
		"find '%s/../' -type f -exec touch -d '+1 hour' {} +", path);
	assert_int_equal(system(command), 0);
	assert_int_equal(close(lock), 0);
	while (!g.done)
		(void)uv_run(&fx->loop, UV_RUN_ONCE);
	assert_string_equal(g.why, "");
	assert_int_equal(g.status, 0);
	assert_true(g.n >= 3);
	assert_gone(fx);
	assert_git(fx, HISTORY_A, "rev-list --count main", "25\n");
	free(g.json);
	hfix_free(fx);
}

/* The end does not wait: the next one goes on with it. */
TEST(forget, who_packs_does_not_hold_up_the_end)
{
	struct hfix *fx = hfix_new();
	struct story s;
	struct forgot g = {0};
	char path[256];
	record_story(fx, &s);
	(void)snprintf(path, sizeof path, "%s/" HISTORY_A ".git/objects/pack", fx->folder);
	int lock = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	assert_int_equal(flock(lock, LOCK_EX), 0);
	begin_forget(fx, &g, NULL, s.secret->node);
	await_fine(fx, record_cell(fx, "n", "n", "out"));
	hfix_close(fx);
	assert_true(g.done);
	assert_int_equal(g.status, E_UNAVAILABLE);
	assert_int_equal(close(lock), 0);
	hfix_open(fx);
	forget_fine(fx, &g, s.secret->node);
	assert_gone(fx);
	free(g.json);
	hfix_free(fx);
}

TEST(forget, asked_again_it_answers_and_does_no_harm)
{
	struct hfix *fx = hfix_new();
	struct story s;
	struct forgot g = {0}, again = {0};
	record_story(fx, &s);
	forget_fine(fx, &g, s.secret->node);
	forget_fine(fx, &again, s.secret->node);
	/* Whoever was not told the first time is told now. */
	assert_int_equal(again.n, g.n);
	for (size_t i = 0; i < g.n; i++)
		assert_string_equal(now_of(&again, g.pairs[i].was), g.pairs[i].now);
	assert_string_equal(again.code, "");
	forget_fine(fx, &again, now_of(&g, s.secret->node));
	assert_forgotten(fx);
	free(g.json);
	free(again.json);
	hfix_free(fx);
}

TEST(forget, asked_twice_at_once)
{
	struct hfix *fx = hfix_new();
	struct story s;
	struct forgot g = {0}, other = {0};
	record_story(fx, &s);
	begin_forget(fx, &g, NULL, s.secret->node);
	begin_forget(fx, &other, NULL, s.secret->node);
	while (!g.done || !other.done)
		(void)uv_run(&fx->loop, UV_RUN_ONCE);
	assert_int_equal(g.status, 0);
	assert_int_equal(other.status, 0);
	assert_forgotten(fx);
	free(g.json);
	free(other.json);
	hfix_free(fx);
}

TEST(forget, two_after_each_other)
{
	struct hfix *fx = hfix_new();
	struct story s;
	struct forgot g = {0}, then = {0};
	record_story(fx, &s);
	forget_fine(fx, &g, s.later->node);
	forget_fine(fx, &then, s.secret->node); /* before it: what was rewritten is again */
	assert_gone(fx);
	assert_git(fx, HISTORY_A, "log --format=%s main",
		"c = 3\n(forgotten)\n(forgotten)\na = 1\nBegin\n");
	cJSON *tree = ask_node(fx, s.last->node); /* the id of before both */
	assert_string_equal(text_at(tree, "code"), "c = 3");
	cJSON_Delete(tree);
	free(g.json);
	free(then.json);
	hfix_free(fx);
}

TEST(forget, what_cannot_be_forgotten_is_said)
{
	struct hfix *fx = hfix_new();
	struct story s;
	struct forgot g = {0};
	record_story(fx, &s);
	cJSON *first = ask_node(fx, s.first->node);
	assert_int_equal(forget(fx, &g, text_at(first, "parent")), E_INVALID);
	assert_non_null(strstr(g.why, "root"));
	cJSON_Delete(first);
	assert_int_equal(forget(fx, &g, "ffffffffff"), E_NOT_FOUND);
	assert_int_equal(forget(fx, &g, "In[77]"), E_NOT_FOUND);
	begin_forget(fx, &g, "bob", s.secret->node);
	while (!g.done)
		(void)uv_run(&fx->loop, UV_RUN_ONCE);
	assert_int_equal(g.status, E_NOT_FOUND);
	assert_true(is_found(fx, SECRET));
	hfix_free(fx);
}

TEST(forget, runs_that_come_meanwhile_are_recorded_once)
{
	struct hfix *fx = hfix_new();
	struct story s;
	struct forgot g = {0};
	struct tape *t[20];
	record_story(fx, &s);
	for (int i = 0; i < 10; i++) {
		char id[16];
		(void)snprintf(id, sizeof id, "n%d", i);
		t[i] = record_cell(fx, id, id, "out");
	}
	begin_forget(fx, &g, NULL, s.secret->node);
	for (int i = 10; i < 20; i++) {
		char id[16];
		(void)snprintf(id, sizeof id, "n%d", i);
		t[i] = record_cell(fx, id, id, "out");
		(void)uv_run(&fx->loop, UV_RUN_NOWAIT);
	}
	while (!g.done)
		(void)uv_run(&fx->loop, UV_RUN_ONCE);
	assert_int_equal(g.status, 0);
	for (int i = 0; i < 20; i++)
		await_fine(fx, t[i]);
	assert_gone(fx);
	assert_git(fx, HISTORY_A, "log --format=%s main",
		"n19\nn18\nn17\nn16\nn15\nn14\nn13\nn12\nn11\nn10\nn9\nn8\nn7\nn6\nn5\nn4\nn3\nn2\n"
		"n1\nn0\nc = 3\nb = 2\n(forgotten)\na = 1\nBegin\n");
	free(g.json);
	hfix_free(fx);
}

TEST(forget, what_it_says_afterwards_is_not_added_to_it)
{
	struct hfix *fx = hfix_new();
	struct story s;
	struct forgot g = {0};
	record_story(fx, &s);
	forget_fine(fx, &g, s.secret->node);
	struct tape *t = tape_new(fx, "m-new", "e = 5", FINE);
	tape_say_to(t, "m-secret", "stream", "{\"name\":\"stdout\",\"text\":\"" SECRET "\"}");
	tape_end(t, "ok", 5, "");
	hand_over(fx, t);
	await_fine(fx, t);
	assert_gone(fx);
	free(g.json);
	hfix_free(fx);
}

/* What a kernel tells in the pause after a cell may come when the cell is forgotten already. */
TEST(forget, a_report_that_comes_afterwards_is_not_kept)
{
	static const char report[] =
		"{\"report\":{\"variables\":[{\"name\":\"" SECRET "\",\"type\":\"int\"}],"
		"\"complete\":true}}";
	struct hfix *fx = hfix_new();
	struct story s;
	struct forgot g = {0};
	record_story(fx, &s);
	forget_fine(fx, &g, s.secret->node);
	const char *const of[] = {"m-secret", "m-last"};
	for (size_t i = 0; i < ARRAY_LEN(of); i++) {
		struct tape *t = calloc(1, sizeof *t);
		(void)snprintf(t->msg_id, sizeof t->msg_id, "r%zu", i);
		tape_message(t, CHANNEL_HB, "coppice_report", t->msg_id, of[i], NULL,
			(struct bytes){(const uint8_t *)report, sizeof report - 1});
		t->next = fx->tapes;
		fx->tapes = t;
		hand_over(fx, t);
		await_fine(fx, t);
		if (i == 0)
			assert_gone(fx);
	}
	assert_true(is_found(fx, SECRET)); /* that of another node is its own */
	free(g.json);
	hfix_free(fx);
}

TEST(forget, a_clone_of_it_is_right)
{
	struct hfix *fx = hfix_new();
	struct story s;
	struct forgot g = {0};
	char command[512];
	record_story(fx, &s);
	forget_fine(fx, &g, s.secret->node);
	(void)snprintf(command, sizeof command,
		"cd %s && git clone -q " HISTORY_A ".git c && cd c && git fsck --strict"
		" --no-progress && test \"$(cat runs/00/00/02/code.py)\" = '# forgotten' &&"
		" test \"$(ls runs/00/00/02)\" = \"$(printf 'code.py\\nmeta.json\\noutputs.json')\""
		" && test \"$(git rev-parse HEAD)\" = %s && cd .. && rm -rf c",
		fx->folder, now_of(&g, s.last->node));
	shell(command);
	free(g.json);
	hfix_free(fx);
}

TEST(forget, the_same_code_elsewhere_is_told)
{
	struct hfix *fx = hfix_new();
	struct story s;
	struct forgot g = {0};
	record_story(fx, &s);
	struct tape *t = record_cell(fx, "m-again", "key = '" SECRET "'\nprint(key)", NULL);
	await_fine(fx, t);
	forget_fine(fx, &g, s.secret->node);
	cJSON *tree = cJSON_Parse(g.json), *same = cJSON_GetObjectItem(tree, "same_code");
	assert_int_equal(cJSON_GetArraySize(same), 1);
	char id[HISTORY_NODE_SIZE];
	(void)snprintf(id, sizeof id, "%s", cJSON_GetArrayItem(same, 0)->valuestring);
	assert_string_equal(id, now_of(&g, t->node));
	cJSON_Delete(tree);
	assert_true(is_found(fx, SECRET));
	forget_fine(fx, &g, id);
	assert_gone(fx);
	free(g.json);
	hfix_free(fx);
}

/* Cells that drew the history have it in their outputs, if they came later. */
TEST(forget, cells_that_may_have_shown_it_are_told)
{
	struct hfix *fx = hfix_new();
	struct story s;
	struct forgot g = {0};
	await_fine(fx, record_cell(fx, "m-0", "%coppice log", "of before"));
	record_story(fx, &s);
	struct tape *log = record_cell(fx, "m-log", "%coppice log", "key = '" SECRET "'");
	struct tape *show = record_cell(fx, "m-show", "%coppice show 2", SECRET);
	await_fine(fx, record_cell(fx, "m-use", "%coppice status", NULL));
	await_fine(fx, log);
	await_fine(fx, show);
	forget_fine(fx, &g, s.secret->node);
	cJSON *tree = cJSON_Parse(g.json), *shown = cJSON_GetObjectItem(tree, "shown_in");
	char ids[2][HISTORY_NODE_SIZE];
	assert_int_equal(cJSON_GetArraySize(shown), 2);
	for (int i = 0; i < 2; i++)
		(void)snprintf(
			ids[i], sizeof ids[i], "%s", cJSON_GetArrayItem(shown, i)->valuestring);
	assert_string_equal(ids[0], now_of(&g, log->node));
	assert_string_equal(ids[1], now_of(&g, show->node));
	cJSON_Delete(tree);
	for (int i = 0; i < 2; i++)
		forget_fine(fx, &g, ids[i]); /* the first one's new id leads to the second */
	assert_gone(fx);
	free(g.json);
	hfix_free(fx);
}

/* Kept beside the branches, by a node's id in whichever way. */
TEST(forget, what_is_kept_beside_goes_by_the_new_ids)
{
	struct hfix *fx = hfix_new();
	struct story s;
	struct forgot g = {0};
	char command[2048], show[128];
	record_story(fx, &s);
	(void)snprintf(command, sizeof command,
		"cd %s/" HISTORY_A ".git && export GIT_AUTHOR_NAME=c GIT_AUTHOR_EMAIL=c"
		" GIT_COMMITTER_NAME=c GIT_COMMITTER_EMAIL=c && git notes --ref coppice add -m "
		"'" SECRET "' %s && git notes --ref coppice add -m 'a label' %s &&"
		" b=$(echo '" SECRET "' | git hash-object -w --stdin) &&"
		" printf '100644 blob %%s\\tlearnt.json\\n' $b | git mktree > t &&"
		" printf '040000 tree %%s\\t%s\\n' $(cat t) | git mktree > t2 &&"
		" printf '040000 tree %%s\\t%.2s\\n' $(cat t2) | git mktree > t &&"
		" git update-ref refs/coppice/state $(git commit-tree -m state $(cat t)) && rm t "
		"t2",
		fx->folder, s.secret->node, s.later->node, s.secret->node, s.secret->node);
	shell(command);
	hfix_reopen(fx);
	forget_fine(fx, &g, s.secret->node);
	assert_forgotten(fx);
	(void)snprintf(show, sizeof show, "notes --ref coppice show %s", now_of(&g, s.later->node));
	assert_git(fx, HISTORY_A, show, "a label\n");
	assert_git(fx, HISTORY_A, "ls-tree -r refs/coppice/state", "");
	assert_git(fx, HISTORY_A, "rev-list --count refs/notes/coppice", "1\n");
	free(g.json);
	hfix_free(fx);
}

RUN(TEST_ROW(forget, nothing_of_it_is_left_and_all_else_is_there),
	TEST_ROW(forget, it_stays_a_node_that_says_that_it_was),
	TEST_ROW(forget, an_old_id_leads_to_the_new_one), TEST_ROW(forget, packed_ones_too),
	TEST_ROW(forget, half_made_and_kept_packs_too),
	TEST_ROW(forget, who_packs_is_waited_for_and_runs_go_on),
	TEST_ROW(forget, who_packs_does_not_hold_up_the_end),
	TEST_ROW(forget, asked_again_it_answers_and_does_no_harm),
	TEST_ROW(forget, asked_twice_at_once), TEST_ROW(forget, two_after_each_other),
	TEST_ROW(forget, what_cannot_be_forgotten_is_said),
	TEST_ROW(forget, runs_that_come_meanwhile_are_recorded_once),
	TEST_ROW(forget, what_it_says_afterwards_is_not_added_to_it),
	TEST_ROW(forget, a_report_that_comes_afterwards_is_not_kept),
	TEST_ROW(forget, a_clone_of_it_is_right), TEST_ROW(forget, the_same_code_elsewhere_is_told),
	TEST_ROW(forget, cells_that_may_have_shown_it_are_told),
	TEST_ROW(forget, what_is_kept_beside_goes_by_the_new_ids))
