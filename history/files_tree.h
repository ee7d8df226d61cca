/* The folder `files/` of a node, by libgit2: made of its parent's and a Change. Whatever the Change
 * says, what comes of it is a tree that git takes. The recorder's thread alone. Blocks. */
#ifndef COPPICE_HISTORY_FILES_TREE_H
#define COPPICE_HISTORY_FILES_TREE_H

#include "history/change.h"
#include "history/repo.h"

#define FILES_FOLDER "files"

/* One path of it, in the terms of git. */
struct files_op {
	const char *path; /* as it stands in the tree */
	enum files_op_kind { FILES_REMOVE, FILES_FOLDER_EMPTY, FILES_PUT } kind;
	unsigned mode;
	char blob[HISTORY_NODE_SIZE];
	size_t entry; /* the caller's, as ops are sorted */
	bool refused; /* set by files_apply(): another op of that path, or of one above it, counts
		       */
};

/* A name as it is kept in the tree: one that steers what git does with a folder is escaped, as the
 * container escapes others. NULL in *ret: git refuses it. The text is in memory, which has
 * room for twice the path: it stays where it is. */
int files_name(
	struct repo *repo, const char *path, struct buf *memory, const char **ret, struct err *err);

/* base "": of nothing. The ops are sorted here. ret_tree: the new folder, which is never without
 * an entry. */
int files_apply(struct repo *repo, const char *base, struct files_op *ops, size_t n,
	char ret_tree[HISTORY_NODE_SIZE], struct err *err);

/* The `files/` of a node's tree, "" if it has none. node may be "". */
int files_of(
	struct repo *repo, const char *node, char ret_tree[HISTORY_NODE_SIZE], struct err *err);

/* The blob at a path of such a folder; false: there is none. */
bool files_find(
	struct repo *repo, const char *tree, const char *path, char ret_blob[HISTORY_NODE_SIZE]);

/* Blobs that no branch leads to are led to by a ref of ours until they are let go. Names of what is
 * not there, and of chunks, are passed over. */
#define HELD_REF "refs/coppice/held"
int files_hold(struct repo *repo, const struct buf *names, struct err *err); /* char[41] each */
int files_let_go(struct repo *repo, struct err *err);

/* Such a blob is there; its size. */
bool files_has_blob(struct repo *repo, const char *blob, uint64_t *ret_bytes);

#endif
