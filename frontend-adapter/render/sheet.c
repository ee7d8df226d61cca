/* The little of CSS that a drawn table follows: colours, bold and alignment, by id or in place. */
#include "frontend-adapter/render/table.h"
#include "gateway/base/hash.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>

#define RULES_MAX 100000u

struct rule {
	UT_hash_handle hh;
	struct cell style; /* what the rules of this id say */
	char id[];
};

struct sheet {
	struct rule *rules;
	unsigned n;
};

static struct bytes trim(struct bytes b)
{
	while (b.len > 0 && strchr(" \t\r\n\f", b.data[0])) {
		b.data++;
		b.len--;
	}
	while (b.len > 0 && strchr(" \t\r\n\f", b.data[b.len - 1]))
		b.len--;
	return b;
}

static uint32_t named(const char *text)
{
	static const struct {
		const char *name;
		uint32_t rgb;
	} rows[] = {{"black", 0}, {"white", 0xffffff}, {"red", 0xff0000}, {"green", 0x008000},
		{"blue", 0x0000ff}, {"yellow", 0xffff00}, {"orange", 0xffa500}, {"gray", 0x808080},
		{"grey", 0x808080}, {"lightgreen", 0x90ee90}, {"lightblue", 0xadd8e6},
		{"pink", 0xffc0cb}, {"darkorange", 0xff8c00}, {"purple", 0x800080},
		{"lightgrey", 0xd3d3d3}, {"lightgray", 0xd3d3d3}, {"cyan", 0x00ffff},
		{"navy", 0x000080}, {"gold", 0xffd700}, {"silver", 0xc0c0c0}};
	for (size_t i = 0; i < ARRAY_LEN(rows); i++)
		if (strcasecmp(rows[i].name, text) == 0)
			return rows[i].rgb;
	return NO_COLOUR;
}

static uint32_t colour_of(struct bytes value)
{
	char text[64];
	unsigned r, g, b;
	int end = 0;
	if (!copy_text(text, sizeof text, (const char *)value.data, value.len))
		return NO_COLOUR;
	if (sscanf(text, "#%2x%2x%2x%n", &r, &g, &b, &end) == 3 && text[end] == '\0')
		return r << 16 | g << 8 | b;
	if (sscanf(text, "#%1x%1x%1x%n", &r, &g, &b, &end) == 3 && text[end] == '\0')
		return r * 17 << 16 | g * 17 << 8 | b * 17;
	if (sscanf(text, "rgb(%3u,%3u,%3u)", &r, &g, &b) == 3)
		return (r & 255) << 16 | (g & 255) << 8 | (b & 255);
	return named(text);
}

static bool is_name(struct bytes name, const char *text)
{
	return name.len == strlen(text) &&
	       strncasecmp((const char *)name.data, text, name.len) == 0;
}

static void declare(struct bytes name, struct bytes value, struct cell *c)
{
	uint32_t colour = colour_of(value);
	if ((is_name(name, "background-color") || is_name(name, "background")) &&
		colour != NO_COLOUR)
		c->background = colour;
	else if (is_name(name, "color") && colour != NO_COLOUR)
		c->colour = colour;
	else if (is_name(name, "font-weight"))
		c->bold = is_name(value, "bold") || c->bold;
	else if (is_name(name, "text-align"))
		c->align = is_name(value, "left")     ? ALIGN_LEFT
			   : is_name(value, "center") ? ALIGN_CENTER
			   : is_name(value, "right")  ? ALIGN_RIGHT
						      : c->align;
}

void sheet_inline(struct bytes css, struct cell *c)
{
	while (css.len > 0) {
		const uint8_t *end = memchr(css.data, ';', css.len);
		size_t len = end ? (size_t)(end - css.data) : css.len;
		const uint8_t *colon = memchr(css.data, ':', len);
		if (colon) {
			size_t at = (size_t)(colon - css.data);
			declare(trim((struct bytes){css.data, at}),
				trim((struct bytes){colon + 1, len - at - 1}), c);
		}
		css.data += end ? len + 1 : len;
		css.len -= end ? len + 1 : len;
	}
}

struct sheet *sheet_new(void)
{
	return xcalloc(1, sizeof(struct sheet));
}

void sheet_free(struct sheet *s)
{
	struct rule *r, *next;
	HASH_ITER (hh, s->rules, r, next) {
		HASH_DEL(s->rules, r);
		free(r);
	}
	free(s);
}

static struct rule *rule_of(struct sheet *s, struct bytes id)
{
	struct rule *r;
	HASH_FIND(hh, s->rules, id.data, id.len, r);
	if (r || s->n >= RULES_MAX || id.len > 200)
		return r;
	s->n++;
	r = xcalloc(1, sizeof *r + id.len + 1);
	memcpy(r->id, id.data, id.len);
	r->style.background = r->style.colour = NO_COLOUR;
	HASH_ADD_KEYPTR(hh, s->rules, r->id, id.len, r);
	return r;
}

/* `#a, #b`, and pandas' heads; all other selectors say nothing here. */
static void add_rule(struct sheet *s, struct bytes ids, struct bytes css)
{
	while (ids.len > 0) {
		const uint8_t *comma = memchr(ids.data, ',', ids.len);
		size_t len = comma ? (size_t)(comma - ids.data) : ids.len;
		struct bytes id = trim((struct bytes){ids.data, len});
		struct rule *r = NULL;
		if (id.len > 1 && id.data[0] == '#' && !memchr(id.data, ' ', id.len))
			r = rule_of(s, (struct bytes){id.data + 1, id.len - 1});
		else if (bytes_equal(id, SHEET_HEADS))
			r = rule_of(s, id);
		if (r)
			sheet_inline(css, &r->style);
		ids.data += comma ? len + 1 : len;
		ids.len -= comma ? len + 1 : len;
	}
}

void sheet_add(struct sheet *s, struct bytes css)
{
	while (css.len > 0) {
		const uint8_t *open = memchr(css.data, '{', css.len);
		const uint8_t *end =
			open ? memchr(open, '}', css.len - (size_t)(open - css.data)) : NULL;
		if (!end)
			return;
		add_rule(s, trim((struct bytes){css.data, (size_t)(open - css.data)}),
			(struct bytes){open + 1, (size_t)(end - open - 1)});
		css.len -= (size_t)(end + 1 - css.data);
		css.data = end + 1;
	}
}

void sheet_style(const struct sheet *s, const char *id, struct cell *c)
{
	struct rule *r = NULL;
	if (s && id)
		HASH_FIND_STR(s->rules, id, r);
	if (!r)
		return;
	c->background = r->style.background != NO_COLOUR ? r->style.background : c->background;
	c->colour = r->style.colour != NO_COLOUR ? r->style.colour : c->colour;
	c->bold = c->bold || r->style.bold;
	c->align = r->style.align != ALIGN_NONE ? r->style.align : c->align;
}
