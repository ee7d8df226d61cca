/* The scan and the mending, against what Python's json.loads accepts. */
#include "tests/lib/test.h"

#include <string.h>

#include "gateway/base/json.h"

#define BYTES(text) ((struct bytes){(const uint8_t *)(text), sizeof(text) - 1})

/* strict: json_scan takes it. python: json.loads of Python 3 takes the bytes (its own extensions
 * included). mended: what json_mend makes of it, NULL if that stays invalid. */
struct json_case {
	struct bytes text;
	bool strict, python;
	const char *mended;
};

#define GOOD(text)                                                                                 \
	{                                                                                          \
		BYTES(text), true, true, text                                                      \
	}
#define BAD(text)                                                                                  \
	{                                                                                          \
		BYTES(text), false, false, NULL                                                    \
	}
#define PYTHON(text, mended)                                                                       \
	{                                                                                          \
		BYTES(text), false, true, mended                                                   \
	}
#define MENDED(text, mended)                                                                       \
	{                                                                                          \
		BYTES(text), false, false, mended                                                  \
	}

static const struct json_case cases[] = {
	GOOD("null"),
	GOOD("true"),
	GOOD(" false "),
	GOOD("\t\r\n 0"),
	GOOD("-0"),
	GOOD("-0.0e-0"),
	GOOD("1234567890123456789012345678901234567890"),
	GOOD("1.5"),
	GOOD("1E400"),
	GOOD("1e+5"),
	GOOD("\"\""),
	GOOD("\"a\""),
	GOOD("\"12345678\""),
	GOOD("\"1234567\\\"9\""),
	GOOD("\"\\\"\\\\\\/\\b\\f\\n\\r\\t\\u0041\""),
	GOOD("\"\\u0000\""),
	GOOD("\"\\ud83c\\udf32\""),
	GOOD("\"\\uD83C\\uDF32\""),
	GOOD("\"\x7f\""),
	GOOD("\"\xc2\x80\""),
	GOOD("\"\xdf\xbf\""),
	GOOD("\"\xe0\xa0\x80\""),
	GOOD("\"\xed\x9f\xbf\""),
	GOOD("\"\xee\x80\x80\""),
	GOOD("\"\xef\xbf\xbf\""),
	GOOD("\"\xf0\x90\x80\x80\""),
	GOOD("\"\xf4\x8f\xbf\xbf\""),
	GOOD("[]"),
	GOOD("[ ]"),
	GOOD("{}"),
	GOOD("{ \n}"),
	GOOD("[1,2 , 3]"),
	GOOD("[[],{},[{}]]"),
	GOOD("{\"a\":1}"),
	GOOD("{ \"a\" : [ ] , \"b\" : { } }"),
	GOOD("{\"a\":1,\"a\":2}"),
	GOOD("{\"\":null}"),
	BAD(""),
	BAD(" "),
	BAD("nul"),
	BAD("nulll"),
	BAD("True"),
	BAD("01"),
	BAD("-"),
	BAD("+1"),
	BAD("1."),
	BAD(".5"),
	BAD("1e"),
	BAD("1e+"),
	BAD("0x10"),
	BAD("1 2"),
	BAD("-01"),
	BAD("1_000"),
	BAD("nan"),
	BAD("inf"),
	BAD("\"abc"),
	BAD("\"abc\\"),
	BAD("\"abc\\\""),
	BAD("'a'"),
	BAD("\"\\x41\""),
	BAD("\"\\u12\""),
	BAD("\"\\u12g4\""),
	BAD("\"\\U0041\""),
	BAD("\"\\u00e\""),
	BAD("\"\\ud83c\\u12\""),
	BAD("["),
	BAD("]"),
	BAD("[1"),
	BAD("[1,"),
	BAD("[1,]"),
	BAD("[,1]"),
	BAD("[1 2]"),
	BAD("[1}"),
	BAD("{"),
	BAD("}"),
	BAD("{\"a\"}"),
	BAD("{\"a\":}"),
	BAD("{\"a\":1,}"),
	BAD("{\"a\" 1}"),
	BAD("{a:1}"),
	BAD("{1:1}"),
	BAD("{\"a\":1]"),
	BAD("{,}"),
	BAD("{\"a\":1 \"b\":2}"),
	BAD("{}{}"),
	BAD("[]]"),
	BAD("/* */ 1"),
	BAD("1 // x"),
	BAD("\x0b1"),
	BAD("\xc2\xa0"
	    "1"),
	BAD("\xff"),
	/* Python's own extensions. */
	PYTHON("NaN", "null"),
	PYTHON("Infinity", "null"),
	PYTHON("-Infinity", "null"),
	PYTHON("[NaN,NaN]", "[null,null]"),
	PYTHON("{\"a\":NaN,\"b\":[Infinity,-Infinity]}", "{\"a\":null,\"b\":[null,null]}"),
	PYTHON("\"\\ud800\"", "\"\\ufffd\""),
	PYTHON("\"\\udc00\"", "\"\\ufffd\""),
	PYTHON("\"\\udc00\\ud800\"", "\"\\ufffd\\ufffd\""),
	PYTHON("\"\\ud800\\u0041\"", "\"\\ufffd\\u0041\""),
	PYTHON("\"\\ud800\\ud83c\\udf32\"", "\"\\ufffd\\ud83c\\udf32\""),
	PYTHON("\"\\ud800x\"", "\"\\ufffdx\""),
	PYTHON("\"\\ud800\\n\"", "\"\\ufffd\\n\""),
	/* Encoded surrogates: Python decodes bytes with surrogatepass. */
	PYTHON("\"\xed\xa0\x80\"", "\"\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd\""),
	PYTHON("\"\xed\xbf\xbf\"", "\"\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd\""),
	/* What only the mending makes valid. */
	MENDED("\"a\xff\xfe"
	       "b\"",
		"\"a\xef\xbf\xbd\xef\xbf\xbd"
		"b\""),
	MENDED("\"\xc0\x80\"", "\"\xef\xbf\xbd\xef\xbf\xbd\""),
	MENDED("\"\xc3\"", "\"\xef\xbf\xbd\""),
	MENDED("\"\xe2\x82\"", "\"\xef\xbf\xbd\xef\xbf\xbd\""),
	MENDED("\"\xe0\x9f\xbf\"", "\"\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd\""),
	MENDED("\"\xf0\x8f\xbf\xbf\"", "\"\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd\""),
	MENDED("\"\xf4\x90\x80\x80\"", "\"\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd\""),
	MENDED("\"\xf5\"", "\"\xef\xbf\xbd\""),
	MENDED("\"\x80\"", "\"\xef\xbf\xbd\""),
	MENDED("\"\n\r\t\x01\x1f\"", "\"\\n\\r\\t\\u0001\\u001f\""),
	MENDED("\"\0\"", "\"\\u0000\""),
	MENDED("\"NaN\n\"", "\"NaN\\n\""),
	MENDED("[NaN,\"NaN \\ud800 \xff\\\" Infinity\",-Infinity]",
		"[null,\"NaN \\ufffd \xef\xbf\xbd\\\" Infinity\",null]"),
	/* Beyond mending. */
	BAD("NaNs"),
	BAD("--Infinity"),
	BAD("-NaN"),
	BAD("{NaN:1}"),
	BAD("[1,NaN"),
	BAD("\"\\ud800"),
	BAD("\"\\"),
};

