#include "kernel-bridge/channel_socket.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <zmq.h>

#include "kernel-bridge/channel.h"
#include "kernel-bridge/channel_pipe.h"
#include "kernel-bridge/wire.h"

#define RECONNECT_MS	 20
#define RECONNECT_MAX_MS 40 /* readiness waits for stdin */
#define TRUSTED_RCVHWM	 64
#define Z85_SIZE	 41
/* Each look for orders of libzmq's thread ends with EINTR when a signal comes (a child of ours
 * ended): nothing was done, and what its descriptor told of it does not tell of again. */
#define UNINTERRUPTED(call)                                                                        \
	__extension__({                                                                            \
		int uninterrupted_;                                                                \
		do                                                                                 \
			uninterrupted_ = (call);                                                   \
		while (uninterrupted_ < 0 && errno == EINTR);                                      \
		uninterrupted_;                                                                    \
	})

struct zcontext {
	void *zmq;
	uv_loop_t *loop;
	unsigned serial; /* of monitor names */
	uint8_t *spare;	 /* a pipe's */
	size_t n_sockets;
	size_t n_in;
	zmq_msg_t in[WIRE_FRAMES_MAX];
	zmq_msg_t out[WIRE_FRAMES_MAX]; /* a callback of receive may send */
	struct bytes frames[WIRE_FRAMES_MAX];
};

static void set_context(void *zmq, int64_t max_sockets)
{
	int limit = zmq_ctx_get(zmq, ZMQ_SOCKET_LIMIT);

	if (limit > 0 && max_sockets > limit)
		max_sockets = limit;
	/* These fail only for values out of range. */
	(void)zmq_ctx_set(zmq, ZMQ_MAX_SOCKETS, (int)max_sockets);
	(void)zmq_ctx_set(zmq, ZMQ_IO_THREADS, 1);
	(void)zmq_ctx_set(zmq, ZMQ_BLOCKY, 0);
}

int zcontext_new(
	struct uv_loop_s *loop, int64_t max_sockets, struct zcontext **ret, struct err *err)
{
	void *zmq = zmq_ctx_new();

	if (!zmq)
		return err_set(err, E_IO, "zeromq: no context: %s", zmq_strerror(errno));
	set_context(zmq, max_sockets);
	*ret = xcalloc(1, sizeof(**ret));
	(*ret)->zmq = zmq;
	(*ret)->loop = loop;
	return 0;
}

void zcontext_free(struct zcontext *z)
{
	assert(z->n_sockets == 0);
	(void)UNINTERRUPTED(zmq_ctx_term(z->zmq)); /* fails only for what is no context */
	free(z->spare);
	free(z);
}

/* ---- making ---- */

static void on_poll(uv_poll_t *poll, int status, int events)
{
	struct zsocket *s = CONTAINER_OF(poll, struct zsocket, poll);

	(void)status; /* an error shows when the socket is read */
	(void)events;
	s->on_readable(s);
}

void zsocket_watch(struct zsocket *s, bool on)
{
	if (s->pipe) {
		pipe_watch(s->pipe, on);
		return;
	}
	if (s->watched == on)
		return; /* libuv would take the descriptor out and put it in again */
	s->watched = on;
	/* Neither can fail on a handle that is open. */
	if (on)
		(void)uv_poll_start(&s->poll, UV_READABLE, on_poll);
	else
		(void)uv_poll_stop(&s->poll);
}

static void on_pipe_closed(void *data)
{
	free(data);
}

static void on_poll_closed(uv_handle_t *handle)
{
	free(CONTAINER_OF((uv_poll_t *)handle, struct zsocket, poll));
}

/* Before either end goes: with nobody to take its events libzmq's thread would wait for ever. */
static void stop_monitor(struct zsocket *monitored)
{
	(void)UNINTERRUPTED(zmq_socket_monitor(monitored->zmq, NULL, 0)); /* nothing else fails */
	monitored->monitor->monitored = NULL;
	monitored->monitor = NULL;
}

void zsocket_close(struct zsocket **s)
{
	struct zsocket *gone = *s;

	if (!gone)
		return;
	*s = NULL;
	if (gone->monitored)
		stop_monitor(gone->monitored);
	if (gone->monitor)
		stop_monitor(gone);
	gone->context->n_sockets--;
	gone->closed = true;
	if (gone->pipe) {
		pipe_close(gone->pipe, on_pipe_closed, gone);
		return;
	}
	/* The watch ends before libzmq's reaper closes the descriptor. */
	uv_close((uv_handle_t *)&gone->poll, on_poll_closed);
	(void)zmq_close(gone->zmq); /* fails only for what is no socket */
}

