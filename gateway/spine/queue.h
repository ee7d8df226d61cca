/* The shell queue: one execute_request at a time per lane, a held one holds all that came later in
 * its lane. A lane is the kernel's main shell or one subshell (header.subshell_id). Loop thread. */
#ifndef COPPICE_SPINE_QUEUE_H
#define COPPICE_SPINE_QUEUE_H

#include "gateway/spine/request.h"

struct lane {
	UT_hash_handle hh;     /* queue.lanes */
	char *subshell_id;     /* "" is the main shell */
	struct list held;      /* of struct request by held */
	size_t n_requests;     /* that know this lane; 0: it goes */
	unsigned n_executions; /* of them */
	struct execution *running;
	bool pumping;
};

struct queue {
	struct lane *lanes;
};

void queue_done(struct queue *q);
/* Takes a shell request: sends it, or holds it. */
void queue_push(struct desk *d, struct request *r);
/* One that an earlier gateway sent. */
void queue_restore(struct desk *d, struct request *r);
/* The kernel became ready: everything that may go goes. */
void queue_open(struct desk *d);
/* The request is answered and leaves its lane, which goes on. stops: it was a failed execute; the
 * executes that are held behind it are answered as aborted first. */
void queue_left(struct desk *d, struct request *r, bool stops);
/* True while some lane runs an execution. */
bool queue_busy(const struct queue *q);
/* An execution that runs (any lane), or NULL; of several the one that was sent first. */
struct execution *queue_running(const struct queue *q);

#endif
