/* A table as a notebook shows a DataFrame: bold head with a line below it, bold index, pale
 * stripes. Rows and columns of the middle are left out where there are too many, with a mark. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "frontend-adapter/render/draw.h"

#define PAD_X	   8.0
#define PAD_Y	   4.0
#define CELL_MAX   320
#define LINE_MIN   19 /* of Han characters, which are higher: all rows are alike */
#define MARK_WIDTH 24.0
#define STRIPE	   0xf5f5f5u
#define RULE	   0xbdbdbdu

/* Where columns and rows are; those left out have no size. The mark stands before `gap_*`. */
struct grid {
	const struct table *t;
	double *x, *y; /* columns + 1, rows + 1 */
	double *w, *h;
	unsigned gap_column, gap_row; /* 0: none */
	unsigned lost_columns, lost_rows;
	double mark_height;
};

static bool in_gap(unsigned at, unsigned gap, unsigned lost)
{
	return gap > 0 && at >= gap && at < gap + lost;
}

static PangoLayout *layout_of(const struct pen *pen, const struct cell *c)
{
	PangoLayout *layout = draw_layout(pen, c->bold ? pen->bold : pen->sans);
	draw_set_text(layout, c->text, (int)strlen(c->text));
	pango_layout_set_width(layout, -1);
	int w;
	pango_layout_get_pixel_size(layout, &w, NULL);
	if (w > CELL_MAX) {
		pango_layout_set_width(layout, CELL_MAX * PANGO_SCALE);
		pango_layout_set_wrap(layout, PANGO_WRAP_WORD_CHAR);
		pango_layout_set_height(layout, -6); /* lines, then three dots */
		pango_layout_set_ellipsize(layout, PANGO_ELLIPSIZE_END);
	}
	return layout;
}

static void keep_rows(struct pen *pen, struct grid *g)
{
	unsigned limit = pen->limits.rows + g->t->header_rows;
	if (g->t->rows <= limit)
		return;
	unsigned tail = pen->limits.rows / 3;
	g->gap_row = limit - tail;
	g->lost_rows = g->t->rows - limit;
	pen->cut = true;
}

/* Spanning cells widen their last column by what they lack. */
static void widen(struct grid *g, const struct cell *c, double need)
{
	double have = 0;
	for (unsigned i = 0; i < c->columns; i++)
		have += g->w[c->column + i];
	if (need > have)
		g->w[c->column + c->columns - 1] += need - have;
}

static void heighten(struct grid *g, const struct cell *c, double need)
{
	double have = 0;
	for (unsigned i = 0; i < c->rows; i++)
		have += g->h[c->row + i];
	if (need > have)
		g->h[c->row + c->rows - 1] += need - have;
}

static void measure_cells(const struct pen *pen, struct grid *g, bool spanning)
{
	size_t n;
	const struct cell *c = table_cells(g->t, &n);
	for (size_t i = 0; i < n; i++) {
		int w, h;
		if ((c[i].columns > 1 || c[i].rows > 1) != spanning ||
			in_gap(c[i].row, g->gap_row, g->lost_rows) ||
			in_gap(c[i].column, g->gap_column, g->lost_columns))
			continue;
		PangoLayout *layout = layout_of(pen, &c[i]);
		pango_layout_get_pixel_size(layout, &w, &h);
		g_object_unref(layout);
		widen(g, &c[i], w + 2 * PAD_X);
		heighten(g, &c[i], fmax(h, LINE_MIN) + 2 * PAD_Y);
	}
}

/* From both sides inwards, two thirds to the left, until the width is used up. */
static void keep_columns(struct pen *pen, struct grid *g)
{
	unsigned from = 0, to = g->t->columns;
	double left = DRAW_WIDTH_MAX * 2.0 / 3, right = DRAW_WIDTH_MAX - left, all = 0;
	for (unsigned i = 0; i < g->t->columns; i++)
		all += g->w[i];
	if (all <= DRAW_WIDTH_MAX)
		return;
	while (from < to && g->w[from] <= left)
		left -= g->w[from++];
	while (to > from && g->w[to - 1] <= right)
		right -= g->w[--to];
	if (from == 0 || to == from)
		return;
	g->gap_column = from;
	g->lost_columns = to - from;
	pen->cut = true;
}