static int scan(struct bytes b)
{
	struct err err = {0};
	int status = json_scan(b, NULL, 0, &err);
	assert_true(status == 0 || (status == E_INVALID && err.code == E_INVALID && err.text[0]));
	return status;
}

/* Every prefix of memory beyond the text is another allocation, so that a sanitizer sees overruns.
 */
static struct bytes exact_copy(struct bytes b)
{
	uint8_t *copy = malloc(b.len ? b.len : 1);
	assert_non_null(copy);
	memcpy(copy, b.data, b.len);
	return (struct bytes){copy, b.len};
}

TEST(json, scan_takes_exactly_rfc_8259)
{
	for (unsigned i = 0; i < ARRAY_LEN(cases); i++) {
		struct bytes text = exact_copy(cases[i].text);
		if ((scan(text) == 0) != cases[i].strict)
			fail_msg("case %u: %.*s", i, (int)text.len, (const char *)text.data);
		assert_true(cases[i].python || !cases[i].strict);
		free((void *)text.data);
	}
}

TEST(json, mend_makes_valid_what_python_takes)
{
	for (unsigned i = 0; i < ARRAY_LEN(cases); i++) {
		AUTO(buf_done) struct buf b;
		struct err err;
		struct bytes text = exact_copy(cases[i].text);
		buf_init(&b, 4096);
		int status = json_mend(text, &b, &err);
		free((void *)text.data);
		if (cases[i].python)
			assert_non_null(cases[i].mended);
		if ((status == 0) != (cases[i].mended != NULL))
			fail_msg("case %u: status %d", i, status);
		if (status == 0)
			assert_string_equal((char *)b.data, cases[i].mended);
	}
}

