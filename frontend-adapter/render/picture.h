/* Pictures: decoded within bounds, scaled, drawn as PNG. cairo, gdk-pixbuf and librsvg are behind
 * it. */
#ifndef COPPICE_RENDER_PICTURE_H
#define COPPICE_RENDER_PICTURE_H

#include "gateway/base/base.h"
#include "gateway/base/buf.h"
#include "gateway/base/err.h"

#define PICTURE_SIDE_MAX  12000
#define PICTURE_AREA_MAX  (64 << 20) /* pixels that are decoded at most */
#define PICTURE_DRAWN_MAX (16 << 20) /* pixels that are drawn at most */

struct _cairo_surface;

/* PNG, JPEG or GIF bytes as a PNG of at most max bytes; `in` itself if it is a PNG that fits (and
 * can be decoded). E_INVALID: not a picture, or too large to decode. */
int picture_shrink(struct bytes in, size_t max, struct buf *out, bool *ret_cut, struct err *err);
/* Clean SVG (sanitise_svg) as a PNG. */
int picture_svg(struct bytes svg, size_t max, struct buf *out, bool *ret_cut, struct err *err);
/* A drawn surface as PNG. E_TOO_BIG if longer than out's ceiling. */
int picture_write(struct _cairo_surface *surface, struct buf *out);
/* Decodes and draws a little of everything, so that libraries load what they load. */
int picture_warm(struct err *err);

#endif
