/* Working files in history: what a Change makes of a node, and what stock git says to it. */
#include <time.h>

#include "history/files_tree.h"
#include "tests/lib/files_fixture.h"

static const char hello[] = "ce013625030ba8dba906f756967f9e9ca394464a"; /* "hello\n" */

#define HELLO "\"bytes\":6,\"blob\":\"ce013625030ba8dba906f756967f9e9ca394464a\""
#define PLAIN "\"mode\":\"100644\","

static struct hfix *open_with_hello(void)
{
	struct hfix *fx = hfix_new();
	char name[HISTORY_NODE_SIZE];
	assert_string_equal(keep_blob(fx, "hello\n", name), hello);
	return fx;
}

static void assert_paths(struct hfix *fx, const char *node, const char *expected)
{
	char command[128];
	(void)snprintf(command, sizeof command, "ls-tree -r --name-only %s files/", node);
	assert_git(fx, HISTORY_A, command, expected);
}

static double number_at(const cJSON *object, const char *key)
{
	return cJSON_GetNumberValue(cJSON_GetObjectItem(object, key));
}

/* {change, path} of one of a node's files. */
static void assert_file(cJSON *files, int i, const char *change, const char *path)
{
	cJSON *file = cJSON_GetArrayItem(files, i);
	assert_string_equal(text_at(file, "change"), change);
	assert_string_equal(text_at(file, "path"), path);
}

TEST(files, a_run_has_the_files_that_it_left)
{
	struct hfix *fx = open_with_hello();
	struct tape *a = run_with(fx, "m1",
		"{\"full\":true,\"changed\":[{\"path\":\"a.csv\"," PLAIN HELLO "},"
		"{\"path\":\"bin/run\",\"mode\":\"100755\"," HELLO "},"
		"{\"path\":\"empty/in\",\"mode\":\"40000\"}],\"removed\":[],\"lost\":[]}");
	struct tape *b = run_with(
		fx, "m2", "{\"full\":false,\"changed\":[],\"removed\":[\"a.csv\"],\"lost\":[]}");
	struct tape *c = run_with(fx, "m3", "{\"full\":false}");
	struct tape *d = record_cell(fx, "m4", "1", NULL); /* nothing was told */
	await_fine(fx, d);
	assert_sound(fx, HISTORY_A);
	assert_paths(fx, a->node, "files/a.csv\nfiles/bin/run\nfiles/empty/in/.coppice-folder\n");
	assert_paths(fx, b->node, "files/bin/run\nfiles/empty/in/.coppice-folder\n");
	assert_paths(fx, d->node, "files/bin/run\nfiles/empty/in/.coppice-folder\n");
	cJSON *node = ask_node(fx, a->node), *files = cJSON_GetObjectItem(node, "files");
	assert_int_equal(cJSON_GetArraySize(files), 3);
	assert_file(files, 0, "created", "a.csv");
	assert_file(files, 2, "created", "empty/in");
	assert_string_equal(text_at(cJSON_GetArrayItem(files, 0), "digest"), hello);
	assert_int_equal(number_at(cJSON_GetArrayItem(files, 0), "bytes"), 6);
	assert_int_equal(number_at(cJSON_GetObjectItem(node, "counts"), "files"), 3);
	cJSON_Delete(node);
	node = ask_node(fx, b->node);
	files = cJSON_GetObjectItem(node, "files");
	assert_int_equal(cJSON_GetArraySize(files), 1);
	assert_file(files, 0, "deleted", "a.csv");
	cJSON_Delete(node);
	node = ask_node(fx, d->node);
	assert_int_equal(cJSON_GetArraySize(cJSON_GetObjectItem(node, "files")), 0);
	cJSON_Delete(node);
	cJSON *whole = ask_files(fx, c->node);
	assert_true(cJSON_IsTrue(cJSON_GetObjectItem(whole, "recorded")));
	assert_int_equal(entries(whole), 2);
	assert_string_equal(text_at(entry_of(whole, "bin/run"), "mode"), "100755");
	assert_string_equal(text_at(entry_of(whole, "bin/run"), "blob"), hello);
	assert_string_equal(text_at(entry_of(whole, "empty/in"), "mode"), "40000");
	assert_null(cJSON_GetObjectItem(entry_of(whole, "empty/in"), "blob"));
	cJSON_Delete(whole);
	hfix_free(fx);
}