TEST(json, mend_leaves_good_text_alone)
{
	for (unsigned i = 0; i < ARRAY_LEN(cases); i++) {
		AUTO(buf_done) struct buf b;
		if (!cases[i].strict)
			continue;
		buf_init(&b, 4096);
		assert_int_equal(json_mend(cases[i].text, &b, NULL), 0);
		assert_int_equal(b.len, cases[i].text.len);
		assert_memory_equal(b.data, cases[i].text.data, b.len);
	}
}

TEST(json, mend_is_bounded)
{
	AUTO(buf_done) struct buf b;
	struct err err;
	buf_init(&b, 8);
	assert_int_equal(json_mend(BYTES("\"\x01\x01\""), &b, &err), E_TOO_BIG);
}

TEST(json, depth_is_bounded)
{
	for (int extra = 0; extra < 2; extra++) {
		AUTO(buf_done) struct buf b;
		unsigned depth = JSON_DEPTH_MAX + (unsigned)extra;
		buf_init(&b, 10000);
		for (unsigned i = 0; i < depth; i++)
			(void)buf_add_text(&b, i % 3 ? "[" : "{\"a\":"); /* the ceiling is far */
		(void)buf_add_text(&b, "1");
		for (unsigned i = depth; i-- > 0;)
			(void)buf_add_text(&b, i % 3 ? "]" : "}");
		assert_int_equal(scan((struct bytes){b.data, b.len}), extra ? E_INVALID : 0);
	}
	AUTO(buf_done) struct buf many;
	buf_init(&many, 1 << 20);
	for (int i = 0; i < 1 << 19; i++)
		(void)buf_add_text(&many, "[");
	assert_int_equal(scan((struct bytes){many.data, many.len}), E_INVALID);
}

TEST(json, plain_runs_end_at_every_offset)
{
	static const uint8_t specials[] = {'"', '\\', 0x1f, 0x80, 0xff, 0x00};
	for (size_t len = 0; len < 40; len++) {
		for (unsigned k = 0; k < ARRAY_LEN(specials); k++) {
			uint8_t text[64];
			memset(text, 'x', sizeof text);
			text[0] = '"';
			text[1 + len] = specials[k];
			text[2 + len] = '"';
			/* A quote ends it early, a backslash takes the quote along. */
			assert_int_equal(scan((struct bytes){text, len + 3}), E_INVALID);
			assert_int_equal(
				scan((struct bytes){text, len + 2}), k == 0 ? 0 : E_INVALID);
		}
	}
}

TEST(json, errors_say_where)
{
	struct err err;
	assert_int_equal(json_scan(BYTES("{\"a\":tru}"), NULL, 0, &err), E_INVALID);
	assert_non_null(strstr(err.text, "byte 5"));
	assert_int_equal(json_scan((struct bytes){NULL, 0}, NULL, 0, &err), E_INVALID);
}

static void check_want(const struct json_want *w, const char *value)
{
	assert_int_equal(w->value.len, strlen(value));
	if (*value)
		assert_memory_equal(w->value.data, value, w->value.len);
}

TEST(json, wants_are_raw_slices_of_the_outermost_object)
{
	struct json_want wants[] = {{.key = "a"}, {.key = "msg_id"}, {.key = "o"}, {.key = "x"}};
	assert_int_equal(
		json_scan(BYTES("{ \"o\" : {\"a\": 9, \"x\":[1]} , \"msg_id\" :\"i\\u0041\" "
				",\"l\":[{\"x\":1}],\"a\": -1.5e3 }"),
			wants, ARRAY_LEN(wants), NULL),
		0);
	check_want(&wants[0], "-1.5e3");
	check_want(&wants[1], "\"i\\u0041\"");
	check_want(&wants[2], "{\"a\": 9, \"x\":[1]}");
	check_want(&wants[3], "");
	assert_null(wants[3].value.data);
}

