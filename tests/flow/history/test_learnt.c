/* What is learnt of a run after its end: kept beside the commits, of guests' making. */
#include "history/learnt.h"
#include "tests/lib/history_fixture.h"

#define FINE ",\"silent\":false,\"store_history\":true"
#define X    "{\"name\":\"x\",\"type\":\"int\",\"shape\":[],\"bytes\":28}"
#define X2   "{\"name\":\"x\",\"type\":\"str\",\"shape\":[1],\"bytes\":50}"
#define B    "{\"name\":\"b\",\"type\":\"int\",\"shape\":[],\"bytes\":28}"
#define A    "{\"name\":\"a\",\"type\":\"ndarray\",\"shape\":[3,4],\"bytes\":96}"

/* A report about a run, handed over. */
static struct tape *report(struct hfix *fx, const char *msg_id, const char *text)
{
	struct tape *t = calloc(1, sizeof *t);
	AUTO(buf_done) struct buf content;
	buf_init(&content, 1u << 20);
	(void)snprintf(t->msg_id, sizeof t->msg_id, "r-%s", msg_id);
	if (text)
		(void)buf_addf(&content, "{\"report\":%s}", text);
	else
		(void)buf_add_text(&content, "{}");
	tape_message(t, CHANNEL_HB, "coppice_report", "r", msg_id, NULL,
		(struct bytes){content.data, content.len});
	t->next = fx->tapes;
	fx->tapes = t;
	hand_over(fx, t);
	return t;
}

static void assert_json(const cJSON *value, const char *expected)
{
	char *printed = cJSON_PrintUnformatted(value);
	assert_string_equal(printed, expected);
	cJSON_free(printed);
}

static void assert_variables(
	struct hfix *fx, const char *node, const char *variables, const char *complete)
{
	cJSON *tree = ask_node(fx, node);
	assert_json(cJSON_GetObjectItem(tree, "variables"), variables);
	assert_json(cJSON_GetObjectItem(tree, "variables_complete"), complete);
	cJSON_Delete(tree);
}

TEST(learnt, variables_of_a_node_are_there_beside_its_commit)
{
	struct hfix *fx = hfix_new();
	struct tape *first = record_cell(fx, "m1", "x = 1", NULL);
	struct tape *told = report(fx, "m1", "{\"variables\":[" X "," A "],\"complete\":true}");
	await_fine(fx, first);
	await_fine(fx, told);
	assert_string_equal(told->node, "");
	struct tape *second = record_cell(fx, "m2", "y = 1", NULL);
	await_fine(fx, second);
	assert_variables(fx, first->node, "[" X "," A "]", "true");
	assert_variables(fx, second->node, "null", "null"); /* another cell followed at once */
	told = report(fx, "m2", "{\"variables\":[" X "],\"complete\":false,\"peak_bytes\":77}");
	await_fine(fx, told);
	assert_variables(fx, second->node, "[" X "]", "false");
	assert_variables(fx, first->node, "[" X "," A "]", "true");
	/* One commit without parents, whatever came before it. */
	assert_git(fx, HISTORY_A, "log --format=%s refs/coppice/state", "State\n");
	assert_git(fx, HISTORY_A, "log --format=%s main", "y = 1\nx = 1\nBegin\n");
	assert_sound(fx, HISTORY_A);
	hfix_reopen(fx);
	assert_variables(fx, first->node, "[" X "," A "]", "true");
	cJSON *node = ask_node(fx, second->node);
	assert_json(cJSON_GetObjectItem(node, "peak_memory_bytes"), "77");
	cJSON_Delete(node);
	hfix_free(fx);
}

TEST(learnt, a_difference_tells_of_both_nodes_variables)
{
	struct hfix *fx = hfix_new();
	struct history_question q = {.what = HISTORY_DIFF, .history = HISTORY_A};
	struct tape *first = record_cell(fx, "m1", "x = 1", NULL);
	struct tape *second = record_cell(fx, "m2", "x = a", NULL);
	await_fine(fx, first);
	await_fine(fx, second);
	q.node = first->node;
	q.to = second->node;
	cJSON *tree = ask_tree(fx, &q);
	assert_json(cJSON_GetObjectItem(tree, "variables"),
		"{\"added\":[],\"removed\":[],\"changed\":[],\"known\":false}");
	cJSON_Delete(tree);
	await_fine(fx, report(fx, "m1", "{\"variables\":[" X "," A "],\"complete\":true}"));
	await_fine(fx, report(fx, "m2", "{\"variables\":[" X2 "," B "],\"complete\":true}"));
	tree = ask_tree(fx, &q);
	assert_json(cJSON_GetObjectItem(tree, "variables"),
		"{\"added\":[" B "],\"removed\":[" A "],\"changed\":[{\"name\":\"x\",\"from\":" X
		",\"to\":" X2 "}],\"known\":true}");
	cJSON_Delete(tree);
	hfix_free(fx);
}

TEST(learnt, the_root_has_no_variables)
{
	struct hfix *fx = hfix_new();
	await_fine(fx, record_cell(fx, "m1", "1", NULL));
	assert_variables(fx, "HEAD~1", "[]", "true");
	hfix_free(fx);
}