TEST(files, a_folder_that_is_empty_is_not_one_that_is_not_known)
{
	struct hfix *fx = open_with_hello();
	struct tape *a = record_cell(fx, "m1", "1", NULL);
	await_fine(fx, a);
	struct tape *b = run_with(fx, "m2", "{\"full\":true}");
	struct tape *c = run_with(fx, "m3", "{\"changed\":[{\"path\":\"x\"," PLAIN HELLO "}]}");
	cJSON *whole = ask_files(fx, a->node);
	assert_true(cJSON_IsFalse(cJSON_GetObjectItem(whole, "recorded")));
	cJSON_Delete(whole);
	whole = ask_files(fx, b->node);
	assert_true(cJSON_IsTrue(cJSON_GetObjectItem(whole, "recorded")));
	assert_int_equal(entries(whole), 0);
	cJSON_Delete(whole);
	assert_paths(fx, c->node, "files/x\n");
	cJSON *node = ask_node(fx, c->node);
	assert_int_equal(cJSON_GetArraySize(cJSON_GetObjectItem(node, "files")), 1);
	cJSON_Delete(node);
	assert_sound(fx, HISTORY_A);
	hfix_free(fx);
}

TEST(files, files_become_folders_and_folders_files)
{
	struct hfix *fx = open_with_hello();
	(void)run_with(fx, "m1",
		"{\"full\":true,\"changed\":[{\"path\":\"x\"," PLAIN HELLO "},"
		"{\"path\":\"d/a\"," PLAIN HELLO "},{\"path\":\"d/b\"," PLAIN HELLO "},"
		"{\"path\":\"e\",\"mode\":\"40000\"}]}");
	struct tape *a = run_with(fx, "m2",
		"{\"changed\":[{\"path\":\"x/in\"," PLAIN HELLO "},{\"path\":\"d\"," PLAIN HELLO
		"},{\"path\":\"e/f\"," PLAIN HELLO "}],\"removed\":[\"x\",\"d/a\",\"d/b\",\"e\"]}");
	assert_paths(fx, a->node, "files/d\nfiles/e/f\nfiles/x/in\n");
	/* One that is emptied, and stays; one that goes with what was in it. */
	struct tape *b = run_with(fx, "m3",
		"{\"changed\":[{\"path\":\"e\",\"mode\":\"40000\"}],\"removed\":[\"x/in\",\"e/"
		"f\"]}");
	assert_paths(fx, b->node, "files/d\nfiles/e/.coppice-folder\n");
	/* Without the removals that ought to be there. */
	struct tape *c = run_with(fx, "m4",
		"{\"changed\":[{\"path\":\"d/deep/er\"," PLAIN HELLO
		"},{\"path\":\"e\"," PLAIN HELLO "}]}");
	assert_paths(fx, c->node, "files/d/deep/er\nfiles/e\n");
	struct tape *d = run_with(fx, "m5",
		"{\"full\":true,\"changed\":[{\"path\":\"z\"," PLAIN HELLO
		"}],\"removed\":[\"nowhere/at/all\"]}");
	assert_paths(fx, d->node, "files/z\n");
	assert_sound(fx, HISTORY_A);
	hfix_free(fx);
}

/* What git takes for `.git` somewhere, what steers git, what is two things at once: git's own check
 * has nothing to say, and what could not be kept is told. */
