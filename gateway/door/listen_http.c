#include <string.h>
#include <strings.h>

#include "gateway/base/json.h"
#include "gateway/door/auth.h"
#include "gateway/door/listen_parts.h"
#include "gateway/door/route.h"

#define DRAIN_MAX  (64u << 20) /* of a body that was refused; then the line is cut */
#define HEADER_MAX 65535

/* libwebsockets 4.1 goes wrong over what a client sends before it has its answer: it hands out
 * bodies and headers whose memory it has freed, and asks without end in one call (seeds
 * post_and_more, post_behind, upgrade_behind of the http fuzzer). So each connection carries one
 * request there. */
#define KEEPS_ALIVE (LWS_LIBRARY_VERSION_NUMBER >= 4003000)

_Static_assert(ANSWER_HEADROOM >= LWS_PRE, "lws_write() wants room before the data");

bool http_copy_header(struct conn *c, enum lws_token_indexes token, char **ret)
{
	int len = lws_hdr_total_length(c->wsi, token);
	if (len <= 0 || len > HEADER_MAX)
		return false;
	char *text = xcalloc(1, (size_t)len + 1);
	int copied = lws_hdr_copy(c->wsi, text, len + 1, token);
	if (copied < 0) {
		free(text);
		return false;
	}
	c->nul = c->nul || strlen(text) < (size_t)copied;
	*ret = text;
	return true;
}

static void read_query(struct conn *c)
{
	for (int i = 0; i < QUERY_MAX; i++) {
		int len = lws_hdr_fragment_length(c->wsi, WSI_TOKEN_HTTP_URI_ARGS, i);
		if (len <= 0)
			return;
		char *text = xcalloc(1, (size_t)len + 1);
		c->r->query[i] = text;
		if (lws_hdr_copy_fragment(c->wsi, text, len + 1, WSI_TOKEN_HTTP_URI_ARGS, i) < 0)
			return;
		c->no_text = c->no_text || !json_is_utf8(text);
	}
}

static bool read_method(struct conn *c)
{
	static const struct {
		enum lws_token_indexes token;
		enum method method;
	} rows[] = {{WSI_TOKEN_GET_URI, METHOD_GET}, {WSI_TOKEN_HEAD_URI, METHOD_GET},
		{WSI_TOKEN_POST_URI, METHOD_POST}, {WSI_TOKEN_PUT_URI, METHOD_PUT},
		{WSI_TOKEN_PATCH_URI, METHOD_PATCH}, {WSI_TOKEN_DELETE_URI, METHOD_DELETE},
		{WSI_TOKEN_OPTIONS_URI, METHOD_OPTIONS}};
	for (unsigned i = 0; i < ARRAY_LEN(rows); i++) {
		if (!http_copy_header(c, rows[i].token, &c->r->path))
			continue;
		c->no_text = c->no_text || !json_is_utf8(c->r->path);
		c->r->method = rows[i].method;
		c->r->head = rows[i].token == WSI_TOKEN_HEAD_URI;
		return true;
	}
	return false;
}

static void on_answered(struct call *r)
{
	struct conn *c = r->carrier;
	if (c->held)
		(void)lws_rx_flow_control(c->wsi, 1); /* the connection lives: it can be read */
	c->held = false;
	(void)lws_callback_on_writable(c->wsi); /* likewise */
}

static bool is_http_1_1(struct lws *wsi)
{
	char version[16] = "";
	(void)lws_hdr_copy(wsi, version, sizeof version, WSI_TOKEN_HTTP); /* absent is "" */
	return strcmp(version, "HTTP/1.1") == 0;
}

/* lws closes after a request on the same grounds. */
static bool wants_close(struct lws *wsi)
{
	char connection[32] = "";
	(void)lws_hdr_copy(wsi, connection, sizeof connection, WSI_TOKEN_CONNECTION);
	if (is_http_1_1(wsi))
		return strcasecmp(connection, "close") == 0;
	return strcasecmp(connection, "keep-alive") != 0;
}

/* One that lws has no token for; its name as lws wants it, in lower case with the colon. */
static void copy_custom_header(struct conn *c, const char *name, char **ret)
{
	int name_len = (int)strlen(name), len = lws_hdr_custom_length(c->wsi, name, name_len);
	if (len <= 0 || len > HEADER_MAX)
		return;
	char *text = xcalloc(1, (size_t)len + 1);
	if (lws_hdr_custom_copy(c->wsi, text, len + 1, name, name_len) < 0) {
		free(text);
		return;
	}
	*ret = text;
}

