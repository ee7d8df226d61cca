/* Characters that Python takes in strings and comments only. Where they stand elsewhere the code
 * cannot be read, so nothing that works is touched. */
#include <string.h>

#include "frontend-adapter/mend_rules.h"

static void copy(struct buf *ret, const uint8_t *from, const uint8_t *to)
{
	(void)buf_add(ret, from, (size_t)(to - from)); /* latched */
}

static bool is_word(const uint8_t *at, const uint8_t *end)
{
	char ascii;
	size_t len;
	if (at >= end)
		return false;
	if (*at >= 0x80)
		return py_stray_at(at, end, &ascii, &len) == PY_STRAY_NONE;
	return *at == '_' || (*at >= '0' && *at <= '9') ||
	       ((*at | 0x20) >= 'a' && (*at | 0x20) <= 'z');
}

/* Where the string ends that a smart quote of that kind began before at: the first such quote, or
 * the plain one, without a letter after it. NULL: none in the line, or the plain quote is inside.
 */
static const uint8_t *find_close(
	const uint8_t *at, const uint8_t *end, enum py_stray kind, size_t *ret_len)
{
	uint8_t plain = kind == PY_STRAY_DOUBLE ? '"' : '\'';
	for (; at < end && *at != '\n'; at++) {
		char ascii;
		if (*at == plain) {
			*ret_len = 1;
			return is_word(at + 1, end) ? NULL : at;
		}
		if (*at == '\\' && at + 1 < end && at[1] != '\n')
			at++;
		else if (py_stray_at(at, end, &ascii, ret_len) == kind &&
			 !is_word(at + *ret_len, end))
			return at;
	}
	return NULL;
}

/* The last smart quote of that kind in an open string: it was meant to end it. */
static const uint8_t *find_last(struct bytes string, enum py_stray kind)
{
	const uint8_t *found = NULL, *end = string.data + string.len;
	for (const uint8_t *at = string.data; at < end; at++) {
		char ascii;
		size_t len;
		if (py_stray_at(at, end, &ascii, &len) == kind)
			found = at;
	}
	return found;
}

/* t is a smart quote. Returns where to go on. */
static const uint8_t *straighten(
	struct buf *ret, const struct py_token *t, const uint8_t *end, enum py_stray kind)
{
	const char *plain = kind == PY_STRAY_DOUBLE ? "\"" : "'";
	const uint8_t *from = t->text.data + t->text.len;
	size_t len;
	const uint8_t *close = find_close(from, end, kind, &len);
	(void)buf_add_text(ret, plain); /* latched */
	if (!close)
		return from;
	copy(ret, from, close);
	(void)buf_add_text(ret, plain); /* latched */
	return close + len;
}

static enum py_stray quote_of(const struct py_token *t)
{
	const uint8_t *at = t->text.data;
	while (*at != '"' && *at != '\'')
		at++;
	return *at == '"' ? PY_STRAY_DOUBLE : PY_STRAY_SINGLE;
}

void mend_quotes(struct bytes code, struct buf *ret)
{
	struct py_lexer lx;
	struct py_token t;
	const uint8_t *done = code.data;
	py_begin(&lx, code);
	while (py_next(&lx, &t)) {
		char ascii;
		size_t len;
		enum py_stray kind = PY_STRAY_NONE;
		const uint8_t *last = NULL;
		if (t.kind == PY_STRAY)
			kind = py_stray_at(t.text.data, lx.end, &ascii, &len);
		else if (t.kind == PY_STRING && t.open && !t.triple)
			last = find_last(t.text, quote_of(&t));
		if (kind == PY_STRAY_DOUBLE || kind == PY_STRAY_SINGLE) {
			copy(ret, done, t.text.data);
			done = lx.at = straighten(ret, &t, lx.end, kind);
		} else if (last) {
			copy(ret, done, last);
			(void)buf_add_text(
				ret, quote_of(&t) == PY_STRAY_DOUBLE ? "\"" : "'"); /* latched */
			done = lx.at = last + 3; /* each of these quotes has three bytes */
		}
	}
	copy(ret, done, lx.end);
}

void mend_spaces(struct bytes code, struct buf *ret)
{
	struct py_lexer lx;
	struct py_token t;
	const uint8_t *done = code.data;
	py_begin(&lx, code);
	while (py_next(&lx, &t)) {
		char ascii = 0;
		size_t len;
		if (t.kind != PY_STRAY)
			continue;
		enum py_stray kind = py_stray_at(t.text.data, lx.end, &ascii, &len);
		if (kind == PY_STRAY_DOUBLE || kind == PY_STRAY_SINGLE)
			continue;
		copy(ret, done, t.text.data);
		(void)buf_add(ret, &ascii, ascii != 0); /* latched */
		done = t.text.data + t.text.len;
		lx.fresh = t.first; /* a magic may follow blanks */
		if (kind == PY_STRAY_SIGN && ascii == '(')
			lx.depth++;
		else if (kind == PY_STRAY_SIGN && ascii == ')' && lx.depth > 0)
			lx.depth--;
	}
	copy(ret, done, lx.end);
}
