/* Bodies of requests: what is read of them, and what is refused before anything is done. */
#include "tests/lib/test.h"

#include <cjson/cJSON.h>
#include <string.h>

#include "gateway/door/rest.h"
#include "tests/lib/fake_clock.c"

struct fixture {
	struct gateway gw;
	struct door door;
};

/* 0 and *ret, or a code. */
static int read_body(const char *text, size_t len, struct cJSON **ret, struct err *err)
{
	struct fixture f;
	memset(&f, 0, sizeof f);
	f.gw.clock = clock_new(NULL);
	f.door.gw = &f.gw;
	struct call *r = call_new(&f.door);
	assert_int_equal(buf_add(&r->body, text, len), 0);
	int status = call_json(r, ret, err);
	call_free(r);
	clock_close(f.gw.clock, NULL, NULL);
	return status;
}

static void refuse(const char *text, size_t len, const char *word)
{
	struct cJSON *tree = NULL;
	struct err err = {0};
	assert_int_equal(read_body(text, len, &tree, &err), E_INVALID);
	assert_null(tree);
	assert_non_null(strstr(err.text, word));
}

#define REFUSE(text, word) refuse(text, sizeof text - 1, word)

TEST(call, no_body_is_none)
{
	struct cJSON *tree = NULL;
	assert_int_equal(read_body("", 0, &tree, NULL), 0);
	assert_null(tree);
	assert_int_equal(read_body(" \r\n\t", 4, &tree, NULL), 0);
	assert_null(tree);
}

TEST(call, what_is_no_object_is_refused)
{
	REFUSE("[]", "object");
	REFUSE("{", "JSON");
	REFUSE("\0\0", "JSON");
	REFUSE("{\"a\":NaN}", "JSON");
}

TEST(call, nul_in_a_text_is_refused_since_the_tree_would_end_there)
{
	struct cJSON *tree = NULL;
	REFUSE("{\"env\":{\"A\":\"a\\u0000b\"}}", "NUL");
	REFUSE("{\"a\\u0000\":1}", "NUL");
	REFUSE("{\"a\":\"\\\\\\u0000\"}", "NUL");
	static const char harmless[] = "{\"a\":\"\\\\u0000\"}"; /* a backslash, then u0000 */
	assert_int_equal(read_body(harmless, sizeof harmless - 1, &tree, NULL), 0);
	assert_string_equal(rest_text(tree, "a"), "\\u0000");
	cJSON_Delete(tree);
}

static const struct rest_member members[] = {
	{"text", REST_TEXT}, {"texts", REST_TEXTS}, {"object", REST_OBJECT}};

static int check(const char *json, struct err *err)
{
	struct cJSON *tree = cJSON_Parse(json);
	assert_non_null(tree);
	int status = rest_check(tree, "of.", members, ARRAY_LEN(members), err);
	cJSON_Delete(tree);
	return status;
}

TEST(call, members_of_another_kind_are_named)
{
	static const struct {
		const char *json, *word;
	} rows[] = {
		{"{\"text\":3}", "of.text must be a string"},
		{"{\"text\":[\"x\"]}", "of.text"},
		{"{\"texts\":\"x\"}", "of.texts must be an object of strings"},
		{"{\"texts\":{\"a\":\"b\",\"c\":1}}", "of.texts"},
		{"{\"texts\":{\"a\":null}}", "of.texts"},
		{"{\"object\":[]}", "of.object must be an object"},
		{"{\"object\":true}", "of.object"},
	};
	for (unsigned i = 0; i < ARRAY_LEN(rows); i++) {
		struct err err = {0};
		assert_int_equal(check(rows[i].json, &err), E_INVALID);
		assert_non_null(strstr(err.text, rows[i].word));
	}
}

TEST(call, absent_null_and_unknown_members_are_fine)
{
	assert_int_equal(check("{}", NULL), 0);
	assert_int_equal(check("{\"text\":null,\"texts\":null,\"object\":null}", NULL), 0);
	assert_int_equal(check("{\"other\":3,\"texts\":{\"a\":\"\"},\"text\":\"\"}", NULL), 0);
	assert_int_equal(rest_check(NULL, "", members, ARRAY_LEN(members), NULL), 0);
}

/* The leak checker is what fails here: nobody else would free it. */
TEST(call, whose_body_never_ended_goes_with_its_connection)
{
	struct fixture f;
	memset(&f, 0, sizeof f);
	f.gw.clock = clock_new(NULL);
	f.door.gw = &f.gw;
	struct call *r = call_new(&f.door);
	r->carrier = &f;
	assert_int_equal(buf_add(&r->body, "half", 4), 0);
	assert_false(r->dispatched);
	call_gone(r);
	clock_close(f.gw.clock, NULL, NULL);
}

RUN(TEST_ROW(call, whose_body_never_ended_goes_with_its_connection),
	TEST_ROW(call, no_body_is_none), TEST_ROW(call, what_is_no_object_is_refused),
	TEST_ROW(call, nul_in_a_text_is_refused_since_the_tree_would_end_there),
	TEST_ROW(call, members_of_another_kind_are_named),
	TEST_ROW(call, absent_null_and_unknown_members_are_fine))
