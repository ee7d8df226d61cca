/* Commits written again, by libgit2: each as it was but for its parent, some of its files and its
 * message. No branch is touched here; old objects stay until they are purged (purge.h). The
 * recorder's thread alone. Blocks. */
#ifndef COPPICE_HISTORY_REWRITE_H
#define COPPICE_HISTORY_REWRITE_H

#include "history/repo.h"

struct path_change {
	char path[64];
	char id[HISTORY_NODE_SIZE]; /* of a blob or of a folder */
	bool is_folder;
};

struct commit_again {
	const char *node;   /* author, committer and their times are its */
	const char *tree;   /* the node whose tree is changed */
	const char *parent; /* it has one: a root is never written again */
	const struct path_change *changes;
	size_t n_changes;
	const char *message;
};

int repo_commit_again(struct repo *repo, const struct commit_again *again,
	char ret_id[HISTORY_NODE_SIZE], struct err *err);
/* The object at a path of a node's tree. E_NOT_FOUND. */
int repo_find_path(struct repo *repo, const char *node, const char *path,
	char ret_id[HISTORY_NODE_SIZE], struct err *err);

struct folder_file {
	const char *name;
	char blob[HISTORY_NODE_SIZE];
};
int repo_make_folder(struct repo *repo, const struct folder_file *files, size_t n,
	char ret_id[HISTORY_NODE_SIZE], struct err *err);

/* What is kept beside the branches under the id of a node (refs/coppice/state, refs/notes/coppice):
 * rename says under which it is to be kept from now on, "" for not at all; false for as it is. The
 * ref's commit has no parent, so nothing of before is left in it. Nothing happens where there is
 * no such ref. */
int repo_rename_entries(struct repo *repo, const char *ref,
	bool (*rename)(void *data, const char *node, char ret_node[HISTORY_NODE_SIZE]), void *data,
	struct err *err);

/* Looks at the disk anew. */
bool repo_has_object(struct repo *repo, const char *id);

#endif
