/* One socket, watched on the loop, that sends and receives whole messages: libzmq's, or for the
 * kernels in our containers a pipe of our own. The only file that calls libzmq is channel_socket.c.
 * Inside channel.c only. Loop thread. */
#ifndef COPPICE_BRIDGE_CHANNEL_SOCKET_H
#define COPPICE_BRIDGE_CHANNEL_SOCKET_H

#include <uv.h>

#include "kernel-bridge/engine.h"

/* The context, and the memory of one message in and, apart from it, one out. */
struct zcontext;

int zcontext_new(
	struct uv_loop_s *loop, int64_t max_sockets, struct zcontext **ret, struct err *err);
/* Every socket must be closed before. */
void zcontext_free(struct zcontext *z);

struct zsocket {
	uv_poll_t poll; /* of libzmq's descriptor */
	struct zcontext *context;
	void *zmq; /* or */
	struct pipe *pipe;
	bool watched; /* libzmq's; a pipe knows it itself */
	bool closed;  /* the struct lives until the loop let go of it */
	void (*on_readable)(struct zsocket *s);
	void *data;
	struct zsocket *monitor, *monitored; /* each other, while there is a monitor */
	bool touched;			     /* owner's: may have something to read */
	bool lost;			     /* owner's: libzmq dropped the peer for good */
};

struct zsocket_open {
	enum channel channel; /* iopub is a SUB, the others are DEALERs */
	const struct endpoints *endpoints;
	const char *routing_id;
	int64_t max_message_bytes;
	void (*on_readable)(struct zsocket *s); /* from the loop; the socket may be closed in it */
	void *data;
};

/* Made and watched, not yet connected. */
int zsocket_open(
	struct zcontext *z, const struct zsocket_open *open, struct zsocket **ret, struct err *err);
int zsocket_connect(struct zsocket *s, const char *address, struct err *err);
/* *s may be NULL; becomes NULL. */
void zsocket_close(struct zsocket **s);
void zsocket_watch(struct zsocket *s, bool on);

/* False: no message waits. The frames are borrowed until zcontext_release. *ret_n 0: the message
 * had too many parts or bytes and was dropped. */
bool zsocket_receive(struct zsocket *s, const struct bytes **ret_frames, size_t *ret_n);
void zcontext_release(struct zcontext *z);
/* Copies. E_NOMEM; E_GONE: libzmq gave the peer up, nothing was sent. */
int zsocket_send(struct zsocket *s, const struct bytes *frames, size_t n, struct err *err);
/* Why nothing was received, of a pipe or a DEALER. Lost: the peer is gone for good. Came: a message
 * has come since; the asking took libzmq's signal, so nothing else will tell of it. */
enum zquiet { ZQUIET_WAITS, ZQUIET_CAME, ZQUIET_LOST };
enum zquiet zsocket_why_quiet(const struct zsocket *s);

/* What happens to the connection of `of`; a socket of its own. For libzmq's sockets only. */
int zsocket_monitor(struct zsocket *of, struct zsocket **ret, struct err *err);
/* Connected: it was accepted, or waits to be. Up: the peer has answered, and knows our name. */
enum zevent { ZEVENT_NONE, ZEVENT_CONNECTED, ZEVENT_UP, ZEVENT_DOWN, ZEVENT_RETRY };
/* Of a monitor, or of a pipe itself, which tells up and down only. */
enum zevent zsocket_event(struct zsocket *s);

#endif
