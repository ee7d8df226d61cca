/* Cells onto a grid: a cell takes the first free place of its row; what hangs down from above is
 * not free. */
#include "frontend-adapter/render/table.h"

#include <ctype.h>
#include <string.h>

#define CELL_TEXT_MAX 2000u

struct reader {
	struct table *t;
	const struct sheet *sheet;
	unsigned *taken; /* per column: rows below that a cell hangs into */
	unsigned row, column;
	bool failed, in_head;
};

static bool is(const GumboNode *node, const char *name)
{
	return strcmp(tree_html_name(node), name) == 0;
}

/* ---- text ---- */

static void add_text(const GumboNode *node, unsigned depth, struct buf *out)
{
	const GumboVector *children = tree_children(node);
	if (tree_is_text(node))
		(void)buf_add_text(out, node->v.text.text); /* latched, as below */
	else if (is(node, "br"))
		(void)buf_add_text(out, "\x01");
	for (unsigned i = 0; children && depth < TREE_DEPTH_MAX && i < children->length; i++)
		add_text(children->data[i], depth + 1, out);
}

static bool is_blank(uint8_t c)
{
	return c == ' ' || c == '\n' || c == '\t' || c == '\r' || c == '\f';
}

/* Blanks as HTML has them: one for many, none at the ends; \x01 was a <br>. */
static char *collapsed(const struct buf *text)
{
	char *ret = xcalloc(1, CELL_TEXT_MAX + 8);
	size_t len = 0, i = 0;
	for (; i < text->len && len < CELL_TEXT_MAX; i++) {
		uint8_t c = text->data[i];
		bool after = len == 0 || ret[len - 1] == ' ' || ret[len - 1] == '\n';
		if (is_blank(c) && !after)
			ret[len++] = ' ';
		else if (c == 1)
			ret[len++] = '\n';
		else if (!is_blank(c))
			ret[len++] = (char)c;
	}
	while (len > 0 && (ret[len - 1] == ' ' || ret[len - 1] == '\n'))
		ret[--len] = '\0';
	if (i < text->len) {
		while (len > 0 && (ret[len - 1] & 0xc0) == 0x80)
			len--;
		memcpy(ret + (len ? len - 1 : 0), "\xe2\x80\xa6", 4);
	}
	return ret;
}

static char *text_of(const GumboNode *node)
{
	AUTO(buf_done) struct buf text;
	buf_init(&text, 1u << 20); /* of more the beginning is enough */
	add_text(node, 0, &text);
	return collapsed(&text);
}

/* ---- cells ---- */

static unsigned span_of(const GumboNode *node, const char *name, unsigned max)
{
	const char *text = tree_attribute(node, name);
	long n = text ? strtol(text, NULL, 10) : 1;
	return n < 1 ? 1 : n > (long)max ? max : (unsigned)n;
}

static void style(const struct reader *r, const GumboNode *node, struct cell *c)
{
	const char *align = tree_attribute(node, "align"), *halign = tree_attribute(node, "halign");
	const char *css = tree_attribute(node, "style");
	align = align ? align : halign; /* pandas' own word for heads of several columns */
	if (r->in_head && c->header)
		sheet_style(r->sheet, SHEET_HEADS, c);
	sheet_style(r->sheet, tree_attribute(node, "id"), c);
	if (align)
		c->align = *align == 'l' ? ALIGN_LEFT : *align == 'c' ? ALIGN_CENTER : ALIGN_RIGHT;
	if (css)
		sheet_inline((struct bytes){(const uint8_t *)css, strlen(css)}, c);
}

static void take(struct reader *r, const struct cell *c)
{
	for (unsigned i = 0; i < c->columns; i++)
		r->taken[c->column + i] = c->rows;
	r->column = c->column + c->columns;
	if (r->column > r->t->columns)
		r->t->columns = r->column;
}

static void read_cell(struct reader *r, const GumboNode *node)
{
	struct cell c = {.row = r->row, .background = NO_COLOUR, .colour = NO_COLOUR};
	while (r->column < TABLE_COLUMNS_MAX && r->taken[r->column] > 0)
		r->column++;
	if (r->column >= TABLE_COLUMNS_MAX || r->t->list.len / sizeof c >= TABLE_CELLS_MAX) {
		r->t->cut = true;
		return;
	}
	c.column = r->column;
	c.rows = span_of(node, "rowspan", 65534);
	c.columns = span_of(node, "colspan", TABLE_COLUMNS_MAX - c.column);
	c.header = c.bold = is(node, "th");
	style(r, node, &c);
	c.text = text_of(node);
	if (buf_add(&r->t->list, &c, sizeof c) != 0) {
		free(c.text);
		r->failed = true;
		return;
	}
	take(r, &c);
}

static void read_row(struct reader *r, const GumboNode *row, bool header)
{
	const GumboVector *cells = tree_children(row);
	bool heads = r->row == 0; /* a first row of heads only is one without <thead> too */
	r->column = 0;
	r->in_head = header;
	for (unsigned i = 0; cells && i < cells->length; i++) {
		heads = heads && !is(cells->data[i], "td");
		if (is(cells->data[i], "td") || is(cells->data[i], "th"))
			read_cell(r, cells->data[i]);
	}
	for (unsigned i = 0; i < TABLE_COLUMNS_MAX; i++)
		r->taken[i] -= r->taken[i] > 0;
	r->row++;
	if (header || heads)
		r->t->header_rows = r->row;
}

static void read_part(struct reader *r, const GumboNode *part, bool header)
{
	const GumboVector *children = tree_children(part);
	for (unsigned i = 0; children && i < children->length; i++) {
		const GumboNode *child = children->data[i];
		if (is(child, "tr"))
			read_row(r, child, header);
		else if (is(child, "caption") && !r->t->caption)
			r->t->caption = text_of(child);
		else if (is(child, "thead") || is(child, "tbody") || is(child, "tfoot"))
			read_part(r, child, is(child, "thead"));
	}
}

static bool has_class(const GumboNode *node, const char *name)
{
	const char *text = tree_attribute(node, "class");
	const char *id = tree_attribute(node, "id");
	return (text && strstr(text, name)) || (id && strncmp(id, "T_", 2) == 0);
}

/* A cell that hangs below the last row ends there. */
static void clip(struct table *t)
{
	struct cell *c = (void *)t->list.data;
	for (size_t i = 0; i < t->list.len / sizeof *c; i++)
		if (c[i].rows > t->rows - c[i].row)
			c[i].rows = t->rows - c[i].row;
}

int table_read(const GumboNode *node, const struct sheet *sheet, struct table *ret)
{
	struct reader r = {.t = ret, .sheet = sheet};
	*ret = (struct table){.dataframe = has_class(node, "dataframe")};
	buf_init(&ret->list, TABLE_CELLS_MAX * sizeof(struct cell));
	r.taken = xcalloc(TABLE_COLUMNS_MAX, sizeof *r.taken);
	read_part(&r, node, false);
	ret->rows = r.row;
	clip(ret);
	free(r.taken);
	if (!r.failed)
		return 0;
	table_done(ret);
	return E_NOMEM;
}

const struct cell *table_cells(const struct table *t, size_t *ret_n)
{
	*ret_n = t->list.len / sizeof(struct cell);
	return (const void *)t->list.data;
}

void table_done(struct table *t)
{
	size_t n;
	const struct cell *c = table_cells(t, &n);
	for (size_t i = 0; i < n; i++)
		free(c[i].text);
	free(t->caption);
	buf_done(&t->list);
	t->caption = NULL;
}
