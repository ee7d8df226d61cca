/* What is drawn: blocks one below the other, each a text or a table. Owns them. */
#ifndef COPPICE_RENDER_PAGE_H
#define COPPICE_RENDER_PAGE_H

#include "frontend-adapter/render/ansi.h"
#include "frontend-adapter/render/table.h"

#define BLOCKS_MAX 200u

enum block_kind { BLOCK_MONO, BLOCK_TEXT, BLOCK_HEADING, BLOCK_NOTE, BLOCK_TABLE };

struct block {
	enum block_kind kind;
	struct ansi ansi; /* but BLOCK_TABLE */
	struct table table;
};

struct page {
	struct block block[BLOCKS_MAX];
	unsigned n;
	bool cut; /* there was more than is kept */
};

struct page *page_new(void);
void page_free(struct page *p);
int page_add_text(struct page *p, enum block_kind kind, struct bytes text);
/* Tables and plain text of HTML. E_INVALID: there is something else in it that can be seen
 * (pictures, forms, scripts); E_NOT_FOUND: nothing; E_TOO_BIG. */
int page_add_html(struct page *p, struct bytes html);

/* draw.c: as a PNG of at most max bytes, by leaving out rows and lines of the middle. */
int page_draw(const struct page *p, size_t max, struct buf *out, bool *ret_cut, struct err *err);

#endif
