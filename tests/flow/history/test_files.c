/* Working files in history: what a Change makes of a node, and what stock git says to it. */
#include "tests/lib/files_fixture.h"

static const char hello[] = "ce013625030ba8dba906f756967f9e9ca394464a"; /* "hello\n" */

static void keep_hello(struct hfix *fx)
{
	char name[HISTORY_NODE_SIZE];
	assert_string_equal(keep_blob(fx, "hello\n", name), hello);
}

TEST(files, a_run_has_the_files_that_it_left)
{
	struct hfix *fx = hfix_new();
	keep_hello(fx);
	struct tape *a = run_with(fx, "m1",
		"{\"full\":true,\"changed\":["
		"{\"path\":\"a.csv\",\"mode\":\"100644\",\"bytes\":6,\"blob\":"
		"\"ce013625030ba8dba906f756967f9e9ca394464a\"},"
		"{\"path\":\"bin/run\",\"mode\":\"100755\",\"bytes\":6,\"blob\":"
		"\"ce013625030ba8dba906f756967f9e9ca394464a\"},"
		"{\"path\":\"empty/in\",\"mode\":\"40000\"}],\"removed\":[],\"lost\":[]}");
	struct tape *b = run_with(
		fx, "m2", "{\"full\":false,\"changed\":[],\"removed\":[\"a.csv\"],\"lost\":[]}");
	struct tape *c = run_with(fx, "m3", "{\"full\":false}");
	assert_sound(fx, HISTORY_A);
	assert_git(fx, HISTORY_A, "ls-tree -r --name-only main~2 files/",
		"files/a.csv\nfiles/bin/run\nfiles/empty/in/.coppice-folder\n");
	assert_git(fx, HISTORY_A, "ls-tree -r --name-only main files/",
		"files/bin/run\nfiles/empty/in/.coppice-folder\n");
	cJSON *node = ask_node(fx, a->node);
	cJSON *files = cJSON_GetObjectItem(node, "files");
	assert_int_equal(cJSON_GetArraySize(files), 3);
	assert_string_equal(text_at(cJSON_GetArrayItem(files, 0), "change"), "created");
	assert_string_equal(text_at(cJSON_GetArrayItem(files, 0), "digest"), hello);
	assert_int_equal(
		cJSON_GetNumberValue(cJSON_GetObjectItem(cJSON_GetArrayItem(files, 0), "bytes")),
		6);
	assert_int_equal(cJSON_GetNumberValue(
				 cJSON_GetObjectItem(cJSON_GetObjectItem(node, "counts"), "files")),
		3);
	cJSON_Delete(node);
	node = ask_node(fx, b->node);
	files = cJSON_GetObjectItem(node, "files");
	assert_int_equal(cJSON_GetArraySize(files), 1);
	assert_string_equal(text_at(cJSON_GetArrayItem(files, 0), "path"), "a.csv");
	assert_string_equal(text_at(cJSON_GetArrayItem(files, 0), "change"), "deleted");
	cJSON_Delete(node);
	cJSON *whole = ask_files(fx, c->node);
	assert_true(cJSON_IsTrue(cJSON_GetObjectItem(whole, "recorded")));
	assert_int_equal(entries(whole), 2);
	assert_string_equal(text_at(entry_of(whole, "bin/run"), "mode"), "100755");
	assert_string_equal(text_at(entry_of(whole, "empty/in"), "mode"), "40000");
	assert_null(cJSON_GetObjectItem(entry_of(whole, "empty/in"), "blob"));
	cJSON_Delete(whole);
	hfix_free(fx);
}

RUN(TEST_ROW(files, a_run_has_the_files_that_it_left))
