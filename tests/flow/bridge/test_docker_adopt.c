/* The engine `docker` takes up a slot: a container engine with canned answers, and this process as
 * the supervisor that comes back to `ctl`, or does not. */
#include "tests/flow/bridge/docker_fixture.h"

TEST(docker_adopt, its_line_lives)
{
	struct fixture fx;
	char path[128];
	adopted(&fx, HELLO "\"1:77:k\"]}");
	assert_int_equal(fx.started, 1);
	assert_int_equal(fx.line, 1);
	assert_int_equal(fx.pid, 77);
	assert_state(&fx, "taken");
	(void)snprintf(path, sizeof path, "%s/ctl", fx.sockets);
	assert_int_equal(access(path, F_OK), -1); /* nobody else can come */
	fake_clock_advance(fx.clock, 100000);
	assert_int_equal(fx.gone + fx.exits, 0);
	teardown(&fx);
	assert_int_equal(fx.deleted, 1);
}

/* In the first word: nothing that follows it finds the folder of another state. */
TEST(docker_adopt, says_which_lay_counts)
{
	struct fixture fx;
	for (int i = 0; i < 2; i++) {
		setup(&fx);
		fx.lay = i == 0 ? "its-lay" : NULL;
		assert_int_equal(adopt(&fx, NAME, getpid(), NULL), 0);
		come_back(&fx, HELLO "\"1:77:k\"]}");
		cJSON *welcome = hear(&fx, "welcome");
		const cJSON *kept = cJSON_GetObjectItem(welcome, "lays_kept");
		assert_int_equal(cJSON_GetArraySize(kept), i == 0);
		if (i == 0)
			assert_string_equal(cJSON_GetArrayItem(kept, 0)->valuestring, "its-lay");
		cJSON_Delete(welcome);
		teardown(&fx);
	}
}

TEST(docker_adopt, its_line_is_being_started)
{
	struct fixture fx;
	adopted(&fx, HELLO "\"1:0:k\"]}");
	assert_int_equal(fx.started, 0);
	say(&fx, "{\"type\":\"started\",\"line\":1,\"pid\":78}");
	until(&fx, &fx.started);
	assert_int_equal(fx.pid, 78);
	teardown(&fx);
}

TEST(docker_adopt, the_supervisor_never_comes_back)
{
	struct fixture fx;
	setup(&fx);
	assert_int_equal(adopt(&fx, NAME, getpid(), NULL), 0);
	fake_clock_advance(fx.clock, 4900);
	assert_int_equal(fx.gone, 0);
	fake_clock_advance(fx.clock, 200);
	assert_int_equal(fx.gone, 1);
	assert_int_equal(fx.why.code, E_TIMEOUT);
	assert_non_null(strstr(fx.why.text, "did not answer the new gateway in 5 s"));
	teardown(&fx);
}

static int turned_away(const struct fixture *fx)
{
	char byte;
	int fd = dial(fx);
	(void)send(fd, HELLO "]}", sizeof HELLO + 1, MSG_NOSIGNAL);
	return recv(fd, &byte, 1, 0) <= 0 ? 0 : 1;
}

TEST(docker_adopt, another_process_is_turned_away)
{
	struct fixture fx;
	int status = 0;
	setup(&fx);
	assert_int_equal(adopt(&fx, NAME, getpid(), NULL), 0);
	pid_t child = fork();
	if (child == 0)
		_exit(turned_away(&fx));
	while (waitpid(child, &status, WNOHANG) == 0)
		turn(&fx);
	assert_int_equal(status, 0);
	assert_int_equal(fx.warm + fx.gone, 0);
	come_back(&fx, HELLO "\"1:77:k\"]}");
	assert_int_equal(fx.started, 1);
	teardown(&fx);
}

