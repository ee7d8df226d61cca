#include "kernel-bridge/ctl.h"

#include <assert.h>
#include <cjson/cJSON.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>
#include <uv.h>

#include "gateway/base/list.h"
#include "gateway/base/log.h"

#define BAD_LOGGED 10

/* A packet that waits until the socket takes it. */
struct packet {
	char *text;
	int fds[CTL_FDS_MAX];
	size_t n_fds;
	struct list link;
};

struct ctl {
	uv_loop_t *loop;
	const struct log *log;
	struct ctl_watcher watcher;
	uv_poll_t listener, connection;
	unsigned handles; /* of those two: initialised and not closed yet */
	int fd;		  /* the listener's, then the connection's; -1 once it is down */
	bool connected;	  /* the handle of the connection is in use */
	bool greeted;
	long pid, expected; /* 0: whoever comes first */
	int64_t parks_max;
	bool takes_files;
	cJSON *lays_kept; /* NULL: none */
	unsigned bad;
	struct list queue;
	size_t n_queue;
	bool closing;
	void (*closed)(void *data);
	void *closed_data;
};

static void on_listener(uv_poll_t *poll, int status, int events);
static void on_connection(uv_poll_t *poll, int status, int events);

static void delete_tree(cJSON **tree)
{
	cJSON_Delete(*tree);
}

static void close_all(const int *fds, size_t n)
{
	for (size_t i = 0; i < n; i++)
		(void)close(fds[i]); /* sockets: nothing is lost by it */
}

static void packet_free(struct packet *p)
{
	list_remove(&p->link);
	close_all(p->fds, p->n_fds);
	free(p->text);
	free(p);
}

static void queue_drop(struct ctl *c)
{
	LIST_EACH_SAFE (at, &c->queue)
		packet_free(CONTAINER_OF(at, struct packet, link));
	c->n_queue = 0;
}

/* The descriptor goes away; the uv handle stays until its close callback. */
static void drop_fd(struct ctl *c)
{
	if (c->fd < 0)
		return;
	/* Stopping an initialised handle does not fail. */
	(void)uv_poll_stop(c->connected ? &c->connection : &c->listener);
	(void)close(c->fd); /* a socket: nothing is lost by it */
	c->fd = -1;
	queue_drop(c);
}

static void go_down(struct ctl *c, const struct err *err)
{
	drop_fd(c);
	c->watcher.on_down(c->watcher.data, err);
}

static void protocol_error(struct ctl *c, const char *text)
{
	struct err err;
	(void)err_set(&err, E_PROTOCOL, "the supervisor %s", text);
	go_down(c, &err);
}

int ctl_open(struct uv_loop_s *loop, const struct log *log, int listen_fd,
	const struct ctl_watcher *watcher, struct ctl **ret, struct err *err)
{
	struct ctl *c = xcalloc(1, sizeof(*c));
	c->loop = loop;
	c->log = log;
	c->watcher = *watcher;
	c->fd = listen_fd;
	list_init(&c->queue);
	int rc = uv_poll_init(loop, &c->listener, listen_fd);
	if (rc < 0) {
		close_all(&listen_fd, 1);
		free(c);
		return err_set(err, E_IO, "ctl: %s", uv_strerror(rc));
	}
	c->listener.data = c;
	c->handles = 1;
	/* Can only fail for a handle that is closing. */
	(void)uv_poll_start(&c->listener, UV_READABLE, on_listener);
	*ret = c;
	return 0;
}

void ctl_expect(struct ctl *c, long pid)
{
	c->expected = pid;
}

void ctl_park(struct ctl *c, int64_t max)
{
	c->parks_max = max;
}

void ctl_take_files(struct ctl *c, bool takes)
{
	c->takes_files = takes;
}

void ctl_keep_lay(struct ctl *c, const char *id)
{
	if (!c->lays_kept)
		c->lays_kept = cJSON_CreateArray();
	/* Without memory it is put back. */
	(void)cJSON_AddItemToArray(c->lays_kept, cJSON_CreateString(id));
}

bool ctl_has_room(const struct ctl *c)
{
	return c->fd >= 0 && c->connected && list_empty(&c->queue);
}

static void on_closed(uv_handle_t *h)
{
	struct ctl *c = h->data;
	if (--c->handles > 0 || !c->closing)
		return;
	void (*closed)(void *data) = c->closed;
	void *data = c->closed_data;
	cJSON_Delete(c->lays_kept);
	free(c);
	closed(data);
}

static void close_handle(uv_poll_t *poll)
{
	if (!uv_is_closing((uv_handle_t *)poll))
		uv_close((uv_handle_t *)poll, on_closed);
}

void ctl_close(struct ctl *c, void (*closed)(void *data), void *data)
{
	assert(!c->closing);
	c->closing = true;
	c->closed = closed;
	c->closed_data = data;
	drop_fd(c);
	if (c->connected)
		close_handle(&c->connection);
	/* A connection's listener was closed before; then it is the connection's end that counts.
	 */
	close_handle(&c->listener);
}