TEST(json, wants_last_of_two_and_escaped_keys)
{
	struct json_want want = {.key = "msg_id"};
	assert_int_equal(json_scan(BYTES("{\"msg_id\":1,\"msg_id\":2}"), &want, 1, NULL), 0);
	check_want(&want, "2");
	assert_int_equal(
		json_scan(BYTES("{\"msg_id\":1,\"\\u006dsg\\u005fid\":3}"), &want, 1, NULL), 0);
	check_want(&want, "3");
	assert_int_equal(
		json_scan(BYTES("{\"msg_idx\":1,\"msg\":2,\"\\u006dsg_ix\":1}"), &want, 1, NULL),
		0);
	check_want(&want, "");
}

TEST(json, wants_are_empty_for_others_and_after_failure)
{
	struct json_want want = {.key = "a", .value = BYTES("stale")};
	assert_int_equal(json_scan(BYTES("[{\"a\":1}]"), &want, 1, NULL), 0);
	check_want(&want, "");
	assert_int_equal(json_scan(BYTES("{\"a\":1,}"), &want, 1, NULL), E_INVALID);
	check_want(&want, "");
}

TEST(json, what_is_utf8)
{
	assert_true(json_is_utf8(""));
	assert_true(json_is_utf8("a\xc3\xa9\xf0\x9f\x8c\xb2"));
	assert_false(json_is_utf8("a\xff"));
	assert_false(json_is_utf8("\xe2\x82"));
	assert_false(json_is_utf8("\xed\xa0\x80"));
}

TEST(json, objects_are_told_apart)
{
	assert_true(json_is_object(BYTES(" \n{}")));
	assert_false(json_is_object(BYTES("[{}]")));
	assert_false(json_is_object(BYTES("")));
}

TEST(json, text_unescapes)
{
	char text[64];
	assert_true(json_text(
		BYTES("\"a\\n\\u00e4\\u20ac\\ud83c\\udf32\xc3\xa4\\/\""), text, sizeof text));
	assert_string_equal(text, "a\n\xc3\xa4\xe2\x82\xac\xf0\x9f\x8c\xb2\xc3\xa4/");
	assert_true(json_text(BYTES("\"\""), text, 1));
	assert_string_equal(text, "");
	assert_false(json_text(BYTES("\"a\\u0000b\""), text, sizeof text));
	assert_false(json_text(BYTES("12"), text, sizeof text));
	assert_false(json_text(BYTES("\""), text, sizeof text));
	assert_false(json_text(BYTES("\"\\ud800\""), text, sizeof text));
	assert_false(json_text(BYTES("\"a\"b\""), text, sizeof text));
	assert_false(json_text((struct bytes){0}, text, sizeof text));
}

TEST(json, text_that_just_fits)
{
	char text[4];
	assert_true(json_text(BYTES("\"abc\""), text, sizeof text));
	assert_false(json_text(BYTES("\"abcd\""), text, sizeof text));
	assert_true(json_text(BYTES("\"a\xc3\xa4\""), text, sizeof text));
	assert_false(json_text(BYTES("\"ab\xc3\xa4\""), text, sizeof text));
	assert_false(json_text(BYTES("\"\\ud83c\\udf32\""), text, sizeof text));
}

RUN(TEST_ROW(json, scan_takes_exactly_rfc_8259), TEST_ROW(json, mend_makes_valid_what_python_takes),
	TEST_ROW(json, mend_leaves_good_text_alone), TEST_ROW(json, mend_is_bounded),
	TEST_ROW(json, depth_is_bounded), TEST_ROW(json, plain_runs_end_at_every_offset),
	TEST_ROW(json, errors_say_where),
	TEST_ROW(json, wants_are_raw_slices_of_the_outermost_object),
	TEST_ROW(json, wants_last_of_two_and_escaped_keys),
	TEST_ROW(json, wants_are_empty_for_others_and_after_failure), TEST_ROW(json, what_is_utf8),
	TEST_ROW(json, objects_are_told_apart), TEST_ROW(json, text_unescapes),
	TEST_ROW(json, text_that_just_fits))