TEST(files, hostile_names_make_a_tree_that_git_takes)
{
	static const char *const bad[] = {".git", ".GIT", "a/.Git/config", "git~1", "GIT~1",
		".git ", ".git.", ".git...", ".g\\u200cit", "a/.gi\\ufefft/x",
		".git::$INDEX_ALLOCATION", "..", "a/../../b", "/etc/passwd", "a//b", ".", "",
		"nul\\u0000", ".coppice-folder"};
	static const char *const good[] = {".gitmodules", "sub/.GITMODULES", ".gitattributes",
		"gitmod~1", ".gitignore", "x%2F", "-rf", "\\\"q\\\"", "back\\\\slash", "CON",
		"\\u2028", ".gitm\\u200codules", "..."};
	struct hfix *fx = open_with_hello();
	AUTO(buf_done) struct buf change;
	buf_init(&change, 1u << 20);
	(void)buf_add_text(&change, "{\"full\":true,\"changed\":[");
	for (size_t i = 0; i < ARRAY_LEN(bad) + ARRAY_LEN(good); i++)
		(void)buf_addf(&change, "%s{\"path\":\"%s\"," PLAIN HELLO "}", i ? "," : "",
			i < ARRAY_LEN(bad) ? bad[i] : good[i - ARRAY_LEN(bad)]);
	(void)buf_add_text(&change,
		",{\"path\":\"f\"," PLAIN HELLO "},{\"path\":\"f/g\"," PLAIN HELLO
		"},{\"path\":\"t\"," PLAIN HELLO "},{\"path\":\"t\"," PLAIN HELLO
		"},{\"path\":\"u\",\"mode\":\"40000\"},{\"path\":\"u\"," PLAIN HELLO
		"},{\"path\":\".mailmap\",\"mode\":\"120000\"," HELLO
		"},{\"path\":\"link\",\"mode\":\"120000\"," HELLO "}]}");
	struct tape *t = run_with(fx, "m1", (const char *)change.data);
	assert_sound(fx, HISTORY_A);
	cJSON *whole = ask_files(fx, t->node);
	/* f, t, u and the two links. */
	assert_int_equal(entries(whole), (int)ARRAY_LEN(good) + 5);
	assert_non_null(entry_of(whole, "%2Egitmodules"));
	assert_non_null(entry_of(whole, "sub/%2EGITMODULES"));
	assert_non_null(entry_of(whole, "%67itmod~1"));
	assert_non_null(entry_of(whole, "x%2F"));
	assert_non_null(entry_of(whole, "..."));
	assert_string_equal(text_at(entry_of(whole, "link"), "mode"), "120000");
	assert_string_equal(text_at(entry_of(whole, "f"), "blob"), hello);
	cJSON *lost = cJSON_GetObjectItem(whole, "lost");
	assert_int_equal(cJSON_GetArraySize(lost), (int)ARRAY_LEN(bad) + 3);
	cJSON_Delete(whole);
	/* And a person who clones it gets it. */
	char line[512];
	(void)snprintf(line, sizeof line,
		"cd '%s' && git clone -q " HISTORY_A ".git clone && test -e clone/files/f"
		" && git -C clone status --porcelain | wc -l | grep -qx 0 && rm -rf clone",
		fx->folder);
	shell(line);
	hfix_free(fx);
}

TEST(files, a_removal_by_a_name_that_is_kept_otherwise)
{
	struct hfix *fx = open_with_hello();
	(void)run_with(fx, "m1",
		"{\"changed\":[{\"path\":\"a/.gitattributes\"," PLAIN HELLO
		"},{\"path\":\"b\"," PLAIN HELLO "}]}");
	struct tape *t =
		run_with(fx, "m2", "{\"removed\":[\"a/.gitattributes\",\"../b\",\".git\"]}");
	assert_paths(fx, t->node, "files/b\n");
	assert_sound(fx, HISTORY_A);
	hfix_free(fx);
}

