/* Every execution is a commit. All histories below one folder: a bare git repository each, an index
 * in sqlite beside them, and a recorder with a thread of its own, so that nothing here blocks the
 * loop but the opening. Owns that folder. Loop thread, but for a history_source. */
#ifndef COPPICE_HISTORY_H
#define COPPICE_HISTORY_H

#include "gateway/base/base.h"
#include "gateway/base/clock.h"
#include "gateway/base/crypto.h"
#include "gateway/base/err.h"
#include "gateway/base/log.h"

struct uv_loop_s;
struct histories;

#define HISTORY_NODE_SIZE   41 /* a commit id in hex, with its NUL */
#define HISTORY_BRANCH_SIZE 128
#define HISTORY_QUEUE_MAX   1024u

/* What came of a run; borrowed for the call. */
struct history_recorded {
	void *run_data; /* history_run.data */
	int status;	/* 0, or E_*: nothing was recorded, err says why; to be tried again */
	const struct err *err; /* NULL if status is 0 */
	const char *history;   /* its id; "" on failure, as are the next three */
	const char *node;
	const char *branch;
	uint64_t state_version;
};

/* When a history's objects are packed; 0 stands for the usual. */
struct history_keeping {
	unsigned every;	   /* executions (1,000) */
	uint64_t idle_ms;  /* without an execution (5 minutes) */
	uint64_t retry_ms; /* after one that failed (a minute) */
};

struct histories_setup {
	struct uv_loop_s *loop;
	struct clock *clock;
	const struct log *log;
	const char *folder; /* made if absent */
	/* From the loop, once for each run that was taken, in the order of each kernel's runs. */
	void (*on_recorded)(void *data, const struct history_recorded *recorded);
	void *data;
	struct history_keeping keeping;
	uint64_t gather_ms, gather_most_ms; /* lanes.h; 0: no run waits for others */
};

/* Blocks: opens the index, makes it anew from the repositories where there is none or it is
 * damaged. E_IO; E_UNAVAILABLE: another process has the folder. */
int histories_open(const struct histories_setup *setup, struct histories **ret, struct err *err);
/* What was handed over is recorded first; cb from the loop, once. */
void histories_close(struct histories *h, void (*cb)(void *data), void *data);

/* Or one frame alone, a message of type `coppice_report`, {"report": {...}}, the request's: what
 * was learnt of a run that was handed over before. Told as recorded, without a node, whether it was
 * of use. Or one of type `coppice_files`, see working_files.h. Else the frames of one run in order:
 * the execute_request, what the kernel sent from then on (of other parents too), and last a message
 * of type `coppice_execution` whose content is the run's facts (docs/PROTOCOL.md). In the
 * recorder's thread; the caller's memory must allow that. */
struct history_source {
	/* 1: *ret_frame is the next v1 frame, borrowed until the next call. 0: there is no more.
	 * E_*: it cannot be had (any more). */
	int (*next)(void *data, struct bytes *ret_frame, struct err *err);
	/* Once, whatever came before. */
	void (*close)(void *data);
	void *data;
};

struct history_run {
	const char *history_id; /* a uuid; the history is made with its first run */
	const char *name;	/* what a person calls it; of the first run */
	/* Id or name of a history of that owner that goes on with this run, the one that was worked
	 * in last of several; one that is not there begins under that name. NULL: history_id's. */
	const char *wanted;
	const char *owner;
	const char *kernel_id;
	const char *kernelspec;
	const char *environment; /* digest of the image or interpreter, "" if unknown */
	uint64_t epoch;		 /* grows with each process of the kernel */
	/* The node at which that process began; NULL or "": the root. Its first run goes on with
	 * `branch`, if its tip is that node, else with the branch that the node was made on, if
	 * that is its tip; else it begins `branch`, or main.2, main.3 ... where that is NULL, "" or
	 * taken. */
	const char *at, *branch;
	uint64_t after_version; /* the run's state_version is greater */
	struct history_source source;
	void *data; /* for on_recorded */
};

/* Copies the texts, takes the source. E_UNAVAILABLE: HISTORY_QUEUE_MAX wait already; the source is
 * closed then as well. A run whose msg_id that history has already is told as recorded, with its
 * node: a gateway that was killed may hand one over twice. */
int history_record(struct histories *h, const struct history_run *run, struct err *err);

/* ---- looking ---- */

enum history_what {
	HISTORY_LIST,	    /* GET /history */
	HISTORY_ONE,	    /* GET /history/{h}: branches and nodes, newest first */
	HISTORY_NODE,	    /* GET /history/{h}/nodes/{n} */
	HISTORY_REPOSITORY, /* {"path": ...} of the bare repository, for git http-backend */
	HISTORY_EXPORT,	    /* GET /history/{h}/export: the file's name, a newline, the file */
	HISTORY_DIFF,	    /* GET /history/{h}/diff: from node to `to` */
	HISTORY_IMPORT,	    /* POST /history/import: a new history; answered as HISTORY_ONE */
	HISTORY_WAY,	    /* from where kernel_id stands to node, see way.c */
	HISTORY_BRANCH,	    /* a branch `name` begins at node: {history, name, node}; E_CONFLICT */
	HISTORY_FILES	    /* what the folder of a node holds, see working_files.h */
};

#define HISTORY_BEFORE "HEAD^" /* the node before the last that ran, as undo means it */
struct history_question {
	enum history_what what;
	const char *owner;     /* NULL: of all owners */
	const char *history;   /* id, name, or the kernel that is in it; NULL for the list */
	const char *node;      /* as http-api.md names nodes: id, prefix, branch, HEAD~k, In[7] */
	const char *kernel_id; /* whose HEAD and In[] are meant; NULL: the one that ran last */
	/* If it is set: HEAD is where that process of kernel_id stands, as in history_run. */
	uint64_t epoch;
	const char *at;
	/* Of nodes that are parked, "exact MSG_ID" or "partial MSG_ID" in a line each. */
	const char *parked;
	/* Of kernels that have run nothing since they came to a node, "KERNEL_ID NODE BRANCH". */
	const char *stands;
	const char *cursor; /* of the last answer's `next`; NULL: from the beginning */
	unsigned limit;
	bool silent; /* silent executions too */
	bool brief;  /* a node without its outputs: null */
	bool exact;  /* history is id or name, not a kernel that goes on in another one */
	/* Of these three alone. */
	const char *to;	    /* as node */
	const char *format; /* "ipynb" or "py"; NULL: ipynb, or what the file looks like */
	bool renumber;	    /* executed cells are counted from 1 */
	bool ours;	    /* what only we have of a cell is in its metadata */
	const char *name;   /* of the new history, which is owner's; of the branch that begins */
	struct bytes file;  /* borrowed until cb */
	int64_t now_us;	    /* set by history_ask() */
};

/* cb from the loop, once: json is the answer of http-api.md, borrowed; or status is
 * E_NOT_FOUND, E_AMBIGUOUS, E_INVALID (cursor) or E_IO, and err says it. Copies the
 * texts. */
void history_ask(struct histories *h, const struct history_question *question,
	void (*cb)(void *data, int status, struct bytes json, const struct err *err), void *data);

/* Parts of it that stand by themselves, and need what is above. */
#include "history/forgetting.h"
#include "history/upkeep.h"
#include "history/working_files.h"

#endif
