/* The walk over the tree of an HTML text that writes what is allowed. */
#include "frontend-adapter/render/sanitise.h"

#include <ctype.h>
#include <stdarg.h>
#include <string.h>

#include "frontend-adapter/render/render.h"
#include "frontend-adapter/render/svg.h"
#include "frontend-adapter/render/tree.h"
#include "gateway/base/crypto.h"

#define TEXT_ATTRIBUTE_MAX 2000u
#define SPAN_MAX	   1000

struct writer {
	struct buf *out;
	const char *scope;
	struct sanitised *said;
	unsigned depth;
};

static struct bytes bytes_of(const char *text)
{
	return (struct bytes){(const uint8_t *)text, strlen(text)};
}

/* The names end with NULL. */
__attribute__((sentinel)) static bool one_of(const char *name, ...)
{
	va_list names;
	bool found = false;
	va_start(names, name);
	for (const char *at; !found && (at = va_arg(names, const char *)) != NULL;)
		found = strcmp(at, name) == 0;
	va_end(names);
	return found;
}

/* ---- attributes ---- */

static void put(struct buf *out, const char *name, const void *value, size_t len)
{
	(void)buf_addf(out, " %s=\"", name); /* latched, as below */
	escape_text(out, value, len);
	(void)buf_add_text(out, "\"");
}

static void put_names(struct buf *out, const char *name, const char *value)
{
	AUTO(buf_done) struct buf list;
	bool id = strcmp(name, "class") != 0;
	buf_init(&list, TEXT_ATTRIBUTE_MAX);
	for (const char *at = value; *at;) {
		size_t len = strcspn(at, " \t\r\n\f");
		if (len > 0 && list.len > 0)
			(void)buf_add_text(&list, " "); /* latched, as below */
		if (len > 0)
			style_name((struct bytes){(const uint8_t *)at, len}, id, &list);
		at += len;
		at += strspn(at, " \t\r\n\f");
	}
	if (list.len > 0 && !list.failed)
		put(out, name, list.data, list.len);
}

static void put_style(struct buf *out, const char *value)
{
	AUTO(buf_done) struct buf css;
	buf_init(&css, 16u << 10);
	style_declarations(bytes_of(value), false, &css);
	if (css.len > 0 && !css.failed)
		put(out, "style", css.data, css.len);
}

/* Digits, with a sign or a per cent where these have a meaning. */
static void put_number(struct buf *out, const char *name, const char *value)
{
	char *end;
	bool length = one_of(name, "width", "height", NULL);
	bool any = one_of(name, "start", "value", NULL);
	long n = strtol(value, &end, 10);
	if (end == value ||
		(*end && (!length || (strcmp(end, "%") != 0 && strcmp(end, "px") != 0))))
		return;
	if (!any && n < 0)
		return;
	if (n > (length ? 20000 : any ? 1000000000 : SPAN_MAX))
		n = length ? 20000 : any ? 1000000000 : SPAN_MAX;
	if (n < -1000000000)
		n = -1000000000;
	(void)buf_addf(out, " %s=\"%ld%s\"", name, n, *end == '%' ? "%" : ""); /* latched */
}

static void put_word(struct buf *out, const char *name, const char *value)
{
	size_t len = strlen(value);
	for (size_t i = 0; i < len; i++)
		if (!isalnum((unsigned char)value[i]) && value[i] != '#' && value[i] != '-')
			return;
	if (len < 40)
		put(out, name, value, len);
}

static void put_link(struct buf *out, const char *value)
{
	struct bytes url = bytes_of(value);
	if (url.len > 1 && url.data[0] == '#') {
		AUTO(buf_done) struct buf to;
		buf_init(&to, TEXT_ATTRIBUTE_MAX);
		(void)buf_add_text(&to, "#"); /* latched */
		style_name((struct bytes){url.data + 1, url.len - 1}, true, &to);
		put(out, "href", to.data, to.len);
	} else if (url_is_link(url)) {
		put(out, "href", url.data, url.len);
		(void)buf_add_text(out, " rel=\"noopener noreferrer nofollow\" target=\"_blank\"");
	}
}

static void put_attribute(struct buf *out, const char *element, const GumboAttribute *a)
{
	const char *name = a->name, *value = a->value;
	size_t len = strlen(value);
	if (!names_html_attribute(name) || strcmp(name, "src") == 0)
		return; /* src is put_picture()'s */
	if (strcmp(name, "style") == 0)
		put_style(out, value);
	else if (one_of(name, "class", "id", "headers", NULL))
		put_names(out, name, value);
	else if (strcmp(name, "href") == 0 && strcmp(element, "a") == 0)
		put_link(out, value);
	else if (one_of(name, "border", "cellpadding", "cellspacing", "colspan", "height",
			 "rowspan", "span", "start", "value", "width", NULL))
		put_number(out, name, value);
	else if (one_of(name, "alt", "aria-label", "title", "datetime", NULL))
		put(out, name, value, len < TEXT_ATTRIBUTE_MAX ? len : TEXT_ATTRIBUTE_MAX);
	else if (strcmp(name, "href") != 0)
		put_word(out, name, value);
}

static void put_attributes(struct buf *out, const char *element, const GumboNode *node)
{
	const GumboVector *list = &node->v.element.attributes;
	for (unsigned i = 0; i < list->length; i++)
		put_attribute(out, element, list->data[i]);
}