static void watch_connection(struct ctl *c)
{
	int events = UV_READABLE | (list_empty(&c->queue) ? 0 : UV_WRITABLE);
	(void)uv_poll_start(&c->connection, events, on_connection); /* as in ctl_open */
}

static long peer_pid(int fd)
{
	struct ucred cred = {0};
	socklen_t len = sizeof(cred);
	if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &cred, &len) < 0)
		return 0;
	return cred.pid;
}

static int adopt(struct ctl *c, int fd, struct err *err)
{
	c->pid = peer_pid(fd);
	if (c->pid <= 0)
		return err_set(err, E_PROTOCOL,
			"the supervisor's process id is not visible to this gateway");
	int rc = uv_poll_init(c->loop, &c->connection, fd);
	if (rc < 0)
		return err_set(err, E_IO, "ctl: %s", uv_strerror(rc));
	/* From here on nobody else can connect: the listener and what waits at it are closed. */
	drop_fd(c);
	c->fd = fd;
	c->connected = true;
	c->connection.data = c;
	c->handles++;
	watch_connection(c);
	close_handle(&c->listener);
	return 0;
}

static void on_listener(uv_poll_t *poll, int status, int events)
{
	struct ctl *c = poll->data;
	struct err err;
	(void)status, (void)events; /* accept says what there is */
	int fd = accept4(c->fd, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
	if (fd < 0 && (errno == EAGAIN || errno == EINTR || errno == ECONNABORTED))
		return;
	if (fd < 0) {
		/* Waiting on would spin: the listener stays readable. */
		(void)err_set(&err, E_IO, "ctl: %s", strerror(errno));
		go_down(c, &err);
	} else if (c->expected > 0 && peer_pid(fd) != c->expected) {
		close_all(&fd, 1); /* a guest that would like to be it */
	} else if (adopt(c, fd, &err) < 0) {
		close_all(&fd, 1);
		go_down(c, &err);
	}
}

static ssize_t send_packet(int fd, const struct packet *p)
{
	union {
		struct cmsghdr align;
		char bytes[CMSG_SPACE(sizeof(int) * CTL_FDS_MAX)];
	} control = {0};
	struct iovec part = {p->text, strlen(p->text)};
	struct msghdr m = {.msg_iov = &part, .msg_iovlen = 1};
	if (p->n_fds > 0) {
		m.msg_control = control.bytes;
		m.msg_controllen = CMSG_SPACE(sizeof(int) * p->n_fds);
		struct cmsghdr *head = CMSG_FIRSTHDR(&m);
		head->cmsg_level = SOL_SOCKET;
		head->cmsg_type = SCM_RIGHTS;
		head->cmsg_len = CMSG_LEN(sizeof(int) * p->n_fds);
		memcpy(CMSG_DATA(head), p->fds, sizeof(int) * p->n_fds);
	}
	ssize_t n;
	do
		n = sendmsg(fd, &m, MSG_NOSIGNAL | MSG_DONTWAIT);
	while (n < 0 && errno == EINTR);
	return n;
}

/* 0: the queue is empty or the socket is full; else the connection is broken. */
static int flush(struct ctl *c, struct err *err)
{
	while (!list_empty(&c->queue)) {
		struct packet *p = CONTAINER_OF(c->queue.next, struct packet, link);
		if (send_packet(c->fd, p) < 0) {
			if (errno == EAGAIN || errno == ENOBUFS)
				return 0;
			return err_set(err, E_UNAVAILABLE, "ctl: %s", strerror(errno));
		}
		packet_free(p);
		c->n_queue--;
	}
	return 0;
}

static int check_send(struct ctl *c, const cJSON *message, char **ret_text, struct err *err)
{
	if (c->fd < 0 || !c->connected)
		return err_set(err, E_UNAVAILABLE, "the supervisor is not connected");
	if (c->n_queue >= CTL_QUEUE_MAX)
		return err_set(err, E_UNAVAILABLE, "the supervisor does not read");
	return ctl_message_write(message, ret_text, err);
}

int ctl_send(struct ctl *c, struct cJSON *message, const int *fds, size_t n_fds, struct err *err)
{
	AUTO(delete_tree) cJSON *m = message;
	char *text = NULL;
	assert(n_fds <= CTL_FDS_MAX);
	int rc = check_send(c, m, &text, err);
	if (rc < 0) {
		close_all(fds, n_fds);
		return rc;
	}
	struct packet *p = xcalloc(1, sizeof(*p));
	p->text = text;
	p->n_fds = n_fds;
	if (n_fds > 0)
		memcpy(p->fds, fds, n_fds * sizeof(*fds));
	list_append(&c->queue, &p->link);
	c->n_queue++;
	rc = flush(c, err);
	if (rc < 0) {
		queue_drop(c); /* the end of the connection is seen by the poll */
		return rc;
	}
	if (!list_empty(&c->queue))
		watch_connection(c);
	return 0;
}

static void answer_error(struct ctl *c, const char *about, const char *reason)
{
	if (!list_empty(&c->queue))
		return; /* who does not read needs no more answers */
	cJSON *m = ctl_message_new(CTL_ERROR);
	/* What cannot be added is missed by ctl_send's check. */
	(void)cJSON_AddStringToObject(m, "about", about);
	(void)cJSON_AddStringToObject(m, "reason", reason);
	(void)ctl_send(c, m, NULL, 0, NULL); /* an answer is a courtesy */
}

static void count_bad(struct ctl *c, const char *about, const struct err *err)
{
	if (c->bad < BAD_LOGGED)
		log_warn(c->log, "ctl_bad_packet about=%s reason=%s", about, err->text);
	if (++c->bad >= CTL_BAD_MAX) {
		protocol_error(c, "sent too many malformed packets");
		return;
	}
	/* Errors that answer errors would go to and fro for ever. */
	if (strcmp(about, ctl_row(CTL_ERROR)->type) != 0)
		answer_error(c, about, err->text);
}

static void handle_hello(struct ctl *c, const cJSON *m)
{
	int64_t version = ctl_int(m, "version", 0);
	if (version != CTL_VERSION) {
		char text[128];
		(void)snprintf(text, sizeof(text), /* the numbers are short */
			"speaks version %lld of ctl, this gateway version %d: make the image anew",
			(long long)version, CTL_VERSION);
		protocol_error(c, text);
		return;
	}
	cJSON *welcome = ctl_message_new(CTL_WELCOME);
	(void)cJSON_AddNumberToObject(welcome, "version", CTL_VERSION); /* ctl_send checks */
	(void)cJSON_AddBoolToObject(welcome, "reports", true);		/* or none come */
	if (c->parks_max > 0)
		(void)cJSON_AddNumberToObject(welcome, "parks_max", (double)c->parks_max);
	if (c->takes_files)
		(void)cJSON_AddBoolToObject(welcome, "files", true);
	if (c->lays_kept)
		(void)cJSON_AddItemToObject(welcome, "lays_kept", TAKE(c->lays_kept));
	struct err err;
	if (ctl_send(c, welcome, NULL, 0, &err) < 0) {
		go_down(c, &err);
		return;
	}
	c->greeted = true;
	c->watcher.on_up(c->watcher.data, c->pid, m);
}

static int handle_message(struct ctl *c, enum ctl_type type, const cJSON *m, struct err *err)
{
	if (!c->greeted && type != CTL_HELLO)
		return err_set(err, E_PROTOCOL, "hello comes first");
	if (c->greeted && type == CTL_HELLO)
		return err_set(err, E_PROTOCOL, "hello comes once");
	if (type == CTL_HELLO) {
		handle_hello(c, m);
		return 0;
	}
	if (type == CTL_ERROR)
		/* It counts, so that it cannot flood the log. */
		return err_set(err, E_PROTOCOL, "%s: %s", ctl_text(m, "about", ""),
			ctl_text(m, "reason", ""));
	return c->watcher.on_message(c->watcher.data, type, m, err);
}

static void handle_packet(struct ctl *c, struct bytes packet)
{
	AUTO(delete_tree) cJSON *m = NULL;
	enum ctl_type type = CTL_ERROR;
	char about[CTL_TYPE_MAX];
	struct err err = {0};
	int rc = ctl_message_read(packet, &type, &m, about, &err);
	if (rc == 0)
		rc = handle_message(c, type, m, &err);
	if (rc < 0 && c->fd >= 0)
		count_bad(c, about, &err);
}

/* 1: a packet was handled; 0: nothing more now. */
static int read_packet(struct ctl *c)
{
	uint8_t data[CTL_PACKET_MAX];
	struct iovec part = {data, sizeof(data)};
	/* Without room for control data the kernel drops descriptors that a guest may send. */
	struct msghdr m = {.msg_iov = &part, .msg_iovlen = 1};
	ssize_t n = recvmsg(c->fd, &m, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return 0;
	if (n > 0 && !(m.msg_flags & MSG_TRUNC)) {
		handle_packet(c, (struct bytes){data, (size_t)n});
		return c->fd >= 0;
	}
	if (n > 0) {
		protocol_error(c, "sent a packet that is too long");
		return 0;
	}
	struct err err;
	(void)err_set(&err, E_UNAVAILABLE, "the supervisor has ended");
	go_down(c, &err);
	return 0;
}

static void on_connection(uv_poll_t *poll, int status, int events)
{
	struct ctl *c = poll->data;
	struct err err;
	if ((events & UV_WRITABLE) && flush(c, &err) < 0) {
		go_down(c, &err);
		return;
	}
	for (int i = 0; i < CTL_TURN_MAX && read_packet(c); i++)
		;
	/* Waits for writing only while there is a queue; after an error uv has stopped the handle.
	 */
	if (c->fd >= 0 && (status < 0 || (events & UV_WRITABLE)))
		watch_connection(c);
	if ((events & UV_WRITABLE) && c->watcher.on_room && ctl_has_room(c))
		c->watcher.on_room(c->watcher.data);
}
