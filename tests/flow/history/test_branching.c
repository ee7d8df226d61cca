/* Branches that are asked for: the ref is there at once, a name is given once, and the first run of
 * who continues it moves it, whatever else goes on from the same node. */
#include "tests/lib/history_fixture.h"

#define FINE ",\"silent\":false,\"store_history\":true"

struct begun {
	const char *at, *branch;
	uint64_t epoch;
	const char *kernel;
};

static struct tape *run_at(struct hfix *fx, const char *msg_id, int count, const struct begun *b)
{
	struct tape *t = tape_new(fx, msg_id, msg_id, FINE);
	tape_end(t, "ok", count, "");
	struct history_run run = {.history_id = HISTORY_A,
		.name = "walk",
		.owner = "ada",
		.kernel_id = b->kernel,
		.kernelspec = "python3",
		.environment = "",
		.epoch = b->epoch,
		.at = b->at,
		.branch = b->branch,
		.source = {tape_next, tape_close, t},
		.data = t};
	assert_int_equal(history_record(fx->h, &run, NULL), 0);
	await_fine(fx, t);
	return t;
}

static const struct begun first = {.epoch = 1, .kernel = "k1"};

/* m1 to m4 on main, by k1. */
static void walk(struct hfix *fx, struct tape *ret[4])
{
	static const char *const ids[] = {"m1", "m2", "m3", "m4"};
	for (int i = 0; i < 4; i++)
		ret[i] = run_at(fx, ids[i], i + 1, &first);
}

static struct history_question branch_of(const char *node, const char *name)
{
	return (struct history_question){.what = HISTORY_BRANCH,
		.owner = "ada",
		.history = HISTORY_A,
		.node = node,
		.name = name};
}

static void branch(struct hfix *fx, const char *node, const char *name, const char *expected)
{
	const struct history_question q = branch_of(node, name);
	cJSON *tree = ask_tree(fx, &q);
	assert_string_equal(text_at(tree, "name"), expected);
	assert_string_equal(text_at(tree, "history"), HISTORY_A);
	cJSON_Delete(tree);
}

static int try_branch(struct hfix *fx, const char *node, const char *name)
{
	const struct history_question q = branch_of(node, name);
	return ask(fx, &q);
}

/* "NAME NODE KERNEL FIDELITY" of that branch, "": there is none. */
static const char *row_of(struct hfix *fx, const char *name, const char *parked, const char *stands)
{
	static char text[256];
	const struct history_question q = {.what = HISTORY_ONE,
		.owner = "ada",
		.history = HISTORY_A,
		.parked = parked,
		.stands = stands};
	cJSON *tree = ask_tree(fx, &q);
	const cJSON *one;
	text[0] = '\0';
	cJSON_ArrayForEach (one, cJSON_GetObjectItem(tree, "branches")) {
		const cJSON *kernel = cJSON_GetObjectItem(one, "kernel_id");
		if (strcmp(text_at(one, "name"), name) == 0)
			(void)snprintf(text, sizeof text, "%.8s %s %s", text_at(one, "node"),
				cJSON_IsString(kernel) ? kernel->valuestring : "nobody",
				text_at(one, "fidelity"));
	}
	cJSON_Delete(tree);
	return text;
}

static void assert_row(struct hfix *fx, const char *name, const char *node, const char *rest)
{
	char expected[128];
	(void)snprintf(expected, sizeof expected, "%.8s %s", node, rest);
	assert_string_equal(row_of(fx, name, "", ""), expected);
}

TEST(branching, it_is_there_at_once_and_its_first_run_moves_it)
{
	struct hfix *fx = hfix_new();
	struct tape *t[4];
	walk(fx, t);
	branch(fx, t[1]->node, "other", "other");
	assert_row(fx, "other", t[1]->node, "nobody code-only");
	assert_git(fx, HISTORY_A, "log --format=%s other", "m2\nm1\nBegin\n");
	const struct begun b = {.at = t[1]->node, .branch = "other", .epoch = 7, .kernel = "k2"};
	struct tape *n1 = run_at(fx, "n1", 3, &b), *m5 = run_at(fx, "m5", 5, &first);
	struct tape *n2 = run_at(fx, "n2", 4, &b);
	assert_string_equal(n1->branch, "other");
	assert_string_equal(n2->branch, "other");
	assert_string_equal(m5->branch, "main");
	assert_git(fx, HISTORY_A, "log --format=%s other", "n2\nn1\nm2\nm1\nBegin\n");
	assert_git(fx, HISTORY_A, "log --format=%s main", "m5\nm4\nm3\nm2\nm1\nBegin\n");
	assert_row(fx, "other", n2->node, "k2 code-only");
	assert_sound(fx, HISTORY_A);
	hfix_free(fx);
}

/* Both stand at the tip of main, and each goes on on its own. */
TEST(branching, at_the_tip_of_another_branch)
{
	struct hfix *fx = hfix_new();
	struct tape *t[4];
	walk(fx, t);
	branch(fx, "HEAD", NULL, "main.2");
	branch(fx, "main", "", "main.3");
	const struct begun b = {.at = t[3]->node, .branch = "main.2", .epoch = 7, .kernel = "k2"};
	assert_string_equal(run_at(fx, "n1", 5, &b)->branch, "main.2");
	assert_string_equal(run_at(fx, "m5", 5, &first)->branch, "main");
	const struct begun c = {.at = t[3]->node, .branch = "main.3", .epoch = 8, .kernel = "k3"};
	assert_string_equal(run_at(fx, "o1", 5, &c)->branch, "main.3");
	/* Who comes late to one that has gone on begins another. */
	const struct begun d = {.at = t[3]->node, .branch = "main.2", .epoch = 9, .kernel = "k4"};
	assert_string_equal(run_at(fx, "p1", 5, &d)->branch, "main.4");
	assert_sound(fx, HISTORY_A);
	hfix_free(fx);
}

