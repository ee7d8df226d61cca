/* CSS: declarations and rules whose every character is understood; the rest is not there. Nothing
 * is kept that could load (url, @import), cover (position), or end the element it stands in. */
#include "frontend-adapter/render/sanitise.h"

#include <ctype.h>
#include <string.h>
#include <strings.h>

#define NAME_MAX_LEN  200u
#define VALUE_MAX_LEN 1000u

static bool is_name(uint8_t c)
{
	return isalnum(c) || c == '-' || c == '_';
}

static struct bytes trim(struct bytes b)
{
	while (b.len > 0 && isspace(b.data[0])) {
		b.data++;
		b.len--;
	}
	while (b.len > 0 && isspace(b.data[b.len - 1]))
		b.len--;
	return b;
}

static struct bytes upto(struct bytes b, size_t from, size_t to)
{
	return trim((struct bytes){b.data + from, to - from});
}

/* ---- values ---- */

/* url(#name), the only address there is; its length, 0 for all else. */
static size_t local_url_len(struct bytes b)
{
	size_t at = 5;
	if (b.len < 7 || strncasecmp((const char *)b.data, "url(#", 5) != 0)
		return 0;
	while (at < b.len && (is_name(b.data[at]) || b.data[at] == '.' || b.data[at] == ':'))
		at++;
	return at > 5 && at < b.len && b.data[at] == ')' ? at + 1 : 0;
}

/* The word before a bracket. */
static struct bytes word_before(struct bytes b, size_t at)
{
	size_t from = at;
	while (from > 0 && is_name(b.data[from - 1]))
		from--;
	return (struct bytes){b.data + from, at - from};
}

/* Non-ASCII is for names of fonts. Backslashes, semicolons, braces, slashes with stars: nowhere. */
static bool is_value_char(uint8_t c)
{
	return is_name(c) || c >= 0x80 || (c && strchr(" \t\r\n#.,%()+'\"/", c));
}

/* Quotes must be closed: an open one would swallow what follows. */
static bool quotes_are_closed(struct bytes b)
{
	uint8_t open = 0;
	for (size_t i = 0; i < b.len; i++) {
		uint8_t c = b.data[i];
		if (c != '"' && c != '\'')
			continue;
		if (!open)
			open = c;
		else if (open == c)
			open = 0;
	}
	return open == 0;
}

static bool is_negative(struct bytes b, size_t at)
{
	return b.data[at] == '-' && at + 1 < b.len &&
	       (isdigit(b.data[at + 1]) || b.data[at + 1] == '.') &&
	       (at == 0 || !is_name(b.data[at - 1]));
}

static bool is_value(struct bytes b, bool svg)
{
	int depth = 0;
	if (b.len == 0 || b.len > VALUE_MAX_LEN || !quotes_are_closed(b))
		return false;
	for (size_t i = 0; i < b.len; i++) {
		uint8_t c = b.data[i];
		struct bytes rest = {b.data + i, b.len - i};
		size_t url = svg && (i == 0 || !is_name(b.data[i - 1])) ? local_url_len(rest) : 0;
		if (url > 0) {
			i += url - 1;
			continue;
		}
		if (!is_value_char(c) || (!svg && is_negative(b, i)))
			return false;
		if (c == '/' && i + 1 < b.len && (b.data[i + 1] == '*' || b.data[i + 1] == '/'))
			return false;
		if (c == '(' && !names_css_function(word_before(b, i)))
			return false;
		depth += c == '(' ? 1 : c == ')' ? -1 : 0;
		if (depth < 0)
			return false;
	}
	return depth == 0;
}

static void declaration(struct bytes css, bool svg, struct buf *out)
{
	const uint8_t *colon = css.len ? memchr(css.data, ':', css.len) : NULL;
	if (!colon)
		return;
	size_t at = (size_t)(colon - css.data);
	struct bytes name = upto(css, 0, at), value = upto(css, at + 1, css.len);
	if (!names_css_property(name, svg) || !is_value(value, svg))
		return;
	(void)buf_add(out, name.data, name.len); /* latched, as below */
	(void)buf_add_text(out, ":");
	for (size_t i = 0; i < value.len; i++)
		(void)buf_add(
			out, isspace(value.data[i]) ? (const uint8_t *)" " : value.data + i, 1);
	(void)buf_add_text(out, ";");
}

void style_declarations(struct bytes css, bool svg, struct buf *out)
{
	size_t from = 0;
	for (size_t i = 0; i <= css.len; i++) {
		if (i < css.len && css.data[i] != ';')
			continue;
		declaration(upto(css, from, i), svg, out);
		from = i + 1;
	}
}

/* ---- sheets ---- */

void style_name(struct bytes name, bool id, struct buf *out)
{
	static const char plain[] = "dataframe";
	size_t len = name.len < NAME_MAX_LEN ? name.len : NAME_MAX_LEN;
	if (id || !bytes_equal(name, plain))
		(void)buf_add_text(out, "u-"); /* latched, as below */
	for (size_t i = 0; i < len; i++)
		(void)buf_add(out, is_name(name.data[i]) ? &name.data[i] : (const uint8_t *)"_", 1);
}

static size_t name_len(struct bytes s, size_t at)
{
	size_t end = at;
	while (end < s.len && is_name(s.data[end]))
		end++;
	return end - at;
}

