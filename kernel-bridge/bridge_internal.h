/* What the files of kernel-bridge share: the bridge itself. Inside kernel-bridge only. Loop thread.
 * bridge.c owns the struct; kernel*.c keeps the kernels in it. */
#ifndef COPPICE_BRIDGE_INTERNAL_H
#define COPPICE_BRIDGE_INTERNAL_H

#include "kernel-bridge/bridge.h"
#include "kernel-bridge/engine.h"

#define BRIDGE_ENGINES_MAX 4

struct channel_hub; /* channel.h: the ZeroMQ context and who takes turns on it */

struct bridge {
	struct bridge_env env;
	struct engine *engines[BRIDGE_ENGINES_MAX]; /* owned: closed by bridge_close */
	size_t n_engines;
	struct list specs;	 /* of struct kernelspec by link; owned */
	struct channel_hub *hub; /* bridge_kernels_init to bridge_kernels_done */
	/* bridge_close is asynchronous; these are its. */
	size_t n_closing;
	void (*closed)(void *data);
	void *closed_data;
	/* Kernels by state (kernel_set_state is the only mover), and how many slots are reserved:
	 * kernels that exist, those that are ending included. */
	struct list kernels[KERNEL_STATES];
	size_t n_kernels;
	size_t n_unowned;     /* of them: nobody has asked for them yet */
	uint64_t n_places;    /* containers that were begun or taken over */
	struct list places;   /* kernel_place.c: where they are */
	struct list launches; /* kernel_launch.c: who waits, in order */
	size_t n_launching;
	char session[40]; /* session id of the bridge's own requests */
};

/* bridge_open over engines that are there already (tests: a fake one). Takes the engines over, also
 * on failure. Asks each for its specs; calls bridge_kernels_init. */
int bridge_open_with(const struct bridge_env *env, struct engine **engines, size_t n,
	struct bridge **ret, struct err *err);
/* NULL if no such engine is open. */
struct engine *bridge_engine(struct bridge *b, const char *name);

/* kernel.c: one kernel less. A bridge that is to close closes with the last one. */
void bridge_kernel_freed(struct bridge *b);

/* kernel.c: called by bridge_open_with once env is set; makes kernels, session and hub. */
int bridge_kernels_init(struct bridge *b, struct err *err);
/* Called by bridge_close after the engines are closed; cb from the loop, once (b is freed by
 * bridge.c after it). Also after a bridge_kernels_init that failed. */
void bridge_kernels_done(struct bridge *b, void (*cb)(void *data), void *data);

#endif
