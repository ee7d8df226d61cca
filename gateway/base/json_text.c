#include "gateway/base/json.h"

#include <string.h>

#include "gateway/base/json_chars.h"

static size_t put_utf8(uint32_t code, uint8_t out[4])
{
	if (code < 0x80) {
		out[0] = (uint8_t)code;
		return 1;
	}
	if (code < 0x800) {
		out[0] = (uint8_t)(0xc0 | (code >> 6));
		out[1] = (uint8_t)(0x80 | (code & 0x3f));
		return 2;
	}
	if (code < 0x10000) {
		out[0] = (uint8_t)(0xe0 | (code >> 12));
		out[1] = (uint8_t)(0x80 | ((code >> 6) & 0x3f));
		out[2] = (uint8_t)(0x80 | (code & 0x3f));
		return 3;
	}
	out[0] = (uint8_t)(0xf0 | (code >> 18));
	out[1] = (uint8_t)(0x80 | ((code >> 12) & 0x3f));
	out[2] = (uint8_t)(0x80 | ((code >> 6) & 0x3f));
	out[3] = (uint8_t)(0x80 | (code & 0x3f));
	return 4;
}

bool json_text(struct bytes raw, char *ret_text, size_t size)
{
	if (raw.len < 2 || raw.data[0] != '"' || raw.data[raw.len - 1] != '"' || size == 0)
		return false;
	const uint8_t *at = raw.data + 1, *end = raw.data + raw.len - 1;
	size_t len = 0;
	while (at < end) {
		const uint8_t *from = at;
		uint8_t out[4];
		size_t n;
		at = json_skip_plain(at, end);
		if (at > from) {
			n = (size_t)(at - from);
		} else if (*at == '\\') {
			uint32_t code = 0;
			size_t used = json_escape_len(at, end, &code);
			if (used == 0 || code == 0 || json_is_surrogate(code))
				return false;
			at += used;
			n = put_utf8(code, out);
			from = out;
		} else {
			n = json_utf8_len(at, end); /* 0 for quotes and control characters too */
			at += n;
		}
		if (n == 0 || n >= size - len)
			return false;
		memcpy(ret_text + len, from, n);
		len += n;
	}
	ret_text[len] = '\0';
	return true;
}

/* A backslash stands in strings only, with its partner behind it. */
void json_replace_nul(uint8_t *data, size_t len)
{
	for (size_t i = 0; i + 1 < len; i++) {
		if (data[i] != '\\')
			continue;
		if (len - i >= 6 && memcmp(data + i, "\\u0000", 6) == 0)
			memcpy(data + i, "\\ufffd", 6);
		i++;
	}
}

bool json_is_utf8(const char *text)
{
	const uint8_t *at = (const uint8_t *)text, *end = at + strlen(text);
	while (at < end) {
		size_t len = *at < 0x80 ? 1 : json_utf8_len(at, end);
		if (len == 0)
			return false;
		at += len;
	}
	return true;
}
