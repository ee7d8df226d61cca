/* libzmq gives up a call when a signal comes while it looks for orders of its own thread: a child
 * that ends (a kernel, a git) sends one. None of that is an error, and no message is passed over.
 */
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>
#include <zmq.h>

#include "kernel-bridge/channel_socket.h"
#include "tests/lib/test.h"

#define MESSAGES 50

static bool interrupts; /* every other look of this thread's */
static unsigned interrupted;

/* In libc's place, for libzmq too. */
int poll(struct pollfd *fds, nfds_t n, int timeout)
{
	static bool turn;
	turn = !turn;
	if (interrupts && turn && syscall(SYS_gettid) == getpid()) {
		interrupted++;
		errno = EINTR;
		return -1;
	}
	return (int)syscall(SYS_poll, fds, n, timeout);
}

struct fixture {
	uv_loop_t loop;
	char folder[64], file[96];
	struct endpoints endpoints;
	struct zcontext *context;
	struct zsocket *socket, *monitor;
	void *peer_context, *peer;
};

static void on_readable(struct zsocket *s)
{
	(void)s; /* it is read by hand */
}

static void setup(struct fixture *f)
{
	char *address;
	memset(f, 0, sizeof *f);
	interrupts = false;
	interrupted = 0;
	assert_int_equal(uv_loop_init(&f->loop), 0);
	snprintf(f->folder, sizeof f->folder, "/tmp/coppice-test-zmq-XXXXXX");
	assert_non_null(mkdtemp(f->folder));
	snprintf(f->file, sizeof f->file, "%s/s", f->folder);
	address = f->endpoints.address[CHANNEL_SHELL];
	snprintf(address, ENDPOINT_SIZE, "ipc://%s", f->file);
	f->peer_context = zmq_ctx_new();
	f->peer = zmq_socket(f->peer_context, ZMQ_ROUTER);
	assert_non_null(f->peer);
	assert_int_equal(zmq_bind(f->peer, address), 0);
	assert_int_equal(zcontext_new(&f->loop, 64, &f->context, NULL), 0);
}

static void connect_it(struct fixture *f)
{
	const struct zsocket_open open = {.channel = CHANNEL_SHELL,
		.endpoints = &f->endpoints,
		.routing_id = "me",
		.on_readable = on_readable};
	assert_int_equal(zsocket_open(f->context, &open, &f->socket, NULL), 0);
	assert_int_equal(zsocket_monitor(f->socket, &f->monitor, NULL), 0);
	assert_int_equal(zsocket_connect(f->socket, f->endpoints.address[CHANNEL_SHELL], NULL), 0);
}

static void teardown(struct fixture *f)
{
	interrupts = false;
	zsocket_close(&f->monitor);
	zsocket_close(&f->socket);
	assert_int_equal(uv_run(&f->loop, UV_RUN_DEFAULT), 0);
	zcontext_free(f->context);
	assert_int_equal(uv_loop_close(&f->loop), 0);
	int linger = 0;
	assert_int_equal(zmq_setsockopt(f->peer, ZMQ_LINGER, &linger, sizeof linger), 0);
	assert_int_equal(zmq_close(f->peer), 0);
	assert_int_equal(zmq_ctx_term(f->peer_context), 0);
	unlink(f->file);
	assert_int_equal(rmdir(f->folder), 0);
}

TEST(channel_interrupted, it_is_made_and_connected)
{
	struct fixture f;
	setup(&f);
	interrupts = true;
	for (unsigned i = 0; i < 10; i++) {
		connect_it(&f);
		zsocket_close(&f.monitor);
		zsocket_close(&f.socket);
	}
	assert_true(interrupted > 0);
	teardown(&f);
}

/* What libzmq's descriptor told of once it does not tell of again: a look that a signal ended must
 * not pass for one that found nothing. */
static void receive(struct fixture *f)
{
	const struct bytes *frames;
	size_t n;
	for (;;) {
		errno = 0;
		if (zsocket_receive(f->socket, &frames, &n)) {
			assert_int_equal(n, 1);
			zcontext_release(f->context);
			return;
		}
		assert_int_not_equal(errno, EINTR);
		errno = 0;
		(void)zsocket_why_quiet(f->socket);
		assert_int_not_equal(errno, EINTR);
	}
}

TEST(channel_interrupted, messages_go_and_come)
{
	struct fixture f;
	const struct bytes frame = {(const uint8_t *)"text", 4};
	char name[8], text[8];
	setup(&f);
	connect_it(&f);
	for (unsigned i = 0; i < MESSAGES; i++) {
		interrupts = true;
		assert_int_equal(zsocket_send(f.socket, &frame, 1, NULL), 0);
		interrupts = false;
		assert_int_equal(zmq_recv(f.peer, name, sizeof name, 0), 2);
		assert_int_equal(zmq_recv(f.peer, text, sizeof text, 0), 4);
		assert_int_equal(zmq_send(f.peer, name, 2, ZMQ_SNDMORE), 2);
		assert_int_equal(zmq_send(f.peer, text, 4, 0), 4);
		interrupts = true;
		receive(&f);
	}
	assert_true(interrupted > 0);
	teardown(&f);
}

RUN(TEST_ROW(channel_interrupted, it_is_made_and_connected),
	TEST_ROW(channel_interrupted, messages_go_and_come))
