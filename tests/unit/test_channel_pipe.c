/* A pipe between a loop and a peer that is scripted byte by byte. That it understands libzmq, and
 * libzmq it, is shown by tests/flow/bridge. */
#include "kernel-bridge/channel_pipe.h"

#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "tests/lib/test.h"

#define HELLO_SUB    104 /* bytes: greeting, READY with an empty Identity */
#define HELLO_DEALER 109 /* with the Identity "me" */

static const char greeting[64] = "\xff\0\0\0\0\0\0\0\1\x7f\3\1NULL";
#define READY "\4\031\5READY\013Socket-Type\0\0\0\3PUB"

struct fixture {
	uv_loop_t loop;
	char folder[64], path[96], address[128];
	int listener, peer;
	struct pipe *pipe;
	unsigned changes;
	bool closed;
	struct bytes frames[8];
	size_t n;
	uint8_t *spare;
};

static void on_change(void *data)
{
	struct fixture *f = data;
	f->changes++;
}

static void on_closed(void *data)
{
	struct fixture *f = data;
	f->closed = true;
}

static void listen_there(struct fixture *f)
{
	struct sockaddr_un a = {.sun_family = AF_UNIX};
	snprintf(a.sun_path, sizeof a.sun_path, "%s", f->path);
	f->listener = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	assert_int_equal(bind(f->listener, (struct sockaddr *)&a, sizeof a), 0);
	assert_int_equal(listen(f->listener, 4), 0);
}

static void setup(struct fixture *f, bool subscribes)
{
	memset(f, 0, sizeof *f);
	f->peer = f->listener = -1;
	assert_int_equal(uv_loop_init(&f->loop), 0);
	snprintf(f->folder, sizeof f->folder, "/tmp/coppice-test-pipe-XXXXXX");
	assert_non_null(mkdtemp(f->folder));
	snprintf(f->path, sizeof f->path, "%s/s", f->folder);
	snprintf(f->address, sizeof f->address, "ipc://%s", f->path);
	f->pipe = pipe_new(&(struct pipe_open){.loop = &f->loop,
		.subscribes = subscribes,
		.routing_id = subscribes ? NULL : "me",
		.frame_max = 1 << 20,
		.spare = &f->spare,
		.on_change = on_change,
		.data = f});
}

static void turn(struct fixture *f)
{
	(void)uv_run(&f->loop, UV_RUN_NOWAIT); /* whether anything is left does not matter */
}

/* Waits for the peer's side of a connection, and for what the pipe says first. */
static void accept_one(struct fixture *f, size_t hello)
{
	uint8_t data[256];
	size_t len = 0;
	while (f->peer < 0) {
		turn(f);
		f->peer = accept4(f->listener, NULL, NULL, SOCK_CLOEXEC);
	}
	while (len < hello) {
		turn(f);
		ssize_t n = recv(f->peer, data + len, hello - len, MSG_DONTWAIT);
		len += n > 0 ? (size_t)n : 0;
	}
	assert_int_equal(data[0], 0xff);
	assert_memory_equal(data + 66, "\5READY", 6);
}

static void say(struct fixture *f, const void *data, size_t len)
{
	assert_int_equal(send(f->peer, data, len, MSG_NOSIGNAL), (ssize_t)len);
}

#define SAY(f, text) say(f, text, sizeof(text) - 1)

static bool is_up(struct fixture *f)
{
	bool up = false;
	return pipe_changed(f->pipe, &up) && up;
}

static void bring_up(struct fixture *f, size_t hello)
{
	accept_one(f, hello);
	say(f, greeting, sizeof greeting);
	SAY(f, READY);
	while (!is_up(f))
		turn(f);
}

static void hear(struct fixture *f, const char *text, size_t len)
{
	uint8_t *data = malloc(len);
	size_t have = 0;
	while (have < len) {
		turn(f);
		ssize_t n = recv(f->peer, data + have, len - have, MSG_DONTWAIT);
		assert_true(n != 0);
		have += n > 0 ? (size_t)n : 0;
	}
	assert_memory_equal(data, text, len);
	free(data);
}

#define HEAR(f, text) hear(f, text, sizeof(text) - 1)

static bool receive(struct fixture *f)
{
	return pipe_receive(f->pipe, f->frames, ARRAY_LEN(f->frames), &f->n);
}

static void expect(struct fixture *f, const char *text)
{
	while (!receive(f))
		turn(f);
	assert_int_equal(f->n, 1);
	assert_true(bytes_equal(f->frames[0], text));
}

static void hang_up(struct fixture *f)
{
	close(f->peer);
	f->peer = -1;
}

