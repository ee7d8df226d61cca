#include "tests/lib/test.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gateway/spine/blank.h"

#define SECRET "sk-4f1d9c77e0"
#define PARENT "{\"msg_id\":\"a\",\"msg_type\":\"execute_request\",\"session\":\"s\"}"

static struct jmsg *message(
	enum channel channel, const char *type, const char *parent, const char *content)
{
	char header[256];
	struct jmsg *m;
	struct bytes buffer = {(const uint8_t *)SECRET, strlen(SECRET)};
	int len = snprintf(header, sizeof header,
		"{\"msg_id\":\"m\",\"msg_type\":\"%s\",\"session\":\"s\"}", type);
	struct jmsg_source source = {.channel = channel, .buffers = &buffer, .n_buffers = 1};
	const char *part[JMSG_PARTS] = {header, parent, "{\"k\": \"" SECRET "\"}", content};
	for (unsigned i = 0; i < JMSG_PARTS; i++)
		source.part[i] = (struct bytes){(const uint8_t *)part[i], strlen(part[i])};
	source.part[PART_HEADER].len = (size_t)len;
	assert_int_equal(jmsg_new(&source, false, &m, NULL), 0);
	return m;
}

/* Content without what fills its place. */
static void assert_becomes(const char *type, const char *content, const char *expected)
{
	struct jmsg *m = message(CHANNEL_IOPUB, type, PARENT, content);
	assert_true(blank_concerns(m->frame, "a") && blank_concerns(m->frame, "m"));
	assert_false(blank_concerns(m->frame, "b"));
	struct jmsg *blank = blank_message(m);
	assert_non_null(blank);
	assert_int_equal(blank->frame.len, m->frame.len);
	assert_null(memmem(blank->frame.data, blank->frame.len, SECRET, strlen(SECRET)));
	struct bytes got = blank->part[PART_CONTENT];
	assert_int_equal(got.len, strlen(content));
	while (got.len > 0 && got.data[got.len - 1] == ' ')
		got.len--;
	if (!bytes_equal(got, expected))
		fail_msg("%s: %.*s", type, (int)got.len, (const char *)got.data);
	assert_string_equal(blank->msg_type, type);
	assert_string_equal(blank->parent_id, "a");
	jmsg_unref(blank);
	jmsg_unref(m);
}

TEST(blank, each_type_keeps_what_its_readers_need)
{
	assert_becomes("stream", "{\"name\": \"stderr\", \"text\": \"" SECRET "\"}",
		"{\"name\":\"stderr\",\"text\":\"\"}");
	assert_becomes("status", "{\"execution_state\": \"busy\", \"x\": \"" SECRET "\"}",
		"{\"execution_state\":\"busy\"}");
	assert_becomes("execute_request", "{\"code\": \"" SECRET "\", \"silent\": false}",
		"{\"code\":\"\"}");
	assert_becomes("execute_input", "{\"code\": \"" SECRET "\", \"execution_count\": 12}",
		"{\"code\":\"\",\"execution_count\":12}");
	assert_becomes("execute_result",
		"{\"data\": {\"text/plain\": \"" SECRET "\"}, \"metadata\": {}, "
		"\"execution_count\": 3}",
		"{\"data\":{},\"metadata\":{},\"execution_count\":3}");
	assert_becomes("update_display_data",
		"{\"data\": {\"" SECRET "\": 1}, \"metadata\": {}, \"transient\": {}}",
		"{\"data\":{},\"metadata\":{}}");
	assert_becomes("error",
		"{\"ename\": \"E\", \"evalue\": \"" SECRET "\", \"traceback\": [\"" SECRET "\"]}",
		"{\"ename\":\"\",\"evalue\":\"\",\"traceback\":[]}");
	assert_becomes("execute_reply",
		"{\"status\": \"error\", \"execution_count\": 2, \"ename\": \"E\", \"evalue\": "
		"\"" SECRET "\", \"traceback\": [\"" SECRET "\"]}",
		"{\"status\":\"error\",\"execution_count\":2,\"ename\":\"\",\"evalue\":\"\","
		"\"traceback\":[]}");
	assert_becomes("coppice_execution",
		"{\"msg_id\":\"a\",\"first\":17,\"epoch\":1790000000000000,\"status\":\"error\","
		"\"execution_count\":2,\"evalue\":\"" SECRET "\"}",
		"{\"first\":17,\"epoch\":1790000000000000,\"status\":\"error\","
		"\"execution_count\":2}");
	assert_becomes("input_request", "{\"prompt\": \"" SECRET " and more text\"}",
		"{\"prompt\":\"\",\"password\":false}");
	assert_becomes("comm_msg", "{\"comm_id\": \"c\", \"data\": {\"k\": \"" SECRET "\"}}",
		"{\"comm_id\":\"\",\"data\":{}}");
	assert_becomes("odd", "{\"data\": \"" SECRET "\"}", "{}");
}

/* A guest writes the words, too. */
TEST(blank, words_that_are_none_of_ours_go)
{
	assert_becomes("stream", "{\"name\": \"" SECRET "\", \"text\": \"\"}", "{}");
	assert_becomes("status", "{\"execution_state\": \"" SECRET "\"}", "{}");
	assert_becomes("execute_input",
		"{\"code\": \"xxxxxxxxxxx\", \"execution_count\": \"" SECRET "\"}",
		"{\"code\":\"\",\"execution_count\":0}");
	assert_becomes("execute_result", "{\"data\": \"" SECRET "\"}", "{}");
}

/* A process that was killed while it wrote over one left half of it. */
TEST(blank, half_a_content_is_blanked_all_the_same)
{
	struct jmsg *m = message(CHANNEL_IOPUB, "stream", PARENT,
		"{\"name\": \"stdout\", \"text\": \"" SECRET "\"}");
	uint8_t *copy = malloc(m->frame.len);
	size_t at = (size_t)(m->part[PART_CONTENT].data - m->frame.data);
	memcpy(copy, m->frame.data, m->frame.len);
	memset(copy + at, ' ', 20);
	assert_true(blank_concerns((struct bytes){copy, m->frame.len}, "a"));
	blank_frame(copy, m->frame.len);
	struct jmsg *blank;
	assert_int_equal(jmsg_from_frame((struct bytes){copy, m->frame.len}, &blank, NULL), 0);
	assert_null(memmem(copy, m->frame.len, SECRET, strlen(SECRET)));
	jmsg_unref(blank);
	jmsg_unref(m);
	free(copy);
}

TEST(blank, what_is_no_frame_is_nobodys)
{
	struct jmsg *m = message(CHANNEL_IOPUB, "stream", PARENT, "{\"name\": \"stdout\"}");
	for (size_t len = 0; len < m->frame.len; len++) {
		uint8_t *copy = malloc(len + 1);
		memcpy(copy, m->frame.data, len);
		(void)blank_concerns((struct bytes){copy, len}, "a");
		blank_frame(copy, len); /* the sanitizers look on */
		free(copy);
	}
	jmsg_unref(m);
}

RUN(TEST_ROW(blank, each_type_keeps_what_its_readers_need),
	TEST_ROW(blank, words_that_are_none_of_ours_go),
	TEST_ROW(blank, half_a_content_is_blanked_all_the_same),
	TEST_ROW(blank, what_is_no_frame_is_nobodys))
