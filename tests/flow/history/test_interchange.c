#include "tests/lib/history_fixture.h"

#include <sched.h>
#include <sys/stat.h>

static const char notebook[] =
	"{\"nbformat\":4,\"nbformat_minor\":5,\"metadata\":{\"title\":\"t\"},\"cells\":["
	"{\"cell_type\":\"markdown\",\"id\":\"m\",\"metadata\":{},\"source\":\"# T\"},"
	"{\"cell_type\":\"code\",\"id\":\"a\",\"metadata\":{},\"source\":\"x = 1\","
	"\"execution_count\":3,\"outputs\":[{\"output_type\":\"stream\",\"name\":\"stdout\","
	"\"text\":\"o\"}]},"
	"{\"cell_type\":\"code\",\"id\":\"b\",\"metadata\":{},\"source\":\"1/0\","
	"\"execution_count\":4,\"outputs\":[{\"output_type\":\"error\",\"ename\":\"E\","
	"\"evalue\":\"v\",\"traceback\":[]}]}]}";

static struct history_question import_of(const char *owner, const char *file)
{
	return (struct history_question){.what = HISTORY_IMPORT,
		.owner = owner,
		.name = "walk",
		.file = {(const uint8_t *)file, strlen(file)}};
}

/* The id of what is made of it. */
static void import(struct hfix *fx, const char *file, char ret_id[64])
{
	struct history_question q = import_of("ada", file);
	cJSON *tree = ask_tree(fx, &q);
	(void)snprintf(ret_id, 64, "%s", text_at(tree, "id"));
	cJSON_Delete(tree);
}

/* Without the file's name. The caller frees. */
static char *export(struct hfix *fx, const char *history, const char *format)
{
	struct history_question q = {.what = HISTORY_EXPORT, .history = history, .format = format};
	if (ask(fx, &q) != 0)
		fail_msg("%s", fx->why);
	char *newline = strchr(fx->json, '\n');
	assert_non_null(newline);
	return strdup(newline + 1);
}

static unsigned count_repositories(struct hfix *fx)
{
	char command[256], text[64] = "";
	(void)snprintf(
		command, sizeof command, "ls -d '%s'/*.git* 2>/dev/null | wc -l", fx->folder);
	FILE *pipe = popen(command, "re");
	assert_non_null(pipe);
	assert_non_null(fgets(text, sizeof text, pipe));
	assert_int_equal(pclose(pipe), 0);
	return (unsigned)strtoul(text, NULL, 10);
}

TEST(interchange, an_import_is_a_history_of_its_owner)
{
	struct hfix *fx = hfix_new();
	struct history_question q = import_of("ada", notebook);
	cJSON *tree = ask_tree(fx, &q);
	const cJSON *nodes = cJSON_GetObjectItem(tree, "nodes");
	char id[64];
	(void)snprintf(id, sizeof id, "%s", text_at(tree, "id"));
	assert_string_equal(text_at(tree, "name"), "walk");
	assert_int_equal(cJSON_GetArraySize(nodes), 3);
	assert_string_equal(text_at(cJSON_GetArrayItem(nodes, 0), "status"), "error");
	assert_string_equal(text_at(cJSON_GetArrayItem(nodes, 1), "status"), "ok");
	cJSON_Delete(tree);
	assert_sound(fx, id);
	assert_git(fx, id, "log --format=%s main", "1/0\nx = 1\nBegin\n");
	assert_git(fx, id, "show main:runs/00/00/01/code.py", "x = 1");
	q = (struct history_question){.what = HISTORY_ONE, .history = id, .owner = "bob"};
	assert_int_equal(ask(fx, &q), E_NOT_FOUND);
	hfix_free(fx);
}

TEST(interchange, it_is_there_after_a_restart_and_a_new_index)
{
	struct hfix *fx = hfix_new();
	char id[64], path[128];
	import(fx, notebook, id);
	char *before = export(fx, id, "ipynb");
	hfix_reopen(fx);
	char *after = export(fx, id, "ipynb");
	assert_string_equal(after, before);
	free(after);
	hfix_close(fx);
	(void)snprintf(path, sizeof path, "%s/index.sqlite", fx->folder);
	assert_int_equal(unlink(path), 0);
	hfix_open(fx);
	after = export(fx, id, "ipynb");
	assert_string_equal(after, before);
	free(after);
	free(before);
	hfix_free(fx);
}

