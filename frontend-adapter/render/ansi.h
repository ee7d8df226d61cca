/* Text of a terminal as runs of one style: SGR colours kept, carriage return and backspace carried
 * out on their line, all other escape sequences passed over. */
#ifndef COPPICE_RENDER_ANSI_H
#define COPPICE_RENDER_ANSI_H

#include "gateway/base/base.h"
#include "gateway/base/buf.h"

#define ANSI_DEFAULT   0u
#define ANSI_PALETTE   0x1000000u /* | 0..15 */
#define ANSI_RGB       0x2000000u /* | 0xrrggbb */
#define ANSI_IS(c, of) (((c)&0xff000000u) == (of))

enum ansi_flag {
	ANSI_BOLD = 1,
	ANSI_ITALIC = 2,
	ANSI_UNDERLINE = 4,
	ANSI_INVERSE = 8,
	ANSI_FAINT = 16
};

struct ansi_style {
	uint32_t fg, bg;
	unsigned flags;
};

struct ansi_run {
	struct ansi_style style;
	size_t from, len; /* in text */
};

struct ansi {
	struct buf text; /* UTF-8 if the input was */
	struct buf list; /* of struct ansi_run */
};

/* Initialises ret (ansi_done() it). E_TOO_BIG, E_NOMEM. */
int ansi_parse(struct bytes in, struct ansi *ret);
void ansi_done(struct ansi *a);
size_t ansi_runs(const struct ansi *a, const struct ansi_run **ret);

/* Spans with JupyterLab's classes (ansi-red-fg, ansi-bold ...); 256 colours and RGB as style. */
void ansi_html(const struct ansi *a, struct buf *out);
/* 0xrrggbb of a colour that is not ANSI_DEFAULT. */
uint32_t ansi_rgb(uint32_t colour);

/* Head and tail with a mark between, whole lines where these are short; in as it is if it fits. */
bool text_cut(struct bytes in, size_t max, struct buf *out);

#endif
