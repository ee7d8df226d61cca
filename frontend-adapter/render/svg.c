/* SVG as a picture on its own: static, self-contained, no text of HTML in it. */
#include "frontend-adapter/render/svg.h"

#include <ctype.h>
#include <string.h>
#include <strings.h>

#include "frontend-adapter/render/render.h"
#include "frontend-adapter/render/sanitise.h"

#define USES_MAX     20000u
#define ELEMENTS_MAX 200000u

struct writer {
	struct buf *out;
	const char **used; /* what <use> points to, sorted; borrowed from the tree */
	size_t n_used;
	size_t elements;
	unsigned depth;
	bool in_used;
};

bool svg_is_root(const GumboNode *node)
{
	struct bytes name = tree_foreign_name(node);
	return name.len == 3 && strncasecmp((const char *)name.data, "svg", 3) == 0 &&
	       node->v.element.tag_namespace == GUMBO_NAMESPACE_SVG;
}

static const char *element_name(const GumboNode *node)
{
	struct bytes name = tree_foreign_name(node);
	if (name.len == 0 || node->v.element.tag_namespace != GUMBO_NAMESPACE_SVG)
		return NULL;
	return names_svg_element(name);
}

static bool is_dropped(const GumboNode *node)
{
	struct bytes name = tree_foreign_name(node);
	return name.len == 0 || node->v.element.tag_namespace != GUMBO_NAMESPACE_SVG ||
	       names_svg_dropped(name);
}

/* ---- attributes ---- */

static bool is_local(const char *url)
{
	size_t len = strlen(url);
	if (len < 2 || len > 200 || url[0] != '#')
		return false;
	for (size_t i = 1; i < len; i++)
		if (!isalnum((unsigned char)url[i]) && !strchr("-_.:", url[i]))
			return false;
	return true;
}

static bool is_function(const char *value, size_t bracket)
{
	static const char *const names[] = {"translate", "rotate", "scale", "matrix", "skewX",
		"skewY", "rgb", "rgba", "hsl", "hsla"};
	size_t from = bracket;
	while (from > 0 && isalnum((unsigned char)value[from - 1]))
		from--;
	size_t len = bracket - from;
	for (size_t i = 0; i < ARRAY_LEN(names); i++)
		if (strlen(names[i]) == len && strncasecmp(names[i], value + from, len) == 0)
			return true;
	return false;
}

/* url(#id) as a whole value. */
static bool is_local_url(const char *value)
{
	char id[256];
	size_t len = strlen(value);
	if (len < 7 || len >= sizeof id || strncasecmp(value, "url(", 4) != 0 ||
		value[len - 1] != ')')
		return false;
	(void)copy_text(id, sizeof id, value + 4, len - 5); /* fits */
	return is_local(id);
}

/* Presentation attributes are CSS: no escapes, no functions but these. */
static bool is_plain(const char *value)
{
	if (is_local_url(value))
		return true;
	for (size_t i = 0; value[i]; i++)
		if (value[i] == '\\' || value[i] == '@' || value[i] == '{' ||
			(value[i] == '(' && !is_function(value, i)))
			return false;
	return true;
}

static void put(struct buf *out, const char *name, const char *value, size_t len)
{
	(void)buf_addf(out, " %s=\"", name); /* latched, as below */
	escape_text(out, value, len);
	(void)buf_add_text(out, "\"");
}

static void put_reference(struct writer *w, const char *element, const char *value)
{
	AUTO(buf_done) struct buf url;
	buf_init(&url, w->out->max);
	bool picture = strcmp(element, "image") == 0;
	if (!picture && is_local(value))
		put(w->out, "xlink:href", value, strlen(value));
	else if (picture &&
		 url_picture((struct bytes){(const uint8_t *)value, strlen(value)}, false, &url) &&
		 !url.failed)
		put(w->out, "xlink:href", (const char *)url.data, url.len);
}

static void put_style(struct writer *w, const char *value)
{
	AUTO(buf_done) struct buf css;
	buf_init(&css, w->out->max);
	style_declarations((struct bytes){(const uint8_t *)value, strlen(value)}, true, &css);
	if (css.len > 0 && !css.failed)
		put(w->out, "style", (const char *)css.data, css.len);
}

static void put_attributes(struct writer *w, const GumboNode *node, const char *element)
{
	const GumboVector *list = &node->v.element.attributes;
	bool referred = false;
	for (unsigned i = 0; i < list->length; i++) {
		const GumboAttribute *a = list->data[i];
		bool xlink = strncasecmp(a->name, "xlink:", 6) == 0;
		const char *name = names_svg_attribute(xlink ? a->name + 6 : a->name);
		if (!name || (xlink && strcmp(name, "href") != 0))
			continue;
		if (strcmp(name, "href") == 0) {
			if (!referred)
				put_reference(w, element, a->value);
			referred = true;
		} else if (strcmp(name, "style") == 0) {
			put_style(w, a->value);
		} else if (is_plain(a->value)) {
			put(w->out, name, a->value, strlen(a->value));
		}
	}
}

