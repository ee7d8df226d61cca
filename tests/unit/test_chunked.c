#include "tests/lib/test.h"

#include <string.h>

#include "gateway/base/buf.h"
#include "gateway/door/chunked.h"

/* Feeds text in pieces of `step` bytes; what came out is in body, what was not used is returned. */
static size_t feed(struct chunked *c, const char *text, size_t step, struct buf *body)
{
	size_t left = strlen(text);
	const uint8_t *at = (const uint8_t *)text;
	while (left > 0 && c->at < CHUNK_DONE) {
		struct bytes piece;
		size_t used =
			chunked_next(c, (struct bytes){at, left < step ? left : step}, &piece);
		assert_int_equal(buf_add(body, piece.data, piece.len), 0);
		at += used;
		left -= used;
	}
	return left;
}

static void check(const char *text, int end, const char *want, size_t want_left)
{
	for (size_t step = 1; step <= strlen(text) + 1; step++) {
		struct chunked c = {0};
		struct buf body;
		buf_init(&body, 1 << 16);
		size_t left = feed(&c, text, step, &body);
		assert_int_equal((int)c.at, end);
		if (want) {
			assert_string_equal(body.data ? (char *)body.data : "", want);
			assert_int_equal(left, want_left);
		}
		buf_done(&body);
	}
}

TEST(chunked, chunks_become_one_body)
{
	check("5\r\nhello\r\n6;a=b\r\n world\r\n0\r\n\r\n", CHUNK_DONE, "hello world", 0);
	check("A\r\n0123456789\r\n0\r\nX: y\r\nZ: w\r\n\r\n", CHUNK_DONE, "0123456789", 0);
	check("0\r\n\r\n", CHUNK_DONE, "", 0);
	check("1\na\n0\n\n", CHUNK_DONE, "a", 0);
}

TEST(chunked, what_follows_is_left)
{
	check("1\r\na\r\n0\r\n\r\nGET", CHUNK_DONE, "a", 3);
}

TEST(chunked, malformed_ones_are_told)
{
	check("x\r\n", CHUNK_BROKEN, NULL, 0);
	check("\r\n", CHUNK_BROKEN, NULL, 0);
	check("-1\r\n", CHUNK_BROKEN, NULL, 0);
	check("1\r\nab\r\n", CHUNK_BROKEN, NULL, 0);
	check("fffffffffffff\r\n", CHUNK_BROKEN, NULL, 0);
}

RUN(TEST_ROW(chunked, chunks_become_one_body), TEST_ROW(chunked, what_follows_is_left),
	TEST_ROW(chunked, malformed_ones_are_told))
