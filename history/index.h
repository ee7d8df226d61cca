/* The index of all histories in sqlite: what lists and names are answered from. Only an index: each
 * row is made from what lies in git (the root's message, a run's meta.json), so that it can be made
 * anew. A connection per thread. Blocks. */
#ifndef COPPICE_HISTORY_INDEX_H
#define COPPICE_HISTORY_INDEX_H

#include "gateway/base/base.h"
#include "gateway/base/db.h"
#include "history/history.h"

/* Opens it at the newest schema. One that is damaged or from a later program is put away first:
 * *ret_fresh is true if it holds nothing. */
int index_open(const char *path, struct db **ret_db, bool *ret_fresh, struct err *err);

/* Its files are removed; the next index_open() makes it anew. */
void index_discard(const char *path);

/* ---- rows, made from what git holds ---- */

/* From the message of the root commit: its record alone; then that it can be found, with all
 * records that it has by then. */
int index_add_root(
	struct db *db, const char *history, const char *root, const char *message, struct err *err);
int index_publish(
	struct db *db, const char *history, const char *root, const char *message, struct err *err);
/* Both. */
int index_add_history(
	struct db *db, const char *history, const char *root, const char *message, struct err *err);
struct index_node {
	const char *history, *node, *parent;
	struct bytes meta; /* meta.json */
};
/* The record, the state of its kernel and its displays; the branch's tip is set apart. */
int index_add_node(struct db *db, const struct index_node *node, struct err *err);
int index_add_display(struct db *db, const char *history, const char *display_id,
	const char *msg_id, uint64_t n, struct err *err);
/* That node had another id before it was rewritten. */
int index_add_was(
	struct db *db, const char *history, const char *was, const char *node, struct err *err);
int index_set_branch(
	struct db *db, const char *history, const char *branch, const char *node, struct err *err);
/* All rows of a history but its kernels' state_version, which never goes back. */
int index_forget(struct db *db, const char *history, struct err *err);

/* Nobody finds the history any more, and some of its rows are gone. 1: rows are left; 0; E_*. */
int index_shed(struct db *db, const char *history, struct err *err);
/* In the transaction that takes rows away: index_tidy() is owed, whatever ends this process. */
int index_untidy(struct db *db, const char *history, struct err *err);
/* 1: it is owed; 0; E_*. */
int index_is_untidy(struct db *db, struct err *err);
/* Not in a transaction: the file anew and its log cut, so that no byte is left of what is not in
 * it. E_UNAVAILABLE: somebody reads it. */
int index_tidy(struct db *db, struct err *err);

/* ---- what the recorder asks; 1: found, 0: not, E_* ---- */

struct index_place {
	char branch[HISTORY_BRANCH_SIZE];
	char node[HISTORY_NODE_SIZE];
	char tip[HISTORY_NODE_SIZE]; /* of branch; "" if there is none */
	uint64_t n, epoch, state_version;
};

/* The history that an owner calls so: by id, else by name the one that was worked in last. */
int index_find_history(
	struct db *db, const char *owner, const char *called, char ret_id[64], struct err *err);
/* Of anybody. */
int index_has_history(struct db *db, const char *id, struct err *err);
/* The record of a msg_id. */
int index_find_run(struct db *db, const char *history, const char *msg_id,
	struct index_place *ret_place, struct err *err);
/* Where a kernel stands, in whichever history: its state's version is right even if it is another.
 * *ret_here: it is this one. */
int index_find_state(struct db *db, const char *history, const char *kernel_id,
	struct index_place *ret_place, bool *ret_here, struct err *err);
/* The last record of that process of a kernel. */
int index_find_epoch(struct db *db, const char *history, const char *kernel_id, uint64_t epoch,
	struct index_place *ret_place, struct err *err);
int index_find_root(
	struct db *db, const char *history, char ret_root[HISTORY_NODE_SIZE], struct err *err);
int index_find_tip(struct db *db, const char *history, const char *branch,
	char ret_node[HISTORY_NODE_SIZE], struct err *err);
/* What is known of a node; then the id that it has now, if it was rewritten. */
int index_find_node(struct db *db, const char *history, const char *node,
	struct index_place *ret_place, struct err *err);
int index_find_was(struct db *db, const char *history, const char *was,
	char ret_node[HISTORY_NODE_SIZE], struct err *err);
/* In the memory of which run a node is, by its msg_id: its own, or that of the run before a change
 * of files. "": the root's. */
int index_find_memory(struct db *db, const char *history, const char *node, char *ret_msg_id,
	size_t size, struct err *err);
int index_has_node(struct db *db, const char *history, const char *node, struct err *err);

#endif
