/* A part of kernel-bridge's public header: the end of a kernel whose time is up, and how it is
 * known that nothing of it is left. Loop thread. */
#ifndef COPPICE_BRIDGE_LIMITS_H
#define COPPICE_BRIDGE_LIMITS_H

#include "kernel-bridge/bridge.h"

#define KERNEL_CLEAN_MS 1000 /* so long after kernel_kill nothing of the line may be left */

/* Kills everything of its line; what is parked in its container stays. on_death follows, at the
 * latest when KERNEL_CLEAN_MS are over: then its place is gone too. */
void kernel_kill(struct kernel *k);
/* Of a dead one: has the engine look, from outside, whether a process of that line is left, until
 * none is or the time after kernel_kill is up. cb once: NULL: none is. E_BUSY: something was, so
 * its place was given up, with all that is parked there. E_GONE: there is no place to look at.
 * E_DEAD: the kernel was ended or restarted meanwhile. */
void kernel_look(struct kernel *k, void (*cb)(void *data, const struct err *left), void *data);

#endif
