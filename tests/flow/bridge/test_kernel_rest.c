/* While a shell request runs its output is read every few milliseconds; everything else at once. */
#include <stdio.h>
#include <sys/ioctl.h>

#include "tests/flow/bridge/fixture.h"

static bool request_came(struct fixture *fx)
{
	return fx->engine->kernel->requests[CHANNEL_SHELL] > 0;
}

static bool has_one(struct fixture *fx)
{
	return fx->messages >= 1;
}

static bool has_two(struct fixture *fx)
{
	return fx->messages >= 2;
}

static bool has_three(struct fixture *fx)
{
	return fx->messages >= 3;
}

/* A kernel that has a request, at a time that stands still. */
static struct script_kernel *ask(struct fixture *fx)
{
	fixture_open(fx);
	fixture_start(fx);
	fx->frozen = true;
	fx->engine->kernel->requests[CHANNEL_SHELL] = 0;
	send_request(fx, CHANNEL_SHELL, "execute_request");
	fixture_run(fx, request_came);
	return fx->engine->kernel;
}

static void say(struct script_kernel *k, enum channel channel, const char *type)
{
	script_send(k, channel, type, k->last[CHANNEL_SHELL], "{}");
}

TEST(kernel_rest, output_waits_a_little_and_comes_together)
{
	struct fixture fx;
	struct script_kernel *k = ask(&fx);

	say(k, CHANNEL_IOPUB, "status");
	say(k, CHANNEL_IOPUB, "execute_input");
	fixture_turns(&fx, 50);
	assert_int_equal(fx.messages, 0);
	unsigned turns = fx.turns;
	fake_clock_advance(fx.clock, 5);
	fixture_run(&fx, has_two);
	assert_int_equal(fx.turns, turns + 1);

	/* It goes on so, and after a look in vain the next one comes at once. */
	say(k, CHANNEL_IOPUB, "stream");
	fixture_turns(&fx, 50);
	assert_int_equal(fx.messages, 2);
	fixture_pass(&fx, 20);
	fixture_run(&fx, has_three);
	fixture_pass(&fx, 20);
	fx.messages = 0;
	say(k, CHANNEL_IOPUB, "stream");
	fixture_run(&fx, has_one);
	fixture_close(&fx);
}

TEST(kernel_rest, a_reply_ends_it)
{
	struct fixture fx;
	struct script_kernel *k = ask(&fx);

	say(k, CHANNEL_IOPUB, "stream");
	fixture_turns(&fx, 50);
	assert_int_equal(fx.messages, 0);
	say(k, CHANNEL_SHELL, "execute_reply");
	fixture_run(&fx, has_two);
	assert_string_equal(fx.type[0], "stream");
	assert_string_equal(fx.type[1], "execute_reply");
	say(k, CHANNEL_IOPUB, "status");
	fixture_run(&fx, has_three);
	fixture_close(&fx);
}

TEST(kernel_rest, a_prompt_is_not_kept_waiting)
{
	struct fixture fx;
	struct script_kernel *k = ask(&fx);

	memcpy(k->last_ident[CHANNEL_STDIN], k->last_ident[CHANNEL_SHELL],
		sizeof(k->last_ident[CHANNEL_STDIN]));
	say(k, CHANNEL_IOPUB, "stream");
	fixture_turns(&fx, 50);
	say(k, CHANNEL_STDIN, "input_request");
	fixture_run(&fx, has_two);
	assert_string_equal(fx.type[0], "stream");
	assert_int_equal(fx.channel[1], CHANNEL_STDIN);
	fixture_close(&fx);
}

#define BURST 50 /* more than what it rests after, less than a turn's budget */
#define FDS   256

/* In the connections of this process. */
static int bytes_waiting(void)
{
	int total = 0, n;

	for (int fd = 0; fd < FDS; fd++)
		if (ioctl(fd, FIONREAD, &n) == 0)
			total += n;
	return total;
}

static int bytes_expected;

static bool all_lie_there(struct fixture *fx)
{
	(void)fx;
	return bytes_waiting() >= bytes_expected;
}

/* Returns when libzmq's thread has written them all: what lies there is one reading, and what
 * would come after it might be so little that the next message has to wait again. */
static void say_burst(struct fixture *fx, struct script_kernel *k)
{
	int before = bytes_waiting();

	bytes_expected = before + 1;
	say(k, CHANNEL_IOPUB, "stream");
	fixture_run(fx, all_lie_there);
	bytes_expected = before + BURST * (bytes_waiting() - before);
	for (int i = 1; i < BURST; i++)
		say(k, CHANNEL_IOPUB, "stream");
	fixture_run(fx, all_lie_there);
}

static bool has_the_burst(struct fixture *fx)
{
	return fx->messages >= BURST;
}

TEST(kernel_rest, after_a_burst_the_next_comes_at_once)
{
	struct fixture fx;
	struct script_kernel *k = ask(&fx);

	say_burst(&fx, k);
	assert_int_equal(fx.messages, 0);
	fake_clock_advance(fx.clock, 5);
	fixture_run(&fx, has_the_burst);
	fx.messages = 0;
	say(k, CHANNEL_IOPUB, "stream");
	fixture_run(&fx, has_one);
	fixture_close(&fx);
}

TEST(kernel_rest, what_comes_seldom_is_waited_for_awake)
{
	struct fixture fx;
	struct script_kernel *k = ask(&fx);

	fixture_pass(&fx, 20);
	say(k, CHANNEL_IOPUB, "stream");
	fixture_run(&fx, has_one);
	say(k, CHANNEL_IOPUB, "stream");
	fixture_run(&fx, has_two);

	/* The second came within a rest's time, so the third waits. */
	say(k, CHANNEL_IOPUB, "stream");
	fixture_turns(&fx, 50);
	assert_int_equal(fx.messages, 2);
	fake_clock_advance(fx.clock, 5);
	fixture_run(&fx, has_three);
	fixture_close(&fx);
}

TEST(kernel_rest, a_hold_outlasts_it)
{
	struct fixture fx;
	struct script_kernel *k = ask(&fx);

	say(k, CHANNEL_IOPUB, "stream");
	kernel_hold(fx.kernel, true);
	fixture_pass(&fx, 50);
	assert_int_equal(fx.messages, 0);
	kernel_hold(fx.kernel, false);
	fixture_run(&fx, has_one);
	fixture_close(&fx);
}

TEST(kernel_rest, it_ends_with_the_kernel)
{
	struct fixture fx;
	struct script_kernel *k = ask(&fx);

	say(k, CHANNEL_IOPUB, "stream");
	fx.frozen = false;
	fixture_close(&fx); /* while it rests; the sanitizer would see what is left */
}

RUN(TEST_ROW(kernel_rest, output_waits_a_little_and_comes_together),
	TEST_ROW(kernel_rest, a_reply_ends_it), TEST_ROW(kernel_rest, a_prompt_is_not_kept_waiting),
	TEST_ROW(kernel_rest, after_a_burst_the_next_comes_at_once),
	TEST_ROW(kernel_rest, what_comes_seldom_is_waited_for_awake),
	TEST_ROW(kernel_rest, a_hold_outlasts_it), TEST_ROW(kernel_rest, it_ends_with_the_kernel))
