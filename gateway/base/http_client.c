#include "gateway/base/http_client.h"

#include <assert.h>
#include <curl/curl.h>
#include <string.h>
#include <uv.h>

#include "gateway/base/buf.h"
#include "gateway/base/list.h"

struct http_client {
	CURLM *multi;
	uv_loop_t *loop;
	uv_timer_t timer;
	struct list requests;
	unsigned handles; /* uv handles that are not closed yet */
	bool closing;
	void (*closed)(void *data);
	void *closed_data;
};

struct http_request {
	struct http_client *client;
	CURL *easy;
	struct curl_slist *headers;
	struct buf body;
	char error[CURL_ERROR_SIZE];
	size_t streamed;
	bool (*piece)(void *data, struct bytes piece);
	void (*done)(void *data, int status, const char *body, size_t len, const struct err *err);
	void *data;
	struct list link;
};

/* A descriptor of curl's that the loop watches. */
struct watch {
	struct http_client *client;
	uv_poll_t poll;
	curl_socket_t fd;
};

static void request_free(struct http_request *r)
{
	list_remove(&r->link);
	if (r->easy) {
		/* Only fails for a handle that is not in the multi, which is the wanted state. */
		(void)curl_multi_remove_handle(r->client->multi, r->easy);
		curl_easy_cleanup(r->easy);
	}
	curl_slist_free_all(r->headers);
	buf_done(&r->body);
	free(r);
}

static int request_error(struct http_request *r, CURLcode code, struct err *err)
{
	const char *text = r->error[0] ? r->error : curl_easy_strerror(code);
	if (r->body.failed)
		return buf_check(&r->body, "the answer", err);
	if (code == CURLE_OPERATION_TIMEDOUT)
		return err_set(err, E_TIMEOUT, "%s", text);
	return err_set(err, E_UNAVAILABLE, "%s", text);
}

/* The request's last act: done may send, cancel or close. */
static void request_end(struct http_request *r, CURLcode code)
{
	struct err err = {0};
	long status = 0;
	if (code == CURLE_OK)
		/* A failure leaves 0, which says "no answer". */
		(void)curl_easy_getinfo(r->easy, CURLINFO_RESPONSE_CODE, &status);
	if (code != CURLE_OK)
		(void)request_error(r, code, &err);
	else if (status == 0)
		(void)err_set(&err, E_UNAVAILABLE, "an answer without a status");
	size_t len = 0;
	char *body = (char *)buf_take(&r->body, &len);
	void (*done)(void *, int, const char *, size_t, const struct err *) = r->done;
	void *data = r->data;
	request_free(r);
	done(data, (int)status, body ? body : "", len, status ? NULL : &err);
	free(body);
}

static void end_finished(struct http_client *c)
{
	int left;
	CURLMsg *m;
	while (!c->closing && (m = curl_multi_info_read(c->multi, &left))) {
		char *private = NULL;
		if (m->msg != CURLMSG_DONE)
			continue;
		CURLcode code = m->data.result;
		/* Cannot fail: every handle of this multi has it. */
		(void)curl_easy_getinfo(m->easy_handle, CURLINFO_PRIVATE, &private);
		request_end((struct http_request *)(void *)private, code);
	}
}

static void on_handle_closed(struct http_client *c)
{
	if (--c->handles > 0)
		return;
	void (*closed)(void *data) = c->closed;
	void *data = c->closed_data;
	free(c);
	curl_global_cleanup();
	closed(data);
}

static void on_timer_closed(uv_handle_t *h)
{
	on_handle_closed(h->data);
}

static void close_now(struct http_client *c)
{
	while (!list_empty(&c->requests)) {
		struct http_request *r = CONTAINER_OF(c->requests.next, struct http_request, link);
		(void)copy_text(r->error, sizeof(r->error), "the gateway is ending", 21);
		request_end(r, CURLE_ABORTED_BY_CALLBACK);
	}
	/* The handles are all out, nothing is left that could make this fail. */
	(void)curl_multi_cleanup(c->multi);
	uv_close((uv_handle_t *)&c->timer, on_timer_closed);
}

static void on_timer(uv_timer_t *timer)
{
	struct http_client *c = timer->data;
	int running;
	if (c->closing) {
		close_now(c);
		return;
	}
	/* Failures are of single transfers and come as their results. */
	(void)curl_multi_socket_action(c->multi, CURL_SOCKET_TIMEOUT, 0, &running);
	end_finished(c);
}