/* ---- pictures ---- */

static void left_out(struct writer *w, const char *what)
{
	(void)buf_add_text(w->out, "<span class=\"coppice-left-out\">["); /* latched, as below */
	escape_text(w->out, what, strlen(what));
	(void)buf_add_text(w->out, "]</span>");
	w->said->cut = true;
}

static void write_picture(struct writer *w, const GumboNode *node)
{
	AUTO(buf_done) struct buf url;
	const char *src = tree_attribute(node, "src"), *alt = tree_attribute(node, "alt");
	buf_init(&url, w->out->max);
	if (!src || !url_picture(bytes_of(src), true, &url) || url.failed) {
		left_out(w, alt && *alt && strlen(alt) < 200 ? alt : "picture");
		return;
	}
	(void)buf_add_text(w->out, "<img src=\""); /* latched, as below */
	(void)buf_add(w->out, url.data, url.len);
	(void)buf_add_text(w->out, "\"");
	put_attributes(w->out, "img", node);
	(void)buf_add_text(w->out, ">");
	w->said->visible = true;
}

static void write_svg(struct writer *w, const GumboNode *node)
{
	AUTO(buf_done) struct buf svg;
	buf_init(&svg, w->out->max);
	if (svg_write(node, &svg) != 0) {
		left_out(w, "drawing");
		return;
	}
	(void)buf_add_text(w->out, "<img alt=\"drawing\" src=\"data:image/svg+xml;base64,");
	(void)base64_encode((struct bytes){svg.data, svg.len}, w->out); /* latched, as above */
	(void)buf_add_text(w->out, "\">");
	w->said->visible = true;
}

/* ---- the walk ---- */

static void write_node(struct writer *w, const GumboNode *node);

static void write_children(struct writer *w, const GumboNode *node)
{
	const GumboVector *children = tree_children(node);
	if (++w->depth > TREE_DEPTH_MAX)
		w->said->cut = true;
	else
		for (unsigned i = 0; children && i < children->length; i++)
			write_node(w, children->data[i]);
	w->depth--;
}

static void write_text(struct writer *w, const char *text)
{
	size_t len = strlen(text);
	escape_text(w->out, text, len);
	if (strspn(text, " \t\r\n\f") < len)
		w->said->visible = true;
}

static void write_sheet(struct writer *w, const GumboNode *node)
{
	AUTO(buf_done) struct buf css, clean;
	buf_init(&css, w->out->max);
	buf_init(&clean, w->out->max);
	tree_text(node, 0, &css);
	style_sheet((struct bytes){css.data, css.failed ? 0 : css.len}, w->scope, &clean);
	if (clean.len == 0 || clean.failed)
		return;
	(void)buf_add_text(w->out, "<style>"); /* latched, as below */
	(void)buf_add(w->out, clean.data, clean.len);
	(void)buf_add_text(w->out, "</style>");
}

static void write_element(struct writer *w, const GumboNode *node, const char *name)
{
	(void)buf_addf(w->out, "<%s", name); /* latched, as below */
	put_attributes(w->out, name, node);
	(void)buf_add_text(w->out, ">");
	if (one_of(name, "br", "hr", "col", "wbr", NULL))
		return;
	write_children(w, node);
	(void)buf_addf(w->out, "</%s>", name);
}

static void write_html(struct writer *w, const GumboNode *node, const char *name)
{
	enum element_rule rule = names_html_element(name);
	if (strcmp(name, "img") == 0)
		write_picture(w, node);
	else if (strcmp(name, "style") == 0)
		write_sheet(w, node);
	else if (rule == ELEMENT_KEEP)
		write_element(w, node, name);
	else if (rule == ELEMENT_UNWRAP || strcmp(name, "head") == 0)
		write_children(w, node); /* a head for its sheets; its other children are dropped */
}

/* What a formula says, without the TeX that annotates it. */
static void write_formula(struct writer *w, const GumboNode *node)
{
	struct bytes name = tree_foreign_name(node);
	if (!bytes_equal(name, "annotation") && !bytes_equal(name, "annotation-xml") &&
		node->v.element.tag_namespace == GUMBO_NAMESPACE_MATHML)
		write_children(w, node);
}

static void write_node(struct writer *w, const GumboNode *node)
{
	if (w->out->failed)
		return;
	if (tree_is_text(node))
		write_text(w, node->v.text.text);
	else if (svg_is_root(node))
		write_svg(w, node);
	else if (tree_foreign_name(node).len > 0)
		write_formula(w, node);
	else if (node->type == GUMBO_NODE_ELEMENT || node->type == GUMBO_NODE_TEMPLATE)
		write_html(w, node, tree_html_name(node));
	else if (node->type == GUMBO_NODE_DOCUMENT)
		write_children(w, node);
}

int sanitise_html(struct bytes html, const char *scope, struct buf *out, struct sanitised *ret)
{
	struct writer w = {.out = out, .scope = scope, .said = ret};
	struct tree *t = malloc(sizeof *t);
	int status = t ? tree_parse(t, html) : E_NOMEM;
	*ret = (struct sanitised){0};
	if (status == 0) {
		write_node(&w, t->output->document);
		tree_done(t);
		status = out->failed ? out->code : 0;
	}
	free(t);
	return status;
}
