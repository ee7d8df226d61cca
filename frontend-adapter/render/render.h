/* coppice-render: draws one MIME bundle as safe HTML or as a PNG. Its own program, since it hands
 * hostile bytes to large libraries: it works behind a wall (wall.c), from stdin to stdout. This
 * header is what its files share. One thread; the process ends with its one request.
 *
 *   stdin   {"to": "png" or "html", "max_bytes": N}\n then {"data": {...}, "metadata": {...}}
 *   stdout  {"mime": what was made, "from": what was drawn, "cut": bool}\n then the result
 *   stderr  one sentence where the exit code is not 0 */
#ifndef COPPICE_RENDER_H
#define COPPICE_RENDER_H

#include "gateway/base/base.h"
#include "gateway/base/buf.h"
#include "gateway/base/err.h"

struct cJSON;

/* Exit codes. Death by a signal is: limit of processor time or memory, or the wall. */
#define RENDER_OK      0
#define RENDER_FAILED  1 /* memory, a library */
#define RENDER_REQUEST 2 /* the request is malformed */
#define RENDER_NOTHING 3 /* nothing in the bundle can be drawn */
#define RENDER_TOO_BIG 4 /* does not fit max_bytes, however it is cut */
#define RENDER_NO_WALL 5 /* the wall could not be put up: nothing was read */

#define REQUEST_MAX   (96u << 20)
#define HTML_MAX_MIN  16384u
#define PNG_MAX_MIN   1024u
#define MAX_BYTES_MAX (32u << 20)

struct request {
	bool png;
	size_t max_bytes;
	struct cJSON *bundle, *data;
};

struct result {
	struct buf bytes;
	const char *from; /* MIME type that was drawn */
	bool cut;	  /* something was left out or scaled down; the result says so itself */
};

/* request.c. E_INVALID: malformed. Text of a MIME type, UTF-8, lists of lines joined, NULL if it is
 * not there; borrowed from the request. */
int request_parse(struct buf *bytes, struct request *ret, struct err *err);
void request_done(struct request *r);
const char *request_text(const struct request *r, const char *mime);
/* The decoded base64 of a picture; E_NOT_FOUND, E_INVALID. */
int request_picture(const struct request *r, const char *mime, struct buf *ret);
/* `width` or `height` that the metadata of that type has, in CSS pixels; 0: none. */
int request_side(const struct request *r, const char *mime, const char *key);

/* html.c, png.c: the best of what is there. E_NOT_FOUND: nothing can be drawn; E_TOO_BIG. */
int render_html(const struct request *r, struct result *ret, struct err *err);
int render_png(const struct request *r, struct result *ret, struct err *err);

/* escape.c: as HTML text, and within double quotes; NUL and what XML forbids become U+FFFD. */
void escape_text(struct buf *out, const char *text, size_t len);

/* wall.c: fonts.c and picture.c must be warm before. Fails closed: E_IO. */
void wall_limits(void);
int wall_up(struct err *err);

/* fonts.c: loads the few faces that all text is drawn with, and draws once with each. */
int fonts_load(struct err *err);

#endif
