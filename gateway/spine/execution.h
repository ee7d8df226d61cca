/* One execute_request from its arrival to its end: its state, its outcome, its range in the
 * journal. Owned by the desk, which keeps the last ones for /admin/show/executions. Loop thread. */
#ifndef COPPICE_SPINE_EXECUTION_H
#define COPPICE_SPINE_EXECUTION_H

#include "gateway/base/jmsg.h"
#include "gateway/base/list.h"
#include "gateway/base/sm.h"

struct desk;
struct request;

/*
 *   accepted --> queued --lane is free--> sent --busy or output--> running --reply and idle--> done
 *                   |                      |                          |                         ^
 *                   +--aborted, refused----+--kernel died, not sent---+-------------------------+
 */
enum execution_state {
	EXECUTION_ACCEPTED,
	EXECUTION_QUEUED,
	EXECUTION_SENT,
	EXECUTION_RUNNING,
	EXECUTION_DONE,
	EXECUTION_STATES
};

/* What it came to. */
enum execution_status {
	EXECUTION_OPEN,
	EXECUTION_OK,
	EXECUTION_ERROR,
	EXECUTION_ABORTED,
	EXECUTION_DIED,
	EXECUTION_TIMED_OUT,
	EXECUTION_STATUSES
};

struct execution {
	struct list link; /* desk's executions, oldest first */
	struct sm sm;
	struct desk *desk;
	struct request *request; /* NULL once done */
	char *msg_id;
	uint64_t client;
	enum execution_status status;
	int64_t execution_count; /* of the reply; -1: none was said */
	uint64_t first, last;	 /* numbers of its range in the journal; 0: nothing */
	uint64_t peak_bytes;	 /* of its kernel's process meanwhile; 0: not known */
	uint64_t output_bytes;	 /* of what the kernel sent for it */
	unsigned queue_position; /* executions of its lane that were before it when it came */
	int64_t accepted_us, sent_us, running_us, done_us;
	int64_t busy_us;		/* of its first sign, by the kernel's clock; 0: not said */
	int64_t ended_us;		/* by the kernel's clock; 0: it said nothing that can be */
	bool free_lane;			/* the queue lets it go */
	bool silent_kernel;		/* a half was missing and was synthesised */
	bool stops_queue;		/* it failed, and stop_on_error was not false */
	bool repeats;			/* answered as an earlier one was: it is none of its own */
	bool asked_exit;		/* its reply says that user code ends the kernel */
	bool reported;			/* what the kernel learnt of it was told */
	bool timed_out;			/* its deadline came while it ran */
	bool interrupted;		/* somebody asked for that while it ran */
	bool raised;			/* the kernel published an error of it */
	uint64_t limit_ms, deadline_ms; /* 0: it may take as long as it likes */
	char before[JMSG_ID_MAX]; /* msg_id of the one whose state it began in; "": not known */
	char *history;	     /* the one that it is recorded in, as scribe.history; NULL before */
	struct jmsg *report; /* that, until its end is in the journal */
};

/* What an execute_reply says. */
struct outcome {
	enum execution_status status;
	int64_t execution_count; /* -1: none was said */
	bool asks_exit;
};

struct execution *execution_new(struct desk *d, struct request *r);
void execution_free(struct execution *x);
/* Moves on as far as it can: the one place that moves an execution. */
void execution_step(struct execution *x);
/* A message of the kernel, already in the journal as `number`, belongs to it. */
void execution_saw(struct execution *x, const struct jmsg *m, uint64_t number);
/* Of that msg_id, if the desk still has it; one that only repeats another is none. NULL: none. */
struct execution *execution_find(const struct desk *d, const char *msg_id);
/* False if the reply's content is malformed: *ret is not touched. */
bool outcome_read(const struct jmsg *reply, struct outcome *ret);
/* It ran out of time, and the kernel cannot answer it: that is said for it. */
void execution_time_up(struct execution *x, const char *content);
const char *execution_status_name(enum execution_status status);

#endif
