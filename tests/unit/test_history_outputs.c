#include <stdio.h>
#include <string.h>
#include <cjson/cJSON.h>

#include "gateway/base/json.h"
#include "history/outputs.h"
#include "tests/lib/test.h"

static struct bytes of(const char *text)
{
	return (struct bytes){(const uint8_t *)text, strlen(text)};
}

static void say(struct outputs *o, const char *type, const char *content)
{
	assert_int_equal(json_scan(of(content), NULL, 0, NULL), 0);
	assert_int_equal(outputs_message(o, type, of(content), NULL), 0);
}

static int no_file(void *data, const char *name, struct buf *ret, struct err *err)
{
	(void)data;
	(void)ret;
	return err_set(err, E_NOT_FOUND, "%s", name);
}

/* What is read back; o is spent. The caller frees. */
static char *read_back(struct outputs *o)
{
	struct outputs_counts counts;
	AUTO(buf_done) struct buf stored, shown;
	buf_init(&stored, OUTPUTS_STORED_MAX);
	buf_init(&shown, OUTPUTS_STORED_MAX);
	assert_int_equal(outputs_write(o, &stored, &counts, NULL), 0);
	struct bytes json = {stored.data, stored.len};
	assert_int_equal(json_scan(json, NULL, 0, NULL), 0);
	assert_int_equal(outputs_expand(json, no_file, NULL, &shown, NULL), 0);
	assert_int_equal(json_scan((struct bytes){shown.data, shown.len}, NULL, 0, NULL), 0);
	outputs_free(o);
	return (char *)buf_take(&shown, NULL);
}

static void assert_shown(struct outputs *o, const char *expected)
{
	char *shown = read_back(o);
	assert_string_equal(shown, expected);
	free(shown);
}

#define STREAM(name, text)                                                                         \
	"{\"output_type\":\"stream\",\"name\":\"" name "\",\"text\":\"" text "\"}"
#define SHOW(data) "{\"output_type\":\"display_data\",\"data\":" data ",\"metadata\":{}}"

TEST(outputs, streams_of_one_name_are_merged_until_something_else_comes)
{
	struct outputs *o = outputs_new();
	say(o, "stream", "{\"name\":\"stdout\",\"text\":\"a\\n\"}");
	say(o, "stream", "{\"name\":\"stdout\",\"text\":\"b\"}");
	say(o, "stream", "{\"name\":\"stderr\",\"text\":\"e\"}");
	say(o, "stream", "{\"name\":\"stdout\",\"text\":\"\"}");
	say(o, "stream", "{\"name\":\"stderr\",\"text\":\"f\"}");
	say(o, "stream", "{\"name\":\"stdout\",\"text\":\"c\\n\"}");
	assert_shown(o, "[" STREAM("stdout", "a\\nb") "," STREAM("stderr", "ef") "," STREAM(
				"stdout", "c\\n") "]");
}

TEST(outputs, an_escaped_backslash_before_n_is_no_line)
{
	struct outputs *o = outputs_new();
	say(o, "stream", "{\"name\":\"stdout\",\"text\":\"c:\\\\new\\n\\n\\u0041\\\\\"}");
	assert_shown(o, "[" STREAM("stdout", "c:\\\\new\\n\\n\\u0041\\\\") "]");
}

TEST(outputs, numbers_pass_as_they_were_sent)
{
	struct outputs *o = outputs_new();
	say(o, "display_data",
		"{\"data\":{\"application/json\":{\"n\":12345678901234567890.10}},\"metadata\":"
		"{\"x\":1e400},\"transient\":{}}");
	say(o, "execute_result",
		"{\"execution_count\":7,\"data\":{\"text/plain\":\"1\\n2\"},\"metadata\":{}}");
	assert_shown(o, "[{\"output_type\":\"display_data\",\"data\":{\"application/json\":"
			"{\"n\":12345678901234567890.10}},\"metadata\":{\"x\":1e400}},"
			"{\"output_type\":\"execute_result\",\"execution_count\":7,"
			"\"data\":{\"text/plain\":\"1\\n2\"},\"metadata\":{}}]");
}

TEST(outputs, an_error_keeps_its_traceback)
{
	struct outputs *o = outputs_new();
	say(o, "error", "{\"ename\":\"E\",\"evalue\":\"v\",\"traceback\":[\"a\",\"b\\n\"]}");
	say(o, "error", "{\"ename\":7,\"traceback\":[\"a\",{}]}");
	assert_shown(o,
		"[{\"output_type\":\"error\",\"ename\":\"E\",\"evalue\":\"v\",\"traceback\":["
		"\n\"a\",\n\"b\\n\"]},"
		"{\"output_type\":\"error\",\"ename\":\"\",\"evalue\":\"\",\"traceback\":[]}]");
}

