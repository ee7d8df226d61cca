/* What the files of one kernel ask of kernel_adopt.c: kernels that outlive a gateway. Loop thread.
 */
#ifndef COPPICE_BRIDGE_KERNEL_ADOPT_H
#define COPPICE_BRIDGE_KERNEL_ADOPT_H

#include "kernel-bridge/kernel_internal.h"

void kernel_adopt_init(struct kernel *k);
/* Everything that waits is forgotten, and it is a kernel as any other. */
void kernel_adopt_drop(struct kernel *k);
/* It answers: what it kept can be asked for. */
void kernel_adopt_heard(struct kernel *k);
/* A message that comes before the replay has ended. */
void kernel_adopt_live(struct kernel *k, struct jmsg *m);
/* It was in the replay. */
bool kernel_adopt_seen(const struct kernel *k, const struct jmsg *m);
void kernel_adopt_timeout(struct kernel *k);
/* It ends: the watcher gets what has come. */
void kernel_adopt_last(struct kernel *k);
void kernel_on_kept(void *data, unsigned line, enum channel channel, struct bytes frames);
void kernel_on_kept_end(void *data, unsigned line, int64_t lost);

#endif
