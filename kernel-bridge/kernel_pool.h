/* What kernel_pool.c is told by the files of a kernel. Inside kernel-bridge only. Loop thread. */
#ifndef COPPICE_BRIDGE_KERNEL_POOL_H
#define COPPICE_BRIDGE_KERNEL_POOL_H

#include "kernel-bridge/kernel_internal.h"

/* The line answers. True: it is being handed over, and not ready yet. */
bool kernel_hand_over_ready(struct kernel *k);
/* The line is of no use. True: it was to be handed over, and its owner gets a fresh one. */
bool kernel_hand_over_failed(struct kernel *k);
/* A slot that is warm can be handed over later. */
bool kernel_can_wait(struct kernel *k, struct err *err);
void kernel_on_handed_over(void *data, unsigned line);
/* Once more, by a gateway that took the kernel up. */
void kernel_hand_over_again(struct kernel *k);

#endif
