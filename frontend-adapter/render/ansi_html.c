/* Runs as spans, and the cut that keeps head and tail. */
#include "frontend-adapter/render/ansi.h"

#include <string.h>

#include "frontend-adapter/render/render.h"

static const char *const names[] = {
	"black", "red", "green", "yellow", "blue", "magenta", "cyan", "white"};

/* JupyterLab's palette. */
static const uint32_t palette[] = {0x3e424d, 0xe75c58, 0x00a250, 0xddb62b, 0x208ffb, 0xd160c4,
	0x60c6c8, 0xc5c1b4, 0x282c36, 0xb22b31, 0x007427, 0xb27d12, 0x0065ca, 0xa03196, 0x258f8f,
	0xa1a6b2};

uint32_t ansi_rgb(uint32_t colour)
{
	return ANSI_IS(colour, ANSI_PALETTE) ? palette[colour & 15] : colour & 0xffffff;
}

static void put_class(struct buf *out, uint32_t colour, const char *end)
{
	if (ANSI_IS(colour, ANSI_PALETTE))
		(void)buf_addf(out, " ansi-%s%s-%s", names[colour & 7],
			colour & 8 ? "-intense" : "", end); /* latched */
}

static void put_colour(struct buf *out, uint32_t colour, const char *property)
{
	if (ANSI_IS(colour, ANSI_RGB))
		(void)buf_addf(out, "%s:#%06x;", property, colour & 0xffffff); /* latched */
}

static void put_span(const struct ansi_style *s, struct buf *out)
{
	AUTO(buf_done) struct buf classes, style;
	buf_init(&classes, 400); /* both hold what is put below */
	buf_init(&style, 100);
	put_class(&classes, s->fg, "fg");
	put_class(&classes, s->bg, "bg");
	(void)buf_addf(&classes, "%s%s%s%s%s", s->flags & ANSI_BOLD ? " ansi-bold" : "",
		s->flags & ANSI_ITALIC ? " ansi-italic" : "",
		s->flags & ANSI_UNDERLINE ? " ansi-underline" : "",
		s->flags & ANSI_INVERSE ? " ansi-inverse" : "",
		s->flags & ANSI_FAINT ? " ansi-faint" : "");
	put_colour(&style, s->fg, "color");
	put_colour(&style, s->bg, "background-color");
	(void)buf_add_text(out, "<span"); /* latched, as below */
	if (classes.len > 0)
		(void)buf_addf(out, " class=\"%s\"", (char *)classes.data + 1);
	if (style.len > 0)
		(void)buf_addf(out, " style=\"%s\"", (char *)style.data);
	(void)buf_add_text(out, ">");
}

void ansi_html(const struct ansi *a, struct buf *out)
{
	const struct ansi_run *run;
	size_t n = ansi_runs(a, &run);
	for (size_t i = 0; i < n && !out->failed; i++) {
		const struct ansi_style *s = &run[i].style;
		bool plain = s->fg == ANSI_DEFAULT && s->bg == ANSI_DEFAULT && s->flags == 0;
		if (!plain)
			put_span(s, out);
		escape_text(out, (char *)a->text.data + run[i].from, run[i].len);
		if (!plain)
			(void)buf_add_text(out, "</span>"); /* latched */
	}
}

/* ---- the cut ---- */

#define LINE_LOOK 400u

static bool is_inside(uint8_t c)
{
	return (c & 0xc0) == 0x80;
}

/* The end of the head: after a line's end that is near, else between two characters. */
static size_t head_end(struct bytes in, size_t at)
{
	for (size_t back = 0; back < LINE_LOOK && back < at; back++)
		if (in.data[at - back - 1] == '\n')
			return at - back;
	while (at > 0 && is_inside(in.data[at]))
		at--;
	return at;
}

static size_t tail_start(struct bytes in, size_t at)
{
	for (size_t more = 0; more < LINE_LOOK && at + more < in.len; more++)
		if (in.data[at + more - 1] == '\n')
			return at + more;
	while (at < in.len && is_inside(in.data[at]))
		at++;
	return at;
}

bool text_cut(struct bytes in, size_t max, struct buf *out)
{
	if (in.len <= max) {
		(void)buf_add(out, in.data, in.len); /* latched, as below */
		return false;
	}
	size_t head = head_end(in, max / 3 * 2), tail = tail_start(in, in.len - max / 3);
	(void)buf_add(out, in.data, head);
	(void)buf_addf(out, "%s\x1b[0m[... %zu bytes left out ...]\n",
		head > 0 && in.data[head - 1] == '\n' ? "" : "\n", tail - head);
	(void)buf_add(out, in.data + tail, in.len - tail);
	return true;
}
