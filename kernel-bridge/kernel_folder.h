/* What the files of one kernel ask of kernel_files.c: what its container tells of its folder, and a
 * lay that is under way. Loop thread. */
#ifndef COPPICE_BRIDGE_KERNEL_FOLDER_H
#define COPPICE_BRIDGE_KERNEL_FOLDER_H

#include "kernel-bridge/kernel_internal.h"
#include "kernel-bridge/slot_files.h"

/* What the place tells one of its kernels: slot_files_watcher's. A Change is of the folder that k
 * works in. */
void kernel_on_files(struct kernel *k, const char *msg_id, struct bytes change);
void kernel_on_content(struct kernel *k, const char *name, struct bytes bytes);
void kernel_on_laid(struct kernel *k, const struct slot_laid *laid);
void kernel_on_room(struct kernel *k);

/* Its container goes: who waits for a lay is told, later. */
void kernel_laying_lost(struct kernel *k);
void kernel_laying_drop(struct kernel *k);
/* What was laid down is part of the state that its line has from here on. */
void kernel_laying_counts(struct kernel *k);

#endif
