/* From start to ready, and what may come instead. */
#include <cjson/cJSON.h>
#include <stdio.h>

#include "kernel-bridge/kernel_internal.h"
#include "tests/flow/bridge/fixture.h"

TEST(kernel_start, becomes_ready)
{
	struct fixture fx;
	struct err err = {0};

	fixture_open(&fx);
	assert_int_equal(fixture_try_start(&fx, &err), 0);
	assert_int_equal(kernel_state(fx.kernel), KERNEL_STARTING);
	assert_int_equal(fx.ready, 0);
	fixture_run(&fx, is_ready);
	assert_int_equal(kernel_state(fx.kernel), KERNEL_IDLE);
	assert_int_equal(fx.engine->limited, 1);
	/* The bridge's own traffic is nobody's business. */
	fixture_turns(&fx, 50);
	assert_int_equal(fx.messages, 0);
	assert_int_equal(fx.ready, 1);
	fixture_close(&fx);
}

static bool asked_thrice(struct fixture *fx)
{
	return fx->engine->kernel && fx->engine->kernel->infos >= 3;
}

TEST(kernel_start, needs_iopub_too)
{
	struct fixture fx;
	struct err err = {0};

	fixture_open(&fx);
	fx.engine->script.deaf_iopub = true;
	assert_int_equal(fixture_try_start(&fx, &err), 0);
	fixture_run(&fx, asked_thrice);
	assert_int_equal(fx.ready, 0);
	/* Anything on iopub will do; it came before the kernel was ready, so nobody sees it. */
	script_send(fx.engine->kernel, CHANNEL_IOPUB, "status", NULL,
		"{\"execution_state\":\"starting\"}");
	fixture_run(&fx, is_ready);
	assert_int_equal(fx.messages, 0);
	fixture_close(&fx);
}

static bool heard(struct fixture *fx)
{
	return fx->kernel->reply && fx->kernel->heard;
}

/* The first cell may ask for input at once: a ROUTER drops what is for a peer that it does not know
 * yet. */
static void wait_for_stdin(bool foreign)
{
	struct fixture fx;
	struct err err = {0};

	fixture_open(&fx);
	fx.engine->script.foreign = foreign;
	fx.engine->script.deaf_stdin = true;
	assert_int_equal(fixture_try_start(&fx, &err), 0);
	send_request(&fx, CHANNEL_SHELL, "execute_request");
	fixture_run(&fx, heard);
	fx.frozen = true;
	fixture_turns(&fx, 50);
	assert_int_equal(fx.ready, 0);
	script_listen_stdin(fx.engine->kernel);
	fixture_run(&fx, is_ready);
	fx.frozen = false;
	struct script_kernel *k = fx.engine->kernel;
	while (!k->requests[CHANNEL_SHELL])
		fixture_turn(&fx);
	/* As ipykernel does: to the routing id that the shell request came from. */
	memcpy(k->last_ident[CHANNEL_STDIN], k->last_ident[CHANNEL_SHELL],
		sizeof(k->last_ident[CHANNEL_STDIN]));
	script_send(k, CHANNEL_STDIN, "input_request", k->last[CHANNEL_SHELL], "{}");
	while (fx.messages < 1)
		fixture_turn(&fx);
	assert_int_equal(fx.channel[0], CHANNEL_STDIN);
	fixture_close(&fx);
}

TEST(kernel_start, waits_for_stdin)
{
	wait_for_stdin(false);
}

TEST(kernel_start, waits_for_stdin_of_a_foreign_kernel)
{
	wait_for_stdin(true);
}

TEST(kernel_start, does_without_stdin_after_a_while)
{
	struct fixture fx;
	struct err err = {0};

	fixture_open(&fx);
	fx.engine->script.foreign = true;
	fx.engine->script.deaf_stdin = true;
	fx.config.start_timeout = 2000;
	assert_int_equal(fixture_try_start(&fx, &err), 0);
	fixture_run(&fx, heard);
	fixture_pass(&fx, 2900);
	assert_int_equal(fx.ready, 0);
	assert_int_equal(fx.deaths, 0);
	fixture_pass(&fx, 200);
	assert_int_equal(fx.ready, 1);
	/* The next line is waited for anew. */
	fx.engine->script.deaf_stdin = false;
	fx.ready = 0;
	kernel_restart(fx.kernel, note_answer, &fx);
	fixture_run(&fx, is_ready);
	fixture_close(&fx);
}

TEST(kernel_start, asks_a_foreign_kernel_on_shell)
{
	struct fixture fx;
	struct err err = {0};

	fixture_open(&fx);
	fx.engine->script.mute_control = true;
	assert_int_equal(fixture_try_start(&fx, &err), 0);
	fixture_run(&fx, is_ready);
	fixture_close(&fx);
}

TEST(kernel_start, speaks_curve)
{
	struct fixture fx;

	fixture_open(&fx);
	fx.engine->script.curve = true;
	fixture_start(&fx);
	send_request(&fx, CHANNEL_SHELL, "execute_request");
	while (!fx.engine->kernel->requests[CHANNEL_SHELL])
		fixture_turn(&fx);
	fixture_close(&fx);
}

TEST(kernel_start, gives_up_in_time)
{
	struct fixture fx;
	struct err err = {0};

	fixture_open(&fx);
	fx.engine->script.mute = true;
	fx.config.start_timeout = 2000;
	assert_int_equal(fixture_try_start(&fx, &err), 0);
	fixture_pass(&fx, 1900);
	assert_int_equal(fx.deaths, 0);
	fixture_pass(&fx, 200);
	assert_int_equal(fx.deaths, 1);
	assert_int_equal(fx.death.cause, DEATH_START);
	assert_string_equal(fx.death.text, "the kernel did not start: it was not ready within 2 s");
	assert_int_equal(kernel_state(fx.kernel), KERNEL_DEAD);
	fixture_turns(&fx, 5);
	assert_int_equal(fx.engine->removed, 1);
	fixture_close(&fx);
}

