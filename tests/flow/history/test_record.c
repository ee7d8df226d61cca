#include "tests/lib/history_fixture.h"

#define FINE ",\"silent\":false,\"store_history\":true"

TEST(record, a_run_is_a_commit_and_comes_back)
{
	struct hfix *fx = hfix_new();
	struct tape *t = tape_new(fx, "m1", "print('hi')\n6*7", FINE);
	tape_stream(t, "stdout", "hi\n");
	tape_say(t, "execute_result",
		"{\"execution_count\":1,\"data\":{\"text/plain\":\"42\"},\"metadata\":{}}");
	tape_end(t, "ok", 1, "");
	hand_over(fx, t);
	await_fine(fx, t);
	assert_string_equal(t->branch, "main");
	assert_int_equal(t->state_version, 1);
	assert_sound(fx, HISTORY_A);
	assert_git(fx, HISTORY_A, "log --format=%s", "print('hi')\nBegin\n");
	assert_git(fx, HISTORY_A, "show HEAD:runs/00/00/01/code.py", "print('hi')\n6*7");
	cJSON *node = ask_node(fx, "HEAD");
	assert_string_equal(text_at(node, "id"), t->node);
	assert_string_equal(text_at(node, "code"), "print('hi')\n6*7");
	assert_string_equal(text_at(node, "started"), "2026-09-21T14:13:20.000200Z");
	const cJSON *outputs = cJSON_GetObjectItem(node, "outputs");
	assert_int_equal(cJSON_GetArraySize(outputs), 2);
	assert_string_equal(text_at(cJSON_GetArrayItem(outputs, 0), "text"), "hi\n");
	cJSON_Delete(node);
	hfix_free(fx);
}

TEST(record, the_commit_says_who_when_and_how)
{
	struct hfix *fx = hfix_new();
	struct tape *t = tape_new(fx, "m1", "\n  # note\nx = 1", FINE);
	tape_end(t, "error", 3, ",\"ename\":\"ValueError\",\"evalue\":\"no \\u00e9\"");
	hand_over(fx, t);
	await_fine(fx, t);
	assert_git(fx, HISTORY_A, "log -1 --format=%an,%cn,%at", "ada,coppice,1790000000\n");
	assert_git(fx, HISTORY_A, "log -1 --format=%B",
		"# note\n\nCoppice-Node-Count: 1\nCoppice-Execution-Count: 3\nCoppice-Cell: c-1\n"
		"Coppice-Status: error\nCoppice-Duration-Ms: 12\nCoppice-Kernel: k1\n"
		"Coppice-Environment: sha256:abc\nCoppice-Replay: unknown\n\n");
	assert_git(fx, HISTORY_A, "symbolic-ref HEAD", "refs/heads/main\n");
	assert_git(
		fx, HISTORY_A, "config --get-all transfer.hideRefs", "refs/coppice\nrefs/notes\n");
	assert_git(fx, HISTORY_A, "show --format= --name-only HEAD",
		"runs/00/00/01/code.py\nruns/00/00/01/meta.json\nruns/00/00/01/outputs.json\n");
	assert_git(fx, HISTORY_A, "ls-tree -r --name-only HEAD^", "");
	cJSON *node = ask_node(fx, "main");
	const cJSON *error = cJSON_GetObjectItem(node, "error");
	assert_string_equal(text_at(error, "ename"), "ValueError");
	assert_string_equal(text_at(error, "evalue"), "no \u00e9");
	assert_string_equal(text_at(node, "summary"), "# note");
	cJSON_Delete(node);
	hfix_free(fx);
}

TEST(record, a_new_process_of_the_kernel_begins_at_the_root)
{
	struct hfix *fx = hfix_new();
	struct tape *t[4];
	static const uint64_t epochs[] = {1, 2, 2, 3};
	for (size_t i = 0; i < 4; i++) {
		char id[8];
		(void)snprintf(id, sizeof id, "m%zu", i);
		t[i] = tape_new(fx, id, id, FINE);
		tape_end(t[i], "ok", 1, "");
		assert_int_equal(hand_over_to(fx, t[i], HISTORY_A, "k1", epochs[i]), 0);
	}
	for (size_t i = 0; i < 4; i++)
		await_fine(fx, t[i]);
	assert_string_equal(t[0]->branch, "main");
	assert_string_equal(t[1]->branch, "main.2");
	assert_string_equal(t[2]->branch, "main.2");
	assert_string_equal(t[3]->branch, "main.3");
	assert_int_equal(t[3]->state_version, 4);
	assert_git(fx, HISTORY_A, "log --format=%s main.2", "m2\nm1\nBegin\n");
	assert_git(fx, HISTORY_A, "rev-list --count --all", "5\n");
	assert_git(fx, HISTORY_A, "rev-list --max-parents=0 --all --count", "1\n");
	assert_sound(fx, HISTORY_A);
	hfix_free(fx);
}

