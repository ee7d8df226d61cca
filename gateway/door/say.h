/* Messages that the door makes itself: what people should read on stderr, and answers in the place
 * of messages that could not pass. They carry the kernel's own session, since JupyterLab aborts the
 * handling of a message when the next one's session differs. */
#ifndef COPPICE_DOOR_SAY_H
#define COPPICE_DOOR_SAY_H

#include "gateway/spine/journal.h"

/* A stream message on stderr. parent: header of the request that it belongs to, {0} for none. */
int say_stream(const char *session, struct bytes parent, const char *text, uint64_t number,
	struct entry **ret, struct err *err);
/* A reply of that type with status error. */
int say_reply(const char *session, const struct jmsg *reply_in_whose_place, const char *text,
	uint64_t number, struct entry **ret, struct err *err);
/* The reply that a request gets which was not taken. E_INVALID if it is no request. */
int say_refusal(const char *session, const struct jmsg *request, const char *text,
	struct entry **ret, struct err *err);
/* Status idle for that request. */
int say_idle(const char *session, const struct jmsg *request, struct entry **ret, struct err *err);

#endif