TEST(files, a_content_that_did_not_come_is_lost_and_the_record_is_not)
{
	struct hfix *fx = open_with_hello();
	struct tape *a = run_with(fx, "m1",
		"{\"changed\":[{\"path\":\"here\"," PLAIN HELLO "},"
		"{\"path\":\"not\"," PLAIN
		"\"bytes\":3,\"blob\":\"1111111111111111111111111111111111111111\"},"
		"{\"path\":\"big\",\"mode\":\"100755\",\"bytes\":1048577,\"chunks\":["
		"\"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa\","
		"\"bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb\"]},"
		"{\"path\":\"huge\"," PLAIN
		"\"bytes\":99999999,\"lost\":\"not kept: over the budget of 256 MiB\"}],"
		"\"lost\":[{\"path\":\"sock\",\"reason\":\"a socket\"}]}");
	struct tape *b = run_with(fx, "m2", "{}");
	assert_sound(fx, HISTORY_A);
	for (int i = 0; i < 2; i++) { /* later nodes know it, too */
		cJSON *whole = ask_files(fx, i ? b->node : a->node);
		assert_int_equal(entries(whole), 4);
		assert_null(cJSON_GetObjectItem(entry_of(whole, "here"), "lost"));
		assert_string_equal(text_at(entry_of(whole, "not"), "lost"),
			"not kept: its content did not come");
		assert_string_equal(text_at(entry_of(whole, "big"), "mode"), "100755");
		assert_int_equal(number_at(entry_of(whole, "big"), "bytes"), 1048577);
		assert_string_equal(text_at(entry_of(whole, "huge"), "lost"),
			"not kept: over the budget of 256 MiB");
		assert_null(cJSON_GetObjectItem(entry_of(whole, "huge"), "blob"));
		assert_int_equal(cJSON_GetArraySize(cJSON_GetObjectItem(whole, "lost")), i ? 0 : 1);
		cJSON_Delete(whole);
	}
	/* Names of objects that are no files. */
	char change[256];
	(void)snprintf(change, sizeof change,
		"{\"changed\":[{\"path\":\"commit\"," PLAIN "\"bytes\":1,\"blob\":\"%s\"}]}",
		a->node);
	struct tape *c = run_with(fx, "m3", change);
	cJSON *whole = ask_files(fx, c->node);
	assert_non_null(cJSON_GetObjectItem(entry_of(whole, "commit"), "lost"));
	cJSON_Delete(whole);
	assert_sound(fx, HISTORY_A);
	hfix_free(fx);
}

TEST(files, what_is_no_change_leaves_the_files_of_the_parent)
{
	struct hfix *fx = open_with_hello();
	(void)run_with(fx, "m1", "{\"changed\":[{\"path\":\"a\"," PLAIN HELLO "}]}");
	struct tape *a = run_with(fx, "m2", "{\"changed\":{}}");
	assert_paths(fx, a->node, "files/a\n");
	cJSON *node = ask_node(fx, a->node);
	assert_non_null(strstr(text_at(node, "files_reason"), "no change"));
	cJSON_Delete(node);
	struct tape *b = tape_new(fx, "m3", "x = 1", "");
	tape_end_with(b, "\"files_reason\":\"not told in time\"");
	hand_over(fx, b);
	await_fine(fx, b);
	node = ask_node(fx, b->node);
	assert_string_equal(text_at(node, "files_reason"), "not told in time");
	cJSON_Delete(node);
	assert_paths(fx, b->node, "files/a\n");
	hfix_free(fx);
}

/* ---- contents ---- */

TEST(files, contents_are_kept_under_their_own_names_alone)
{
	struct hfix *fx = hfix_new();
	struct told_content t;
	char name[65], blob[HISTORY_NODE_SIZE];
	AUTO(buf_done) struct buf big;
	buf_init(&big, 2 * HISTORY_CONTENT_MAX);
	assert_true(is_lacking(fx, hello)); /* there is no history at all */
	assert_int_equal(keep_named(fx, &files_whose, hello, text_bytes("hullo\n"), &t), E_INVALID);
	assert_int_equal(keep_named(fx, &files_whose, "../../x", text_bytes("x"), &t), E_INVALID);
	assert_true(is_lacking(fx, hello));
	(void)keep_blob(fx, "hello\n", blob);
	assert_false(is_lacking(fx, hello));
	(void)keep_blob(fx, "", blob);
	assert_false(is_lacking(fx, blob));
	(void)chunk_name(text_bytes("hello\n"), name);
	assert_true(is_lacking(fx, name));
	assert_int_equal(keep_named(fx, &files_whose, name, text_bytes("hullo\n"), &t), E_INVALID);
	keep_as(fx, &files_whose, name, text_bytes("hello\n"));
	keep_as(fx, &files_whose, name, text_bytes("hello\n")); /* once more does no harm */
	assert_false(is_lacking(fx, name));
	/* A file that could be taken for one of ours. */
	AUTO(buf_done) struct buf pointer;
	buf_init(&pointer, POINTER_MAX);
	pointer_add(&pointer, 6, name, 1);
	(void)buf_add(&pointer, "", 1);
	assert_true(repo_blob_name(text_bytes((const char *)pointer.data), blob));
	assert_int_equal(
		keep_named(fx, &files_whose, blob, text_bytes((const char *)pointer.data), &t),
		E_INVALID);
	assert_true(is_lacking(fx, blob));
	while (big.len <= HISTORY_CONTENT_MAX)
		(void)buf_add(&big, "0123456789abcdef", 16);
	assert_int_equal(keep_named(fx, &files_whose, name, (struct bytes){big.data, big.len}, &t),
		E_TOO_BIG);
	const char *const both[] = {hello, name};
	for (int i = 0; i < 2; i++) {
		t = (struct told_content){.told = false};
		history_content(fx->h, &files_whose, both[i], told_read, &t);
		await_content(fx, &t);
		assert_int_equal(t.status, 0);
		assert_int_equal(t.bytes.len, 6);
		assert_memory_equal(t.bytes.data, "hello\n", 6);
		buf_done(&t.bytes);
	}
	t = (struct told_content){.told = false};
	history_content(fx->h, &files_whose, blob, told_read, &t);
	await_content(fx, &t);
	assert_int_equal(t.status, E_NOT_FOUND);
	buf_done(&t.bytes);
	hfix_free(fx);
}

