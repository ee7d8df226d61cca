/* The end of a kernel, from whatever state and within its bounds. */
#include "tests/flow/bridge/fixture.h"

TEST(kernel_end, is_polite)
{
	struct fixture fx;

	fixture_open(&fx);
	fixture_start(&fx);
	fixture_end(&fx);
	assert_int_equal(fx.engine->killed, 0);
	assert_int_equal(fx.engine->removed, 1);
	assert_int_equal(fx.deaths, 0);
	fixture_close(&fx);
}

TEST(kernel_end, kills_in_time_and_removes)
{
	struct fixture fx;

	fixture_open(&fx);
	fx.engine->script.rude = true;
	fx.engine->hangs_kill = true;
	fixture_start(&fx);
	uint64_t began_ms = clock_now_ms(fx.clock);
	fx.frozen = true;
	kernel_end(fx.kernel, note_ended, &fx);
	fixture_pass(&fx, 5000);
	assert_int_equal(fx.ended, 1);
	assert_true(clock_now_ms(fx.clock) - began_ms <= 5000);
	assert_int_equal(fx.engine->killed, 1);
	assert_int_equal(fx.engine->removed, 1);
	assert_int_equal(fx.bridge->n_kernels, 0);
	fx.kernel = NULL;
	fixture_close(&fx);
}

TEST(kernel_end, silences_the_watcher)
{
	struct fixture fx;

	fixture_open(&fx);
	fx.engine->script.rude = true;
	fixture_start(&fx);
	kernel_end(fx.kernel, note_ended, &fx);
	script_send(fx.engine->kernel, CHANNEL_IOPUB, "stream", NULL, "{}");
	fixture_hurry(&fx, is_ended);
	assert_int_equal(fx.messages, 0);
	fixture_run(&fx, is_empty);
	fx.kernel = NULL;
	fixture_close(&fx);
}

TEST(kernel_end, while_launching)
{
	struct fixture fx;
	struct err err = {0};

	fixture_open(&fx);
	fx.engine->hangs_launch = true;
	assert_int_equal(fixture_try_start(&fx, &err), 0);
	fixture_end(&fx);
	assert_int_equal(fx.engine->removed, 1);
	fixture_close(&fx);
}

TEST(kernel_end, while_a_line_starts)
{
	struct fixture fx;
	struct err err = {0};

	fixture_open(&fx);
	fx.engine->hangs_start = true;
	assert_int_equal(fixture_try_start(&fx, &err), 0);
	fixture_turns(&fx, 5);
	assert_int_equal(fx.engine->started, 1);
	fixture_end(&fx);
	fixture_close(&fx);
}

TEST(kernel_end, of_the_dead_without_slot)
{
	struct fixture fx;

	fixture_open(&fx);
	fixture_start(&fx);
	fake_engine_lose_slot(fx.engine);
	fixture_run(&fx, is_dead);
	fixture_turns(&fx, 5);
	fixture_end(&fx);
	assert_int_equal(fx.engine->removed, 1);
	fixture_close(&fx);
}

TEST(kernel_end, answers_who_waits_for_a_restart)
{
	struct fixture fx;

	fixture_open(&fx);
	fixture_start(&fx);
	kernel_restart(fx.kernel, note_answer, &fx);
	kernel_end(fx.kernel, note_ended, &fx);
	assert_int_equal(fx.answers, 0);
	fixture_run(&fx, is_ended);
	assert_int_equal(fx.answers, 1);
	assert_int_equal(fx.answer.code, E_DEAD);
	fixture_run(&fx, is_empty);
	fx.kernel = NULL;
	fixture_close(&fx);
}

static void end_it(struct fixture *fx)
{
	kernel_end(fx->kernel, note_ended, fx);
}

static void end_at_message(struct fixture *fx, struct jmsg *m)
{
	(void)m;
	end_it(fx);
}

static void close_bridge(void *data)
{
	struct fixture *fx = data;

	fx->engine = NULL; /* the bridge's */
	bridge_close(fx->bridge, note_ended, fx);
}

/* Who is told that the last kernel has ended may close the bridge in the same breath. */
TEST(kernel_end, and_the_bridge_with_it)
{
	struct fixture fx;

	fixture_open(&fx);
	fixture_start(&fx);
	kernel_end(TAKE(fx.kernel), close_bridge, &fx);
	fixture_run(&fx, is_ended);
	fixture_done(&fx);
}

TEST(kernel_end, from_within_on_ready)
{
	struct fixture fx;
	struct err err = {0};

	fixture_open(&fx);
	fx.on_ready = end_it;
	assert_int_equal(fixture_try_start(&fx, &err), 0);
	fixture_run(&fx, is_ended);
	fixture_run(&fx, is_empty);
	fx.kernel = NULL;
	fixture_close(&fx);
}

TEST(kernel_end, from_within_on_message)
{
	struct fixture fx;

	fixture_open(&fx);
	fixture_start(&fx);
	fx.on_message = end_at_message;
	for (int i = 0; i < 10; i++)
		script_send(fx.engine->kernel, CHANNEL_IOPUB, "stream", NULL, "{}");
	fixture_run(&fx, is_ended);
	assert_int_equal(fx.messages, 1);
	fixture_run(&fx, is_empty);
	fx.kernel = NULL;
	fixture_close(&fx);
}

RUN(TEST_ROW(kernel_end, is_polite), TEST_ROW(kernel_end, kills_in_time_and_removes),
	TEST_ROW(kernel_end, silences_the_watcher), TEST_ROW(kernel_end, while_launching),
	TEST_ROW(kernel_end, while_a_line_starts), TEST_ROW(kernel_end, of_the_dead_without_slot),
	TEST_ROW(kernel_end, answers_who_waits_for_a_restart),
	TEST_ROW(kernel_end, and_the_bridge_with_it), TEST_ROW(kernel_end, from_within_on_ready),
	TEST_ROW(kernel_end, from_within_on_message))