static void teardown(struct fixture *f)
{
	pipe_close(f->pipe, on_closed, f);
	assert_false(f->closed);
	while (!f->closed)
		turn(f);
	assert_int_equal(uv_run(&f->loop, UV_RUN_DEFAULT), 0);
	assert_int_equal(uv_loop_close(&f->loop), 0);
	if (f->peer >= 0)
		close(f->peer);
	if (f->listener >= 0)
		close(f->listener);
	unlink(f->path);
	rmdir(f->folder);
	free(f->spare);
}

TEST(channel_pipe, subscribes_and_receives)
{
	struct fixture f;
	setup(&f, true);
	listen_there(&f);
	assert_int_equal(pipe_connect(f.pipe, f.address, NULL), 0);
	bring_up(&f, HELLO_SUB);
	HEAR(&f, "\0\1\1");
	SAY(&f, "\0\3one\0\3two\0\5th");
	expect(&f, "one");
	expect(&f, "two");
	assert_false(receive(&f));
	SAY(&f, "ree\1\1a\0\1b");
	expect(&f, "three");
	while (!receive(&f))
		turn(&f);
	assert_int_equal(f.n, 2);
	teardown(&f);
}

TEST(channel_pipe, what_it_read_into_waits_for_the_next)
{
	struct fixture f;
	setup(&f, true);
	listen_there(&f);
	assert_int_equal(pipe_connect(f.pipe, f.address, NULL), 0);
	bring_up(&f, HELLO_SUB);
	SAY(&f, "\0\3one");
	expect(&f, "one");
	assert_null(f.spare);
	assert_false(receive(&f));
	uint8_t *kept = f.spare;
	assert_non_null(kept);
	SAY(&f, "\0\3two");
	expect(&f, "two");
	assert_ptr_equal(f.frames[0].data, kept + 2);
	assert_null(f.spare);
	assert_false(receive(&f));
	assert_ptr_equal(f.spare, kept);
	teardown(&f);
}

TEST(channel_pipe, keeps_what_is_sent_before_anybody_listens)
{
	struct fixture f;
	const struct bytes frames[] = {{(const uint8_t *)"a", 1}, {(const uint8_t *)"", 0}};
	setup(&f, false);
	assert_int_equal(pipe_connect(f.pipe, f.address, NULL), 0);
	assert_int_equal(pipe_send(f.pipe, frames, 2, NULL), 0);
	listen_there(&f);
	bring_up(&f, HELLO_DEALER);
	HEAR(&f, "\1\1a\0\0");
	assert_int_equal(pipe_send(f.pipe, frames, 1, NULL), 0);
	HEAR(&f, "\0\1a");
	teardown(&f);
}

TEST(channel_pipe, a_large_message_goes_as_the_peer_takes_it)
{
	enum { LEN = 8 << 20 };
	struct fixture f;
	uint8_t *big = calloc(1, LEN);
	struct bytes frame = {big, LEN}, small = {(const uint8_t *)"then", 4};
	setup(&f, false);
	listen_there(&f);
	assert_int_equal(pipe_connect(f.pipe, f.address, NULL), 0);
	bring_up(&f, HELLO_DEALER);
	assert_int_equal(pipe_send(f.pipe, &frame, 1, NULL), 0);
	assert_int_equal(pipe_send(f.pipe, &small, 1, NULL), 0);
	HEAR(&f, "\2\0\0\0\0\0\x80\0\0");
	hear(&f, (const char *)big, LEN);
	HEAR(&f, "\0\4then");
	free(big);
	teardown(&f);
}

TEST(channel_pipe, a_large_frame_is_received_in_one_piece)
{
	enum { LEN = 1 << 20 };
	struct fixture f;
	uint8_t *big = malloc(LEN);
	memset(big, 'x', LEN);
	setup(&f, true);
	listen_there(&f);
	assert_int_equal(pipe_connect(f.pipe, f.address, NULL), 0);
	bring_up(&f, HELLO_SUB);
	SAY(&f, "\2\0\0\0\0\0\x10\0\0");
	for (size_t at = 0; at < LEN;) {
		ssize_t n = send(f.peer, big + at, LEN - at, MSG_DONTWAIT | MSG_NOSIGNAL);
		at += n > 0 ? (size_t)n : 0;
		assert_false(receive(&f) && at < LEN);
		turn(&f);
		if (at == LEN && f.n == 1)
			break;
	}
	while (f.n == 0 && !receive(&f))
		turn(&f);
	assert_int_equal(f.frames[0].len, LEN);
	assert_memory_equal(f.frames[0].data, big, LEN);
	free(big);
	teardown(&f);
}

