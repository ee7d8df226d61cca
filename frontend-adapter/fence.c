#include "frontend-adapter/fence.h"

#include <string.h>

#include "frontend-adapter/python.h"

static size_t line_after(struct bytes text, size_t at)
{
	const uint8_t *nl = at < text.len ? memchr(text.data + at, '\n', text.len - at) : NULL;
	return nl ? (size_t)(nl - text.data) + 1 : text.len;
}

static size_t line_start(struct bytes text, size_t at)
{
	while (at > 0 && text.data[at - 1] != '\n')
		at--;
	return at;
}

static bool is_blank(struct bytes text, size_t from, size_t to)
{
	for (; from < to; from++)
		if (text.data[from] != ' ' && text.data[from] != '\t' && text.data[from] != '\n')
			return false;
	return true;
}

static size_t run_len(struct bytes text, size_t at, uint8_t mark)
{
	size_t n = 0;
	while (at + n < text.len && text.data[at + n] == mark)
		n++;
	return n;
}

/* A run of marks at at, outside of strings. */
static bool ends_at(struct bytes text, const struct md_block *b, size_t at, struct fence_end *ret)
{
	size_t line = line_start(text, at), after = line_after(text, at);
	size_t run = run_len(text, at, b->mark);
	bool starts = line >= b->body && is_blank(text, line, at),
	     rest = !is_blank(text, at + run, after);
	if (run < b->mark_len || (!starts && (rest || b->mark != '`')))
		return false;
	/* With an info it opens the next block, and the fence of this one was forgotten. */
	*ret = (struct fence_end){starts ? line : at, rest ? line : after, true};
	return true;
}

bool fence_end_python(struct bytes text, const struct md_block *b, struct fence_end *ret)
{
	struct py_lexer lx;
	struct py_token t;
	py_begin(&lx, (struct bytes){text.data + b->body, text.len - b->body});
	while (py_next(&lx, &t)) {
		size_t at = (size_t)(t.text.data - text.data);
		if (t.kind == PY_STRING && t.triple && t.open)
			return false;
		if ((t.kind == PY_OTHER || t.kind == PY_OP) && *t.text.data == b->mark &&
			ends_at(text, b, at, ret))
			return true;
	}
	return false;
}

bool fence_end_markdown(struct bytes text, const struct md_block *b, struct fence_end *ret)
{
	unsigned depth = 0;
	for (size_t at = b->body, after; at < text.len; at = after) {
		after = line_after(text, at);
		size_t fence = at;
		while (fence < after && (text.data[fence] == ' ' || text.data[fence] == '\t'))
			fence++;
		size_t run = run_len(text, fence, b->mark);
		if (run < b->mark_len)
			continue;
		if (!is_blank(text, fence + run, after)) {
			depth++;
		} else if (depth-- == 0) {
			*ret = (struct fence_end){at, after, true};
			return true;
		}
	}
	return false;
}

/* A model that leaves its list in the middle of a block does not indent what follows: the first
 * line says which it is. */
static size_t indent_of(struct bytes text, const struct md_block *b, size_t code_end)
{
	size_t at = b->body;
	while (at < code_end && is_blank(text, at, line_after(text, at)))
		at = line_after(text, at);
	size_t n = 0;
	while (n < b->indent && at + n < code_end && text.data[at + n] == ' ')
		n++;
	return n;
}

void fence_code(struct bytes text, const struct md_block *b, size_t code_end, struct buf *ret)
{
	size_t indent = indent_of(text, b, code_end);
	for (size_t at = b->body, after; at < code_end; at = after) {
		size_t skip = 0;
		after = line_after(text, at);
		if (after > code_end)
			after = code_end;
		while (skip < indent && at + skip < after && text.data[at + skip] == ' ')
			skip++;
		(void)buf_add(ret, text.data + at + skip, after - at - skip); /* latched */
	}
}
