/* The requests that were answered lately: a second copy of one is not run again, and a client that
 * the journal's bound cut an answer from gets it all the same (gap.h). The reply itself is kept of
 * the last few only; of an execution its outcome is. Owned by a desk's requests. Loop thread. */
#ifndef COPPICE_SPINE_ANSWERED_H
#define COPPICE_SPINE_ANSWERED_H

#include "gateway/base/hash.h"
#include "gateway/base/jmsg.h"
#include "gateway/base/list.h"
#include "gateway/spine/execution.h"

#define ANSWERED_MAX	 1024u /* requests that are remembered */
#define ANSWERED_REPLIES 64u   /* of these, replies that are kept */

struct answered {
	UT_hash_handle hh;
	struct list link;
	const char *session, *msg_id, *msg_type; /* of the request */
	enum channel channel;
	uint64_t client;
	uint64_t reply_at, idle_at;   /* their numbers in the journal; 0: there was none */
	enum execution_status status; /* EXECUTION_OPEN: it is no execution */
	int64_t execution_count;
	bool reported;	    /* what the kernel learnt of it came after its execution was gone */
	struct jmsg *reply; /* NULL: not kept (any more) */
};

struct answers {
	struct answered *by_key;
	struct list all;	     /* oldest first */
	struct answered *reply_from; /* the oldest that may keep its reply */
	unsigned n, n_replies;
};

void answers_init(struct answers *as);
void answers_done(struct answers *as);
/* Copies what it needs, refs the reply. One that is there already stays as it is, but for where its
 * idle stood, which is known now. */
void answers_add(struct answers *as, const struct answered *what);
/* All that is known of a request whose reply an earlier gateway had is that reply. Where its idle
 * stood is not: close to it. Does nothing if m is no reply to a request. */
void answers_add_reply(struct answers *as, struct jmsg *m, uint64_t number, uint64_t client);
/* The replies to requests of that id are kept no longer. */
void answers_forget(struct answers *as, const char *msg_id);
/* NULL if none is remembered. */
struct answered *answers_find(const struct answers *as, const char *session, const char *msg_id);
/* That execution, whoever asked for it. NULL: none is remembered. */
struct answered *answers_execution(const struct answers *as, const char *msg_id);
/* What stands for the request as a parent. NULL: out of memory. */
struct jmsg *answered_request(const struct answered *a);
/* Its reply's content: the true outcome as far as it is known. Caller frees; NULL: out of memory.
 */
char *answered_content(const struct answered *a);

#endif