TEST(interchange, a_cell_can_be_run_on_its_tip_s_history)
{
	struct hfix *fx = hfix_new();
	char id[64];
	import(fx, notebook, id);
	struct tape *t = tape_new(fx, "m1", "y = 2", "");
	tape_end(t, "ok", 1, "");
	assert_int_equal(hand_over_to(fx, t, id, "k1", 1), 0);
	await_fine(fx, t);
	assert_string_equal(t->branch, "main.2"); /* a new process begins at the root */
	assert_sound(fx, id);
	hfix_free(fx);
}

TEST(interchange, what_is_refused_leaves_nothing)
{
	static const char *const wrong[] = {
		"", "{}", "{\"nbformat\":4,\"cells\":[]}", "a = '\xe4'"};
	struct hfix *fx = hfix_new();
	for (size_t i = 0; i < ARRAY_LEN(wrong); i++) {
		struct history_question q = import_of("ada", wrong[i]);
		assert_int_equal(ask(fx, &q), E_INVALID);
		assert_true(fx->why[0] != '\0');
	}
	assert_int_equal(count_repositories(fx), 0);
	hfix_free(fx);
}

TEST(interchange, what_a_kill_left_of_one_is_removed)
{
	struct hfix *fx = hfix_new();
	char command[512];
	hfix_close(fx);
	(void)snprintf(command, sizeof command,
		"mkdir -p '%s/%s.git.new/objects/ab' '%s/%s.git.new.new/refs'", fx->folder,
		HISTORY_A, fx->folder, HISTORY_B);
	shell(command);
	assert_int_equal(count_repositories(fx), 2);
	hfix_open(fx);
	assert_int_equal(count_repositories(fx), 0);
	hfix_free(fx);
}

/* ---- the disk ---- */

static void mount_small(struct hfix *fx)
{
	char command[256];
	(void)snprintf(command, sizeof command, "mount -t tmpfs -o size=600k,mode=700 none '%s'",
		fx->folder);
	if (system(command) != 0)
		fail_msg("a small disk cannot be made; is this root?");
}

TEST(interchange, a_full_disk_is_told_and_leaves_nothing)
{
	struct hfix *fx = hfix_make();
	AUTO(buf_done) struct buf file;
	char command[256], id[64];
	mount_small(fx);
	hfix_open(fx);
	buf_init(&file, 1 << 24);
	for (unsigned i = 0; i < 400; i++)
		(void)buf_addf(&file, "# %%%%\nx = %u\n", i);
	struct history_question q = import_of("ada", (const char *)file.data);
	assert_int_equal(ask(fx, &q), E_IO);
	assert_int_equal(count_repositories(fx), 0);
	import(fx, "# %%\nx", id);
	assert_sound(fx, id);
	hfix_close(fx);
	(void)snprintf(command, sizeof command, "umount '%s'", fx->folder);
	shell(command);
	hfix_open(fx);
	hfix_free(fx);
}

/* ---- the end ---- */

static void count_answer(void *data, int status, struct bytes json, const struct err *err)
{
	(void)json;
	assert_int_equal(status == 0, err == NULL);
	++*(unsigned *)data;
}

TEST(interchange, each_import_is_answered_once_at_the_close_too)
{
	for (unsigned turns = 0; turns < 4; turns++) {
		struct hfix *fx = hfix_new();
		unsigned answers = 0;
		for (unsigned i = 0; i < 20; i++) {
			struct history_question q = import_of("ada", notebook);
			history_ask(fx->h, &q, count_answer, &answers);
			if (i % 5 == 0)
				(void)record_cell(fx, i ? "m1" : "m0", "x", NULL);
		}
		for (unsigned k = 0; k < turns; k++)
			(void)uv_run(&fx->loop, UV_RUN_NOWAIT);
		hfix_close(fx);
		assert_int_equal(answers, 20);
		hfix_open(fx); /* whatever was not answered with its history is there now */
		struct history_question q = {.what = HISTORY_LIST, .owner = "ada"};
		cJSON *tree = ask_tree(fx, &q);
		assert_int_equal(cJSON_GetArraySize(cJSON_GetObjectItem(tree, "histories")), 21);
		cJSON_Delete(tree);
		hfix_free(fx);
	}
}

