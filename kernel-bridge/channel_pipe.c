#include "kernel-bridge/channel_pipe.h"

#include <assert.h>
#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "gateway/base/buf.h"
#include "gateway/base/jmsg.h"
#include "kernel-bridge/zmtp.h"

#define READ_BYTES   65536 /* at once; a longer frame gets room as it comes */
#define OUT_MAX	     ((size_t)2 * JMSG_FRAME_MAX)
#define RETRY_MS     20
#define RETRY_MAX_MS 200

/* One connection; lives until the loop let go of it. */
struct conn {
	uv_poll_t poll;
	struct pipe *pipe; /* NULL once hung up */
	int fd;
	int events; /* that are watched for */
};

struct pipe {
	struct pipe_open open;
	struct sockaddr_un address;
	char routing_id[65];
	struct conn *conn; /* NULL while there is no connection */
	uv_timer_t retry;
	uint64_t retry_ms;
	struct zmtp zmtp;
	uint8_t *in;
	size_t in_at, in_len, in_size; /* what was not used yet is in_at..in_len */
	size_t used;		       /* of it, by the message that is being looked at */
	size_t need;
	bool dry; /* the last read took all there was */
	struct buf out;
	size_t out_at;
	bool watched, up, told_up, broken;
	void (*closed)(void *data);
	void *closed_data;
};

static void try_connect(struct pipe *p);

/* ---- a connection's life ---- */

static void on_conn_closed(uv_handle_t *handle)
{
	free(CONTAINER_OF((uv_poll_t *)handle, struct conn, poll));
}

static void drop_conn(struct pipe *p)
{
	struct conn *conn = TAKE(p->conn);

	if (!conn)
		return;
	conn->pipe = NULL;
	/* Takes the descriptor out of epoll at once. */
	uv_close((uv_handle_t *)&conn->poll, on_conn_closed);
	(void)close(conn->fd); /* what was lost is told by the pipe's going down */
	p->up = false;
	p->dry = false;
	p->in_at = p->in_len = p->used = 0;
	p->zmtp = (struct zmtp){.frame_max = p->open.frame_max};
}

static void on_retry(uv_timer_t *timer)
{
	try_connect(CONTAINER_OF(timer, struct pipe, retry));
}

static void retry_later(struct pipe *p)
{
	/* An open timer starts always. */
	(void)uv_timer_start(&p->retry, on_retry, p->retry_ms, 0);
	p->retry_ms = 2 * p->retry_ms < RETRY_MAX_MS ? 2 * p->retry_ms : RETRY_MAX_MS;
}

/* What waits to be sent was for a connection that is no more: a peer that comes back would take the
 * rest of a message for the beginning of one. Before the first it is kept. */
static void hang_up(struct pipe *p, bool for_good)
{
	if (p->up || p->out_at > 0) {
		buf_done(&p->out);
		p->out_at = 0;
	}
	drop_conn(p);
	p->broken = p->broken || for_good;
	if (!p->broken)
		retry_later(p);
	p->open.on_change(p->open.data);
}

static void on_poll(uv_poll_t *poll, int status, int events);

static void set_watch(struct pipe *p)
{
	int events = p->watched || !p->up ? UV_READABLE : 0;

	if (!p->conn)
		return;
	if (p->up && p->out.len > p->out_at)
		events |= UV_WRITABLE;
	if (events == p->conn->events)
		return; /* libuv would take the descriptor out and put it in again */
	p->conn->events = events;
	/* Neither can fail on a handle that is open. */
	if (events)
		(void)uv_poll_start(&p->conn->poll, events, on_poll);
	else
		(void)uv_poll_stop(&p->conn->poll);
}

static int connected_fd(const struct pipe *p)
{
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);

	if (fd < 0 || connect(fd, (const struct sockaddr *)&p->address, sizeof(p->address)) == 0)
		return fd;
	(void)close(fd); /* nothing was sent */
	return -1;
}

/* A fresh connection has room for it. */
static bool say_hello(const struct pipe *p)
{
	uint8_t hello[ZMTP_HELLO_MAX];
	size_t len = zmtp_hello(p->open.subscribes ? "SUB" : "DEALER", p->routing_id, hello);

	return send(p->conn->fd, hello, len, MSG_NOSIGNAL) == (ssize_t)len;
}