/* Arguments of :nth-child(2n + 1). :not(...) has a selector and is left out with the rule. */
static size_t argument_len(struct bytes s, size_t at)
{
	size_t end = at;
	if (at >= s.len || s.data[at] != '(')
		return 0;
	for (end++; end < s.len && s.data[end] != ')'; end++)
		if (!is_name(s.data[end]) && s.data[end] != '+' && s.data[end] != ' ')
			return 0;
	return end < s.len ? end + 1 - at : 0;
}

static size_t pseudo(struct bytes s, size_t at, struct buf *out)
{
	size_t from = at;
	while (at < s.len && s.data[at] == ':' && at - from < 2)
		at++;
	size_t len = name_len(s, at);
	if (len == 0 || !names_css_pseudo((struct bytes){s.data + at, len}))
		return 0;
	at += len;
	at += argument_len(s, at);
	(void)buf_add(out, s.data + from, at - from); /* latched */
	return at - from;
}

/* One step of a compound selector: its length, 0 where it is not understood. */
static size_t simple(struct bytes s, size_t at, bool svg, struct buf *out)
{
	uint8_t c = s.data[at];
	if (c == ':')
		return pseudo(s, at, out);
	if ((c == '#' || c == '.') && name_len(s, at + 1) > 0) {
		size_t len = name_len(s, at + 1);
		struct bytes name = {s.data + at + 1, len};
		(void)buf_add(out, &c, 1); /* latched, as below */
		if (svg)
			(void)buf_add(out, name.data, name.len);
		else
			style_name(name, c == '#', out);
		return len + 1;
	}
	size_t len = name_len(s, at);
	if (len == 0 && (isspace(c) || strchr(">+~*", c))) {
		(void)buf_add(out, isspace(c) ? (const uint8_t *)" " : &c, 1);
		return 1;
	}
	(void)buf_add(out, s.data + at, len);
	return len;
}

static bool selector(struct bytes s, const char *scope, struct buf *out)
{
	if (s.len == 0 || s.len > VALUE_MAX_LEN)
		return false;
	if (scope)
		(void)buf_addf(out, ".%s ", scope); /* latched */
	for (size_t at = 0, len; at < s.len; at += len) {
		if (s.data[at] == '\0')
			return false;
		len = simple(s, at, !scope, out);
		if (len == 0)
			return false;
	}
	return true;
}

/* Those of the selectors that are understood; false if none is. */
static bool selectors(struct bytes s, const char *scope, struct buf *out)
{
	size_t from = 0;
	bool any = false;
	for (size_t i = 0; i <= s.len; i++) {
		if (i < s.len && s.data[i] != ',')
			continue;
		AUTO(buf_done) struct buf one;
		buf_init(&one, 4 * VALUE_MAX_LEN);
		if (selector(upto(s, from, i), scope, &one) && !one.failed) {
			(void)buf_add_text(out, any ? "," : ""); /* latched, as below */
			(void)buf_add(out, one.data, one.len);
			any = true;
		}
		from = i + 1;
	}
	return any;
}

static void rule(struct bytes head, struct bytes body, const char *scope, struct buf *out)
{
	AUTO(buf_done) struct buf names, declarations;
	buf_init(&names, out->max);
	buf_init(&declarations, out->max);
	style_declarations(body, !scope, &declarations);
	if (declarations.len == 0 || declarations.failed || !selectors(head, scope, &names))
		return;
	(void)buf_add(out, names.data, names.len); /* latched, as below */
	(void)buf_add_text(out, "{");
	(void)buf_add(out, declarations.data, declarations.len);
	(void)buf_add_text(out, "}\n");
}

/* Past the block that begins at `at` ('{'), inner ones included. */
static size_t block_end(struct bytes css, size_t at)
{
	int depth = 0;
	for (; at < css.len; at++) {
		if (css.data[at] == '{')
			depth++;
		else if (css.data[at] == '}' && --depth == 0)
			return at;
	}
	return css.len;
}

/* Comments become a blank; `ret` has no other slash with a star. */
static void strip_comments(struct bytes css, struct buf *ret)
{
	size_t from = 0;
	for (size_t i = 0; i + 1 < css.len; i++) {
		if (css.data[i] != '/' || css.data[i + 1] != '*')
			continue;
		(void)buf_add(ret, css.data + from, i - from); /* latched, as below */
		(void)buf_add_text(ret, " ");
		for (i += 2; i + 1 < css.len && (css.data[i] != '*' || css.data[i + 1] != '/'); i++)
			;
		from = i + 2 < css.len ? i + 2 : css.len;
		i++;
	}
	if (from < css.len)
		(void)buf_add(ret, css.data + from, css.len - from);
}

void style_sheet(struct bytes css, const char *scope, struct buf *out)
{
	AUTO(buf_done) struct buf plain;
	buf_init(&plain, css.len + 1);
	strip_comments(css, &plain);
	struct bytes b = {plain.data, plain.failed ? 0 : plain.len};
	for (size_t at = 0, from = 0; at < b.len; at++) {
		if (b.data[at] == ';' || b.data[at] == '}') {
			from = at + 1; /* @import and @charset, or a stray one */
		} else if (b.data[at] == '{') {
			size_t end = block_end(b, at);
			struct bytes head = upto(b, from, at);
			if (head.len > 0 && head.data[0] != '@')
				rule(head, upto(b, at + 1, end), scope, out);
			at = end;
			from = end + 1;
		}
	}
}
