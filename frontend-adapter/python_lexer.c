/* Tokens. What is wrong is a token too: the text comes from a model. */
#include <string.h>

#include "frontend-adapter/python.h"

static bool is_digit(uint8_t c)
{
	return c >= '0' && c <= '9';
}

static bool is_letter(uint8_t c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

static bool is_name(uint8_t c)
{
	return c == '_' || c >= 0x80 || is_digit(c) || is_letter(c);
}

void py_begin(struct py_lexer *lx, struct bytes code)
{
	*lx = (struct py_lexer){.begin = code.data,
		.at = code.data,
		.end = code.len > 0 ? code.data + code.len : code.data,
		.fresh = true};
}

bool py_is(const struct py_token *t, const char *text)
{
	return bytes_equal(t->text, text);
}

static const uint8_t *line_end(const uint8_t *at, const uint8_t *end)
{
	const uint8_t *nl = at < end ? memchr(at, '\n', (size_t)(end - at)) : NULL;
	return nl ? nl : end;
}

struct stray {
	uint32_t from, to;
	enum py_stray kind;
	char ascii; /* 0: none; for fullwidth signs counted from `from` */
};

static const struct stray strays[] = {
	{0xa0, 0xa0, PY_STRAY_SPACE, ' '},
	{0xad, 0xad, PY_STRAY_NOTHING, 0},
	{0x2000, 0x200a, PY_STRAY_SPACE, ' '},
	{0x200b, 0x200f, PY_STRAY_NOTHING, 0},
	{0x2018, 0x201b, PY_STRAY_SINGLE, '\''},
	{0x201c, 0x201f, PY_STRAY_DOUBLE, '"'},
	{0x202f, 0x202f, PY_STRAY_SPACE, ' '},
	{0x205f, 0x205f, PY_STRAY_SPACE, ' '},
	{0x2060, 0x2060, PY_STRAY_NOTHING, 0},
	{0x2212, 0x2212, PY_STRAY_SIGN, '-'},
	{0x3000, 0x3000, PY_STRAY_SPACE, ' '},
	{0xfeff, 0xfeff, PY_STRAY_NOTHING, 0},
	{0xff08, 0xff09, PY_STRAY_SIGN, '('},
	{0xff0c, 0xff0c, PY_STRAY_SIGN, ','},
	{0xff1a, 0xff1b, PY_STRAY_SIGN, ':'},
	{0xff1d, 0xff1d, PY_STRAY_SIGN, '='},
};

/* Of text that is UTF-8: the caller made sure. */
static uint32_t code_point(const uint8_t *at, const uint8_t *end, size_t *ret_len)
{
	size_t len = at[0] >= 0xf0 ? 4 : at[0] >= 0xe0 ? 3 : at[0] >= 0xc0 ? 2 : 1;
	uint32_t code = len == 1 ? at[0] : at[0] & (0xffu >> (len + 1));
	if (len > (size_t)(end - at))
		len = (size_t)(end - at);
	for (size_t i = 1; i < len; i++)
		code = code << 6 | (at[i] & 0x3f);
	*ret_len = len;
	return code;
}

enum py_stray py_stray_at(const uint8_t *at, const uint8_t *end, char *ret_ascii, size_t *ret_len)
{
	if (at >= end || at[0] < 0xc0)
		return PY_STRAY_NONE;
	uint32_t code = code_point(at, end, ret_len);
	for (size_t i = 0; i < ARRAY_LEN(strays); i++) {
		if (code < strays[i].from || code > strays[i].to)
			continue;
		*ret_ascii = strays[i].kind == PY_STRAY_SIGN
				     ? (char)(strays[i].ascii + (char)(code - strays[i].from))
				     : strays[i].ascii;
		return strays[i].kind;
	}
	return PY_STRAY_NONE;
}

static bool is_stray(const uint8_t *at, const uint8_t *end)
{
	char ascii;
	size_t len;
	return py_stray_at(at, end, &ascii, &len) != PY_STRAY_NONE;
}

/* Letters before a quote that belong to the string: r, b, u, f, t and pairs of them. */
static size_t prefix_len(const uint8_t *at, const uint8_t *end)
{
	size_t n = 0;
	while (n < 3 && at + n < end && at[n] && strchr("rRbBuUfFtT", at[n]))
		n++;
	return n < 3 && at + n < end && (at[n] == '"' || at[n] == '\'') ? n : 0;
}

static const uint8_t *string_end(const uint8_t *at, const uint8_t *end, struct py_token *t)
{
	uint8_t quote = *at;
	t->triple = end - at >= 3 && at[1] == quote && at[2] == quote;
	size_t close = t->triple ? 3 : 1;
	for (at += close; at < end; at++) {
		if (*at == '\\' && at + 1 < end)
			at++;
		else if (*at == '\n' && !t->triple)
			break;
		else if (*at == quote &&
			 (!t->triple || (end - at >= 3 && at[1] == quote && at[2] == quote)))
			return at + close;
	}
	t->open = true;
	return at;
}

static const uint8_t *name_end(const uint8_t *at, const uint8_t *end)
{
	while (at < end && is_name(*at) && !is_stray(at, end))
		at++;
	return at;
}

static const uint8_t *number_end(const uint8_t *at, const uint8_t *end)
{
	bool hex = end - at > 1 && at[0] == '0' && (at[1] | 0x20) == 'x';
	for (at++; at < end; at++) {
		bool exponent = !hex && (at[-1] | 0x20) == 'e' && (*at == '+' || *at == '-');
		if (!exponent && *at != '.' && (!is_name(*at) || *at >= 0x80))
			break;
	}
	return at;
}

static const uint8_t *op_end(const uint8_t *at, const uint8_t *end)
{
	static const char *const longer[] = {"**=", "//=", ">>=", "<<=", "...",
		"!=", "==", "<=", ">=", "->",
		":=", "+=", "-=", "*=", "/=", "%=", "&=", "|=", "^=", "@=", "**", "//", ">>", "<<"};
	bool more = end - at > 1 && at[1] && strchr("=*/<>.", at[1]);
	for (size_t i = 0; more && i < ARRAY_LEN(longer); i++) {
		size_t len = strlen(longer[i]);
		if ((size_t)(end - at) >= len && memcmp(at, longer[i], len) == 0)
			return at + len;
	}
	return *at && strchr("+-*/%@&|^~<>()[]{},:.;=", *at) ? at + 1 : at;
}

/* Blanks, joined lines, and inside of brackets line ends. */
static const uint8_t *skip_blank(const struct py_lexer *lx)
{
	const uint8_t *at = lx->at;
	for (; at < lx->end; at++) {
		if (*at == '\\' && at + 1 < lx->end && at[1] == '\n')
			at++;
		else if (*at != ' ' && *at != '\t' && *at != '\f' &&
			 (*at != '\n' || lx->depth == 0))
			break;
	}
	return at;
}

static bool is_magic(const struct py_lexer *lx)
{
	uint8_t next = lx->at + 1 < lx->end ? lx->at[1] : 0;
	if (lx->depth > 0 || (!lx->fresh && !lx->assigned) || (*lx->at != '%' && *lx->at != '!'))
		return false;
	return next == '%' || next == '!' || is_letter(next) ||
	       (*lx->at == '!' && next && strchr(" ./~$", next));
}

static void bracket(struct py_lexer *lx)
{
	if (strchr("([{", *lx->at))
		lx->depth++;
	else if (strchr(")]}", *lx->at) && lx->depth > 0)
		lx->depth--;
}

static const uint8_t *scan(struct py_lexer *lx, struct py_token *t)
{
	const uint8_t *at = lx->at, *end = lx->end;
	size_t prefix = prefix_len(at, end);
	if (*at == '\n')
		return t->kind = PY_LINE, at + 1;
	if (*at == '#')
		return t->kind = PY_COMMENT, line_end(at, end);
	if (is_magic(lx))
		return t->kind = PY_MAGIC, line_end(at, end);
	if (at[prefix] == '"' || at[prefix] == '\'')
		return t->kind = PY_STRING, string_end(at + prefix, end, t);
	if (is_digit(*at) || (*at == '.' && end - at > 1 && is_digit(at[1])))
		return t->kind = PY_NUMBER, number_end(at, end);
	if (is_stray(at, end)) {
		size_t len;
		(void)code_point(at, end, &len); /* for its length */
		return t->kind = PY_STRAY, at + len;
	}
	if (is_name(*at))
		return t->kind = PY_NAME, name_end(at, end);
	const uint8_t *op = op_end(at, end);
	if (op > at) {
		bracket(lx);
		return t->kind = PY_OP, op;
	}
	t->kind = PY_OTHER;
	for (op = at + 1; *at == '`' && op < end && *op == '`';)
		op++;
	return op;
}

bool py_next(struct py_lexer *lx, struct py_token *ret)
{
	const uint8_t *before = lx->at;
	*ret = (struct py_token){.kind = PY_END, .first = lx->fresh};
	if (before == lx->end)
		return false;
	lx->at = skip_blank(lx);
	if (lx->at == lx->end)
		return false;
	ret->spaced = lx->at > before;
	const uint8_t *start = lx->at;
	lx->at = scan(lx, ret);
	ret->text = (struct bytes){start, (size_t)(lx->at - start)};
	if (ret->kind != PY_COMMENT)
		lx->fresh = ret->kind == PY_LINE ||
			    (ret->kind == PY_OP && *start == ';' && lx->depth == 0);
	lx->assigned = ret->kind == PY_OP && py_is(ret, "=");
	return true;
}

bool py_is_cell_magic(struct bytes code)
{
	size_t i = 0;
	while (i < code.len && code.data[i] && strchr(" \t\n", code.data[i]))
		i++;
	return code.len - i > 2 && code.data[i] == '%' && code.data[i + 1] == '%' &&
	       is_letter(code.data[i + 2]);
}

bool py_ends_in_string(struct bytes code)
{
	struct py_lexer lx;
	struct py_token t;
	bool open = false;
	py_begin(&lx, code);
	while (py_next(&lx, &t))
		open = t.kind == PY_LINE ? open : t.kind == PY_STRING && t.open;
	return open && !py_is_cell_magic(code);
}
