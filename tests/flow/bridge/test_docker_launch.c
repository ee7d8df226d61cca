/* The engine `docker` makes a slot while the container engine goes away and comes back: canned
 * answers, and this process as the supervisor. */
#include <cjson/cJSON.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>
#include <uv.h>

#include "gateway/base/crypto.h"
#include "kernel-bridge/engine_docker.h"
#include "tests/lib/canned_http.h"
#include "tests/lib/fake_clock.h"
#include "tests/lib/test.h"

#define GUARD_NS UINT64_C(20000000000)
#define VERSION                                                                                    \
	"200 OK\r\nContent-Length: 40\r\n\r\n{\"ApiVersion\":\"1.41\",\"Version\":\"20.10\"}  "
#define DONE	 "204 No Content\r\n\r\n"
#define AWAY	 "no answer\r\n\r\n"
#define FAULT	 "500 Internal Server Error\r\nContent-Length: 2\r\n\r\n{}"
#define CONFLICT "409 Conflict\r\nContent-Length: 2\r\n\r\n{}"

struct fixture {
	uv_loop_t loop;
	uv_timer_t tick;
	struct canned_http http;
	struct config config;
	struct log log;
	struct kernelspec spec;
	struct engine *engine;
	struct clock *clock;
	struct slot *slot;
	char run[64];
	/* What is answered; AWAY as often as that before. */
	unsigned version_away, create_away, start_away, start_fault;
	bool conflict; /* an earlier create made it */
	bool inspect_away;
	unsigned versions, creates, starts, waits, deletes;
	unsigned warm, gone, removed, closed;
	struct err why;
};

static void on_warm(void *data)
{
	((struct fixture *)data)->warm++;
}

static void on_gone(void *data, const struct line_exit *exit, const struct err *err)
{
	struct fixture *fx = data;
	(void)exit;
	fx->gone++;
	fx->why = *err;
}

static void count(void *data)
{
	++*(unsigned *)data;
}

static bool is_away(unsigned *left)
{
	if (*left == 0)
		return false;
	--*left;
	return true;
}

static const char *answer(struct canned_http *h, const char *request)
{
	struct fixture *fx = h->data;
	if (strstr(request, "/version ")) {
		fx->versions++;
		return is_away(&fx->version_away) ? AWAY : VERSION;
	}
	if (strstr(request, "/create?")) {
		fx->creates++;
		if (is_away(&fx->create_away))
			return AWAY;
		return fx->conflict ? CONFLICT : DONE;
	}
	if (strstr(request, "/start ")) {
		fx->starts++;
		if (is_away(&fx->start_fault))
			return FAULT;
		return is_away(&fx->start_away) ? AWAY : DONE;
	}
	if (strstr(request, "/wait ")) {
		fx->waits++;
		return NULL;
	}
	if (strstr(request, "/json ") && fx->inspect_away)
		return AWAY;
	fx->deletes += strncmp(request, "DELETE", 6) == 0;
	return "404 Not Found\r\nContent-Length: 2\r\n\r\n{}";
}

static void on_tick(uv_timer_t *t)
{
	(void)t; /* so that a turn never waits long */
}

static void until(struct fixture *fx, const unsigned *what, unsigned n, uint64_t step_ms)
{
	uint64_t start_ns = uv_hrtime();
	while (*what < n) {
		fake_clock_advance(fx->clock, step_ms);
		(void)uv_run(&fx->loop, UV_RUN_ONCE);
		if (uv_hrtime() - start_ns > GUARD_NS)
			fail_msg("waited in vain");
	}
}

static void setup(struct fixture *fx)
{
	memset(fx, 0, sizeof *fx);
	assert_int_equal(crypto_init(NULL), 0);
	assert_int_equal(uv_loop_init(&fx->loop), 0);
	assert_int_equal(uv_timer_init(&fx->loop, &fx->tick), 0);
	assert_int_equal(uv_timer_start(&fx->tick, on_tick, 1, 1), 0);
	canned_http_open(&fx->http, &fx->loop, answer, fx);
	(void)snprintf(fx->run, sizeof fx->run, "/tmp/coppice-launch-XXXXXX");
	assert_non_null(mkdtemp(fx->run));
	fx->config.run_dir = fx->run;
	fx->config.engine_socket = fx->http.path;
	fx->config.image = "coppice-kernel";
	fx->config.mount = "";
	fx->config.start_timeout = 60000;
	fx->config.message_limit = 1 << 20;
	fx->spec = (struct kernelspec){.name = "python3", .engine = "docker"};
	log_init(&fx->log, NULL);
	fx->clock = clock_new(&fx->loop);
}

static void launch(struct fixture *fx)
{
	const struct bridge_env env = {&fx->loop, fx->clock, &fx->config, &fx->log};
	const struct slot_watcher watcher = {.on_warm = on_warm, .on_gone = on_gone, .data = fx};
	assert_int_equal(engine_docker_open(&env, &fx->engine, NULL), 0);
	if (fx->version_away == 0)
		until(fx, &fx->versions, 1, 0);
	assert_int_equal(
		fx->engine->ops->launch(fx->engine, &fx->spec, "", &watcher, &fx->slot, NULL), 0);
}

static void teardown(struct fixture *fx)
{
	fx->engine->ops->remove(fx->slot, count, &fx->removed);
	until(fx, &fx->removed, 1, 10);
	fx->engine->ops->close(fx->engine, count, &fx->closed);
	until(fx, &fx->closed, 1, 0);
	canned_http_close(&fx->http);
	clock_close(fx->clock, NULL, NULL);
	uv_close((uv_handle_t *)&fx->tick, NULL);
	assert_int_equal(uv_run(&fx->loop, UV_RUN_DEFAULT), 0);
	assert_int_equal(uv_loop_close(&fx->loop), 0);
	assert_int_equal(rmdir(fx->run), 0);
}

