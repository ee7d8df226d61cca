#include "frontend-adapter/markdown.h"

#include <assert.h>
#include <cmark.h>
#include <string.h>

/* Masked: cmark takes a time that grows with the square of what stands between brackets, and of how
 * deep lists are nested; both would stop the loop for minutes at one megabyte. Only the blocks
 * matter here, so brackets are hidden from it, list and quote marks too from this column on. `<` is
 * hidden since a fence inside of a tag (<details>, <answer>) is code to us. All come back in the
 * code. */
#define DEPTH_COLUMN 64
static const char masked[] = "[]<>-+*.)";
#define MASKED (sizeof masked - 1)

struct markdown {
	struct bytes text;
	cmark_node *root;
	cmark_iter *iter;
	size_t line, at; /* a line's number, from 1, and where it begins: goes forward only */
	uint8_t mask[MASKED];
	struct buf code;
};

static int choose_mask(struct markdown *m, struct err *err)
{
	bool seen[256] = {false};
	size_t n = 0;
	for (size_t i = 0; i < m->text.len; i++)
		seen[m->text.data[i]] = true;
	for (unsigned c = 1; c < 0x20 && n < MASKED; c++)
		if (!seen[c] && !(c >= '\t' && c <= '\r'))
			m->mask[n++] = (uint8_t)c;
	return n == MASKED ? 0 : err_set(err, E_INVALID, "text: control characters of every kind");
}

static uint8_t mask_of(const struct markdown *m, uint8_t c)
{
	const char *at = c ? strchr(masked, c) : NULL;
	return at ? m->mask[at - masked] : c;
}

static void unmask(const struct markdown *m, uint8_t *text, size_t len)
{
	for (size_t i = 0; i < len; i++) {
		const uint8_t *at = text[i] < 0x20 ? memchr(m->mask, text[i], MASKED) : NULL;
		if (at && text[i])
			text[i] = (uint8_t)masked[at - m->mask];
	}
}

static void mask_text(const struct markdown *m, uint8_t *text, size_t len)
{
	bool prefix = true; /* blanks and marks of lists and quotes so far */
	size_t column = 0;
	for (size_t i = 0; i < len; i++, column++) {
		uint8_t c = text[i];
		if (c == '[' || c == ']' || c == '<' || (prefix && column >= DEPTH_COLUMN))
			text[i] = mask_of(m, c);
		if (c == '\t')
			column += 3; /* at most */
		prefix = c == '\n' || (prefix && c && strchr(" \t>-+*.)0123456789", c));
		if (c == '\n')
			column = SIZE_MAX;
	}
}

static int parse(struct markdown *m, struct err *err)
{
	AUTO(buf_done) struct buf copy;
	buf_init(&copy, m->text.len);
	int status = choose_mask(m, err);
	if (status != 0)
		return status;
	(void)buf_add(&copy, m->text.data, m->text.len); /* looked at next */
	if (buf_check(&copy, "text", err) != 0)
		return copy.code;
	mask_text(m, copy.data, copy.len);
	m->root = cmark_parse_document((const char *)copy.data, copy.len, CMARK_OPT_DEFAULT);
	m->iter = cmark_iter_new(m->root);
	return 0;
}

int markdown_new(struct bytes text, struct markdown **ret, struct err *err)
{
	struct markdown *m = xcalloc(1, sizeof *m);
	m->text = text;
	m->line = 1;
	buf_init(&m->code, text.len + 1);
	int status = text.len > 0 ? parse(m, err) : 0;
	if (status == 0)
		*ret = m;
	else
		markdown_free(m);
	return status;
}

void markdown_free(struct markdown *m)
{
	if (!m)
		return;
	if (m->iter)
		cmark_iter_free(m->iter);
	if (m->root)
		cmark_node_free(m->root);
	buf_done(&m->code);
	free(m);
}

void markdown_freep(struct markdown **m)
{
	markdown_free(*m);
}

static size_t line_after(const struct markdown *m, size_t at)
{
	const uint8_t *nl =
		at < m->text.len ? memchr(m->text.data + at, '\n', m->text.len - at) : NULL;
	return nl ? (size_t)(nl - m->text.data) + 1 : m->text.len;
}

/* Where that line begins. */
static size_t seek(struct markdown *m, size_t line)
{
	for (; m->line < line && m->at < m->text.len; m->line++)
		m->at = line_after(m, m->at);
	return m->at;
}

static size_t after_lines(const struct markdown *m, size_t at, size_t n)
{
	while (n-- > 0 && at < m->text.len)
		at = line_after(m, at);
	return at;
}

static void take_code(struct markdown *m, const char *literal, struct md_block *b)
{
	size_t len = literal ? strlen(literal) : 0;
	buf_reset(&m->code);
	(void)buf_add(&m->code, literal, len); /* not longer than the text */
	unmask(m, m->code.data, m->code.len);
	b->code = (struct bytes){m->code.data, m->code.len};
}

