/* The code of a Markdown text, block by block, with where it stands in the source. The only door to
 * cmark. Borrows the text; pure, any thread. */
#ifndef COPPICE_FRONTEND_ADAPTER_MARKDOWN_H
#define COPPICE_FRONTEND_ADAPTER_MARKDOWN_H

#include "gateway/base/buf.h"

enum md_kind {
	MD_FENCED,
	MD_INDENTED,
	MD_SPAN /* a paragraph that is nothing but code, as "```python print(1)```" */
};

struct md_block {
	enum md_kind kind;
	size_t start, end; /* its lines in the text, fences included */
	/* fenced */
	size_t body;	  /* where the line after the opening fence begins */
	size_t indent;	  /* bytes before the fence in its line */
	bool quoted;	  /* inside a block quote */
	bool closed;	  /* by a fence */
	uint8_t mark;	  /* ` or ~ */
	size_t mark_len;  /* how often */
	const char *info; /* borrowed until the next call */
	/* borrowed until the next call; line ends are \n */
	struct bytes code;
};

struct markdown;

/* E_INVALID: the text holds too many kinds of control characters. */
int markdown_new(struct bytes text, struct markdown **ret, struct err *err);
/* In the order of the text; false after the last. */
bool markdown_next(struct markdown *m, struct md_block *ret);
void markdown_free(struct markdown *m);
void markdown_freep(struct markdown **m);

#endif