TEST(branching, a_name_is_given_once)
{
	struct hfix *fx = hfix_new();
	struct tape *t[4];
	walk(fx, t);
	branch(fx, t[0]->node, "one", "one");
	assert_int_equal(try_branch(fx, t[2]->node, "one"), E_CONFLICT);
	assert_non_null(strstr(fx->why, "there is a branch 'one' already"));
	assert_int_equal(try_branch(fx, t[2]->node, "main"), E_CONFLICT);
	assert_row(fx, "one", t[0]->node, "nobody code-only");
	assert_int_equal(try_branch(fx, "nothing", "two"), E_NOT_FOUND);
	struct history_question q = branch_of("HEAD", "two");
	q.owner = "bob";
	assert_int_equal(ask(fx, &q), E_NOT_FOUND);
	/* The way says it before anything is begun. */
	q = (struct history_question){.what = HISTORY_WAY,
		.owner = "ada",
		.history = HISTORY_A,
		.node = t[1]->node,
		.name = "one"};
	assert_int_equal(ask(fx, &q), E_CONFLICT);
	q.name = NULL;
	cJSON *way = ask_tree(fx, &q);
	assert_string_equal(text_at(way, "fresh"), "main.2");
	cJSON_Delete(way);
	assert_string_equal(row_of(fx, "two", "", ""), "");
	hfix_free(fx);
}

TEST(branching, who_names_it_continues_it)
{
	struct hfix *fx = hfix_new();
	struct tape *t[4];
	walk(fx, t);
	branch(fx, t[1]->node, "later", "later");
	const struct history_question q = {.what = HISTORY_WAY,
		.owner = "ada",
		.history = HISTORY_A,
		.node = "later",
		.kernel_id = "k1"};
	cJSON *way = ask_tree(fx, &q);
	assert_string_equal(text_at(way, "branch"), "later");
	assert_true(cJSON_IsTrue(cJSON_GetObjectItem(way, "goes_on")));
	cJSON_Delete(way);
	const struct begun on = {.at = t[1]->node, .branch = "later", .epoch = 2, .kernel = "k1"};
	assert_string_equal(run_at(fx, "n1", 3, &on)->branch, "later");
	hfix_free(fx);
}

TEST(branching, lists_say_who_stands_there_and_what_comes_back)
{
	struct hfix *fx = hfix_new();
	struct tape *t[4];
	char stands[256], expected[128];
	walk(fx, t);
	branch(fx, t[1]->node, "other", "other");
	(void)snprintf(stands, sizeof stands, "k9 %s else\nk2 %s other\n", t[1]->node, t[1]->node);
	(void)snprintf(expected, sizeof expected, "%.8s k2 partial", t[1]->node);
	assert_string_equal(row_of(fx, "other", "exact m1\npartial m2\n", stands), expected);
	(void)snprintf(expected, sizeof expected, "%.8s k1 exact", t[3]->node);
	assert_string_equal(row_of(fx, "main", "exact m4\n", stands), expected);
	hfix_free(fx);
}

/* The index is only an index. */
TEST(branching, refs_are_the_truth)
{
	struct hfix *fx = hfix_new();
	struct tape *t[4];
	walk(fx, t);
	branch(fx, t[1]->node, "other", "other");
	hfix_close(fx);
	char command[256];
	(void)snprintf(command, sizeof command, "rm '%s'/index.sqlite*", fx->folder);
	shell(command);
	hfix_open(fx);
	assert_row(fx, "other", t[1]->node, "nobody code-only");
	assert_int_equal(try_branch(fx, "HEAD", "other"), E_CONFLICT);
	const struct begun b = {.at = t[1]->node, .branch = "other", .epoch = 7, .kernel = "k2"};
	assert_string_equal(run_at(fx, "n1", 3, &b)->branch, "other");
	assert_sound(fx, HISTORY_A);
	hfix_free(fx);
}

/* ---- each step fails ---- */

struct faulty {
	enum record_step step;
	bool armed;
};

static int fail_step(void *data, enum record_step step)
{
	struct faulty *f = data;
	return f->armed && step == f->step ? E_IO : 0;
}

TEST(branching, what_fails_can_be_asked_for_again)
{
	static const enum record_step steps[] = {STEP_REF, STEP_INDEX};
	for (size_t i = 0; i < ARRAY_LEN(steps); i++) {
		struct faulty f = {.step = steps[i]};
		struct hfix *fx = hfix_make();
		struct tape *t[4];
		fx->hook = (struct record_hook){.step = fail_step, .data = &f};
		hfix_open(fx);
		walk(fx, t);
		f.armed = true;
		assert_int_equal(try_branch(fx, t[1]->node, "other"), E_IO);
		f.armed = false;
		/* Where the ref was written the branch is there, and is told so. */
		if (steps[i] == STEP_REF)
			branch(fx, t[1]->node, "other", "other");
		else
			assert_int_equal(try_branch(fx, t[1]->node, "other"), E_CONFLICT);
		assert_row(fx, "other", t[1]->node, "nobody code-only");
		assert_sound(fx, HISTORY_A);
		hfix_free(fx);
	}
}

RUN(TEST_ROW(branching, it_is_there_at_once_and_its_first_run_moves_it),
	TEST_ROW(branching, at_the_tip_of_another_branch),
	TEST_ROW(branching, a_name_is_given_once), TEST_ROW(branching, who_names_it_continues_it),
	TEST_ROW(branching, lists_say_who_stands_there_and_what_comes_back),
	TEST_ROW(branching, refs_are_the_truth),
	TEST_ROW(branching, what_fails_can_be_asked_for_again))
