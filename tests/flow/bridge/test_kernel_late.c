/* A message that comes between the reading that finds nothing and the question whether the peer is
 * gone, which takes libzmq's signal with it. zmq_getsockopt is ours here, to hold the question up.
 */
#include <dlfcn.h>
#include <poll.h>
#include <zmq.h>

#include "tests/flow/bridge/fixture.h"

#define ARRIVES_MS 10000 /* a moment; failing, not passing, takes it */

typedef int (*getsockopt_fn)(void *socket, int option, void *value, size_t *size);

static struct script_kernel *answers; /* within the next question about a DEALER */

static getsockopt_fn real(void)
{
	void *at = dlsym(RTLD_NEXT, "zmq_getsockopt");
	getsockopt_fn fn;

	memcpy(&fn, &at, sizeof(fn)); /* C has no cast between the two */
	return fn;
}

static int number(void *socket, int option)
{
	int value = -1;
	size_t size = sizeof(value);

	assert_int_equal(real()(socket, option, &value, &size), 0);
	return value;
}

static void answer_within(void *asked)
{
	struct script_kernel *k = TAKE(answers);
	struct pollfd at = {.fd = number(asked, ZMQ_FD), .events = POLLIN};

	script_send(k, CHANNEL_SHELL, "execute_reply", k->last[CHANNEL_SHELL], "{}");
	assert_int_equal(poll(&at, 1, ARRIVES_MS), 1);
}

int zmq_getsockopt(void *socket, int option, void *value, size_t *size)
{
	if (answers && option == ZMQ_EVENTS && number(socket, ZMQ_TYPE) == ZMQ_DEALER)
		answer_within(socket);
	return real()(socket, option, value, size);
}

static bool request_came(struct fixture *fx)
{
	return fx->engine->kernel->requests[CHANNEL_SHELL] > 0;
}

static bool has_reply(struct fixture *fx)
{
	return fx->messages >= 1;
}

TEST(kernel_late, a_reply_amid_a_question_is_read)
{
	struct fixture fx;

	fixture_open(&fx);
	fx.engine->script.foreign = true;
	fixture_start(&fx);
	fx.engine->kernel->requests[CHANNEL_SHELL] = 0;
	send_request(&fx, CHANNEL_SHELL, "execute_request");
	fixture_run(&fx, request_came);
	answers = fx.engine->kernel;
	send_request(&fx, CHANNEL_SHELL, "execute_request");
	fixture_run(&fx, has_reply);
	assert_null(answers);
	assert_int_equal(fx.channel[0], CHANNEL_SHELL);
	fixture_close(&fx);
}

RUN(TEST_ROW(kernel_late, a_reply_amid_a_question_is_read))
