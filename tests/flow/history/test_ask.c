#include "tests/lib/history_fixture.h"

#define FINE ",\"silent\":false,\"store_history\":true"

static struct tape *run_as(struct hfix *fx, const char *owner, const char *history,
	const char *name, const char *msg_id, int count)
{
	struct tape *t = tape_new(fx, msg_id, msg_id, FINE);
	tape_end(t, "ok", count, "");
	struct history_run run = {.history_id = history,
		.name = name,
		.owner = owner,
		.kernel_id = history,
		.epoch = 1,
		.source = {tape_next, tape_close, t},
		.data = t};
	assert_int_equal(history_record(fx->h, &run, NULL), 0);
	await_fine(fx, t);
	return t;
}

/* The id of the node that a name leads to, or the error. The caller frees. */
static char *resolve(struct hfix *fx, const char *name, const char *kernel)
{
	struct history_question q = {
		.what = HISTORY_NODE, .history = HISTORY_A, .node = name, .kernel_id = kernel};
	if (ask(fx, &q) != 0)
		return strdup(err_name(fx->status));
	cJSON *tree = cJSON_Parse(fx->json);
	char *id = strdup(text_at(tree, "id"));
	cJSON_Delete(tree);
	return id;
}

static void assert_named(
	struct hfix *fx, const char *name, const char *kernel, const char *expected)
{
	char *id = resolve(fx, name, kernel);
	if (strcmp(id, expected) != 0)
		fail_msg("%s: %s, not %s", name, id, expected);
	free(id);
}

/* A run of a kernel's own history, or of the one that is wanted; the id of where it went, or an
 * error. */
static struct tape *run_in(struct hfix *fx, const char *owner, const char *kernel,
	const char *wanted, const char *msg_id)
{
	struct tape *t = tape_new(fx, msg_id, msg_id, FINE);
	tape_end(t, "ok", 1, "");
	struct history_run run = {.history_id = kernel,
		.name = "own",
		.wanted = wanted,
		.owner = owner,
		.kernel_id = kernel,
		.epoch = 1,
		.source = {tape_next, tape_close, t},
		.data = t};
	assert_int_equal(history_record(fx->h, &run, NULL), 0);
	await_fine(fx, t);
	return t;
}

static size_t nodes_of(struct hfix *fx, const char *owner, const char *history)
{
	struct history_question q = {.what = HISTORY_ONE, .owner = owner, .history = history};
	if (ask(fx, &q) != 0)
		return 0;
	cJSON *tree = cJSON_Parse(fx->json);
	size_t n = (size_t)cJSON_GetArraySize(cJSON_GetObjectItem(tree, "nodes"));
	cJSON_Delete(tree);
	return n;
}

TEST(ask, a_kernel_goes_on_in_a_history_of_its_owner)
{
	struct hfix *fx = hfix_new();
	struct tape *first = run_in(fx, "ada", HISTORY_A, "walk", "a1"); /* begins */
	assert_string_equal(first->history, HISTORY_A);
	struct tape *second = run_in(fx, "ada", HISTORY_B, "walk", "b1");
	assert_string_equal(second->history, HISTORY_A);
	assert_string_equal(second->branch, "main.2"); /* its memory is empty */
	assert_string_equal(run_in(fx, "ada", HISTORY_B, HISTORY_A, "b2")->branch, "main.2");
	assert_int_equal(nodes_of(fx, "ada", "walk"), 4);
	/* Nobody else's is found, and a kernel that had its own begins another. */
	struct tape *bob = run_in(fx, "bob", HISTORY_B, "walk", "c1");
	assert_string_equal(bob->history, HISTORY_B);
	struct tape *other = run_in(fx, "bob", HISTORY_B, "other", "c2");
	assert_string_not_equal(other->history, HISTORY_B);
	assert_int_equal(nodes_of(fx, "bob", "other"), 2);
	assert_string_equal(run_in(fx, "bob", HISTORY_B, "other", "c3")->history, other->history);
	assert_int_equal(nodes_of(fx, "ada", "walk"), 4);
	hfix_free(fx);
}

