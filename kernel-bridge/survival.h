/* A part of kernel-bridge's public header: kernels that outlive the gateway. Loop thread. */
#ifndef COPPICE_BRIDGE_SURVIVAL_H
#define COPPICE_BRIDGE_SURVIVAL_H

#include "kernel-bridge/bridge.h"

/* What a later gateway needs to take the kernel up again; NULL: it cannot be. Caller owns. It holds
 * the signature key. */
struct cJSON *kernel_record(const struct kernel *k);
/* As kernel_start, for a kernel that an earlier gateway had, before bridge_sweep. after: per
 * channel the msg_id of the last message that is known to be kept by the watcher, or NULL; what
 * came since follows on_ready, in order, each once as far as the kernel still has it. on_death if
 * it does not live any more. E_GONE, E_UNAVAILABLE: there is nothing to take up. */
int kernel_adopt(struct bridge *b, const struct kernel_start *start, const struct cJSON *row,
	char *const after[CHANNEL_HB], const struct kernel_watcher *watcher, struct kernel **ret,
	struct err *err);
/* One that died under an earlier gateway: dead, without a place, until kernel_restart. */
int kernel_restore_dead(struct bridge *b, const struct kernel_start *start,
	const struct kernel_watcher *watcher, struct kernel **ret, struct err *err);
/* Lets go of a kernel that lives on, and frees k. False: it cannot live without us, end it. */
bool kernel_leave(struct kernel *k);

#endif