TEST(learnt, of_a_run_that_is_not_there_nothing_is_kept)
{
	struct hfix *fx = hfix_new();
	await_fine(fx, record_cell(fx, "m1", "1", NULL));
	await_fine(fx, report(fx, "never", "{\"variables\":[],\"complete\":true}"));
	await_fine(fx, report(fx, "m1", NULL)); /* forgotten before it was recorded */
	assert_git(fx, HISTORY_A, "for-each-ref refs/coppice", "");
	hfix_free(fx);
}

/* In the order of the queue: the run that it is about was refused, so it waits with it. */
TEST(learnt, a_report_waits_for_its_run)
{
	struct hfix *fx = hfix_new();
	struct tape *cut = tape_new(fx, "m1", "1", FINE);
	tape_end(cut, "ok", 1, "");
	cut->fails_at = 1;
	hand_over(fx, cut);
	struct tape *told = report(fx, "m1", "{\"variables\":[" X "],\"complete\":true}");
	await(fx, cut);
	await(fx, told);
	assert_int_equal(told->status, E_UNAVAILABLE);
	cut->fails_at = 0;
	cut->closed = told->closed = 0;
	hand_over(fx, cut);
	hand_over(fx, told);
	await_fine(fx, cut);
	await_fine(fx, told);
	assert_variables(fx, cut->node, "[" X "]", "true");
	hfix_free(fx);
}

TEST(learnt, twice_the_same_is_once)
{
	struct hfix *fx = hfix_new();
	await_fine(fx, record_cell(fx, "m1", "1", NULL));
	await_fine(fx, report(fx, "m1", "{\"variables\":[" X "],\"complete\":true}"));
	char *before = git(fx, HISTORY_A, "rev-parse refs/coppice/state");
	await_fine(fx, report(fx, "m1", "{\"variables\":[" X "],\"complete\":true}"));
	assert_git(fx, HISTORY_A, "rev-parse refs/coppice/state", before);
	free(before);
	hfix_free(fx);
}

/* What the spine knows of a run is of the run, not of who hands it over. */
TEST(learnt, what_a_run_ran_in_and_waited_for)
{
	struct hfix *fx = hfix_new();
	struct tape *t = tape_new(fx, "m1", "1", FINE);
	tape_end(t, "ok", 1, ",\"environment\":\"sha256:of-the-run\",\"queue_position\":3");
	hand_over(fx, t);
	await_fine(fx, t);
	cJSON *node = ask_node(fx, t->node);
	assert_string_equal(text_at(node, "environment"), "sha256:of-the-run");
	assert_json(cJSON_GetObjectItem(node, "queue_position"), "3");
	assert_json(cJSON_GetObjectItem(node, "wait_ms"), "0.1");
	assert_json(cJSON_GetObjectItem(node, "peak_memory_bytes"), "null");
	cJSON_Delete(node);
	assert_git(fx, HISTORY_A,
		"log -1 '--format=%(trailers:key=Coppice-Environment,valueonly,separator=)'",
		"sha256:of-the-run\n");
	hfix_free(fx);
}

/* It comes with the end of a run: each of a burst has it, and none has to be looked at for it. */
TEST(learnt, the_peak_of_memory_is_there_without_a_report)
{
	struct hfix *fx = hfix_new();
	struct tape *t = tape_new(fx, "m1", "1", FINE);
	tape_end(t, "ok", 1, ",\"peak_memory_bytes\":73000000");
	hand_over(fx, t);
	await_fine(fx, t);
	for (int round = 0; round < 2; round++) {
		cJSON *node = ask_node(fx, t->node);
		assert_json(cJSON_GetObjectItem(node, "peak_memory_bytes"), "73000000");
		cJSON_Delete(node);
		await_fine(fx, report(fx, "m1", "{\"variables\":[],\"complete\":true}"));
	}
	/* Kernels of earlier images tell it in the pause. */
	await_fine(fx, report(fx, "m1", "{\"variables\":[],\"complete\":true,\"peak_bytes\":5}"));
	cJSON *node = ask_node(fx, t->node);
	assert_json(cJSON_GetObjectItem(node, "peak_memory_bytes"), "5");
	cJSON_Delete(node);
	hfix_free(fx);
}

/* ---- what a guest may say ---- */

struct saying {
	const char *report, *variables;
	bool complete;
};

