/* Blocks, and how an HTML text becomes some. */
#include "frontend-adapter/render/page.h"

#include <string.h>

#include "frontend-adapter/render/render.h"

#define TEXT_MAX (1u << 20)

struct page *page_new(void)
{
	return xcalloc(1, sizeof(struct page));
}

void page_free(struct page *p)
{
	for (unsigned i = 0; i < p->n; i++) {
		if (p->block[i].kind == BLOCK_TABLE)
			table_done(&p->block[i].table);
		else
			ansi_done(&p->block[i].ansi);
	}
	free(p);
}

int page_add_text(struct page *p, enum block_kind kind, struct bytes text)
{
	AUTO(buf_done) struct buf fitting;
	if (p->n >= BLOCKS_MAX) {
		p->cut = true;
		return 0;
	}
	buf_init(&fitting, 2 * TEXT_MAX);
	p->cut = text_cut(text, TEXT_MAX, &fitting) || p->cut;
	struct block *b = &p->block[p->n++];
	b->kind = kind;
	return ansi_parse((struct bytes){fitting.data, fitting.len}, &b->ansi);
}

/* ---- HTML ---- */

static const char *const simple[] = {"html", "head", "body", "div", "p", "span", "b", "strong", "i",
	"em", "small", "br", "hr", "h1", "h2", "h3", "h4", "h5", "h6", "table", "caption",
	"colgroup", "col", "thead", "tbody", "tfoot", "tr", "td", "th", "pre", "code", "samp",
	"kbd", "ul", "ol", "li", "dl", "dt", "dd", "a", "sub", "sup", "u", "s", "font", "center",
	"section", "article", "header", "footer", "main", "blockquote", "style", "title", "meta",
	"abbr", "mark", "time", "tt", "var", "wbr", "figure", "figcaption"};

static const char *const breaking[] = {"div", "p", "h1", "h2", "h3", "h4", "h5", "h6", "pre", "ul",
	"ol", "li", "dl", "dt", "dd", "hr", "section", "article", "header", "footer", "main",
	"blockquote", "center", "body", "figure", "figcaption"};

static bool is_one(const char *name, const char *const *list, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (strcmp(list[i], name) == 0)
			return true;
	return false;
}

/* All of it can be drawn here. Sheets are taken on the way. */
static bool is_simple(const GumboNode *node, unsigned depth, struct sheet *sheet)
{
	const char *name = tree_html_name(node);
	const GumboVector *children = tree_children(node);
	if (tree_is_text(node) || node->type == GUMBO_NODE_COMMENT)
		return true;
	if (depth > TREE_DEPTH_MAX ||
		(node->type != GUMBO_NODE_DOCUMENT && !is_one(name, simple, ARRAY_LEN(simple))))
		return false;
	if (strcmp(name, "style") == 0) {
		AUTO(buf_done) struct buf css;
		buf_init(&css, 4u << 20);
		tree_text(node, 0, &css);
		sheet_add(sheet, (struct bytes){css.data, css.len});
		return true;
	}
	for (unsigned i = 0; children && i < children->length; i++)
		if (!is_simple(children->data[i], depth + 1, sheet))
			return false;
	return true;
}

struct reader {
	struct page *p;
	const struct sheet *sheet;
	struct buf text; /* of the paragraph so far */
	enum block_kind kind;
	int status;
};

static bool is_blank(const char c)
{
	return c == ' ' || c == '\n' || c == '\t' || c == '\r' || c == '\f';
}

static void flush(struct reader *r)
{
	while (r->text.len > 0 && is_blank((char)r->text.data[r->text.len - 1]))
		r->text.len--;
	if (r->text.len > 0 && r->status == 0)
		r->status = page_add_text(r->p, r->kind, (struct bytes){r->text.data, r->text.len});
	buf_reset(&r->text);
}

/* HTML's blanks: one for many. */
static void add_text(struct reader *r, const char *text)
{
	for (const char *at = text; *at; at++) {
		bool after = r->text.len == 0 || is_blank((char)r->text.data[r->text.len - 1]);
		if (r->kind == BLOCK_MONO || !is_blank(*at))
			(void)buf_add(&r->text, at, 1); /* latched: its beginning is kept */
		else if (!after)
			(void)buf_add_text(&r->text, " ");
	}
}

static void read_table(struct reader *r, const GumboNode *node)
{
	flush(r);
	if (r->p->n >= BLOCKS_MAX || r->status != 0) {
		r->p->cut = true;
		return;
	}
	struct block *b = &r->p->block[r->p->n];
	r->status = table_read(node, r->sheet, &b->table);
	if (r->status != 0)
		return;
	b->kind = BLOCK_TABLE;
	if (b->table.rows > 0 && b->table.columns > 0)
		r->p->n++;
	else
		table_done(&b->table);
}

static void read_node(struct reader *r, const GumboNode *node, unsigned depth)
{
	const char *name = tree_html_name(node);
	const GumboVector *children = tree_children(node);
	enum block_kind kind = r->kind;
	if (tree_is_text(node))
		add_text(r, node->v.text.text);
	else if (strcmp(name, "table") == 0)
		read_table(r, node);
	if (!children || depth > TREE_DEPTH_MAX || strcmp(name, "table") == 0 ||
		strcmp(name, "head") == 0 || strcmp(name, "style") == 0 ||
		strcmp(name, "title") == 0)
		return;
	bool breaks = is_one(name, breaking, ARRAY_LEN(breaking));
	if (breaks)
		flush(r);
	if (name[0] == 'h' && name[1] >= '1' && name[1] <= '6')
		r->kind = BLOCK_HEADING;
	else if (strcmp(name, "pre") == 0)
		r->kind = BLOCK_MONO;
	if (strcmp(name, "br") == 0)
		(void)buf_add_text(&r->text, "\n"); /* latched, as below */
	if (strcmp(name, "li") == 0)
		(void)buf_add_text(&r->text, "\xe2\x80\xa2 ");
	for (unsigned i = 0; i < children->length; i++)
		read_node(r, children->data[i], depth + 1);
	if (breaks)
		flush(r);
	r->kind = kind;
}

static int read_tree(struct page *p, const GumboNode *root)
{
	struct reader r = {.p = p, .kind = BLOCK_TEXT, .sheet = NULL};
	struct sheet *sheet = sheet_new();
	unsigned before = p->n;
	r.sheet = sheet;
	buf_init(&r.text, TEXT_MAX);
	if (is_simple(root, 0, sheet))
		read_node(&r, root, 0);
	else
		r.status = E_INVALID;
	flush(&r);
	buf_done(&r.text);
	sheet_free(sheet);
	return r.status != 0 ? r.status : p->n == before ? E_NOT_FOUND : 0;
}

int page_add_html(struct page *p, struct bytes html)
{
	struct tree *t = malloc(sizeof *t);
	int status = t ? tree_parse(t, html) : E_NOMEM;
	if (status == 0) {
		status = read_tree(p, t->output->document);
		tree_done(t);
	}
	free(t);
	return status;
}