static void supervisor_comes(struct fixture *fx)
{
	static const char hello[] = "{\"type\":\"hello\",\"version\":1,\"pid\":5,\"lines\":[]}";
	struct sockaddr_un to = {.sun_family = AF_UNIX};
	cJSON *report = fx->engine->ops->slot_report(fx->slot);
	(void)snprintf(to.sun_path, sizeof to.sun_path, "%s/%s/s/ctl", fx->run,
		cJSON_GetStringValue(cJSON_GetObjectItem(report, "slot")));
	cJSON_Delete(report);
	int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	assert_int_equal(connect(fd, (struct sockaddr *)&to, sizeof to), 0);
	assert_int_equal(send(fd, hello, sizeof hello - 1, MSG_NOSIGNAL), sizeof hello - 1);
	until(fx, &fx->warm, 1, 0);
	(void)close(fd);
}

TEST(docker_launch, waits_for_an_engine_that_was_there)
{
	struct fixture fx;
	setup(&fx);
	fx.create_away = 1;
	fx.start_away = 1;
	launch(&fx);
	until(&fx, &fx.creates, 1, 0);
	fx.version_away = 5;
	until(&fx, &fx.waits, 1, 100);
	assert_int_equal(fx.gone, 0);
	assert_int_equal(fx.creates, 2);
	assert_int_equal(fx.starts, 2);
	supervisor_comes(&fx);
	until(&fx, &fx.gone, 1, 10); /* the supervisor's end, nothing else */
	assert_int_equal(fx.starts, 2);
	teardown(&fx);
}

TEST(docker_launch, one_that_ends_with_the_engine_says_so)
{
	struct fixture fx;
	setup(&fx);
	launch(&fx);
	until(&fx, &fx.waits, 1, 0);
	fx.inspect_away = true;
	supervisor_comes(&fx);
	until(&fx, &fx.gone, 1, 0);
	assert_non_null(strstr(fx.why.text, "the container engine is away: the supervisor has"));
	teardown(&fx);
}

/* The engine was killed between doing it and saying so. */
TEST(docker_launch, what_was_made_without_an_answer_is_taken)
{
	struct fixture fx;
	setup(&fx);
	fx.create_away = 1;
	fx.conflict = true;
	launch(&fx);
	until(&fx, &fx.waits, 1, 100);
	assert_int_equal(fx.gone, 0);
	assert_int_equal(fx.starts, 1);
	teardown(&fx);
	assert_int_equal(fx.deletes, 1);
}

/* An engine that ends answers with faults before it is away. */
TEST(docker_launch, faults_that_pass_are_no_end)
{
	struct fixture fx;
	setup(&fx);
	fx.start_fault = 2;
	fx.start_away = 1;
	launch(&fx);
	until(&fx, &fx.waits, 1, 100);
	assert_int_equal(fx.gone, 0);
	assert_int_equal(fx.starts, 4);
	teardown(&fx);
}

TEST(docker_launch, faults_that_stay_are_told)
{
	struct fixture fx;
	setup(&fx);
	fx.start_fault = 1000;
	launch(&fx);
	until(&fx, &fx.gone, 1, 100);
	assert_int_equal(fx.why.code, E_ENGINE);
	assert_int_equal(fx.starts, 5);
	teardown(&fx);
}

/* Such a name is nobody's but another gateway's. */
TEST(docker_launch, a_name_that_is_taken_at_once_is_an_error)
{
	struct fixture fx;
	setup(&fx);
	fx.conflict = true;
	launch(&fx);
	until(&fx, &fx.gone, 1, 0);
	assert_int_equal(fx.why.code, E_ENGINE);
	teardown(&fx);
	assert_int_equal(fx.deletes, 0);
}

TEST(docker_launch, waits_no_longer_than_a_start_may_take)
{
	struct fixture fx;
	setup(&fx);
	fx.create_away = fx.version_away = 0;
	launch(&fx);
	fx.create_away = fx.version_away = 1000000;
	until(&fx, &fx.gone, 1, 1000);
	assert_int_equal(fx.why.code, E_ENGINE_DOWN);
	assert_non_null(strstr(fx.why.text, "is it running?"));
	fx.version_away = 0;
	teardown(&fx);
}

TEST(docker_launch, an_engine_that_never_was_there_is_told_at_once)
{
	struct fixture fx;
	setup(&fx);
	fx.version_away = 1000000;
	launch(&fx);
	until(&fx, &fx.gone, 1, 0);
	assert_int_equal(fx.why.code, E_ENGINE_DOWN);
	fx.version_away = 0;
	teardown(&fx);
}

RUN(TEST_ROW(docker_launch, waits_for_an_engine_that_was_there),
	TEST_ROW(docker_launch, one_that_ends_with_the_engine_says_so),
	TEST_ROW(docker_launch, what_was_made_without_an_answer_is_taken),
	TEST_ROW(docker_launch, faults_that_pass_are_no_end),
	TEST_ROW(docker_launch, faults_that_stay_are_told),
	TEST_ROW(docker_launch, a_name_that_is_taken_at_once_is_an_error),
	TEST_ROW(docker_launch, waits_no_longer_than_a_start_may_take),
	TEST_ROW(docker_launch, an_engine_that_never_was_there_is_told_at_once))