static int on_curl_timer(CURLM *multi, long timeout_ms, void *data)
{
	struct http_client *c = data;
	(void)multi;
	if (c->closing)
		return 0;
	/* Starting or stopping an open timer does not fail. */
	if (timeout_ms < 0)
		(void)uv_timer_stop(&c->timer);
	else
		(void)uv_timer_start(&c->timer, on_timer, (uint64_t)timeout_ms, 0);
	return 0;
}

static void on_poll(uv_poll_t *poll, int status, int events)
{
	struct watch *w = poll->data;
	struct http_client *c = w->client;
	int flags = 0, running;
	if (c->closing)
		return;
	if (status < 0)
		flags = CURL_CSELECT_ERR;
	if (events & UV_READABLE)
		flags |= CURL_CSELECT_IN;
	if (events & UV_WRITABLE)
		flags |= CURL_CSELECT_OUT;
	(void)curl_multi_socket_action(c->multi, w->fd, flags, &running); /* as in on_timer */
	end_finished(c);
}

static void on_watch_closed(uv_handle_t *h)
{
	struct watch *w = h->data;
	struct http_client *c = w->client;
	free(w);
	on_handle_closed(c);
}

static struct watch *watch_new(struct http_client *c, curl_socket_t fd)
{
	struct watch *w = xcalloc(1, sizeof(*w));
	w->client = c;
	w->fd = fd;
	if (uv_poll_init(c->loop, &w->poll, fd) < 0) {
		free(w);
		return NULL;
	}
	w->poll.data = w;
	c->handles++;
	/* Fails only for a descriptor that is not curl's. */
	(void)curl_multi_assign(c->multi, fd, w);
	return w;
}

/* Curl closes the descriptor after POLL_REMOVE: uv_close takes it out of epoll at once. */
static int on_curl_socket(CURL *easy, curl_socket_t fd, int what, void *data, void *socket_data)
{
	struct http_client *c = data;
	struct watch *w = socket_data;
	(void)easy;
	if (what == CURL_POLL_REMOVE) {
		if (w) {
			(void)curl_multi_assign(c->multi, fd, NULL); /* see watch_new */
			uv_close((uv_handle_t *)&w->poll, on_watch_closed);
		}
		return 0;
	}
	if (!w && !(w = watch_new(c, fd)))
		return -1;
	int events =
		(what & CURL_POLL_IN ? UV_READABLE : 0) | (what & CURL_POLL_OUT ? UV_WRITABLE : 0);
	return uv_poll_start(&w->poll, events, on_poll) < 0 ? -1 : 0;
}

static bool is_streamed(const struct http_request *r)
{
	long status = 0;
	/* Cannot fail: the head is there. */
	(void)curl_easy_getinfo(r->easy, CURLINFO_RESPONSE_CODE, &status);
	return r->piece && status == 200;
}

static size_t on_body(char *data, size_t size, size_t n, void *user)
{
	struct http_request *r = user;
	if (is_streamed(r)) {
		r->streamed += size * n;
		if (r->streamed > r->body.max)
			(void)buf_reserve(&r->body, r->streamed); /* latches E_TOO_BIG */
		bool wanted = !r->body.failed &&
			      r->piece(r->data, (struct bytes){(const uint8_t *)data, size * n});
		return wanted ? size * n : 0;
	}
	return buf_add(&r->body, data, size * n) == 0 ? size * n : 0;
}

int http_client_new(struct uv_loop_s *loop, struct http_client **ret, struct err *err)
{
	if (curl_global_init(CURL_GLOBAL_DEFAULT) != CURLE_OK)
		return err_set(err, E_NOMEM, "libcurl does not start");
	struct http_client *c = xcalloc(1, sizeof(*c));
	c->loop = loop;
	list_init(&c->requests);
	c->multi = curl_multi_init();
	if (!c->multi || uv_timer_init(loop, &c->timer) < 0) {
		if (c->multi)
			(void)curl_multi_cleanup(c->multi); /* empty: cannot fail */
		free(c);
		curl_global_cleanup();
		return err_set(err, E_NOMEM, "http client: out of memory");
	}
	c->timer.data = c;
	c->handles = 1;
	/* Options of the right type that every libcurl with this interface knows. */
	(void)curl_multi_setopt(c->multi, CURLMOPT_SOCKETFUNCTION, on_curl_socket);
	(void)curl_multi_setopt(c->multi, CURLMOPT_SOCKETDATA, c);
	(void)curl_multi_setopt(c->multi, CURLMOPT_TIMERFUNCTION, on_curl_timer);
	(void)curl_multi_setopt(c->multi, CURLMOPT_TIMERDATA, c);
	*ret = c;
	return 0;
}

