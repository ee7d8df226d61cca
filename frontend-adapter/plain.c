#include "frontend-adapter/plain.h"

#include <string.h>

#define BAD 0xfffdu

/* ECMA-48: ESC [ ... final, or ESC ] ... BEL, or ESC and one character; each of the first two also
 * by a character of its own (C1). A string that does not end ends with its line. */
enum state { TEXT, ESCAPE, CONTROL, STRING, STRING_ESCAPE };

/* The character at text, and how long it is; a byte that is none is BAD, one long. */
static size_t decode(struct bytes text, uint32_t *ret)
{
	static const uint32_t least[] = {0, 0, 0x80, 0x800, 0x10000};
	uint8_t lead = text.data[0];
	size_t len = lead < 0x80 ? 1 : lead >= 0xf0 ? 4 : lead >= 0xe0 ? 3 : lead >= 0xc0 ? 2 : 0;
	*ret = BAD;
	if (len == 1)
		*ret = lead;
	if (len <= 1 || len > text.len)
		return 1;
	uint32_t c = lead & (0x7fu >> len);
	for (size_t i = 1; i < len; i++) {
		if ((text.data[i] & 0xc0) != 0x80)
			return 1;
		c = c << 6 | (text.data[i] & 0x3f);
	}
	if (c < least[len] || c > 0x10ffff || (c >= 0xd800 && c < 0xe000))
		return 1;
	*ret = c;
	return len;
}

static enum state from_text(uint32_t c)
{
	if (c == 0x1b)
		return ESCAPE;
	if (c == 0x9b)
		return CONTROL;
	return c == 0x9d || c == 0x90 || c == 0x98 || c == 0x9e || c == 0x9f ? STRING : TEXT;
}

static enum state from_escape(uint32_t c)
{
	if (c == '[')
		return CONTROL;
	if (c == ']' || c == 'P' || c == 'X' || c == '^' || c == '_')
		return STRING;
	return c == 0x1b || (c >= 0x20 && c < 0x30) ? ESCAPE : TEXT;
}

/* *ret_again: c is not part of the sequence, which was broken off. */
static enum state next(enum state state, uint32_t c, bool *ret_again)
{
	*ret_again = false;
	switch (state) {
	case ESCAPE:
		*ret_again = c < 0x20 && c != 0x1b;
		return from_escape(c);
	case CONTROL:
		*ret_again = c < 0x20 || c > 0x7e;
		return *ret_again || c >= 0x40 ? TEXT : CONTROL;
	case STRING:
		*ret_again = c == '\n';
		if (c == 0x1b)
			return STRING_ESCAPE;
		return *ret_again || c == 7 || c == 0x9c ? TEXT : STRING;
	case STRING_ESCAPE:
		return c == '\\' ? TEXT : from_escape(c);
	case TEXT:
		break;
	}
	return from_text(c);
}

static bool is_shown(uint32_t c)
{
	return c >= 0x20 ? c < 0x7f || c > 0x9f : c == '\n' || c == '\t' || c == '\r';
}

void plain_add(struct buf *b, struct bytes text)
{
	enum state state = TEXT;
	while (text.len > 0) {
		uint32_t c;
		bool again;
		enum state before = state;
		size_t len = decode(text, &c);
		state = next(state, c, &again);
		if (again)
			before = TEXT, state = from_text(c);
		if (before == TEXT && state == TEXT && is_shown(c) && c == BAD && len == 1)
			(void)buf_add_text(b, "\xef\xbf\xbd"); /* latched, as below */
		else if (before == TEXT && state == TEXT && is_shown(c))
			(void)buf_add(b, text.data, len);
		text.data += len;
		text.len -= len;
	}
}

size_t plain_boundary(const char *text, size_t at)
{
	while (at > 0 && ((unsigned char)text[at] & 0xc0) == 0x80)
		at--;
	return at;
}

char *plain_cut(const char *text, size_t max)
{
	AUTO(buf_done) struct buf b;
	size_t len = strnlen(text, 4 * max);
	buf_init(&b, 16 * max + 64);
	plain_add(&b, (struct bytes){(const uint8_t *)text, len});
	if (b.len > max) {
		b.len = plain_boundary((const char *)b.data, max);
		b.data[b.len] = '\0';
	}
	return b.failed ? NULL : (char *)buf_take(&b, NULL);
}