bool http_read_request(struct conn *c)
{
	static const enum lws_token_indexes tokens[HEADER_LAST_EVENT_ID] = {
		/* which has none */
		[HEADER_AUTHORIZATION] = WSI_TOKEN_HTTP_AUTHORIZATION,
		[HEADER_ORIGIN] = WSI_TOKEN_ORIGIN,
		[HEADER_USER_AGENT] = WSI_TOKEN_HTTP_USER_AGENT,
		[HEADER_FORWARDED_FOR] = WSI_TOKEN_X_FORWARDED_FOR,
		[HEADER_REAL_IP] = WSI_TOKEN_HTTP_X_REAL_IP,
		[HEADER_WS_PROTOCOL] = WSI_TOKEN_PROTOCOL,
		[HEADER_CONTENT_ENCODING] = WSI_TOKEN_HTTP_CONTENT_ENCODING,
		[HEADER_ACCEPT] = WSI_TOKEN_HTTP_ACCEPT,
	};
	struct call *r = call_new(c->door);
	call_free(c->r);
	c->r = r;
	c->nul = c->no_text = false;
	r->carrier = c;
	r->answered = on_answered;
	for (unsigned i = 0; i < ARRAY_LEN(tokens); i++)
		(void)http_copy_header(c, tokens[i], &r->header[i]); /* absent stays NULL */
	copy_custom_header(c, "last-event-id:", &r->header[HEADER_LAST_EVENT_ID]);
	if (!r->header[HEADER_ORIGIN])
		(void)http_copy_header(c, WSI_TOKEN_SWORIGIN, &r->header[HEADER_ORIGIN]);
	(void)lws_get_peer_simple(c->wsi, r->peer, sizeof r->peer); /* "" if it is gone */
	r->chunks = is_http_1_1(c->wsi);
	r->close = !KEEPS_ALIVE || wants_close(c->wsi);
	read_query(c);
	return read_method(c);
}

/* lws takes a NUL for a character of its field and we take it for the end: a body that only one of
 * us expects is never read, and then wakes the loop without end. */
int http_check_text(const struct conn *c, struct err *err)
{
	if (c->no_text) /* answers quote it, and names are made of it */
		return err_set(err, E_INVALID, "the URL, decoded, is no UTF-8");
	return c->nul ? err_set(err, E_INVALID, "a header with a NUL character in it") : 0;
}

/* How the body comes, or what is wrong with what the headers say of it. Two lengths, or a length
 * and chunks, are how requests are smuggled past a proxy. */
static int read_framing(struct conn *c, uint64_t *ret_len, struct err *err)
{
	AUTO(freep) char *length = NULL;
	AUTO(freep) char *coding = NULL;
	bool has_length = http_copy_header(c, WSI_TOKEN_HTTP_CONTENT_LENGTH, &length);
	bool has_coding = http_copy_header(c, WSI_TOKEN_HTTP_TRANSFER_ENCODING, &coding);
	enum method m = c->r->method;
	bool may_have = m == METHOD_POST || m == METHOD_PUT || m == METHOD_PATCH;
	c->body = BODY_NONE;
	c->unmeasured = may_have && !has_length;
	*ret_len = 0;
	if (http_check_text(c, err) != 0)
		return E_INVALID;
	if (has_coding && (has_length || !may_have || strcasecmp(coding, "chunked") != 0))
		return err_set(err, E_INVALID, "this Transfer-Encoding is not possible here");
	if (has_coding)
		c->body = BODY_CHUNKED;
	if (!has_length)
		return 0;
	if (length[0] == '\0' || strspn(length, "0123456789") != strlen(length) ||
		strlen(length) > 18)
		return err_set(err, E_INVALID, "a malformed Content-Length");
	*ret_len = strtoull(length, NULL, 10);
	c->body = *ret_len > 0 ? BODY_LENGTH : BODY_NONE;
	return 0;
}

static void dispatch(struct conn *c)
{
	struct call *r = c->r;
	lws_set_timeout(c->wsi, NO_PENDING_TIMEOUT, 0);
	route_dispatch(r);
	if (r->status != 0)
		return;
	/* While lws does not read, what comes in would wake the loop without end. */
	c->held = true;
	(void)lws_rx_flow_control(c->wsi, 0); /* the connection lives */
}

static void refuse(struct conn *c, const struct err *err)
{
	c->r->close = true;
	answer_error(c->r, err);
}

static void refuse_size(struct conn *c)
{
	struct err err;
	err_set(&err, E_TOO_BIG, "a body of more than %zu bytes", c->r->body.max);
	refuse(c, &err);
}

