/* Kernels that nobody has yet, and their hand-over; how many starts go on at the same time. */
#include <cjson/cJSON.h>

#include "tests/flow/bridge/fixture.h"

#define ID "11111111-2222-4333-8444-555555555555"

static unsigned early; /* what the watcher of a kernel without owner heard */

static void on_early(void *data, struct jmsg *m)
{
	(void)data, (void)m;
	early++;
}

static int start_unowned(struct fixture *fx, struct kernel **ret)
{
	const struct kernel_watcher watcher = {.on_ready = note_ready,
		.on_message = on_early,
		.on_turn = note_turn,
		.on_death = note_death,
		.on_notice = note_notice,
		.data = fx};
	const struct kernel_start start = {.spec = &fx->engine->spec};
	struct err err = {0};

	return kernel_start(fx->bridge, &start, &watcher, ret, &err);
}

static void open_with_ready_one(struct fixture *fx)
{
	fixture_open(fx);
	assert_int_equal(start_unowned(fx, &fx->kernel), 0);
	fixture_run(fx, is_ready);
	fx->ready = 0;
}

static int hand_over(struct fixture *fx, const char *env_text, struct err *err)
{
	const struct kernel_watcher watcher = {.on_ready = note_ready,
		.on_message = note_message,
		.on_turn = note_turn,
		.on_death = note_death,
		.on_notice = note_notice,
		.data = fx};
	cJSON *env = cJSON_Parse(env_text);
	const struct kernel_start start = {
		.id = ID, .owner = "ada", .spec = &fx->engine->spec, .env = env};
	int rc = kernel_hand_over(fx->kernel, &start, &watcher, err);

	cJSON_Delete(env);
	return rc;
}

static void take(struct fixture *fx)
{
	struct err err = {0};

	assert_int_equal(hand_over(fx, "{\"MINE\":\"1\"}", &err), 0);
	assert_int_equal(kernel_state(fx->kernel), KERNEL_STARTING);
	assert_int_equal(fx->ready, 0);
}

static void end_other(struct fixture *fx, struct kernel *k)
{
	fx->ended = 0;
	kernel_end(k, note_ended, fx);
	fixture_run(fx, is_ended);
	fx->ended = 0;
}

static bool took_one(struct fixture *fx)
{
	return fx->engine->kernel && fx->engine->kernel->requests[CHANNEL_SHELL] == 1;
}

static bool is_handed(struct fixture *fx)
{
	return fx->engine->handed > 0;
}

static bool launched_again(struct fixture *fx)
{
	return fx->engine->launched == 2;
}

static void assert_owned(struct fixture *fx)
{
	assert_string_equal(fx->engine->kernel_id, ID);
	assert_string_equal(fx->engine->kernel_env, "{\"MINE\":\"1\"}");
	assert_int_equal(fx->deaths, 0);
	assert_int_equal(fx->bridge->n_unowned, 0);
}

TEST(kernel_pool, hands_over_a_ready_one)
{
	struct fixture fx;

	open_with_ready_one(&fx);
	assert_string_equal(fx.engine->kernel_id, "");
	assert_int_equal(fx.engine->limited, 1); /* before anybody waits for it */
	take(&fx);
	send_request(&fx, CHANNEL_SHELL, "execute_request");
	fixture_run(&fx, is_ready);
	fixture_run(&fx, took_one);
	assert_owned(&fx);
	assert_int_equal(fx.engine->launched, 1);
	assert_int_equal(fx.engine->started, 1);
	assert_int_equal(fx.engine->limited, 1);
	assert_int_equal(kernel_state(fx.kernel), KERNEL_IDLE);
	fixture_close(&fx);
}

TEST(kernel_pool, sends_nothing_before_it_is_handed_over)
{
	struct fixture fx;

	open_with_ready_one(&fx);
	fx.engine->hangs_hand_over = true;
	take(&fx);
	send_request(&fx, CHANNEL_SHELL, "execute_request");
	send_request(&fx, CHANNEL_CONTROL, "debug_request");
	fixture_turns(&fx, 50);
	assert_int_equal(fx.engine->kernel->requests[CHANNEL_SHELL], 0);
	assert_int_equal(fx.engine->kernel->requests[CHANNEL_CONTROL], 0);
	assert_int_equal(fx.ready, 0);
	fixture_close(&fx);
}

TEST(kernel_pool, hands_over_one_that_starts_still)
{
	struct fixture fx;

	fixture_open(&fx);
	fx.engine->script.mute = true;
	assert_int_equal(start_unowned(&fx, &fx.kernel), 0);
	while (!fx.engine->kernel)
		fixture_turn(&fx);
	take(&fx);
	fx.engine->kernel->script.mute = false;
	fixture_run(&fx, is_ready);
	assert_owned(&fx);
	assert_int_equal(fx.engine->handed, 1);
	assert_int_equal(fx.engine->launched, 1);
	fixture_close(&fx);
}

