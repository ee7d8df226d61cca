/* The answer to a cell's question (input()) on its way to the kernel: a page gives it once, so it
 * is kept beside the request until it is known to have arrived, and sent again by the next gateway.
 * Its row is the request's. Loop thread. */
#ifndef COPPICE_SPINE_INPUT_H
#define COPPICE_SPINE_INPUT_H

#include "gateway/spine/live.h"

struct desk;
struct request;

/* Its cell asks: what was answered before has arrived. */
void input_asked(struct request *r, const struct jmsg *input_request);
/* Before it is sent. One that answers no question that we know of is not kept. */
void input_keep(struct desk *d, const struct jmsg *m, uint64_t client);
/* One that an earlier gateway had; after the requests before it. */
void input_restore(struct desk *d, struct live_request *row);
/* To a kernel that was taken up. If it has it already it drops the copy, which has the same
 * signature. */
void input_send_again(const struct request *r);

#endif