void http_client_close(struct http_client *c, void (*closed)(void *data), void *data)
{
	assert(!c->closing);
	c->closing = true;
	c->closed = closed;
	c->closed_data = data;
	/* An open timer starts always; it fires from the loop, as the callbacks must. */
	(void)uv_timer_start(&c->timer, on_timer, 0, 0);
}

static bool add_header(struct http_request *r, const char *line)
{
	struct curl_slist *more = curl_slist_append(r->headers, line);
	if (more)
		r->headers = more;
	return more != NULL;
}

static bool set_headers(struct http_request *r, const struct http_call *call)
{
	AUTO(buf_done) struct buf line;
	buf_init(&line, 65536);
	bool ok = add_header(r, "Expect:") &&
		  add_header(r, call->body ? "Content-Type: application/json" : "Content-Type:");
	if (!call->authorization)
		return ok;
	(void)buf_addf(&line, "Authorization: %s", call->authorization); /* checked below */
	return ok && !line.failed && add_header(r, (const char *)line.data);
}

#define SET(option, value) (curl_easy_setopt(r->easy, CURLOPT_##option, value) == CURLE_OK)

static bool set_body(struct http_request *r, const struct http_call *call)
{
	const char *body = call->body ? call->body : "";
	if (strcmp(call->method, "HEAD") == 0)
		return SET(NOBODY, 1L);
	/* A POST without a body still says its length; curl makes a GET of a request without one.
	 */
	if (call->body || strcmp(call->method, "POST") == 0)
		return SET(POSTFIELDSIZE_LARGE, (curl_off_t)strlen(body)) &&
		       SET(COPYPOSTFIELDS, body);
	return true;
}

static bool set_options(struct http_request *r, const struct http_call *call)
{
	long timeout = call->timeout_ms > INT32_MAX ? INT32_MAX : (long)call->timeout_ms;
	bool ok = SET(URL, call->url) && SET(PROTOCOLS_STR, "http,https") && SET(NOSIGNAL, 1L) &&
		  SET(ERRORBUFFER, r->error) && SET(PRIVATE, (char *)(void *)r) &&
		  SET(WRITEFUNCTION, on_body) && SET(WRITEDATA, r) && SET(TIMEOUT_MS, timeout);
	/* A proxy of the environment must not come between us and a local peer, nor see a token. */
	ok = ok && SET(PROXY, "");
	if (ok && call->ca_file)
		ok = SET(CAINFO, call->ca_file);
	if (ok && call->any_name)
		ok = SET(SSL_VERIFYHOST, 0L);
	if (ok && call->unix_socket)
		ok = SET(UNIX_SOCKET_PATH, call->unix_socket);
	ok = ok && set_body(r, call) && SET(CUSTOMREQUEST, call->method);
	return ok && set_headers(r, call) && SET(HTTPHEADER, r->headers);
}

int http_client_send(struct http_client *c, const struct http_call *call,
	struct http_request **ret_request, struct err *err)
{
	if (c->closing)
		return err_set(err, E_UNAVAILABLE, "the http client is closing");
	struct http_request *r = xcalloc(1, sizeof(*r));
	r->client = c;
	r->done = call->done;
	r->piece = call->piece;
	r->data = call->data;
	buf_init(&r->body, call->max_bytes);
	list_append(&c->requests, &r->link);
	r->easy = curl_easy_init();
	if (!r->easy || !set_options(r, call)) {
		request_free(r);
		return err_set(err, E_INVALID, "request %s cannot be made", call->method);
	}
	/* This only starts curl's timer; the transfer begins when it fires. */
	CURLMcode code = curl_multi_add_handle(c->multi, r->easy);
	if (code != CURLM_OK) {
		request_free(r);
		return err_set(err, E_UNAVAILABLE, "%s", curl_multi_strerror(code));
	}
	if (ret_request)
		*ret_request = r;
	return 0;
}

void http_client_cancel(struct http_request *r)
{
	request_free(r);
}
