/* What a message that comes by itself costs the loop in system calls. */
#include <stdio.h>
#include <sys/epoll.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "tests/flow/bridge/fixture.h"

#define MESSAGES 20

static unsigned changes; /* of what the loop's thread watches */

/* In the place of libc's, for libuv; libzmq's thread has an epoll of its own. */
int epoll_ctl(int epfd, int op, int fd, struct epoll_event *event)
{
	if (gettid() == getpid())
		changes++;
	return (int)syscall(SYS_epoll_ctl, epfd, op, fd, event);
}

static bool has_one(struct fixture *fx)
{
	return fx->messages >= 1;
}

static bool request_came(struct fixture *fx)
{
	return fx->engine->kernel->requests[CHANNEL_SHELL] > 0;
}

/* A cell that runs and prints now and then. */
static void print_seldom(struct fixture *fx)
{
	fixture_start(fx);
	fx->frozen = true;
	fx->engine->kernel->requests[CHANNEL_SHELL] = 0;
	send_request(fx, CHANNEL_SHELL, "execute_request");
	fixture_run(fx, request_came);
	fixture_pass(fx, 20);
	changes = 0;
	for (int i = 0; i < MESSAGES; i++) {
		struct script_kernel *k = fx->engine->kernel;

		fixture_pass(fx, 10);
		fx->messages = 0;
		script_send(k, CHANNEL_IOPUB, "stream", k->last[CHANNEL_SHELL], "{}");
		fixture_run(fx, has_one);
	}
	assert_int_equal(changes, 0);
	fx->frozen = false;
	fixture_close(fx);
}

TEST(kernel_wakes, a_pipe_stays_watched)
{
	struct fixture fx;

	fixture_open(&fx);
	print_seldom(&fx);
}

TEST(kernel_wakes, a_socket_of_libzmq_stays_watched)
{
	struct fixture fx;

	fixture_open(&fx);
	fx.engine->script.foreign = true;
	print_seldom(&fx);
}

RUN(TEST_ROW(kernel_wakes, a_pipe_stays_watched),
	TEST_ROW(kernel_wakes, a_socket_of_libzmq_stays_watched))
