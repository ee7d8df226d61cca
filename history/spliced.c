#include "history/spliced.h"

#include <string.h>

static size_t skip_blank(struct bytes in, size_t at)
{
	while (at < in.len && strchr(" \t\r\n", in.data[at]) && in.data[at] != '\0')
		at++;
	return at;
}

/* Past the closing quote of the string that begins at `at`: the first one with an even number of
 * backslashes before it. By memchr(), since this is where an output of megabytes is passed over. */
static size_t skip_string(struct bytes in, size_t at)
{
	for (size_t i = at + 1; i < in.len;) {
		const uint8_t *quote = memchr(in.data + i, '"', in.len - i);
		if (!quote)
			break;
		size_t end = (size_t)(quote - in.data), slashes = 0;
		while (end - slashes > i && in.data[end - slashes - 1] == '\\')
			slashes++;
		if (slashes % 2 == 0)
			return end + 1;
		i = end + 1;
	}
	return in.len;
}

static size_t skip_nested(struct bytes in, size_t at)
{
	size_t depth = 0;
	while (at < in.len) {
		uint8_t c = in.data[at];
		if (c == '"') {
			at = skip_string(in, at);
			continue;
		}
		at++;
		if (c == '{' || c == '[')
			depth++;
		else if ((c == '}' || c == ']') && --depth == 0)
			return at;
	}
	return in.len;
}

static size_t skip_value(struct bytes in, size_t at)
{
	if (at >= in.len)
		return in.len;
	if (in.data[at] == '"')
		return skip_string(in, at);
	if (in.data[at] == '{' || in.data[at] == '[')
		return skip_nested(in, at);
	while (at < in.len && !strchr(",]} \t\r\n", in.data[at]))
		at++;
	return at;
}

/* At the first byte of the next item after `[`, `{` or `,`; false at the end. */
static bool next_item(struct bytes in, size_t *at, char open)
{
	size_t i = skip_blank(in, *at);
	bool first = *at == 0;
	if (i >= in.len || in.data[i] != (first ? open : ','))
		return false;
	i = skip_blank(in, i + 1);
	if (i >= in.len || in.data[i] == ']' || in.data[i] == '}')
		return false;
	*at = i;
	return true;
}

bool object_next(struct bytes object, size_t *at, struct member *ret_member)
{
	size_t i = *at;
	if (!next_item(object, &i, '{') || object.data[i] != '"')
		return false;
	size_t end = skip_string(object, i);
	ret_member->key = (struct bytes){object.data + i, end - i};
	i = skip_blank(object, end);
	if (i >= object.len || object.data[i] != ':')
		return false;
	i = skip_blank(object, i + 1);
	end = skip_value(object, i);
	ret_member->value = (struct bytes){object.data + i, end - i};
	*at = end;
	return true;
}

bool array_next(struct bytes array, size_t *at, struct bytes *ret_value)
{
	size_t i = *at;
	if (!next_item(array, &i, '['))
		return false;
	size_t end = skip_value(array, i);
	*ret_value = (struct bytes){array.data + i, end - i};
	*at = end;
	return end > i;
}

struct bytes object_find(struct bytes object, const char *key)
{
	struct bytes found = {0};
	struct member m;
	for (size_t at = 0; object_next(object, &at, &m);)
		if (bytes_equal(string_inside(m.key), key))
			found = m.value;
	return found;
}

static bool begins(struct bytes raw, char c)
{
	return raw.len > 0 && raw.data[0] == (uint8_t)c;
}

bool is_string(struct bytes raw)
{
	return raw.len >= 2 && begins(raw, '"');
}

bool is_object(struct bytes raw)
{
	size_t at = skip_blank(raw, 0);
	return at < raw.len && raw.data[at] == '{';
}

bool is_array(struct bytes raw)
{
	return begins(raw, '[');
}

struct bytes string_inside(struct bytes raw)
{
	return is_string(raw) ? (struct bytes){raw.data + 1, raw.len - 2} : (struct bytes){0};
}

static uint32_t hex4(const uint8_t *at)
{
	uint32_t code = 0;
	for (int i = 0; i < 4; i++) {
		uint8_t c = at[i];
		code = code << 4 | (uint32_t)(c <= '9' ? c - '0' : (c | 0x20) - 'a' + 10);
	}
	return code;
}

/* The character of the escape at `at` (its backslash); *at moves past it. */
static uint32_t read_escape(struct bytes in, size_t *at)
{
	static const char names[] = "b\bf\fn\nr\rt\t";
	uint8_t c = *at + 1 < in.len ? in.data[*at + 1] : '?';
	if (c != 'u' || *at + 6 > in.len) {
		*at += 2;
		for (const char *name = names; *name; name += 2)
			if ((uint8_t)*name == c)
				return (uint32_t)name[1];
		return c;
	}
	uint32_t code = hex4(in.data + *at + 2);
	*at += 6;
	if (code >= 0xd800 && code < 0xdc00 && *at + 6 <= in.len) {
		uint32_t low = hex4(in.data + *at + 2);
		*at += 6;
		code = 0x10000 + ((code - 0xd800) << 10) + (low - 0xdc00);
	}
	return code;
}

static size_t utf8_put(uint32_t code, uint8_t out[4])
{
	static const uint8_t lead[] = {0, 0, 0xc0, 0xe0, 0xf0};
	size_t n = code < 0x80 ? 1 : code < 0x800 ? 2 : code < 0x10000 ? 3 : 4;
	for (size_t i = n; i-- > 1; code >>= 6)
		out[i] = (uint8_t)(0x80 | (code & 0x3f));
	out[0] = (uint8_t)(lead[n > 1 ? n : 0] | code);
	return n;
}

int string_unescape(struct bytes raw, struct buf *ret_text)
{
	struct bytes in = string_inside(raw);
	size_t from = 0, at = 0;
	while (at < in.len) {
		const uint8_t *escape = memchr(in.data + at, '\\', in.len - at);
		at = escape ? (size_t)(escape - in.data) : in.len;
		(void)buf_add(ret_text, in.data + from, at - from); /* latched */
		if (!escape)
			break;
		uint8_t utf8[4];
		size_t n = utf8_put(read_escape(in, &at), utf8);
		(void)buf_add(ret_text, utf8, n); /* latched */
		from = at;
	}
	return ret_text->failed ? ret_text->code : 0;
}

uint64_t string_length(struct bytes inside)
{
	uint64_t length = 0;
	for (size_t at = 0; at < inside.len;) {
		uint8_t utf8[4];
		const uint8_t *escape = memchr(inside.data + at, '\\', inside.len - at);
		size_t plain = escape ? (size_t)(escape - inside.data) - at : inside.len - at;
		length += plain;
		at += plain;
		if (escape)
			length += utf8_put(read_escape(inside, &at), utf8);
	}
	return length;
}

bool number_u64(struct bytes raw, uint64_t *ret_number)
{
	uint64_t number = 0;
	if (raw.len == 0)
		return false;
	for (size_t i = 0; i < raw.len; i++) {
		uint64_t digit = (uint64_t)(raw.data[i] - '0');
		if (raw.data[i] < '0' || raw.data[i] > '9' || number > (UINT64_MAX - digit) / 10)
			return false;
		number = number * 10 + digit;
	}
	*ret_number = number;
	return true;
}
