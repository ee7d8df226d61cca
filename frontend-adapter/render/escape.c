/* Text within HTML and XML: one escape that is right in both, as text and within double quotes. */
#include "frontend-adapter/render/render.h"

#include <string.h>

static const char *name_of(unsigned char c)
{
	switch (c) {
	case '<':
		return "&lt;";
	case '>':
		return "&gt;";
	case '&':
		return "&amp;";
	case '"':
		return "&quot;";
	case '\'':
		return "&#39;";
	case '`':
		return "&#96;";
	default:
		return c < 0x20 && c != '\n' && c != '\t' && c != '\r' ? "\xef\xbf\xbd" : NULL;
	}
}

/* Bytes of the UTF-8 character at `at`, which XML allows; 0: none. */
static size_t utf8_len(const unsigned char *at, size_t len)
{
	static const unsigned char first[] = {0, 0x80, 0xc2, 0xe0, 0xf0};
	size_t n = at[0] < 0x80 ? 1 : at[0] < 0xe0 ? 2 : at[0] < 0xf0 ? 3 : 4;
	if (n == 1)
		return 1;
	if (at[0] < first[n] || at[0] > 0xf4 || len < n)
		return 0;
	for (size_t i = 1; i < n; i++)
		if ((at[i] & 0xc0) != 0x80)
			return 0;
	if ((at[0] == 0xe0 && at[1] < 0xa0) || (at[0] == 0xed && at[1] > 0x9f))
		return 0;
	if ((at[0] == 0xf0 && at[1] < 0x90) || (at[0] == 0xf4 && at[1] > 0x8f))
		return 0;
	return at[0] == 0xef && at[1] == 0xbf && at[2] >= 0xbe ? 0 : n;
}

void escape_text(struct buf *out, const char *text, size_t len)
{
	const unsigned char *data = (const unsigned char *)text;
	size_t from = 0, n;
	for (size_t i = 0; i < len; i += n) {
		size_t step = utf8_len(data + i, len - i);
		const char *name = step == 0 ? "\xef\xbf\xbd" : step == 1 ? name_of(data[i]) : NULL;
		n = step ? step : 1;
		if (!name)
			continue;
		(void)buf_add(out, text + from, i - from); /* latched, as below */
		(void)buf_add_text(out, name);
		from = i + n;
	}
	if (len > from)
		(void)buf_add(out, text + from, len - from);
}
