/* Decodes and draws a little of everything before the wall is up: loaders, filters' threads, faces.
 */
#include <cairo.h>
#include <gdk-pixbuf/gdk-pixbuf.h>
#include <string.h>

#include "frontend-adapter/render/picture.h"

static const char drawing[] =
	"<svg xmlns='http://www.w3.org/2000/svg' xmlns:xlink='http://www.w3.org/1999/xlink' "
	"width='40' height='20'><defs><linearGradient id='g'><stop offset='0' stop-color='red'/>"
	"<stop offset='1' stop-color='#00f'/></linearGradient><filter id='f'><feGaussianBlur "
	"stdDeviation='1'/><feColorMatrix type='saturate' values='0.5'/></filter></defs>"
	"<rect width='9' height='9' fill='url(#g)' filter='url(#f)'/>"
	"<text y='9' font-family='sans-serif'>a\xe4\xb8\xad</text>"
	"<text y='9' font-family='monospace' font-weight='bold'>a\xe4\xb8\xad</text>"
	"<image width='2' height='2' xlink:href='data:image/png;base64,"
	"iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNkYPhfDwAChwGA60e6kgAAAABJRU5E"
	"rkJggg=='/></svg>";

static int warm_svg(struct buf *ret_png, struct err *err)
{
	bool cut = false;
	struct bytes svg = {(const uint8_t *)drawing, sizeof drawing - 1};
	return picture_svg(svg, 1 << 20, ret_png, &cut, err);
}

/* A JPEG of our own; the decoder is warm once it has been read back. */
static int warm_jpeg(struct err *err)
{
	AUTO(buf_done) struct buf out;
	gchar *jpeg = NULL;
	gsize len = 0;
	bool cut = false;
	buf_init(&out, 1 << 20);
	GdkPixbuf *p = gdk_pixbuf_new(GDK_COLORSPACE_RGB, FALSE, 8, 4, 4);
	gdk_pixbuf_fill(p, 0xff0000ff);
	gboolean made = gdk_pixbuf_save_to_buffer(p, &jpeg, &len, "jpeg", NULL, NULL);
	g_object_unref(p);
	if (!made)
		return err_set(err, E_IO, "gdk-pixbuf knows no JPEG");
	int status = picture_shrink((struct bytes){(uint8_t *)jpeg, len}, 1 << 20, &out, &cut, err);
	g_free(jpeg);
	return status;
}

int picture_warm(struct err *err)
{
	AUTO(buf_done) struct buf png, again;
	bool cut = false;
	buf_init(&png, 1 << 20);
	buf_init(&again, 1 << 20);
	int status = warm_svg(&png, err);
	struct bytes bytes = {png.data, png.len};
	if (status == 0)
		status = picture_shrink(bytes, 1 << 20, &again, &cut, err);
	return status == 0 ? warm_jpeg(err) : status;
}
