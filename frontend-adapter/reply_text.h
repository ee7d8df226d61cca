/* A reply's text before anything is looked for in it. Pure, any thread. */
#ifndef COPPICE_FRONTEND_ADAPTER_REPLY_TEXT_H
#define COPPICE_FRONTEND_ADAPTER_REPLY_TEXT_H

#include "gateway/base/buf.h"

/* Adds text to ret as UTF-8 with \n line ends: what is no UTF-8 and NUL become U+FFFD, a byte order
 * mark at the beginning goes. ret_crs: there were \r. */
int reply_clean(struct bytes text, struct buf *ret, bool *ret_crs, struct err *err);

/* Reasoning, which is never run. */
struct thought {
	size_t start, end;
	bool headless; /* only its closing tag is there: all before it is reasoning too */
};
/* The first one that opens at the beginning of a line in [from, to) of text, or closes there; its
 * end may lie after `to`, at the text's end if it never ends. */
bool thought_find(struct bytes text, size_t from, size_t to, struct thought *ret);

struct bytes bytes_cut(struct bytes b, size_t from, size_t to);
struct bytes bytes_trim(struct bytes b);
#define TRIMMED " \t\n\f"

#endif
