/* spliced.c, record_text.c and folder.c. */
#include <stdio.h>
#include <string.h>

#include "gateway/base/json.h"
#include "history/folder.h"
#include "history/record.h"
#include "history/spliced.h"
#include "tests/lib/test.h"

static struct bytes of(const char *text)
{
	return (struct bytes){(const uint8_t *)text, strlen(text)};
}

static void assert_bytes(struct bytes b, const char *expected)
{
	assert_int_equal(b.len, strlen(expected));
	assert_memory_equal(b.len ? b.data : (const uint8_t *)"", expected, b.len);
}

/* ---- spliced ---- */

TEST(spliced, members_and_elements_are_found)
{
	static const char text[] = " { \"a\" : [1, {\"b\": \"}\\\"]\"} , -2.5e3 ] ,\n\"b\":{} ,"
				   "\"a\":null, \"\" : \"\" } ";
	struct bytes value;
	size_t at = 0;
	assert_int_equal(json_scan(of(text), NULL, 0, NULL), 0);
	assert_bytes(object_find(of(text), "a"), "null");
	assert_bytes(object_find(of(text), "b"), "{}");
	assert_bytes(object_find(of(text), ""), "\"\"");
	assert_bytes(object_find(of(text), "c"), "");
	struct member m;
	assert_true(object_next(of(text), &at, &m));
	assert_bytes(m.value, "[1, {\"b\": \"}\\\"]\"} , -2.5e3 ]");
	struct bytes list = m.value;
	at = 0;
	assert_true(array_next(list, &at, &value));
	assert_bytes(value, "1");
	assert_true(array_next(list, &at, &value));
	assert_bytes(value, "{\"b\": \"}\\\"]\"}");
	assert_true(array_next(list, &at, &value));
	assert_bytes(value, "-2.5e3");
	assert_false(array_next(list, &at, &value));
	at = 0;
	assert_false(array_next(of("[ ]"), &at, &value));
	assert_false(object_next(of("{}"), &at, &m));
	assert_false(object_next(of("7"), &at, &m));
}

TEST(spliced, a_string_ends_at_the_quote_that_no_backslash_holds)
{
	/* Each as an element, so that what comes after shows where it ended. */
	static const char *const strings[] = {"\"\"", "\"\\\\\"", "\"\\\"\"", "\"\\\\\\\"\"",
		"\"\\\"\\\\\"", "\"a\\\"\\\"b\"", "\"\\\\\\\\\"", "\"x\\n\\\"]\""};
	for (size_t i = 0; i < ARRAY_LEN(strings); i++) {
		char text[64];
		struct bytes value;
		size_t at = 0;
		(void)snprintf(text, sizeof text, "[%s,7]", strings[i]);
		assert_int_equal(json_scan(of(text), NULL, 0, NULL), 0);
		assert_true(array_next(of(text), &at, &value));
		assert_bytes(value, strings[i]);
		assert_true(array_next(of(text), &at, &value));
		assert_bytes(value, "7");
	}
}

static void assert_unescaped(const char *raw, const char *expected, size_t len)
{
	AUTO(buf_done) struct buf text;
	buf_init(&text, 100);
	assert_int_equal(string_unescape(of(raw), &text), 0);
	assert_int_equal(text.len, len);
	if (len > 0)
		assert_memory_equal(text.data, expected, len);
	assert_int_equal(string_length(string_inside(of(raw))), len);
}

TEST(spliced, strings_are_unescaped)
{
	assert_unescaped("\"\"", "", 0);
	assert_unescaped("\"a\\n\\t\\\"\\\\\\/\\b\\f\\r\"", "a\n\t\"\\/\b\f\r", 9);
	assert_unescaped("\"\\u0000x\"", "\0x", 2);
	assert_unescaped("\"\\u00e9\\u20AC\\ud83d\\uDE00\"", "\u00e9\u20ac\U0001f600", 9);
	assert_unescaped("\"\u00e9\"", "\u00e9", 2);
	assert_unescaped("7", "", 0);
}

TEST(spliced, numbers_are_whole_or_none)
{
	uint64_t n = 7;
	assert_true(number_u64(of("18446744073709551615"), &n));
	assert_true(n == UINT64_MAX);
	static const char *const wrong[] = {
		"18446744073709551616", "", "-1", "1.0", "1e3", "null", "\"1\"", " 1"};
	for (size_t i = 0; i < ARRAY_LEN(wrong); i++)
		assert_false(number_u64(of(wrong[i]), &n));
}

/* ---- texts of a record ---- */

static void assert_summary(const char *code, const char *expected)
{
	struct record r;
	char summary[SUMMARY_SIZE];
	record_init(&r);
	assert_int_equal(buf_add_text(&r.code, code), 0);
	record_summary(&r, summary);
	assert_string_equal(summary, expected);
	record_done(&r);
}

TEST(record_text, the_summary_is_the_first_line_that_says_something)
{
	static char wide[72 * 4 + 40], cut[72 * 4 + 1];
	for (size_t i = 0; i < 80; i++)
		memcpy(wide + 4 * i, "\U0001f600", 4);
	memcpy(cut, wide, sizeof cut - 1);
	assert_summary("", "");
	assert_summary("\n \t\n", "");
	assert_summary("\n  x = 1  \ny", "x = 1");
	assert_summary("a\tb\x01\rc\n", "a b  c");
	assert_summary(wide, cut);
}

TEST(record_text, folders_of_runs_are_three_levels)
{
	char path[RUN_FOLDER_SIZE];
	run_folder(1, path);
	assert_string_equal(path, "runs/00/00/01");
	run_folder(123456, path);
	assert_string_equal(path, "runs/12/34/56");
	run_folder(12345678, path);
	assert_string_equal(path, "runs/1234/56/78");
}

TEST(record_text, trailers_are_read_below_the_subject)
{
	static const char message[] =
		"Coppice-Name: code\n\nx Coppice-Name: no\nCoppice-Name: a b\n"
		"Coppice-Owner: \n";
	char value[16];
	assert_true(trailer_find(message, "Name", value, sizeof value));
	assert_string_equal(value, "a b");
	assert_true(trailer_find(message, "Owner", value, sizeof value));
	assert_string_equal(value, "");
	assert_false(trailer_find(message, "Else", value, sizeof value));
	assert_false(trailer_find("subject only", "Name", value, sizeof value));
	assert_false(trailer_find(message, "Name", value, 3)); /* cut */
}

/* ---- folder ---- */

TEST(folder, an_id_is_a_file_name)
{
	char path[128];
	assert_true(folder_repository("/d", "a-1", path, sizeof path));
	assert_string_equal(path, "/d/a-1.git");
	static const char *const wrong[] = {"", ".", "..", ".hidden", "a/b", "/etc"};
	for (size_t i = 0; i < ARRAY_LEN(wrong); i++)
		assert_false(folder_repository("/d", wrong[i], path, sizeof path));
	assert_false(folder_repository("/d",
		"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa", path,
		sizeof path));
}

RUN(TEST_ROW(spliced, members_and_elements_are_found),
	TEST_ROW(spliced, a_string_ends_at_the_quote_that_no_backslash_holds),
	TEST_ROW(spliced, strings_are_unescaped), TEST_ROW(spliced, numbers_are_whole_or_none),
	TEST_ROW(record_text, the_summary_is_the_first_line_that_says_something),
	TEST_ROW(record_text, folders_of_runs_are_three_levels),
	TEST_ROW(record_text, trailers_are_read_below_the_subject),
	TEST_ROW(folder, an_id_is_a_file_name))
