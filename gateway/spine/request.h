/* A message of a client from its arrival until it is answered: a reply to its client and an idle
 * with it as parent, from the kernel or, where the kernel cannot, from us. The one index of them:
 * replies find their client here, a second copy finds the first. Its key is header.session and
 * msg_id, since two programs may both count from 1. Owned by its desk. Loop thread. */
#ifndef COPPICE_SPINE_REQUEST_H
#define COPPICE_SPINE_REQUEST_H

#include "gateway/base/clock.h"
#include "gateway/base/hash.h"
#include "gateway/base/jmsg.h"
#include "gateway/base/list.h"
#include "gateway/spine/answered.h"

struct desk;
struct execution;
struct lane;

#define REQUESTS_MAX   10000u
#define REQUESTS_BYTES (64u << 20)
#define HALF_MS	       5000u /* patience for the other half: reply without idle, idle without reply */

struct request {
	UT_hash_handle hh; /* requests.by_key */
	char *key;
	size_t key_len;
	struct list link; /* requests.all, in order of arrival */
	struct list held; /* its lane's line, while it waits there */
	struct desk *desk;
	struct jmsg *msg;
	size_t bytes; /* what it counts towards REQUESTS_BYTES */
	uint64_t client;
	struct lane *lane;   /* NULL: control */
	struct execution *x; /* of an execute_request */
	struct jmsg *reply;
	uint64_t reply_at, idle_at; /* numbers of the halves in the journal; 0: not said yet */
	struct live_request *row;   /* where it outlives us, or NULL */
	struct live_request *input; /* the answer to its cell's question, likewise */
	uint64_t half_ms;	    /* since when one half is there and nothing came; 0: not so */
	bool is_sent, wants_reply, is_busy, replied, idled;
	bool is_over;	/* an earlier gateway had answered it; what its file lacks is said again */
	bool row_stays; /* until the journal's file has our answer */
};

struct live_request;

struct requests {
	struct request *by_key;
	struct list all;
	size_t n, bytes;
	struct answers answers;
	struct timer half_timer;
};

void requests_init(struct requests *rs);
/* All must have ended. */
void requests_done(struct requests *rs);

/* NULL if there is none of that id in that session. */
struct request *requests_find(const struct requests *rs, const char *session, const char *msg_id);

/* E_UNAVAILABLE: too many wait. The desk's lane is not touched. */
int request_new(
	struct desk *d, struct jmsg *m, uint64_t client, struct request **ret, struct err *err);
/* One that an earlier gateway had; last is the last number of the journal's file. */
void request_restore(struct desk *d, struct live_request *row, uint64_t last);
/* Nothing is said: the next gateway knows them. */
void requests_forget(struct desk *d);
/* To the kernel; what it may keep of the message shrinks. */
int request_send(struct request *r, struct err *err);
/* A half came from the kernel. Ends the request when both are there. */
/* Output of it came: its other half may be behind more. */
void request_heard(struct request *r);
void request_busied(struct request *r);
void request_replied(struct request *r, struct jmsg *reply);
void request_idled(struct request *r);
/* An execution is with the kernel that has not said idle for it. */
bool requests_run(const struct requests *rs);
/* All that an earlier gateway's kernel kept has come: what that gateway had answered itself is
 * answered again, what has both halves goes, and patience for the other half of the rest begins. */
void requests_settled(struct desk *d);
/* Says the halves that are missing: busy if none was, a reply with content, idle. It is gone then.
 * to: JOURNAL_TO_ALL for the statuses, or the one client. One that is over gets its own content. */
void request_end(struct request *r, const char *content, uint64_t to);
/* Requests of the desk, or only those that were sent: executes that were sent died, the rest is
 * aborted. */
void requests_abort(struct desk *d, bool held_too);

#endif