/* A kernel stands in one history; the one that it left has a HEAD all the same. */
TEST(ask, a_history_that_its_kernel_left_has_a_head)
{
	struct hfix *fx = hfix_new();
	run_in(fx, "ada", HISTORY_A, NULL, "a1");
	struct tape *left = run_in(fx, "ada", HISTORY_A, NULL, "a2");
	struct tape *there = run_in(fx, "ada", HISTORY_A, "walk", "w1");
	assert_string_not_equal(there->history, HISTORY_A);
	assert_named(fx, "HEAD", NULL, left->node);
	assert_named(fx, "In[1]", NULL, left->node);
	struct history_question q = {.what = HISTORY_NODE, .history = "walk", .node = "HEAD"};
	cJSON *tree = ask_tree(fx, &q);
	assert_string_equal(text_at(tree, "id"), there->node);
	cJSON_Delete(tree);
	q = (struct history_question){.what = HISTORY_LIST};
	tree = ask_tree(fx, &q);
	const cJSON *row, *rows = cJSON_GetObjectItem(tree, "histories");
	assert_int_equal(cJSON_GetArraySize(rows), 2);
	cJSON_ArrayForEach (row, rows) {
		bool is_left = strcmp(text_at(row, "id"), HISTORY_A) == 0;
		assert_string_equal(text_at(row, "head"), is_left ? left->node : there->node);
		assert_string_equal(text_at(row, "branch"), "main");
		assert_int_equal(cJSON_IsNull(cJSON_GetObjectItem(row, "kernel_id")), is_left);
	}
	cJSON_Delete(tree);
	q = (struct history_question){.what = HISTORY_EXPORT, .history = HISTORY_A};
	assert_int_equal(ask(fx, &q), 0);
	hfix_free(fx);
}

/* Clients may choose a kernel's id. */
TEST(ask, an_id_that_another_owner_has_leads_nowhere)
{
	struct hfix *fx = hfix_new();
	run_in(fx, "ada", HISTORY_A, NULL, "a1");
	struct tape *bob = run_in(fx, "bob", HISTORY_A, NULL, "b1");
	assert_string_not_equal(bob->history, HISTORY_A);
	assert_string_equal(run_in(fx, "bob", HISTORY_A, NULL, "b2")->history, bob->history);
	assert_string_not_equal(run_in(fx, "bob", HISTORY_B, HISTORY_A, "b3")->history, HISTORY_A);
	assert_int_equal(nodes_of(fx, "ada", HISTORY_A), 2);
	hfix_free(fx);
}

/* Three cells of kernel k1 on main, one of k2 on main.2. */
static void four_cells(struct hfix *fx, struct tape *t[4])
{
	static const char *const ids[] = {"m0", "m1", "m2", "m3"};
	for (size_t i = 0; i < 4; i++) {
		t[i] = tape_new(fx, ids[i], ids[i], i == 2 ? ",\"silent\":true" : FINE);
		tape_end(t[i], "ok", i == 3 ? 9 : (int)i + 1, "");
		assert_int_equal(hand_over_to(fx, t[i], HISTORY_A, i == 3 ? "k2" : "k1", 1), 0);
	}
	for (size_t i = 0; i < 4; i++)
		await_fine(fx, t[i]);
}

TEST(ask, a_node_goes_by_each_of_its_names)
{
	struct hfix *fx = hfix_new();
	struct tape *t[4];
	char prefix[8];
	four_cells(fx, t);
	assert_named(fx, t[1]->node, NULL, t[1]->node);
	(void)snprintf(prefix, sizeof prefix, "%.6s", t[1]->node);
	assert_named(fx, prefix, NULL, t[1]->node);
	assert_named(fx, "main", NULL, t[2]->node);
	assert_named(fx, "main.2", NULL, t[3]->node);
	assert_named(fx, "HEAD", "k1", t[2]->node);
	assert_named(fx, "HEAD~0", "k1", t[2]->node);
	assert_named(fx, "HEAD~", "k1", t[1]->node);
	assert_named(fx, "HEAD~2", "k1", t[0]->node);
	assert_named(fx, "HEAD", "k2", t[3]->node);
	assert_named(fx, "In[2]", "k1", t[1]->node);
	assert_named(fx, "In[9]", "k2", t[3]->node);
	assert_named(fx, "In[9]", "k1", "not_found");
	assert_named(fx, "In[3]", "k1", "not_found"); /* silent */
	static const char *const wrong[] = {"HEAD~9", "HEAD~x", "HEAD~1x", "HEADS", "In[", "In[x]",
		"In[1", "abc", "zzzz", "", "0000000000000000000000000000000000000000", "' OR 1=1"};
	for (size_t i = 0; i < ARRAY_LEN(wrong); i++)
		assert_named(fx, wrong[i], "k1", "not_found");
	assert_non_null(strstr(fx->why, "`coppice log` lists them"));
	assert_named(fx, "HEAD", "k9", "not_found");
	hfix_free(fx);
}