static size_t count_lines(struct bytes code)
{
	size_t n = 0;
	for (size_t i = 0; i < code.len; i++)
		n += code.data[i] == '\n';
	return n;
}

static bool is_closing(const struct markdown *m, const struct md_block *b, size_t at)
{
	size_t end = line_after(m, at), run = 0;
	const uint8_t *text = m->text.data;
	while (at < end && strchr(" \t>", text[at]) && text[at])
		at++;
	for (; at < end && text[at] == b->mark; at++)
		run++;
	while (at < end && (text[at] == ' ' || text[at] == '\t' || text[at] == '\n'))
		at++;
	return run >= b->mark_len && at == end;
}

/* cmark does not say which code is fenced. Where the block begins stands a fence then; and where
 * there is no info, no fenced code begins with the line of its own fence, as indented code does. */
static bool is_fenced(const struct markdown *m, const struct md_block *b, size_t fence)
{
	size_t len = line_after(m, b->start) - fence, n = 0;
	const uint8_t *line = m->text.data + fence;
	if (*b->info)
		return true;
	while (n < len && line[n] == line[0])
		n++;
	return n >= 3 && (line[0] == '`' || line[0] == '~') &&
	       (b->code.len < len || memcmp(b->code.data, line, len) != 0);
}

static void take_fenced(struct markdown *m, struct md_block *b, size_t fence)
{
	const uint8_t *text = m->text.data;
	size_t line_end = line_after(m, b->start);
	while (fence + 1 < line_end && text[fence] != '`' && text[fence] != '~')
		fence++;
	b->kind = MD_FENCED;
	b->mark = text[fence];
	while (fence + b->mark_len < line_end && text[fence + b->mark_len] == b->mark)
		b->mark_len++;
	b->indent = fence - b->start;
	b->quoted = b->indent > 0 && memchr(text + b->start, '>', b->indent);
	b->body = line_end;
	b->end = after_lines(m, b->body, count_lines(b->code));
	b->closed = b->end < m->text.len && is_closing(m, b, b->end);
	if (b->closed)
		b->end = line_after(m, b->end);
}

static void take_code_block(struct markdown *m, cmark_node *node, struct md_block *b)
{
	int line = cmark_node_get_start_line(node), column = cmark_node_get_start_column(node);
	const char *info = cmark_node_get_fence_info(node);
	b->info = info ? info : "";
	b->start = seek(m, line > 0 ? (size_t)line : 1);
	take_code(m, cmark_node_get_literal(node), b);
	size_t fence = b->start + (column > 0 ? (size_t)column - 1 : 0);
	if (fence < line_after(m, b->start) && is_fenced(m, b, fence)) {
		take_fenced(m, b, fence);
		return;
	}
	b->kind = MD_INDENTED;
	b->end = after_lines(m, b->start, count_lines(b->code));
}

/* The source between the outermost backticks: cmark makes spaces of its line ends. */
static bool take_span(struct markdown *m, cmark_node *node, struct md_block *b)
{
	cmark_node *child = cmark_node_first_child(node);
	if (!child || cmark_node_get_type(child) != CMARK_NODE_CODE || cmark_node_next(child))
		return false;
	int first = cmark_node_get_start_line(node), last = cmark_node_get_end_line(node);
	b->kind = MD_SPAN;
	b->start = seek(m, first > 0 ? (size_t)first : 1);
	b->end = after_lines(m, b->start, last >= first ? (size_t)(last - first) + 1 : 1);
	const uint8_t *from = m->text.data + b->start, *to = m->text.data + b->end;
	while (from < to && *from != '`')
		from++;
	while (from < to && to[-1] != '`')
		to--;
	while (from < to && *from == '`') {
		from++;
		b->mark_len++;
	}
	while (from < to && to[-1] == '`')
		to--;
	b->code = (struct bytes){from, (size_t)(to - from)};
	return true;
}

static bool take(struct markdown *m, cmark_node *node, struct md_block *b)
{
	*b = (struct md_block){.info = ""};
	switch (cmark_node_get_type(node)) {
	case CMARK_NODE_CODE_BLOCK:
		take_code_block(m, node, b);
		return true;
	case CMARK_NODE_PARAGRAPH:
		return take_span(m, node, b);
	default:
		return false;
	}
}

bool markdown_next(struct markdown *m, struct md_block *ret)
{
	while (m->iter) {
		cmark_event_type event = cmark_iter_next(m->iter);
		if (event == CMARK_EVENT_DONE)
			break;
		if (event == CMARK_EVENT_ENTER && take(m, cmark_iter_get_node(m->iter), ret))
			return true;
	}
	return false;
}
