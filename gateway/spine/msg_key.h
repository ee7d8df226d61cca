/* What requests and answers are found by: session and msg_id. Any thread. */
#ifndef COPPICE_SPINE_MSG_KEY_H
#define COPPICE_SPINE_MSG_KEY_H

#include <assert.h>
#include <string.h>

#include "gateway/base/jmsg.h"

/* Session, NUL, msg_id: neither holds a NUL. */
struct msg_key {
	char text[2 * JMSG_ID_MAX];
	size_t len;
};

/* Lengths were bounded when the message was made. */
static inline struct msg_key msg_key_of(const char *session, const char *msg_id)
{
	struct msg_key key;
	size_t n = strlen(session) + 1, m = strlen(msg_id);
	assert(n + m <= sizeof key.text);
	memcpy(key.text, session, n);
	memcpy(key.text + n, msg_id, m);
	key.len = n + m;
	return key;
}

#endif
