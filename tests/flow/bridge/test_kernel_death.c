/* How kernels die, and what is told of it. */
#include <signal.h>

#include "tests/flow/bridge/fixture.h"

static void start_and_exit(struct fixture *fx, const struct line_exit *exit)
{
	fixture_open(fx);
	fixture_start(fx);
	fake_engine_exit(fx->engine, exit);
	fixture_run(fx, is_dead);
	assert_int_equal(kernel_state(fx->kernel), KERNEL_DEAD);
	assert_int_equal(fx->deaths, 1);
}

TEST(kernel_death, by_exit)
{
	struct fixture fx;
	struct err err = {0};
	AUTO(jmsg_unrefp) struct jmsg *m = make_request(CHANNEL_SHELL, "execute_request");

	start_and_exit(&fx, &(struct line_exit){.known = true, .code = 3});
	assert_int_equal(fx.death.cause, DEATH_EXIT);
	assert_int_equal(fx.death.code, 3);
	assert_string_equal(fx.death.text, "the kernel ended with exit code 3");
	assert_int_equal(kernel_send(fx.kernel, m, &err), E_DEAD);
	fixture_close(&fx);
}

TEST(kernel_death, by_signal)
{
	struct fixture fx;

	start_and_exit(&fx, &(struct line_exit){.known = true, .signal = SIGKILL});
	assert_int_equal(fx.death.cause, DEATH_SIGNAL);
	assert_string_equal(fx.death.text, "the kernel was killed by signal 9 (SIGKILL)");
	fixture_close(&fx);
}

TEST(kernel_death, by_memory)
{
	struct fixture fx;

	start_and_exit(&fx, &(struct line_exit){.known = true, .signal = SIGKILL, .oom = true});
	assert_int_equal(fx.death.cause, DEATH_OOM);
	assert_string_equal(
		fx.death.text, "the kernel ran out of memory (limit 1 GiB) and was killed");
	fixture_close(&fx);
}

TEST(kernel_death, of_unknown_cause)
{
	struct fixture fx;

	start_and_exit(&fx, &(struct line_exit){.known = false});
	assert_int_equal(fx.death.cause, DEATH_UNKNOWN);
	fixture_close(&fx);
}

TEST(kernel_death, of_the_container)
{
	struct fixture fx;

	fixture_open(&fx);
	fixture_start(&fx);
	fake_engine_lose_slot(fx.engine);
	fixture_run(&fx, is_dead);
	assert_int_equal(fx.death.cause, DEATH_GONE);
	assert_non_null(strstr(fx.death.text, "the container went away"));
	fixture_turns(&fx, 3);
	assert_int_equal(fx.engine->removed, 1);
	fixture_close(&fx);
}

/* With a mark on our SUB what lies in the socket's buffer is lost with the kernel: libzmq drops it
 * if its own queue was full then. 50 fit below the mark. */
static void hear_last_words(bool foreign, unsigned n)
{
	struct fixture fx;

	fixture_open(&fx);
	fx.engine->script.foreign = foreign;
	fixture_start(&fx);
	/* The exit is known before the first of them is read. */
	fx.frozen = true;
	kernel_hold(fx.kernel, true);
	for (unsigned i = 0; i < n; i++)
		script_send(fx.engine->kernel, CHANNEL_IOPUB, "stream", NULL, "{}");
	fake_engine_exit(fx.engine, &(struct line_exit){.known = true, .code = 1});
	fixture_turns(&fx, 20);
	assert_int_equal(fx.messages, 0);
	/* Held, it waits however long it takes. */
	fixture_pass(&fx, 20000);
	assert_int_equal(fx.deaths, 0);
	kernel_hold(fx.kernel, false);
	while (fx.messages < n)
		fixture_turn(&fx);
	assert_int_equal(fx.deaths, 0);
	fx.frozen = false;
	fixture_run(&fx, is_dead);
	assert_int_equal(fx.messages, n);
	fixture_close(&fx);
}

TEST(kernel_death, last_words_arrive_first)
{
	hear_last_words(false, 50);
}

TEST(kernel_death, last_words_of_a_foreign_kernel_arrive_first)
{
	hear_last_words(true, 5000);
}

/* An engine that says nothing: sockets closed and no heartbeat. */
TEST(kernel_death, unseen_by_the_engine)
{
	struct fixture fx;

	fixture_open(&fx);
	fixture_start(&fx);
	fx.engine->tells_nothing = true;
	fake_engine_exit(fx.engine, &(struct line_exit){.known = true});
	fixture_hurry(&fx, is_dead);
	assert_int_equal(fx.death.cause, DEATH_GONE);
	assert_int_equal(fx.engine->killed, 1);
	fixture_close(&fx);
}

static bool is_relinked(struct fixture *fx)
{
	return fx->notices > 0;
}

/* Only iopub broke off: the kernel lives, whatever the heartbeat is up to. */
TEST(kernel_death, not_for_a_lost_socket)
{
	static uint8_t big[3 << 20];
	struct bytes frame = {big, sizeof(big)};
	struct fixture fx;

	fixture_open(&fx);
	fixture_start(&fx);
	fx.engine->tells_nothing = true;
	script_send_raw(fx.engine->kernel, CHANNEL_IOPUB, &frame, 1);
	fixture_run(&fx, is_relinked);
	while (fx.messages < 1) {
		script_send(fx.engine->kernel, CHANNEL_IOPUB, "stream", NULL, "{}");
		fixture_turn(&fx);
	}
	fixture_pass(&fx, 10000);
	assert_int_equal(fx.deaths, 0);
	fixture_close(&fx);
}

RUN(TEST_ROW(kernel_death, by_exit), TEST_ROW(kernel_death, by_signal),
	TEST_ROW(kernel_death, by_memory), TEST_ROW(kernel_death, of_unknown_cause),
	TEST_ROW(kernel_death, of_the_container), TEST_ROW(kernel_death, last_words_arrive_first),
	TEST_ROW(kernel_death, last_words_of_a_foreign_kernel_arrive_first),
	TEST_ROW(kernel_death, unseen_by_the_engine), TEST_ROW(kernel_death, not_for_a_lost_socket))
