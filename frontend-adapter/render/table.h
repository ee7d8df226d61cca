/* A table of HTML as cells on a grid, as pandas writes them: header rows, index columns, spans.
 * Owns its texts. */
#ifndef COPPICE_RENDER_TABLE_H
#define COPPICE_RENDER_TABLE_H

#include "frontend-adapter/render/tree.h"
#include "gateway/base/buf.h"

#define TABLE_COLUMNS_MAX 1000u
#define TABLE_CELLS_MAX	  200000u
#define NO_COLOUR	  0xffffffffu

enum table_align { ALIGN_NONE, ALIGN_LEFT, ALIGN_CENTER, ALIGN_RIGHT };

struct cell {
	char *text;
	unsigned row, column, rows, columns; /* where, and how many it spans */
	bool header, bold;
	enum table_align align;
	uint32_t background, colour; /* 0xrrggbb or NO_COLOUR */
};

struct table {
	struct buf list; /* of struct cell, in order of rows */
	unsigned rows, columns, header_rows;
	bool dataframe; /* of pandas: all cells right-aligned unless they say otherwise */
	char *caption;
	bool cut; /* there were more cells than are looked at */
};

struct sheet; /* colours by id, of pandas' Styler */

/* E_NOMEM, E_TOO_BIG. sheet may be NULL. */
int table_read(const GumboNode *node, const struct sheet *sheet, struct table *ret);
void table_done(struct table *t);
const struct cell *table_cells(const struct table *t, size_t *ret_n);

/* sheet.c: colours of `#id, #id {background-color: ...; color: ...}`, later rules first. */
#define SHEET_HEADS ".dataframe thead tr th" /* asked for as if it were an id */
struct sheet *sheet_new(void);
void sheet_free(struct sheet *s);
void sheet_add(struct sheet *s, struct bytes css);
void sheet_style(const struct sheet *s, const char *id, struct cell *c);
/* Of a style attribute. */
void sheet_inline(struct bytes css, struct cell *c);

#endif
