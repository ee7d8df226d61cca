/* Where a fenced block really ends. A model's fences are not always Markdown's: a program may hold
 * fences in its strings, the closing one may stick to the last line, be missing before the next
 * block, or stand outside of the list that the opening one is in. Pure, any thread. */
#ifndef COPPICE_FRONTEND_ADAPTER_FENCE_H
#define COPPICE_FRONTEND_ADAPTER_FENCE_H

#include "frontend-adapter/markdown.h"

struct fence_end {
	size_t code_end; /* the code is from body to here, in the text */
	size_t next;	 /* where the text goes on */
	bool closed;
};

/* Python's ends at the first fence that stands in no string. False: there is none. */
bool fence_end_python(struct bytes text, const struct md_block *b, struct fence_end *ret);
/* Markdown's ends at the fence that closes none of those inside. */
bool fence_end_markdown(struct bytes text, const struct md_block *b, struct fence_end *ret);
/* The code of b up to code_end, without the indentation of its fence. */
void fence_code(struct bytes text, const struct md_block *b, size_t code_end, struct buf *ret);

#endif
