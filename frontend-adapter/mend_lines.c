/* Lines that mean something in a terminal or on a desktop, not in this kernel. */
#include <string.h>

#include "frontend-adapter/mend_rules.h"

static struct bytes take_line(struct bytes *text)
{
	const uint8_t *nl = memchr(text->data, '\n', text->len);
	struct bytes line = {text->data, nl ? (size_t)(nl - text->data) + 1 : text->len};
	*text = (struct bytes){text->data + line.len, text->len - line.len};
	return line;
}

static bool begins(struct bytes line, const char *with)
{
	size_t len = strlen(with);
	return line.len >= len && memcmp(line.data, with, len) == 0;
}

static struct bytes skip_blanks(struct bytes line)
{
	while (line.len > 0 && (*line.data == ' ' || *line.data == '\t')) {
		line.data++;
		line.len--;
	}
	return line;
}

static struct bytes drop(struct bytes line, size_t n)
{
	return (struct bytes){line.data + n, line.len - n};
}

/* After the prompt and its blank; false: no such prompt. */
static bool after_prompt(struct bytes line, const char *prompt, struct bytes *ret)
{
	line = skip_blanks(line);
	if (!begins(line, prompt))
		return false;
	line = drop(line, strlen(prompt));
	if (line.len > 0 && *line.data != ' ' && *line.data != '\n')
		return false;
	*ret = line.len > 0 && *line.data == ' ' ? drop(line, 1) : line;
	return true;
}

static bool after_in(struct bytes line, struct bytes *ret)
{
	size_t n = 4;
	line = skip_blanks(line);
	if (!begins(line, "In ["))
		return false;
	while (n < line.len &&
		((line.data[n] >= '0' && line.data[n] <= '9') || line.data[n] == ' '))
		n++;
	if (line.len - n < 2 || line.data[n] != ']' || line.data[n + 1] != ':')
		return false;
	line = drop(line, n + 2);
	*ret = line.len > 0 && *line.data == ' ' ? drop(line, 1) : line;
	return true;
}

static bool after_any(struct bytes line, bool ipython, bool *ret_first, struct bytes *ret)
{
	*ret_first = ipython ? after_in(line, ret) : after_prompt(line, ">>>", ret);
	return *ret_first || after_prompt(line, ipython ? "...:" : "...", ret);
}

static bool first_prompt(struct bytes code, bool *ret_ipython)
{
	struct bytes rest;
	while (code.len > 0) {
		struct bytes line = take_line(&code);
		if (skip_blanks(line).len > 0 && *skip_blanks(line).data != '\n') {
			*ret_ipython = after_in(line, &rest);
			return *ret_ipython || after_prompt(line, ">>>", &rest);
		}
	}
	return false;
}

void mend_prompts(struct bytes code, struct buf *ret)
{
	bool ipython, first, output = false;
	if (!first_prompt(code, &ipython)) {
		(void)buf_add(ret, code.data, code.len); /* latched */
		return;
	}
	while (code.len > 0) {
		struct bytes line = take_line(&code), rest;
		/* An output may hold dots of its own: only a line of input goes on. */
		if (after_any(line, ipython, &first, &rest) && (first || !output)) {
			(void)buf_add(ret, rest.data, rest.len); /* latched */
			output = false;
		} else {
			output = true;
		}
	}
}

static struct bytes line_of(const struct py_lexer *lx, const uint8_t *at)
{
	const uint8_t *nl = memchr(at, '\n', (size_t)(lx->end - at));
	return (struct bytes){at, (size_t)((nl ? nl : lx->end) - at)};
}

/* Bytes to put in the place of the first *ret_skip of a line, NULL: it is no shell line. */
static const char *shell_head(struct bytes line, size_t *ret_skip)
{
	static const struct {
		const char *from, *to;
	} rows[] = {
		{"$ ", "!"},
		{"pip install ", "%pip install "},
		{"pip3 install ", "%pip install "},
		{"python -m pip ", "%pip "},
		{"python3 -m pip ", "%pip "},
	};
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		*ret_skip = strlen(rows[i].from);
		if (begins(line, rows[i].from))
			return rows[i].to;
	}
	return NULL;
}

void mend_shell(struct bytes code, struct buf *ret)
{
	struct py_lexer lx;
	struct py_token t;
	const uint8_t *done = code.data;
	py_begin(&lx, code);
	while (py_next(&lx, &t)) {
		size_t skip;
		if (!t.first || t.kind == PY_LINE)
			continue;
		struct bytes line = line_of(&lx, t.text.data);
		const char *head = shell_head(line, &skip);
		if (!head)
			continue;
		(void)buf_add(ret, done, (size_t)(t.text.data - done)); /* latched */
		(void)buf_add_text(ret, head);				/* latched */
		done = t.text.data + skip;
		lx.at = line.data + line.len;
		lx.fresh = true;
	}
	(void)buf_add(ret, done, (size_t)(lx.end - done)); /* latched */
}

/* matplotlib.use("TkAgg") as all of the line. */
static bool is_use(struct py_lexer lx, const struct py_token *first)
{
	static const char *const modules[] = {"matplotlib", "mpl", "plt", "pyplot"};
	static const char *const calls[] = {"use", "use", "switch_backend", "switch_backend"};
	struct py_token t;
	for (size_t i = 0; i < ARRAY_LEN(modules); i++) {
		struct py_lexer at = lx;
		if (first->kind == PY_NAME && py_is(first, modules[i]) && py_next(&at, &t) &&
			py_is(&t, ".") && py_next(&at, &t) && py_is(&t, calls[i]) &&
			py_next(&at, &t) && py_is(&t, "(") && py_next(&at, &t) &&
			t.kind == PY_STRING && !t.open && py_next(&at, &t) && py_is(&t, ")"))
			return !py_next(&at, &t) || t.kind == PY_LINE || t.kind == PY_COMMENT;
	}
	return false;
}

static bool is_window_magic(const struct py_token *t)
{
	static const char *const windows[] = {
		"qt", "tk", "gtk", "osx", "wx", "notebook", "nbagg", "macosx", "agg", "auto"};
	if (t->kind != PY_MAGIC || !begins(t->text, "%matplotlib "))
		return false;
	struct bytes rest = skip_blanks(drop(t->text, strlen("%matplotlib ")));
	for (size_t i = 0; i < ARRAY_LEN(windows); i++)
		if (begins(rest, windows[i]))
			return true;
	return false;
}

void mend_backend(struct bytes code, struct buf *ret)
{
	struct py_lexer lx;
	struct py_token t;
	const uint8_t *done = code.data;
	py_begin(&lx, code);
	while (py_next(&lx, &t)) {
		if (!t.first || !(is_use(lx, &t) || is_window_magic(&t)))
			continue;
		struct bytes line = line_of(&lx, t.text.data);
		(void)buf_add(ret, done, (size_t)(t.text.data - done)); /* latched */
		(void)buf_add_text(ret, "%matplotlib inline");		/* latched */
		done = lx.at = line.data + line.len;
	}
	(void)buf_add(ret, done, (size_t)(lx.end - done)); /* latched */
}
