/* The kernels that clients know: each with its owner, queue, journal and clients. Owns them all.
 * State of the thing that runs is kernel-bridge's (kernel_state). Loop thread; callbacks as in
 * bridge.h. */
#ifndef COPPICE_SPINE_KERNELS_H
#define COPPICE_SPINE_KERNELS_H

#include "gateway/gateway.h"
#include "gateway/spine/owners.h"

struct cJSON;
struct desk; /* one kernel as clients know it: kernel, queue, journal, clients */

int kernels_open(struct gateway *gw, struct kernels **ret, struct err *err);
/* Ends every kernel (clients were closed by the door before); cb when the last is gone; then
 * kernels_free. */
void kernels_end_all(struct kernels *ks, void (*cb)(void *data), void *data);
/* Takes up what an earlier gateway of this data folder left; blocks. After sessions_open, before
 * bridge_sweep, which removes the rest. */
int kernels_adopt(struct kernels *ks, struct err *err);
/* As kernels_end_all, but kernels that can live on do. */
void kernels_leave_all(struct kernels *ks, void (*cb)(void *data), void *data);
void kernels_free(struct kernels *ks);

struct kernels_start {
	const struct owner *owner;
	const char *spec_name; /* NULL or "": default */
	const char
		*kernel_id; /* NULL: a fresh uuid; else must be a uuid4 text that is not in use */
	const struct cJSON *env; /* object or NULL; KERNEL_ID picks the id when kernel_id is NULL */
	const char *path;	 /* kept for the model; may be NULL */
	const char *history;	 /* id or name of the one that goes on; NULL: env's, or its own */
};

/* Returns at once, state starting. E_NOT_FOUND unknown spec (REST answers 404 with names that
 * exist), E_INVALID, E_CONFLICT id in use, E_CAPACITY. */
int kernels_start(
	struct kernels *ks, const struct kernels_start *start, struct desk **ret, struct err *err);
/* A start is refused for want of a place, also while others wait for one, and may wait too. */
bool kernels_may_wait(const struct kernels *ks);
/* cb from the loop, once: with NULL when a place is free, which a kernels_start within the call
 * takes; with E_QUEUE_TIMEOUT after pool_wait. */
void kernels_await_place(
	struct kernels *ks, void (*cb)(void *data, const struct err *err), void *data);
/* Who wants to know what executions became, by the msg_id of their request. From the loop. */
struct kernels_watch {
	/* Its node: at least once for each that is recorded. */
	void (*recorded)(void *data, const char *msg_id, const char *node);
	void *data;
};
void kernels_watch(struct kernels *ks, const struct kernels_watch *watch);

/* The pool holds kernels from now on. After bridge_sweep. */
void kernels_begin(struct kernels *ks);
/* Sets code with a sentence that names the specs that there are. */
int kernels_no_spec(const struct kernels *ks, int code, const char *name, struct err *err);
/* Another owner's id is E_NOT_FOUND; a holder of SCOPE_ADMIN does not see others' here either. */
int kernels_find(struct kernels *ks, const struct owner *owner, const char *id, struct desk **ret,
	struct err *err);
/* A kernel of that owner began the history or goes on in it, and lives, or ends and has not
 * recorded all that it ran. `but` is the id of one that does not count, or NULL. */
bool kernels_hold_history(
	const struct kernels *ks, const struct owner *owner, const char *history, const char *but);
/* Array of kernel models of that owner; caller owns the tree. */
struct cJSON *kernels_list(const struct kernels *ks, const struct owner *owner);
size_t kernels_count(const struct kernels *ks, const struct owner *owner); /* NULL: all */
size_t kernels_connections(const struct kernels *ks, const struct owner *owner);
int64_t kernels_last_activity_us(const struct kernels *ks, const struct owner *owner);

/* {id, name, last_activity, execution_state, connections, reason?}; caller owns. */
struct cJSON *desk_model(const struct desk *d);
const char *desk_id(const struct desk *d);

void desk_interrupt(struct desk *d, void (*cb)(void *data, const struct err *err), void *data);
/* Clients are told (restarting), requests in flight are ended; cb when the new process was started.
 */
void desk_restart(struct desk *d, void (*cb)(void *data, const struct err *err), void *data);
/* Clients get dead, then close 1000. d leaves the list at once and is freed after cb (cb may be
 * NULL). Sessions on it are dropped. */
void desk_end(struct desk *d, const char *reason, void (*cb)(void *data), void *data);

#endif