static int watch_new(struct zsocket *s, struct err *err)
{
	int fd;
	size_t size = sizeof(fd);
	int rc;

	if (zmq_getsockopt(s->zmq, ZMQ_FD, &fd, &size) < 0)
		return err_set(err, E_IO, "zeromq: no descriptor: %s", zmq_strerror(errno));
	rc = uv_poll_init(s->context->loop, &s->poll, fd);
	if (rc < 0)
		return err_set(err, E_IO, "zeromq: descriptor %d: %s", fd, uv_strerror(rc));
	zsocket_watch(s, true);
	return 0;
}

static int socket_new(struct zcontext *z, int type, struct zsocket **ret, struct err *err)
{
	struct zsocket *s = xcalloc(1, sizeof(*s));
	int rc;

	s->context = z;
	s->zmq = zmq_socket(z->zmq, type);
	if (!s->zmq) {
		free(s);
		return err_set(err, E_IO, "zeromq: no socket: %s", zmq_strerror(errno));
	}
	rc = watch_new(s, err);
	if (rc < 0) {
		(void)zmq_close(s->zmq);
		free(s);
		return rc;
	}
	z->n_sockets++;
	*ret = s;
	return 0;
}

struct option {
	int name;
	int value;
};

static int set_all(void *zmq, const struct option *options, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (zmq_setsockopt(zmq, options[i].name, &options[i].value, sizeof(int)) < 0)
			return -1;
	return 0;
}

/* The kernel is the server; as jupyter_client does, we use the kernel's own pair. */
static int set_curve(void *zmq, const struct endpoints *e)
{
	if (!*e->curve_public)
		return 0;
	if (zmq_setsockopt(zmq, ZMQ_CURVE_SERVERKEY, e->curve_public, Z85_SIZE) < 0)
		return -1;
	if (zmq_setsockopt(zmq, ZMQ_CURVE_PUBLICKEY, e->curve_public, Z85_SIZE) < 0)
		return -1;
	return zmq_setsockopt(zmq, ZMQ_CURVE_SECRETKEY, e->curve_secret, Z85_SIZE);
}

static int set_options(void *zmq, const struct zsocket_open *open)
{
	bool iopub = open->channel == CHANNEL_IOPUB;
	const struct option options[] = {
		{ZMQ_LINGER, 0},
		{ZMQ_IPV6, 0},
		{ZMQ_SNDHWM, 0},
		{ZMQ_RCVHWM, iopub && open->endpoints->trusted_hwm ? TRUSTED_RCVHWM : 0},
		{ZMQ_RECONNECT_IVL, RECONNECT_MS},
		{ZMQ_RECONNECT_IVL_MAX, RECONNECT_MAX_MS},
		/* A kernel that accepts late (its listeners were made before it) is no error. */
		{ZMQ_HANDSHAKE_IVL, 0},
	};
	int64_t max = open->max_message_bytes > 0 ? open->max_message_bytes : -1;

	if (set_all(zmq, options, ARRAY_LEN(options)) < 0 ||
		zmq_setsockopt(zmq, ZMQ_MAXMSGSIZE, &max, sizeof(max)) < 0)
		return -1;
	if (iopub && zmq_setsockopt(zmq, ZMQ_SUBSCRIBE, "", 0) < 0)
		return -1;
	if (!iopub && open->channel != CHANNEL_HB &&
		zmq_setsockopt(zmq, ZMQ_ROUTING_ID, open->routing_id, strlen(open->routing_id)) < 0)
		return -1;
	return set_curve(zmq, open->endpoints);
}

/* Only of coppice_kernel we know that its PUB drops nothing while we do not read; others are read
 * ahead by libzmq's thread. What is encrypted is libzmq's too. */
static bool can_be_pipe(const struct zsocket_open *open)
{
	const struct endpoints *e = open->endpoints;

	return e->trusted_hwm && !*e->curve_public &&
	       strncmp(e->address[open->channel], "ipc://", 6) == 0;
}

static void on_pipe_change(void *data)
{
	struct zsocket *s = data;

	s->on_readable(s);
}