static void place(struct grid *g)
{
	for (unsigned i = 0; i < g->t->columns; i++) {
		bool gone = in_gap(i, g->gap_column, g->lost_columns);
		double mark = gone && i == g->gap_column ? MARK_WIDTH : 0;
		g->x[i + 1] = g->x[i] + (gone ? mark : g->w[i]);
	}
	for (unsigned i = 0; i < g->t->rows; i++) {
		bool gone = in_gap(i, g->gap_row, g->lost_rows);
		double mark = gone && i == g->gap_row ? g->mark_height : 0;
		g->y[i + 1] = g->y[i] + (gone ? mark : g->h[i]);
	}
}

static void grid_init(struct grid *g, struct pen *pen, const struct table *t)
{
	*g = (struct grid){.t = t, .mark_height = 24};
	g->x = xcalloc(t->columns + 1, sizeof *g->x);
	g->w = xcalloc(t->columns + 1, sizeof *g->w);
	g->y = xcalloc(t->rows + 1, sizeof *g->y);
	g->h = xcalloc(t->rows + 1, sizeof *g->h);
	keep_rows(pen, g);
	measure_cells(pen, g, false);
	measure_cells(pen, g, true);
	keep_columns(pen, g);
	place(g);
}

static void grid_done(struct grid *g)
{
	free(g->x);
	free(g->w);
	free(g->y);
	free(g->h);
}

/* ---- paint ---- */

static void fill(const struct pen *pen, uint32_t rgb, double x, double y, double w, double h)
{
	draw_colour(pen->cr, rgb);
	cairo_rectangle(pen->cr, x, y, w, h);
	cairo_fill(pen->cr);
}

static void stripes(const struct pen *pen, const struct grid *g, double top)
{
	const struct table *t = g->t;
	for (unsigned i = t->header_rows; i < t->rows; i++)
		if ((i - t->header_rows) % 2 == 0 && !in_gap(i, g->gap_row, g->lost_rows))
			fill(pen, STRIPE, 0, top + g->y[i], g->x[t->columns],
				g->y[i + 1] - g->y[i]);
	if (t->header_rows > 0 && t->header_rows <= t->rows)
		fill(pen, RULE, 0, top + g->y[t->header_rows] - 0.5, g->x[t->columns], 1);
}

static bool is_number(const char *text)
{
	size_t digits = strcspn(text, "0123456789");
	return text[digits] && strspn(text, "0123456789+-.,%eE \xe2\x88\x92$") == strlen(text);
}

static double offset(const struct grid *g, const struct cell *c, double room, double width)
{
	enum table_align align = c->align;
	if (align == ALIGN_NONE && g->t->dataframe)
		align = ALIGN_RIGHT;
	if (align == ALIGN_NONE)
		align = is_number(c->text) ? ALIGN_RIGHT : ALIGN_LEFT;
	if (align == ALIGN_RIGHT)
		return room - width - PAD_X;
	return align == ALIGN_CENTER ? (room - width) / 2 : PAD_X;
}

static void paint_cell(
	const struct pen *pen, const struct grid *g, const struct cell *c, double top)
{
	double x = g->x[c->column], y = top + g->y[c->row];
	double w = g->x[c->column + c->columns] - x, h = top + g->y[c->row + c->rows] - y;
	int text_w, text_h;
	if (c->background != NO_COLOUR)
		fill(pen, c->background, x, y, w, h);
	PangoLayout *layout = layout_of(pen, c);
	pango_layout_get_pixel_size(layout, &text_w, &text_h);
	cairo_save(pen->cr);
	cairo_rectangle(pen->cr, x, y, w, h);
	cairo_clip(pen->cr);
	draw_colour(pen->cr, c->colour != NO_COLOUR ? c->colour : DRAW_TEXT);
	if (c->rows > 1 && c->header)
		h = fmax(text_h, LINE_MIN) + 2 * PAD_Y; /* beside the first of its rows */
	cairo_move_to(pen->cr, x + offset(g, c, w, text_w), y + (h - text_h) / 2);
	pango_cairo_show_layout(pen->cr, layout);
	cairo_restore(pen->cr);
	g_object_unref(layout);
}

