/* The door to libcurl: HTTP requests on the loop through curl multi, over TCP or a unix socket.
 * Callbacks fire exactly once, from the loop, never inside the call that set them up. */
#ifndef COPPICE_BASE_HTTP_CLIENT_H
#define COPPICE_BASE_HTTP_CLIENT_H

#include "base.h"
#include "err.h"

struct uv_loop_s;
struct http_client;
struct http_request;

struct http_call {
	const char *method;	   /* "POST" */
	const char *unix_socket;   /* path, or NULL for TCP */
	const char *url;	   /* "http://engine/v1.41/containers/create" */
	const char *body;	   /* JSON text or NULL; borrowed for the call */
	const char *authorization; /* whole header value or NULL */
	const char *ca_file;	   /* PEM; trusted in the place of the system's, or NULL */
	bool any_name;		   /* the certificate need not name the URL's host */
	uint64_t timeout_ms;	   /* whole request */
	size_t max_bytes;	   /* of the answer's body */
	/* NULL, or gets the body as it comes, borrowed; done gets none then. False ends the
	 * request. It must not cancel it. Of an answer with a status of 200 only. */
	bool (*piece)(void *data, struct bytes piece);
	/* status 0: no answer, err says why (E_UNAVAILABLE, E_TIMEOUT, E_TOO_BIG). body is
	 * NUL-ended, borrowed for the call. */
	void (*done)(void *data, int status, const char *body, size_t len, const struct err *err);
	void *data;
};

int http_client_new(struct uv_loop_s *loop, struct http_client **ret, struct err *err);
/* Requests in flight are answered with status 0 before closed fires. */
void http_client_close(struct http_client *c, void (*closed)(void *data), void *data);
int http_client_send(struct http_client *c, const struct http_call *call,
	struct http_request **ret_request, struct err *err);
/* done never fires after it. */
void http_client_cancel(struct http_request *r);

#endif
