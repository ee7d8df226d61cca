#include "tests/lib/test.h"

#include <inttypes.h>
#include <string.h>

#include <cjson/cJSON.h>

#include "gateway/base/log.h"

struct seen {
	char line[16384];
	unsigned n;
};

static void keep(void *data, const char *line, size_t len)
{
	struct seen *s = data;
	s->n++;
	assert_true(copy_text(s->line, sizeof s->line, line, len));
	assert_int_equal(line[len - 1], '\n');
	assert_null(memchr(line, '\n', len - 1));
}

/* The line from its event on, without its end. */
static const char *said(struct seen *s)
{
	s->line[strlen(s->line) - 1] = '\0';
	assert_memory_equal(s->line + 26, "Z ", 2);
	return strchr(s->line + 28, ' ') + 1;
}

TEST(log, values_of_every_kind)
{
	struct seen seen = {0};
	struct log_sink sink = {.level = LOG_INFO, .write = keep, .data = &seen};
	struct log log;
	log_init(&log, &sink);
	log_info(&log,
		"event d=%d u=%u ld=%ld zu=%zu x=%08x lld=%lld i64=%" PRId64 " f=%.2f c=%c 100%%",
		-5, 7u, -8L, (size_t)9, 255u, -10LL, INT64_C(-11), 1.5, 'q');
	assert_string_equal(said(&seen),
		"event d=-5 u=7 ld=-8 zu=9 x=000000ff lld=-10 i64=-11 f=1.50 c=q 100%");
	log_info(&log, "event short=%.3s star=%.*s wide=%5d u64=%" PRIu64, "abcdef", 2, "xyz", 42,
		UINT64_MAX);
	assert_string_equal(
		said(&seen), "event short=abc star=xy wide=   42 u64=18446744073709551615");
}

TEST(log, a_value_cannot_forge_a_line)
{
	struct seen seen = {0};
	struct log_sink sink = {.level = LOG_INFO, .write = keep, .data = &seen};
	struct log log;
	log_init(&log, &sink);
	log_info(&log, "got name=%s next=%s", "a\nb level=error \"q\" \x1b[31m", "plain");
	assert_string_equal(
		said(&seen), "got name=\"a\\nb level=error \\\"q\\\" \\x1b[31m\" next=plain");
	log_info(&log, "got empty=%s", "");
	assert_string_equal(said(&seen), "got empty=\"\"");
}

TEST(log, level_and_missing_sink)
{
	struct seen seen = {0};
	struct log_sink sink = {.level = LOG_WARN, .write = keep, .data = &seen};
	struct log log, silent;
	log_init(&log, &sink);
	log_init(&silent, NULL);
	log_info(&log, "quiet");
	log_error(&silent, "quiet");
	log_error(NULL, "quiet");
	assert_int_equal(seen.n, 0);
	assert_false(log_on(&log, LOG_INFO));
	log_error(&log, "loud");
	assert_int_equal(seen.n, 1);
}

TEST(log, children_carry_context)
{
	struct seen seen = {0};
	struct log_sink sink = {.write = keep, .data = &seen};
	struct log log;
	log_init(&log, &sink);
	log_child(&log, &log, "kernel", "abc");
	log_child(&log, &log, "client", "a b");
	log_info(&log, "event");
	assert_string_equal(said(&seen), "event kernel=abc client=\"a b\"");
	for (int i = 0; i < 50; i++)
		log_child(&log, &log, "more", "context");
	assert_true(strlen(log.context) < sizeof log.context);
}

TEST(log, long_lines_are_cut)
{
	struct seen seen = {0};
	struct log_sink sink = {.write = keep, .data = &seen};
	struct log log;
	char big[10000];
	memset(big, '\n', sizeof big);
	big[sizeof big - 1] = '\0';
	log_init(&log, &sink);
	log_info(&log, "event big=%s", big);
	assert_true(strlen(seen.line) <= 4096);
	sink.json = true;
	log_info(&log, "event big=%s", big);
	cJSON *tree = cJSON_Parse(seen.line);
	assert_non_null(tree);
	cJSON_Delete(tree);
}

static const char *member(const cJSON *tree, const char *name)
{
	return cJSON_GetStringValue(cJSON_GetObjectItem(tree, name));
}

TEST(log, json_lines)
{
	struct seen seen = {0};
	struct log_sink sink = {.json = true, .write = keep, .data = &seen};
	struct log log;
	log_init(&log, &sink);
	log_child(&log, &log, "kernel", "k1");
	log_warn(&log, "event two words n=%d s=%s bad=%s", 3, "a \"b\" \\ c", "\xff\xc3\xa4");
	cJSON *tree = cJSON_Parse(seen.line);
	assert_non_null(tree);
	assert_string_equal(member(tree, "level"), "warn");
	assert_string_equal(member(tree, "event"), "event");
	assert_string_equal(member(tree, "text"), "two words");
	assert_string_equal(member(tree, "n"), "3");
	assert_string_equal(member(tree, "s"), "a \"b\" \\ c");
	assert_string_equal(member(tree, "bad"), "?\xc3\xa4");
	assert_string_equal(member(tree, "kernel"), "k1");
	assert_int_equal(strlen(member(tree, "time")), 27);
	cJSON_Delete(tree);
}

TEST(log, level_words)
{
	enum log_level level = LOG_ERROR;
	assert_true(log_level_parse("debug", &level));
	assert_int_equal(level, LOG_DEBUG);
	assert_false(log_level_parse("loud", &level));
	assert_int_equal(level, LOG_DEBUG);
}

RUN(TEST_ROW(log, values_of_every_kind), TEST_ROW(log, a_value_cannot_forge_a_line),
	TEST_ROW(log, level_and_missing_sink), TEST_ROW(log, children_carry_context),
	TEST_ROW(log, long_lines_are_cut), TEST_ROW(log, json_lines), TEST_ROW(log, level_words))
