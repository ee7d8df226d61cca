/* What a line of the engine `process` is given: files, ports, keys, environment; and the sweep of
 * what an earlier gateway left. */
#include "tests/unit/process_fixture.h"

TEST(process, says_that_it_isolates_nothing)
{
	struct fixture fx;
	cJSON *report;

	setup(&fx);
	report = fx.engine->ops->report(fx.engine);
	assert_true(cJSON_IsFalse(cJSON_GetObjectItem(report, "isolates")));
	assert_non_null(
		strstr(cJSON_GetArrayItem(cJSON_GetObjectItem(report, "warnings"), 0)->valuestring,
			"isolates nothing"));
	cJSON_Delete(report);
	teardown(&fx);
}

TEST(process, connection_file_is_private_and_names_the_ports)
{
	struct fixture fx;
	struct kernelspec *spec = given_spec("exec sleep 1000", "");
	char text[4096], path[256], address[64];
	struct stat st;
	cJSON *tree;

	setup(&fx);
	given_slot(&fx, spec);
	start_line(&fx, spec, 1, NULL);
	wait_line(&fx, &fx.started, 1);
	read_text(&fx, "process/kernel-" ID "-1.json", text, sizeof(text));
	path_of(&fx, "process/kernel-" ID "-1.json", path);
	assert_int_equal(stat(path, &st), 0);
	assert_int_equal(st.st_mode & 0777, 0600);
	tree = cJSON_Parse(text);
	(void)snprintf(address, sizeof(address), "tcp://127.0.0.1:%d",
		cJSON_GetObjectItem(tree, "control_port")->valueint);
	assert_string_equal(fx.endpoints.address[CHANNEL_CONTROL], address);
	assert_string_equal(cJSON_GetObjectItem(tree, "key")->valuestring, "secretkey");
	assert_string_equal(fx.endpoints.key, "secretkey");
	assert_string_equal(cJSON_GetObjectItem(tree, "transport")->valuestring, "tcp");
	assert_null(cJSON_GetObjectItem(tree, "curve_secretkey"));
	cJSON_Delete(tree);
	remove_slot(&fx);
	assert_false(exists(&fx, "process/kernel-" ID "-1.json"));
	spec_free(spec);
	teardown(&fx);
}

static void curve_with(const char *encryption, bool wanted)
{
	struct fixture fx;
	struct kernelspec *spec;
	char more[256], text[4096];
	cJSON *tree;

	(void)snprintf(more, sizeof(more),
		",\"metadata\":{\"supported_encryption\":%s,\"next\":\"curve\"}", encryption);
	spec = given_spec("exec sleep 1000", more);
	setup(&fx);
	given_slot(&fx, spec);
	start_line(&fx, spec, 1, NULL);
	wait_line(&fx, &fx.started, 1);
	read_text(&fx, "process/kernel-" ID "-1.json", text, sizeof(text));
	tree = cJSON_Parse(text);
	assert_int_equal(strlen(fx.endpoints.curve_secret), wanted ? 40 : 0);
	if (wanted) {
		assert_string_equal(cJSON_GetObjectItem(tree, "curve_secretkey")->valuestring,
			fx.endpoints.curve_secret);
		assert_string_equal(cJSON_GetObjectItem(tree, "curve_publickey")->valuestring,
			fx.endpoints.curve_public);
	}
	cJSON_Delete(tree);
	teardown(&fx);
	spec_free(spec);
}

TEST(process, a_kernel_that_can_encrypt_is_encrypted)
{
	curve_with("\"curve\"", true);
	curve_with("[\"other\",\"curve\"]", true);
	curve_with("[\"other\"]", false);
	curve_with("\"other\"", false);
	curve_with("7", false);
}

TEST(process, placeholders_and_templates_are_filled_in)
{
	struct fixture fx;
	/* $0 is the resource folder, $1 the connection file, $2 the prefix. */
	struct kernelspec *spec = given_spec("echo $0 $1 $2 $A $B $C $D $PWD",
		",\"env\":{\"A\":\"${HOME}x\",\"B\":\"$$9\",\"C\":\"${NONE_SUCH}\"}");
	char want[512];
	cJSON *env = cJSON_CreateObject();

	setup(&fx);
	cJSON_AddStringToObject(env, "D", "asked");
	cJSON_AddStringToObject(env, "KERNEL_WORKING_DIR", "/usr");
	assert_int_equal(setenv("HOME", "/", 1), 0);
	given_slot(&fx, spec);
	start_line(&fx, spec, 1, env);
	wait_line(&fx, &fx.exited, 1);
	(void)snprintf(want, sizeof(want),
		"/p/share/jupyter/kernels/sh %s/process/kernel-" ID
		"-1.json /p /x $9 ${NONE_SUCH} asked /usr",
		fx.root);
	assert_string_equal(fx.exit.text, want);
	cJSON_Delete(env);
	spec_free(spec);
	teardown(&fx);
}

TEST(process, a_working_folder_of_another_machine_is_not_used)
{
	struct fixture fx;
	struct kernelspec *spec = given_spec("pwd", "");
	cJSON *env = cJSON_CreateObject();

	setup(&fx);
	cJSON_AddStringToObject(env, "KERNEL_WORKING_DIR", "/no/such/folder");
	assert_int_equal(setenv("HOME", "/tmp", 1), 0);
	given_slot(&fx, spec);
	start_line(&fx, spec, 1, env);
	wait_line(&fx, &fx.exited, 1);
	assert_string_equal(fx.exit.text, "/tmp");
	cJSON_Delete(env);
	spec_free(spec);
	teardown(&fx);
}