static struct zsocket *pipe_socket_new(struct zcontext *z, const struct zsocket_open *open)
{
	struct zsocket *s = xcalloc(1, sizeof(*s));
	struct pipe_open pipe = {
		.loop = z->loop,
		.subscribes = open->channel == CHANNEL_IOPUB,
		.routing_id = open->channel == CHANNEL_HB ? NULL : open->routing_id,
		.frame_max = open->max_message_bytes > 0 ? (uint64_t)open->max_message_bytes : 0,
		.spare = &z->spare,
		.on_change = on_pipe_change,
		.data = s,
	};

	s->context = z;
	s->on_readable = open->on_readable;
	s->data = open->data;
	s->pipe = pipe_new(&pipe);
	z->n_sockets++;
	return s;
}

int zsocket_open(
	struct zcontext *z, const struct zsocket_open *open, struct zsocket **ret, struct err *err)
{
	struct zsocket *s = NULL;

	if (can_be_pipe(open)) {
		*ret = pipe_socket_new(z, open);
		return 0;
	}
	int rc = socket_new(z, open->channel == CHANNEL_IOPUB ? ZMQ_SUB : ZMQ_DEALER, &s, err);
	if (rc < 0)
		return rc;
	s->on_readable = open->on_readable;
	s->data = open->data;
	if (set_options(s->zmq, open) < 0) {
		rc = err_set(err, E_IO, "zeromq: option refused: %s", zmq_strerror(errno));
		zsocket_close(&s);
		return rc;
	}
	*ret = s;
	return 0;
}

int zsocket_connect(struct zsocket *s, const char *address, struct err *err)
{
	if (s->pipe)
		return pipe_connect(s->pipe, address, err);
	if (UNINTERRUPTED(zmq_connect(s->zmq, address)) < 0)
		return err_set(err, E_IO, "zeromq: %s: %s", address, zmq_strerror(errno));
	return 0;
}

/* ---- messages ---- */

void zcontext_release(struct zcontext *z)
{
	while (z->n_in > 0)
		(void)zmq_msg_close(&z->in[--z->n_in]); /* cannot fail */
}

/* Takes the part in the next free place, which is there again afterwards if it is not kept. */
static void keep_part(struct zcontext *z, bool keep)
{
	zmq_msg_t *m = &z->in[z->n_in];

	if (keep)
		z->frames[z->n_in++] = (struct bytes){zmq_msg_data(m), zmq_msg_size(m)};
	else
		(void)zmq_msg_close(m); /* cannot fail */
}

bool zsocket_receive(struct zsocket *s, const struct bytes **ret_frames, size_t *ret_n)
{
	struct zcontext *z = s->context;
	size_t total = 0;
	bool whole = true;
	bool more = true;

	*ret_frames = z->frames;
	if (s->pipe)
		return pipe_receive(s->pipe, z->frames, WIRE_FRAMES_MAX - 1, ret_n);
	while (more) {
		zmq_msg_t *m = &z->in[z->n_in];

		(void)zmq_msg_init(m); /* cannot fail */
		if (UNINTERRUPTED(zmq_msg_recv(m, s->zmq, ZMQ_DONTWAIT)) < 0)
			return false; /* only before the first part: libzmq hands over whole
					 messages */
		more = zmq_msg_more(m);
		total += zmq_msg_size(m);
		whole = whole && total <= JMSG_FRAME_MAX && z->n_in < WIRE_FRAMES_MAX - 1;
		keep_part(z, whole);
		if (!whole)
			zcontext_release(z);
	}
	*ret_n = z->n_in;
	return true;
}

static int fill_out(struct zcontext *z, const struct bytes *frames, size_t n, struct err *err)
{
	for (size_t i = 0; i < n; i++) {
		if (zmq_msg_init_size(&z->out[i], frames[i].len) < 0) {
			while (i > 0)
				(void)zmq_msg_close(&z->out[--i]); /* cannot fail */
			return err_set(err, E_NOMEM, "a message for the kernel: out of memory");
		}
		if (frames[i].len > 0)
			memcpy(zmq_msg_data(&z->out[i]), frames[i].data, frames[i].len);
	}
	return 0;
}

