/* Rewrites what a kernel got wrong, in one pass that never looks back. What is beyond that is
 * copied as it is, for the scan at the end to refuse. */
#include "gateway/base/json.h"

#include <string.h>

#include "gateway/base/json_chars.h"

#define REPLACEMENT "\xef\xbf\xbd"

struct mend {
	const uint8_t *at, *end;
	struct buf *ret;
};

static void copy(struct mend *m, size_t len)
{
	(void)buf_add(m->ret, m->at, len); /* the latch is read at the end */
	m->at += len;
}

static void put(struct mend *m, const char *text, size_t used)
{
	(void)buf_add_text(m->ret, text); /* latched */
	m->at += used;
}

static void mend_control(struct mend *m)
{
	switch (*m->at) {
	case '\n':
		put(m, "\\n", 1);
		break;
	case '\r':
		put(m, "\\r", 1);
		break;
	case '\t':
		put(m, "\\t", 1);
		break;
	default:
		(void)buf_addf(m->ret, "\\u%04x", *m->at); /* latched */
		m->at++;
	}
}

static void mend_escape(struct mend *m)
{
	uint32_t code = 0;
	size_t len = json_escape_len(m->at, m->end, &code);
	if (len == 0) /* malformed: the character after the backslash is judged by itself */
		copy(m, 1);
	else if (json_is_surrogate(code))
		put(m, "\\ufffd", len);
	else
		copy(m, len);
}

/* at: the opening quote; past the closing one, or at the end, afterwards. */
static void mend_string(struct mend *m)
{
	copy(m, 1);
	while (m->at < m->end && !m->ret->failed) {
		copy(m, (size_t)(json_skip_plain(m->at, m->end) - m->at));
		if (m->at == m->end)
			return;
		if (*m->at == '"') {
			copy(m, 1);
			return;
		}
		if (*m->at == '\\') {
			mend_escape(m);
		} else if (*m->at < 0x20) {
			mend_control(m);
		} else {
			size_t len = json_utf8_len(m->at, m->end);
			if (len == 0)
				put(m, REPLACEMENT, 1);
			else
				copy(m, len);
		}
	}
}

/* What Python's json writes and takes although JSON has no such thing. */
static bool mend_word(struct mend *m)
{
	static const char *const words[] = {"NaN", "Infinity", "-Infinity"};
	for (size_t i = 0; i < ARRAY_LEN(words); i++) {
		size_t len = strlen(words[i]);
		if ((size_t)(m->end - m->at) >= len && memcmp(m->at, words[i], len) == 0) {
			put(m, "null", len);
			return true;
		}
	}
	return false;
}

static bool may_begin(uint8_t c)
{
	return c == '"' || c == 'N' || c == 'I' || c == '-';
}

int json_mend(struct bytes data, struct buf *ret, struct err *err)
{
	if (data.len == 0)
		return json_scan(data, NULL, 0, err);
	struct mend m = {.at = data.data, .end = data.data + data.len, .ret = ret};
	size_t from = ret->len;
	while (m.at < m.end && !ret->failed) {
		size_t run = 0, left = (size_t)(m.end - m.at);
		while (run < left && !may_begin(m.at[run]))
			run++;
		copy(&m, run);
		if (m.at == m.end)
			break;
		if (*m.at == '"')
			mend_string(&m);
		else if (!mend_word(&m))
			copy(&m, 1);
	}
	int status = buf_check(ret, "mended JSON", err);
	if (status != 0)
		return status;
	return json_scan((struct bytes){ret->data + from, ret->len - from}, NULL, 0, err);
}
