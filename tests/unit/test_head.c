/* The header of a message that is not kept, wherever it stands and however it was cut. */
#include "gateway/door/head.h"

#include <stdio.h>
#include <string.h>

#include "tests/lib/test.h"

#define HEADER "{\"msg_id\":\"m1\",\"msg_type\":\"execute_request\",\"x\":[\"},{\\\"\\\\\"]}"
#define CONTENT                                                                                    \
	"{\"code\":\"\\\"header\\\":{}\\\\\",\"header\":{\"msg_id\":\"no\",\"msg_type\":\"no\"}}"

/* In pieces of that length; NULL if none was found. */
static struct jmsg *find(enum framing framing, const void *data, size_t len, size_t piece)
{
	struct head h;
	struct jmsg *m = NULL;
	head_init(&h, framing);
	for (size_t at = 0; at < len; at += piece)
		head_add(&h, (struct bytes){(const uint8_t *)data + at,
				     len - at < piece ? len - at : piece});
	int status = head_message(&h, &m, NULL);
	assert_int_equal(status, m ? 0 : E_INVALID);
	head_done(&h);
	return m;
}

static void check(const char *json, enum channel channel)
{
	for (size_t piece = 1; piece <= strlen(json); piece++) {
		struct jmsg *m = find(FRAMING_LEGACY, json, strlen(json), piece);
		if (!m)
			fail_msg("not found in %s by pieces of %zu", json, piece);
		assert_string_equal(m->msg_id, "m1");
		assert_true(bytes_equal(m->part[PART_HEADER], HEADER));
		assert_int_equal(m->channel, channel);
		jmsg_unref(m);
	}
}

TEST(head, stands_anywhere_in_the_text)
{
	check("{\"header\":" HEADER ",\"content\":" CONTENT "}", CHANNEL_SHELL);
	check("{\"content\":" CONTENT ",\"header\":" HEADER "}", CHANNEL_SHELL);
	check(" { \"content\" : " CONTENT " , \"channel\" : \"control\" , \"header\" : " HEADER
	      " }",
		CHANNEL_CONTROL);
	check("{\"buffers\":[{\"header\":1},\"header\"],\"channel\":null,\"header\":" HEADER "}",
		CHANNEL_SHELL);
	check("{\"header\":{},\"a\\\"\":1,\"header\":" HEADER ",\"channel\":[\"control\"]}",
		CHANNEL_SHELL);
}

static void refuse(const char *json)
{
	assert_null(find(FRAMING_LEGACY, json, strlen(json), 3));
}

TEST(head, is_not_taken_from_elsewhere)
{
	refuse("{\"content\":" CONTENT "}");
	refuse("{\"header\":{\"msg_id\":\"m1\",\"msg_ty");
	refuse("[\"header\"," HEADER "]");
	refuse("{\"header\":\""
	       "x\"}");
	refuse("{\"headers\":" HEADER "}");
	refuse("]]]}}}\"");
	refuse("");
}

TEST(head, that_is_too_long_is_not_kept)
{
	struct buf b;
	buf_init(&b, 4 * HEAD_MAX);
	assert_int_equal(buf_add_text(&b, "{\"header\":{\"a\":\""), 0);
	for (unsigned i = 0; i < 2 * HEAD_MAX; i++)
		assert_int_equal(buf_add(&b, "y", 1), 0);
	assert_int_equal(buf_add_text(&b, "\"},\"channel\":\"shell\"}"), 0);
	assert_null(find(FRAMING_LEGACY, b.data, b.len, 4096));
	buf_done(&b);
}

static size_t put_parts(uint8_t *to, const char *json, size_t buffer)
{
	size_t len = strlen(json), end = 12 + len;
	const uint8_t head[12] = {0, 0, 0, 2, 0, 0, 0, 12, 0, 0, (uint8_t)(end >> 8), (uint8_t)end};
	memcpy(to, head, sizeof head);
	memcpy(to + 12, json, len);
	memset(to + end, '"', buffer);
	return end + buffer;
}

TEST(head, stands_in_the_first_part_of_a_binary_frame)
{
	static const char json[] = "{\"content\":" CONTENT ",\"header\":" HEADER "}";
	uint8_t data[1024];
	size_t len = put_parts(data, json, 100);
	for (size_t piece = 1; piece <= len; piece++) {
		struct jmsg *m = find(FRAMING_LEGACY, data, len, piece);
		assert_non_null(m);
		assert_string_equal(m->msg_id, "m1");
		jmsg_unref(m);
	}
	/* What follows the JSON is none. */
	len = put_parts(data, "{}", 0);
	memcpy(data + len, json, sizeof json);
	assert_null(find(FRAMING_LEGACY, data, len + sizeof json, 7));
}

static struct jmsg *a_message(enum channel channel)
{
	struct jmsg *m = NULL;
	struct jmsg_source source = {.channel = channel};
	source.part[PART_HEADER] = (struct bytes){(const uint8_t *)HEADER, strlen(HEADER)};
	source.part[PART_CONTENT] = (struct bytes){(const uint8_t *)"{}", 2};
	assert_int_equal(jmsg_new(&source, false, &m, NULL), 0);
	return m;
}

TEST(head, stands_at_the_beginning_of_a_v1_frame)
{
	struct jmsg *m = a_message(CHANNEL_CONTROL);
	for (size_t piece = 1; piece <= m->frame.len; piece++) {
		struct jmsg *head = find(FRAMING_V1, m->frame.data, m->frame.len, piece);
		assert_non_null(head);
		assert_string_equal(head->msg_id, "m1");
		assert_int_equal(head->channel, CHANNEL_CONTROL);
		jmsg_unref(head);
	}
	assert_null(find(FRAMING_V1, m->frame.data, 70, 10));
	assert_null(find(FRAMING_V1, m->frame.data, 20, 10));
	jmsg_unref(m);
}

RUN(TEST_ROW(head, stands_anywhere_in_the_text), TEST_ROW(head, is_not_taken_from_elsewhere),
	TEST_ROW(head, that_is_too_long_is_not_kept),
	TEST_ROW(head, stands_in_the_first_part_of_a_binary_frame),
	TEST_ROW(head, stands_at_the_beginning_of_a_v1_frame))
