/* The door: HTTP and WebSocket on the gateway's loop. listen.c is the sole user of libwebsockets.
 * Loop thread. */
#ifndef COPPICE_DOOR_LISTEN_H
#define COPPICE_DOOR_LISTEN_H

#include "gateway/gateway.h"

/* Binds config.listen. E_INVALID: public address without a token row; E_IO: cannot bind. */
int door_open(struct gateway *gw, struct door **ret, struct err *err);
/* The port that was bound, for listen port 0. */
int door_port(const struct door *d);
/* Stops accepting and closes every WebSocket with that code (1012 at a restart, 1001 at an end),
 * waits for the close frames to leave (at most 2 s), then cb. */
void door_close(
	struct door *d, unsigned code, const char *reason, void (*cb)(void *data), void *data);
/* After the loop ran to its end. */
void door_free(struct door *d);
/* {requests, sockets, bytes_in, bytes_out, ...} for /metrics and admin; caller owns. */
struct cJSON *door_counters(const struct door *d);

#endif
