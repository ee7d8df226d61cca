/* Text of others for a terminal: nothing in it steers one. Any thread. */
#ifndef COPPICE_CLI_PLAIN_H
#define COPPICE_CLI_PLAIN_H

#include "gateway/base/buf.h"

/* Adds text as lines: colours and other sequences of a terminal are left out, a line that was
 * written over by a carriage return is its last writing, whatever else controls (C0, C1, marks of
 * direction) or is no UTF-8 becomes a question mark. */
void cli_plain_add(struct buf *b, const char *text, size_t len);
/* Likewise on one line, of at most width characters: line ends and tabs become blanks. */
void cli_plain_line(struct buf *b, const char *text, size_t width);

#endif
