/* What a node that is forgotten left in the working folder: its contents go from the nodes after
 * it, too, wherever they still lie under the name that it gave them. In their place stands that
 * they were forgotten, so that a move removes nothing of that name that it cannot bring back. The
 * recorder's thread alone. */
#ifndef COPPICE_HISTORY_FORGET_FILES_H
#define COPPICE_HISTORY_FORGET_FILES_H

#include "history/rewrite.h"

struct forget_files;

/* What the node made or changed beside its parent. */
int forget_files_find(struct repo *repo, const char *parent, const char *node,
	struct forget_files **ret, struct err *err);
void forget_files_free(struct forget_files *ff);
/* *ret_changes: the folder of that later node has to be another. */
int forget_files_of(struct forget_files *ff, const char *node, struct path_change *ret,
	bool *ret_changes, struct err *err);

#endif