/* ---- beside others ---- */

static void script_of(struct buf *file, unsigned cells)
{
	buf_init(file, 1 << 24);
	for (unsigned i = 0; i < cells; i++)
		(void)buf_addf(file, "# %%%%\nx = %u\n", i);
}

/* Who was answered, in order. */
struct answers {
	char order[16];
	size_t n;
};

struct asked {
	struct answers *all;
	char letter;
	int status;
	char id[64];
};

static void on_asked(void *data, int status, struct bytes json, const struct err *err)
{
	struct asked *a = data;
	assert_int_equal(status == 0, err == NULL);
	a->status = status;
	a->all->order[a->all->n++] = a->letter;
	cJSON *tree = status == 0 ? cJSON_ParseWithLength((const char *)json.data, json.len) : NULL;
	(void)snprintf(a->id, sizeof a->id, "%s", text_at(tree, "id"));
	cJSON_Delete(tree);
}

/* The bulk lane is one thread: whoever asks while a large file is written is not to wait for all of
 * it, and the file is not to wait for ever either. */
TEST(interchange, a_question_is_answered_while_an_import_is_written)
{
	struct hfix *fx = hfix_new();
	AUTO(buf_done) struct buf file;
	struct answers all = {0};
	struct asked import = {&all, 'i', -1, ""}, second = {&all, 'j', -1, ""},
		     list = {&all, 'l', -1, ""};
	script_of(&file, 3000);
	struct history_question q = import_of("ada", (const char *)file.data);
	struct history_question other = import_of("ada", "# %%\nx");
	const struct history_question what = {.what = HISTORY_LIST, .owner = "ada"};
	history_ask(fx->h, &q, on_asked, &import);
	history_ask(fx->h, &other, on_asked, &second);
	history_ask(fx->h, &what, on_asked, &list);
	while (all.n < 3)
		(void)uv_run(&fx->loop, UV_RUN_ONCE);
	assert_int_equal(all.order[0], 'l');
	assert_int_equal(import.status | second.status | list.status, 0);
	assert_git(fx, import.id, "rev-list --count main", "3001\n");
	assert_sound(fx, import.id);
	hfix_free(fx);
}

struct gate {
	unsigned adopts; /* slices so far */
	unsigned fails_at;
	bool open;
};

/* The recorder's thread waits before the second slice until the test says so. */
static int at_gate(void *data, enum record_step step)
{
	struct gate *g = data;
	if (step != STEP_ADOPT)
		return 0;
	unsigned n = __atomic_add_fetch(&g->adopts, 1, __ATOMIC_ACQ_REL); /* read by the loop */
	while (n == 2 && !__atomic_load_n(&g->open, __ATOMIC_ACQUIRE))
		(void)sched_yield();
	return n == g->fails_at ? -1 : 0;
}

static unsigned adopts(struct gate *g)
{
	return __atomic_load_n(&g->adopts, __ATOMIC_ACQUIRE);
}