TEST(ask, a_prefix_of_two_nodes_is_ambiguous)
{
	struct hfix *fx = hfix_new();
	const struct tape *met[65536] = {0};
	/* Some pair of 600 shares four digits with a chance of 93 in 100; more until one does. */
	for (int i = 0; i < 3000; i++) {
		char id[16], prefix[5];
		(void)snprintf(id, sizeof id, "m%d", i);
		struct tape *t = record_cell(fx, id, id, NULL);
		await_fine(fx, t);
		(void)snprintf(prefix, sizeof prefix, "%.4s", t->node);
		unsigned long at = strtoul(prefix, NULL, 16);
		if (!met[at]) {
			met[at] = t;
			continue;
		}
		assert_named(fx, prefix, NULL, "ambiguous");
		assert_non_null(strstr(fx->why, "ambiguous"));
		char candidate[13];
		(void)snprintf(candidate, sizeof candidate, "%.12s", t->node);
		assert_non_null(strstr(fx->why, candidate));
		(void)snprintf(candidate, sizeof candidate, "%.12s", met[at]->node);
		assert_non_null(strstr(fx->why, candidate));
		hfix_free(fx);
		return;
	}
	fail_msg("no two of 3000 nodes share four digits");
}

/* ---- owners ---- */

TEST(ask, another_owners_history_is_not_there)
{
	struct hfix *fx = hfix_new();
	(void)run_as(fx, "ada", HISTORY_A, "walk", "m0", 1);
	(void)run_as(fx, "bob", HISTORY_B, "walk", "m1", 1);
	static const enum history_what kinds[] = {HISTORY_ONE, HISTORY_NODE, HISTORY_REPOSITORY};
	for (size_t i = 0; i < ARRAY_LEN(kinds); i++) {
		struct history_question q = {
			.what = kinds[i], .owner = "ada", .history = HISTORY_B, .node = "HEAD"};
		assert_int_equal(ask(fx, &q), E_NOT_FOUND);
		q.history = HISTORY_A;
		assert_int_equal(ask(fx, &q), 0);
		q.history = "walk";
		assert_int_equal(ask(fx, &q), 0);
		q.owner = NULL;
		assert_int_equal(ask(fx, &q), E_AMBIGUOUS);
		q.history = "nothing";
		assert_int_equal(ask(fx, &q), E_NOT_FOUND);
	}
	struct history_question q = {.what = HISTORY_LIST, .owner = "bob"};
	cJSON *list = ask_tree(fx, &q);
	const cJSON *rows = cJSON_GetObjectItem(list, "histories");
	assert_int_equal(cJSON_GetArraySize(rows), 1);
	const cJSON *row = cJSON_GetArrayItem(rows, 0);
	assert_string_equal(text_at(row, "id"), HISTORY_B);
	assert_string_equal(text_at(row, "name"), "walk");
	assert_string_equal(text_at(row, "kernel_id"), HISTORY_B);
	assert_string_equal(text_at(row, "branch"), "main");
	assert_int_equal(cJSON_GetNumberValue(cJSON_GetObjectItem(row, "node_count")), 2);
	assert_int_equal(strlen(text_at(row, "last_activity")), 27);
	cJSON_Delete(list);
	hfix_free(fx);
}

/* ---- pages ---- */