TEST(record, two_kernels_of_a_history_have_a_line_each)
{
	struct hfix *fx = hfix_new();
	struct tape *t[4];
	for (size_t i = 0; i < 4; i++) {
		char id[8];
		(void)snprintf(id, sizeof id, "m%zu", i);
		t[i] = tape_new(fx, id, id, FINE);
		tape_end(t[i], "ok", 1, "");
		assert_int_equal(hand_over_to(fx, t[i], HISTORY_A, i % 2 ? "k2" : "k1", 1), 0);
	}
	for (size_t i = 0; i < 4; i++)
		await_fine(fx, t[i]);
	assert_git(fx, HISTORY_A, "log --format=%s main", "m2\nm0\nBegin\n");
	assert_git(fx, HISTORY_A, "log --format=%s main.2", "m3\nm1\nBegin\n");
	assert_int_equal(t[3]->state_version, 2);
	hfix_free(fx);
}

TEST(record, the_same_run_twice_is_one_node)
{
	struct hfix *fx = hfix_new();
	struct tape *first = record_cell(fx, "m1", "1", NULL);
	struct tape *again = record_cell(fx, "m1", "1", NULL);
	struct tape *other = record_cell(fx, "m2", "2", NULL);
	await_fine(fx, first);
	await_fine(fx, again);
	await_fine(fx, other);
	assert_string_equal(first->node, again->node);
	assert_int_equal(again->state_version, 1);
	hfix_reopen(fx);
	struct tape *once_more = record_cell(fx, "m1", "1", NULL);
	await_fine(fx, once_more);
	assert_string_equal(once_more->node, first->node);
	assert_string_equal(once_more->branch, "main");
	assert_git(fx, HISTORY_A, "rev-list --count main", "3\n");
	hfix_free(fx);
}

TEST(record, runs_are_told_in_order)
{
	struct hfix *fx = hfix_new();
	struct tape *last = NULL;
	for (int i = 0; i < 300; i++) {
		char id[16];
		(void)snprintf(id, sizeof id, "m%d", i);
		last = record_cell(fx, id, id, "x");
	}
	await_fine(fx, last);
	assert_int_equal(fx->told, 300);
	for (int i = 0; i < 300; i++) {
		char id[16];
		(void)snprintf(id, sizeof id, "m%d", i);
		assert_string_equal(fx->order[i]->msg_id, id);
		assert_int_equal(fx->order[i]->state_version, i + 1);
	}
	hfix_free(fx);
}

TEST(record, a_full_queue_refuses)
{
	struct hfix *fx = hfix_new();
	size_t taken = 0;
	struct tape *t;
	for (;;) {
		char id[16];
		(void)snprintf(id, sizeof id, "m%zu", taken);
		t = tape_new(fx, id, id, FINE);
		tape_end(t, "ok", 1, "");
		if (hand_over_to(fx, t, HISTORY_A, "k1", 1) != 0)
			break;
		taken++;
	}
	assert_int_equal(taken, HISTORY_QUEUE_MAX);
	assert_int_equal(t->closed, 1);
	hfix_close(fx); /* records what it took */
	assert_int_equal(fx->told, taken);
	assert_int_equal(t->told, 0);
	hfix_open(fx);
	hfix_free(fx);
}

/* ---- what comes late ---- */

/* The text of the first output of run n, in a node. */
static void assert_first_text(
	struct hfix *fx, const char *node, unsigned n, const char *key, const char *expected)
{
	char command[128];
	(void)snprintf(command, sizeof command, "show %s:runs/00/00/%02u/outputs.json", node, n);
	char *json = git(fx, HISTORY_A, command);
	cJSON *tree = cJSON_Parse(json);
	assert_non_null(tree);
	const cJSON *value = cJSON_GetObjectItem(cJSON_GetArrayItem(tree, 0), key);
	char *printed = cJSON_PrintUnformatted(value);
	assert_string_equal(printed, expected);
	cJSON_free(printed);
	cJSON_Delete(tree);
	free(json);
}

