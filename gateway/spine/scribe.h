/* Hands each finished execution of a desk to history: its request and its end are entries of the
 * journal that no client gets, between them is what the kernel sent, and the recorder reads that
 * stretch from the file. So what was not recorded when a gateway was killed is recorded by the next
 * one. Loop thread. */
#ifndef COPPICE_SPINE_SCRIBE_H
#define COPPICE_SPINE_SCRIBE_H

#include "gateway/base/clock.h"
#include "gateway/base/list.h"
#include "gateway/spine/forgotten.h"
#include "history/history.h"
#include "kernel-bridge/bridge.h"

struct cJSON;
struct carried;
struct desk;
struct execution;
struct request;

#define HISTORY_VARIABLE  "KERNEL_COPPICE_HISTORY" /* of a start's env */
#define HISTORY_NAME_SIZE 256
#define SCRIBE_END	  "coppice_execution" /* type of the entry that ends a stretch */
#define SCRIBE_REPORT	  "coppice_report"    /* and of a stretch of one entry */
#define SCRIBE_FILES	  "coppice_files"     /* likewise: a run that nobody asked for */

/* Where a process of a kernel began. */
struct stand_at {
	char node[HISTORY_NODE_SIZE];	  /* "": at the root */
	char branch[HISTORY_BRANCH_SIZE]; /* that begins there, if one must; "": as it comes */
	uint64_t version; /* the kernel's state_version after its last move; 0: it never moved */
};

struct scribe {
	struct list ranges; /* finished and not recorded yet, oldest first */
	size_t n;
	size_t n_out; /* of them with the recorder, which takes them in order */
	bool failing; /* one came back: the others that are out will, too */
	struct timer again;
	char history[HISTORY_NAME_SIZE]; /* what goes on, name or id; "": the kernel's own */
	char history_id[64];		 /* where the last one went; "": not known */
	/* What the last one became. */
	char node[HISTORY_NODE_SIZE], branch[HISTORY_BRANCH_SIZE];
	uint64_t state_version;
	char environment[ENVIRONMENT_SIZE]; /* of the present kernel, as far as it was known */
	char trouble[256]; /* why the oldest could not be recorded; "" if it could */
	struct forgotten forgotten;
};

void scribe_init(struct desk *d);
/* Nothing may be with the recorder. */
void scribe_done(struct desk *d);
/* 0, or E_INVALID with the reason why no history can be called so. NULL and "" are none. */
int scribe_check_name(const char *name, struct err *err);
/* What is recorded from now on goes on in that history; NULL or "": in the kernel's own. */
void scribe_continue(struct desk *d, const char *history);
/* What leads to the present one: its id, or its name. */
const char *scribe_history(const struct desk *d);
/* x is about to be sent: sets x->first. E_NOMEM: it could not be recorded. */
int scribe_begins(struct execution *x, struct err *err);
/* x was sent by an earlier gateway, of whose journal `last` is the last number in the file. */
void scribe_resumes(struct execution *x, uint64_t last);
/* Its execution is over, it goes. The number of the entry that says so; 0: there is none. */
uint64_t scribe_ends(struct request *r);
/* kernel_watcher.on_report. The kernel learnt something of that execution: recorded after it, once.
 * Text of a guest. */
void scribe_report(void *desk, const char *msg_id, struct bytes text);
/* The folder changed while no cell ran: a run of its own, which carries that. Takes c if it is
 * true. */
bool scribe_add_files(struct desk *d, struct carried *c);
/* The journal's file has more than before. */
void scribe_written(struct desk *d);
/* It has no disk any more: what is not in the file is lost, which is told. */
void scribe_look_soon(struct desk *d);
/* What the earlier gateway's journal holds, up to `last`, that was not recorded. Blocks. */
void scribe_restore(struct desk *d, uint64_t last);
/* Whether the desk must stay for what is not recorded yet. */
bool scribe_holds(const struct desk *d);
/* Its process begins there; executions that end from now on are of that process. */
void scribe_moved(struct desk *d, const struct stand_at *at);
/* That, into the desk's row and out of it. */
void scribe_add_stand(const struct desk *d, struct cJSON *row);
void scribe_restore_stand(struct desk *d, const struct cJSON *row);
/* Where it stands has another id now, if it is one of these. */
void scribe_renamed(struct desk *d, const struct history_rewritten *rewritten, size_t n);
/* Where the kernel stands, into its model: nothing if nothing is recorded. */
void scribe_add(const struct desk *d, struct cJSON *model);
/* histories_setup.on_recorded. */
void scribe_recorded(void *data, const struct history_recorded *recorded);

#endif