/* Reads all pages; the ids in order, apart by a space. The caller frees. */
static char *all_pages(struct hfix *fx, struct history_question q, const char *rows)
{
	AUTO(buf_done) struct buf ids;
	char cursor[128] = "";
	buf_init(&ids, 1 << 20);
	do {
		q.cursor = cursor[0] ? cursor : NULL;
		cJSON *page = ask_tree(fx, &q), *row;
		cJSON *list = cJSON_GetObjectItem(page, rows);
		assert_true(cJSON_GetArraySize(list) <= (int)q.limit);
		cJSON_ArrayForEach (row, list)
			(void)buf_addf(&ids, "%.8s ", text_at(row, "id"));
		const char *next = cJSON_GetStringValue(cJSON_GetObjectItem(page, "next"));
		(void)snprintf(cursor, sizeof cursor, "%s", next ? next : "");
		cJSON_Delete(page);
	} while (cursor[0]);
	return (char *)buf_take(&ids, NULL);
}

TEST(ask, pages_together_are_the_whole)
{
	struct hfix *fx = hfix_new();
	char name[16];
	for (int i = 0; i < 7; i++) {
		(void)snprintf(name, sizeof name, "h%d", i);
		(void)run_as(fx, "ada", name, name, name, 1);
	}
	for (int i = 0; i < 9; i++) {
		(void)snprintf(name, sizeof name, "m%d", i);
		(void)run_as(fx, "ada", "h3", "h3", name, i);
	}
	for (unsigned limit = 1; limit < 12; limit++) {
		struct history_question list = {.what = HISTORY_LIST, .limit = limit};
		struct history_question one = {
			.what = HISTORY_ONE, .history = "h3", .limit = limit};
		char *histories = all_pages(fx, list, "histories");
		char *nodes = all_pages(fx, one, "nodes");
		assert_string_equal(histories, "h6 h5 h4 h3 h2 h1 h0 ");
		assert_int_equal(strlen(nodes), 11 * 9); /* with the root */
		for (const char *at = nodes; *at; at += 9) {
			char id[10];
			(void)snprintf(id, sizeof id, "%.9s", at);
			assert_null(strstr(at + 9, id));
		}
		free(histories);
		free(nodes);
	}
	static const char *const wrong[] = {"x", "1x", "-5", "1.", "99999999999999999999x"};
	for (size_t i = 0; i < ARRAY_LEN(wrong); i++) {
		struct history_question q = {
			.what = HISTORY_ONE, .history = "h3", .cursor = wrong[i]};
		assert_int_equal(ask(fx, &q), E_INVALID);
	}
	struct history_question q = {.what = HISTORY_LIST, .cursor = "12"};
	assert_int_equal(ask(fx, &q), E_INVALID);
	hfix_free(fx);
}

TEST(ask, silent_runs_are_shown_when_asked_for)
{
	struct hfix *fx = hfix_new();
	struct tape *t[4];
	four_cells(fx, t);
	struct history_question q = {.what = HISTORY_ONE, .history = HISTORY_A};
	cJSON *tree = ask_tree(fx, &q);
	assert_int_equal(cJSON_GetArraySize(cJSON_GetObjectItem(tree, "nodes")), 4);
	const cJSON *branches = cJSON_GetObjectItem(tree, "branches");
	assert_int_equal(cJSON_GetArraySize(branches), 2);
	assert_string_equal(text_at(cJSON_GetArrayItem(branches, 0), "name"), "main");
	assert_string_equal(text_at(cJSON_GetArrayItem(branches, 0), "kernel_id"), "k1");
	assert_string_equal(text_at(cJSON_GetArrayItem(branches, 1), "node"), t[3]->node);
	cJSON_Delete(tree);
	q.silent = true;
	tree = ask_tree(fx, &q);
	const cJSON *nodes = cJSON_GetObjectItem(tree, "nodes");
	assert_int_equal(cJSON_GetArraySize(nodes), 5);
	assert_string_equal(text_at(cJSON_GetArrayItem(nodes, 4), "kind"), "root");
	const cJSON *silent = cJSON_GetArrayItem(nodes, 1);
	assert_true(cJSON_IsTrue(cJSON_GetObjectItem(silent, "silent")));
	assert_string_equal(text_at(silent, "parent"), t[1]->node);
	cJSON_Delete(tree);
	hfix_free(fx);
}

