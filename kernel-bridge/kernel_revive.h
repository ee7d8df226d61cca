/* What the files of one kernel ask of kernel_revive.c: parks, and a line that is begun from one
 * beside the line that runs. Loop thread. */
#ifndef COPPICE_BRIDGE_KERNEL_REVIVE_H
#define COPPICE_BRIDGE_KERNEL_REVIVE_H

#include "kernel-bridge/kernel_internal.h"

#define PARKS_MAX 64u /* of a container; what is told beyond is not believed */

void kernel_parks_init(struct kernel *k);
/* Its container goes, and all parks with it; the watcher is told if it still listens. */
void kernel_parks_drop(struct kernel *k);
void kernel_on_parked(void *data, const struct slot_parked *parked);
void kernel_on_unparked(void *data, int64_t park, const char *reason);
void kernel_on_not_parked(void *data, unsigned line, const char *msg_id, const char *reason);
void kernel_on_revived(void *data, unsigned line, struct bytes text);

/* The new line was spoken of: true if that line is being begun, and it is seen to. */
bool kernel_revival_started(
	struct kernel *k, unsigned line, const struct endpoints *endpoints, long pid);
bool kernel_revival_failed(struct kernel *k, unsigned line, const struct err *err);
/* Something else is to become of the kernel: what is under way is undone, its cb told so, later. */
void kernel_revival_cancel(struct kernel *k, int code, const char *why);

#endif
