/* A call: one HTTP request and its answer, whatever carries it. A handler answers exactly once, now
 * or later from a callback; the connection may be gone by then. Owned by its carrier until it is
 * answered or the connection ends, whichever is later. Loop thread. */
#ifndef COPPICE_DOOR_CALL_H
#define COPPICE_DOOR_CALL_H

#include "gateway/door/door.h"
#include "gateway/spine/kernels.h"

struct cJSON;

#define BODY_MAX	(1u << 20)
#define BODY_LARGE_MAX	(64u << 20) /* of a row that takes files */
#define ANSWER_HEADROOM 32	    /* writable bytes before the answer, for libwebsockets */
#define QUERY_MAX	32
#define PARAMS_MAX	2

enum method {
	METHOD_GET,
	METHOD_POST,
	METHOD_PUT,
	METHOD_PATCH,
	METHOD_DELETE,
	METHOD_OPTIONS,
	METHODS
};

enum header {
	HEADER_AUTHORIZATION,
	HEADER_ORIGIN,
	HEADER_USER_AGENT,
	HEADER_FORWARDED_FOR,
	HEADER_REAL_IP,
	HEADER_WS_PROTOCOL,
	HEADER_CONTENT_ENCODING,
	HEADER_ACCEPT,
	HEADER_LAST_EVENT_ID,
	HEADERS
};

struct call {
	struct door *door;
	enum method method;
	bool head;		/* HEAD: a GET whose answer has no body */
	char *path;		/* decoded, base_url included */
	char *query[QUERY_MAX]; /* "key=value", decoded */
	char *header[HEADERS];	/* NULL if absent */
	char peer[64];
	struct buf body;
	uint64_t started_ms;
	/* set by auth and route */
	const struct owner *owner; /* NULL on open routes */
	char *param[PARAMS_MAX];   /* what stood at {...} in the row's path */
	bool basic;		   /* its row takes the token as a password too */
	bool dispatched;	   /* a handler has it, or had it: it will be answered */
	/* the answer */
	int status;			/* 0: not yet */
	struct buf extra;		/* header lines */
	struct buf answer;		/* ANSWER_HEADROOM, head, body */
	bool close;			/* the connection ends after it */
	bool chunks;			/* the client knows them: HTTP/1.1 */
	bool streams;			/* it comes piece by piece */
	bool whole;			/* its last piece is there */
	void (*on_drained)(void *data); /* may be NULL: what was added is on its way */
	void (*on_gone)(void *data);
	void *stream_data;
	void *carrier; /* NULL once the connection is gone */
	void (*answered)(struct call *r);
};

struct call *call_new(struct door *d);
void call_free(struct call *r);

const char *method_name(enum method m);
/* Path below base_url, beginning with '/'; NULL if it is not below it. */
const char *call_path(const struct call *r);
/* NULL if absent; "" for a key without a value. */
const char *call_query(const struct call *r, const char *key);
/* NULL in *ret for no body; the caller owns the tree. E_INVALID if it is not a JSON object. */
int call_json(const struct call *r, struct cJSON **ret, struct err *err);

/* Each answers; r may be freed by it. */
void answer_json(struct call *r, int status, struct cJSON *tree); /* frees the tree; NULL: 500 */
void answer_error(struct call *r, const struct err *err);
void answer_empty(struct call *r, int status);
void answer_bytes(struct call *r, int status, const char *mime, struct bytes body);
/* An answer whose length is not known: a head, pieces, an end. on_gone: the reader has left, once,
 * from the loop; answer_end is still owed. */
void answer_begin(struct call *r, const char *mime, void (*on_gone)(void *data), void *data);
/* How much waits for the reader. */
size_t answer_backlog(const struct call *r);
/* False: the reader has left, or is so far behind that it is cut off. */
bool answer_add(struct call *r, struct bytes piece);
/* r may be freed by it. */
void answer_end(struct call *r);
/* A header line for the answer to come. Values with control characters are dropped. */
void answer_header(struct call *r, const char *name, const char *value);
/* The connection is gone: freed now, or once its handler has answered. */
void call_gone(struct call *r);

#endif
