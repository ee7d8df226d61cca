/* A line whose time is up: killed, dead in any case, and looked for from outside. */
#include "tests/flow/bridge/fixture.h"

struct looked {
	struct fixture fx;
	unsigned n;
	int code;
	char text[512];
};

static void on_looked(void *data, const struct err *left)
{
	struct looked *l = data;

	l->n++;
	l->code = left ? left->code : 0;
	snprintf(l->text, sizeof(l->text), "%s", left ? left->text : "");
}

static bool is_known(struct fixture *fx)
{
	return CONTAINER_OF(fx, struct looked, fx)->n > 0;
}

static struct fixture *open_kernel(struct looked *l)
{
	*l = (struct looked){0};
	fixture_open(&l->fx);
	fixture_start(&l->fx);
	kernel_set_busy(l->fx.kernel, true);
	return &l->fx;
}

/* Up to its death. */
static struct fixture *open_killed(struct looked *l)
{
	struct fixture *fx = open_kernel(l);

	kernel_kill(fx->kernel);
	fixture_run(fx, is_dead);
	assert_int_equal(fx->engine->killed, 1);
	assert_int_equal(fx->deaths, 1);
	assert_true(kernel_has_place(fx->kernel));
	return fx;
}

static void look(struct looked *l)
{
	l->n = 0;
	kernel_look(l->fx.kernel, on_looked, l);
	assert_int_equal(l->n, 0);
}

TEST(kernel_limit, nothing_is_left)
{
	struct looked l;
	struct fixture *fx = open_killed(&l);

	look(&l);
	fixture_run(fx, is_known);
	assert_int_equal(l.code, 0);
	assert_int_equal(fx->engine->looks, 1);
	assert_true(kernel_has_place(fx->kernel));
	assert_int_equal(fx->engine->removed, 0);
	fixture_close(fx);
}

TEST(kernel_limit, what_goes_in_time_costs_nothing)
{
	struct looked l;
	struct fixture *fx = open_killed(&l);

	fx->engine->stays = "a process";
	look(&l);
	fixture_pass(fx, 300);
	assert_int_equal(l.n, 0);
	assert_true(fx->engine->looks > 1);
	fx->engine->stays = NULL;
	fixture_pass(fx, 60);
	fixture_run(fx, is_known);
	assert_int_equal(l.code, 0);
	assert_true(kernel_has_place(fx->kernel));
	fixture_close(fx);
}

TEST(kernel_limit, what_stays_costs_the_container)
{
	struct looked l;
	struct fixture *fx = open_killed(&l);

	fx->engine->stays = "a process";
	look(&l);
	fixture_pass(fx, KERNEL_CLEAN_MS + 100);
	fixture_run(fx, is_known);
	assert_int_equal(l.code, E_BUSY);
	assert_string_equal(l.text, "a process");
	assert_false(kernel_has_place(fx->kernel));
	fixture_turns(fx, 3);
	assert_int_equal(fx->engine->removed, 1);
	fx->ready = 0;
	kernel_restart(fx->kernel, note_answer, fx);
	fixture_run(fx, is_ready);
	assert_int_equal(fx->engine->launched, 2);
	fixture_close(fx);
}

TEST(kernel_limit, an_engine_that_cannot_say_is_no_proof)
{
	struct looked l;
	struct fixture *fx = open_killed(&l);

	fixture_pass(fx, KERNEL_CLEAN_MS);
	fx->engine->fault = 1;
	look(&l);
	fixture_run(fx, is_known);
	assert_int_equal(l.code, E_BUSY);
	assert_non_null(strstr(l.text, "injected fault"));
	assert_false(kernel_has_place(fx->kernel));
	fixture_close(fx);
}

TEST(kernel_limit, one_that_cannot_be_killed_is_dead_all_the_same)
{
	struct looked l;
	struct fixture *fx = open_kernel(&l);

	fx->engine->hangs_kill = true;
	kernel_kill(fx->kernel);
	fixture_pass(fx, KERNEL_CLEAN_MS - 10);
	assert_int_equal(fx->deaths, 0);
	fixture_pass(fx, 10);
	fixture_run(fx, is_dead);
	assert_non_null(strstr(fx->death.text, "could not be killed"));
	assert_false(kernel_has_place(fx->kernel));
	look(&l);
	fixture_run(fx, is_known);
	assert_int_equal(l.code, E_GONE);
	fixture_close(fx);
}

TEST(kernel_limit, a_restart_or_an_end_comes_first)
{
	struct looked l;
	struct fixture *fx = open_killed(&l);

	fx->engine->hangs_look = true;
	look(&l);
	fx->ready = 0;
	kernel_restart(fx->kernel, note_answer, fx);
	fixture_run(fx, is_known);
	assert_int_equal(l.code, E_DEAD);
	fixture_run(fx, is_ready);
	kernel_set_busy(fx->kernel, true);
	fixture_pass(fx, 2 * KERNEL_CLEAN_MS); /* the new line is not the one that was killed */
	assert_int_equal(fx->deaths, 1);
	kernel_kill(fx->kernel);
	fixture_run(fx, is_dead);
	look(&l);
	fixture_close(fx);
	assert_int_equal(l.n, 1);
	assert_int_equal(l.code, E_DEAD);
}

TEST(kernel_limit, its_container_goes_meanwhile)
{
	struct looked l;
	struct fixture *fx = open_killed(&l);

	fx->engine->hangs_look = true;
	look(&l);
	fake_engine_lose_slot(fx->engine);
	fixture_run(fx, is_known);
	assert_int_equal(l.code, E_GONE);
	fixture_close(fx);
}

TEST(kernel_limit, of_what_does_not_run)
{
	struct looked l;
	struct fixture *fx = open_killed(&l);

	kernel_kill(fx->kernel); /* it is dead */
	assert_int_equal(fx->engine->killed, 1);
	fx->ready = 0;
	kernel_restart(fx->kernel, note_answer, fx);
	fixture_run(fx, is_ready);
	look(&l);
	fixture_run(fx, is_known);
	assert_int_equal(l.code, E_DEAD);
	fixture_close(fx);
}

RUN(TEST_ROW(kernel_limit, nothing_is_left),
	TEST_ROW(kernel_limit, what_goes_in_time_costs_nothing),
	TEST_ROW(kernel_limit, what_stays_costs_the_container),
	TEST_ROW(kernel_limit, an_engine_that_cannot_say_is_no_proof),
	TEST_ROW(kernel_limit, one_that_cannot_be_killed_is_dead_all_the_same),
	TEST_ROW(kernel_limit, a_restart_or_an_end_comes_first),
	TEST_ROW(kernel_limit, its_container_goes_meanwhile),
	TEST_ROW(kernel_limit, of_what_does_not_run))
