/* What the listen*.c share: they alone know libwebsockets. */
#ifndef COPPICE_DOOR_LISTEN_PARTS_H
#define COPPICE_DOOR_LISTEN_PARTS_H

#include <libwebsockets.h>

#include "gateway/door/channels.h"
#include "gateway/door/chunked.h"
#include "gateway/door/call.h"

/* One connection: a series of requests, then perhaps a WebSocket. Owned by the lws of it. */
struct conn {
	struct door *door;
	struct lws *wsi;
	struct call *r; /* the one that is read, worked on or answered */
	enum { BODY_NONE, BODY_LENGTH, BODY_CHUNKED } body;
	struct chunked chunks;
	bool body_done;	 /* nothing of this request is still to come */
	bool unmeasured; /* a POST without a length: lws waits for a body for ever */
	bool nul;	 /* in a header of this request */
	bool no_text;	 /* its URL is none */
	bool held;	 /* nothing is read while an answer is awaited */
	bool stopped;	 /* nothing is read while nothing can be written */
	bool draining;	 /* answered; what still comes is thrown away */
	uint64_t drained;
	struct socket *socket;
	struct list choked; /* in the door's, while the line may be full */
};

/* listen_http.c; each returns what the lws callback returns: not 0 closes. */
int http_begin(struct conn *c);
int http_body(struct conn *c, struct bytes data);
int http_body_end(struct conn *c);
int http_writable(struct conn *c);
void http_gone(struct conn *c);
/* Makes c->r from the headers that were read. False: not to be understood. */
bool http_read_request(struct conn *c);
bool http_copy_header(struct conn *c, enum lws_token_indexes token, char **ret);
/* Of the headers that were copied for this request. */
int http_check_text(const struct conn *c, struct err *err);

/* listen_choked.c */
/* After an answer was written. */
void choked_look(struct conn *c);
/* Once per loop turn, before it waits. */
void choked_turn(struct door *d);

/* listen_ws.c */
/* in: the Upgrade header's value, which lws looks at again after this call. */
int ws_confirm(struct conn *c, char *in);
int ws_established(struct conn *c);
int ws_receive(struct conn *c, struct bytes data);
int ws_writable(struct conn *c);
void ws_gone(struct conn *c);

#endif
