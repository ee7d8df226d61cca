/* Lines of the engine `process`: start, signal, exit, kill, removal. */
#include "tests/unit/process_fixture.h"

TEST(process, exit_code_and_last_words_are_told)
{
	struct fixture fx;
	struct kernelspec *spec = given_spec("echo first; echo 'no module' >&2; exit 3", "");

	setup(&fx);
	given_slot(&fx, spec);
	start_line(&fx, spec, 1, NULL);
	wait_line(&fx, &fx.exited, 1);
	assert_true(fx.exit.known);
	assert_int_equal(fx.exit.code, 3);
	assert_int_equal(fx.exit.signal, 0);
	assert_false(fx.exit.oom);
	assert_string_equal(fx.exit.text, "no module");
	assert_false(exists(&fx, "process/kernel-" ID "-1.json"));
	assert_false(exists(&fx, "process/kernel-" ID "-1.log"));
	assert_false(exists(&fx, "process/kernel-" ID "-1.pid"));
	spec_free(spec);
	teardown(&fx);
}

TEST(process, what_a_kernel_said_before_it_was_ready_is_no_reason_of_its_death)
{
	struct fixture fx;
	struct kernelspec *spec;
	char script[1024], path[256], text[8] = {0};
	int fd;

	setup(&fx);
	path_of(&fx, "said", path);
	assert_int_equal(mkfifo(path, 0600), 0);
	(void)snprintf(script, sizeof(script), "echo hello; echo go >%s; read line <%s; exit 4",
		path, path);
	spec = given_spec(script, "");
	given_slot(&fx, spec);
	start_line(&fx, spec, 1, NULL);
	wait_line(&fx, &fx.started, 1);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	assert_int_equal(read(fd, text, 3), 3);
	assert_int_equal(close(fd), 0);
	fx.engine->ops->limit(fx.slot);
	fd = open(path, O_WRONLY | O_CLOEXEC);
	assert_int_equal(write(fd, "on\n", 3), 3);
	assert_int_equal(close(fd), 0);
	wait_line(&fx, &fx.exited, 1);
	assert_int_equal(fx.exit.code, 4);
	assert_string_equal(fx.exit.text, "");
	spec_free(spec);
	teardown(&fx);
}

TEST(process, a_program_that_is_not_there_fails_to_start)
{
	struct fixture fx;
	struct kernelspec *spec = NULL;

	setup(&fx);
	assert_int_equal(spec_new("x", "process", cJSON_Parse("{\"argv\":[\"/no/such/program\"]}"),
				 NULL, &spec, &fx.err),
		0);
	given_slot(&fx, spec);
	start_line(&fx, spec, 1, NULL);
	wait_line(&fx, &fx.failed, 1);
	assert_non_null(strstr(fx.err.text, "/no/such/program"));
	assert_int_equal(fx.started, 0);
	assert_false(exists(&fx, "process/kernel-" ID "-1.json"));
	spec_free(spec);
	teardown(&fx);
}

TEST(process, a_signal_reaches_the_kernel)
{
	struct fixture fx;
	struct kernelspec *spec = given_spec("kill -STOP $$; exit 9", "");

	setup(&fx);
	given_slot(&fx, spec);
	start_line(&fx, spec, 1, NULL);
	wait_line(&fx, &fx.started, 1);
	assert_int_equal(fx.engine->ops->signal(fx.slot, 1, SIGTERM, &fx.err), 0);
	assert_int_equal(fx.engine->ops->signal(fx.slot, 1, SIGCONT, &fx.err), 0);
	wait_line(&fx, &fx.exited, 1);
	assert_int_equal(fx.exit.signal, SIGTERM);
	assert_int_equal(fx.engine->ops->signal(fx.slot, 1, SIGTERM, &fx.err), E_UNAVAILABLE);
	assert_int_equal(fx.engine->ops->kill_line(fx.slot, 1, &fx.err), E_UNAVAILABLE);
	spec_free(spec);
	teardown(&fx);
}

/* The kernel and its double fork in a session of its own hold the write end of a fifo; its reader
 * meets the end when both are gone. */
static void given_daemon(struct fixture *fx, struct kernelspec **ret_spec, char path[256])
{
	char script[1024];

	path_of(fx, "alive", path);
	assert_int_equal(mkfifo(path, 0600), 0);
	(void)snprintf(script, sizeof(script),
		"exec 3>%s; (setsid sh -c 'echo up >&3; exec sleep 1000' &); exec sleep 1000",
		path);
	*ret_spec = given_spec(script, "");
	given_slot(fx, *ret_spec);
	start_line(fx, *ret_spec, 1, NULL);
	wait_line(fx, &fx->started, 1);
}

