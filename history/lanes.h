/* The inside of struct histories: three lanes, each a thread with its queue, and what comes back of
 * them to the loop. For history.c, lanes.c and tests. */
#ifndef COPPICE_HISTORY_LANES_H
#define COPPICE_HISTORY_LANES_H

#include <pthread.h>
#include <uv.h>

#include "gateway/base/buf.h"
#include "gateway/base/list.h"
#include "history/ask.h"
#include "history/keeper.h"
#include "history/recorder.h"

/* A question on its way; owns its texts. */
struct asking {
	struct list link;
	struct history_question question; /* texts point into text */
	char *text;
	void (*cb)(void *data, int status, struct bytes json, const struct err *err);
	void *data;
	/* Of an import: the history that was written for it, its nodes (struct imported_node), and
	 * how many of them are in the index. */
	char made[UUID_SIZE];
	struct buf nodes;
	size_t adopted;
	int status;
	struct err err;
	struct buf json;
};

/* After a run of that kernel failed, its runs that came before this was told are refused. */
struct stop {
	struct list link;
	char kernel_id[128];
	uint64_t until; /* jobs below it; UINT64_MAX while nobody was told */
};

/* The keeper wants something of the recorder: its repository opened anew, or let go of. */
struct wish {
	struct list link;
	char history[64];
	bool drops;			    /* who wants it waits for done, as below */
	const struct history_whose *places; /* where a run of that would go, which is made */
	bool done;
	int status;
	struct err err;
};

struct histories {
	struct clock *clock;
	struct log log;
	char *folder;
	void (*on_recorded)(void *data, const struct history_recorded *recorded);
	void *data;
	struct recorder *recorder;
	struct asker asker;
	struct keeper *keeper;
	/* Runs wait for others, with which they are recorded at a fraction of the cost: until no
	 * other came for gather_ms, the oldest has waited most_ms, or a batch is full. 0: not. */
	uint64_t gather_ms, gather_most_ms;
	pthread_t record_thread, ask_thread;
	uv_async_t async;
	void (*on_closed)(void *data);
	void *closed_data;
	/* Under the lock: */
	pthread_mutex_t lock;
	pthread_cond_t record_wake, ask_wake, wish_done;
	struct list jobs, askings;	     /* waiting */
	size_t n_waiting;		     /* in jobs */
	uint64_t last_ms;		     /* when the youngest of jobs came */
	struct list jobs_done, askings_done; /* to be told */
	struct list stops;
	struct list forgets, forgets_done; /* struct forgetting */
	size_t n_forgets;		   /* with those that the loop has */
	bool forgets_rest;		   /* those that wait are to be tried again in a second */
	struct list wishes, orders_done;
	struct list branchings; /* askings for the recorder */
	struct list adoptions;	/* askings whose history is written and is not in the index */
	struct list contents, contents_done; /* of working files, see contents.c */
	size_t n_contents, contents_bytes;   /* with those that are not told yet; in contents */
	size_t n_jobs, n_askings;
	uint64_t next_seq;
	bool closing, record_ended, ask_ended, keep_ended;
};

/* As histories_open(), with a hook in the recorder's steps. */
int histories_open_hooked(const struct histories_setup *setup, const struct record_hook *hook,
	struct histories **ret, struct err *err);

/* ---- lanes.c: what the two threads do ---- */

void *lane_record(void *histories);
void *lane_ask(void *histories);
/* Loop, under the lock: the job waits to be recorded. */
void lane_add(struct histories *h, struct job *job);
void job_free(struct job *job);
void asking_free(struct asking *asking);

/* ---- forgetting.c ---- */

struct forgetting;

/* What is to be forgotten, in the recorder's thread; then what came of one, in the loop. */
void lane_forget(struct histories *h);
void forget_tell(struct histories *h, struct forgetting *f);
/* ---- keeping.c: what is between the keeper and the others ---- */

/* NULL: its thread cannot start. */
struct keeper *keeping_start(struct histories *h, const struct history_keeping *keeping);
/* Recorder's thread, between batches; without the lock. */
void keeping_turn(struct histories *h);
/* Recorder's thread, under the lock: there is something for keeping_turn(). */
bool keeping_wants(const struct histories *h);
/* Loop, without the lock. */
void keeping_tell(struct list *orders);
/* ---- branching.c: branches that are asked for, which the recorder makes ---- */

/* Bulk lane. */
void branching_add(struct histories *h, struct asking *asking);
/* Recorder's thread, between batches, without the lock. */
void branchings_turn(struct histories *h);
/* Recorder's thread, under the lock: there is something for it. */
bool branchings_wait(const struct histories *h);

/* Bulk lane: the id of the history that a run of that would be recorded in, which is made. Waits
 * for the recorder. */
int keeping_place(
	struct histories *h, const struct history_whose *whose, char ret_id[64], struct err *err);

/* ---- contents.c ---- */

/* Bulk lane, without the lock: what waits of contents, or some of it. */
void contents_turn(struct histories *h);
/* Loop, without the lock. */
void contents_tell(struct list *done);

/* ---- adopt.c: from the bulk lane, which writes a history that is imported, to the recorder, which
 * alone writes the index, and back ---- */

struct importing;

/* Bulk lane: it is in place. */
void adoption_add(struct histories *h, struct asking *asking, struct importing *im);
/* Recorder's thread, between batches, without the lock: some rows of the first. */
void adoptions_turn(struct histories *h);
/* Recorder's thread, under the lock: there is something for it. */
bool adoptions_wait(const struct histories *h);

#endif