TEST(interchange, cells_are_recorded_while_an_import_is_listed)
{
	struct hfix *fx = hfix_make();
	AUTO(buf_done) struct buf file;
	struct gate gate = {0};
	struct answers all = {0};
	struct asked import = {&all, 'i', -1, ""};
	fx->hook = (struct record_hook){at_gate, &gate};
	hfix_open(fx);
	script_of(&file, 2000);
	struct history_question q = import_of("ada", (const char *)file.data);
	history_ask(fx->h, &q, on_asked, &import);
	while (adopts(&gate) < 2)
		(void)uv_run(&fx->loop, UV_RUN_NOWAIT);
	/* Nobody finds half a history. */
	const struct history_question list = {.what = HISTORY_LIST};
	cJSON *tree = ask_tree(fx, &list);
	assert_int_equal(cJSON_GetArraySize(cJSON_GetObjectItem(tree, "histories")), 0);
	cJSON_Delete(tree);
	struct tape *t = record_cell(fx, "m1", "y = 1", NULL);
	__atomic_store_n(&gate.open, true, __ATOMIC_RELEASE);
	await_fine(fx, t);
	assert_int_equal(all.n, 0);
	while (all.n < 1)
		(void)uv_run(&fx->loop, UV_RUN_ONCE);
	assert_int_equal(import.status, 0);
	assert_true(adopts(&gate) > 4);
	tree = ask_tree(fx, &list);
	const cJSON *rows = cJSON_GetObjectItem(tree, "histories");
	assert_int_equal(cJSON_GetArraySize(rows), 2);
	for (int i = 0; i < 2; i++)
		if (strcmp(text_at(cJSON_GetArrayItem(rows, i), "id"), import.id) == 0)
			assert_int_equal(cJSON_GetNumberValue(cJSON_GetObjectItem(
						 cJSON_GetArrayItem(rows, i), "node_count")),
				2001);
	cJSON_Delete(tree);
	hfix_free(fx);
}

/* What of it is in the index is made anew: by this process, or by the next one. */
static void cut_off(bool at_once)
{
	struct hfix *fx = hfix_make();
	AUTO(buf_done) struct buf file;
	struct gate gate = {.open = true, .fails_at = 2};
	fx->hook = (struct record_hook){at_gate, &gate};
	hfix_open(fx);
	script_of(&file, 1000);
	struct history_question q = import_of("ada", (const char *)file.data);
	assert_int_equal(ask(fx, &q), E_IO);
	assert_non_null(strstr(fx->why, "is written and cannot be listed yet"));
	if (at_once)
		hfix_reopen(fx);
	const struct history_question list = {.what = HISTORY_LIST};
	for (int n = 0; n == 0;) {
		cJSON *tree = ask_tree(fx, &list);
		const cJSON *rows = cJSON_GetObjectItem(tree, "histories");
		n = cJSON_GetArraySize(rows);
		if (n == 1)
			assert_int_equal(cJSON_GetNumberValue(cJSON_GetObjectItem(
						 cJSON_GetArrayItem(rows, 0), "node_count")),
				1001);
		cJSON_Delete(tree);
	}
	hfix_free(fx);
}

TEST(interchange, one_whose_listing_was_cut_off_is_listed_whole)
{
	cut_off(true);
	cut_off(false);
}

/* ---- size ---- */

TEST(interchange, three_thousand_cells_go_both_ways)
{
	struct hfix *fx = hfix_new();
	AUTO(buf_done) struct buf file;
	char id[64];
	buf_init(&file, 1 << 24);
	for (unsigned i = 0; i < 3000; i++)
		(void)buf_addf(&file, "# %%%%\nx = %u\n", i);
	import(fx, (const char *)file.data, id);
	char *first = export(fx, id, "ipynb");
	import(fx, first, id);
	char *second = export(fx, id, "ipynb");
	assert_string_equal(second, first);
	assert_git(fx, id, "rev-list --count main", "3001\n");
	free(first);
	free(second);
	hfix_free(fx);
}

RUN(TEST_ROW(interchange, an_import_is_a_history_of_its_owner),
	TEST_ROW(interchange, it_is_there_after_a_restart_and_a_new_index),
	TEST_ROW(interchange, a_cell_can_be_run_on_its_tip_s_history),
	TEST_ROW(interchange, what_is_refused_leaves_nothing),
	TEST_ROW(interchange, what_a_kill_left_of_one_is_removed),
	TEST_ROW(interchange, a_full_disk_is_told_and_leaves_nothing),
	TEST_ROW(interchange, each_import_is_answered_once_at_the_close_too),
	TEST_ROW(interchange, a_question_is_answered_while_an_import_is_written),
	TEST_ROW(interchange, cells_are_recorded_while_an_import_is_listed),
	TEST_ROW(interchange, one_whose_listing_was_cut_off_is_listed_whole),
	TEST_ROW(interchange, three_thousand_cells_go_both_ways))
