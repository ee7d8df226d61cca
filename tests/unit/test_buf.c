#include "tests/lib/test.h"

#include <string.h>

#include "gateway/base/buf.h"

TEST(buf, grows_and_is_ended)
{
	AUTO(buf_done) struct buf b;
	buf_init(&b, 100000);
	for (int i = 0; i < 10000; i++)
		assert_int_equal(buf_add(&b, "abc", 3), 0);
	assert_int_equal(b.len, 30000);
	assert_int_equal(b.data[b.len], 0);
	assert_memory_equal(b.data + 29997, "abc", 3);
}

TEST(buf, ceiling_is_exact)
{
	AUTO(buf_done) struct buf b;
	struct err err;
	buf_init(&b, 10);
	assert_int_equal(buf_add(&b, "0123456789", 10), 0);
	assert_int_equal(b.data[10], 0);
	assert_int_equal(buf_check(&b, "text", &err), 0);
	assert_int_equal(buf_add(&b, "x", 1), E_TOO_BIG);
	assert_int_equal(b.len, 10);
	assert_int_equal(buf_check(&b, "text", &err), E_TOO_BIG);
	assert_non_null(strstr(err.text, "text"));
	assert_non_null(strstr(err.text, "10 bytes"));
}

TEST(buf, failure_is_latched)
{
	AUTO(buf_done) struct buf b;
	buf_init(&b, 8);
	assert_int_equal(buf_add_text(&b, "123456"), 0);
	assert_int_equal(buf_addf(&b, "%s", "too long"), E_TOO_BIG);
	assert_int_equal(buf_add(&b, "7", 1), E_TOO_BIG);
	assert_int_equal(buf_add_json_string(&b, "", 0), E_TOO_BIG);
	assert_string_equal((char *)b.data, "123456");
	buf_reset(&b);
	assert_false(b.failed);
	assert_int_equal(buf_add(&b, "7", 1), 0);
	assert_string_equal((char *)b.data, "7");
}

TEST(buf, huge_requests_do_not_overflow)
{
	AUTO(buf_done) struct buf b;
	buf_init(&b, 1000);
	assert_int_equal(buf_add(&b, "abc", 3), 0);
	assert_int_equal(buf_reserve(&b, SIZE_MAX), E_TOO_BIG);
	assert_int_equal(b.len, 3);
}

/* The sanitizer's allocator ends the process by default where malloc returns NULL. */
const char *__asan_default_options(void);
const char *__asan_default_options(void)
{
	return "allocator_may_return_null=1";
}

TEST(buf, memory_that_is_not_there)
{
	AUTO(buf_done) struct buf b;
	struct err err;
	buf_init(&b, SIZE_MAX / 2);
	assert_int_equal(buf_reserve(&b, SIZE_MAX / 4), E_NOMEM);
	assert_int_equal(buf_check(&b, "text", &err), E_NOMEM);
}

TEST(buf, max_zero_takes_nothing)
{
	AUTO(buf_done) struct buf b;
	buf_init(&b, 0);
	assert_int_equal(buf_add(&b, "", 0), 0);
	assert_int_equal(buf_add(&b, "x", 1), E_TOO_BIG);
}

TEST(buf, json_string_escapes)
{
	AUTO(buf_done) struct buf b;
	buf_init(&b, 100);
	const char text[] = "a\"b\\c\n\r\t\b\f\x01\x1f\0z\x7f\xc3\xa4";
	assert_int_equal(buf_add_json_string(&b, text, sizeof text - 1), 0);
	assert_string_equal(
		(char *)b.data, "\"a\\\"b\\\\c\\n\\r\\t\\b\\f\\u0001\\u001f\\u0000z\x7f\xc3\xa4\"");
	buf_reset(&b);
	assert_int_equal(buf_add_json_string(&b, "", 0), 0);
	assert_string_equal((char *)b.data, "\"\"");
}

TEST(buf, take_gives_memory_away)
{
	struct buf b;
	size_t len = 99;
	buf_init(&b, 100);
	uint8_t *nothing = buf_take(&b, &len);
	assert_non_null(nothing);
	assert_int_equal(len, 0);
	assert_int_equal(nothing[0], 0);
	free(nothing);
	assert_int_equal(buf_addf(&b, "%d-%s", 5, "x"), 0);
	uint8_t *data = buf_take(&b, &len);
	assert_string_equal((char *)data, "5-x");
	assert_int_equal(len, 3);
	assert_null(b.data);
	assert_int_equal(b.max, 100);
	free(data);
}

RUN(TEST_ROW(buf, grows_and_is_ended), TEST_ROW(buf, ceiling_is_exact),
	TEST_ROW(buf, failure_is_latched), TEST_ROW(buf, huge_requests_do_not_overflow),
	TEST_ROW(buf, memory_that_is_not_there), TEST_ROW(buf, max_zero_takes_nothing),
	TEST_ROW(buf, json_string_escapes), TEST_ROW(buf, take_gives_memory_away))