static void try_connect(struct pipe *p)
{
	int fd = connected_fd(p);
	struct conn *conn;

	if (fd < 0) {
		retry_later(p);
		return;
	}
	conn = xcalloc(1, sizeof(*conn));
	if (uv_poll_init(p->open.loop, &conn->poll, fd) < 0) {
		free(conn);
		(void)close(fd); /* nothing was sent */
		retry_later(p);
		return;
	}
	conn->fd = fd;
	conn->pipe = p;
	p->conn = conn;
	if (!say_hello(p)) {
		drop_conn(p);
		retry_later(p);
		return;
	}
	set_watch(p);
}

struct pipe *pipe_new(const struct pipe_open *open)
{
	struct pipe *p = xcalloc(1, sizeof(*p));

	p->open = *open;
	if (open->routing_id)
		(void)copy_text(p->routing_id, sizeof(p->routing_id), open->routing_id,
			strlen(open->routing_id)); /* ours fit */
	p->zmtp.frame_max = open->frame_max;
	p->retry_ms = RETRY_MS;
	p->watched = true;
	buf_init(&p->out, OUT_MAX);
	(void)uv_timer_init(open->loop, &p->retry); /* cannot fail */
	return p;
}

int pipe_connect(struct pipe *p, const char *address, struct err *err)
{
	static const char scheme[] = "ipc://";
	size_t n = sizeof(scheme) - 1;

	p->address.sun_family = AF_UNIX;
	if (strncmp(address, scheme, n) != 0 ||
		!copy_text(p->address.sun_path, sizeof(p->address.sun_path), address + n,
			strlen(address + n)))
		return err_set(err, E_INVALID, "%s is no unix socket", address);
	try_connect(p);
	return 0;
}

static void on_timer_closed(uv_handle_t *handle)
{
	struct pipe *p = CONTAINER_OF((uv_timer_t *)handle, struct pipe, retry);
	void (*closed)(void *data) = p->closed;
	void *data = p->closed_data;

	free(p->in);
	free(p);
	closed(data);
}

void pipe_close(struct pipe *p, void (*closed)(void *data), void *data)
{
	drop_conn(p);
	buf_done(&p->out);
	p->closed = closed;
	p->closed_data = data;
	uv_close((uv_handle_t *)&p->retry, on_timer_closed);
}

void pipe_watch(struct pipe *p, bool on)
{
	p->watched = on;
	set_watch(p);
}

/* ---- out ---- */

static void flush(struct pipe *p)
{
	while (p->up && p->out_at < p->out.len) {
		ssize_t n = send(
			p->conn->fd, p->out.data + p->out_at, p->out.len - p->out_at, MSG_NOSIGNAL);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0 && errno == EAGAIN)
			break;
		/* The peer is gone; what it said before is still to be read, up to its end. */
		if (n < 0)
			n = (ssize_t)(p->out.len - p->out_at);
		p->out_at += (size_t)n;
	}
	if (p->out_at == p->out.len) {
		buf_done(&p->out); /* an idle pipe holds no buffer */
		p->out_at = 0;
	}
}

static int add_message(struct buf *out, const struct bytes *frames, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		uint8_t head[ZMTP_HEAD_MAX];
		size_t size = zmtp_frame_head(frames[i].len, i + 1 < n, head);

		(void)buf_add(out, head, size); /* the latch tells */
		(void)buf_add(out, frames[i].data, frames[i].len);
	}
	return out->failed ? -1 : 0;
}

int pipe_send(struct pipe *p, const struct bytes *frames, size_t n, struct err *err)
{
	size_t before = p->out.len;
	bool waits = before > 0;

	if (p->broken)
		return err_set(err, E_GONE, "the kernel's socket is gone");
	if (add_message(&p->out, frames, n) < 0) {
		p->out.len = before;
		p->out.failed = false;
		return err_set(err, E_NOMEM, "a message for the kernel: out of memory");
	}
	if (!waits)
		flush(p);
	set_watch(p);
	return 0;
}

/* ---- in ---- */

static uint8_t *new_buffer(struct pipe *p)
{
	uint8_t *in = p->open.spare ? TAKE(*p->open.spare) : NULL;

	return in ? in : malloc(READ_BYTES);
}