/* The same text as code, which lies in the repository without anybody having looked at it. */
TEST(files, code_that_looks_like_a_pointer_is_no_file)
{
	struct hfix *fx = open_with_hello();
	AUTO(buf_done) struct buf pointer;
	char blob[HISTORY_NODE_SIZE], name[65];
	buf_init(&pointer, POINTER_MAX);
	pointer_add(&pointer, 6, chunk_name(text_bytes("hello\n"), name), 1);
	(void)buf_add(&pointer, "", 1);
	struct tape *t = record_cell(fx, "m1", (const char *)pointer.data, NULL);
	await_fine(fx, t);
	assert_true(repo_blob_name(text_bytes((const char *)pointer.data), blob));
	assert_true(is_lacking(fx, blob));
	hfix_free(fx);
}

TEST(files, large_files_are_pointers_to_chunks)
{
	struct hfix *fx = hfix_new();
	AUTO(buf_done) struct buf first, change;
	char a[65], b[65];
	buf_init(&first, CHUNK_BYTES);
	buf_init(&change, 1 << 16);
	for (uint32_t i = 0; first.len < CHUNK_BYTES; i++)
		(void)buf_add(&first, &i, 4);
	struct bytes bytes = {first.data, first.len};
	keep_as(fx, &files_whose, chunk_name(bytes, a), bytes);
	keep_as(fx, &files_whose, chunk_name(text_bytes("rest"), b), text_bytes("rest"));
	(void)buf_addf(&change,
		"{\"full\":true,\"changed\":[{\"path\":\"big.bin\",\"mode\":\"100755\","
		"\"bytes\":%u,\"chunks\":[\"%s\",\"%s\"]}]}",
		CHUNK_BYTES + 4, a, b);
	struct tape *t = run_with(fx, "m1", (const char *)change.data);
	char expected[512];
	(void)snprintf(
		expected, sizeof expected, "coppice-file 1\n%u\n%s\n%s\n", CHUNK_BYTES + 4, a, b);
	assert_git(fx, HISTORY_A, "show main:files/big.bin", expected);
	assert_git(
		fx, HISTORY_A, "ls-tree --format='%(objectmode)' main files/big.bin", "100755\n");
	cJSON *whole = ask_files(fx, t->node);
	cJSON *e = entry_of(whole, "big.bin"), *chunks = cJSON_GetObjectItem(e, "chunks");
	assert_int_equal(number_at(e, "bytes"), CHUNK_BYTES + 4);
	assert_int_equal(cJSON_GetArraySize(chunks), 2);
	assert_string_equal(cJSON_GetStringValue(cJSON_GetArrayItem(chunks, 1)), b);
	assert_string_equal(text_at(e, "mode"), "100755");
	cJSON_Delete(whole);
	cJSON *node = ask_node(fx, t->node);
	assert_int_equal(
		number_at(cJSON_GetArrayItem(cJSON_GetObjectItem(node, "files"), 0), "bytes"),
		CHUNK_BYTES + 4);
	cJSON_Delete(node);
	assert_sound(fx, HISTORY_A);
	hfix_free(fx);
}