static const struct saying sayings[] = {
	{"{}", "[]", false},
	{"[]", "[]", false},
	{"7", "[]", false},
	{"{\"variables\":[],\"complete\":true}", "[]", true},
	{"{\"variables\":[],\"complete\":1}", "[]", false},
	{"{\"variables\":{},\"complete\":true}", "[]", false},
	{"{\"variables\":[" X ",7,null,\"x\",[],{}],\"complete\":true}", "[" X "]", false},
	{"{\"variables\":[{\"name\":\"\",\"type\":\"int\"}],\"complete\":true}", "[]", false},
	{"{\"variables\":[{\"name\":\"x\",\"type\":7}],\"complete\":true}", "[]", false},
	{"{\"variables\":[{\"name\":\"x\\u0000\",\"type\":\"int\"}],\"complete\":true}", "[]",
		false},
	{"{\"variables\":[{\"name\":\"x\",\"type\":\"t\",\"shape\":[-1],\"bytes\":1.5}],"
	 "\"complete\":true}",
		"[{\"name\":\"x\",\"type\":\"t\",\"shape\":null,\"bytes\":null}]", true},
	{"{\"variables\":[{\"name\":\"x\",\"type\":\"t\",\"shape\":[1,2,3,4,5,6,7,8,9],"
	 "\"bytes\":99999999999999999999}],\"complete\":true}",
		"[{\"name\":\"x\",\"type\":\"t\",\"shape\":null,\"bytes\":null}]", true},
	{"{\"variables\":[{\"name\":\"\\u00e4\\\"\\\\\",\"type\":\"<b>\",\"more\":[[]],"
	 "\"shape\":\"7\"}],\"complete\":true,\"more\":{}}",
		"[{\"name\":\"ä\\\"\\\\\",\"type\":\"<b>\",\"shape\":null,\"bytes\":null}]", true},
};

TEST(learnt, what_a_guest_says_is_kept_in_bounds_and_in_kind)
{
	for (size_t i = 0; i < ARRAY_LEN(sayings); i++) {
		const struct saying *s = &sayings[i];
		AUTO(buf_done) struct buf json;
		buf_init(&json, LEARNT_MAX);
		const struct bytes raw = {(const uint8_t *)s->report, strlen(s->report)};
		assert_int_equal(learnt_clean(raw, &json, NULL), 0);
		cJSON *tree = cJSON_Parse((const char *)json.data);
		assert_non_null(tree);
		assert_json(cJSON_GetObjectItem(tree, "variables"), s->variables);
		assert_int_equal(cJSON_IsTrue(cJSON_GetObjectItem(tree, "complete")), s->complete);
		cJSON_Delete(tree);
	}
}

TEST(learnt, too_many_are_cut)
{
	AUTO(buf_done) struct buf text, json;
	buf_init(&text, 1u << 20);
	buf_init(&json, LEARNT_MAX);
	(void)buf_add_text(&text, "{\"complete\":true,\"variables\":[" X);
	for (unsigned i = 0; i < LEARNT_VARIABLES_MAX; i++)
		(void)buf_add_text(&text, "," X);
	(void)buf_add_text(&text, "]}");
	assert_int_equal(learnt_clean((struct bytes){text.data, text.len}, &json, NULL), 0);
	cJSON *tree = cJSON_Parse((const char *)json.data);
	assert_int_equal(
		cJSON_GetArraySize(cJSON_GetObjectItem(tree, "variables")), LEARNT_VARIABLES_MAX);
	assert_false(cJSON_IsTrue(cJSON_GetObjectItem(tree, "complete")));
	cJSON_Delete(tree);
}

/* ---- whatever fails ---- */

struct steps {
	unsigned n, at;
};

static int at_step(void *data, enum record_step step)
{
	struct steps *s = data;
	(void)step;
	return ++s->n == s->at ? -1 : 0;
}

static void again(struct hfix *fx, struct tape *t)
{
	while (t->status != 0) {
		t->closed = 0;
		hand_over(fx, t);
		await(fx, t);
	}
}

static bool live(struct steps *s)
{
	struct hfix *fx = hfix_make();
	fx->hook = (struct record_hook){at_step, s};
	hfix_open(fx);
	struct tape *run = record_cell(fx, "m1", "1", NULL);
	struct tape *told = report(fx, "m1", "{\"variables\":[" X "],\"complete\":true}");
	await(fx, run);
	await(fx, told);
	again(fx, run);
	again(fx, told);
	assert_variables(fx, run->node, "[" X "]", "true");
	assert_git(fx, HISTORY_A, "log --format=%s main", "1\nBegin\n");
	assert_sound(fx, HISTORY_A);
	hfix_free(fx);
	return s->n >= s->at;
}

TEST(learnt, whatever_step_fails_it_is_there_when_tried_again)
{
	unsigned nth = 1;
	for (;; nth++) {
		struct steps s = {.at = nth};
		if (!live(&s))
			break;
	}
	assert_true(nth > 6);
}

RUN(TEST_ROW(learnt, variables_of_a_node_are_there_beside_its_commit),
	TEST_ROW(learnt, a_difference_tells_of_both_nodes_variables),
	TEST_ROW(learnt, the_root_has_no_variables),
	TEST_ROW(learnt, of_a_run_that_is_not_there_nothing_is_kept),
	TEST_ROW(learnt, a_report_waits_for_its_run), TEST_ROW(learnt, twice_the_same_is_once),
	TEST_ROW(learnt, what_a_guest_says_is_kept_in_bounds_and_in_kind),
	TEST_ROW(learnt, what_a_run_ran_in_and_waited_for),
	TEST_ROW(learnt, the_peak_of_memory_is_there_without_a_report),
	TEST_ROW(learnt, too_many_are_cut),
	TEST_ROW(learnt, whatever_step_fails_it_is_there_when_tried_again))
