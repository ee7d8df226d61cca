#include "tests/lib/test.h"

#include <string.h>

#include "gateway/base/err.h"

TEST(err, set_and_wrap)
{
	struct err err;
	assert_int_equal(err_set(&err, E_CONFLICT, "branch '%s' moved", "main"), E_CONFLICT);
	assert_int_equal(err_wrap(&err, "commit %d", 7), E_CONFLICT);
	assert_string_equal(err.text, "commit 7: branch 'main' moved");
	assert_int_equal(err_set(NULL, E_IO, "nobody listens"), E_IO);
	assert_int_not_equal(err_wrap(NULL, "nobody listens"), 0);
}

TEST(err, arguments_may_be_its_own_text)
{
	struct err err;
	err_set(&err, E_IO, "first");
	err_set(&err, E_ENGINE, "second after %s", err.text);
	assert_string_equal(err.text, "second after first");
}

TEST(err, long_text_is_cut_between_characters)
{
	char filler[600];
	for (size_t shift = 0; shift < 4; shift++) {
		struct err err;
		size_t len = 505 + shift;
		memset(filler, 'x', sizeof filler);
		filler[len] = '\0';
		err_set(&err, E_IO, "%s\xf0\x9f\x8c\xb2\xf0\x9f\x8c\xb2", filler);
		/* 511 bytes fit: one whole tree does while len + 4 <= 511. */
		assert_int_equal(strlen(err.text), len + 4 <= 511 ? len + 4 : len);
	}
}

TEST(err, whole_last_character_stays)
{
	char filler[600];
	struct err err;
	memset(filler, 'x', sizeof filler);
	filler[507] = '\0';
	err_set(&err, E_IO, "%s\xf0\x9f\x8c\xb2more", filler);
	assert_int_equal(strlen(err.text), 511);
}

TEST(err, codes_have_rows)
{
	assert_string_equal(err_name(E_NOT_FOUND), "not_found");
	assert_int_equal(err_http_status(E_NOT_FOUND), 404);
	assert_string_equal(err_ename(E_NOT_FOUND), "NotFound");
	for (int code = E_DEAD; code < 0; code++)
		assert_true(err_http_status(code) >= 400);
	assert_int_equal(err_http_status(E_NO_SPEC), 501);
	assert_int_equal(err_http_status(-999), 500);
}

RUN(TEST_ROW(err, set_and_wrap), TEST_ROW(err, arguments_may_be_its_own_text),
	TEST_ROW(err, long_text_is_cut_between_characters),
	TEST_ROW(err, whole_last_character_stays), TEST_ROW(err, codes_have_rows))
