/* A message of a client from its arrival until it is answered: a reply to its client and an idle
 * with it as parent, from the kernel or, where the kernel cannot, from us. The one index of them:
 * replies find their client here, a second copy finds the first. Its key is header.session and
 * msg_id, since two programs may both count from 1. Owned by its desk. Loop thread. */
#ifndef COPPICE_SPINE_REQUEST_H
#define COPPICE_SPINE_REQUEST_H

#include <uthash.h>

#include "gateway/base/clock.h"
#include "gateway/base/jmsg.h"
#include "gateway/base/list.h"

struct desk;
struct execution;
struct lane;

#define REQUESTS_MAX   10000u
#define REQUESTS_BYTES (64u << 20)
#define RECENT_MAX     1024u /* ids of answered requests that are remembered */
#define RECENT_REPLIES 64u   /* of these, replies that are kept to be said again */
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
	struct live_request *row; /* where it outlives us, or NULL */
	uint64_t half_ms;	  /* since when one half is there without the other; 0: not so */
	bool is_sent, wants_reply, is_busy, replied, idled;
};

struct recent;
struct live_request;

struct requests {
	struct request *by_key;
	struct list all;
	size_t n, bytes;
	struct recent *recent_by_key;
	struct list recent;	   /* oldest first */
	struct recent *reply_from; /* the oldest that may keep its reply */
	unsigned n_recent, n_replies;
	struct timer half_timer;
};

void requests_init(struct requests *rs);
/* All must have ended. */
void requests_done(struct requests *rs);

/* NULL if there is none of that id in that session. */
struct request *requests_find(const struct requests *rs, const char *session, const char *msg_id);
/* True if such a request was answered lately; its reply if it is still kept. */
bool requests_answered(const struct requests *rs, const char *session, const char *msg_id,
	struct jmsg **ret_reply);

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
void request_replied(struct request *r, struct jmsg *reply);
void request_idled(struct request *r);
/* Says the halves that are missing: busy if none was, a reply with content, idle. It is gone then.
 * to: JOURNAL_TO_ALL for the statuses, or the one client. */
void request_end(struct request *r, const char *content, uint64_t to);
/* Requests of the desk, or only those that were sent: executes that were sent died, the rest is
 * aborted. */
void requests_abort(struct desk *d, bool held_too);

#endif