/* A run that is wanted in a history that is not there yet finds its contents. */
TEST(files, contents_come_before_a_history_that_is_named)
{
	struct hfix *fx = open_with_hello();
	const struct history_whose named = {HISTORY_A, "elsewhere", "ada"};
	(void)run_with(fx, "m1", "{\"changed\":[{\"path\":\"a\"," PLAIN HELLO "}]}");
	keep_as(fx, &named, hello, text_bytes("hello\n"));
	struct tape *t = files_tape(
		fx, "m2", "{\"full\":true,\"changed\":[{\"path\":\"b\"," PLAIN HELLO "}]}");
	struct history_run run = {.history_id = HISTORY_A,
		.name = "walk",
		.wanted = "elsewhere",
		.owner = "ada",
		.kernel_id = "k1",
		.kernelspec = "python3",
		.epoch = 1,
		.source = {tape_next, tape_close, t},
		.data = t};
	assert_int_equal(history_record(fx->h, &run, NULL), 0);
	await_fine(fx, t);
	assert_string_not_equal(t->history, HISTORY_A);
	struct history_question q = {
		.what = HISTORY_FILES, .history = "elsewhere", .node = t->node};
	cJSON *whole = ask_tree(fx, &q);
	assert_string_equal(text_at(entry_of(whole, "b"), "blob"), hello);
	cJSON_Delete(whole);
	hfix_free(fx);
}

/* ---- a change while no cell ran ---- */

TEST(files, a_change_while_nothing_ran_is_a_node)
{
	struct hfix *fx = open_with_hello();
	struct tape *a = run_with(fx, "m1", "{\"full\":true}");
	struct tape *f = files_alone(fx, "scan-1",
		"{\"changed\":[{\"path\":\"a.csv\"," PLAIN HELLO
		"},{\"path\":\"b.csv\"," PLAIN HELLO "}]}");
	assert_string_equal(f->branch, "main");
	assert_true(f->state_version > a->state_version);
	/* Handed over twice it is one. */
	struct tape again = *f;
	again.told = again.closed = 0;
	hand_over(fx, &again);
	await_fine(fx, &again);
	assert_string_equal(again.node, f->node);
	struct tape *b = run_with(fx, "m2", "{}");
	for (int i = 0; i < 2; i++) { /* then by an index that was made anew */
		cJSON *node = ask_node(fx, f->node);
		assert_string_equal(text_at(node, "kind"), "files");
		assert_string_equal(text_at(node, "parent"), a->node);
		assert_string_equal(text_at(node, "summary"), "files: a.csv, b.csv");
		assert_string_equal(text_at(node, "code"), "");
		assert_true(cJSON_IsNull(cJSON_GetObjectItem(node, "msg_id")));
		assert_true(cJSON_IsNull(cJSON_GetObjectItem(node, "execution_count")));
		assert_int_equal(number_at(cJSON_GetObjectItem(node, "counts"), "files"), 2);
		assert_int_equal(cJSON_GetArraySize(cJSON_GetObjectItem(node, "files")), 2);
		cJSON_Delete(node);
		struct history_question q = {.what = HISTORY_ONE, .history = HISTORY_A};
		cJSON *tree = ask_tree(fx, &q);
		assert_int_equal(cJSON_GetArraySize(cJSON_GetObjectItem(tree, "nodes")), 4);
		cJSON_Delete(tree);
		/* It is in the memory of the run before it, so that one's park leads there. */
		struct history_question way = {.what = HISTORY_WAY,
			.history = HISTORY_A,
			.node = f->node,
			.kernel_id = "k1",
			.parked = "exact m1\n"};
		tree = ask_tree(fx, &way);
		assert_string_equal(text_at(cJSON_GetObjectItem(tree, "node"), "msg_id"), "m1");
		assert_string_equal(text_at(cJSON_GetObjectItem(tree, "node"), "kind"), "files");
		assert_int_equal(cJSON_GetArraySize(cJSON_GetObjectItem(tree, "rebuild")), 0);
		assert_int_equal(cJSON_GetArraySize(cJSON_GetObjectItem(tree, "left")), 1);
		cJSON_Delete(tree);
		hfix_close(fx);
		char path[256];
		(void)snprintf(path, sizeof path, "%s/index.sqlite", fx->folder);
		if (i == 0)
			assert_int_equal(unlink(path), 0);
		hfix_open(fx);
	}
	assert_git(fx, HISTORY_A, "log --format=%s main",
		"x = 1\nfiles: a.csv, b.csv\nx = 1\nBegin\n");
	/* It is no cell. */
	struct history_question q = {
		.what = HISTORY_EXPORT, .history = HISTORY_A, .node = b->node, .format = "py"};
	assert_int_equal(ask(fx, &q), 0);
	const char *cell = strstr(fx->json, "# %%");
	for (int i = 0; i < 2; i++) {
		assert_non_null(cell);
		cell = strstr(cell + 1, "# %%");
	}
	assert_null(cell);
	assert_sound(fx, HISTORY_A);
	hfix_free(fx);
}

