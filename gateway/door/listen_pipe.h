/* The descriptor by which libwebsockets wakes itself. Its version 4.1, over libuv, closes it twice
 * at the end: in lws_context_destroy(), and a turn of the loop later, when by then another thread
 * may have been given that number for a journal or a pack. */
#ifndef COPPICE_DOOR_LISTEN_PIPE_H
#define COPPICE_DOOR_LISTEN_PIPE_H

#include "gateway/base/base.h"

#define LISTEN_FDS 1024u

/* Which descriptors below LISTEN_FDS are eventfds. */
struct listen_eventfds {
	uint64_t bits[LISTEN_FDS / 64];
};

void listen_eventfds(struct listen_eventfds *ret);
/* The one that is there now and was not then, or -1. */
int listen_pipe_since(const struct listen_eventfds *then);
/* After lws_context_destroy(): the number is taken again, so that it is ours what is closed next.
 * Nothing if somebody has it by now, or fd is -1. */
void listen_pipe_hold(int fd);

#endif
