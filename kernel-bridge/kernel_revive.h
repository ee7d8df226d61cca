/* What the files of one kernel ask of kernel_revive.c: a line that is begun from a park
 * beside the line that runs. Loop thread. */
#ifndef COPPICE_BRIDGE_KERNEL_REVIVE_H
#define COPPICE_BRIDGE_KERNEL_REVIVE_H

#include "kernel-bridge/kernel_internal.h"

void kernel_on_revived(struct kernel *k, unsigned line, struct bytes text);
bool kernel_revives_line(const struct kernel *k, unsigned line);

/* The new line was spoken of: true if that line is being begun, and it is seen to. */
bool kernel_revival_started(
	struct kernel *k, unsigned line, const struct endpoints *endpoints, long pid);
bool kernel_revival_failed(struct kernel *k, unsigned line, const struct err *err);
/* Something else is to become of the kernel: what is under way is undone, its cb told so, later. */
void kernel_revival_cancel(struct kernel *k, int code, const char *why);

#endif
