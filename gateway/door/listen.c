#include "gateway/door/listen.h"
#include "gateway/door/listen_pipe.h"

#include <cjson/cJSON.h>
#include <dlfcn.h>
#include <string.h>

#include "gateway/door/auth.h"
#include "gateway/door/listen_address.h"
#include "gateway/door/listen_parts.h"

#define END_PATIENCE_MS	  2000
#define HEADER_DATA_BYTES 65535 /* as Jupyter Server; beyond it lws hangs up without an answer */
#define READ_BYTES	  16384
#define WS_READ_BYTES	  2048 /* held per WebSocket */
#define WRITE_BYTES	  (1u << 20)
#define KEEPALIVE_S	  75
#define TIMEOUT_S	  20
#define LWS_ROUNDS	  2 /* loop turns after which lws has closed its handles, with one to spare */

static int on_event(
	struct lws *wsi, enum lws_callback_reasons reason, void *user, void *in, size_t len);

/* The first row serves HTTP and WebSockets without a subprotocol. Its name is one that nobody can
 * offer, since lws would select it. */
static const struct lws_protocols protocols[] = {
	{"http and legacy", on_event, 0, WS_READ_BYTES, 0, NULL, WRITE_BYTES},
	{V1_PROTOCOL, on_event, 0, WS_READ_BYTES, 0, NULL, WRITE_BYTES},
	{NULL, NULL, 0, 0, 0, NULL, 0},
};

/* ---- what lws tells ---- */

static struct conn *conn_of(struct lws *wsi, struct door *d)
{
	struct conn *c = lws_get_opaque_user_data(wsi);
	if (!c) {
		c = xcalloc(1, sizeof *c);
		c->door = d;
		c->wsi = wsi;
		list_init(&c->choked);
		lws_set_opaque_user_data(wsi, c);
	}
	return c;
}

static void conn_free(struct lws *wsi)
{
	struct conn *c = lws_get_opaque_user_data(wsi);
	if (!c)
		return;
	http_gone(c);
	ws_gone(c);
	lws_set_opaque_user_data(wsi, NULL);
	free(c);
}

static int on_ws_event(struct conn *c, enum lws_callback_reasons reason, struct bytes data)
{
	switch (reason) {
	case LWS_CALLBACK_ESTABLISHED:
		return ws_established(c);
	case LWS_CALLBACK_RECEIVE:
		return ws_receive(c, data);
	case LWS_CALLBACK_RECEIVE_PONG:
		if (c->socket)
			socket_heard(c->socket);
		return 0;
	case LWS_CALLBACK_SERVER_WRITEABLE:
		return ws_writable(c);
	case LWS_CALLBACK_WS_PEER_INITIATED_CLOSE:
		if (c->socket)
			socket_peer_closed(c->socket);
		return 0;
	default:
		ws_gone(c);
		return 0;
	}
}

static int on_event(
	struct lws *wsi, enum lws_callback_reasons reason, void *user, void *in, size_t len)
{
	struct door *d = lws_context_user(lws_get_context(wsi));
	(void)user;
	switch (reason) {
	case LWS_CALLBACK_FILTER_NETWORK_CONNECTION:
		return d->closing;
	case LWS_CALLBACK_HTTP_CONFIRM_UPGRADE:
		return ws_confirm(conn_of(wsi, d), in);
	case LWS_CALLBACK_HTTP:
		return http_begin(conn_of(wsi, d));
	case LWS_CALLBACK_HTTP_BODY:
		return http_body(conn_of(wsi, d), (struct bytes){in, len});
	case LWS_CALLBACK_HTTP_BODY_COMPLETION:
		return http_body_end(conn_of(wsi, d));
	case LWS_CALLBACK_HTTP_WRITEABLE:
		return http_writable(conn_of(wsi, d));
	case LWS_CALLBACK_CLOSED_HTTP:
		http_gone(conn_of(wsi, d));
		return 0;
	case LWS_CALLBACK_ESTABLISHED:
	case LWS_CALLBACK_RECEIVE:
	case LWS_CALLBACK_RECEIVE_PONG:
	case LWS_CALLBACK_SERVER_WRITEABLE:
	case LWS_CALLBACK_WS_PEER_INITIATED_CLOSE:
	case LWS_CALLBACK_CLOSED:
		return on_ws_event(conn_of(wsi, d), reason, (struct bytes){in, len});
	case LWS_CALLBACK_WSI_DESTROY:
		conn_free(wsi);
		return 0;
	default:
		return 0;
	}
}

/* ---- once per loop turn ---- */

static void on_awake(uv_idle_t *idle)
{
	(void)idle; /* that it runs is enough */
}

void door_wake(struct door *d)
{
	(void)uv_idle_start(&d->awake, on_awake); /* fails for a NULL callback only */
}

/* Straight before the loop waits: all that came in this turn goes out in one write a socket,
 * without asking for a writable callback first. */
