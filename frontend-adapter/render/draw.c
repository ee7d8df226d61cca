/* A page: its blocks below each other on white. */
#include "frontend-adapter/render/draw.h"

#include <math.h>
#include <string.h>

#include "frontend-adapter/render/picture.h"

#define MARGIN	    12.0
#define GAP	    10.0
#define ROWS	    60u /* what pandas shows itself */
#define LINES	    120u
#define ROWS_MIN    4u
#define FONT_PX	    13.0
#define SCALE	    2.0 /* for pages with a dense screen */
#define TRIES_MAX   12
#define WIDTH_LEAST 40.0

void draw_colour(cairo_t *cr, uint32_t rgb)
{
	cairo_set_source_rgb(
		cr, (rgb >> 16 & 255) / 255.0, (rgb >> 8 & 255) / 255.0, (rgb & 255) / 255.0);
}

/* Laid out at scale 1 whatever it is painted at: at another one pango makes empty lines lower. */
PangoLayout *draw_layout(const struct pen *pen, const PangoFontDescription *font)
{
	PangoContext *context = pango_font_map_create_context(pango_cairo_font_map_get_default());
	pango_cairo_context_set_font_options(context, pen->options);
	pango_context_set_round_glyph_positions(context, FALSE);
	PangoLayout *layout = pango_layout_new(context);
	pango_layout_set_font_description(layout, font);
	g_object_unref(context);
	return layout;
}

/* U+3040 to U+30FF are e3 81..83 xx. */
static bool has_kana(const char *text, int len)
{
	for (int i = 0; i + 1 < len; i++)
		if ((uint8_t)text[i] == 0xe3 && (uint8_t)text[i + 1] >= 0x81 &&
			(uint8_t)text[i + 1] <= 0x83)
			return true;
	return false;
}

void draw_set_text(PangoLayout *layout, const char *text, int len)
{
	const char *language = has_kana(text, len) ? "ja" : "zh-cn";
	gchar *valid = g_utf8_make_valid(text, len);
	pango_context_set_language(
		pango_layout_get_context(layout), pango_language_from_string(language));
	pango_layout_set_text(layout, valid, -1);
	g_free(valid);
}

static PangoFontDescription *font(const char *name, double px)
{
	PangoFontDescription *d = pango_font_description_from_string(name);
	pango_font_description_set_absolute_size(d, px * PANGO_SCALE);
	return d;
}

static void pen_init(struct pen *pen, struct limits limits)
{
	*pen = (struct pen){.limits = limits, .options = cairo_font_options_create()};
	cairo_font_options_set_antialias(pen->options, CAIRO_ANTIALIAS_GRAY);
	cairo_font_options_set_hint_style(pen->options, CAIRO_HINT_STYLE_NONE);
	cairo_font_options_set_hint_metrics(pen->options, CAIRO_HINT_METRICS_OFF);
	pen->mono = font("monospace", FONT_PX);
	pen->sans = font("sans-serif", FONT_PX);
	pen->bold = font("sans-serif bold", FONT_PX);
	pen->heading = font("sans-serif bold", FONT_PX * 1.25);
}

static void pen_done(struct pen *pen)
{
	cairo_font_options_destroy(pen->options);
	pango_font_description_free(pen->mono);
	pango_font_description_free(pen->sans);
	pango_font_description_free(pen->bold);
	pango_font_description_free(pen->heading);
}

static void walk(struct pen *pen, const struct page *p, bool paint, double *ret_w, double *ret_h)
{
	double y = MARGIN, width = WIDTH_LEAST;
	for (unsigned i = 0; i < p->n; i++) {
		double w = 0, h = 0;
		const struct block *b = &p->block[i];
		if (b->kind == BLOCK_TABLE)
			draw_table(pen, &b->table, paint, y, &w, &h);
		else
			draw_text(pen, b, paint, y, &w, &h);
		y += h + (i + 1 < p->n ? GAP : 0);
		width = fmax(width, w);
	}
	*ret_w = ceil(width + 2 * MARGIN);
	*ret_h = ceil(y + MARGIN);
}

/* A surface and a pen for it at that scale; text is the same at every scale. */
static cairo_surface_t *begin(struct pen *pen, double w, double h, double scale)
{
	cairo_surface_t *s = cairo_image_surface_create(
		CAIRO_FORMAT_RGB24, (int)ceil(w * scale), (int)ceil(h * scale));
	pen->cr = cairo_create(s);
	cairo_scale(pen->cr, scale, scale);
	draw_colour(pen->cr, 0xffffff);
	cairo_paint(pen->cr);
	cairo_translate(pen->cr, MARGIN, 0);
	return s;
}

static void measure(struct pen *pen, const struct page *p, double *ret_w, double *ret_h)
{
	cairo_surface_t *s = begin(pen, 1, 1, 1);
	walk(pen, p, false, ret_w, ret_h);
	cairo_destroy(pen->cr);
	cairo_surface_destroy(s);
}

static int draw_once(struct pen *pen, const struct page *p, double scale, struct buf *png)
{
	double w, h;
	measure(pen, p, &w, &h);
	scale = fmin(scale, sqrt(PICTURE_DRAWN_MAX / (w * h)));
	scale = fmin(scale, PICTURE_SIDE_MAX / fmax(w, h));
	cairo_surface_t *s = begin(pen, w, h, scale);
	walk(pen, p, true, &w, &h);
	int status =
		cairo_status(pen->cr) == CAIRO_STATUS_SUCCESS ? picture_write(s, png) : E_NOMEM;
	cairo_destroy(pen->cr);
	cairo_surface_destroy(s);
	return status;
}

/* Less dense first, since it can still be read; then fewer rows and lines. */
int page_draw(const struct page *p, size_t max, struct buf *out, bool *ret_cut, struct err *err)
{
	struct limits limits = {ROWS, LINES};
	double scale = SCALE;
	for (int i = 0; i < TRIES_MAX; i++) {
		AUTO(buf_done) struct buf png;
		struct pen pen;
		buf_init(&png, PICTURE_DRAWN_MAX * 4 + (1 << 20));
		pen_init(&pen, limits);
		int status = draw_once(&pen, p, scale, &png);
		pen_done(&pen);
		if (status != 0)
			return err_set(err, status, "a page cannot be drawn");
		*ret_cut = pen.cut || p->cut;
		if (png.len <= max)
			return buf_add(out, png.data, png.len);
		if (scale > 1) {
			scale = 1;
		} else if (limits.lines > ROWS_MIN) {
			limits.rows = limits.rows / 2 > ROWS_MIN ? limits.rows / 2 : ROWS_MIN;
			limits.lines = limits.lines / 2 > ROWS_MIN ? limits.lines / 2 : ROWS_MIN;
		} else {
			scale *= 0.7;
		}
	}
	return err_set(err, E_TOO_BIG, "what is drawn does not fit %zu bytes", max);
}