int zsocket_send(struct zsocket *s, const struct bytes *frames, size_t n, struct err *err)
{
	struct zcontext *z = s->context;
	size_t sent = 0;

	if (n > WIRE_FRAMES_MAX)
		return err_set(err, E_TOO_BIG, "a message of %zu parts", n);
	if (s->pipe)
		return pipe_send(s->pipe, frames, n, err);
	if (fill_out(z, frames, n, err) < 0)
		return E_NOMEM;
	for (; sent < n; sent++) {
		int flags = ZMQ_DONTWAIT | (sent + 1 < n ? ZMQ_SNDMORE : 0);
		if (UNINTERRUPTED(zmq_msg_send(&z->out[sent], s->zmq, flags)) < 0)
			break;
	}
	for (size_t i = sent; i < n; i++)
		(void)zmq_msg_close(&z->out[i]); /* cannot fail */
	/* There is no mark on what waits to be sent, so only a peer that is gone refuses; one that
	 * goes amid a message is libzmq's to hide: it drops the rest. */
	if (sent < n)
		return err_set(err, E_GONE, "the kernel's socket is gone");
	return 0;
}

enum zquiet zsocket_why_quiet(const struct zsocket *s)
{
	int events = 0;
	size_t size = sizeof(events);

	if (s->pipe)
		return pipe_is_broken(s->pipe) ? ZQUIET_LOST : ZQUIET_WAITS;
	if (UNINTERRUPTED(zmq_getsockopt(s->zmq, ZMQ_EVENTS, &events, &size)) < 0)
		return ZQUIET_WAITS;
	if (events & ZMQ_POLLIN)
		return ZQUIET_CAME;
	/* Without a mark a DEALER can always be written, connected or not, unless libzmq dropped
	 * its only peer. */
	return events & ZMQ_POLLOUT ? ZQUIET_WAITS : ZQUIET_LOST;
}

/* ---- monitor ---- */

int zsocket_monitor(struct zsocket *of, struct zsocket **ret, struct err *err)
{
	static const struct option options[] = {{ZMQ_LINGER, 0}, {ZMQ_RCVHWM, 0}};
	struct zsocket *s = NULL;
	char name[48];
	int rc = socket_new(of->context, ZMQ_PAIR, &s, err);

	if (rc < 0)
		return rc;
	s->on_readable = of->on_readable;
	s->data = of->data;
	snprintf(name, sizeof(name), "inproc://monitor-%u", ++of->context->serial);
	if (set_all(s->zmq, options, ARRAY_LEN(options)) < 0 ||
		UNINTERRUPTED(zmq_socket_monitor(of->zmq, name,
			ZMQ_EVENT_CONNECTED | ZMQ_EVENT_HANDSHAKE_SUCCEEDED |
				ZMQ_EVENT_CONNECT_RETRIED | ZMQ_EVENT_DISCONNECTED)) < 0) {
		rc = err_set(err, E_IO, "zeromq: monitor: %s", zmq_strerror(errno));
		zsocket_close(&s);
		return rc;
	}
	of->monitor = s;
	s->monitored = of;
	if (UNINTERRUPTED(zmq_connect(s->zmq, name)) < 0) {
		rc = err_set(err, E_IO, "zeromq: monitor: %s", zmq_strerror(errno));
		zsocket_close(&s);
		return rc;
	}
	*ret = s;
	return 0;
}

static enum zevent pipe_event(struct pipe *p)
{
	bool up;

	if (!pipe_changed(p, &up))
		return ZEVENT_NONE;
	return up ? ZEVENT_UP : ZEVENT_DOWN;
}

enum zevent zsocket_event(struct zsocket *monitor)
{
	uint8_t data[6]; /* 16 bits of event, 32 of value; a second part holds the address */
	uint16_t event;

	if (monitor->pipe)
		return pipe_event(monitor->pipe);
	while (UNINTERRUPTED(zmq_recv(monitor->zmq, data, sizeof(data), ZMQ_DONTWAIT)) ==
		sizeof(data)) {
		/* The address is known. */
		(void)UNINTERRUPTED(zmq_recv(monitor->zmq, NULL, 0, ZMQ_DONTWAIT));
		memcpy(&event, data, sizeof(event));
		if (event == ZMQ_EVENT_CONNECTED)
			return ZEVENT_CONNECTED;
		if (event == ZMQ_EVENT_HANDSHAKE_SUCCEEDED)
			return ZEVENT_UP;
		if (event == ZMQ_EVENT_DISCONNECTED)
			return ZEVENT_DOWN;
		if (event == ZMQ_EVENT_CONNECT_RETRIED)
			return ZEVENT_RETRY;
	}
	return ZEVENT_NONE;
}

int channel_curve_pair(char ret_public[41], char ret_secret[41])
{
	return zmq_curve_keypair(ret_public, ret_secret) == 0 ? 0 : E_UNAVAILABLE;
}