/* ---- what <use> points to ---- */

static int compare(const void *a, const void *b)
{
	return strcmp(*(const char *const *)a, *(const char *const *)b);
}

static const char *use_of(const GumboNode *node)
{
	const char *name = element_name(node);
	if (!name || strcmp(name, "use") != 0)
		return NULL;
	const GumboVector *list = &node->v.element.attributes;
	for (unsigned i = 0; i < list->length; i++) {
		const GumboAttribute *a = list->data[i];
		if (strcasecmp(a->name, "href") == 0 || strcasecmp(a->name, "xlink:href") == 0)
			return a->value[0] == '#' ? a->value + 1 : NULL;
	}
	return NULL;
}

static void collect(struct writer *w, const GumboNode *node, unsigned depth)
{
	const GumboVector *children = tree_children(node);
	const char *id = use_of(node);
	if (id && w->n_used < USES_MAX)
		w->used[w->n_used++] = id;
	for (unsigned i = 0; children && depth < TREE_DEPTH_MAX && i < children->length; i++)
		collect(w, children->data[i], depth + 1);
}

static bool is_used(const struct writer *w, const GumboNode *node)
{
	const char *id = tree_attribute(node, "id");
	return id && w->n_used > 0 && bsearch(&id, w->used, w->n_used, sizeof *w->used, compare);
}

/* ---- the walk ---- */

static void write_style(struct writer *w, const GumboNode *node)
{
	AUTO(buf_done) struct buf css;
	buf_init(&css, w->out->max);
	tree_text(node, 0, &css);
	(void)buf_add_text(w->out, "<style>"); /* latched, as below */
	AUTO(buf_done) struct buf clean;
	buf_init(&clean, w->out->max);
	style_sheet((struct bytes){css.data, css.failed ? 0 : css.len}, NULL, &clean);
	escape_text(w->out, clean.data ? (char *)clean.data : "", clean.len);
	(void)buf_add_text(w->out, "</style>");
}

static void write_node(struct writer *w, const GumboNode *node);

static void write_children(struct writer *w, const GumboNode *node)
{
	const GumboVector *children = tree_children(node);
	if (++w->depth < TREE_DEPTH_MAX)
		for (unsigned i = 0; children && i < children->length; i++)
			write_node(w, children->data[i]);
	w->depth--;
}

static void write_element(struct writer *w, const GumboNode *node, const char *name)
{
	bool in_used = w->in_used;
	/* A <use> of what has a <use> in it grows by powers: one level must do. */
	if (strcmp(name, "use") == 0 && in_used)
		return;
	w->in_used = in_used || is_used(w, node);
	(void)buf_addf(w->out, "<%s", name); /* latched, as below */
	if (w->depth == 0)
		(void)buf_add_text(w->out, " xmlns=\"http://www.w3.org/2000/svg\""
					   " xmlns:xlink=\"http://www.w3.org/1999/xlink\"");
	put_attributes(w, node, name);
	(void)buf_add_text(w->out, ">");
	write_children(w, node);
	(void)buf_addf(w->out, "</%s>", name);
	w->in_used = in_used;
}

static void write_node(struct writer *w, const GumboNode *node)
{
	if (tree_is_text(node)) {
		escape_text(w->out, node->v.text.text, strlen(node->v.text.text));
		return;
	}
	if (w->out->failed || is_dropped(node) || ++w->elements > ELEMENTS_MAX)
		return;
	const char *name = element_name(node);
	if (!name)
		write_children(w, node);
	else if (strcmp(name, "style") == 0)
		write_style(w, node);
	else
		write_element(w, node, name);
}

int svg_write(const GumboNode *root, struct buf *out)
{
	AUTO(freep) const char **used = calloc(USES_MAX, sizeof *used);
	struct writer w = {.out = out, .used = used};
	if (!used)
		return E_NOMEM;
	collect(&w, root, 0);
	qsort(used, w.n_used, sizeof *used, compare);
	write_node(&w, root);
	if (w.elements > ELEMENTS_MAX)
		return E_TOO_BIG;
	return out->failed ? out->code : 0;
}

static const GumboNode *find_root(const GumboNode *node, unsigned depth)
{
	const GumboVector *children = tree_children(node);
	if (svg_is_root(node))
		return node;
	for (unsigned i = 0; children && depth < TREE_DEPTH_MAX && i < children->length; i++) {
		const GumboNode *found = find_root(children->data[i], depth + 1);
		if (found)
			return found;
	}
	return NULL;
}

int sanitise_svg(struct bytes svg, struct buf *out)
{
	struct tree *t = malloc(sizeof *t);
	int status = t ? tree_parse(t, svg) : E_NOMEM;
	if (status == 0) {
		const GumboNode *root = find_root(t->output->document, 0);
		status = root ? svg_write(root, out) : E_INVALID;
		tree_done(t);
	}
	free(t);
	return status;
}
