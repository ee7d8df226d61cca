#include "gateway/cli_plain.h"

#include <string.h>

#include "gateway/base/json_chars.h"

/* Past a sequence that begins with the escape at `at`: CSI, OSC and its kin up to their end, two
 * characters else. */
static const char *past_escape(const char *at, const char *end)
{
	at++;
	if (at == end)
		return end;
	if (*at == '[') {
		for (at++; at < end && *at >= ' ' && *at <= '?';)
			at++;
		return at < end && *at >= '@' && *at <= '~' ? at + 1 : at;
	}
	if (strchr("]PX^_", *at)) {
		for (at++; at < end && *at != '\a' && *at != '\n'; at++)
			if (*at == '\033')
				return at + 1 < end && at[1] == '\\' ? at + 2 : at;
		return at < end && *at == '\a' ? at + 1 : at;
	}
	while (at < end && *at >= ' ' && *at <= '/')
		at++;
	return at < end && *at >= '0' && *at <= '~' ? at + 1 : at;
}

static uint32_t code_of(const uint8_t *at, size_t len)
{
	uint32_t code = len == 2 ? at[0] & 0x1fu : len == 3 ? at[0] & 0x0fu : at[0] & 0x07u;
	for (size_t i = 1; i < len; i++)
		code = code << 6 | (at[i] & 0x3fu);
	return code;
}

/* C1, marks of direction, separators of lines, what is invisible by design. */
static bool is_steering(uint32_t code)
{
	return code < 0xa0 || code == 0x61c || (code >= 0x200b && code <= 0x200f) ||
	       (code >= 0x2028 && code <= 0x202e) || (code >= 0x2060 && code <= 0x206f) ||
	       code == 0xfeff || (code >= 0xfff9 && code <= 0xfffb) ||
	       (code >= 0xe0000 && code <= 0xe007f);
}

/* One character that is not ASCII; how long it is. */
static size_t add_wide(struct buf *b, const char *at, const char *end)
{
	const uint8_t *c = (const uint8_t *)at;
	size_t len = json_utf8_len(c, (const uint8_t *)end);
	if (len == 0 || is_steering(code_of(c, len)))
		(void)buf_add(b, "?", 1); /* latched, as below */
	else
		(void)buf_add(b, at, len);
	return len > 0 ? len : 1;
}

static void back_to_line(struct buf *b, size_t begin)
{
	while (b->len > begin && b->data[b->len - 1] != '\n')
		b->len--;
}

void cli_plain_add(struct buf *b, const char *text, size_t len)
{
	const char *at = text, *end = text + len;
	size_t begin = b->len;
	bool returned = false; /* what comes is written over the line */
	while (at < end && !b->failed) {
		if (*at == '\r') {
			returned = true;
			at++;
			continue;
		}
		if (returned && *at != '\n')
			back_to_line(b, begin);
		returned = false;
		if (*at == '\033') {
			at = past_escape(at, end);
		} else if ((uint8_t)*at >= 0x80) {
			at += add_wide(b, at, end);
		} else {
			bool fine = (*at >= ' ' && *at != 0x7f) || *at == '\n' || *at == '\t';
			(void)buf_add(b, fine ? at : "?", 1); /* latched */
			at++;
		}
	}
}

void cli_plain_line(struct buf *b, const char *text, size_t width)
{
	const char *end = text + strlen(text);
	while (text < end && width-- > 0) {
		if ((uint8_t)*text >= 0x80) {
			text += add_wide(b, text, end);
			continue;
		}
		bool blank = *text == '\n' || *text == '\t' || *text == '\r';
		bool fine = *text >= ' ' && *text != 0x7f;
		(void)buf_add(b, blank ? " " : fine ? text : "?", 1); /* latched */
		text++;
	}
}
