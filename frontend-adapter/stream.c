#include "frontend-adapter/stream.h"

#include <string.h>

#include "frontend-adapter/plain.h"

#define LINE_MAX (32u << 10) /* a longer one is no progress bar */

void stream_init(struct stream *s)
{
	*s = (struct stream){0};
	buf_init(&s->head, STREAM_HALF);
	buf_init(&s->tail, 4 * STREAM_HALF + 2 * LINE_MAX);
	buf_init(&s->line, 2 * LINE_MAX);
}

void stream_done(struct stream *s)
{
	buf_done(&s->head);
	buf_done(&s->tail);
	buf_done(&s->line);
}

/* Bytes of a character's JSON; cJSON writes \n and its like with two, others of C0 with six. */
static size_t cost_of(uint8_t c)
{
	if (c == '"' || c == '\\' || (c >= 8 && c <= 13 && c != 11))
		return 2;
	return c < 0x20 ? 6 : 1;
}

/* How much of the beginning costs no more than max; *ret_cost: what it costs. */
static size_t fits(struct bytes text, size_t max, size_t *ret_cost)
{
	size_t n = 0;
	*ret_cost = 0;
	while (n < text.len && *ret_cost + cost_of(text.data[n]) <= max)
		*ret_cost += cost_of(text.data[n++]);
	return n < text.len ? plain_boundary((const char *)text.data, n) : n;
}

/* Where the end begins that costs no more than max. */
static size_t tail_begins(struct bytes text, size_t max)
{
	size_t cost = 0, at = text.len;
	while (at > 0 && cost + cost_of(text.data[at - 1]) <= max)
		cost += cost_of(text.data[--at]);
	while (at > 0 && at < text.len && (text.data[at] & 0xc0) == 0x80)
		at++;
	return at;
}

static void add(struct stream *s, struct buf *b, const void *data, size_t len)
{
	if (buf_add(b, data, len) != 0)
		s->lost = true; /* nothing but memory: each has the room that it needs */
}

static void drop_front(struct buf *b, size_t n)
{
	memmove(b->data, b->data + n, b->len - n);
	b->len -= n;
	b->data[b->len] = '\0';
}

/* What is final. */
static void emit(struct stream *s, struct bytes text)
{
	if (text.len == 0)
		return;
	if (!s->full) {
		size_t cost, n = fits(text, STREAM_HALF - s->head_cost, &cost);
		add(s, &s->head, text.data, n);
		s->head_cost += cost;
		s->full = n < text.len;
		text.data += n;
		text.len -= n;
	}
	add(s, &s->tail, text.data, text.len);
	if (s->tail.len <= 2 * STREAM_HALF)
		return;
	size_t at = tail_begins((struct bytes){s->tail.data, s->tail.len}, STREAM_HALF);
	s->left_out += at;
	drop_front(&s->tail, at);
}

static void emit_line(struct stream *s)
{
	emit(s, (struct bytes){s->line.data, s->line.len});
	buf_reset(&s->line);
}

static void add_piece(struct stream *s, struct bytes piece)
{
	while (piece.len > 0) {
		size_t n = piece.len < LINE_MAX ? piece.len : LINE_MAX;
		add(s, &s->line, piece.data, n);
		piece.data += n;
		piece.len -= n;
		if (s->line.len >= LINE_MAX)
			emit_line(s);
	}
}

static void fold(struct stream *s, struct bytes text)
{
	for (size_t at = 0; at < text.len;) {
		uint8_t c = text.data[at];
		if (c == '\r') {
			s->returned = true;
			at++;
			continue;
		}
		if (s->returned && c != '\n')
			buf_reset(&s->line);
		s->returned = false;
		const uint8_t *end = text.data + at;
		while (end < text.data + text.len && *end != '\r' && *end != '\n')
			end++;
		bool ends = end < text.data + text.len && *end == '\n';
		size_t len = (size_t)(end - text.data) - at + (ends ? 1 : 0);
		add_piece(s, (struct bytes){text.data + at, len});
		if (ends)
			emit_line(s);
		at += len;
	}
}

size_t stream_add(struct stream *s, struct bytes text)
{
	size_t cost = 0, n = s->untold ? 0 : fits(text, STREAM_HALF - s->told, &cost);
	s->bytes += text.len;
	s->told += cost;
	fold(s, (struct bytes){text.data, n});
	if (!s->untold && n < text.len) {
		s->untold = true;
		s->head_at = s->head.len;
	}
	fold(s, (struct bytes){text.data + n, text.len - n});
	return n;
}

static void add_mark(struct buf *b, uint64_t left_out)
{
	if (left_out > 0)
		(void)buf_addf(b, "\n[... %llu bytes left out: the log has them ...]\n",
			(unsigned long long)left_out); /* latched */
}

/* Tail and last line. */
static void join(const struct stream *s, struct buf *ret)
{
	buf_init(ret, s->tail.len + s->line.len);
	(void)buf_add(ret, s->tail.data, s->tail.len); /* fits */
	(void)buf_add(ret, s->line.data, s->line.len);
}

uint64_t stream_left_out(const struct stream *s)
{
	AUTO(buf_done) struct buf all;
	join(s, &all);
	return s->left_out + tail_begins((struct bytes){all.data, all.len}, STREAM_HALF);
}

static void add_tail(struct buf *b, const struct stream *s)
{
	AUTO(buf_done) struct buf all;
	join(s, &all);
	if (all.failed) {
		b->failed = true;
		b->code = all.code;
	}
	struct bytes text = {all.data, all.len};
	size_t at = tail_begins(text, STREAM_HALF);
	add_mark(b, s->left_out + at);
	(void)buf_add(b, text.data + at, text.len - at); /* latched */
}

/* NULL: out of memory. */
static char *take(struct buf *b)
{
	if (!b->failed)
		return (char *)buf_take(b, NULL);
	buf_done(b);
	return NULL;
}

char *stream_text(const struct stream *s)
{
	struct buf b;
	buf_init(&b, 4 * STREAM_HALF);
	(void)buf_add(&b, s->head.data, s->head.len); /* latched */
	add_tail(&b, s);
	return take(&b);
}

int stream_rest(const struct stream *s, char **ret)
{
	struct buf b;
	*ret = NULL;
	if (!s->untold)
		return 0;
	buf_init(&b, 4 * STREAM_HALF);
	if (s->head.len > s->head_at)
		(void)buf_add(
			&b, s->head.data + s->head_at, s->head.len - s->head_at); /* latched */
	add_tail(&b, s);
	*ret = take(&b);
	return *ret ? 0 : E_NOMEM;
}
