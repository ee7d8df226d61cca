/* Takes a run out of a kernel's journal: its entries stay where they are, with their numbers and
 * headers, and say nothing any more (blank.h). A page that has been sent them has them. Loop
 * thread.
 */
#ifndef COPPICE_SPINE_JOURNAL_FORGET_H
#define COPPICE_SPINE_JOURNAL_FORGET_H

#include "gateway/base/err.h"

struct journal;
struct uv_loop_s;

/* j may be NULL: only what lies in the folder then. Memory at once, files by a thread of the pool
 * once what is being written is there. cb from the loop, once, whether j is still there or not.
 * E_IO, E_NOMEM: something is left. */
void journal_forget(struct uv_loop_s *loop, struct journal *j, const char *folder,
	const char *msg_id, void (*cb)(void *data, const struct err *err), void *data);

#endif
