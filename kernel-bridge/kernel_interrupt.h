/* What kernel_interrupt.c is told by the files of a kernel. Inside kernel-bridge only. Loop thread.
 */
#ifndef COPPICE_BRIDGE_KERNEL_INTERRUPT_H
#define COPPICE_BRIDGE_KERNEL_INTERRUPT_H

#include "kernel-bridge/kernel_internal.h"

void kernel_interrupt_init(struct kernel *k);
void kernel_interrupt_cancel(struct kernel *k);
/* A client's own interrupt_request goes to the kernel: it escalates like one of ours. */
void kernel_interrupt_asked(struct kernel *k);
/* An interrupt is on its way: no cell may be sent before it has landed. */
bool kernel_interrupt_gate(const struct kernel *k);
void kernel_interrupt_landed(struct kernel *k);

#endif
