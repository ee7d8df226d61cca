/* A text: its head and its tail within the limit of lines, in the colours it had. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "frontend-adapter/render/draw.h"

#define TEXT_WIDTH 860
#define LINE_SPACE 2

/* How many bytes from `at` are `lines` drawn lines, a long one counted as what it is wrapped to. */
static size_t lines_from(struct bytes text, unsigned lines)
{
	unsigned column = 0;
	for (size_t at = 0; at < text.len; at++) {
		uint8_t c = text.data[at];
		bool wraps = column >= DRAW_COLUMNS && (c & 0xc0) != 0x80;
		if (wraps && --lines == 0)
			return at;
		column = wraps ? 0 : column;
		if (c == '\n' && --lines == 0)
			return at + 1;
		column = c == '\n' ? 0 : column + ((c & 0xc0) != 0x80) + (c >= 0xe3);
	}
	return text.len;
}

/* Where the last `lines` drawn lines begin. */
static size_t lines_before(struct bytes text, unsigned lines)
{
	unsigned column = 0;
	for (size_t at = text.len; at > 0; at--) {
		uint8_t c = text.data[at - 1];
		bool wraps = column >= DRAW_COLUMNS && (c & 0xc0) != 0x80;
		if ((wraps || (c == '\n' && at < text.len)) && lines-- == 1)
			return wraps ? at - 1 : at;
		column = wraps || c == '\n' ? 0 : column + ((c & 0xc0) != 0x80) + (c >= 0xe3);
	}
	return 0;
}

/* ---- attributes ---- */

struct painter {
	PangoAttrList *list;
	guint from, to;
};

static void add(struct painter *p, PangoAttribute *a)
{
	a->start_index = p->from;
	a->end_index = p->to;
	pango_attr_list_insert(p->list, a);
}

static guint16 channel(uint32_t rgb, int shift)
{
	return (guint16)((rgb >> shift & 255) * 257);
}

static void foreground(struct painter *p, uint32_t rgb)
{
	add(p, pango_attr_foreground_new(channel(rgb, 16), channel(rgb, 8), channel(rgb, 0)));
}

static void background(struct painter *p, uint32_t rgb)
{
	add(p, pango_attr_background_new(channel(rgb, 16), channel(rgb, 8), channel(rgb, 0)));
}

static void paint_style(struct painter *p, const struct ansi_style *s)
{
	bool inverse = s->flags & ANSI_INVERSE;
	uint32_t fg = s->fg != ANSI_DEFAULT ? ansi_rgb(s->fg) : DRAW_TEXT;
	uint32_t bg = s->bg != ANSI_DEFAULT ? ansi_rgb(s->bg) : 0xffffff;
	if (s->fg != ANSI_DEFAULT || inverse)
		foreground(p, inverse ? bg : fg);
	else if (s->flags & ANSI_FAINT)
		foreground(p, DRAW_PALE);
	if (s->bg != ANSI_DEFAULT || inverse)
		background(p, inverse ? fg : bg);
	if (s->flags & ANSI_BOLD)
		add(p, pango_attr_weight_new(PANGO_WEIGHT_BOLD));
	if (s->flags & ANSI_ITALIC)
		add(p, pango_attr_style_new(PANGO_STYLE_ITALIC));
	if (s->flags & ANSI_UNDERLINE)
		add(p, pango_attr_underline_new(PANGO_UNDERLINE_SINGLE));
}

/* What is shown: text[0..head), the mark, text[tail..end). */
struct shown {
	struct buf text;
	size_t head, tail, mark_len;
};

static void make_shown(struct pen *pen, struct bytes text, struct shown *s)
{
	unsigned lines = pen->limits.lines;
	buf_init(&s->text, text.len + 200);
	s->head = s->tail = text.len;
	s->mark_len = 0;
	if (lines_from(text, lines) < text.len) {
		s->head = lines_from(text, lines * 2 / 3);
		s->tail = lines_before(text, lines - lines * 2 / 3);
	}
	if (s->tail <= s->head)
		s->head = s->tail = text.len;
	(void)buf_add(&s->text, text.data, s->head); /* fits, as below */
	if (s->tail < text.len) {
		size_t from = s->text.len;
		(void)buf_addf(&s->text, "%s\xe2\x80\xa6 %zu bytes left out \xe2\x80\xa6\n",
			s->head > 0 && text.data[s->head - 1] == '\n' ? "" : "\n",
			s->tail - s->head);
		s->mark_len = s->text.len - from;
		(void)buf_add(&s->text, text.data + s->tail, text.len - s->tail);
		pen->cut = true;
	}
	while (s->text.len > 0 && s->text.data[s->text.len - 1] == '\n')
		s->text.data[--s->text.len] = '\0';
}

static void paint_range(
	PangoAttrList *list, const struct ansi_run *run, size_t from, size_t to, size_t shift)
{
	size_t start = run->from > from ? run->from : from;
	size_t end = run->from + run->len < to ? run->from + run->len : to;
	struct painter p = {list, (guint)(start + shift - from), (guint)(end + shift - from)};
	if (start < end)
		paint_style(&p, &run->style);
}

static PangoAttrList *attributes(const struct block *b, const struct shown *s)
{
	const struct ansi_run *run;
	size_t n = ansi_runs(&b->ansi, &run);
	PangoAttrList *list = pango_attr_list_new();
	for (size_t i = 0; i < n; i++) {
		paint_range(list, &run[i], 0, s->head, 0);
		paint_range(list, &run[i], s->tail, b->ansi.text.len, s->head + s->mark_len);
	}
	struct painter mark = {list, (guint)s->head, (guint)(s->head + s->mark_len)};
	if (s->mark_len > 0)
		foreground(&mark, DRAW_PALE);
	struct painter all = {list, 0, G_MAXUINT};
	add(&all, pango_attr_insert_hyphens_new(FALSE)); /* where a line is wrapped */
	return list;
}

static const PangoFontDescription *font_of(const struct pen *pen, enum block_kind kind)
{
	return kind == BLOCK_MONO ? pen->mono : kind == BLOCK_HEADING ? pen->heading : pen->sans;
}

void draw_text(
	struct pen *pen, const struct block *b, bool paint, double y, double *ret_w, double *ret_h)
{
	struct shown s;
	int w, h;
	make_shown(pen, (struct bytes){b->ansi.text.data, b->ansi.text.len}, &s);
	PangoLayout *layout = draw_layout(pen, font_of(pen, b->kind));
	draw_set_text(layout, s.text.data ? (char *)s.text.data : "", (int)s.text.len);
	pango_layout_set_width(layout, TEXT_WIDTH * PANGO_SCALE);
	pango_layout_set_wrap(
		layout, b->kind == BLOCK_MONO ? PANGO_WRAP_CHAR : PANGO_WRAP_WORD_CHAR);
	if (b->kind == BLOCK_MONO) {
		pango_layout_set_spacing(layout, LINE_SPACE * PANGO_SCALE);
		PangoAttrList *list = attributes(b, &s);
		pango_layout_set_attributes(layout, list);
		pango_attr_list_unref(list);
	}
	pango_layout_get_pixel_size(layout, &w, &h);
	if (paint) {
		draw_colour(pen->cr, b->kind == BLOCK_NOTE ? DRAW_PALE : DRAW_TEXT);
		cairo_move_to(pen->cr, 0, y);
		pango_cairo_show_layout(pen->cr, layout);
	}
	*ret_w = w;
	*ret_h = h;
	g_object_unref(layout);
	buf_done(&s.text);
}
