/* What the gateway itself says in a kernel's name: statuses, replies, lines on stderr. Each goes
 * through the journal like the kernel's own. Loop thread. */
#ifndef COPPICE_SPINE_NOTICE_H
#define COPPICE_SPINE_NOTICE_H

#include "gateway/base/jmsg.h"
#include "gateway/spine/journal.h"

struct desk;

#define NOTICE_ABORTED "{\"status\":\"aborted\"}"

/* to: JOURNAL_TO_ALL or a client's number. parent NULL: {}. If memory is out, the clients it was
 * for are closed (1011) so that nothing is missing unsaid. */
void notice_status(struct desk *d, const char *state, const struct jmsg *parent, uint64_t to);
/* restarting, dead: in another header.session, so that pages drop what they were doing. */
void notice_break(struct desk *d, const char *state, uint64_t to);
/* A restart that somebody asked for, as Jupyter Server tells it: the kernel's shutdown_reply, then
 * starting. Not `restarting`, on which pages say that the kernel appears to have died. */
void notice_restart(struct desk *d);
/* A line on stderr, its parent the running request if there is one. */
PRINTF(3, 4) void notice_text(struct desk *d, uint64_t to, const char *format, ...);
/* The same to all, about that request; parent NULL: about none. */
PRINTF(3, 4)
void notice_about(struct desk *d, const struct jmsg *parent, const char *format, ...);
/* Answers `request` on its channel with that content. ret_reply: NULL, or gets the answer, which
 * the caller unrefs; NULL if it could not be made. */
void notice_reply(struct desk *d, const struct jmsg *request, const char *content, uint64_t to,
	struct jmsg **ret_reply);
/* {"status":"error","ename":...,"evalue":...,"traceback":[]}; caller frees. */
char *notice_error_content(const char *ename, const char *evalue);
/* A stderr stream message that is not in the journal. NULL: out of memory. */
struct jmsg *notice_stream_message(
	const struct desk *d, const struct jmsg *parent, const char *text);
/* Likewise a status. */
struct jmsg *notice_status_message(
	const struct desk *d, const char *state, const struct jmsg *parent);
/* Likewise an answer. NULL also if `request` is none, or content is NULL. */
struct jmsg *notice_reply_message(
	const struct desk *d, const struct jmsg *request, const char *content);

#endif
