/* A new line in the same container, or in a new one where there is no other way. */
#include <signal.h>

#include "tests/flow/bridge/fixture.h"

static void restart_and_wait(struct fixture *fx)
{
	fx->answers = fx->ready = 0;
	kernel_restart(fx->kernel, note_answer, fx);
	assert_int_equal(fx->answers, 0);
	if (does_not_obey(fx))
		fixture_hurry(fx, is_answered);
	fixture_run(fx, is_ready);
	assert_int_equal(fx->answers, 1);
	assert_int_equal(fx->answer.code, 0);
	assert_int_equal(kernel_state(fx->kernel), KERNEL_IDLE);
}

static bool has_one(struct fixture *fx)
{
	return fx->messages >= 1;
}

TEST(kernel_restart, takes_the_same_slot)
{
	struct fixture fx;
	char old_key[65];

	fixture_open(&fx);
	fixture_start(&fx);
	memcpy(old_key, fx.engine->kernel->endpoints.key, sizeof(old_key));
	restart_and_wait(&fx);
	assert_int_equal(fx.engine->launched, 1);
	assert_int_equal(fx.engine->started, 2);
	assert_int_equal(fx.engine->killed, 0);
	assert_int_equal(fx.engine->kernel->line, 2);
	assert_string_not_equal(fx.engine->kernel->endpoints.key, old_key);
	assert_int_equal(fx.deaths, 0);
	assert_int_equal(fx.messages, 0);
	script_send(fx.engine->kernel, CHANNEL_IOPUB, "stream", NULL, "{}");
	fixture_run(&fx, has_one);
	fixture_close(&fx);
}

TEST(kernel_restart, kills_a_rude_kernel)
{
	struct fixture fx;

	fixture_open(&fx);
	fx.engine->script.rude = true;
	fixture_start(&fx);
	kernel_set_busy(fx.kernel, true);
	restart_and_wait(&fx);
	assert_int_equal(fx.engine->killed, 1);
	assert_int_equal(fx.engine->launched, 1);
	fixture_close(&fx);
}

TEST(kernel_restart, replaces_a_slot_that_cannot_be_killed)
{
	struct fixture fx;

	fixture_open(&fx);
	fx.engine->script.rude = true;
	fx.engine->hangs_kill = true;
	fixture_start(&fx);
	restart_and_wait(&fx);
	assert_int_equal(fx.engine->launched, 2);
	assert_int_equal(fx.engine->kernel->line, 1);
	fixture_close(&fx);
}

TEST(kernel_restart, revives_the_dead)
{
	struct fixture fx;

	fixture_open(&fx);
	fixture_start(&fx);
	fake_engine_exit(fx.engine, &(struct line_exit){.known = true, .code = 1});
	fixture_run(&fx, is_dead);
	restart_and_wait(&fx);
	assert_int_equal(fx.engine->launched, 1);
	fixture_close(&fx);
}

TEST(kernel_restart, launches_anew_when_the_slot_is_gone)
{
	struct fixture fx;

	fixture_open(&fx);
	fixture_start(&fx);
	fake_engine_lose_slot(fx.engine);
	fixture_run(&fx, is_dead);
	restart_and_wait(&fx);
	assert_int_equal(fx.engine->launched, 2);
	fixture_close(&fx);
}

TEST(kernel_restart, revives_one_that_died_under_an_earlier_gateway)
{
	struct fixture fx;

	fixture_open(&fx);
	assert_int_equal(fixture_begin(&fx, kernel_restore_dead, NULL), 0);
	fixture_turns(&fx, 10);
	assert_int_equal(kernel_state(fx.kernel), KERNEL_DEAD);
	assert_int_equal(fx.engine->launched + fx.deaths, 0);
	assert_false(kernel_has_place(fx.kernel));
	restart_and_wait(&fx);
	assert_int_equal(fx.engine->launched, 1);
	fixture_close(&fx);
}

