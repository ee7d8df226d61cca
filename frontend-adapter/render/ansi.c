/* The terminal's text. A line is cells that are written over, as a progress bar does. */
#include "frontend-adapter/render/ansi.h"

#include <string.h>

#define PARAMETERS_MAX 32
#define ANSI_TEXT_MAX  (64u << 20)

struct cell {
	uint8_t utf8[4];
	uint8_t len;
	struct ansi_style style;
};

struct parser {
	struct bytes in;
	size_t at;
	struct ansi_style style;
	struct buf line; /* of struct cell */
	size_t column;
	struct ansi *out;
};

/* ---- runs ---- */

static bool is_same(const struct ansi_style *a, const struct ansi_style *b)
{
	return a->fg == b->fg && a->bg == b->bg && a->flags == b->flags;
}

static void emit(struct parser *p, const struct cell *c)
{
	struct buf *list = &p->out->list;
	size_t n = list->len / sizeof(struct ansi_run);
	struct ansi_run *last = n ? (struct ansi_run *)(void *)list->data + n - 1 : NULL;
	if (last && is_same(&last->style, &c->style)) {
		last->len += c->len;
	} else {
		struct ansi_run run = {c->style, p->out->text.len, c->len};
		(void)buf_add(list, &run, sizeof run); /* latched, as below */
	}
	(void)buf_add(&p->out->text, c->utf8, c->len);
}

static void end_line(struct parser *p)
{
	const struct cell *cells = (const void *)p->line.data;
	for (size_t i = 0; i < p->line.len / sizeof *cells; i++)
		emit(p, &cells[i]);
	buf_reset(&p->line);
	p->column = 0;
}

static void put(struct parser *p, const struct cell *c)
{
	size_t n = p->line.len / sizeof *c;
	if (p->column < n)
		memcpy(p->line.data + p->column * sizeof *c, c, sizeof *c);
	else
		(void)buf_add(&p->line, c, sizeof *c); /* latched */
	p->column++;
}

/* ---- colours ---- */

/* 38;5;n and 38;2;r;g;b: how many parameters were used. */
static unsigned extended(const unsigned *p, unsigned n, uint32_t *ret)
{
	static const uint8_t steps[] = {0, 95, 135, 175, 215, 255};
	if (n >= 5 && p[1] == 2) {
		*ret = ANSI_RGB | (p[2] & 0xff) << 16 | (p[3] & 0xff) << 8 | (p[4] & 0xff);
		return 5;
	}
	if (n < 3 || p[1] != 5)
		return n;
	unsigned c = p[2] & 0xff;
	if (c < 16) {
		*ret = ANSI_PALETTE | c;
	} else if (c < 232) {
		c -= 16;
		*ret = ANSI_RGB | (uint32_t)steps[c / 36] << 16 | (uint32_t)steps[c / 6 % 6] << 8 |
		       steps[c % 6];
	} else {
		c = 8 + (c - 232) * 10;
		*ret = ANSI_RGB | c << 16 | c << 8 | c;
	}
	return 3;
}

static void set_flag(struct ansi_style *s, unsigned code)
{
	static const struct {
		unsigned code, clear, set;
	} rows[] = {{1, 0, ANSI_BOLD}, {2, 0, ANSI_FAINT}, {3, 0, ANSI_ITALIC},
		{4, 0, ANSI_UNDERLINE}, {7, 0, ANSI_INVERSE}, {21, ANSI_BOLD, 0},
		{22, ANSI_BOLD | ANSI_FAINT, 0}, {23, ANSI_ITALIC, 0}, {24, ANSI_UNDERLINE, 0},
		{27, ANSI_INVERSE, 0}};
	for (size_t i = 0; i < ARRAY_LEN(rows); i++)
		if (rows[i].code == code)
			s->flags = (s->flags & ~rows[i].clear) | rows[i].set;
}

