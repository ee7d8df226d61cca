/* A part of kernel-bridge's public header: going back to a parked fork of a kernel
 * (docs/decisions/0025), and beginning another kernel beside it from one (0029). Parks lie in the
 * kernel's container; they outlive a line, a restart and a gateway. Loop thread. */
#ifndef COPPICE_BRIDGE_PARKS_H
#define COPPICE_BRIDGE_PARKS_H

#include "kernel-bridge/bridge.h"

struct kernel_revival {
	int64_t park;
	/* What the new line says of itself (`revived`), before anything moves. Negative: it is
	 * ended, and nothing has changed. */
	int (*check)(void *data, struct bytes text, struct err *err);
	/* From here on the kernel is the new line: what was in flight to the old one is the
	 * watcher's to end. on_record and on_ready follow within the same turn, then cb. */
	void (*on_switch)(void *data);
	/* NULL: it is done. Else nothing has changed: E_GONE no such park, or it would not;
	 * E_CONFLICT it is another state than was parked; E_UNAVAILABLE the kernel is starting or
	 * has no such engine; E_TIMEOUT; E_DEAD it was ended or restarted meanwhile. */
	void (*cb)(void *data, const struct err *err);
	void *data;
};

/* Begins the kernel anew from a park, under the same id, beside the line that runs until then; a
 * dead one too, as long as it has its place. One at a time. What must not be sent to both is not to
 * be sent until cb. */
void kernel_revive(struct kernel *k, const struct kernel_revival *revival);
#define PARK_ALL 0 /* they are numbered from 1 */
/* That park is not wanted any more; on_unparked follows. PARK_ALL: nor any other, those included
 * that are being made. Best effort. */
void kernel_release(struct kernel *k, int64_t park);

#define BESIDE_MAX 3u /* kernels of one container */

/* A kernel in the container of `of`, dead until kernel_revive, which takes any park of that
 * container. Each ends, restarts and is taken up again for itself; the container lives as long as
 * one of them. E_GONE; E_CAPACITY; E_UNAVAILABLE the image or the engine has no branches. */
int kernel_beside(struct kernel *of, const struct kernel_start *start,
	const struct kernel_watcher *watcher, struct kernel **ret, struct err *err);
bool kernel_is_beside(const struct kernel *k, const struct kernel *other);

#endif
