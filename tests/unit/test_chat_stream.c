/* Streams of a run as its record has them. */
#include "tests/lib/test.h"

#include <cjson/cJSON.h>
#include <string.h>

#include "frontend-adapter/plain.h"
#include "frontend-adapter/stream.h"

static size_t add(struct stream *s, const char *text, size_t len)
{
	return stream_add(s, (struct bytes){(const uint8_t *)text, len});
}

static char *split(const char *text, size_t piece)
{
	struct stream s;
	stream_init(&s);
	for (size_t at = 0, len = strlen(text); at < len; at += piece)
		(void)add(&s, text + at, len - at < piece ? len - at : piece);
	char *all = stream_text(&s);
	stream_done(&s);
	return all;
}

TEST(stream, case_26_progress_bars_fold_however_they_are_split)
{
	static const char text[] = "\r 10%\r 55%\r100%\na\r\r\nb\r\n";
	for (size_t piece = 1; piece <= sizeof text; piece++) {
		char *all = split(text, piece);
		assert_string_equal(all, "100%\na\nb\n");
		free(all);
	}
}

TEST(stream, a_million_updates_of_one_line_are_one_line)
{
	struct stream s;
	stream_init(&s);
	for (int i = 0; i < 1000000; i++)
		(void)add(&s, "\r 55%", 5);
	(void)add(&s, "\rdone", 5);
	char *all = stream_text(&s), *rest = NULL;
	assert_int_equal(stream_rest(&s, &rest), 0);
	assert_string_equal(all, "done");
	assert_string_equal(rest, "done");
	assert_int_equal(s.bytes, 5000005);
	free(all);
	free(rest);
	stream_done(&s);
}

TEST(stream, what_is_told_and_what_is_kept_join)
{
	struct stream s;
	char told[64] = "";
	stream_init(&s);
	for (int i = 0; i < 5; i++)
		strncat(told, "zeile\n", add(&s, "zeile\n", 6));
	assert_string_equal(told, "zeile\nzeile\nzeile\nzeile\nzeile\n");
	char *rest = told;
	assert_int_equal(stream_rest(&s, &rest), 0);
	assert_null(rest);
	stream_done(&s);
}

/* As JSON, which is what the budget is of. */
static size_t cost(const char *text)
{
	cJSON *string = cJSON_CreateString(text);
	char *json = cJSON_PrintUnformatted(string);
	size_t len = strlen(json);
	free(json);
	cJSON_Delete(string);
	return len;
}

static void too_much_of(const char *unit, size_t total)
{
	struct stream s;
	size_t len = strlen(unit), told = 0;
	stream_init(&s);
	(void)add(&s, "begin", 5);
	for (size_t n = 0; n < total; n += len)
		told += add(&s, unit, len);
	(void)add(&s, "end", 3);
	char *all = stream_text(&s), *rest = NULL;
	assert_int_equal(stream_rest(&s, &rest), 0);
	assert_memory_equal(all, "begin", 5);
	assert_string_equal(all + strlen(all) - 3, "end");
	assert_string_equal(rest + strlen(rest) - 3, "end");
	assert_non_null(strstr(all, "bytes left out"));
	assert_in_range(cost(all), STREAM_HALF, 2 * STREAM_HALF + 200);
	assert_in_range(told, 1, STREAM_HALF);
	assert_in_range(cost(rest), STREAM_HALF / 2, 2 * STREAM_HALF + 200);
	free(all);
	free(rest);
	stream_done(&s);
}

TEST(stream, head_and_tail_of_what_is_too_long)
{
	too_much_of("x", 3000000);
	too_much_of("eine Zeile\n", 3000000);
	too_much_of("\033[31m\n", 3000000);
	too_much_of("\001", 3000000);
	too_much_of("北京", 3000000);
	too_much_of("\"\\", 3000000);
}

TEST(stream, characters_stay_whole)
{
	struct stream s;
	stream_init(&s);
	for (int i = 0; i < 300000; i++)
		(void)add(&s, "\xe5\x8c\x97", 3);
	char *all = stream_text(&s);
	AUTO(buf_done) struct buf plain;
	buf_init(&plain, 4 * STREAM_HALF);
	plain_add(&plain, (struct bytes){(const uint8_t *)all, strlen(all)});
	assert_null(strstr((const char *)plain.data, "\xef\xbf\xbd"));
	free(all);
	stream_done(&s);
}

static void plain_is(const char *text, const char *want)
{
	struct buf b;
	buf_init(&b, 4096);
	plain_add(&b, (struct bytes){(const uint8_t *)text, strlen(text)});
	assert_string_equal(b.data ? (const char *)b.data : "", want);
	buf_done(&b);
}

TEST(plain, case_46_no_control_sequence_is_left)
{
	plain_is("\033[31mred\033[0m \033]8;;u\alink\033]8;;\a \xc2\x9b"
		 "1mC1",
		"red link C1");
	plain_is("a\033]0;title\033\\b\033(Bc\0337d\033[1;2Hx", "abcdx");
	plain_is("\033Pq#0;1\033\\x\033[?25l", "x");
	plain_is("a\bb\x7f\ac\td\r\n", "abc\td\r\n");
	plain_is("\033]never ended\nnext", "\nnext");
	plain_is("\033[31", "");
	plain_is("\033[3\nx", "\nx");
	plain_is("\033", "");
	plain_is("\xff\xfe"
		 "A\xed\xa0\x80",
		"\xef\xbf\xbd\xef\xbf\xbd"
		"A\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd");
	plain_is("Köln 北京 🧪", "Köln 北京 🧪");
}

TEST(plain, a_cut_is_between_characters)
{
	char *text = plain_cut("北京北京", 7);
	assert_string_equal(text, "北京");
	free(text);
}

RUN(TEST_ROW(stream, case_26_progress_bars_fold_however_they_are_split),
	TEST_ROW(stream, a_million_updates_of_one_line_are_one_line),
	TEST_ROW(stream, what_is_told_and_what_is_kept_join),
	TEST_ROW(stream, head_and_tail_of_what_is_too_long),
	TEST_ROW(stream, characters_stay_whole),
	TEST_ROW(plain, case_46_no_control_sequence_is_left),
	TEST_ROW(plain, a_cut_is_between_characters))
