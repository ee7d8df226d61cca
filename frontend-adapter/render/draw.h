/* Drawing of blocks with pango and cairo: measured first, then painted the same way. */
#ifndef COPPICE_RENDER_DRAW_H
#define COPPICE_RENDER_DRAW_H

#include <pango/pangocairo.h>

#include "frontend-adapter/render/page.h"

#define DRAW_COLUMNS   110  /* of a monospaced line, then it is wrapped */
#define DRAW_WIDTH_MAX 1500 /* of a table */
#define DRAW_TEXT      0x1f2328u
#define DRAW_PALE      0x6e7781u

/* What of a block is drawn at most; the middle is left out. */
struct limits {
	unsigned rows, lines;
};

struct pen {
	cairo_t *cr;
	cairo_font_options_t *options; /* none that depend on the scale */
	PangoFontDescription *mono, *sans, *bold, *heading;
	struct limits limits;
	bool cut; /* set by who leaves something out */
};

void draw_colour(cairo_t *cr, uint32_t rgb);
/* A layout of the pen's context; g_object_unref() it. */
PangoLayout *draw_layout(const struct pen *pen, const PangoFontDescription *font);
/* Han characters of Chinese shape, unless the text has kana. */
void draw_set_text(PangoLayout *layout, const char *text, int len);

/* Each: paint false measures only. ret_w, ret_h: what the block takes. */
void draw_text(
	struct pen *pen, const struct block *b, bool paint, double y, double *ret_w, double *ret_h);
void draw_table(
	struct pen *pen, const struct table *t, bool paint, double y, double *ret_w, double *ret_h);

#endif
