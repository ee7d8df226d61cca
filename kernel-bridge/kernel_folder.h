/* What the files of one kernel ask of kernel_files.c: what its container tells of its folder, and a
 * lay that is under way. Loop thread. */
#ifndef COPPICE_BRIDGE_KERNEL_FOLDER_H
#define COPPICE_BRIDGE_KERNEL_FOLDER_H

#include "kernel-bridge/kernel_internal.h"
#include "kernel-bridge/slot_files.h"

extern const struct slot_files_watcher kernel_files_watcher;

/* Its container goes: who waits for a lay is told, later. */
void kernel_laying_lost(struct kernel *k);
void kernel_laying_drop(struct kernel *k);
/* What was laid down is part of the state that its line has from here on. */
void kernel_laying_counts(struct kernel *k);

#endif
