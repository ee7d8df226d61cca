/* A kernel that is left and taken up, with every call to the engine failing in turn: it is ready or
 * dead or was never taken, everybody is answered once, and no slot is forgotten. */
#include "tests/flow/bridge/adopt_fixture.h"

static bool is_settled(struct fixture *fx)
{
	enum kernel_state state = kernel_state(fx->kernel);

	return state == KERNEL_IDLE || (state == KERNEL_DEAD && fx->deaths > 0);
}

static bool is_asked_or_settled(struct fixture *fx)
{
	return adopt_is_asked(fx) || is_settled(fx);
}

/* False: the fault was met on the way. */
static bool leave(struct fixture *fx, cJSON **ret)
{
	struct err err = {0};

	if (fixture_try_start(fx, &err) < 0) {
		fx->kernel = NULL;
		return false;
	}
	fixture_run(fx, is_settled);
	*ret = kernel_record(fx->kernel);
	if (kernel_leave(fx->kernel)) {
		fx->kernel = NULL;
		return true;
	}
	cJSON_Delete(*ret);
	fixture_end(fx);
	return false;
}

static void restart_once(struct fixture *fx)
{
	fx->answers = fx->deaths = 0;
	kernel_restart(fx->kernel, note_answer, fx);
	fixture_run(fx, is_answered);
	fixture_run(fx, is_settled);
	assert_int_equal(fx->answers, 1);
}

static void one_life(struct fixture *fx)
{
	struct err err = {0};
	cJSON *row;

	if (!leave(fx, &row))
		return;
	fx->ready = fx->deaths = 0;
	if (adopt_try(fx, row, &err) < 0) {
		fx->engine->removed++; /* the sweep's, which knows it by its label */
		return;
	}
	fixture_run(fx, is_asked_or_settled);
	adopt_keeps(fx, "one");
	fake_engine_kept_end(fx->engine, 0);
	fixture_run(fx, is_settled);
	assert_int_equal(fx->ready + fx->deaths, 1);
	restart_once(fx);
	fixture_end(fx);
}

TEST(kernel_adopt_faults, each_in_turn)
{
	bool met = true;

	for (int nth = 1; met; nth++) {
		struct fixture fx;

		fixture_open(&fx);
		fx.engine->fault = nth;
		one_life(&fx);
		met = fx.engine->fault_met;
		assert_true(nth > 5 || met);
		assert_int_equal(fx.bridge->n_kernels, 0);
		assert_int_equal(fx.engine->launched, fx.engine->removed);
		fixture_close(&fx);
	}
}

RUN(TEST_ROW(kernel_adopt_faults, each_in_turn))