TEST(outputs, clear_takes_all_and_waits_if_it_is_asked_to)
{
	struct outputs *o = outputs_new();
	say(o, "stream", "{\"name\":\"stdout\",\"text\":\"1\"}");
	say(o, "clear_output", "{\"wait\":true}");
	say(o, "stream", "{\"name\":\"stdout\",\"text\":\"2\"}");
	say(o, "stream", "{\"name\":\"stdout\",\"text\":\"3\"}");
	say(o, "clear_output", "{\"wait\":false}");
	say(o, "stream", "{\"name\":\"stdout\",\"text\":\"4\"}");
	say(o, "clear_output", "{\"wait\":true}"); /* nothing comes: nothing is cleared */
	assert_shown(o, "[" STREAM("stdout", "4") "]");
}

TEST(outputs, an_update_changes_each_output_of_its_display)
{
	struct outputs *o = outputs_new();
	say(o, "display_data",
		"{\"data\":{\"text/plain\":\"0\"},\"metadata\":{},\"transient\":{\"display_id\":"
		"\"p\"}}");
	say(o, "stream", "{\"name\":\"stdout\",\"text\":\"x\"}");
	say(o, "display_data",
		"{\"data\":{\"text/plain\":\"0\"},\"metadata\":{},\"transient\":{\"display_id\":"
		"\"p\"}}");
	for (int i = 1; i <= 100000; i++) {
		char content[128];
		(void)snprintf(content, sizeof content,
			"{\"data\":{\"text/"
			"plain\":\"%d\"},\"metadata\":{},\"transient\":{\"display_"
			"id\":\"p\"}}",
			i);
		assert_int_equal(outputs_message(o, "update_display_data", of(content), NULL), 0);
	}
	say(o, "display_data",
		"{\"data\":{\"text/plain\":\"new\"},\"metadata\":{},\"transient\":{\"display_id\":"
		"\"p\"}}");
	say(o, "update_display_data",
		"{\"data\":{},\"metadata\":{},\"transient\":{\"display_id\":\"other\"}}");
	assert_shown(
		o, "[" SHOW("{\"text/plain\":\"100000\"}") "," STREAM("stdout", "x") "," SHOW(
			   "{\"text/plain\":\"100000\"}") "," SHOW("{\"text/plain\":\"new\"}") "]");
}

/* ---- binary data ---- */

struct kept {
	unsigned n;
	char name[OUTPUTS_NAME_SIZE];
	size_t len;
};

static int keep(void *data, const char *name, struct bytes content, struct err *err)
{
	struct kept *k = data;
	(void)err;
	k->n++;
	(void)snprintf(k->name, sizeof k->name, "%s", name);
	k->len = content.len;
	return 0;
}

static struct kept show_picture(const char *type, const char *text)
{
	struct outputs *o = outputs_new();
	struct kept k = {0};
	struct outputs_counts counts;
	AUTO(buf_done) struct buf content, stored;
	buf_init(&content, 1 << 20);
	buf_init(&stored, 1 << 20);
	(void)buf_addf(&content, "{\"data\":{\"%s\":\"%s\"},\"metadata\":{}}", type, text);
	say(o, "display_data", (char *)content.data);
	assert_int_equal(outputs_files(o, keep, &k, NULL), 0);
	assert_int_equal(outputs_write(o, &stored, &counts, NULL), 0);
	assert_true(k.n == 0 ? stored.len > 8000 : stored.len < 200);
	outputs_free(o);
	return k;
}

TEST(outputs, large_binary_data_is_a_file_beside_if_it_comes_back_the_same)
{
	static char text[8201];
	memset(text, 'A', 8000);
	struct kept k = show_picture("image/png", text);
	assert_int_equal(k.n, 1);
	assert_string_equal(k.name, "out-1.png");
	assert_int_equal(k.len, 6000);
	assert_int_equal(show_picture("text/html", text).n, 0);
	strcpy(text + 8000, "\\n");
	assert_int_equal(show_picture("image/jpeg", text).n, 1);
	strcpy(text + 8000, "A");
	assert_int_equal(show_picture("image/png", text).n, 0); /* not a multiple of 4 */
	strcpy(text + 8000, "AB==");
	assert_int_equal(show_picture("image/png", text).n, 0); /* bits left over */
	strcpy(text + 8000, "A*==");
	assert_int_equal(show_picture("image/png", text).n, 0);
	text[4000] = ' ';
	strcpy(text + 8000, "");
	assert_int_equal(show_picture("image/png", text).n, 0);
}

TEST(outputs, what_looks_like_a_file_but_is_none_stays)
{
	struct outputs *o = outputs_new();
	say(o, "display_data",
		"{\"data\":{\"image/png\":{\"coppice-file\":\"out-1.png\"},"
		"\"image/gif\":{\"coppice-file\":\"../../HEAD\"}},\"metadata\":{}}");
	assert_shown(o, "[" SHOW("{\"image/png\":{\"coppice-file\":\"out-1.png\"},"
				 "\"image/gif\":{\"coppice-file\":\"../../HEAD\"}}") "]");
}