static void wait_up(int fd)
{
	char text[4] = {0};

	assert_int_equal(read(fd, text, 3), 3);
	assert_string_equal(text, "up\n");
}

TEST(process, killing_a_line_takes_double_forks_along)
{
	struct fixture fx;
	struct kernelspec *spec;
	char path[256], end;
	int fd;

	setup(&fx);
	given_daemon(&fx, &spec, path);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	wait_up(fd);
	assert_int_equal(fx.engine->ops->kill_line(fx.slot, 1, &fx.err), 0);
	wait_line(&fx, &fx.exited, 1);
	assert_int_equal(fx.exit.signal, SIGKILL);
	assert_false(fx.exit.oom);
	assert_int_equal(read(fd, &end, 1), 0);
	assert_int_equal(close(fd), 0);
	spec_free(spec);
	teardown(&fx);
}

TEST(process, what_a_dead_kernel_left_is_ended_too)
{
	struct fixture fx;
	struct kernelspec *spec;
	char path[256], end;
	int fd;

	setup(&fx);
	given_daemon(&fx, &spec, path);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	wait_up(fd);
	assert_int_equal(kill((pid_t)fx.pid, SIGKILL), 0);
	wait_line(&fx, &fx.exited, 1);
	assert_int_equal(read(fd, &end, 1), 0);
	assert_int_equal(close(fd), 0);
	spec_free(spec);
	teardown(&fx);
}

TEST(process, a_slot_takes_one_line_after_another)
{
	struct fixture fx;
	struct kernelspec *spec = given_spec("exit $N", "");
	cJSON *env = cJSON_CreateObject();

	setup(&fx);
	cJSON_AddStringToObject(env, "N", "1");
	given_slot(&fx, spec);
	for (unsigned line = 1; line <= 3; line++) {
		start_line(&fx, spec, line, env);
		wait_line(&fx, &fx.exited, line);
		assert_int_equal(fx.exit.code, 1);
	}
	cJSON_Delete(env);
	spec_free(spec);
	teardown(&fx);
}

TEST(process, removal_before_anything_was_told_is_quiet)
{
	struct fixture fx;
	struct kernelspec *spec = given_spec("exec sleep 1000", "");

	setup(&fx);
	given_slot(&fx, spec);
	start_line(&fx, spec, 1, NULL);
	remove_slot(&fx);
	assert_int_equal(fx.started, 0);
	assert_int_equal(fx.exited, 0);
	spec_free(spec);
	teardown(&fx);
}

TEST(process, an_id_that_is_a_path_is_refused)
{
	struct fixture fx;
	struct kernelspec *spec = given_spec("exit 0", "");
	struct line_start start = {.line = 1, .kernel_id = "../x", .spec = spec, .key = "k"};

	setup(&fx);
	given_slot(&fx, spec);
	assert_int_equal(fx.engine->ops->start(fx.slot, &start, &fx.err), E_INVALID);
	spec_free(spec);
	teardown(&fx);
}

TEST(process, ports_are_not_held_after_a_kernel_that_could_not_bind)
{
	struct fixture fx;
	struct kernelspec *spec = given_spec("echo 'OSError: Address already in use'; exit 1", "");

	setup(&fx);
	given_slot(&fx, spec);
	start_line(&fx, spec, 1, NULL);
	wait_line(&fx, &fx.exited, 1);
	assert_true(CONTAINER_OF(fx.engine, struct process_engine, engine)->shy_ports);
	spec_free(spec);
	teardown(&fx);
}

RUN(TEST_ROW(process, exit_code_and_last_words_are_told),
	TEST_ROW(process, what_a_kernel_said_before_it_was_ready_is_no_reason_of_its_death),
	TEST_ROW(process, a_program_that_is_not_there_fails_to_start),
	TEST_ROW(process, a_signal_reaches_the_kernel),
	TEST_ROW(process, killing_a_line_takes_double_forks_along),
	TEST_ROW(process, what_a_dead_kernel_left_is_ended_too),
	TEST_ROW(process, a_slot_takes_one_line_after_another),
	TEST_ROW(process, removal_before_anything_was_told_is_quiet),
	TEST_ROW(process, an_id_that_is_a_path_is_refused),
	TEST_ROW(process, ports_are_not_held_after_a_kernel_that_could_not_bind))
