/* A kernel may put all of a cell's output into one stream message, tens of megabytes of it. Such a
 * one is cut into several before the journal, each with the same header: what a client holds while
 * it does not read, what one write carries, and what clients with a cap refuse all go by the
 * message. No I/O. Loop thread. */
#ifndef COPPICE_SPINE_SPLIT_H
#define COPPICE_SPINE_SPLIT_H

#include "gateway/spine/stream_text.h"

#define SPLIT_TEXT_MAX (1u << 20) /* bytes of JSON text in one message */

struct split {
	const struct jmsg *msg;
	struct stream_text rest;
};

/* Borrows m until the end. False: it is no stream message that is too large. */
bool split_begin(struct split *s, const struct jmsg *m);
/* 1: the next one (caller unrefs); 0: that was all; E_NOMEM. Cut after a line's end where there is
 * one, never inside a character. */
int split_next(struct split *s, struct jmsg **ret, struct err *err);

#endif
