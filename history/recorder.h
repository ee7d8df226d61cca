/* The recorder: runs become commits, refs and rows, a batch at a time. A crash between any two of
 * its steps loses no run that was told as recorded and doubles none: refs are the truth, the index
 * is brought after them, a msg_id that is there already is told as recorded. Owns its connection
 * and repositories. Recorder's thread only, but for open and close. */
#ifndef COPPICE_HISTORY_RECORDER_H
#define COPPICE_HISTORY_RECORDER_H

#include "gateway/base/db.h"
#include "gateway/base/list.h"
#include "history/history.h"

#define BATCH_MAX 128u

/* In order of what one batch does. */
enum record_step {
	STEP_REPOSITORY, /* before one is made */
	STEP_READ,	 /* before a source is read */
	STEP_OBJECTS,	 /* before a run's files and commit are made */
	STEP_ROW,	 /* before its row */
	STEP_FLUSH,	 /* before a kernel's objects are put on the disk */
	STEP_SYNC,	 /* before they are made durable */
	STEP_REF,	 /* before each ref */
	STEP_INDEX,	 /* before the rows are committed */
	STEP_TOLD,	 /* all is done, nobody knows */
	STEP_FORGET,	 /* before each of the steps of forgetting */
	STEP_TIDY,	 /* before the index is made anew without what went */
	STEP_ADOPT,	 /* before rows of a history that was imported */
	STEP_COUNT
};

/* For tests: what is not 0 fails that step. Recorder's thread. */
struct record_hook {
	int (*step)(void *data, enum record_step step);
	void *data;
};

/* One run on its way; owns its texts. */
struct job {
	struct list link;
	struct history_run run; /* texts point into text */
	char *text;
	uint64_t seq; /* in order of arrival */
	int64_t came_us;
	uint64_t came_ms; /* by the clock that never goes back */
	char msg_id[256];
	char history[64]; /* where it goes, once that is known */
	/* What came of it. */
	int status;   /* set before the batch: it is not to be recorded */
	bool refused; /* nothing is wrong with it, but with one before it */
	bool learns;  /* it is no run, but what was learnt of one */
	bool taken;   /* the batch was at it */
	struct err err;
	char node[HISTORY_NODE_SIZE], branch[HISTORY_BRANCH_SIZE];
	uint64_t state_version;
};

struct recorder;
struct pins;

struct recorder_setup {
	const char *folder;
	const struct log *log;
	struct record_hook hook;
};

/* The start-up scan is part of it. */
int recorder_open(
	const struct recorder_setup *setup, struct recorder **ret_recorder, struct err *err);
void recorder_close(struct recorder *r);
/* The job waits for an earlier one that failed. */
void job_refuse(struct job *job);
/* At most BATCH_MAX jobs; each has its status afterwards. */
void recorder_batch(struct recorder *r, struct job **jobs, size_t n);
/* Of all its histories; any thread. */
struct pins *recorder_pins(const struct recorder *r);
/* ---- between batches ---- */

/* Where a run would be recorded that says that: the repository is made if it is not there. */
int recorder_place(
	struct recorder *r, const struct history_whose *whose, char ret_id[64], struct err *err);
/* ---- for adopt.c: a repository that was put into the folder whole ---- */

struct imported_node;

struct adopting {
	const char *history;
	const struct imported_node *nodes; /* parents first */
	size_t n;
};

/* Rows for some of its nodes, from the *at-th on; with the last ones it can be found. Fails: they
 * follow, as below. */
int recorder_adopt(struct recorder *r, const struct adopting *a, size_t *at, struct err *err);
/* True if a run was recorded in git while the index could not be written; recorder_catch_up() is
 * to be tried from time to time. */
bool recorder_lags(const struct recorder *r);
void recorder_catch_up(struct recorder *r);

/* ---- drop.c: between batches ---- */

/* Its packs are others now: the old ones are let go of. */
void recorder_reopen(struct recorder *r, const char *history);
/* Its repository is called ID.git.gone from now on, nobody finds it any more; its rows go bit by
 * bit, by recorder_shed(). E_NOT_FOUND, E_IO. */
int recorder_drop(struct recorder *r, const char *history, struct err *err);
/* Rows of dropped histories are left. */
bool recorder_sheds(const struct recorder *r);
/* Some of them go, so few that nobody waits. */
void recorder_shed(struct recorder *r);
/* All of them went: nothing of them is to be left in the file either. That takes as long as it
 * takes to copy the index, so it is for a moment in which nothing waits. */
bool recorder_is_untidy(const struct recorder *r);
void recorder_tidy(struct recorder *r);

#endif