static bool make_room(struct pipe *p)
{
	size_t have = p->in_len - p->in_at;
	size_t want = p->need > have ? p->need : have + 1;
	size_t size = p->in_size > 0 ? p->in_size : READ_BYTES;

	if (p->in_at > 0) {
		memmove(p->in, p->in + p->in_at, have);
		p->in_at = 0;
		p->in_len = have;
	}
	/* By doubling: who claims a large frame must send it first. */
	if (have == size || (want > size && 2 * have >= size))
		size *= 2;
	if (size == p->in_size)
		return true;
	assert(p->in || size == READ_BYTES);
	uint8_t *in = p->in ? realloc(p->in, size) : new_buffer(p);
	if (!in)
		return false;
	p->in = in;
	p->in_size = size;
	return true;
}

/* False: nothing came, for now or for ever. */
static bool fill(struct pipe *p)
{
	if (!make_room(p)) {
		hang_up(p, true);
		return false;
	}
	size_t room = p->in_size - p->in_len;
	ssize_t n = recv(p->conn->fd, p->in + p->in_len, room, 0);
	if (n > 0) {
		p->in_len += (size_t)n;
		p->dry = (size_t)n < room;
		return true;
	}
	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return false;
	hang_up(p, false);
	return false;
}

static void forget_in(struct pipe *p)
{
	if (p->in_at < p->in_len)
		return;
	if (p->in_size == READ_BYTES && p->open.spare && !*p->open.spare)
		*p->open.spare = TAKE(p->in);
	free(TAKE(p->in));
	p->in_at = p->in_len = p->in_size = 0;
}

static void came_up(struct pipe *p)
{
	static const uint8_t subscription[] = {0, 1, 1}; /* to everything */

	p->up = true;
	p->retry_ms = RETRY_MS;
	/* A SUB says nothing else, so there is room. */
	if (p->open.subscribes && send(p->conn->fd, subscription, sizeof(subscription),
					  MSG_NOSIGNAL) != sizeof(subscription))
		hang_up(p, false);
	else
		flush(p);
	set_watch(p);
}

/* Up to a message, or until there is no more. False: no message. */
static bool step(struct pipe *p, struct zmtp_step *s)
{
	struct err err; /* the watcher says it in its own words */

	while (p->conn) {
		if (zmtp_next(&p->zmtp, (struct bytes){p->in + p->in_at, p->in_len - p->in_at}, s,
			    &err) < 0) {
			hang_up(p, true);
			return false;
		}
		if (s->what == ZMTP_MESSAGE)
			return true;
		p->in_at += s->used;
		if (s->what == ZMTP_DROPPED)
			return true;
		if (s->what == ZMTP_UP) {
			came_up(p);
			return false;
		}
		if (s->used > 0 && p->in_at < p->in_len)
			continue; /* a greeting ended, and more came with it */
		p->need = s->need;
		bool dry = p->dry;
		p->dry = false;
		if (dry || !fill(p))
			return false;
	}
	return false;
}

/* The handshake goes on whether messages are wanted or not. */
static void shake_hands(struct pipe *p)
{
	struct zmtp_step s = {0};

	(void)step(p, &s); /* no message comes before the peer is up */
	if (p->up)
		p->open.on_change(p->open.data);
}

static void on_poll(uv_poll_t *poll, int status, int events)
{
	struct pipe *p = CONTAINER_OF(poll, struct conn, poll)->pipe;

	if (!p)
		return;
	if (!p->up) {
		shake_hands(p);
		return;
	}
	if (events & UV_WRITABLE) {
		flush(p);
		set_watch(p);
	}
	if (status < 0 || events & UV_READABLE)
		p->open.on_change(p->open.data);
}

bool pipe_receive(struct pipe *p, struct bytes *frames, size_t frames_max, size_t *ret_n)
{
	struct zmtp_step s = {
		.frames = frames, .frames_max = frames_max, .total_max = JMSG_FRAME_MAX};

	p->in_at += p->used;
	p->used = 0;
	if (!p->up || !step(p, &s)) {
		forget_in(p);
		return false;
	}
	*ret_n = s.what == ZMTP_MESSAGE ? s.n : 0;
	p->used = s.what == ZMTP_MESSAGE ? s.used : 0;
	return true;
}

bool pipe_is_between(const struct pipe *p)
{
	return p->up && p->in_at + p->used == p->in_len;
}

bool pipe_is_broken(const struct pipe *p)
{
	return p->broken;
}

bool pipe_changed(struct pipe *p, bool *ret_up)
{
	if (p->up == p->told_up)
		return false;
	p->told_up = *ret_up = p->up;
	return true;
}
