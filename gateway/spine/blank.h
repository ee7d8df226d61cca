/* Takes out of a message what it says and leaves that it was: for runs that are to be forgotten.
 * No byte is added or removed, so a record of a file can be written over. Any thread. */
#ifndef COPPICE_SPINE_BLANK_H
#define COPPICE_SPINE_BLANK_H

#include "gateway/base/jmsg.h"

/* Whether a v1 frame is of that request: it, or an answer to it, or output of it. Only its headers
 * need be whole. */
bool blank_concerns(struct bytes frame, const char *msg_id);
/* One that is so: content becomes the least that a message of its type may hold, metadata {},
 * buffers zeros; what is left of the place is blanks. */
void blank_frame(uint8_t *frame, size_t len);
/* The same as a message of its own. NULL: out of memory. */
struct jmsg *blank_message(const struct jmsg *m);

#endif