TEST(files, the_difference_of_two_nodes_has_its_files)
{
	struct hfix *fx = open_with_hello();
	char name[HISTORY_NODE_SIZE], change[512];
	struct tape *a = run_with(fx, "m1",
		"{\"full\":true,\"changed\":[{\"path\":\"same\"," PLAIN HELLO
		"},{\"path\":\"mode\"," PLAIN HELLO "},{\"path\":\"text\"," PLAIN HELLO
		"},{\"path\":\"gone\"," PLAIN HELLO "}]}");
	(void)snprintf(change, sizeof change,
		"{\"changed\":[{\"path\":\"mode\",\"mode\":\"100755\"," HELLO
		"},{\"path\":\"text\"," PLAIN
		"\"bytes\":4,\"blob\":\"%s\"},{\"path\":\"new\"," PLAIN HELLO
		"}],\"removed\":[\"gone\"]}",
		keep_blob(fx, "bye\n", name));
	struct tape *b = run_with(fx, "m2", change);
	struct history_question q = {
		.what = HISTORY_DIFF, .history = HISTORY_A, .node = a->node, .to = b->node};
	cJSON *tree = ask_tree(fx, &q), *files = cJSON_GetObjectItem(tree, "files");
	assert_int_equal(cJSON_GetArraySize(files), 4);
	assert_file(files, 0, "deleted", "gone");
	assert_file(files, 1, "modified", "mode");
	assert_file(files, 2, "created", "new");
	assert_file(files, 3, "modified", "text");
	cJSON *text = cJSON_GetArrayItem(files, 3);
	assert_string_equal(text_at(cJSON_GetObjectItem(text, "from"), "digest"), hello);
	assert_string_equal(text_at(cJSON_GetObjectItem(text, "to"), "digest"), name);
	assert_int_equal(number_at(cJSON_GetObjectItem(text, "to"), "bytes"), 4);
	assert_true(cJSON_IsNull(cJSON_GetObjectItem(cJSON_GetArrayItem(files, 2), "from")));
	assert_true(cJSON_IsNull(cJSON_GetObjectItem(cJSON_GetArrayItem(files, 0), "to")));
	cJSON_Delete(tree);
	hfix_free(fx);
}

TEST(files, an_index_from_before_there_were_files)
{
	struct hfix *fx = open_with_hello();
	struct tape *a = record_cell(fx, "m1", "1", NULL);
	char path[256];
	struct db *db = NULL;
	await_fine(fx, a);
	hfix_close(fx);
	(void)snprintf(path, sizeof path, "%s/index.sqlite", fx->folder);
	assert_int_equal(db_open(path, &db, NULL), 0);
	assert_int_equal(db_script(db,
				 "ALTER TABLE execution_records DROP COLUMN files;"
				 "ALTER TABLE execution_records DROP COLUMN memory_of;"
				 "PRAGMA user_version = 3",
				 NULL),
		0);
	db_close(db);
	hfix_open(fx);
	struct tape *b = run_with(fx, "m2", "{\"changed\":[{\"path\":\"a\"," PLAIN HELLO "}]}");
	for (int i = 0; i < 2; i++) {
		cJSON *node = ask_node(fx, i ? b->node : a->node);
		assert_int_equal(number_at(cJSON_GetObjectItem(node, "counts"), "files"), i);
		cJSON_Delete(node);
	}
	assert_int_equal(fx->warnings, 0);
	hfix_free(fx);
}