int http_begin(struct conn *c)
{
	struct err err = {0};
	uint64_t len = 0;
	if (c->r && c->r->streams)
		return -1; /* a request behind an answer that has no end yet */
	if (c->r && c->r->status != 0) {
		/* An upgrade that was refused: its answer waits to be written. */
		c->body_done = true;
		(void)lws_callback_on_writable(c->wsi); /* the connection lives */
		return 0;
	}
	c->draining = false;
	c->drained = 0;
	c->chunks = (struct chunked){0};
	if (!http_read_request(c))
		return -1;
	int status = read_framing(c, &len, &err);
	c->r->body.max = route_body_max(c->r);
	c->r->basic = true; /* until it is known what is asked for */
	/* What comes after headers that cannot be believed is not waited for. */
	c->body_done = status != 0 || c->body == BODY_NONE;
	if (c->body == BODY_CHUNKED || c->unmeasured)
		c->r->close = true;
	if (status != 0)
		refuse(c, &err);
	else if (len > c->r->body.max)
		refuse_size(c);
	else if (c->body_done)
		dispatch(c);
	else if (c->r->method != METHOD_OPTIONS && auth_check(c->r, 0, &err) != 0)
		refuse(c, &err); /* no memory for a stranger's body */
	return 0;
}

/* Answered before all of it came: read on, since closing now would reset the connection and the
 * answer with it. */
static int drain(struct conn *c, size_t len)
{
	c->drained += len;
	return c->drained > DRAIN_MAX || (c->draining && c->body_done) ? -1 : 0;
}

static void add_body(struct conn *c, struct bytes piece)
{
	if (c->r && c->r->status == 0 && buf_add(&c->r->body, piece.data, piece.len) != 0)
		refuse_size(c);
}

static void body_chunks(struct conn *c, struct bytes data)
{
	while (data.len > 0 && c->chunks.at < CHUNK_DONE) {
		struct bytes piece;
		size_t used = chunked_next(&c->chunks, data, &piece);
		add_body(c, piece);
		data.data += used;
		data.len -= used;
	}
	c->body_done = c->chunks.at >= CHUNK_DONE;
	if (c->r && c->r->status == 0 && c->chunks.at == CHUNK_BROKEN) {
		struct err err;
		err_set(&err, E_INVALID, "the body's chunks are malformed");
		refuse(c, &err);
	}
}

int http_body(struct conn *c, struct bytes data)
{
	if (c->body_done || c->body == BODY_NONE)
		return 0;
	if (c->body == BODY_CHUNKED)
		body_chunks(c, data);
	else
		add_body(c, data);
	if (c->body == BODY_CHUNKED && c->body_done && c->r && c->r->status == 0)
		dispatch(c);
	return c->draining ? drain(c, data.len) : 0;
}

static int written(struct conn *c, bool close)
{
	call_free(TAKE(c->r));
	if (!close)
		return lws_http_transaction_completed(c->wsi) ? -1 : 0;
	if (c->body_done)
		return -1;
	c->draining = true;
	return 0;
}

/* What has come since the last time; the head the first time. */
static int stream_writable(struct conn *c)
{
	struct call *r = c->r;
	struct buf *b = &r->answer;
	bool whole = r->whole, close = r->close;
	if (b->failed)
		return -1;
	if (b->len > ANSWER_HEADROOM &&
		lws_write(c->wsi, b->data + ANSWER_HEADROOM, b->len - ANSWER_HEADROOM,
			whole ? LWS_WRITE_HTTP_FINAL : LWS_WRITE_HTTP) < 0)
		return -1;
	b->len = ANSWER_HEADROOM;
	choked_look(c);
	if (!whole && r->on_drained)
		r->on_drained(r->stream_data);
	return whole ? written(c, close) : 0;
}

int http_writable(struct conn *c)
{
	struct call *r = c->r;
	if (!r || r->status == 0)
		return 0;
	if (r->streams)
		return stream_writable(c);
	bool close = r->close;
	struct buf *b = &r->answer;
	if (b->len <= ANSWER_HEADROOM)
		return -1;
	if (lws_write(c->wsi, b->data + ANSWER_HEADROOM, b->len - ANSWER_HEADROOM,
		    LWS_WRITE_HTTP_FINAL) < 0)
		return -1;
	choked_look(c);
	return written(c, close);
}

/* More lies in lws's buffer: it asks again, without end, before it lets the answer be written. Nor
 * may it go on to the next request by itself then (its loop does not end either): whoever sends one
 * before its answer is there has to come back. */
static int body_answered(struct conn *c)
{
	c->body_done = c->r->close = true;
	return http_writable(c);
}

int http_body_end(struct conn *c)
{
	if (c->draining)
		return -1;
	if (c->r && c->r->status != 0)
		return body_answered(c);
	if (c->body != BODY_LENGTH || c->body_done)
		return 0;
	c->body_done = true;
	if (c->r)
		dispatch(c);
	return 0;
}

void http_gone(struct conn *c)
{
	struct call *r = TAKE(c->r);
	list_remove(&c->choked);
	if (r)
		call_gone(r);
}