TEST(ask, the_root_and_the_repository_have_their_answers)
{
	struct hfix *fx = hfix_new();
	struct tape *t[4];
	char path[256];
	four_cells(fx, t);
	struct history_question q = {
		.what = HISTORY_NODE, .history = HISTORY_A, .node = "HEAD~3", .kernel_id = "k1"};
	cJSON *root = ask_tree(fx, &q);
	assert_string_equal(text_at(root, "kind"), "root");
	assert_string_equal(text_at(root, "code"), "");
	assert_true(cJSON_IsNull(cJSON_GetObjectItem(root, "parent")));
	assert_int_equal(cJSON_GetArraySize(cJSON_GetObjectItem(root, "outputs")), 0);
	cJSON_Delete(root);
	q.what = HISTORY_REPOSITORY;
	cJSON *answer = ask_tree(fx, &q);
	(void)snprintf(path, sizeof path, "%s/" HISTORY_A ".git", fx->folder);
	assert_string_equal(text_at(answer, "path"), path);
	cJSON_Delete(answer);
	hfix_free(fx);
}

/* A kernel that began in another's history has none of its own id. */
TEST(ask, the_id_of_a_kernel_leads_to_the_history_that_it_is_in)
{
	struct hfix *fx = hfix_new();
	(void)run_in(fx, "ada", HISTORY_A, "walk", "a1");
	(void)run_in(fx, "ada", HISTORY_B, "walk", "b1");
	struct history_question q = {.what = HISTORY_NODE, .history = HISTORY_B, .node = "HEAD"};
	q.kernel_id = HISTORY_B;
	cJSON *tree = ask_tree(fx, &q);
	assert_string_equal(text_at(tree, "msg_id"), "b1");
	cJSON_Delete(tree);
	q = (struct history_question){.what = HISTORY_ONE, .history = HISTORY_B};
	tree = ask_tree(fx, &q);
	assert_string_equal(text_at(tree, "id"), HISTORY_A);
	cJSON_Delete(tree);
	q.owner = "bob";
	assert_int_equal(ask(fx, &q), E_NOT_FOUND);
	q.owner = "ada";
	q.exact = true; /* what is to be removed is named itself */
	assert_int_equal(ask(fx, &q), E_NOT_FOUND);
	hfix_free(fx);
}

static void count_answer(void *data, int status, struct bytes json, const struct err *err)
{
	(void)json;
	(void)err;
	assert_true(status == 0 || status == E_UNAVAILABLE);
	(*(unsigned *)data)++;
}

TEST(ask, each_question_is_answered_once_at_the_close_too)
{
	struct hfix *fx = hfix_new();
	unsigned answers = 0;
	struct history_question q = {.what = HISTORY_LIST};
	for (unsigned i = 0; i < HISTORY_QUEUE_MAX + 10; i++)
		history_ask(fx->h, &q, count_answer, &answers);
	assert_int_equal(answers, 0);
	hfix_close(fx);
	assert_int_equal(answers, HISTORY_QUEUE_MAX + 10);
	hfix_free(fx);
}

RUN(TEST_ROW(ask, a_kernel_goes_on_in_a_history_of_its_owner),
	TEST_ROW(ask, a_history_that_its_kernel_left_has_a_head),
	TEST_ROW(ask, an_id_that_another_owner_has_leads_nowhere),
	TEST_ROW(ask, a_node_goes_by_each_of_its_names),
	TEST_ROW(ask, a_prefix_of_two_nodes_is_ambiguous),
	TEST_ROW(ask, another_owners_history_is_not_there),
	TEST_ROW(ask, pages_together_are_the_whole),
	TEST_ROW(ask, silent_runs_are_shown_when_asked_for),
	TEST_ROW(ask, the_root_and_the_repository_have_their_answers),
	TEST_ROW(ask, the_id_of_a_kernel_leads_to_the_history_that_it_is_in),
	TEST_ROW(ask, each_question_is_answered_once_at_the_close_too))
