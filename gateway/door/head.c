#include "gateway/door/head.h"

#include <string.h>

#include "gateway/base/json.h"
#include "gateway/base/json_chars.h"

#define CHANNEL_MAX 32

void head_init(struct head *h, enum framing framing)
{
	*h = (struct head){.framing = framing, .to = UINT64_MAX};
	buf_init(&h->v1, HEAD_MAX);
	buf_init(&h->header, HEAD_MAX);
	buf_init(&h->channel, CHANNEL_MAX);
}

void head_done(struct head *h)
{
	buf_done(&h->v1);
	buf_done(&h->header);
	buf_done(&h->channel);
}

/* ---- legacy: one pass over JSON that nobody has validated ---- */

/* A member twice: the last one counts, as everywhere. */
static void value_begins(struct head *h)
{
	bool is_header = h->key_len == 6 && memcmp(h->key, "header", 6) == 0;
	bool is_channel = h->key_len == 7 && memcmp(h->key, "channel", 7) == 0;
	h->into = is_header ? &h->header : is_channel ? &h->channel : NULL;
	if (h->into)
		buf_reset(h->into);
}

static void keep(struct head *h, const uint8_t *from, size_t len)
{
	if (h->into)
		(void)buf_add(h->into, from, len); /* one too long is latched, and then not used */
	if (h->depth != 1 || !h->wants_key || !h->in_string)
		return;
	for (size_t i = 0; i < len; i++, h->key_len++)
		if (h->key_len < sizeof h->key)
			h->key[h->key_len] = (char)from[i];
}

/* Inside a string; returns how many bytes were used. */
static size_t step_string(struct head *h, const uint8_t *at, const uint8_t *end)
{
	const uint8_t *next = json_skip_plain(at, end);
	if (h->escaped || next == at) {
		next = at + 1;
		if (!h->escaped && *at == '"')
			h->in_string = false;
		h->escaped = !h->escaped && *at == '\\';
	}
	keep(h, at, (size_t)(next - at));
	return (size_t)(next - at);
}

static void open_container(struct head *h, uint8_t c)
{
	h->depth++;
	h->wants_key = h->depth == 1 && c == '{';
}

static void step_outside(struct head *h, uint8_t c)
{
	bool ends = h->depth == 1 && (c == ',' || c == '}');
	if (ends)
		h->into = NULL;
	keep(h, &c, 1);
	if (c == '"') {
		h->in_string = true;
		h->key_len = h->wants_key ? 0 : h->key_len;
	} else if (c == '{' || c == '[') {
		open_container(h, c);
	} else if ((c == '}' || c == ']') && h->depth > 0) {
		h->depth--;
	} else if (c == ':' && h->depth == 1) {
		h->wants_key = false;
		value_begins(h);
	} else if (ends) {
		h->wants_key = true;
	}
}

static void add_json(struct head *h, const uint8_t *at, const uint8_t *end)
{
	while (at < end) {
		if (h->in_string)
			at += step_string(h, at, end);
		else
			step_outside(h, *at++);
	}
}

static uint64_t get_u32(const uint8_t *at)
{
	return (uint64_t)at[0] << 24 | (uint64_t)at[1] << 16 | (uint64_t)at[2] << 8 | at[3];
}

/* Format B: the count of parts, then where each begins; the first is the JSON. */
static size_t add_prefix(struct head *h, struct bytes data)
{
	size_t used = 0;
	while (h->at + used < sizeof h->prefix && used < data.len) {
		h->prefix[h->at + used] = data.data[used];
		used++;
	}
	if (h->at + used < sizeof h->prefix)
		return used;
	h->from = get_u32(h->prefix + 4);
	h->to = get_u32(h->prefix) > 1 ? get_u32(h->prefix + 8) : UINT64_MAX;
	return used;
}

static void add_legacy(struct head *h, struct bytes data)
{
	size_t used = 0;
	if (h->at == 0)
		h->prefix[0] = data.data[0];
	if (h->prefix[0] == 0 && h->at < sizeof h->prefix)
		used = add_prefix(h, data);
	uint64_t at = h->at + used, end = h->at + data.len;
	uint64_t from = at > h->from ? at : h->from, to = end < h->to ? end : h->to;
	if (from < to)
		add_json(h, data.data + (from - h->at), data.data + (to - h->at));
}

void head_add(struct head *h, struct bytes data)
{
	size_t room = HEAD_MAX - h->v1.len;
	if (data.len == 0)
		return;
	if (h->framing == FRAMING_LEGACY)
		add_legacy(h, data);
	else
		(void)buf_add(&h->v1, data.data,
			data.len < room ? data.len : room); /* without memory nothing is found */
	h->at += data.len;
}

/* ---- what was found ---- */

static uint64_t get_u64(const uint8_t *at)
{
	uint64_t value = 0;
	for (unsigned i = 8; i-- > 0;)
		value = value << 8 | at[i];
	return value;
}

/* Slice i of the frame, if it is within what was kept: 0 the channel, 1 the header. */
static struct bytes v1_slice(const struct head *h, size_t i)
{
	if (h->v1.len < 8 * (i + 3))
		return (struct bytes){0};
	uint64_t from = get_u64(h->v1.data + 8 * (i + 1)), to = get_u64(h->v1.data + 8 * (i + 2));
	if (from > to || to > h->v1.len)
		return (struct bytes){0};
	return (struct bytes){h->v1.data + from, (size_t)(to - from)};
}

/* A value that was kept whole, without the blanks around it. */
static struct bytes kept(const struct buf *b)
{
	struct bytes raw = {b->data, b->failed ? 0 : b->len};
	while (raw.len > 0 && json_is_blank(raw.data[0])) {
		raw.data++;
		raw.len--;
	}
	while (raw.len > 0 && json_is_blank(raw.data[raw.len - 1]))
		raw.len--;
	return raw;
}

/* Shell is what most are on, and what one means who names none. */
static enum channel find_channel(const struct head *h)
{
	char name[CHANNEL_MAX] = "";
	struct bytes raw = h->framing == FRAMING_V1 ? v1_slice(h, 0) : kept(&h->channel);
	if (h->framing == FRAMING_LEGACY && json_text(raw, name, sizeof name))
		raw = (struct bytes){(const uint8_t *)name, strlen(name)};
	return channel_parse(raw) == CHANNEL_CONTROL ? CHANNEL_CONTROL : CHANNEL_SHELL;
}

int head_message(const struct head *h, struct jmsg **ret_msg, struct err *err)
{
	struct jmsg_source source = {.channel = find_channel(h)};
	source.part[PART_HEADER] = h->framing == FRAMING_V1 ? v1_slice(h, 1) : kept(&h->header);
	if (source.part[PART_HEADER].len == 0)
		return err_set(err, E_INVALID, "a message without a header that can be found");
	source.part[PART_CONTENT] = (struct bytes){(const uint8_t *)"{}", 2};
	return jmsg_new(&source, false, ret_msg, err);
}
