/* The folder of all histories: its lock, and what a process that was killed leaves in it. Blocks.
 */
#ifndef COPPICE_HISTORY_FOLDER_H
#define COPPICE_HISTORY_FOLDER_H

#include "gateway/base/base.h"
#include "gateway/base/err.h"

/* Makes and locks it; *ret_fd keeps the lock until it is closed. E_UNAVAILABLE: somebody has it. */
int folder_lock(const char *folder, int *ret_fd, struct err *err);
/* Removes half-made repositories and, in each repository, lock files and half-written objects: who
 * made them is dead, since the folder is ours. on_history is told each history's id. */
int folder_clean(const char *folder, int (*on_history)(void *data, const char *id, struct err *err),
	void *data, struct err *err);
/* "FOLDER/ID.git"; false if it does not fit or the id is no file name. */
bool folder_repository(const char *folder, const char *id, char *ret_path, size_t size);

#endif
