/* Is this HTML as the sanitiser promises? A reading of its own, character by character, that shares
 * no list and no line with it: what it cannot read is unsafe. Aborts with what was wrong. */
#ifndef COPPICE_TEST_SAFE_HTML_H
#define COPPICE_TEST_SAFE_HTML_H

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "frontend-adapter/render/render.h"
#include "gateway/base/crypto.h"

#define SAFE_NAME_MAX 40
#define SAFE_SCOPE    "scope" /* what the sanitiser is given */

static const char *const safe_html_tags[] = {"a", "abbr", "article", "aside", "b", "bdi", "bdo",
	"big", "blockquote", "br", "caption", "center", "cite", "code", "col", "colgroup", "dd",
	"del", "details", "dfn", "div", "dl", "dt", "em", "figcaption", "figure", "footer", "h1",
	"h2", "h3", "h4", "h5", "h6", "header", "hr", "i", "img", "ins", "kbd", "li", "main",
	"mark", "nav", "ol", "p", "pre", "q", "rp", "rt", "ruby", "s", "samp", "section", "small",
	"span", "strike", "strong", "style", "sub", "summary", "sup", "table", "tbody", "td",
	"tfoot", "th", "thead", "time", "tr", "tt", "u", "ul", "var", "wbr"};
static const char *const safe_html_names[] = {"align", "alt", "aria-label", "bgcolor", "border",
	"cellpadding", "cellspacing", "class", "colspan", "datetime", "dir", "headers", "height",
	"href", "id", "lang", "open", "rel", "reversed", "rowspan", "scope", "span", "src", "start",
	"style", "target", "title", "type", "valign", "value", "width"};
static const char *const safe_svg_not[] = {"script", "foreignobject", "iframe", "animate", "set",
	"a", "handler", "feimage", "style-sheet", "title", "desc", "metadata", "cursor"};

struct safe_reading {
	const char *at, *end, *whole;
	size_t len;
	bool svg;
};

static inline void safe_fail(const struct safe_reading *r, const char *what)
{
	fprintf(stderr, "unsafe: %s at %td of:\n%.*s\n", what, r->at - r->whole,
		(int)(r->len < 4000 ? r->len : 4000), r->whole);
	abort();
}

static inline bool safe_in(const char *name, const char *const *list, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (strcasecmp(list[i], name) == 0)
			return true;
	return false;
}

static inline bool safe_starts(const char *at, size_t len, const char *with)
{
	return len >= strlen(with) && strncasecmp(at, with, strlen(with)) == 0;
}

/* A property that could place a box over others, move it, or load. */
static inline void safe_property(const struct safe_reading *r, const char *at, size_t len)
{
	static const char *const never[] = {"position", "z-index", "inset", "top", "left", "right",
		"bottom", "transform", "translate", "scale", "rotate", "behavior", "-moz-",
		"-webkit-", "content", "float", "animation", "transition", "cursor", "all", "--",
		"contain"};
	for (size_t i = 0; i < ARRAY_LEN(never); i++)
		if (safe_starts(at, len, never[i]))
			safe_fail(r, never[i]);
}

/* CSS, wherever it stands. */
static inline void safe_css(const struct safe_reading *r, const char *at, size_t len)
{
	static const char *const never[] = {
		"expression(", "@", "\\", "//", "/*", "<", "image-set(", "src(", "var("};
	for (size_t i = 0; i < len; i++) {
		for (size_t k = 0; k < ARRAY_LEN(never); k++)
			if (safe_starts(at + i, len - i, never[k]))
				safe_fail(r, never[k]);
		if (safe_starts(at + i, len - i, "url(") &&
			(!r->svg || !safe_starts(at + i, len - i, "url(#")))
			safe_fail(r, "url() in CSS");
		if (!r->svg && (i == 0 || at[i - 1] == ';' || at[i - 1] == '{'))
			safe_property(r, at + i, len - i);
	}
}

static inline void safe_svg_picture(const struct safe_reading *r, const char *at, size_t len);

static inline void safe_url(
	const struct safe_reading *r, const char *name, const char *at, size_t len)
{
	static const char *const pictures[] = {"data:image/png;base64,iVBOR",
		"data:image/jpeg;base64,/9j/", "data:image/gif;base64,R0lG"};
	static const char vector[] = "data:image/svg+xml;base64,";
	bool picture = false;
	for (size_t i = 0; i < ARRAY_LEN(pictures); i++)
		picture = picture || safe_starts(at, len, pictures[i]);
	if (strcmp(name, "src") == 0 && !r->svg && safe_starts(at, len, vector))
		safe_svg_picture(r, at + sizeof vector - 1, len - sizeof vector + 1);
	else if (strcmp(name, "src") == 0 && !picture)
		safe_fail(r, "src");
	if (strcmp(name, "href") == 0 && !safe_starts(at, len, "https://") &&
		!safe_starts(at, len, "http://") && !safe_starts(at, len, "mailto:") &&
		!safe_starts(at, len, "#u-"))
		safe_fail(r, "href");
	if (strcmp(name, "xlink:href") == 0 && !picture && at[0] != '#')
		safe_fail(r, "xlink:href");
}