static void set_style(struct ansi_style *s, const unsigned *p, unsigned n)
{
	for (unsigned i = 0; i < n; i++) {
		unsigned c = p[i];
		if (c == 0)
			*s = (struct ansi_style){0};
		else if (c == 38 || c == 48)
			i += extended(p + i, n - i, c == 38 ? &s->fg : &s->bg) - 1;
		else if (c >= 30 && c <= 37)
			s->fg = ANSI_PALETTE | (c - 30);
		else if (c >= 90 && c <= 97)
			s->fg = ANSI_PALETTE | (c - 90 + 8);
		else if (c >= 40 && c <= 47)
			s->bg = ANSI_PALETTE | (c - 40);
		else if (c >= 100 && c <= 107)
			s->bg = ANSI_PALETTE | (c - 100 + 8);
		else if (c == 39)
			s->fg = ANSI_DEFAULT;
		else if (c == 49)
			s->bg = ANSI_DEFAULT;
		else
			set_flag(s, c);
	}
}

/* ---- escape sequences ---- */

/* After ESC [ : parameters, then one letter. An unfinished one is passed over to the end. */
static void control(struct parser *p)
{
	unsigned list[PARAMETERS_MAX] = {0}, n = 0;
	for (; p->at < p->in.len; p->at++) {
		uint8_t c = p->in.data[p->at];
		if (c >= '0' && c <= '9') {
			if (n < PARAMETERS_MAX && list[n] < 10000)
				list[n] = list[n] * 10 + (unsigned)(c - '0');
		} else if (c == ';' || c == ':') {
			n += n < PARAMETERS_MAX;
		} else if (c >= 0x40 && c <= 0x7e) {
			p->at++;
			if (c == 'm')
				set_style(&p->style, list,
					n < PARAMETERS_MAX ? n + 1 : PARAMETERS_MAX);
			return;
		} else if (c < 0x20 || c > 0x3f) {
			return;
		}
	}
}

/* After ESC ], P, X, ^ or _: up to BEL or ESC \ . */
static void text_sequence(struct parser *p)
{
	for (; p->at < p->in.len; p->at++) {
		if (p->in.data[p->at] == 0x07) {
			p->at++;
			return;
		}
		if (p->in.data[p->at] == 0x1b) {
			p->at += p->at + 1 < p->in.len && p->in.data[p->at + 1] == '\\' ? 2 : 0;
			return;
		}
	}
}

static void escape(struct parser *p)
{
	uint8_t c = ++p->at < p->in.len ? p->in.data[p->at] : 0;
	p->at += p->at < p->in.len && c != 0x1b;
	if (c == '[')
		control(p);
	else if (c && strchr("]PX^_", c))
		text_sequence(p);
}

static void character(struct parser *p)
{
	uint8_t c = p->in.data[p->at];
	size_t len = c < 0xc0 ? 1 : c < 0xe0 ? 2 : c < 0xf0 ? 3 : 4;
	struct cell cell = {.style = p->style};
	if (len > p->in.len - p->at)
		len = 1;
	memcpy(cell.utf8, p->in.data + p->at, len);
	cell.len = (uint8_t)len;
	p->at += len;
	put(p, &cell);
	if (c == '\n')
		end_line(p);
}

static void step(struct parser *p)
{
	uint8_t c = p->in.data[p->at];
	if (c == 0x1b) {
		escape(p);
	} else if (c == '\r') {
		p->at++;
		p->column = 0;
	} else if (c == '\b') {
		p->at++;
		p->column -= p->column > 0;
	} else if (c == '\n') {
		p->column = p->line.len / sizeof(struct cell);
		character(p);
	} else if ((c < 0x20 && c != '\t') || c == 0x7f) {
		p->at++;
	} else {
		character(p);
	}
}

int ansi_parse(struct bytes in, struct ansi *ret)
{
	struct parser p = {.in = in, .out = ret};
	buf_init(&ret->text, ANSI_TEXT_MAX);
	buf_init(&ret->list, 16 * (size_t)ANSI_TEXT_MAX);
	buf_init(&p.line, sizeof(struct cell) * (size_t)ANSI_TEXT_MAX);
	while (p.at < in.len && !p.line.failed)
		step(&p);
	end_line(&p);
	int status = p.line.failed	? p.line.code
		     : ret->text.failed ? ret->text.code
		     : ret->list.failed ? ret->list.code
					: 0;
	buf_done(&p.line);
	return status;
}

void ansi_done(struct ansi *a)
{
	buf_done(&a->text);
	buf_done(&a->list);
}

size_t ansi_runs(const struct ansi *a, const struct ansi_run **ret)
{
	*ret = (const void *)a->list.data;
	return a->list.len / sizeof **ret;
}