TEST(kernel_start, tells_an_exit_before_ready)
{
	struct fixture fx;
	struct err err = {0};

	fixture_open(&fx);
	fx.engine->script.mute = true;
	assert_int_equal(fixture_try_start(&fx, &err), 0);
	fixture_run(&fx, asked_thrice);
	fake_engine_exit(fx.engine, &(struct line_exit){.known = true, .code = 1});
	fixture_run(&fx, is_dead);
	assert_int_equal(fx.death.cause, DEATH_START);
	assert_int_equal(fx.death.code, 1);
	assert_non_null(strstr(fx.death.text, "exit code 1"));
	fixture_close(&fx);
}

TEST(kernel_start, keeps_what_is_sent_while_starting)
{
	struct fixture fx;
	struct err err = {0};

	fixture_open(&fx);
	assert_int_equal(fixture_try_start(&fx, &err), 0);
	send_request(&fx, CHANNEL_SHELL, "execute_request");
	send_request(&fx, CHANNEL_SHELL, "complete_request");
	fixture_run(&fx, is_ready);
	while (fx.engine->kernel->requests[CHANNEL_SHELL] < 2)
		fixture_turn(&fx);
	assert_string_equal(fx.engine->kernel->last[CHANNEL_SHELL]->msg_type, "complete_request");
	fixture_close(&fx);
}

static int start_with_env(struct fixture *fx, const char *name, const char *value, struct err *err)
{
	const struct kernel_watcher watcher = {.on_ready = note_ready, .data = fx};
	cJSON *env = cJSON_CreateObject();
	struct kernel_start start = {
		.id = "a", .owner = "owner", .spec = &fx->engine->spec, .env = env};
	int rc;

	if (value)
		cJSON_AddStringToObject(env, name, value);
	else
		cJSON_AddNumberToObject(env, name, 1);
	rc = kernel_start(fx->bridge, &start, &watcher, &fx->kernel, err);
	cJSON_Delete(env);
	return rc;
}

TEST(kernel_start, refuses_a_wrong_environment)
{
	struct fixture fx;
	struct err err = {0};
	char big[4098];

	memset(big, 'x', sizeof(big) - 1);
	big[sizeof(big) - 1] = '\0';
	fixture_open(&fx);
	assert_int_equal(start_with_env(&fx, "KERNEL_A", NULL, &err), E_INVALID);
	assert_int_equal(start_with_env(&fx, "KERNEL_A", big, &err), E_INVALID);
	assert_int_equal(fx.bridge->n_kernels, 0);
	big[4096] = '\0';
	assert_int_equal(start_with_env(&fx, "KERNEL_A", big, &err), 0);
	fixture_close(&fx);
}

TEST(kernel_start, has_a_limit)
{
	struct fixture fx;
	struct err err = {0};

	fixture_open(&fx);
	fx.config.max_kernels = 1;
	fixture_start(&fx);
	struct kernel *first = fx.kernel;
	assert_int_equal(fixture_try_start(&fx, &err), E_CAPACITY);
	fx.kernel = first;
	fixture_end(&fx);
	assert_int_equal(fixture_try_start(&fx, &err), 0);
	fixture_close(&fx);
}

TEST(kernel_start, uses_one_routing_id)
{
	struct fixture fx;

	fixture_open(&fx);
	fixture_start(&fx);
	send_request(&fx, CHANNEL_SHELL, "execute_request");
	send_request(&fx, CHANNEL_CONTROL, "debug_request");
	send_request(&fx, CHANNEL_STDIN, "input_reply");
	struct script_kernel *k = fx.engine->kernel;
	while (!k->requests[CHANNEL_SHELL] || !k->requests[CHANNEL_CONTROL] ||
		!k->requests[CHANNEL_STDIN])
		fixture_turn(&fx);
	assert_string_equal(k->last_ident[CHANNEL_SHELL], k->last_ident[CHANNEL_STDIN]);
	assert_string_equal(k->last_ident[CHANNEL_SHELL], k->last_ident[CHANNEL_CONTROL]);
	fixture_close(&fx);
}

TEST(kernel_start, reports)
{
	struct fixture fx;

	fixture_open(&fx);
	fixture_start(&fx);
	cJSON *report = kernel_report(fx.kernel);
	assert_string_equal(cJSON_GetObjectItem(report, "state")->valuestring, "idle");
	assert_int_equal(cJSON_GetObjectItem(report, "line")->valueint, 1);
	cJSON_Delete(report);
	fixture_close(&fx);
}

RUN(TEST_ROW(kernel_start, becomes_ready), TEST_ROW(kernel_start, needs_iopub_too),
	TEST_ROW(kernel_start, waits_for_stdin),
	TEST_ROW(kernel_start, waits_for_stdin_of_a_foreign_kernel),
	TEST_ROW(kernel_start, does_without_stdin_after_a_while),
	TEST_ROW(kernel_start, asks_a_foreign_kernel_on_shell),
	TEST_ROW(kernel_start, speaks_curve), TEST_ROW(kernel_start, gives_up_in_time),
	TEST_ROW(kernel_start, tells_an_exit_before_ready),
	TEST_ROW(kernel_start, keeps_what_is_sent_while_starting),
	TEST_ROW(kernel_start, refuses_a_wrong_environment), TEST_ROW(kernel_start, has_a_limit),
	TEST_ROW(kernel_start, uses_one_routing_id), TEST_ROW(kernel_start, reports))
