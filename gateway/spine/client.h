/* A client of one kernel: a cursor over its journal, named by session_id; a socket is attached to
 * it or it is gone for a while. The door pulls entries when its socket can take them, so a slow
 * client costs no second buffer. Loop thread. */
#ifndef COPPICE_SPINE_CLIENT_H
#define COPPICE_SPINE_CLIENT_H

#include "gateway/spine/journal.h"
#include "gateway/spine/kernels.h"

struct client;

/* The socket's side. Called from the loop; may be called inside client_receive. */
struct client_socket {
	/* Something can be pulled: ask the loop for a writable callback. */
	void (*on_readable)(void *data);
	/* Pull what is there, then close with this code. After it the client is not to be used any
	 * more except client_next until it returns 0 and client_waits is false, then
	 * client_detach. */
	void (*on_close)(void *data, unsigned code, const char *reason);
	/* A newer socket of the same session took over: the old one is detached already. Say
	 * nothing more on it; close it within 10 s if its peer has not. */
	void (*on_replaced)(void *data);
	/* Asked just before on_replaced; may be NULL. Number of the first entry that this socket
	 * pulled but has not delivered for certain; 0: all were. The newer socket gets them
	 * (again). */
	uint64_t (*undelivered)(void *data);
	void *data;
};

/* session_id NULL or "": one is invented and nothing is kept after it goes. A client with that
 * session_id that is attached or gone continues from its cursor; else it begins at the journal's
 * end plus what is pending. Kernel status is told first by a synthetic status message when busy. */
int client_attach(struct desk *d, const char *session_id, const struct client_socket *socket,
	struct client **ret, struct err *err);
/* Entries from first_undelivered (0: all were delivered) on count as not had. */
void client_detach(struct client *c, uint64_t first_undelivered);
/* One message from the client, taken apart by the door; borrowed (the spine refs). Errors mean that
 * this one socket must be closed (1008) with err's text. */
int client_receive(struct client *c, struct jmsg *m, struct err *err);
/* 1: the next entry for this client (caller unrefs); 0: nothing now, on_readable will tell. For one
 * that is far behind, stream texts are merged (merge.h): number is then the first one's. */
int client_next(struct client *c, struct entry **ret);
/* A block of so many bytes is about to be written with what client_next gave so far, but for
 * entries from unsent on (0: all of it). Where the system is to note how much of it went, by
 * sendmmsg; or NULL. */
struct mmsghdr *client_writes(struct client *c, uint64_t unsent, size_t block);
/* What client_next gave is on its way for certain, but for entries from unsent on (0: all of it).
 */
void client_wrote(struct client *c, uint64_t unsent);
/* After a 0: more is there and on its way from the file, so a close has to wait for on_readable. */
bool client_waits(const struct client *c);

uint64_t client_number(const struct client *c);
const char *client_session_id(const struct client *c);

#endif
