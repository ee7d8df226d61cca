/* gumbo's tree of an HTML text, with all its memory in one place: a text that would take too much
 * memory or processor time is given up without a trace (E_TOO_BIG). Only files that include gumbo.h
 * include this. */
#ifndef COPPICE_RENDER_TREE_H
#define COPPICE_RENDER_TREE_H

#include <gumbo.h>
#include <setjmp.h>
#include <time.h>

#include "gateway/base/base.h"

#define TREE_DEPTH_MAX 256

struct tree {
	GumboOutput *output;
	struct tree_block *blocks;
	size_t used, left; /* bytes in all, and in the newest block */
	unsigned calls;
	clock_t until;
	jmp_buf over;
};

/* E_TOO_BIG; t is then empty. t must not move. The text is borrowed until tree_done(). */
int tree_parse(struct tree *t, struct bytes text);
void tree_done(struct tree *t);

/* Children of an element or the document; NULL for the rest. */
const GumboVector *tree_children(const GumboNode *node);
bool tree_is_text(const GumboNode *node); /* text, CDATA or white space */
/* "" for what is no HTML element, or an unknown one. */
const char *tree_html_name(const GumboNode *node);
/* The name as it was written, for an element of SVG or MathML; empty for others. */
struct bytes tree_foreign_name(const GumboNode *node);
const char *tree_attribute(const GumboNode *node, const char *name); /* NULL: absent */

struct buf;
/* Adds all text below. Bounded depth. */
void tree_text(const GumboNode *node, unsigned depth, struct buf *out);

#endif
