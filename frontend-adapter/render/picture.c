/* Pictures. Sizes are looked at before any pixel is decoded. */
#include "frontend-adapter/render/picture.h"

#include <cairo.h>
#include <gdk-pixbuf/gdk-pixbuf.h>
#include <librsvg/rsvg.h>
#include <math.h>
#include <string.h>

#define TRIES_MAX 12
#define SVG_SCALE 2.0 /* for pages with a dense screen */

/* ---- PNG out ---- */

static cairo_status_t on_bytes(void *data, const unsigned char *bytes, unsigned len)
{
	return buf_add(data, bytes, len) == 0 ? CAIRO_STATUS_SUCCESS : CAIRO_STATUS_WRITE_ERROR;
}

int picture_write(cairo_surface_t *surface, struct buf *out)
{
	cairo_status_t status = cairo_surface_status(surface);
	if (status == CAIRO_STATUS_SUCCESS)
		status = cairo_surface_write_to_png_stream(surface, on_bytes, out);
	if (out->failed)
		return out->code;
	return status == CAIRO_STATUS_SUCCESS ? 0 : E_NOMEM;
}

/* ---- drawn at a scale, again and smaller until it fits ---- */

struct drawing {
	int width, height; /* at scale 1 */
	void *data;
	void (*draw)(cairo_t *cr, const struct drawing *d);
};

static int draw_at(const struct drawing *d, double scale, struct buf *out)
{
	int w = (int)ceil(d->width * scale), h = (int)ceil(d->height * scale);
	cairo_surface_t *s =
		cairo_image_surface_create(CAIRO_FORMAT_ARGB32, w > 0 ? w : 1, h > 0 ? h : 1);
	cairo_t *cr = cairo_create(s);
	cairo_scale(cr, scale, scale);
	d->draw(cr, d);
	int status = cairo_status(cr) == CAIRO_STATUS_SUCCESS ? picture_write(s, out) : E_NOMEM;
	cairo_destroy(cr);
	cairo_surface_destroy(s);
	return status;
}

static double fitting(const struct drawing *d, double scale)
{
	double area = (double)d->width * d->height, side = fmax(d->width, d->height);
	scale = fmin(scale, sqrt(PICTURE_DRAWN_MAX / area));
	return fmin(scale, PICTURE_SIDE_MAX / side);
}

/* The first try has room for what it becomes, so that the next can be computed from it. */
static int draw_fitting(
	const struct drawing *d, double scale, size_t max, struct buf *out, bool *ret_cut)
{
	double wanted = scale;
	scale = fitting(d, scale);
	for (int i = 0; i < TRIES_MAX; i++) {
		AUTO(buf_done) struct buf png;
		buf_init(&png, PICTURE_DRAWN_MAX * 4 + (1 << 20));
		int status = draw_at(d, scale, &png);
		if (status != 0)
			return status;
		*ret_cut = scale < fmin(wanted, 1.0);
		if (png.len <= max)
			return buf_add(out, png.data, png.len);
		scale *= fmin(0.9, sqrt((double)max / (double)png.len) * 0.95);
	}
	return E_TOO_BIG;
}

/* ---- raster ---- */

struct wanted {
	bool known, refused;
};

static void on_size(GdkPixbufLoader *loader, int width, int height, gpointer data)
{
	struct wanted *w = data;
	w->known = true;
	w->refused = width <= 0 || height <= 0 || (int64_t)width * height > PICTURE_AREA_MAX;
	if (w->refused)
		gdk_pixbuf_loader_set_size(loader, 0, 0); /* stops before memory is taken */
}

/* Fed in pieces, so that a refused size ends it. */
static int feed(GdkPixbufLoader *loader, struct bytes in, const struct wanted *w)
{
	size_t step = 4096;
	for (size_t at = 0; at < in.len; at += step) {
		size_t n = in.len - at < step ? in.len - at : step;
		if (!gdk_pixbuf_loader_write(loader, in.data + at, n, NULL) || w->refused)
			return E_INVALID;
	}
	return 0;
}

static const char *type_of(struct bytes in)
{
	if (in.len > 8 && memcmp(in.data, "\x89PNG\r\n\x1a\n", 8) == 0)
		return "png";
	return in.len > 3 && memcmp(in.data, "\xff\xd8\xff", 3) == 0 ? "jpeg" : NULL;
}

static GdkPixbuf *decode(struct bytes in, struct err *err)
{
	struct wanted w = {0};
	const char *type = type_of(in);
	GdkPixbufLoader *loader = type ? gdk_pixbuf_loader_new_with_type(type, NULL) : NULL;
	GdkPixbuf *ret = NULL;
	if (!loader) {
		err_set(err, E_INVALID, "a picture that is neither PNG nor JPEG");
		return NULL;
	}
	g_signal_connect(loader, "size-prepared", G_CALLBACK(on_size), &w);
	int status = feed(loader, in, &w);
	bool closed = gdk_pixbuf_loader_close(loader, NULL);
	if (status == 0 && closed && !w.refused && gdk_pixbuf_loader_get_pixbuf(loader))
		ret = g_object_ref(gdk_pixbuf_loader_get_pixbuf(loader));
	g_object_unref(loader);
	if (!ret)
		err_set(err, E_INVALID,
			w.refused ? "a picture of too many pixels"
				  : "a picture that cannot be decoded");
	return ret;
}