TEST(docker_adopt, its_container_is_gone)
{
	struct fixture fx;
	setup(&fx);
	fx.vanished = true;
	assert_int_equal(adopt(&fx, NAME, getpid(), NULL), 0);
	until(&fx, &fx.gone);
	assert_int_equal(fx.why.code, E_ENGINE);
	assert_non_null(strstr(fx.why.text, "container"));
	fake_clock_advance(fx.clock, 10000);
	assert_int_equal(fx.gone, 1);
	teardown(&fx);
}

TEST(docker_adopt, its_folder_is_gone)
{
	struct fixture fx;
	struct err err;
	setup(&fx);
	assert_int_equal(adopt(&fx, "fedcba98", 1, &err), E_NOT_FOUND);
	assert_int_equal(adopt(&fx, "../" NAME, 1, &err), E_INVALID);
	assert_int_equal(adopt(&fx, "", 1, &err), E_INVALID);
	fx.slot = NULL;
	teardown(&fx);
}

TEST(docker_adopt, it_exited_and_tells)
{
	struct fixture fx;
	adopted(&fx, HELLO "]}");
	say(&fx, "{\"type\":\"exited\",\"line\":1,\"code\":3,\"oom\":false,\"left\":0}");
	until(&fx, &fx.exits);
	assert_true(fx.exit.known);
	assert_int_equal(fx.exit.code, 3);
	fake_clock_advance(fx.clock, 10000);
	assert_int_equal(fx.exits, 1);
	assert_int_equal(fx.started, 0);
	teardown(&fx);
}

TEST(docker_adopt, it_exited_and_nobody_tells)
{
	struct fixture fx;
	adopted(&fx, HELLO "\"7:1:k\",\"x\",\"\"]}");
	fake_clock_advance(fx.clock, 900);
	assert_int_equal(fx.exits, 0);
	fake_clock_advance(fx.clock, 200);
	assert_int_equal(fx.exits, 1);
	assert_false(fx.exit.known);
	assert_non_null(strstr(fx.exit.text, "while the gateway was away"));
	say(&fx, "{\"type\":\"exited\",\"line\":1,\"code\":3,\"oom\":false,\"left\":0}");
	cJSON_Delete(hear(&fx, "error"));
	assert_int_equal(fx.exits, 1);
	teardown(&fx);
}

/* Somebody asked for a restart before the supervisor was there. */
TEST(docker_adopt, another_line_is_begun_first)
{
	struct fixture fx;
	setup(&fx);
	fx.begin = 2;
	assert_int_equal(adopt(&fx, NAME, getpid(), NULL), 0);
	come_back(&fx, HELLO "\"1:77:k\"]}");
	cJSON *start = hear(&fx, "start");
	assert_int_equal(cJSON_GetObjectItem(start, "line")->valueint, 2);
	cJSON_Delete(start);
	assert_int_equal(fx.started, 1); /* the old one: the kernel ends it */
	assert_int_equal(fx.line, 1);
	assert_state(&fx, "taken");
	teardown(&fx);
}

static void make_file(const struct fixture *fx, const char *name)
{
	char path[128];
	(void)snprintf(path, sizeof path, "%s/%s", fx->sockets, name);
	int fd = open(path, O_CREAT | O_WRONLY | O_CLOEXEC, 0600);
	assert_true(fd >= 0);
	(void)close(fd);
}

static bool has_file(const struct fixture *fx, const char *name)
{
	char path[128];
	(void)snprintf(path, sizeof path, "%s/%s", fx->sockets, name);
	return access(path, F_OK) == 0;
}