TEST(record, late_text_is_appended_to_its_run_in_the_next_node)
{
	struct hfix *fx = hfix_new();
	struct tape *first = record_cell(fx, "m1", "start_thread()", "a\n");
	struct tape *second = tape_new(fx, "m2", "2", FINE);
	tape_say_to(second, "m1", "stream", "{\"name\":\"stdout\",\"text\":\"late\"}");
	tape_stream(second, "stdout", "own\n");
	tape_say_to(second, "m1", "stream", "{\"name\":\"stdout\",\"text\":\"r\\n\"}");
	tape_say_to(second, "nobody", "stream", "{\"name\":\"stdout\",\"text\":\"lost\"}");
	tape_end(second, "ok", 2, "");
	hand_over(fx, second);
	await_fine(fx, first);
	await_fine(fx, second);
	assert_first_text(fx, first->node, 1, "text", "[\"a\\n\"]");
	assert_first_text(fx, second->node, 1, "text", "[\"a\\n\",\"later\\n\"]");
	assert_first_text(fx, second->node, 2, "text", "[\"own\\n\"]");
	assert_git(fx, HISTORY_A, "show --format= --name-only HEAD",
		"runs/00/00/01/outputs.json\nruns/00/00/02/code.py\n"
		"runs/00/00/02/meta.json\nruns/00/00/02/outputs.json\n");
	assert_sound(fx, HISTORY_A);
	hfix_free(fx);
}

#define SHOW(text)                                                                                 \
	"{\"data\":{\"text/plain\":\"" text "\"},\"metadata\":{},"                                 \
	"\"transient\":{\"display_id\":\"bar\"}}"

TEST(record, a_display_of_an_earlier_run_is_updated)
{
	struct hfix *fx = hfix_new();
	struct tape *first = tape_new(fx, "m1", "show()", FINE);
	tape_say(first, "display_data", SHOW("0"));
	tape_end(first, "ok", 1, "");
	hand_over(fx, first);
	await_fine(fx, first);
	for (int round = 0; round < 2; round++) {
		struct tape *next = tape_new(fx, round ? "m3" : "m2", "update()", FINE);
		tape_say(next, "update_display_data", round ? SHOW("2") : SHOW("1"));
		tape_end(next, "ok", 2, "");
		hand_over(fx, next);
		await_fine(fx, next);
		assert_first_text(fx, next->node, 1, "data",
			round ? "{\"text/plain\":\"2\"}" : "{\"text/plain\":\"1\"}");
	}
	assert_first_text(fx, first->node, 1, "data", "{\"text/plain\":\"0\"}");
	/* On another line it is nobody's. */
	struct tape *other = tape_new(fx, "m4", "update()", FINE);
	tape_say(other, "update_display_data", SHOW("3"));
	tape_end(other, "ok", 1, "");
	assert_int_equal(hand_over_to(fx, other, HISTORY_A, "k1", 2), 0);
	await_fine(fx, other);
	assert_git(fx, HISTORY_A, "show main.2:runs/00/00/01/outputs.json", "[\n]\n");
	hfix_free(fx);
}

/* A picture of n bytes, as base64 in a display_data's content. */
static void show_picture(struct tape *t, const char *parent, size_t n)
{
	AUTO(buf_done) struct buf content;
	buf_init(&content, 64u << 20);
	(void)buf_add_text(&content, "{\"data\":{\"image/png\":\"");
	for (size_t i = 0; i < n; i += 3)
		(void)buf_add_text(&content, i % 2 ? "QUJD" : "AAAA");
	(void)buf_add_text(&content, "\\n\"},\"metadata\":{}}");
	tape_say_to(t, parent, "display_data", (char *)content.data);
}

