/* A process of a kernel that began at a node: where its runs go, and what is told of the way there.
 */
#include "tests/lib/history_fixture.h"

#define FINE ",\"silent\":false,\"store_history\":true"

struct begun {
	const char *at, *branch;
	uint64_t epoch, after_version;
	const char *kernel; /* NULL: k1 */
};

static struct tape *ran(
	struct hfix *fx, const char *msg_id, const char *status, int count, const struct begun *b)
{
	struct tape *t = tape_new(fx, msg_id, msg_id, FINE);
	tape_end(t, status, count, "");
	struct history_run run = {.history_id = HISTORY_A,
		.name = "walk",
		.owner = "ada",
		.kernel_id = b->kernel ? b->kernel : "k1",
		.kernelspec = "python3",
		.environment = "",
		.epoch = b->epoch,
		.at = b->at,
		.branch = b->branch,
		.after_version = b->after_version,
		.source = {tape_next, tape_close, t},
		.data = t};
	assert_int_equal(history_record(fx->h, &run, NULL), 0);
	await_fine(fx, t);
	return t;
}

static struct tape *run_at(struct hfix *fx, const char *msg_id, int count, const struct begun *b)
{
	return ran(fx, msg_id, "ok", count, b);
}

/* m1 to m4 on main, in epoch 1. */
static void walk(struct hfix *fx, struct tape *ret[4])
{
	static const struct begun first = {.epoch = 1};
	static const char *const ids[] = {"m1", "m2", "m3", "m4"};
	for (int i = 0; i < 4; i++)
		ret[i] = run_at(fx, ids[i], i + 1, &first);
}

TEST(going_back, a_new_line_begins_at_the_node_and_the_old_one_keeps_its_name)
{
	struct hfix *fx = hfix_new();
	struct tape *t[4];
	walk(fx, t);
	struct begun second = {.at = t[1]->node, .epoch = 2, .after_version = 5};
	struct tape *a = run_at(fx, "n1", 3, &second);
	struct tape *b = run_at(fx, "n2", 4, &second);
	assert_string_equal(a->branch, "main.2");
	assert_string_equal(b->branch, "main.2");
	assert_int_equal(a->state_version, 6);
	assert_int_equal(b->state_version, 7);
	assert_git(fx, HISTORY_A, "log --format=%s main.2", "n2\nn1\nm2\nm1\nBegin\n");
	assert_git(fx, HISTORY_A, "log --format=%s main", "m4\nm3\nm2\nm1\nBegin\n");
	/* Two fingers of one hand. */
	char *graph = git(fx, HISTORY_A, "log --graph --format=%s --all");
	assert_non_null(strstr(graph, "|/"));
	free(graph);
	/* A name that is wanted, and one that is taken. */
	struct begun third = {.at = t[1]->node, .branch = "try", .epoch = 3};
	struct tape *c = run_at(fx, "o1", 3, &third);
	assert_string_equal(c->branch, "try");
	assert_int_equal(c->state_version, 8);
	third.epoch = 4;
	assert_string_equal(run_at(fx, "o2", 3, &third)->branch, "main.3");
	assert_git(fx, HISTORY_A, "log --format=%s try", "o1\nm2\nm1\nBegin\n");
	assert_sound(fx, HISTORY_A);
	hfix_free(fx);
}

TEST(going_back, the_tip_of_a_branch_goes_on)
{
	struct hfix *fx = hfix_new();
	struct tape *t[4];
	walk(fx, t);
	const struct begun second = {.at = t[1]->node, .epoch = 2};
	(void)run_at(fx, "n1", 3, &second);
	const struct begun third = {.at = t[3]->node, .branch = "try", .epoch = 3};
	struct tape *on = run_at(fx, "m5", 5, &third);
	assert_string_equal(on->branch, "main");
	assert_git(fx, HISTORY_A, "log --format=%s main", "m5\nm4\nm3\nm2\nm1\nBegin\n");
	/* Another kernel that stood there as well. */
	const struct begun other = {.at = t[3]->node, .epoch = 1, .kernel = "k2"};
	assert_string_equal(run_at(fx, "p1", 5, &other)->branch, "main.3");
	assert_sound(fx, HISTORY_A);
	hfix_free(fx);
}

