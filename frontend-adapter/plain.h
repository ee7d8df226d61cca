/* Text as a model or a reader without a terminal can take it: valid UTF-8 without escape sequences,
 * control characters other than tab and line ends. Pure, any thread. */
#ifndef COPPICE_ADAPTER_PLAIN_H
#define COPPICE_ADAPTER_PLAIN_H

#include "gateway/base/buf.h"

/* Adds what is left of text; what does not fit is latched in b. */
void plain_add(struct buf *b, struct bytes text);
/* At most max bytes of it, never half a character. Caller frees; NULL: out of memory. */
char *plain_cut(const char *text, size_t max);
/* Where text may be cut at or before `at`: not within a character. */
size_t plain_boundary(const char *text, size_t at);

#endif