TEST(record, a_picture_is_a_file_and_goes_when_it_is_cleared)
{
	struct hfix *fx = hfix_new();
	struct tape *first = tape_new(fx, "m1", "plot()", FINE);
	show_picture(first, "m1", 6000);
	show_picture(first, "m1", 9000);
	tape_end(first, "ok", 1, "");
	hand_over(fx, first);
	await_fine(fx, first);
	assert_git(fx, HISTORY_A, "ls-tree --name-only HEAD runs/00/00/01/",
		"runs/00/00/01/code.py\nruns/00/00/01/meta.json\nruns/00/00/01/out-1.png\n"
		"runs/00/00/01/out-2.png\nruns/00/00/01/outputs.json\n");
	assert_git(fx, HISTORY_A, "cat-file -s HEAD:runs/00/00/01/out-2.png", "9000\n");
	cJSON *node = ask_node(fx, "HEAD");
	const cJSON *shown = cJSON_GetArrayItem(cJSON_GetObjectItem(node, "outputs"), 1);
	const char *text = text_at(cJSON_GetObjectItem(shown, "data"), "image/png");
	assert_int_equal(strlen(text), 12001);
	assert_memory_equal(text, "AAAAQUJDAAAA", 12);
	cJSON_Delete(node);
	struct tape *second = tape_new(fx, "m2", "clear()", FINE);
	tape_say_to(second, "m1", "clear_output", "{\"wait\":true}");
	show_picture(second, "m1", 6000);
	tape_end(second, "ok", 2, "");
	hand_over(fx, second);
	await_fine(fx, second);
	assert_git(fx, HISTORY_A, "ls-tree --name-only HEAD runs/00/00/01/",
		"runs/00/00/01/code.py\nruns/00/00/01/meta.json\nruns/00/00/01/out-3.png\n"
		"runs/00/00/01/outputs.json\n");
	assert_sound(fx, HISTORY_A);
	hfix_free(fx);
}

/* ---- runs that are not told right ---- */

TEST(record, a_source_that_ends_early_is_told_and_stops_nobody)
{
	struct hfix *fx = hfix_new();
	struct tape *cut = tape_new(fx, "m1", "1", FINE);
	struct tape *none = tape_new(fx, "m2", "2", FINE);
	tape_end(cut, "ok", 1, "");
	cut->fails_at = 1;
	hand_over(fx, cut);
	await(fx, cut);
	assert_int_equal(cut->status, E_GONE);
	assert_string_equal(cut->why, "the journal was cut");
	hand_over(fx, none); /* without its facts */
	await(fx, none);
	assert_int_equal(none->status, E_INVALID);
	struct tape *fine = record_cell(fx, "m3", "3", NULL);
	await_fine(fx, fine);
	assert_git(fx, HISTORY_A, "log --format=%s", "3\nBegin\n");
	hfix_free(fx);
}

TEST(record, what_came_after_a_failure_waits_until_it_was_told)
{
	struct hfix *fx = hfix_new();
	struct tape *cut = tape_new(fx, "m1", "1", FINE);
	tape_end(cut, "ok", 1, "");
	cut->fails_at = 1;
	hand_over(fx, cut);
	struct tape *after = record_cell(fx, "m2", "2", NULL);
	struct tape *other = tape_new(fx, "m3", "3", FINE);
	tape_end(other, "ok", 1, "");
	assert_int_equal(hand_over_to(fx, other, HISTORY_B, "k2", 1), 0);
	await(fx, cut);
	await(fx, after);
	await_fine(fx, other);
	assert_int_equal(after->status, E_UNAVAILABLE);
	cut->fails_at = 0;
	cut->closed = after->closed = 0;
	hand_over(fx, cut);
	hand_over(fx, after);
	await_fine(fx, cut);
	await_fine(fx, after);
	assert_git(fx, HISTORY_A, "log --format=%s", "2\n1\nBegin\n");
	hfix_free(fx);
}

TEST(record, facts_that_a_kernel_made_up_do_not_count)
{
	struct hfix *fx = hfix_new();
	struct tape *t = tape_new(fx, "m1", "1", FINE);
	tape_say(t, "coppice_execution",
		"{\"status\":\"died\",\"execution_count\":99,\"ename\":\"X\",\"evalue\":\"\","
		"\"exit\":{\"code\":3,\"cause\":\"none\"}}");
	tape_say(t, "coppice_execution", "{\"status\":[]}");
	tape_stream(t, "stdout", "still here");
	tape_end(t, "ok", 1, "");
	hand_over(fx, t);
	await_fine(fx, t);
	cJSON *node = ask_node(fx, "HEAD");
	assert_string_equal(text_at(node, "status"), "ok");
	assert_null(cJSON_GetObjectItem(node, "error"));
	assert_null(cJSON_GetObjectItem(node, "exit"));
	assert_int_equal(cJSON_GetArraySize(cJSON_GetObjectItem(node, "outputs")), 1);
	cJSON_Delete(node);
	hfix_free(fx);
}