/* ---- many ---- */

TEST(files, ten_thousand_files)
{
	struct hfix *fx = open_with_hello();
	AUTO(buf_done) struct buf change;
	buf_init(&change, 16u << 20);
	(void)buf_add_text(&change, "{\"full\":true,\"changed\":[");
	for (int i = 0; i < 10000; i++)
		(void)buf_addf(&change, "%s{\"path\":\"d%d/f%d\"," PLAIN HELLO "}", i ? "," : "",
			i % 100, i);
	(void)buf_add_text(&change, "]}");
	struct tape *a = run_with(fx, "m1", (const char *)change.data);
	struct tape *b =
		run_with(fx, "m2", "{\"changed\":[{\"path\":\"d7/new\"," PLAIN HELLO "}]}");
	cJSON *whole = ask_files(fx, b->node);
	assert_int_equal(entries(whole), 10001);
	cJSON_Delete(whole);
	cJSON *node = ask_node(fx, a->node);
	assert_int_equal(number_at(cJSON_GetObjectItem(node, "counts"), "files"), 10000);
	assert_non_null(strstr(text_at(node, "summary"), "x = 1"));
	cJSON_Delete(node);
	assert_sound(fx, HISTORY_A);
	hfix_free(fx);
}

/* A burst of runs, of which some have files, is written together and packed whole. */
TEST(files, a_batch_with_files_and_without)
{
	struct hfix *fx = hfix_make();
	struct tape *t[40];
	char name[HISTORY_NODE_SIZE];
	hfix_open(fx);
	(void)keep_blob(fx, "hello\n", name);
	hfix_close(fx);
	hfix_gather(fx);
	hfix_open(fx);
	for (size_t i = 0; i < ARRAY_LEN(t); i++) {
		char id[16], change[256];
		(void)snprintf(id, sizeof id, "m%zu", i);
		(void)snprintf(change, sizeof change,
			"{\"changed\":[{\"path\":\"f%zu\"," PLAIN HELLO "}]}", i);
		t[i] = i % 4 ? tape_new(fx, id, "1", "") : files_tape(fx, id, change);
		if (i % 4)
			tape_end(t[i], "ok", 1, "");
		hand_over(fx, t[i]);
	}
	hfix_close(fx); /* what waits is recorded */
	hfix_open(fx);
	assert_git(fx, HISTORY_A, "rev-list --count main", "41\n");
	assert_git(fx, HISTORY_A, "ls-tree -r --name-only main files/ | wc -l", "10\n");
	assert_git(fx, HISTORY_A, "repack -d -q", "");
	assert_git(fx, HISTORY_A, "count-objects | cut -d' ' -f1", "0\n");
	assert_sound(fx, HISTORY_A);
	hfix_free(fx);
}

RUN(TEST_ROW(files, a_run_has_the_files_that_it_left),
	TEST_ROW(files, a_folder_that_is_empty_is_not_one_that_is_not_known),
	TEST_ROW(files, files_become_folders_and_folders_files),
	TEST_ROW(files, hostile_names_make_a_tree_that_git_takes),
	TEST_ROW(files, a_removal_by_a_name_that_is_kept_otherwise),
	TEST_ROW(files, a_content_that_did_not_come_is_lost_and_the_record_is_not),
	TEST_ROW(files, what_is_no_change_leaves_the_files_of_the_parent),
	TEST_ROW(files, contents_are_kept_under_their_own_names_alone),
	TEST_ROW(files, code_that_looks_like_a_pointer_is_no_file),
	TEST_ROW(files, large_files_are_pointers_to_chunks),
	TEST_ROW(files, contents_come_before_a_history_that_is_named),
	TEST_ROW(files, a_change_while_nothing_ran_is_a_node),
	TEST_ROW(files, the_difference_of_two_nodes_has_its_files),
	TEST_ROW(files, an_index_from_before_there_were_files), TEST_ROW(files, ten_thousand_files),
	TEST_ROW(files, a_batch_with_files_and_without))