static void on_flush(uv_prepare_t *flush)
{
	struct door *d = CONTAINER_OF(flush, struct door, flush);
	struct list now;
	choked_turn(d);
	/* Also where none is ready: one that was may have gone. */
	(void)uv_idle_stop(&d->awake); /* always 0 */
	list_init(&now);
	LIST_EACH_SAFE (at, &d->ready) {
		list_remove(at);
		list_append(&now, at);
	}
	while (!list_empty(&now)) {
		struct list *at = now.next;
		list_remove(at);
		socket_pull(CONTAINER_OF(at, struct socket, ready));
	}
	if (!list_empty(&d->ready))
		door_wake(d);
}

/* ---- open ---- */

/* Each token that comes in is a way in. */
static int check_guard(const struct gateway *gw, const struct listen_address *a, struct err *err)
{
	const char *listen = gw->config.listen;
	if (a->loopback)
		return 0;
	if (owners_count(gw->owners) == 0)
		return err_set(err, E_INVALID,
			"listen: %s can be reached by others, and there is no token", listen);
	for (const struct owner *o = owners_next(gw->owners, NULL); o;
		o = owners_next(gw->owners, o))
		if (strlen(o->secret) < AUTH_SECRET_MIN)
			return err_set(err, E_INVALID,
				"listen: %s can be reached by others, and the token `%s` has less "
				"than %d characters",
				listen, o->name, AUTH_SECRET_MIN);
	return 0;
}

static bool given(const char *text)
{
	return text && text[0] != '\0';
}

static int set_tls(
	struct lws_context_creation_info *info, const struct config *config, struct err *err)
{
	if (!given(config->tls_cert) && !given(config->tls_key) && !given(config->tls_client_ca))
		return 0;
	if (!given(config->tls_cert) || !given(config->tls_key))
		return err_set(err, E_INVALID, "tls_cert and tls_key go together");
	info->options |= LWS_SERVER_OPTION_DO_SSL_GLOBAL_INIT;
	info->ssl_cert_filepath = config->tls_cert;
	info->ssl_private_key_filepath = config->tls_key;
	info->ssl_options_set = (long)(SSL_OP_NO_SSLv3 | SSL_OP_NO_TLSv1 | SSL_OP_NO_TLSv1_1);
	/* Not HTTP/2, which lws would offer. */
	info->alpn = "http/1.1";
	if (given(config->tls_client_ca)) {
		info->ssl_ca_filepath = config->tls_client_ca;
		info->options |= LWS_SERVER_OPTION_REQUIRE_VALID_OPENSSL_CLIENT_CERT;
	}
	return 0;
}

static void set_context(struct lws_context_creation_info *info, struct door *d, void **loops)
{
	loops[0] = d->gw->loop;
	info->foreign_loops = loops;
	info->user = d;
	info->pcontext = (struct lws_context **)&d->context;
	info->gid = (__typeof__(info->gid))-1;
	info->uid = (__typeof__(info->uid))-1;
	info->options = LWS_SERVER_OPTION_LIBUV | LWS_SERVER_OPTION_EXPLICIT_VHOSTS;
	info->max_http_header_data = HEADER_DATA_BYTES;
	info->pt_serv_buf_size = READ_BYTES;
	info->timeout_secs = TIMEOUT_S;
}

static void set_vhost(struct lws_context_creation_info *info, const struct listen_address *a)
{
	info->port = a->port;
	info->iface = a->host[0] != '\0' ? a->host : NULL;
	if (!a->ipv6)
		info->options |= LWS_SERVER_OPTION_DISABLE_IPV6;
	info->protocols = protocols;
	info->keepalive_timeout = KEEPALIVE_S;
}

static int open_lws(struct door *d, const struct listen_address *a, struct err *err)
{
	struct lws_context_creation_info info = {0};
	void *loops[1];
	int status = set_tls(&info, &d->gw->config, err);
	if (status != 0)
		return status;
	struct lws_context_creation_info context_info = {0};
	set_context(&context_info, d, loops);
	context_info.options |= info.options;
	/* lws writes to a log of the whole process; what matters is in ours. */
	lws_set_log_level(0, NULL);
	struct listen_eventfds before;
	listen_eventfds(&before);
	d->context = lws_create_context(&context_info);
	d->lws_pipe = listen_pipe_since(&before);
	if (!d->context)
		return err_set(err, E_IO,
			"libwebsockets cannot be started (is its libuv plugin installed?)");
	/* Kept in memory: lws unloads it at the end while libuv still has callbacks of it to make.
	 */
	(void)dlopen("libwebsockets-evlib_uv.so", RTLD_NOW | RTLD_NOLOAD | RTLD_NODELETE);
	info.options |= context_info.options;
	set_vhost(&info, a);
	d->vhost = lws_create_vhost(d->context, &info);
	if (!d->vhost || !listen_address_is_open(d->gw->loop, door_port(d)))
		return err_set(err, E_IO, "cannot listen on %s: address or certificate refused",
			d->gw->config.listen);
	return 0;
}

static char *base_path(const char *base_url)
{
	size_t len = strlen(base_url);
	while (len > 0 && base_url[len - 1] == '/')
		len--;
	bool bare = len > 0 && base_url[0] != '/';
	char *path = xcalloc(1, len + 2);
	path[0] = '/';
	memcpy(path + bare, base_url, len);
	path[bare + len] = '\0';
	return path;
}