TEST(record, hostile_names_make_valid_commits)
{
	struct hfix *fx = hfix_new();
	static const char *const owners[] = {"", "<x>\n\"", "...", "\u00e9\u00e9", "a b@c"};
	for (size_t i = 0; i < ARRAY_LEN(owners); i++) {
		char id[16], history[64];
		(void)snprintf(id, sizeof id, "m%zu", i);
		(void)snprintf(history, sizeof history, "h%zu", i);
		struct tape *t = tape_new(
			fx, id, "x\x01\tCoppice-Status: ok\n\nCoppice-Node-Count: 9", FINE);
		tape_end(t, "ok", 1, ",\"ename\":\"a\\\"\\u0000b\",\"evalue\":\"\\ud83d\\ude00\"");
		struct history_run run = {.history_id = history,
			.name = "a\nCoppice-Owner: eve\n",
			.owner = owners[i],
			.kernel_id = "k\n",
			.kernelspec = "\"",
			.environment = "",
			.epoch = UINT64_MAX / 2,
			.source = {tape_next, tape_close, t},
			.data = t};
		assert_int_equal(history_record(fx->h, &run, NULL), 0);
		await_fine(fx, t);
		assert_sound(fx, history);
	}
	hfix_reopen(fx);
	struct history_question q = {.what = HISTORY_LIST, .owner = "eve"};
	cJSON *list = ask_tree(fx, &q);
	assert_int_equal(cJSON_GetArraySize(cJSON_GetObjectItem(list, "histories")), 0);
	cJSON_Delete(list);
	struct tape *bad = tape_new(fx, "m", "1", FINE);
	tape_end(bad, "ok", 1, "");
	assert_int_equal(hand_over_to(fx, bad, "../escape", "k", 1), 0);
	await(fx, bad);
	assert_int_equal(bad->status, E_INVALID);
	hfix_free(fx);
}

TEST(record, stock_git_clones_it_and_what_is_ours_stays)
{
	struct hfix *fx = hfix_new();
	await_fine(fx, record_cell(fx, "m1", "1", NULL));
	char *none = git(fx, HISTORY_A, "update-ref refs/coppice/state HEAD");
	free(none);
	none = git(fx, HISTORY_A, "update-ref refs/notes/coppice HEAD");
	free(none);
	assert_git(fx, HISTORY_A, "clone -q . ../clone", "");
	assert_git(fx, HISTORY_A, "-C ../clone log --format=%s", "1\nBegin\n");
	assert_git(fx, HISTORY_A, "-C ../clone status --porcelain --branch",
		"## main...origin/main\n");
	char *refs = git(fx, HISTORY_A, "ls-remote .");
	assert_null(strstr(refs, "coppice"));
	assert_null(strstr(refs, "notes"));
	assert_non_null(strstr(refs, "refs/heads/main"));
	free(refs);
	hfix_free(fx);
}

RUN(TEST_ROW(record, a_run_is_a_commit_and_comes_back),
	TEST_ROW(record, the_commit_says_who_when_and_how),
	TEST_ROW(record, a_new_process_of_the_kernel_begins_at_the_root),
	TEST_ROW(record, two_kernels_of_a_history_have_a_line_each),
	TEST_ROW(record, the_same_run_twice_is_one_node), TEST_ROW(record, runs_are_told_in_order),
	TEST_ROW(record, a_full_queue_refuses),
	TEST_ROW(record, late_text_is_appended_to_its_run_in_the_next_node),
	TEST_ROW(record, a_display_of_an_earlier_run_is_updated),
	TEST_ROW(record, a_picture_is_a_file_and_goes_when_it_is_cleared),
	TEST_ROW(record, a_source_that_ends_early_is_told_and_stops_nobody),
	TEST_ROW(record, what_came_after_a_failure_waits_until_it_was_told),
	TEST_ROW(record, facts_that_a_kernel_made_up_do_not_count),
	TEST_ROW(record, hostile_names_make_valid_commits),
	TEST_ROW(record, stock_git_clones_it_and_what_is_ours_stays))
