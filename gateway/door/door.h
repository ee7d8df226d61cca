/* The door's inside: what its files share. Loop thread. */
#ifndef COPPICE_DOOR_DOOR_H
#define COPPICE_DOOR_DOOR_H

#include "gateway/door/listen.h"
#include "gateway/door/origin.h"
#include "gateway/door/outbox.h"

struct door_counters {
	uint64_t requests, refused; /* refused: answered 401 or 403 */
	uint64_t sockets_opened, sockets;
	uint64_t messages_in, messages_out, bytes_in, bytes_out;
	uint64_t bad_messages; /* of clients: each closed its socket */
	uint64_t kept_back;    /* messages that a client's limits did not let through */
};

#define DOOR_TOLD 64

struct door {
	struct gateway *gw;
	struct log log;
	char *base; /* base_url without its last slash: "" or "/x" */
	struct origins origins;
	struct door_counters counters;
	struct list sockets; /* of struct socket by link */
	struct list ready;   /* those with something to pull, by ready */
	struct list choked;  /* of struct conn: clients that do not read */
	struct outbox out;
	uint64_t told[DOOR_TOLD]; /* who was told once that buffers cannot pass (hashes) */
	unsigned told_next;
	bool closing;
	/* of listen.c */
	void *context, *vhost; /* libwebsockets' */
	int lws_pipe;	       /* its own descriptor (listen_pipe.h), or -1 */
	uv_prepare_t flush;    /* pulls for the ready sockets once per loop turn, before it waits */
	uv_idle_t awake;       /* runs while a socket is ready, so that the loop does not wait */
	unsigned handles;      /* of these two, not closed yet */
	unsigned rounds;       /* loop turns to wait for before `closed` */
	struct timer patience; /* at the end */
	void (*closed)(void *data);
	void *closed_data;
};

/* listen.c: a socket was added to `ready`. */
void door_wake(struct door *d);
/* listen.c: the last socket may have gone. */
void door_socket_gone(struct door *d);

#endif