static void init(struct door *d, struct gateway *gw)
{
	d->gw = gw;
	d->log = gw->log;
	d->base = base_path(gw->config.base_url ? gw->config.base_url : "");
	list_init(&d->sockets);
	list_init(&d->ready);
	list_init(&d->choked);
	outbox_init(&d->out);
	/* Neither can fail; they do not keep the loop alive. */
	(void)uv_prepare_init(gw->loop, &d->flush);
	(void)uv_idle_init(gw->loop, &d->awake);
	(void)uv_prepare_start(&d->flush, on_flush);
	uv_unref((uv_handle_t *)&d->flush);
	uv_unref((uv_handle_t *)&d->awake);
	d->handles = 2;
}

static void on_handle_closed(uv_handle_t *handle);

static void close_all(struct door *d)
{
	if (d->context) {
		lws_context_destroy(d->context);
		listen_pipe_hold(d->lws_pipe);
	}
	/* An unreferenced handle that closes does not keep the loop going, and its callback must
	 * come. */
	uv_ref((uv_handle_t *)&d->flush);
	uv_ref((uv_handle_t *)&d->awake);
	d->flush.data = d->awake.data = d;
	uv_close((uv_handle_t *)&d->flush, on_handle_closed);
	uv_close((uv_handle_t *)&d->awake, on_handle_closed);
}

int door_open(struct gateway *gw, struct door **ret, struct err *err)
{
	struct listen_address a;
	int status = listen_address_parse(gw->config.listen, &a, err);
	if (status == 0)
		status = check_guard(gw, &a, err);
	if (status == 0)
		status = listen_address_probe(&a, err);
	if (status != 0)
		return status;
	struct door *d = xcalloc(1, sizeof *d);
	status = origins_init(&d->origins, &gw->config, err);
	if (status != 0) {
		free(d);
		return status;
	}
	init(d, gw);
	status = open_lws(d, &a, err);
	if (status != 0) {
		d->closed = (void (*)(void *))door_free;
		d->closed_data = d;
		d->rounds = LWS_ROUNDS;
		close_all(d);
		return status;
	}
	log_info(&d->log, "listening address=%s port=%d tls=%s", a.host[0] ? a.host : "*",
		door_port(d), given(gw->config.tls_cert) ? "yes" : "no");
	*ret = d;
	return 0;
}

int door_port(const struct door *d)
{
	return lws_get_vhost_listen_port(d->vhost);
}

/* ---- close ---- */

static void on_handle_closed(uv_handle_t *handle)
{
	struct door *d = handle->data;
	if (--d->handles > 0)
		return;
	if (d->rounds > 0) {
		d->rounds--;
		d->handles = 1;
		(void)uv_idle_init(d->gw->loop, &d->awake); /* cannot fail */
		uv_close((uv_handle_t *)&d->awake, on_handle_closed);
		return;
	}
	if (d->closed)
		d->closed(d->closed_data);
}

static void finish(struct door *d)
{
	if (uv_is_closing((uv_handle_t *)&d->flush))
		return;
	timer_stop(d->gw->clock, &d->patience);
	close_all(d);
}

static void on_end_patience(struct timer *t)
{
	finish(CONTAINER_OF(t, struct door, patience));
}

void door_socket_gone(struct door *d)
{
	if (d->closing && list_empty(&d->sockets) && !timer_running(&d->patience))
		return;
	/* Not from here, which is inside lws: from the timer, at once. */
	if (d->closing && list_empty(&d->sockets))
		timer_start(d->gw->clock, &d->patience, 0);
}

void door_close(
	struct door *d, unsigned code, const char *reason, void (*cb)(void *data), void *data)
{
	d->closing = true;
	d->closed = cb;
	d->closed_data = data;
	timer_init(&d->patience, on_end_patience);
	LIST_EACH_SAFE (at, &d->sockets)
		socket_close(CONTAINER_OF(at, struct socket, link), code, reason, false);
	timer_start(d->gw->clock, &d->patience, list_empty(&d->sockets) ? 0 : END_PATIENCE_MS);
}

void door_free(struct door *d)
{
	if (!d)
		return;
	/* The second call frees what the first one could not while the loop still ran. */
	if (d->context)
		lws_context_destroy(d->context);
	origins_done(&d->origins);
	outbox_done(&d->out);
	free(d->base);
	free(d);
}

struct cJSON *door_counters(const struct door *d)
{
	const struct door_counters *n = &d->counters;
	const struct {
		const char *name;
		uint64_t value;
	} rows[] = {{"requests", n->requests}, {"refused", n->refused}, {"sockets", n->sockets},
		{"sockets_opened", n->sockets_opened}, {"messages_in", n->messages_in},
		{"messages_out", n->messages_out}, {"bytes_in", n->bytes_in},
		{"bytes_out", n->bytes_out}, {"bad_messages", n->bad_messages},
		{"kept_back", n->kept_back}};
	struct cJSON *tree = cJSON_CreateObject();
	for (unsigned i = 0; i < ARRAY_LEN(rows); i++)
		(void)cJSON_AddNumberToObject(tree, rows[i].name, (double)rows[i].value);
	return tree;
}
