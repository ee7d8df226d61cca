/* The folder as it was told: what follows on what, and what is too much. */
#include <cjson/cJSON.h>
#include <stdio.h>
#include <string.h>

#include "gateway/base/buf.h"
#include "gateway/base/json_tree.h"
#include "gateway/spine/told_folder.h"
#include "tests/lib/test.h"

#define BLOB		 "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
#define CHUNK		 "dddddddddddddddddddddddddddddddddddddddddddddddddddddddddddddddd"
#define ENTRY(p)	 "{\"path\":\"" p "\",\"mode\":\"100644\",\"bytes\":3,\"blob\":\"" BLOB "\"}"
#define LIST(f, c, r, l) "{\"full\":" f ",\"changed\":[" c "],\"removed\":[" r "],\"lost\":[" l "]}"

static int tell(struct folder *f, const char *text)
{
	cJSON *change = NULL;
	struct err err;
	int rc = told_read((struct bytes){(const uint8_t *)text, strlen(text)}, &change, &err);
	if (rc == 0)
		rc = folder_apply(f, change, &err);
	cJSON_Delete(change);
	return rc;
}

static void assert_holds(const struct folder *f, const char *text)
{
	cJSON *change = folder_change(f);
	char *whole = json_print(change, NULL);
	assert_string_equal(whole, text);
	free(whole);
	cJSON_Delete(change);
}

TEST(folder, changes_follow_each_other)
{
	struct folder f = {0};
	assert_int_equal(tell(&f, LIST("false", ENTRY("a") "," ENTRY("b"), "", "")), 0);
	assert_int_equal(tell(&f, LIST("false", ENTRY("b/c"), "\"b\",\"none\"",
					  "{\"path\":\"s\",\"reason\":\"a socket\"}")),
		0);
	assert_holds(&f, LIST("true", ENTRY("a") "," ENTRY("b/c"), "",
				 "{\"path\":\"s\",\"reason\":\"a socket\"}"));
	/* What is removed and there again is there. */
	assert_int_equal(tell(&f, LIST("false", ENTRY("a"), "\"a\"", "")), 0);
	assert_int_equal(f.n, 2);
	assert_int_equal(tell(&f, LIST("true", ENTRY("d"), "", "")), 0);
	assert_holds(&f, LIST("true", ENTRY("d"), "", ""));
	folder_clear(&f);
	assert_int_equal(f.n + f.bytes, 0);
}

TEST(folder, what_is_refused_changes_nothing)
{
	struct folder f = {0};
	AUTO(buf_done) struct buf b;
	assert_int_equal(tell(&f, LIST("false", ENTRY("a"), "", "")), 0);
	assert_int_equal(
		tell(&f, LIST("false", ENTRY("b") "," ENTRY("/c"), "\"a\"", "")), E_INVALID);
	buf_init(&b, 16 << 20);
	(void)buf_addf(&b, "{\"full\":true,\"changed\":[");
	for (unsigned i = 0; i <= FOLDER_ENTRIES_MAX; i++)
		(void)buf_addf(&b, "%s{\"path\":\"%u\",\"mode\":\"40000\"}", i > 0 ? "," : "", i);
	(void)buf_addf(&b, "],\"removed\":[],\"lost\":[]}");
	assert_false(b.failed);
	assert_int_equal(tell(&f, (const char *)b.data), E_TOO_BIG);
	/* A tree would cost far more than its text. */
	buf_reset(&b);
	(void)buf_addf(&b, "{\"full\":true,\"changed\":[],\"removed\":[],\"lost\":[],\"x\":[0");
	for (unsigned i = 0; i < 400000; i++)
		(void)buf_addf(&b, ",0");
	(void)buf_addf(&b, "]}");
	assert_int_equal(tell(&f, (const char *)b.data), E_TOO_BIG);
	assert_holds(&f, LIST("true", ENTRY("a"), "", ""));
	folder_clear(&f);
}

TEST(folder, which_contents_a_change_names)
{
	static const char text[] = LIST("false",
		ENTRY("a") ",{\"path\":\"b\",\"mode\":\"100755\",\"bytes\":2000000,\"chunks\":"
			   "[\"" CHUNK "\",\"" CHUNK "\"]},{\"path\":\"l\",\"mode\":\"100644\","
			   "\"bytes\":9,\"lost\":\"why\"},{\"path\":\"e\",\"mode\":\"40000\"}",
		"", "");
	struct content_name *names = NULL;
	cJSON *change = NULL;
	struct err err;
	size_t n = 0;
	assert_int_equal(
		told_read((struct bytes){(const uint8_t *)text, strlen(text)}, &change, &err), 0);
	assert_false(told_is_empty(change));
	assert_false(told_is_full(change));
	assert_int_equal(told_contents(change, &names, &n, &err), 0);
	assert_int_equal(n, 3);
	assert_string_equal(names[0].name, BLOB);
	assert_int_equal(names[0].bytes, 3);
	assert_string_equal(names[2].name, CHUNK);
	assert_int_equal(names[2].bytes, 1 << 20);
	free(names);
	cJSON_Delete(change);
}

RUN(TEST_ROW(folder, changes_follow_each_other), TEST_ROW(folder, what_is_refused_changes_nothing),
	TEST_ROW(folder, which_contents_a_change_names))