/* cairo's pixels: premultiplied, in the machine's order. */
static void copy_pixels(const GdkPixbuf *from, cairo_surface_t *to)
{
	int width = gdk_pixbuf_get_width(from), height = gdk_pixbuf_get_height(from);
	int channels = gdk_pixbuf_get_n_channels(from);
	for (int y = 0; y < height; y++) {
		const guint8 *in = gdk_pixbuf_read_pixels(from) +
				   (size_t)y * (size_t)gdk_pixbuf_get_rowstride(from);
		uint32_t *out = (void *)(cairo_image_surface_get_data(to) +
					 (size_t)y * (size_t)cairo_image_surface_get_stride(to));
		for (int x = 0; x < width; x++, in += channels) {
			uint32_t a = channels == 4 ? in[3] : 255;
			out[x] = a << 24 | in[0] * a / 255 << 16 | in[1] * a / 255 << 8 |
				 in[2] * a / 255;
		}
	}
	cairo_surface_mark_dirty(to);
}

static cairo_surface_t *surface_of(const GdkPixbuf *pixbuf)
{
	cairo_surface_t *s = cairo_image_surface_create(
		CAIRO_FORMAT_ARGB32, gdk_pixbuf_get_width(pixbuf), gdk_pixbuf_get_height(pixbuf));
	if (cairo_surface_status(s) == CAIRO_STATUS_SUCCESS)
		copy_pixels(pixbuf, s);
	return s;
}

static void draw_surface(cairo_t *cr, const struct drawing *d)
{
	cairo_set_source_surface(cr, d->data, 0, 0);
	cairo_pattern_set_filter(cairo_get_source(cr), CAIRO_FILTER_GOOD);
	cairo_paint(cr);
}

int picture_shrink(struct bytes in, size_t max, struct buf *out, bool *ret_cut, struct err *err)
{
	GdkPixbuf *pixbuf = decode(in, err);
	const char *type = type_of(in);
	if (!pixbuf)
		return E_INVALID;
	if (in.len <= max && strcmp(type, "png") == 0) {
		g_object_unref(pixbuf);
		return buf_add(out, in.data, in.len);
	}
	cairo_surface_t *s = surface_of(pixbuf);
	struct drawing d = {
		gdk_pixbuf_get_width(pixbuf), gdk_pixbuf_get_height(pixbuf), s, draw_surface};
	g_object_unref(pixbuf);
	int status = draw_fitting(&d, 1.0, max, out, ret_cut);
	cairo_surface_destroy(s);
	return status == 0 ? 0 : err_set(err, status, "a picture does not fit %zu bytes", max);
}

/* ---- SVG ---- */

static void draw_svg(cairo_t *cr, const struct drawing *d)
{
	RsvgRectangle all = {0, 0, d->width, d->height};
	cairo_set_source_rgb(cr, 1, 1, 1); /* matplotlib's may be transparent; chats may be dark */
	cairo_paint(cr);
	(void)rsvg_handle_render_document(d->data, cr, &all, NULL); /* what could be drawn is */
}

static int side(double length)
{
	return isfinite(length) && length >= 1 ? (int)fmin(ceil(length), 1e6) : 1;
}

static void svg_size(RsvgHandle *handle, struct drawing *d)
{
	gboolean has_w, has_h, has_box;
	RsvgLength w, h;
	RsvgRectangle box;
	gdouble width = 600, height = 400;
	rsvg_handle_get_intrinsic_dimensions(handle, &has_w, &w, &has_h, &h, &has_box, &box);
	if (!rsvg_handle_get_intrinsic_size_in_pixels(handle, &width, &height) && has_box &&
		box.width > 0 && box.height > 0) {
		width = 600;
		height = 600 * box.height / box.width;
	}
	d->width = side(width);
	d->height = side(height);
}

int picture_svg(struct bytes svg, size_t max, struct buf *out, bool *ret_cut, struct err *err)
{
	RsvgHandle *handle = rsvg_handle_new_from_data(svg.data, svg.len, NULL);
	if (!handle)
		return err_set(err, E_INVALID, "an SVG that cannot be read");
	rsvg_handle_set_dpi(handle, 96);
	struct drawing d = {.data = handle, .draw = draw_svg};
	svg_size(handle, &d);
	int status = draw_fitting(&d, SVG_SCALE, max, out, ret_cut);
	g_object_unref(handle);
	return status == 0 ? 0 : err_set(err, status, "an SVG does not fit %zu bytes", max);
}
