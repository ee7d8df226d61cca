#include "tests/lib/test.h"

#include <cjson/cJSON.h>
#include <string.h>

#include "gateway/door/encode.h"

static const char header[] = "{\"msg_id\":\"a\\\"b\",\"msg_type\":\"comm_msg\",\"session\":\"s\"}";
static const char content[] = "{\"n\":12345678901234567890.10}";

static struct bytes text(const char *s)
{
	return (struct bytes){(const uint8_t *)s, strlen(s)};
}

static struct entry *make(size_t n_buffers)
{
	static const uint8_t two[] = {0x00, 0xff};
	const struct bytes buffers[] = {{NULL, 0}, {two, 2}};
	struct jmsg *m = NULL;
	struct jmsg_source source = {.channel = CHANNEL_IOPUB, .buffers = buffers};
	source.n_buffers = n_buffers;
	source.part[PART_HEADER] = text(header);
	source.part[PART_CONTENT] = text(content);
	assert_int_equal(jmsg_new(&source, false, &m, NULL), 0);
	struct entry *e = entry_new(m, 1, JOURNAL_TO_ALL);
	jmsg_unref(m);
	return e;
}

static cJSON *parse(struct bytes b)
{
	cJSON *tree = cJSON_ParseWithLength((const char *)b.data, b.len);
	assert_non_null(tree);
	return tree;
}

static const char *member(const cJSON *tree, const char *key)
{
	return cJSON_GetStringValue(cJSON_GetObjectItem(tree, key));
}

TEST(encode, v1_is_the_frame_itself)
{
	struct outbound out;
	struct entry *e = make(2);
	assert_int_equal(encode_entry(e, FRAMING_V1, &out, NULL), 0);
	assert_true(out.binary);
	assert_ptr_equal(out.data.data, e->msg->frame.data);
	assert_null(e->legacy.data);
	entry_unref(e);
}

TEST(encode, without_buffers_legacy_is_a_text_with_ids_at_the_top)
{
	struct outbound out;
	struct entry *e = make(0);
	assert_int_equal(encode_entry(e, FRAMING_LEGACY, &out, NULL), 0);
	assert_false(out.binary);
	cJSON *tree = parse(out.data);
	assert_string_equal(member(tree, "channel"), "iopub");
	assert_string_equal(member(tree, "msg_id"), "a\"b");
	assert_string_equal(member(tree, "msg_type"), "comm_msg");
	assert_string_equal(member(cJSON_GetObjectItem(tree, "header"), "msg_id"), "a\"b");
	assert_true(cJSON_IsObject(cJSON_GetObjectItem(tree, "parent_header")));
	assert_true(cJSON_IsObject(cJSON_GetObjectItem(tree, "metadata")));
	assert_int_equal(cJSON_GetArraySize(cJSON_GetObjectItem(tree, "buffers")), 0);
	assert_true(cJSON_IsArray(cJSON_GetObjectItem(tree, "buffers")));
	cJSON_Delete(tree);
	entry_unref(e);
}

TEST(encode, content_keeps_every_digit)
{
	struct outbound out;
	struct entry *e = make(0);
	assert_int_equal(encode_entry(e, FRAMING_LEGACY, &out, NULL), 0);
	assert_non_null(memmem(out.data.data, out.data.len, content, strlen(content)));
	entry_unref(e);
}

TEST(encode, it_is_built_once_with_room_before_it)
{
	struct outbound first, second;
	struct entry *e = make(0);
	assert_int_equal(encode_entry(e, FRAMING_LEGACY, &first, NULL), 0);
	assert_int_equal(encode_entry(e, FRAMING_LEGACY, &second, NULL), 0);
	assert_ptr_equal(first.data.data, second.data.data);
	memset((uint8_t *)(uintptr_t)first.data.data - JMSG_HEADROOM, 0xaa, JMSG_HEADROOM);
	entry_unref(e);
}

static uint32_t u32(const uint8_t *at)
{
	return (uint32_t)at[0] << 24 | (uint32_t)at[1] << 16 | (uint32_t)at[2] << 8 | at[3];
}

TEST(encode, with_buffers_legacy_is_format_b)
{
	struct outbound out;
	struct entry *e = make(2);
	assert_int_equal(encode_entry(e, FRAMING_LEGACY, &out, NULL), 0);
	const uint8_t *at = out.data.data;
	assert_true(out.binary);
	assert_int_equal(u32(at), 3);
	assert_int_equal(u32(at + 4), 16);
	uint32_t second = u32(at + 8), third = u32(at + 12);
	assert_int_equal(second, third); /* the first buffer is empty */
	assert_int_equal(third + 2, out.data.len);
	assert_memory_equal(at + third, "\x00\xff", 2);
	cJSON *tree = parse((struct bytes){at + 16, second - 16});
	assert_string_equal(member(tree, "channel"), "iopub");
	assert_null(cJSON_GetObjectItem(tree, "buffers"));
	cJSON_Delete(tree);
	entry_unref(e);
}

TEST(encode, what_was_encoded_decodes_to_the_same)
{
	struct outbound out;
	struct jmsg *m = NULL;
	struct jmsg_source source = {.channel = CHANNEL_SHELL};
	source.part[PART_HEADER] = text(header);
	source.part[PART_CONTENT] = text(content);
	const struct bytes buffer = text("abc");
	source.buffers = &buffer;
	source.n_buffers = 1;
	assert_int_equal(jmsg_new(&source, false, &m, NULL), 0);
	struct entry *e = entry_new(m, 1, JOURNAL_TO_ALL);
	for (int framing = FRAMING_LEGACY; framing <= FRAMING_V1; framing++) {
		struct jmsg *again = NULL;
		assert_int_equal(encode_entry(e, (enum framing)framing, &out, NULL), 0);
		struct inbound in = {(enum framing)framing, out.binary, out.data};
		assert_int_equal(decode_message(&in, &again, NULL), 0);
		assert_int_equal(again->frame.len, m->frame.len);
		assert_memory_equal(again->frame.data, m->frame.data, m->frame.len);
		jmsg_unref(again);
	}
	entry_unref(e);
	jmsg_unref(m);
}

TEST(encode, text_alone_drops_the_buffers)
{
	struct buf b;
	struct entry *e = make(2);
	buf_init(&b, 1 << 20);
	assert_int_equal(encode_text(e->msg, &b, NULL), 0);
	cJSON *tree = parse((struct bytes){b.data, b.len});
	assert_int_equal(cJSON_GetArraySize(cJSON_GetObjectItem(tree, "buffers")), 0);
	cJSON_Delete(tree);
	buf_done(&b);
	entry_unref(e);
}

RUN(TEST_ROW(encode, v1_is_the_frame_itself),
	TEST_ROW(encode, without_buffers_legacy_is_a_text_with_ids_at_the_top),
	TEST_ROW(encode, content_keeps_every_digit),
	TEST_ROW(encode, it_is_built_once_with_room_before_it),
	TEST_ROW(encode, with_buffers_legacy_is_format_b),
	TEST_ROW(encode, what_was_encoded_decodes_to_the_same),
	TEST_ROW(encode, text_alone_drops_the_buffers))
