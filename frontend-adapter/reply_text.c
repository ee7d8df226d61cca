#include "frontend-adapter/reply_text.h"

#include <string.h>
#include <strings.h>

#include "gateway/base/json_chars.h"

#define REPLACEMENT "\xef\xbf\xbd"

struct bytes bytes_cut(struct bytes b, size_t from, size_t to)
{
	return (struct bytes){b.len > 0 ? b.data + from : b.data, to - from};
}

static bool is_trimmed(uint8_t c)
{
	return c && strchr(TRIMMED, c);
}

struct bytes bytes_trim(struct bytes b)
{
	while (b.len > 0 && is_trimmed(b.data[b.len - 1]))
		b.len--;
	while (b.len > 0 && is_trimmed(b.data[0])) {
		b.data++;
		b.len--;
	}
	return b;
}

/* Bytes of the character at at that can be copied as they are; 0: none can. */
static size_t good_len(const uint8_t *at, const uint8_t *end)
{
	if (*at >= 0x80)
		return json_utf8_len(at, end);
	return *at != '\0' && *at != '\r';
}

int reply_clean(struct bytes text, struct buf *ret, bool *ret_crs, struct err *err)
{
	const uint8_t *at = text.data, *end = at + text.len, *from;
	*ret_crs = false;
	if (text.len >= 3 && memcmp(at, "\xef\xbb\xbf", 3) == 0)
		at += 3;
	while (at < end) {
		size_t len;
		for (from = at; at < end && (len = good_len(at, end)) > 0;)
			at += len;
		(void)buf_add(ret, from, (size_t)(at - from)); /* latched, looked at below */
		if (at == end)
			break;
		bool cr = *at == '\r';
		*ret_crs |= cr;
		if (!cr)
			(void)buf_add_text(ret, REPLACEMENT); /* latched */
		else if (at + 1 == end || at[1] != '\n')
			(void)buf_add(ret, "\n", 1); /* latched */
		at++;
	}
	return buf_check(ret, "text", err) == 0 ? 0 : ret->code;
}

static const char *const names[] = {"think", "thinking", "thought", "thoughts", "reasoning"};

/* Length of <name> or </name> at at, 0 if none is there. */
static size_t tag_len(struct bytes text, size_t at, bool closing, const char *name)
{
	char tag[16];
	size_t len = 0, name_len = strlen(name);
	tag[len++] = '<';
	if (closing)
		tag[len++] = '/';
	memcpy(tag + len, name, name_len);
	len += name_len;
	tag[len++] = '>';
	bool there =
		text.len - at >= len && strncasecmp((const char *)text.data + at, tag, len) == 0;
	return there ? len : 0;
}

static const char *tag_at(struct bytes text, size_t at, bool closing, size_t *ret_len)
{
	for (size_t i = 0; i < ARRAY_LEN(names); i++)
		if ((*ret_len = tag_len(text, at, closing, names[i])) > 0)
			return names[i];
	return NULL;
}

static size_t find_byte(struct bytes text, size_t from, size_t to, uint8_t c)
{
	const uint8_t *at = from < to ? memchr(text.data + from, c, to - from) : NULL;
	return at ? (size_t)(at - text.data) : to;
}

static bool stands_alone(struct bytes text, size_t at, size_t end)
{
	return at == 0 || text.data[at - 1] == '\n' || end == text.len || text.data[end] == '\n';
}

/* After the closing tag. One at the beginning or end of a line counts before one amid a line, which
 * a draft may only mention. */
static size_t thought_end(struct bytes text, size_t from, const char *name)
{
	size_t amid = text.len;
	for (size_t at = find_byte(text, from, text.len, '<'); at < text.len;
		at = find_byte(text, at + 1, text.len, '<')) {
		size_t len = tag_len(text, at, true, name);
		if (len > 0 && stands_alone(text, at, at + len))
			return at + len;
		if (len > 0 && amid == text.len)
			amid = at + len;
	}
	return amid;
}

static bool begins_line(struct bytes text, size_t at)
{
	while (at > 0 && (text.data[at - 1] == ' ' || text.data[at - 1] == '\t'))
		at--;
	return at == 0 || text.data[at - 1] == '\n';
}

bool thought_find(struct bytes text, size_t from, size_t to, struct thought *ret)
{
	for (size_t at = find_byte(text, from, to, '<'); at < to;
		at = find_byte(text, at + 1, to, '<')) {
		size_t len;
		const char *name = tag_at(text, at, false, &len);
		if (name && begins_line(text, at)) {
			*ret = (struct thought){at, thought_end(text, at + len, name), false};
			return true;
		}
		if (tag_at(text, at, true, &len) && begins_line(text, at)) {
			*ret = (struct thought){at, at + len, true};
			return true;
		}
	}
	return false;
}
