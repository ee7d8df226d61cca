/* How many containers are begun at the same time; the other starts wait in order, those that
 * somebody asked for first. Inside kernel-bridge only. Loop thread. */
#ifndef COPPICE_BRIDGE_KERNEL_LAUNCH_H
#define COPPICE_BRIDGE_KERNEL_LAUNCH_H

#include "kernel-bridge/kernel_internal.h"

void kernel_launch_init(struct kernel *k);
/* Reserves a slot and begins it, now or in its turn; then what fails, fails later. */
int kernel_launch(struct kernel *k, struct err *err);
/* It is ready, dead or ended, or was never begun: the next one's turn. Any number of times. */
void kernel_launch_over(struct kernel *k);

#endif
