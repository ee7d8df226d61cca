#include "gateway/door/decode.h"

#include <string.h>

#include "gateway/base/json.h"

enum { WANT_HEADER, WANT_PARENT, WANT_METADATA, WANT_CONTENT, WANT_CHANNEL, WANT_BUFFERS, WANTS };

static uint32_t get_u32(const uint8_t *at)
{
	return (uint32_t)at[0] << 24 | (uint32_t)at[1] << 16 | (uint32_t)at[2] << 8 | at[3];
}

static uint64_t get_u64(const uint8_t *at)
{
	uint64_t value = 0;
	for (unsigned i = 8; i-- > 0;)
		value = value << 8 | at[i];
	return value;
}

static int check_channel(enum channel c, struct err *err)
{
	if (c == CHANNEL_COUNT)
		return err_set(err, E_FORBIDDEN, "no such channel");
	if (c == CHANNEL_IOPUB || c == CHANNEL_HB)
		return err_set(err, E_FORBIDDEN, "clients do not send on %s", channel_name(c));
	return 0;
}

/* Absent means shell: GatewayKernelClient and others name none. */
static int parse_channel(struct bytes raw, enum channel *ret, struct err *err)
{
	char name[16];
	if (raw.len == 0 || bytes_equal(raw, "null")) {
		*ret = CHANNEL_SHELL;
		return 0;
	}
	if (!json_text(raw, name, sizeof name))
		return err_set(err, E_FORBIDDEN, "no such channel");
	*ret = channel_parse((struct bytes){(const uint8_t *)name, strlen(name)});
	return check_channel(*ret, err);
}

/* Absent, {} and [] are all seen in the wild; buffers cannot travel as JSON. */
static bool holds_nothing(struct bytes raw)
{
	if (raw.len == 0 || bytes_equal(raw, "null"))
		return true;
	for (size_t i = 1; i + 1 < raw.len; i++)
		if (raw.data[i] > ' ')
			return false;
	return raw.data[0] == '[' || raw.data[0] == '{';
}

static int scan_json(struct bytes json, struct json_want wants[WANTS], struct err *err)
{
	static const char *const keys[WANTS] = {
		"header", "parent_header", "metadata", "content", "channel", "buffers"};
	for (unsigned i = 0; i < WANTS; i++)
		wants[i] = (struct json_want){.key = keys[i]};
	int status = json_scan(json, wants, WANTS, err);
	if (status != 0)
		return status;
	if (!json_is_object(json))
		return err_set(err, E_INVALID, "a message is a JSON object");
	return 0;
}

/* The parts stay the very bytes that came: no number passes through a double. */
static int decode_json(struct bytes json, const struct bytes *buffers, size_t n,
	struct jmsg **ret_msg, struct err *err)
{
	struct json_want wants[WANTS];
	struct jmsg_source source = {.buffers = buffers, .n_buffers = n};
	int status = scan_json(json, wants, err);
	if (status == 0)
		status = parse_channel(wants[WANT_CHANNEL].value, &source.channel, err);
	if (status != 0)
		return status;
	if (!holds_nothing(wants[WANT_BUFFERS].value))
		return err_set(err, E_FORBIDDEN, "buffers travel in binary frames only");
	for (unsigned i = 0; i < JMSG_PARTS; i++)
		source.part[i] = wants[WANT_HEADER + i].value;
	if (source.part[PART_CONTENT].len == 0)
		source.part[PART_CONTENT] = (struct bytes){(const uint8_t *)"{}", 2};
	return jmsg_new(&source, false, ret_msg, err);
}

/* The count of parts of a format B frame if every offset can be believed, else 0. */
static size_t checked_parts(struct bytes data)
{
	if (data.len < 4)
		return 0;
	uint64_t parts = get_u32(data.data), last = 4 * (parts + 1);
	if (parts < 2 || parts > JMSG_BUFFERS_MAX + 1 || last > data.len)
		return 0;
	if (get_u32(data.data + 4) != last)
		return 0;
	for (size_t i = 1; i <= parts; i++) {
		uint64_t offset = get_u32(data.data + 4 * i);
		if (offset < last || offset > data.len)
			return 0;
		last = offset;
	}
	return (size_t)parts;
}

static struct bytes part_of(struct bytes data, size_t parts, size_t i)
{
	size_t from = get_u32(data.data + 4 * (i + 1));
	size_t to = i + 1 < parts ? get_u32(data.data + 4 * (i + 2)) : data.len;
	return (struct bytes){data.data + from, to - from};
}

static int decode_parts(struct bytes data, struct jmsg **ret_msg, struct err *err)
{
	size_t parts = checked_parts(data);
	if (parts == 0)
		return err_set(err, E_INVALID, "a frame whose offsets are malformed");
	AUTO(freep) struct bytes *buffers = calloc(parts, sizeof *buffers);
	if (!buffers)
		return err_set(err, E_NOMEM, "a message's buffers: out of memory");
	for (size_t i = 1; i < parts; i++)
		buffers[i - 1] = part_of(data, parts, i);
	return decode_json(part_of(data, parts, 0), buffers, parts - 1, ret_msg, err);
}

/* The kind is in the first byte, not in the frame's type: Jupyter Server's proxy sends format B on
 * in text frames (wire-contract 1.14.2). A JSON text cannot begin with NUL. */
static int decode_legacy(struct bytes data, struct jmsg **ret_msg, struct err *err)
{
	if (data.len > 0 && data.data[0] == 0)
		return decode_parts(data, ret_msg, err);
	return decode_json(data, NULL, 0, ret_msg, err);
}

/* A frame that jmsg_from_frame() would call malformed for its channel gets a reason of its own. */
static int check_v1_channel(struct bytes f, struct err *err)
{
	if (f.len < 24)
		return 0;
	uint64_t from = get_u64(f.data + 8), to = get_u64(f.data + 16);
	if (from > to || to > f.len)
		return 0;
	return check_channel(
		channel_parse((struct bytes){f.data + from, (size_t)(to - from)}), err);
}

static int decode_v1(const struct inbound *in, struct jmsg **ret_msg, struct err *err)
{
	if (!in->binary)
		return err_set(err, E_FORBIDDEN, "text frames were not negotiated");
	AUTO(jmsg_unrefp) struct jmsg *m = NULL;
	int status = check_v1_channel(in->data, err);
	if (status == 0)
		status = jmsg_from_frame(in->data, &m, err);
	if (status == 0)
		*ret_msg = TAKE(m);
	return status;
}

int decode_message(const struct inbound *in, struct jmsg **ret_msg, struct err *err)
{
	if (in->framing == FRAMING_V1)
		return decode_v1(in, ret_msg, err);
	return decode_legacy(in->data, ret_msg, err);
}

unsigned decode_close_code(int code)
{
	switch (code) {
	case E_INVALID:
		return CLOSE_DATA;
	case E_TOO_BIG:
		return CLOSE_TOO_BIG;
	case E_NOMEM:
		return CLOSE_TROUBLE;
	default:
		return CLOSE_POLICY;
	}
}
