/* Interrupts: message, signal, notice; and never the next cell. */
#include "tests/flow/bridge/fixture.h"

static void start_busy(struct fixture *fx, bool deaf)
{
	fixture_open(fx);
	fx->engine->script.ignores_interrupt = deaf;
	fixture_start(fx);
	kernel_set_busy(fx->kernel, true);
	fx->frozen = true;
}

static bool asked_to_interrupt(struct fixture *fx)
{
	const struct jmsg *m = fx->engine->kernel->last[CHANNEL_CONTROL];

	return m && strcmp(m->msg_type, "interrupt_request") == 0;
}

TEST(kernel_interrupt, goes_by_message_first)
{
	struct fixture fx;

	start_busy(&fx, false);
	kernel_interrupt(fx.kernel, note_answer, &fx);
	assert_int_equal(fx.answers, 0);
	fixture_run(&fx, asked_to_interrupt);
	fixture_run(&fx, is_answered);
	assert_int_equal(fx.answer.code, 0);
	assert_int_equal(fx.engine->signals, 0);
	kernel_set_busy(fx.kernel, false);
	fixture_pass(&fx, 10000);
	assert_int_equal(fx.engine->signals, 0);
	assert_int_equal(fx.notices, 0);
	assert_int_equal(fx.messages, 0);
	fixture_close(&fx);
}

TEST(kernel_interrupt, escalates_while_busy)
{
	struct fixture fx;

	start_busy(&fx, true);
	kernel_interrupt(fx.kernel, note_answer, &fx);
	fixture_pass(&fx, 1990);
	assert_int_equal(fx.engine->signals, 0);
	/* A second try does not put it off. */
	kernel_interrupt(fx.kernel, note_answer, &fx);
	fixture_pass(&fx, 20);
	assert_int_equal(fx.engine->signals, 1);
	fixture_pass(&fx, 4970);
	assert_int_equal(fx.notices, 0);
	fixture_pass(&fx, 50);
	assert_int_equal(fx.notices, 1);
	fixture_pass(&fx, 20000);
	assert_int_equal(fx.engine->signals, 1);
	assert_int_equal(fx.notices, 1);
	fixture_close(&fx);
}

/* Pages on a direct connection may ask the kernel themselves, on control. */
TEST(kernel_interrupt, of_a_client_escalates_too)
{
	struct fixture fx;
	struct err err;
	AUTO(jmsg_unrefp) struct jmsg *m = NULL;

	start_busy(&fx, true);
	assert_int_equal(
		jmsg_make(CHANNEL_CONTROL, "interrupt_request", "s", NULL, "{}", &m, &err), 0);
	assert_int_equal(kernel_send(fx.kernel, m, &err), 0);
	fixture_pass(&fx, 1990);
	assert_int_equal(fx.engine->signals, 0);
	fixture_pass(&fx, 20);
	assert_int_equal(fx.engine->signals, 1);
	fixture_close(&fx);
}

TEST(kernel_interrupt, goes_by_signal_where_the_spec_says_so)
{
	struct fixture fx;

	start_busy(&fx, true);
	fx.engine->spec.interrupt_mode = INTERRUPT_SIGNAL;
	kernel_interrupt(fx.kernel, note_answer, &fx);
	assert_int_equal(fx.engine->signals, 1);
	fixture_pass(&fx, 5100);
	assert_int_equal(fx.engine->signals, 1);
	assert_int_equal(fx.notices, 1);
	fixture_close(&fx);
}

/* Field case 23: the cell ends right at the limit, the next one follows at once. */
TEST(kernel_interrupt, never_hits_the_next_cell)
{
	struct fixture fx;

	start_busy(&fx, true);
	kernel_interrupt(fx.kernel, note_answer, &fx);
	fixture_run(&fx, asked_to_interrupt);
	kernel_set_busy(fx.kernel, false);
	send_request(&fx, CHANNEL_SHELL, "execute_request");
	kernel_set_busy(fx.kernel, true);
	fixture_turns(&fx, 50);
	/* Not sent before the interrupt was answered... */
	assert_int_equal(fx.engine->kernel->requests[CHANNEL_SHELL], 0);
	script_send(fx.engine->kernel, CHANNEL_CONTROL, "interrupt_reply",
		fx.engine->kernel->last[CHANNEL_CONTROL], "{}");
	while (!fx.engine->kernel->requests[CHANNEL_SHELL])
		fixture_turn(&fx);
	/* ...and no signal follows it. */
	fixture_pass(&fx, 10000);
	assert_int_equal(fx.engine->signals, 0);
	fixture_close(&fx);
}

TEST(kernel_interrupt, unanswered_holds_a_cell_for_a_moment_only)
{
	struct fixture fx;

	start_busy(&fx, true);
	kernel_interrupt(fx.kernel, note_answer, &fx);
	kernel_set_busy(fx.kernel, false);
	send_request(&fx, CHANNEL_SHELL, "execute_request");
	send_request(&fx, CHANNEL_SHELL, "complete_request");
	fixture_pass(&fx, 1100);
	while (fx.engine->kernel->requests[CHANNEL_SHELL] < 2)
		fixture_turn(&fx);
	assert_string_equal(fx.engine->kernel->last[CHANNEL_SHELL]->msg_type, "complete_request");
	fixture_close(&fx);
}

TEST(kernel_interrupt, of_the_dead_is_refused)
{
	struct fixture fx;

	fixture_open(&fx);
	fixture_start(&fx);
	fake_engine_exit(fx.engine, &(struct line_exit){.known = true});
	fixture_run(&fx, is_dead);
	kernel_interrupt(fx.kernel, note_answer, &fx);
	fixture_run(&fx, is_answered);
	assert_int_equal(fx.answer.code, E_DEAD);
	fixture_close(&fx);
}

TEST(kernel_interrupt, ends_with_the_line)
{
	struct fixture fx;

	start_busy(&fx, true);
	kernel_interrupt(fx.kernel, note_answer, &fx);
	kernel_restart(fx.kernel, note_answer, &fx);
	fixture_run(&fx, is_ready);
	kernel_set_busy(fx.kernel, true);
	fixture_pass(&fx, 10000);
	assert_int_equal(fx.engine->signals, 0);
	assert_int_equal(fx.notices, 0);
	fixture_close(&fx);
}

RUN(TEST_ROW(kernel_interrupt, goes_by_message_first),
	TEST_ROW(kernel_interrupt, escalates_while_busy),
	TEST_ROW(kernel_interrupt, of_a_client_escalates_too),
	TEST_ROW(kernel_interrupt, goes_by_signal_where_the_spec_says_so),
	TEST_ROW(kernel_interrupt, never_hits_the_next_cell),
	TEST_ROW(kernel_interrupt, unanswered_holds_a_cell_for_a_moment_only),
	TEST_ROW(kernel_interrupt, of_the_dead_is_refused),
	TEST_ROW(kernel_interrupt, ends_with_the_line))
