/* Every call to the engine fails in turn: whatever happens, everybody is answered once, nothing is
 * left behind, and the kernel says what it is. */
#include "tests/flow/bridge/fixture.h"

static bool is_settled(struct fixture *fx)
{
	enum kernel_state state = kernel_state(fx->kernel);

	return state == KERNEL_IDLE || (state == KERNEL_DEAD && fx->deaths > 0);
}

static void restart_once(struct fixture *fx)
{
	fx->answers = fx->deaths = 0;
	kernel_restart(fx->kernel, note_answer, fx);
	if (does_not_obey(fx))
		fixture_hurry(fx, is_answered);
	fixture_run(fx, is_answered);
	fixture_run(fx, is_settled);
	assert_int_equal(fx->answers, 1);
}

static void interrupt_once(struct fixture *fx)
{
	fx->answers = 0;
	kernel_set_busy(fx->kernel, true);
	kernel_interrupt(fx->kernel, note_answer, fx);
	fixture_pass(fx, 8000);
	assert_int_equal(fx->answers, 1);
	kernel_set_busy(fx->kernel, false);
}

static void one_life(struct fixture *fx)
{
	struct err err = {0};

	if (fixture_try_start(fx, &err) < 0) {
		assert_int_equal(fx->bridge->n_kernels, 0);
		fx->kernel = NULL;
		return;
	}
	fixture_run(fx, is_settled);
	interrupt_once(fx);
	restart_once(fx);
	fx->engine->script.rude = true;
	restart_once(fx);
	restart_once(fx);
	fixture_end(fx);
	assert_int_equal(fx->engine->launched, fx->engine->removed);
}

TEST(kernel_faults, each_in_turn)
{
	bool met = true;

	for (int nth = 1; met; nth++) {
		struct fixture fx;

		fixture_open(&fx);
		fx.engine->script.ignores_interrupt = true;
		fx.engine->fault = nth;
		one_life(&fx);
		met = fx.engine->fault_met;
		assert_true(nth > 6 || met);
		fixture_close(&fx);
	}
}

RUN(TEST_ROW(kernel_faults, each_in_turn))