static inline void safe_attribute(
	const struct safe_reading *r, const char *name, const char *at, size_t len)
{
	if (safe_starts(name, strlen(name), "on"))
		safe_fail(r, "a handler");
	if (!r->svg && !safe_in(name, safe_html_names, ARRAY_LEN(safe_html_names)))
		safe_fail(r, name);
	if (memchr(at, '<', len) || memchr(at, '`', len))
		safe_fail(r, "a bare character in a value");
	if (strcmp(name, "style") == 0 || (r->svg && strchr("fmsc", name[0]) && name[0]))
		safe_css(r, at, strcmp(name, "style") == 0 || memchr(at, '(', len) ? len : 0);
	if (!r->svg && (strcmp(name, "id") == 0) && !safe_starts(at, len, "u-"))
		safe_fail(r, "id");
	safe_url(r, name, at, len);
}

static inline void safe_attributes(struct safe_reading *r)
{
	while (r->at < r->end && *r->at == ' ') {
		char name[SAFE_NAME_MAX] = "";
		size_t n = 0;
		for (r->at++;
			r->at < r->end && (isalnum((unsigned char)*r->at) || strchr("-:", *r->at));
			r->at++)
			if (n + 1 < sizeof name)
				name[n++] = *r->at;
		if (n == 0 || r->end - r->at < 2 || r->at[0] != '=' || r->at[1] != '"')
			safe_fail(r, "an attribute that cannot be read");
		const char *value = r->at + 2;
		const char *end = memchr(value, '"', (size_t)(r->end - value));
		if (!end)
			safe_fail(r, "an open value");
		safe_attribute(r, name, value, (size_t)(end - value));
		r->at = end + 1;
	}
}

static inline void safe_sheet(struct safe_reading *r)
{
	const char *end = memmem(r->at, (size_t)(r->end - r->at), "</style>", 8);
	if (!end)
		safe_fail(r, "an open sheet");
	safe_css(r, r->at, (size_t)(end - r->at));
	for (const char *line = r->at; !r->svg && line < end;) {
		const char *next = memchr(line, '\n', (size_t)(end - line));
		if (!safe_starts(line, (size_t)(end - line), "." SAFE_SCOPE " "))
			safe_fail(r, "a rule for the whole page");
		line = next ? next + 1 : end;
	}
	r->at = end + 8;
}

static inline void safe_tag(struct safe_reading *r)
{
	char name[SAFE_NAME_MAX] = "";
	size_t n = 0;
	bool closes = r->at + 1 < r->end && r->at[1] == '/';
	for (r->at += closes ? 2 : 1; r->at < r->end && isalnum((unsigned char)*r->at); r->at++)
		if (n + 1 < sizeof name)
			name[n++] = *r->at;
	if (n == 0 || (!r->svg && !safe_in(name, safe_html_tags, ARRAY_LEN(safe_html_tags))) ||
		(r->svg && safe_in(name, safe_svg_not, ARRAY_LEN(safe_svg_not))))
		safe_fail(r, "a tag");
	if (!closes)
		safe_attributes(r);
	if (r->at >= r->end || *r->at != '>')
		safe_fail(r, "a tag's end");
	r->at++;
	if (!closes && strcmp(name, "style") == 0)
		safe_sheet(r);
}

static inline void safe_read(struct bytes b, bool svg)
{
	const char *text = b.len ? (const char *)b.data : "";
	struct safe_reading r = {text, text + b.len, text, b.len, svg};
	while (r.at < r.end) {
		if (*r.at == '<')
			safe_tag(&r);
		else if (*r.at == '>' || ((unsigned char)*r.at < 0x20 && !strchr("\n\t\r", *r.at)))
			safe_fail(&r, "a bare character");
		else
			r.at++;
	}
}

static inline void safe_svg_picture(const struct safe_reading *r, const char *at, size_t len)
{
	AUTO(buf_done) struct buf svg;
	buf_init(&svg, len + 8);
	if (base64_decode((struct bytes){(const uint8_t *)at, len}, &svg) != 0)
		safe_fail(r, "base64 of an SVG");
	safe_read((struct bytes){svg.data, svg.len}, true);
}

#endif
