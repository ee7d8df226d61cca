/* What kernel_limit.c is told by the files of a kernel. Inside kernel-bridge only. Loop thread. */
#ifndef COPPICE_BRIDGE_KERNEL_LIMIT_H
#define COPPICE_BRIDGE_KERNEL_LIMIT_H

#include "kernel-bridge/kernel_internal.h"

/* Something else is to become of the kernel: who waits for a look is told so, later. */
void kernel_limit_cancel(struct kernel *k, int code, const char *why);

#endif