/* Its line begins as that of any other kernel. */
TEST(kernel_pool, one_without_a_process_is_simply_started)
{
	struct fixture fx;

	fixture_open(&fx);
	assert_int_equal(start_unowned(&fx, &fx.kernel), 0);
	take(&fx);
	fixture_run(&fx, is_ready);
	assert_owned(&fx);
	assert_int_equal(fx.engine->handed, 0);
	fixture_close(&fx);
}

static void dies_on_the_way(struct fixture *fx, void (*how)(struct fixture *fx))
{
	open_with_ready_one(fx);
	fx->engine->hangs_hand_over = true;
	take(fx);
	send_request(fx, CHANNEL_SHELL, "execute_request");
	fixture_run(fx, is_handed);
	how(fx);
	fixture_run(fx, launched_again);
	fixture_run(fx, is_ready);
	fixture_run(fx, took_one);
	assert_owned(fx);
	fixture_close(fx);
}

static void exits(struct fixture *fx)
{
	fake_engine_exit(fx->engine, &(struct line_exit){.known = true, .signal = 9});
}

static void loses_slot(struct fixture *fx)
{
	fake_engine_lose_slot(fx->engine);
}

static void is_silent(struct fixture *fx)
{
	fixture_pass(fx, 2100);
}

TEST(kernel_pool, its_owner_does_not_see_it_die_on_the_way)
{
	static void (*const how[])(struct fixture * fx) = {exits, loses_slot, is_silent};

	for (size_t i = 0; i < ARRAY_LEN(how); i++) {
		struct fixture fx;

		dies_on_the_way(&fx, how[i]);
	}
}

TEST(kernel_pool, a_hand_over_that_cannot_be_said_gets_a_fresh_one)
{
	struct fixture fx;

	open_with_ready_one(&fx);
	fx.engine->fault = 1;
	take(&fx);
	fixture_run(&fx, is_ready);
	assert_true(fx.engine->fault_met);
	assert_owned(&fx);
	assert_int_equal(fx.engine->launched, 2);
	fixture_close(&fx);
}

TEST(kernel_pool, refuses_a_dead_one)
{
	struct fixture fx;
	struct err err = {0};

	open_with_ready_one(&fx);
	exits(&fx);
	fixture_run(&fx, is_dead);
	assert_int_equal(hand_over(&fx, "{}", &err), E_GONE);
	fixture_close(&fx);
}

TEST(kernel_pool, a_wrong_environment_leaves_it_nobodys)
{
	struct fixture fx;
	struct err err = {0};

	open_with_ready_one(&fx);
	assert_int_equal(hand_over(&fx, "{\"A\":1}", &err), E_INVALID);
	assert_int_equal(kernel_state(fx.kernel), KERNEL_IDLE);
	assert_int_equal(fx.bridge->n_unowned, 1);
	take(&fx);
	fixture_run(&fx, is_ready);
	fixture_close(&fx);
}

TEST(kernel_pool, restarts_in_place_as_its_owners)
{
	struct fixture fx;

	open_with_ready_one(&fx);
	take(&fx);
	fixture_run(&fx, is_ready);
	fx.ready = 0;
	kernel_restart(fx.kernel, note_answer, &fx);
	fixture_run(&fx, is_ready);
	assert_owned(&fx);
	assert_int_equal(fx.engine->handed, 1);
	assert_int_equal(fx.engine->started, 2);
	assert_int_equal(fx.engine->launched, 1);
	fixture_close(&fx);
}

TEST(kernel_pool, a_restart_on_the_way_is_the_hand_over_itself)
{
	struct fixture fx;

	open_with_ready_one(&fx);
	take(&fx);
	kernel_restart(fx.kernel, note_answer, &fx);
	fixture_run(&fx, is_ready);
	assert_int_equal(fx.answers, 1);
	assert_int_equal(fx.answer.code, 0);
	assert_int_equal(fx.engine->started, 1);
	fixture_close(&fx);
}

TEST(kernel_pool, an_image_that_cannot_is_told)
{
	struct fixture fx;

	fixture_open(&fx);
	fx.engine->no_pool = true;
	assert_int_equal(start_unowned(&fx, &fx.kernel), 0);
	fixture_run(&fx, is_dead);
	assert_non_null(strstr(fx.death.text, "an older image"));
	assert_int_equal(fx.engine->started, 0);
	fixture_close(&fx);
}

