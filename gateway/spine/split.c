#include "gateway/spine/split.h"

#include <string.h>

bool split_begin(struct split *s, const struct jmsg *m)
{
	if (m->part[PART_CONTENT].len <= SPLIT_TEXT_MAX || !stream_text_read(m, &s->rest))
		return false;
	s->msg = m;
	return s->rest.text.len > SPLIT_TEXT_MAX;
}

/* Of the escape at at, in a string that was scanned: a pair of surrogates is one character. */
static size_t escape_len(const uint8_t *at)
{
	if (at[1] != 'u')
		return 2;
	bool high = (at[2] | 0x20) == 'd' && strchr("89abAB", at[3]);
	return high ? 12 : 6;
}

/* text is longer than SPLIT_TEXT_MAX. */
static size_t cut_at(const uint8_t *text)
{
	size_t at = 0, line = 0;
	while (at < SPLIT_TEXT_MAX) {
		const uint8_t *slash = memchr(text + at, '\\', SPLIT_TEXT_MAX - at);
		size_t plain = slash ? (size_t)(slash - text) : SPLIT_TEXT_MAX;
		size_t len = slash ? escape_len(slash) : 0;
		at = plain;
		if (!slash || plain + len > SPLIT_TEXT_MAX)
			break;
		at += len;
		if (slash[1] == 'n')
			line = at;
	}
	if (line > 0)
		return line;
	while ((text[at] & 0xc0) == 0x80)
		at--;
	return at;
}

int split_next(struct split *s, struct jmsg **ret, struct err *err)
{
	struct stream_text piece = s->rest;
	if (s->rest.text.len == 0)
		return 0;
	if (piece.text.len > SPLIT_TEXT_MAX)
		piece.text.len = cut_at(piece.text.data);
	int rc = stream_text_make(s->msg, &piece, ret, err);
	if (rc != 0)
		return rc;
	s->rest.text.data += piece.text.len;
	s->rest.text.len -= piece.text.len;
	return 1;
}
