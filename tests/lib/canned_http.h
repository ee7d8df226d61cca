/* A small HTTP server on a unix socket or a port, on the test's own loop: answers each request with
 * what the test says. Header only; for tests of the HTTP client and of what stands on it. */
#ifndef COPPICE_CANNED_HTTP_H
#define COPPICE_CANNED_HTTP_H

#include <arpa/inet.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <uv.h>

#define CANNED_REQUEST_MAX 65536

union canned_line {
	uv_handle_t handle;
	uv_stream_t stream;
	uv_pipe_t pipe;
	uv_tcp_t tcp;
};

struct canned_http {
	union canned_line listener;
	char folder[64];
	char path[96];
	/* Text after "HTTP/1.1 ", whole; NULL: no answer, the connection stays open. request is the
	 * head and body as they came. */
	const char *(*answer)(struct canned_http *h, const char *request);
	void *data;
	unsigned requests;
	union canned_line *open[32];
	unsigned n_open;
};

struct canned_peer {
	union canned_line line;
	struct canned_http *http;
	char request[CANNED_REQUEST_MAX];
	size_t len;
	uv_write_t write;
	char *text;
};

static inline void canned_on_peer_closed(uv_handle_t *handle)
{
	struct canned_peer *p = handle->data;
	free(p->text);
	free(p);
}

static inline void canned_alloc(uv_handle_t *handle, size_t hint, uv_buf_t *ret)
{
	struct canned_peer *p = handle->data;
	(void)hint; /* the room is fixed */
	*ret = uv_buf_init(p->request + p->len, (unsigned)(sizeof(p->request) - 1 - p->len));
}

static inline void canned_reply(struct canned_peer *p)
{
	const char *text = p->http->answer(p->http, p->request);
	p->len = 0;
	p->http->requests++;
	if (!text)
		return;
	free(p->text);
	p->text = malloc(strlen(text) + 10);
	(void)snprintf(p->text, strlen(text) + 10, "HTTP/1.1 %s", text); /* sized for it */
	uv_buf_t b = uv_buf_init(p->text, (unsigned)strlen(p->text));
	(void)uv_write(&p->write, &p->line.stream, &b, 1, NULL); /* the test sees it */
}

/* Complete once the body that Content-Length promises is there. */
static inline int canned_is_whole(const char *request)
{
	const char *end = strstr(request, "\r\n\r\n");
	const char *length = strstr(request, "Content-Length: ");
	if (!end)
		return 0;
	return !length || length > end || strlen(end + 4) >= strtoul(length + 16, NULL, 10);
}

static inline void canned_on_read(uv_stream_t *stream, ssize_t n, const uv_buf_t *b)
{
	struct canned_peer *p = stream->data;
	(void)b; /* points into p */
	if (n < 0) {
		struct canned_http *h = p->http;
		for (unsigned i = 0; i < h->n_open; i++)
			if (h->open[i] == &p->line)
				h->open[i] = h->open[--h->n_open];
		uv_close(&p->line.handle, canned_on_peer_closed);
		return;
	}
	p->len += (size_t)n;
	p->request[p->len] = '\0';
	if (canned_is_whole(p->request))
		canned_reply(p);
}

static inline void canned_on_connection(uv_stream_t *listener, int status)
{
	struct canned_http *h = listener->data;
	struct canned_peer *p = calloc(1, sizeof(*p));
	if (status < 0 || !p || h->n_open == 32)
		abort();
	p->http = h;
	if (h->path[0])
		(void)uv_pipe_init(listener->loop, &p->line.pipe, 0); /* cannot fail */
	else
		(void)uv_tcp_init(listener->loop, &p->line.tcp); /* likewise */
	p->line.handle.data = p;
	if (uv_accept(listener, &p->line.stream) < 0)
		abort();
	h->open[h->n_open++] = &p->line;
	(void)uv_read_start(&p->line.stream, canned_alloc, canned_on_read); /* is open */
}

static inline void canned_http_open(struct canned_http *h, uv_loop_t *loop,
	const char *(*answer)(struct canned_http *h, const char *request), void *data)
{
	memset(h, 0, sizeof(*h));
	(void)signal(SIGPIPE, SIG_IGN); /* a call may be dropped before it is answered */
	(void)snprintf(h->folder, sizeof(h->folder), "/tmp/coppice-test-XXXXXX"); /* short */
	if (!mkdtemp(h->folder))
		abort();
	(void)snprintf(h->path, sizeof(h->path), "%s/http", h->folder); /* short */
	h->answer = answer;
	h->data = data;
	(void)uv_pipe_init(loop, &h->listener.pipe, 0); /* cannot fail */
	h->listener.handle.data = h;
	if (uv_pipe_bind(&h->listener.pipe, h->path) < 0 ||
		uv_listen(&h->listener.stream, 16, canned_on_connection) < 0)
		abort();
}

/* On a port of 127.0.0.1, which it returns. */
static inline int canned_http_open_port(struct canned_http *h, uv_loop_t *loop,
	const char *(*answer)(struct canned_http *h, const char *request), void *data)
{
	struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	int len = sizeof at;
	memset(h, 0, sizeof(*h));
	h->answer = answer;
	h->data = data;
	(void)uv_tcp_init(loop, &h->listener.tcp); /* cannot fail */
	h->listener.handle.data = h;
	if (uv_tcp_bind(&h->listener.tcp, (struct sockaddr *)&at, 0) < 0 ||
		uv_listen(&h->listener.stream, 16, canned_on_connection) < 0 ||
		uv_tcp_getsockname(&h->listener.tcp, (struct sockaddr *)&at, &len) < 0)
		abort();
	return ntohs(at.sin_port);
}

/* Closed when the loop has run on. */
static inline void canned_http_close(struct canned_http *h)
{
	while (h->n_open > 0)
		uv_close(&h->open[--h->n_open]->handle, canned_on_peer_closed);
	uv_close(&h->listener.handle, NULL);
	if (!h->path[0])
		return;
	(void)unlink(h->path); /* uv does it too */
	(void)rmdir(h->folder);
}

#endif
