/* What the spine keeps of one run, forgotten: the answers that are remembered, requests in the file
 * beside the journal, the journal. Loop thread. */
#ifndef COPPICE_SPINE_FORGET_RUN_H
#define COPPICE_SPINE_FORGET_RUN_H

#include "gateway/base/err.h"

struct gateway;

/* The kernel may be gone: then what lies in its folder. What it says of that run from now on is not
 * kept. cb from the loop, once; err is NULL if nothing is left. A page that was sent it has it.
 * E_IO, E_NOMEM: cb does not come, the next gateway would not know. */
int forget_run(struct gateway *gw, const char *kernel_id, const char *msg_id,
	void (*cb)(void *data, const struct err *err), void *data, struct err *err);

#endif