TEST(going_back, refs_never_move_back)
{
	struct hfix *fx = hfix_new();
	struct tape *t[4];
	walk(fx, t);
	for (uint64_t i = 0; i < 20; i++) {
		char id[16];
		(void)snprintf(id, sizeof id, "r%llu", (unsigned long long)i);
		const struct begun again = {.at = t[i % 4]->node, .epoch = 2 + i};
		(void)run_at(fx, id, 1, &again);
	}
	char *refs = git(fx, HISTORY_A, "for-each-ref refs/heads");
	size_t n = 0;
	for (const char *c = refs; *c; c++)
		n += *c == '\n';
	assert_int_equal(n, 20); /* main went on once */
	free(refs);
	for (int i = 0; i < 4; i++) {
		char command[128];
		(void)snprintf(
			command, sizeof command, "merge-base --is-ancestor %s main", t[i]->node);
		assert_git(fx, HISTORY_A, command, "");
	}
	assert_git(fx, HISTORY_A, "rev-list --count --all", "25\n");
	assert_sound(fx, HISTORY_A);
	/* The index is only an index. */
	hfix_close(fx);
	char command[256];
	(void)snprintf(command, sizeof command, "rm '%s'/index.sqlite*", fx->folder);
	shell(command);
	hfix_open(fx);
	const struct begun last = {.at = t[0]->node, .epoch = 21};
	struct tape *on = run_at(fx, "r20", 1, &last); /* that process ran r19 */
	char parent[64];
	(void)snprintf(parent, sizeof parent, "log -1 --format=%%s %s^", on->node);
	assert_git(fx, HISTORY_A, parent, "r19\n");
	hfix_free(fx);
}

TEST(going_back, a_node_that_is_not_of_this_history_is_the_root)
{
	struct hfix *fx = hfix_new();
	struct tape *t[4];
	walk(fx, t);
	const struct begun lost = {.at = "0123456789012345678901234567890123456789", .epoch = 2};
	assert_git(fx, HISTORY_A, "log --format=%s main", "m4\nm3\nm2\nm1\nBegin\n");
	struct tape *n = run_at(fx, "n1", 1, &lost);
	char command[256];
	(void)snprintf(command, sizeof command, "log --format=%%s %s", n->branch);
	assert_git(fx, HISTORY_A, command, "n1\nBegin\n");
	assert_sound(fx, HISTORY_A);
	hfix_free(fx);
}

/* ---- the way ---- */

static cJSON *way(struct hfix *fx, const char *node, const struct begun *b, const char *parked)
{
	struct history_question q = {.what = HISTORY_WAY,
		.owner = "ada",
		.history = HISTORY_A,
		.node = node,
		.kernel_id = "k1",
		.epoch = b->epoch,
		.at = b->at,
		.parked = parked};
	return ask_tree(fx, &q);
}

static void assert_list(const cJSON *tree, const char *name, const char *expected)
{
	char text[512] = "";
	const cJSON *one;
	cJSON_ArrayForEach (one, cJSON_GetObjectItem(tree, name)) {
		size_t at = strlen(text);
		(void)snprintf(text + at, sizeof text - at, "%s ", text_at(one, "msg_id"));
	}
	assert_string_equal(text, expected);
}

TEST(going_back, the_way_names_what_is_left_and_what_to_run)
{
	struct hfix *fx = hfix_new();
	struct tape *t[4];
	walk(fx, t);
	struct begun stands = {.epoch = 1};
	cJSON *tree = way(fx, "In[2]", &stands, "");
	const cJSON *node = cJSON_GetObjectItem(tree, "node");
	assert_string_equal(text_at(node, "id"), t[1]->node);
	assert_string_equal(text_at(node, "msg_id"), "m2");
	assert_string_equal(text_at(node, "kernel_id"), "k1");
	assert_string_equal(text_at(tree, "head"), t[3]->node);
	assert_string_equal(text_at(tree, "branch"), "main.2");
	assert_true(cJSON_IsFalse(cJSON_GetObjectItem(tree, "goes_on")));
	assert_int_equal(cJSON_GetObjectItem(tree, "state_version")->valueint, 4);
	assert_list(tree, "left", "m4 m3 ");
	assert_list(tree, "rebuild", "m1 m2 ");
	cJSON_Delete(tree);
	tree = way(fx, "In[3]", &stands, "partial x\nexact m1\n");
	assert_list(tree, "rebuild", "m2 m3 "); /* m1 is kept */
	cJSON_Delete(tree);
	/* From the other line. */
	struct begun second = {.at = t[1]->node, .epoch = 2};
	(void)run_at(fx, "n1", 3, &second);
	tree = way(fx, "main", &second, "");
	assert_list(tree, "left", "n1 ");
	assert_string_equal(text_at(tree, "branch"), "main");
	assert_true(cJSON_IsTrue(cJSON_GetObjectItem(tree, "goes_on")));
	cJSON_Delete(tree);
	hfix_free(fx);
}