/* Two kernels: what each kept is put together for itself, and each is known to live or not. */
TEST(docker_adopt, two_lines_of_one_slot)
{
	struct fixture fx;
	setup(&fx);
	make_file(&fx, "shell-1");
	make_file(&fx, "shell-3");
	make_file(&fx, "shell-4");
	assert_int_equal(adopt(&fx, NAME, getpid(), NULL), 0);
	const struct slot_adopt other = {.line = 3, .key = "key", .lay = ""};
	assert_int_equal(fx.engine->ops->adopt_line(fx.slot, &other, NULL), 0);
	struct err err;
	assert_int_equal(fx.engine->ops->adopt_line(fx.slot, &other, &err), E_INVALID);
	come_back(&fx, HELLO "\"1:77:k\"]}");
	assert_int_equal(fx.started, 1);
	assert_int_equal(fx.line, 1);
	assert_true(has_file(&fx, "shell-1") && has_file(&fx, "shell-3"));
	assert_false(has_file(&fx, "shell-4"));
	assert_int_equal(fx.engine->ops->adopt_line(fx.slot, &other, &err), E_INVALID);
	/* The other one ended, and nobody says how. */
	fake_clock_advance(fx.clock, 999);
	assert_int_equal(fx.exits, 0);
	fake_clock_advance(fx.clock, 1);
	assert_int_equal(fx.exits, 1);
	assert_int_equal(fx.line, 3);
	assert_false(has_file(&fx, "shell-3"));
	teardown(&fx);
}

/* An earlier gateway had begun line 2 and did not come to write it down. */
TEST(docker_adopt, what_the_row_does_not_know_is_ended)
{
	struct fixture fx;
	struct err err;
	setup(&fx);
	make_file(&fx, "shell-1");
	make_file(&fx, "shell-2");
	make_file(&fx, "shell-21");
	assert_int_equal(adopt(&fx, NAME, getpid(), NULL), 0);
	come_back(&fx, HELLO "\"1:77:k\",\"2:80:k\"]}");
	cJSON *kill = hear(&fx, "kill");
	assert_true(has_file(&fx, "shell-1"));
	assert_false(has_file(&fx, "shell-2") || has_file(&fx, "shell-21"));
	assert_int_equal(cJSON_GetObjectItem(kill, "line")->valueint, 2);
	cJSON_Delete(kill);
	assert_int_equal(fx.started, 1);
	assert_int_equal(fx.line, 1);
	/* Its number is free once it has ended. */
	const struct line_start start = {
		.line = 2, .kernel_id = "k", .spec = &fx.spec, .key = "key"};
	assert_int_equal(fx.engine->ops->start(fx.slot, &start, &err), E_CONFLICT);
	say(&fx, "{\"type\":\"exited\",\"line\":2,\"signal\":9,\"oom\":false,\"left\":0}");
	until(&fx, &fx.exits);
	assert_int_equal(fx.engine->ops->start(fx.slot, &start, &err), 0);
	cJSON_Delete(hear(&fx, "start"));
	assert_true(has_file(&fx, "shell-1") && has_file(&fx, "shell-2"));
	teardown(&fx);
}

static void replay(struct fixture *fx)
{
	char *after[CHANNEL_HB] = {[CHANNEL_SHELL] = (char[]){"last"}};
	assert_int_equal(fx->engine->ops->replay(fx->slot, 1, after, NULL), 0);
	cJSON *m = hear(fx, "replay");
	cJSON *list = cJSON_GetObjectItem(m, "after");
	assert_int_equal(cJSON_GetArraySize(list), CHANNEL_HB);
	bool found = false;
	const cJSON *item;
	cJSON_ArrayForEach (item, list)
		found = found || strcmp(item->valuestring, "shell:last") == 0;
	assert_true(found);
	cJSON_Delete(m);
}

#define KEPT(id, offset, size, data)                                                               \
	"{\"type\":\"kept\",\"line\":1,\"channel\":\"shell\",\"id\":" #id ",\"offset\":" #offset   \
	",\"size\":" #size ",\"data\":\"" data "\"}"

TEST(docker_adopt, it_gives_back_what_it_kept)
{
	struct fixture fx;
	adopted(&fx, HELLO "\"1:77:k\"]}");
	replay(&fx);
	say(&fx, KEPT(1, 0, 6, "YWJj"));
	say(&fx, KEPT(1, 3, 6, "ZGVm"));
	until(&fx, &fx.kept);
	assert_string_equal(fx.bytes, "abcdef");
	assert_int_equal(fx.channel, CHANNEL_SHELL);
	say(&fx, "{\"type\":\"kept_end\",\"line\":1,\"dropped\":2}");
	until(&fx, &fx.kept_ends);
	assert_int_equal(fx.lost, 2);
	teardown(&fx);
}

