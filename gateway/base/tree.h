/* Folders with what is in them: walked, measured, linked, removed. Blocks: not for the loop. */
#ifndef COPPICE_BASE_TREE_H
#define COPPICE_BASE_TREE_H

#include "base.h"
#include "err.h"

/* Calls visit for each entry but "." and "..", until it returns something else than 0. None if
 * there is no such folder; what goes meanwhile may be passed over. */
int tree_each(const char *folder,
	int (*visit)(
		void *data, const char *path, const char *name, bool is_folder, struct err *err),
	void *data, struct err *err);
/* With all that is in it; it may be gone already. */
int tree_remove(const char *folder, struct err *err);
/* What it takes of the disk. */
int tree_bytes(const char *folder, uint64_t *ret_bytes, struct err *err);
/* Makes `to` with each file of `from` under a second name, or a copy of it: a file that is changed
 * in place or goes while it is looked for must be copied. Names that `skips` tells are left out. */
int tree_copy(const char *from, const char *to, bool links, bool (*skips)(const char *name),
	struct err *err);
int tree_copy_file(const char *from, const char *to, struct err *err);

#endif
