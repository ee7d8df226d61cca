/* Who waits for a place when the ceiling is reached: in order, each with a deadline. Owned by
 * struct kernels. Loop thread. */
#ifndef COPPICE_SPINE_WAITING_H
#define COPPICE_SPINE_WAITING_H

#include "gateway/base/clock.h"
#include "gateway/base/err.h"

struct waiting {
	struct list waiters; /* in order */
	size_t n;
	struct clock *clock;
	struct timer deadline; /* of the first */
	struct timer serve;
	/* Whether there is a place; asked anew before each waiter. */
	bool (*has_place)(void *data);
	void *data;
	bool admits; /* within cb(NULL): the place is this one's, whoever waits behind it */
	uint64_t served, refused;
};

void waiting_init(
	struct waiting *w, struct clock *clock, bool (*has_place)(void *data), void *data);
/* cb from the loop, once: with NULL when it is this one's turn and there is a place, which it takes
 * within the call; else E_QUEUE_TIMEOUT with the position it had. */
void waiting_add(struct waiting *w, int64_t wait_ms, void (*cb)(void *data, const struct err *err),
	void *data);
/* A place may have become free. */
void waiting_serve(struct waiting *w);
/* Refuses all, from within the call. */
void waiting_end(struct waiting *w);

#endif
