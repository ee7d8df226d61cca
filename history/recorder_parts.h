/* The inside of struct recorder. */
#ifndef COPPICE_HISTORY_RECORDER_PARTS_H
#define COPPICE_HISTORY_RECORDER_PARTS_H

#include "gateway/base/hash.h"
#include "history/index.h"
#include "history/pins.h"
#include "history/record.h"
#include "history/recorder.h"
#include "history/repo.h"

/* What a batch learnt: the tree that the state is to be, and its commit; "": nothing. */
struct learnt {
	char tree[HISTORY_NODE_SIZE], commit[HISTORY_NODE_SIZE];
};

struct open_repo {
	char id[64];
	struct repo repo;
	bool behind; /* its index may lag behind its refs */
	bool owed;   /* it does, by a run that was told as recorded */
	bool in_batch;
	/* Of the batch; before: before the kernel that is recorded now. mended: rows that are no
	 * run's came or went since then. */
	bool mended;
	struct learnt learnt, learnt_before;
	uint64_t used;
	UT_hash_handle hh;
};

/* A branch that a batch moves. */
struct move {
	struct open_repo *repo;
	char branch[HISTORY_BRANCH_SIZE];
	char from[HISTORY_NODE_SIZE], to[HISTORY_NODE_SIZE];
};

/* A history that was dropped and whose rows are not all gone. */
struct shed {
	struct list link;
	char history[64];
};

struct recorder {
	struct recorder_setup setup;
	char *folder;
	int lock, folder_fd;
	struct db *db;
	struct open_repo *repos;
	uint64_t uses;
	struct move moves[BATCH_MAX], moves_before[BATCH_MAX]; /* as learnt_before */
	size_t n_moves, n_moves_before;
	struct pins *pins;
	struct list promises; /* struct promise, see place.c */
	struct list sheds;
	bool untidy; /* index_tidy() is owed */
	bool tidied; /* in vain; again in a while */
	bool untidy_told;
};

/* ---- for batch.c and forget*.c ---- */

int recorder_step(struct recorder *r, enum record_step at, struct err *err);
/* Opens it, or makes it. */
int recorder_repo(
	struct recorder *r, const char *history, struct open_repo **ret_repo, struct err *err);
/* Closes it, if it is open. */
void recorder_let_go(struct recorder *r, const char *history);
/* In the caller's transaction: its rows agree with its refs. */
int recorder_index(struct recorder *r, struct open_repo *repo, struct err *err);

/* ---- one run, for batch.c ---- */

/* In the batch's transaction, its objects in memory. What is not 0 left nothing behind. */
int recorder_run(struct recorder *r, struct job *job, struct err *err);
void job_place(struct job *job, const char *node, const char *branch, uint64_t version);

/* Where a run goes: its parent, branch, number and version. */
struct place {
	struct record_place at;
	char parent[HISTORY_NODE_SIZE];
	char branch[HISTORY_BRANCH_SIZE];
	char tip[HISTORY_NODE_SIZE]; /* of that branch now, "" if it begins */
};

/* Which history the job goes to: sets its run's history_id, and the name of one that begins. */
int place_history(struct recorder *r, struct job *job, struct err *err);
/* An id that is not taken yet is given to who asked for that name first. */
int place_whose(struct recorder *r, const struct history_whose *whose, char ret_id[64],
	const char **ret_name, struct err *err);
void promises_free(struct recorder *r);
/* A name for a branch that begins: wanted, if it is one and free. */
int place_new_branch(struct db *db, const char *history, const char *wanted,
	char ret_name[HISTORY_BRANCH_SIZE], struct err *err);
/* Makes the root if there is none. */
int place_find(struct recorder *r, struct open_repo *repo, const struct job *job,
	struct place *ret_place, struct err *err);

/* ---- drop.c ---- */

/* In the batch's transaction: nothing of an earlier history of that id is left. */
int shed_whole(struct recorder *r, const char *history, struct err *err);
/* In the caller's transaction: rows of histories that have no repository go. */
int shed_vanished(struct recorder *r, struct err *err);
void sheds_free(struct recorder *r);

#endif