TEST(kernel_restart, goes_on_when_the_slot_goes_meanwhile)
{
	struct fixture fx;

	fixture_open(&fx);
	fx.engine->script.rude = true;
	fixture_start(&fx);
	kernel_restart(fx.kernel, note_answer, &fx);
	fake_engine_lose_slot(fx.engine);
	fixture_run(&fx, is_ready);
	assert_int_equal(fx.engine->launched, 2);
	assert_int_equal(fx.deaths, 0);
	fixture_close(&fx);
}

TEST(kernel_restart, overtakes_a_death_that_is_not_told_yet)
{
	struct fixture fx;

	fixture_open(&fx);
	fixture_start(&fx);
	fx.frozen = true;
	fake_engine_exit(fx.engine, &(struct line_exit){.known = true});
	fixture_turns(&fx, 3);
	assert_int_equal(fx.deaths, 0);
	fx.frozen = false;
	restart_and_wait(&fx);
	assert_int_equal(fx.deaths, 0);
	fixture_close(&fx);
}

TEST(kernel_restart, answers_all_who_asked)
{
	struct fixture fx;

	fixture_open(&fx);
	fixture_start(&fx);
	kernel_restart(fx.kernel, note_answer, &fx);
	kernel_restart(fx.kernel, note_answer, &fx);
	fixture_run(&fx, is_ready);
	assert_int_equal(fx.answers, 2);
	assert_int_equal(fx.engine->started, 2);
	fixture_close(&fx);
}

TEST(kernel_restart, of_one_that_starts_waits_for_it)
{
	struct fixture fx;
	struct err err = {0};

	fixture_open(&fx);
	assert_int_equal(fixture_try_start(&fx, &err), 0);
	kernel_restart(fx.kernel, note_answer, &fx);
	fixture_run(&fx, is_ready);
	assert_int_equal(fx.answers, 1);
	assert_int_equal(fx.engine->started, 1);
	fixture_close(&fx);
}

TEST(kernel_restart, that_fails_is_answered_and_dead)
{
	struct fixture fx;

	fixture_open(&fx);
	fixture_start(&fx);
	fake_engine_exit(fx.engine, &(struct line_exit){.known = true});
	fixture_run(&fx, is_dead);
	fx.deaths = 0;
	fx.engine->fault = 1;
	kernel_restart(fx.kernel, note_answer, &fx);
	assert_int_equal(fx.answers, 0);
	fixture_run(&fx, is_dead);
	assert_int_equal(fx.answers, 1);
	assert_int_equal(fx.answer.code, E_DEAD);
	assert_int_equal(kernel_state(fx.kernel), KERNEL_DEAD);
	fixture_close(&fx);
}

TEST(kernel_restart, sends_what_came_meanwhile_to_the_new_line)
{
	struct fixture fx;

	fixture_open(&fx);
	fixture_start(&fx);
	kernel_restart(fx.kernel, note_answer, &fx);
	send_request(&fx, CHANNEL_SHELL, "execute_request");
	fixture_run(&fx, is_ready);
	while (!fx.engine->kernel->requests[CHANNEL_SHELL])
		fixture_turn(&fx);
	assert_int_equal(fx.engine->kernel->line, 2);
	fixture_close(&fx);
}

RUN(TEST_ROW(kernel_restart, takes_the_same_slot), TEST_ROW(kernel_restart, kills_a_rude_kernel),
	TEST_ROW(kernel_restart, replaces_a_slot_that_cannot_be_killed),
	TEST_ROW(kernel_restart, revives_the_dead),
	TEST_ROW(kernel_restart, launches_anew_when_the_slot_is_gone),
	TEST_ROW(kernel_restart, revives_one_that_died_under_an_earlier_gateway),
	TEST_ROW(kernel_restart, goes_on_when_the_slot_goes_meanwhile),
	TEST_ROW(kernel_restart, overtakes_a_death_that_is_not_told_yet),
	TEST_ROW(kernel_restart, answers_all_who_asked),
	TEST_ROW(kernel_restart, of_one_that_starts_waits_for_it),
	TEST_ROW(kernel_restart, that_fails_is_answered_and_dead),
	TEST_ROW(kernel_restart, sends_what_came_meanwhile_to_the_new_line))