TEST(process, nothing_of_the_gateway_is_in_the_environment)
{
	struct fixture fx;
	struct kernelspec *spec =
		given_spec("echo [$COPPICE_SECRET$JUPYTER_TOKEN$COPPICE_ASKED] $KEPT", "");
	cJSON *env = cJSON_CreateObject();

	setup(&fx);
	assert_int_equal(setenv("COPPICE_SECRET", "x", 1), 0);
	assert_int_equal(setenv("JUPYTER_TOKEN", "x", 1), 0);
	assert_int_equal(setenv("KEPT", "kept", 1), 0);
	cJSON_AddStringToObject(env, "COPPICE_ASKED", "x");
	given_slot(&fx, spec);
	start_line(&fx, spec, 1, env);
	wait_line(&fx, &fx.exited, 1);
	assert_string_equal(fx.exit.text, "[] kept");
	cJSON_Delete(env);
	spec_free(spec);
	teardown(&fx);
}

TEST(process, held_ports_admit_only_those_that_share)
{
	struct process_ports ports;
	struct err err = {0};
	struct sockaddr_in at = {.sin_family = AF_INET};
	int on = 1;
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	assert_int_equal(process_ports_take(&ports, true, &err), 0);
	for (int i = 1; i < CHANNEL_COUNT; i++)
		assert_int_not_equal(ports.port[i], ports.port[i - 1]);
	at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	at.sin_port = htons((uint16_t)ports.port[0]);
	assert_int_equal(bind(fd, (struct sockaddr *)&at, sizeof(at)), -1);
	assert_int_equal(errno, EADDRINUSE);
	assert_int_equal(setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on)), 0);
	assert_int_equal(bind(fd, (struct sockaddr *)&at, sizeof(at)), 0);
	assert_int_equal(listen(fd, 1), 0);
	process_ports_release(&ports);
	assert_int_equal(close(fd), 0);
}

/* A child of the test stands in for a kernel that an earlier gateway left. */
static pid_t given_left_over(struct fixture *fx, bool true_record)
{
	struct process_id id;
	char path[256];
	pid_t pid = fork();

	if (pid == 0) {
		(void)setsid();
		for (;;)
			(void)pause();
	}
	assert_true(pid > 0);
	id = process_id_of(pid);
	assert_true(id.started > 0);
	id.started += !true_record;
	path_of(fx, "process/kernel-" ID "-1.pid", path);
	assert_int_equal(process_write_pid(path, id, ID "/1", &fx->err), 0);
	return pid;
}

TEST(process, sweep_ends_recorded_kernels)
{
	struct fixture fx;
	pid_t pid;
	int status;

	setup(&fx);
	pid = given_left_over(&fx, true);
	fx.engine->ops->sweep(fx.engine, set_flag, &fx.swept);
	assert_false(fx.swept.up);
	wait_flag(&fx, &fx.swept.up);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(WTERMSIG(status), SIGKILL);
	assert_false(exists(&fx, "process/kernel-" ID "-1.pid"));
	teardown(&fx);
}

TEST(process, sweep_spares_a_process_that_took_over_the_pid)
{
	struct fixture fx;
	pid_t pid;
	int status;

	setup(&fx);
	pid = given_left_over(&fx, false);
	fx.engine->ops->sweep(fx.engine, set_flag, &fx.swept);
	wait_flag(&fx, &fx.swept.up);
	assert_false(exists(&fx, "process/kernel-" ID "-1.pid"));
	assert_int_equal(kill(pid, SIGTERM), 0);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(WTERMSIG(status), SIGTERM);
	teardown(&fx);
}

TEST(process, an_ordered_end_leaves_no_folder)
{
	struct fixture fx;
	struct stat st;
	char path[256];

	setup(&fx);
	path_of(&fx, "process", path);
	assert_int_equal(stat(path, &st), 0);
	close_engine(&fx);
	assert_int_equal(stat(path, &st), -1);
	teardown(&fx);
}

TEST(process, two_gateways_do_not_share_a_run_folder)
{
	struct fixture fx;
	struct engine *second = NULL;
	struct bridge_env env;

	setup(&fx);
	env = CONTAINER_OF(fx.engine, struct process_engine, engine)->env;
	assert_int_equal(engine_process_open(&env, &second, &fx.err), E_CONFLICT);
	assert_null(second);
	teardown(&fx);
}

RUN(TEST_ROW(process, says_that_it_isolates_nothing),
	TEST_ROW(process, connection_file_is_private_and_names_the_ports),
	TEST_ROW(process, a_kernel_that_can_encrypt_is_encrypted),
	TEST_ROW(process, placeholders_and_templates_are_filled_in),
	TEST_ROW(process, a_working_folder_of_another_machine_is_not_used),
	TEST_ROW(process, nothing_of_the_gateway_is_in_the_environment),
	TEST_ROW(process, held_ports_admit_only_those_that_share),
	TEST_ROW(process, sweep_ends_recorded_kernels),
	TEST_ROW(process, sweep_spares_a_process_that_took_over_the_pid),
	TEST_ROW(process, an_ordered_end_leaves_no_folder),
	TEST_ROW(process, two_gateways_do_not_share_a_run_folder))