/* ---- loaded again ---- */

TEST(outputs, what_was_stored_can_be_amended)
{
	struct outputs *o = outputs_new(), *later = outputs_new();
	struct outputs_counts counts;
	AUTO(buf_done) struct buf stored, displays;
	buf_init(&stored, 1 << 20);
	buf_init(&displays, 1 << 20);
	say(o, "display_data",
		"{\"data\":{\"text/plain\":\"0\"},\"metadata\":{},\"transient\":{\"display_id\":"
		"\"p\\n\"}}");
	say(o, "stream", "{\"name\":\"stdout\",\"text\":\"a\\nb\"}");
	assert_int_equal(outputs_write(o, &stored, &counts, NULL), 0);
	assert_int_equal(counts.stdout_bytes, 3);
	assert_int_equal(outputs_displays(o, &displays, NULL), 0);
	outputs_free(o);
	assert_int_equal(outputs_load(later, (struct bytes){stored.data, stored.len},
				 (struct bytes){displays.data, displays.len}, NULL),
		0);
	assert_false(outputs_changed(later));
	assert_true(outputs_has_display(later, "p\\n"));
	say(later, "stream", "{\"name\":\"stdout\",\"text\":\"c\"}");
	say(later, "update_display_data",
		"{\"data\":{\"text/plain\":\"1\"},\"metadata\":{},\"transient\":{\"display_id\":"
		"\"p\\n\"}}");
	assert_true(outputs_changed(later));
	assert_shown(later, "[" SHOW("{\"text/plain\":\"1\"}") "," STREAM("stdout", "a\\nbc") "]");
}

/* ---- hostile ---- */

TEST(outputs, contents_of_no_shape_are_taken_as_little)
{
	static const char *const types[] = {"stream", "display_data", "execute_result", "error",
		"clear_output", "update_display_data", "comm_msg"};
	static const char *const contents[] = {"{}", "{\"data\":[],\"metadata\":7}",
		"{\"name\":{},\"text\":[\"x\"]}", "{\"transient\":{\"display_id\":{}}}",
		"{\"data\":{\"\":null},\"metadata\":{},\"execution_count\":1e3}", "{\"wait\":0}"};
	struct outputs *o = outputs_new();
	for (size_t t = 0; t < ARRAY_LEN(types); t++)
		for (size_t c = 0; c < ARRAY_LEN(contents); c++)
			say(o, types[t], contents[c]);
	char *shown = read_back(o);
	free(shown);
}

TEST(outputs, a_million_small_ones_take_a_moment)
{
	struct outputs *o = outputs_new();
	for (int i = 0; i < 1000000; i++)
		assert_int_equal(outputs_message(o, "stream",
					 of(i % 2 ? "{\"name\":\"stdout\",\"text\":\"o\\n\"}"
						  : "{\"name\":\"stderr\",\"text\":\"e\\n\"}"),
					 NULL),
			0);
	char *shown = read_back(o);
	assert_true(strlen(shown) > 40000000);
	free(shown);
}

TEST(outputs, what_does_not_fit_is_counted_and_said)
{
	struct outputs *o = outputs_new();
	size_t len = 60u << 20;
	char *content = malloc(len + 100);
	assert_non_null(content);
	int head = sprintf(content, "{\"name\":\"stdout\",\"text\":\"");
	memset(content + head, 'x', len);
	strcpy(content + head + len, "\"}");
	for (int i = 0; i < 3; i++)
		assert_int_equal(outputs_message(o, "stream", of(content), NULL), 0);
	free(content);
	say(o, "stream", "{\"name\":\"stderr\",\"text\":\"small\"}");
	char *shown = read_back(o);
	assert_non_null(strstr(shown, "small"));
	assert_non_null(strstr(shown, "[coppice: 1 more outputs of 62914688 bytes are not in"));
	assert_true(strlen(shown) > 120u << 20 && strlen(shown) < (120u << 20) + 1000);
	free(shown);
}

RUN(TEST_ROW(outputs, streams_of_one_name_are_merged_until_something_else_comes),
	TEST_ROW(outputs, an_escaped_backslash_before_n_is_no_line),
	TEST_ROW(outputs, numbers_pass_as_they_were_sent),
	TEST_ROW(outputs, an_error_keeps_its_traceback),
	TEST_ROW(outputs, clear_takes_all_and_waits_if_it_is_asked_to),
	TEST_ROW(outputs, an_update_changes_each_output_of_its_display),
	TEST_ROW(outputs, large_binary_data_is_a_file_beside_if_it_comes_back_the_same),
	TEST_ROW(outputs, what_looks_like_a_file_but_is_none_stays),
	TEST_ROW(outputs, what_was_stored_can_be_amended),
	TEST_ROW(outputs, contents_of_no_shape_are_taken_as_little),
	TEST_ROW(outputs, a_million_small_ones_take_a_moment),
	TEST_ROW(outputs, what_does_not_fit_is_counted_and_said))