TEST(going_back, head_is_where_the_process_stands)
{
	struct hfix *fx = hfix_new();
	struct tape *t[4];
	walk(fx, t);
	struct begun gone = {.at = t[2]->node, .epoch = 2};
	cJSON *tree = way(fx, "HEAD~1", &gone, ""); /* nothing ran since it went there */
	assert_string_equal(text_at(tree, "head"), t[2]->node);
	assert_string_equal(text_at(cJSON_GetObjectItem(tree, "node"), "id"), t[1]->node);
	assert_list(tree, "left", "m3 ");
	cJSON_Delete(tree);
	struct tape *n = run_at(fx, "n1", 4, &gone);
	tree = way(fx, "HEAD", &gone, "");
	assert_string_equal(text_at(tree, "head"), n->node);
	assert_list(tree, "left", "");
	cJSON_Delete(tree);
	struct begun fresh = {.epoch = 3}; /* a restart */
	tree = way(fx, "main", &fresh, "");
	assert_list(tree, "left", "");
	cJSON_Delete(tree);
	hfix_free(fx);
}

static void assert_before(struct hfix *fx, const struct begun *stand, const struct tape *node)
{
	cJSON *tree = way(fx, HISTORY_BEFORE, stand, "");
	assert_string_equal(text_at(cJSON_GetObjectItem(tree, "node"), "id"), node->node);
	cJSON_Delete(tree);
}

/* What was held behind a cell that failed has changed nothing: the way leads to before that cell.
 */
TEST(going_back, undo_is_to_before_the_last_that_ran)
{
	struct hfix *fx = hfix_new();
	struct tape *t[4];
	const struct begun first = {.epoch = 1};
	walk(fx, t);
	assert_before(fx, &first, t[2]);
	(void)ran(fx, "m5", "error", 5, &first);
	assert_before(fx, &first, t[3]);
	(void)ran(fx, "m6", "aborted", 6, &first);
	(void)ran(fx, "m7", "aborted", 6, &first);
	assert_before(fx, &first, t[3]);
	struct begun second = {.at = t[1]->node, .epoch = 2}; /* nothing ran there yet */
	assert_before(fx, &second, t[0]);
	struct tape *n = ran(fx, "n1", "timed_out", 3, &second);
	assert_before(fx, &second, t[1]);
	(void)ran(fx, "n2", "ok", 4, &second);
	assert_before(fx, &second, n);
	hfix_free(fx);
}

TEST(going_back, nodes_say_how_they_can_come_back)
{
	struct hfix *fx = hfix_new();
	struct tape *t[4];
	walk(fx, t);
	struct history_question q = {.what = HISTORY_ONE,
		.history = HISTORY_A,
		.parked = "exact m2\npartial m3\nexact m\n"};
	static const char *const fidelity[] = {"code-only", "partial", "exact", "code-only"};
	cJSON *tree = ask_tree(fx, &q);
	const cJSON *nodes = cJSON_GetObjectItem(tree, "nodes");
	for (int i = 0; i < 4; i++) {
		const cJSON *node = cJSON_GetArrayItem(nodes, i);
		assert_string_equal(text_at(node, "fidelity"), fidelity[i]);
		assert_int_equal(cJSON_GetArraySize(cJSON_GetObjectItem(node, "restorable_by")),
			strcmp(fidelity[i], "code-only") != 0);
	}
	cJSON_Delete(tree);
	q.what = HISTORY_NODE;
	q.node = "In[2]";
	tree = ask_tree(fx, &q);
	assert_string_equal(text_at(cJSON_GetObjectItem(tree, "report"), "fidelity"), "exact");
	cJSON_Delete(tree);
	hfix_free(fx);
}

RUN(TEST_ROW(going_back, a_new_line_begins_at_the_node_and_the_old_one_keeps_its_name),
	TEST_ROW(going_back, the_tip_of_a_branch_goes_on),
	TEST_ROW(going_back, refs_never_move_back),
	TEST_ROW(going_back, a_node_that_is_not_of_this_history_is_the_root),
	TEST_ROW(going_back, the_way_names_what_is_left_and_what_to_run),
	TEST_ROW(going_back, head_is_where_the_process_stands),
	TEST_ROW(going_back, undo_is_to_before_the_last_that_ran),
	TEST_ROW(going_back, nodes_say_how_they_can_come_back))