static void paint_mark(
	const struct pen *pen, const char *text, double x, double y, double w, double h)
{
	int text_w, text_h;
	PangoLayout *layout = draw_layout(pen, pen->sans);
	pango_layout_set_text(layout, text, -1);
	pango_layout_get_pixel_size(layout, &text_w, &text_h);
	draw_colour(pen->cr, DRAW_PALE);
	cairo_move_to(pen->cr, x + fmax((w - text_w) / 2, 2), y + (h - text_h) / 2);
	pango_cairo_show_layout(pen->cr, layout);
	g_object_unref(layout);
}

static void paint_marks(const struct pen *pen, const struct grid *g, double top)
{
	char text[80];
	const struct table *t = g->t;
	if (g->lost_rows > 0) {
		(void)snprintf(text, sizeof text, "\xe2\x80\xa6 %u rows left out \xe2\x80\xa6",
			g->lost_rows); /* fits */
		paint_mark(pen, text, 0, top + g->y[g->gap_row], g->x[t->columns], g->mark_height);
	}
	for (unsigned i = 0; g->lost_columns > 0 && i < t->rows; i++)
		if (!in_gap(i, g->gap_row, g->lost_rows))
			paint_mark(pen, "\xe2\x80\xa6", g->x[g->gap_column], top + g->y[i],
				MARK_WIDTH, g->y[i + 1] - g->y[i]);
}

static void paint_all(const struct pen *pen, const struct grid *g, double top)
{
	size_t n;
	const struct cell *c = table_cells(g->t, &n);
	stripes(pen, g, top);
	for (size_t i = 0; i < n; i++)
		if (!in_gap(c[i].row, g->gap_row, g->lost_rows) &&
			!in_gap(c[i].column, g->gap_column, g->lost_columns))
			paint_cell(pen, g, &c[i], top);
	paint_marks(pen, g, top);
}

/* One line of small print: the caption above, what is not seen below. */
static double line(const struct pen *pen, const char *text, uint32_t colour, bool paint, double y,
	double *ret_w)
{
	int w, h;
	PangoLayout *layout = draw_layout(pen, pen->sans);
	draw_set_text(layout, text, (int)strlen(text));
	pango_layout_get_pixel_size(layout, &w, &h);
	if (paint) {
		draw_colour(pen->cr, colour);
		cairo_move_to(pen->cr, 0, y);
		pango_cairo_show_layout(pen->cr, layout);
	}
	g_object_unref(layout);
	*ret_w = fmax(*ret_w, w);
	return h + PAD_Y;
}

void draw_table(
	struct pen *pen, const struct table *t, bool paint, double y, double *ret_w, double *ret_h)
{
	struct grid g;
	double top = y;
	char text[100];
	grid_init(&g, pen, t);
	*ret_w = g.x[t->columns];
	if (t->caption && *t->caption)
		y += line(pen, t->caption, DRAW_TEXT, paint, y, ret_w);
	if (paint)
		paint_all(pen, &g, y);
	y += g.y[t->rows];
	if (g.lost_columns > 0) {
		(void)snprintf(text, sizeof text, "%u of %u columns left out", g.lost_columns,
			t->columns); /* fits */
		y += PAD_Y + line(pen, text, DRAW_PALE, paint, y + PAD_Y, ret_w);
	}
	pen->cut = pen->cut || t->cut;
	*ret_h = y - top;
	grid_done(&g);
}
