#include "gateway/door/encode.h"

#include <string.h>

static void add_part(struct buf *b, const char *key, struct bytes part)
{
	/* Every result is in the buffer's latch. */
	(void)buf_addf(b, ",\"%s\":", key);
	(void)buf_add(b, part.data, part.len);
}

static void add_text(struct buf *b, const char *key, const char *text)
{
	/* Every result is in the buffer's latch. */
	(void)buf_addf(b, ",\"%s\":", key);
	(void)buf_add_json_string(b, text, strlen(text));
}

/* The members but for buffers and the closing brace. msg_id and msg_type stand at the top too:
 * GatewayKernelClient and Enterprise Gateway's client read them there. */
static void add_members(struct buf *b, const struct jmsg *m)
{
	(void)buf_addf(b, "{\"channel\":\"%s\"", channel_name(m->channel)); /* latched */
	add_part(b, "header", m->part[PART_HEADER]);
	add_text(b, "msg_id", m->msg_id);
	add_text(b, "msg_type", m->msg_type);
	add_part(b, "parent_header", m->part[PART_PARENT]);
	add_part(b, "metadata", m->part[PART_METADATA]);
	add_part(b, "content", m->part[PART_CONTENT]);
}

static size_t rough_len(const struct jmsg *m)
{
	return JMSG_HEADROOM + m->frame.len + strlen(m->msg_id) + strlen(m->msg_type) + 160;
}

int encode_text(const struct jmsg *m, struct buf *ret, struct err *err)
{
	(void)buf_reserve(ret, rough_len(m)); /* latched */
	add_members(ret, m);
	(void)buf_add_text(ret, ",\"buffers\":[]}"); /* latched */
	return buf_check(ret, "a message as text", err);
}

static void put_u32(uint8_t *at, size_t value)
{
	at[0] = (uint8_t)(value >> 24);
	at[1] = (uint8_t)(value >> 16);
	at[2] = (uint8_t)(value >> 8);
	at[3] = (uint8_t)value;
}

/* Format B: count, offsets, JSON, buffers. The offsets are filled in when all lengths are known. */
static int encode_parts(const struct jmsg *m, struct buf *b, struct err *err)
{
	static const uint8_t zeros[4];
	size_t parts = m->n_buffers + 1, start = b->len;
	for (size_t i = 0; i <= parts; i++)
		(void)buf_add(b, zeros, sizeof zeros); /* latched */
	add_members(b, m);
	(void)buf_add_text(b, "}"); /* latched */
	size_t at = b->len - start;
	for (size_t i = 0; i < m->n_buffers; i++)
		(void)buf_add(b, m->buffers[i].data, m->buffers[i].len); /* latched */
	int status = buf_check(b, "a message with buffers", err);
	if (status != 0)
		return status;
	uint8_t *offset = b->data + start;
	put_u32(offset, parts);
	put_u32(offset + 4, 4 * (parts + 1));
	for (size_t i = 0; i < m->n_buffers; i++) {
		put_u32(offset + 8 + 4 * i, at);
		at += m->buffers[i].len;
	}
	return 0;
}

static int build_legacy(struct entry *e, struct err *err)
{
	static const uint8_t headroom[JMSG_HEADROOM];
	AUTO(buf_done) struct buf b;
	buf_init(&b, (size_t)JMSG_FRAME_MAX + JMSG_FRAME_MAX / 2);
	(void)buf_reserve(&b, rough_len(e->msg));     /* latched */
	(void)buf_add(&b, headroom, sizeof headroom); /* latched */
	bool binary = e->msg->n_buffers > 0;
	int status = binary ? encode_parts(e->msg, &b, err) : encode_text(e->msg, &b, err);
	if (status != 0)
		return status;
	size_t len = 0;
	uint8_t *data = buf_take(&b, &len);
	entry_keep_legacy(e, (struct bytes){data + JMSG_HEADROOM, len - JMSG_HEADROOM}, binary);
	return 0;
}

int encode_entry(struct entry *e, enum framing framing, struct outbound *ret, struct err *err)
{
	if (framing == FRAMING_V1) {
		*ret = (struct outbound){true, e->msg->frame};
		return 0;
	}
	if (!e->legacy.data) {
		int status = build_legacy(e, err);
		if (status != 0)
			return status;
	}
	*ret = (struct outbound){e->legacy_binary, e->legacy};
	return 0;
}
