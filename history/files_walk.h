/* Reading the folders `files/` of nodes, by libgit2: all that is in one, and what differs between
 * two. One thread at a time of a repository. Blocks. */
#ifndef COPPICE_HISTORY_FILES_WALK_H
#define COPPICE_HISTORY_FILES_WALK_H

#include "history/pointer.h"
#include "history/repo.h"

struct files_entry {
	const char *path; /* borrowed for the call */
	unsigned mode;	  /* of what was lost too; MODE_FOLDER: an empty folder */
	uint64_t bytes;
	char blob[HISTORY_NODE_SIZE];  /* in the tree, of a pointer too */
	const struct pointer *pointer; /* NULL: the blob is the file; borrowed for the call */
};

/* Sorted as git has them. What is not 0 of on_entry ends it. */
int files_each(struct repo *repo, const char *tree,
	int (*on_entry)(void *data, const struct files_entry *entry, struct err *err), void *data,
	struct err *err);

enum files_change { FILES_CREATED, FILES_MODIFIED, FILES_DELETED };

struct files_delta {
	const char *path; /* borrowed for the call */
	enum files_change change;
	unsigned from_mode, to_mode; /* MODE_FOLDER: an empty folder; 0: there is none */
	char from[HISTORY_NODE_SIZE], to[HISTORY_NODE_SIZE]; /* blobs; "" */
};

/* Two trees, "" of none. Sorted by path. An empty folder that something was put into is no
 * difference beside it. */
int files_diff(struct repo *repo, const char *from, const char *to,
	int (*on_delta)(void *data, const struct files_delta *delta, struct err *err), void *data,
	struct err *err);

/* Size and, if it is a pointer, what it says; ret_text, which is made by this call, holds that. */
int files_look(struct repo *repo, const char *blob, uint64_t *ret_bytes, struct buf *ret_text,
	struct pointer *ret_pointer, bool *ret_is_pointer, struct err *err);

/* Every chunk that a node of any branch names, perhaps more than once. */
int files_each_chunk(struct repo *repo, void (*on_chunk)(void *data, const char *name), void *data,
	struct err *err);

#endif
