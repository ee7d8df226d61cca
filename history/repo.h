/* A bare git repository of one history, by libgit2. Owns its handle; one thread at a time, each
 * thread opens its own. Blocks. Ids are 40 hex digits. */
#ifndef COPPICE_HISTORY_REPO_H
#define COPPICE_HISTORY_REPO_H

#include "gateway/base/base.h"
#include "gateway/base/buf.h"
#include "gateway/base/err.h"
#include "history/history.h"

struct git_repository;

struct stage;

struct repo {
	struct git_repository *git;
	struct stage *stage; /* NULL if it was opened to be read; git's, else */
};

/* Once per process that uses the rest, any thread; settings of the person's git do not count. */
int repo_library_start(struct err *err);
void repo_library_end(void);

/* To be read. */
int repo_open(const char *path, struct repo *ret_repo, struct err *err);
void repo_close(struct repo *repo);

/* ---- stage.c: where objects go that are written ---- */

int repo_open_to_write(const char *path, struct repo *ret_repo, struct err *err);
/* From here to repo_flush() or repo_drop() objects stay in memory, where this handle alone sees
 * them; but large ones, and what is beyond a bound, which go to the disk at once. Else all do. */
void repo_begin(struct repo *repo);
size_t repo_staged_bytes(const struct repo *repo);
/* An object is on the disk, and young from now on. */
bool repo_freshen(struct repo *repo, const char *id);
/* What is staged leads to an object that somebody else wrote as a file of its own: the rest are to
 * be that, too. */
void repo_spill(struct repo *repo);
/* Writes them: few as a file each, many as one pack. Whatever it returns, none is in memory any
 * more: after a failure they are to be made again. Durable once the file system is synced. */
int repo_flush(struct repo *repo, struct err *err);
/* They are given up. */
void repo_drop(struct repo *repo);

/* ---- commit.c: writing, by the recorder alone ---- */

/* HEAD is refs/heads/main; what is ours alone is hidden from clones. Appears whole or not at all.
 */
int repo_make(const char *path, struct err *err);

int repo_blob(
	struct repo *repo, struct bytes data, char ret_id[HISTORY_NODE_SIZE], struct err *err);

/* What repo_blob() would call it; false: it cannot be told. */
bool repo_blob_name(struct bytes data, char ret_id[HISTORY_NODE_SIZE]);

struct tree_change {
	char path[64];
	char blob[HISTORY_NODE_SIZE]; /* "": this path goes */
	bool is_folder;		      /* blob is a tree */
};

#define STATE_REF "refs/coppice/state"

struct commit_draft {
	const char *parent;		   /* "" for the root */
	const struct tree_change *changes; /* to the parent's tree */
	size_t n_changes;
	const char *message;
	const char *author;
	int64_t author_us, committer_us;
};

/* No ref is touched. */
int repo_commit(struct repo *repo, const struct commit_draft *draft, char ret_id[HISTORY_NODE_SIZE],
	struct err *err);

/* Durable when it returns. from "": the branch must not exist. E_CONFLICT: it is elsewhere. */
int repo_move_branch(
	struct repo *repo, const char *name, const char *from, const char *to, struct err *err);

/* The tree of the state with changes; base "": what refs/coppice/state has, or nothing. ret_tree
 * may be base; "" if nothing changes of what the ref has. */
int repo_state_tree(struct repo *repo, const char *base, const struct tree_change *changes,
	size_t n, char ret_tree[HISTORY_NODE_SIZE], struct err *err);
/* A commit of that tree without parents; the ref is not touched. */
int repo_state_commit(
	struct repo *repo, const char *tree, char ret_commit[HISTORY_NODE_SIZE], struct err *err);
/* Durable when it returns. */
int repo_state_move(struct repo *repo, const char *commit, struct err *err);

/* ---- lookup.c: reading ---- */

struct branch_tip {
	char name[HISTORY_BRANCH_SIZE];
	char node[HISTORY_NODE_SIZE];
};

/* main first, then by name; the array is the caller's to free. */
int repo_branches(struct repo *repo, struct branch_tip **ret_tips, size_t *ret_n, struct err *err);

struct commit_view {
	char parent[HISTORY_NODE_SIZE]; /* "" for the root */
	int64_t author_us;
	struct buf message;
};

/* ret_view->message is made by this call, buf_done() by the caller whatever it returns. */
int repo_read_commit(
	struct repo *repo, const char *node, struct commit_view *ret_view, struct err *err);
/* E_NOT_FOUND: no such file in that node. */
int repo_read_file(struct repo *repo, const char *node, const char *path, struct buf *ret_data,
	struct err *err);
/* A blob by its name. */
int repo_read_blob(struct repo *repo, const char *id, struct buf *ret_data, struct err *err);
/* Likewise of the state. */
int repo_read_state(struct repo *repo, const char *path, struct buf *ret_data, struct err *err);
/* The names in a folder of a node, none if there is no such folder. */
int repo_list_folder(struct repo *repo, const char *node, const char *path,
	void (*on_name)(void *data, const char *name), void *data, struct err *err);

#endif