TEST(kernel_pool, what_it_says_to_nobody_is_dropped)
{
	struct fixture fx;

	open_with_ready_one(&fx);
	early = 0;
	script_send(fx.engine->kernel, CHANNEL_IOPUB, "stream", NULL, "{}");
	fixture_turns(&fx, 50);
	take(&fx);
	fixture_run(&fx, is_ready);
	assert_int_equal(early, 0);
	assert_int_equal(fx.messages, 0);
	fixture_close(&fx);
}

TEST(kernel_pool, does_not_count_for_the_limit)
{
	struct fixture fx;
	struct kernel *spare;
	struct err err = {0};

	fixture_open(&fx);
	fx.config.max_kernels = 1;
	assert_int_equal(start_unowned(&fx, &spare), 0);
	assert_int_equal(fixture_try_start(&fx, &err), 0);
	end_other(&fx, spare);
	fixture_close(&fx);
}

/* ---- how many at once ---- */

TEST(kernel_launch, no_more_than_so_many_at_once_and_owners_first)
{
	struct fixture fx;
	struct kernel *first, *second, *nobodys;

	fixture_open(&fx);
	fx.config.parallel_starts = 1;
	fx.engine->hangs_launch = true;
	assert_int_equal(start_unowned(&fx, &first), 0);
	assert_int_equal(start_unowned(&fx, &nobodys), 0);
	assert_int_equal(fixture_try_start(&fx, &(struct err){0}), 0);
	second = fx.kernel;
	fixture_turns(&fx, 5);
	assert_int_equal(fx.engine->launched, 1);
	assert_false(kernel_has_place(second));
	fx.engine->hangs_launch = false;
	end_other(&fx, first);
	assert_int_equal(fx.engine->launched, 2);
	assert_true(kernel_has_place(second));
	assert_false(kernel_has_place(nobodys));
	fixture_run(&fx, is_ready);
	assert_int_equal(fx.engine->launched, 3);
	end_other(&fx, nobodys);
	fixture_close(&fx);
}

TEST(kernel_launch, one_that_hangs_does_not_keep_the_others_waiting)
{
	struct fixture fx;
	struct kernel *hanging;

	fixture_open(&fx);
	fx.config.parallel_starts = 1;
	fx.engine->hangs_launch = true;
	assert_int_equal(start_unowned(&fx, &hanging), 0);
	fx.engine->hangs_launch = false;
	assert_int_equal(fixture_try_start(&fx, &(struct err){0}), 0);
	fixture_pass(&fx, 4900);
	assert_int_equal(fx.ready, 0);
	fixture_pass(&fx, 200);
	fixture_run(&fx, is_ready);
	end_other(&fx, hanging);
	fixture_close(&fx);
}

TEST(kernel_launch, one_that_waits_can_be_ended)
{
	struct fixture fx;
	struct kernel *first;

	fixture_open(&fx);
	fx.config.parallel_starts = 1;
	fx.engine->hangs_launch = true;
	assert_int_equal(start_unowned(&fx, &first), 0);
	assert_int_equal(fixture_try_start(&fx, &(struct err){0}), 0);
	end_other(&fx, fx.kernel);
	assert_int_equal(fx.engine->launched, 1);
	fx.kernel = first;
	fixture_close(&fx);
}

RUN(TEST_ROW(kernel_pool, hands_over_a_ready_one),
	TEST_ROW(kernel_pool, sends_nothing_before_it_is_handed_over),
	TEST_ROW(kernel_pool, hands_over_one_that_starts_still),
	TEST_ROW(kernel_pool, one_without_a_process_is_simply_started),
	TEST_ROW(kernel_pool, its_owner_does_not_see_it_die_on_the_way),
	TEST_ROW(kernel_pool, a_hand_over_that_cannot_be_said_gets_a_fresh_one),
	TEST_ROW(kernel_pool, refuses_a_dead_one),
	TEST_ROW(kernel_pool, a_wrong_environment_leaves_it_nobodys),
	TEST_ROW(kernel_pool, restarts_in_place_as_its_owners),
	TEST_ROW(kernel_pool, a_restart_on_the_way_is_the_hand_over_itself),
	TEST_ROW(kernel_pool, an_image_that_cannot_is_told),
	TEST_ROW(kernel_pool, what_it_says_to_nobody_is_dropped),
	TEST_ROW(kernel_pool, does_not_count_for_the_limit),
	TEST_ROW(kernel_launch, no_more_than_so_many_at_once_and_owners_first),
	TEST_ROW(kernel_launch, one_that_hangs_does_not_keep_the_others_waiting),
	TEST_ROW(kernel_launch, one_that_waits_can_be_ended))