static void refuse_piece(struct fixture *fx, const char *packet)
{
	say(fx, packet);
	cJSON_Delete(hear(fx, "error"));
	assert_int_equal(fx->kept, 0);
}

TEST(docker_adopt, pieces_that_do_not_fit_are_refused)
{
	struct fixture fx;
	adopted(&fx, HELLO "\"1:77:k\"]}");
	replay(&fx);
	refuse_piece(&fx, KEPT(1, 3, 6, "YWJj")); /* without a beginning */
	refuse_piece(&fx, KEPT(1, 0, 2, "YWJj")); /* longer than it said */
	refuse_piece(&fx, KEPT(2, 0, 6, "!!!!"));
	refuse_piece(&fx, "{\"type\":\"kept\",\"line\":1,\"channel\":\"hb\",\"id\":1,"
			  "\"offset\":0,\"size\":3,\"data\":\"YWJj\"}");
	refuse_piece(&fx, "{\"type\":\"kept\",\"line\":9,\"channel\":\"shell\",\"id\":1,"
			  "\"offset\":0,\"size\":3,\"data\":\"YWJj\"}");
	/* Larger than any message: its pieces are passed over, what follows is taken. */
	say(&fx, KEPT(3, 0, 1000000000000, "YWJj"));
	say(&fx, KEPT(3, 3, 1000000000000, "YWJj"));
	say(&fx, KEPT(4, 0, 3, "YWJj"));
	until(&fx, &fx.kept);
	assert_string_equal(fx.bytes, "abc");
	teardown(&fx);
}

TEST(docker_adopt, an_older_image_keeps_nothing)
{
	struct fixture fx;
	char *after[CHANNEL_HB] = {0};
	struct err err;
	adopted(&fx, "{\"type\":\"hello\",\"version\":1,\"pid\":5}");
	assert_int_equal(fx.engine->ops->replay(fx.slot, 1, after, &err), E_UNAVAILABLE);
	teardown(&fx);
}

TEST(docker_adopt, is_left_again_before_it_answers)
{
	struct fixture fx;
	setup(&fx);
	assert_int_equal(adopt(&fx, NAME, getpid(), NULL), 0);
	fx.engine->ops->leave(fx.slot);
	assert_int_equal(access(fx.sockets, F_OK), 0);
	assert_int_equal(adopt(&fx, NAME, getpid(), NULL), 0);
	come_back(&fx, HELLO "\"1:77:k\"]}");
	assert_int_equal(fx.started, 1);
	fx.engine->ops->leave(TAKE(fx.slot));
	assert_int_equal(access(fx.sockets, F_OK), 0);
	teardown(&fx);
	assert_int_equal(fx.deleted, 0);
}

RUN(TEST_ROW(docker_adopt, its_line_lives), TEST_ROW(docker_adopt, says_which_lay_counts),

	TEST_ROW(docker_adopt, its_line_is_being_started),
	TEST_ROW(docker_adopt, the_supervisor_never_comes_back),
	TEST_ROW(docker_adopt, another_process_is_turned_away),
	TEST_ROW(docker_adopt, its_container_is_gone), TEST_ROW(docker_adopt, its_folder_is_gone),
	TEST_ROW(docker_adopt, it_exited_and_tells),
	TEST_ROW(docker_adopt, it_exited_and_nobody_tells),
	TEST_ROW(docker_adopt, another_line_is_begun_first),
	TEST_ROW(docker_adopt, two_lines_of_one_slot),
	TEST_ROW(docker_adopt, what_the_row_does_not_know_is_ended),
	TEST_ROW(docker_adopt, it_gives_back_what_it_kept),
	TEST_ROW(docker_adopt, pieces_that_do_not_fit_are_refused),
	TEST_ROW(docker_adopt, an_older_image_keeps_nothing),
	TEST_ROW(docker_adopt, is_left_again_before_it_answers))