TEST(channel_pipe, unwatched_it_reads_nothing_but_shakes_hands)
{
	struct fixture f;
	setup(&f, true);
	listen_there(&f);
	pipe_watch(f.pipe, false);
	assert_int_equal(pipe_connect(f.pipe, f.address, NULL), 0);
	bring_up(&f, HELLO_SUB);
	HEAR(&f, "\0\1\1"); /* else the kernel would drop what it sends meanwhile */
	SAY(&f, "\0\3one");
	unsigned changes = f.changes;
	for (unsigned i = 0; i < 100; i++)
		turn(&f);
	assert_int_equal(f.changes, changes);
	pipe_watch(f.pipe, true);
	while (f.changes == changes)
		turn(&f);
	expect(&f, "one");
	teardown(&f);
}

TEST(channel_pipe, comes_back_to_a_peer_that_went)
{
	struct fixture f;
	bool up = true;
	setup(&f, true);
	listen_there(&f);
	assert_int_equal(pipe_connect(f.pipe, f.address, NULL), 0);
	bring_up(&f, HELLO_SUB);
	HEAR(&f, "\0\1\1");
	SAY(&f, "\0\4last\0\4ha");
	hang_up(&f);
	expect(&f, "last");
	while (!pipe_changed(f.pipe, &up)) {
		assert_false(receive(&f));
		turn(&f);
	}
	assert_false(up);
	assert_false(pipe_is_broken(f.pipe));
	bring_up(&f, HELLO_SUB);
	HEAR(&f, "\0\1\1");
	SAY(&f, "\0\3new");
	expect(&f, "new");
	teardown(&f);
}

/* What a kernel said before its end is read, though what is sent to it finds nobody. */
TEST(channel_pipe, sending_to_one_that_went_loses_nothing_that_it_said)
{
	struct fixture f;
	const struct bytes frame = {(const uint8_t *)"a", 1};
	setup(&f, false);
	listen_there(&f);
	assert_int_equal(pipe_connect(f.pipe, f.address, NULL), 0);
	bring_up(&f, HELLO_DEALER);
	SAY(&f, "\0\4last");
	hang_up(&f);
	assert_int_equal(pipe_send(f.pipe, &frame, 1, NULL), 0);
	expect(&f, "last");
	teardown(&f);
}

static void expect_broken(struct fixture *f, const char *text, size_t len)
{
	struct bytes frame = {(const uint8_t *)"a", 1};
	say(f, text, len);
	while (!pipe_is_broken(f->pipe)) {
		(void)receive(f); /* what comes before it is not the matter */
		turn(f);
	}
	assert_int_equal(pipe_send(f->pipe, &frame, 1, NULL), E_GONE);
	assert_false(receive(f));
}

TEST(channel_pipe, a_peer_that_breaks_the_protocol_is_left)
{
	struct fixture f;
	setup(&f, true);
	listen_there(&f);
	assert_int_equal(pipe_connect(f.pipe, f.address, NULL), 0);
	bring_up(&f, HELLO_SUB);
	expect_broken(&f, "\0\2ok\2\0\0\0\0\0\x10\0\1", 13); /* a frame over the limit */
	teardown(&f);
	setup(&f, true);
	listen_there(&f);
	assert_int_equal(pipe_connect(f.pipe, f.address, NULL), 0);
	accept_one(&f, HELLO_SUB);
	expect_broken(&f, "HTTP/1.1 400", 12);
	teardown(&f);
}

TEST(channel_pipe, addresses_that_are_none)
{
	struct fixture f;
	char longer[256] = "ipc://";
	memset(longer + 6, 'x', 200);
	setup(&f, true);
	assert_int_equal(pipe_connect(f.pipe, "tcp://127.0.0.1:1", NULL), E_INVALID);
	assert_int_equal(pipe_connect(f.pipe, longer, NULL), E_INVALID);
	teardown(&f);
}

RUN(TEST_ROW(channel_pipe, subscribes_and_receives),
	TEST_ROW(channel_pipe, what_it_read_into_waits_for_the_next),
	TEST_ROW(channel_pipe, keeps_what_is_sent_before_anybody_listens),
	TEST_ROW(channel_pipe, a_large_message_goes_as_the_peer_takes_it),
	TEST_ROW(channel_pipe, a_large_frame_is_received_in_one_piece),
	TEST_ROW(channel_pipe, unwatched_it_reads_nothing_but_shakes_hands),
	TEST_ROW(channel_pipe, comes_back_to_a_peer_that_went),
	TEST_ROW(channel_pipe, sending_to_one_that_went_loses_nothing_that_it_said),
	TEST_ROW(channel_pipe, a_peer_that_breaks_the_protocol_is_left),
	TEST_ROW(channel_pipe, addresses_that_are_none))
