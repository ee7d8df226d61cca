/* gumbo behind an arena. Its own free walks the tree by recursion, which a deep one overruns, and
 * it looks at no allocation's result: here memory and time have an end that it is jumped out of. */
#include "frontend-adapter/render/tree.h"

#include <string.h>
#include <strings.h>

#include "gateway/base/buf.h"

#define BLOCK_SIZE   (1u << 20)
#define MEMORY_MAX   (384u << 20)
#define TEXT_MAX     (24u << 20)
#define SECONDS_MAX  2
#define CALLS_A_LOOK 64u

struct tree_block {
	struct tree_block *next;
	max_align_t data[];
};

static void look_at_clock(struct tree *t)
{
	if (++t->calls % CALLS_A_LOOK == 0 && clock() > t->until)
		longjmp(t->over, 1);
}

static void *allocate(void *data, size_t size)
{
	struct tree *t = data;
	size = (size + sizeof(max_align_t)) & ~(sizeof(max_align_t) - 1);
	look_at_clock(t);
	if (size <= t->left) {
		t->left -= size;
		return (char *)t->blocks->data + t->left;
	}
	size_t room = size > BLOCK_SIZE ? size : BLOCK_SIZE;
	struct tree_block *b = room > MEMORY_MAX - t->used ? NULL : malloc(sizeof *b + room);
	if (!b)
		longjmp(t->over, 1);
	t->used += room;
	b->next = t->blocks;
	t->blocks = b;
	t->left = room - size;
	return (char *)b->data + t->left;
}

static void release(void *data, void *pointer)
{
	(void)data, (void)pointer; /* tree_done() frees all at once */
}

int tree_parse(struct tree *t, struct bytes text)
{
	*t = (struct tree){.until = clock() + SECONDS_MAX * CLOCKS_PER_SEC};
	if (text.len > TEXT_MAX)
		return E_TOO_BIG;
	if (setjmp(t->over) != 0) {
		tree_done(t);
		return E_TOO_BIG;
	}
	GumboOptions options = kGumboDefaultOptions;
	options.allocator = allocate;
	options.deallocator = release;
	options.userdata = t;
	options.max_errors = 0;
	t->output = gumbo_parse_with_options(
		&options, text.len ? (const char *)text.data : "", text.len);
	return 0;
}

void tree_done(struct tree *t)
{
	while (t->blocks) {
		struct tree_block *b = t->blocks;
		t->blocks = b->next;
		free(b);
	}
	t->output = NULL;
	t->used = t->left = 0;
}

const GumboVector *tree_children(const GumboNode *node)
{
	if (node->type == GUMBO_NODE_DOCUMENT)
		return &node->v.document.children;
	return node->type == GUMBO_NODE_ELEMENT ? &node->v.element.children : NULL;
}

bool tree_is_text(const GumboNode *node)
{
	return node->type == GUMBO_NODE_TEXT || node->type == GUMBO_NODE_CDATA ||
	       node->type == GUMBO_NODE_WHITESPACE;
}

const char *tree_html_name(const GumboNode *node)
{
	if (node->type == GUMBO_NODE_TEMPLATE)
		return "template";
	if (node->type != GUMBO_NODE_ELEMENT ||
		node->v.element.tag_namespace != GUMBO_NAMESPACE_HTML)
		return "";
	return gumbo_normalized_tagname(node->v.element.tag);
}

struct bytes tree_foreign_name(const GumboNode *node)
{
	if (node->type != GUMBO_NODE_ELEMENT ||
		node->v.element.tag_namespace == GUMBO_NAMESPACE_HTML)
		return (struct bytes){0};
	GumboStringPiece name = node->v.element.original_tag;
	const char *known = gumbo_normalized_tagname(node->v.element.tag);
	if (*known)
		return (struct bytes){(const uint8_t *)known, strlen(known)};
	gumbo_tag_from_original_text(&name);
	return (struct bytes){(const uint8_t *)name.data, name.data ? name.length : 0};
}

const char *tree_attribute(const GumboNode *node, const char *name)
{
	if (node->type != GUMBO_NODE_ELEMENT)
		return NULL;
	const GumboAttribute *a = gumbo_get_attribute(&node->v.element.attributes, name);
	return a ? a->value : NULL;
}

void tree_text(const GumboNode *node, unsigned depth, struct buf *out)
{
	const GumboVector *children = tree_children(node);
	if (tree_is_text(node))
		(void)buf_add_text(out, node->v.text.text); /* latched */
	if (depth > TREE_DEPTH_MAX)
		return;
	for (unsigned i = 0; children && i < children->length; i++)
		tree_text(children->data[i], depth + 1, out);
}
