#include "kernel-bridge/docker_api.h"

#include <cjson/cJSON.h>

#include "gateway/base/log.h"
#include "tests/lib/canned_http.h"
#include "tests/lib/test.h"

#define DOCKER_20                                                                                  \
	"200 OK\r\nContent-Length: 65\r\n\r\n"                                                     \
	"{\"Version\":\"20.10.24\",\"ApiVersion\":\"1.41\",\"MinAPIVersion\":\"1.12\"}"

struct fixture {
	uv_loop_t loop;
	struct log log;
	struct canned_http server;
	struct docker_api *api;
	const char *version; /* answer to GET /version */
	const char *answer;  /* to everything else */
	char paths[512];     /* request lines of everything else */
	unsigned versions, asked;
	bool closed;
};

struct result {
	struct fixture *fixture;
	unsigned calls;
	int status;
	bool json;
	struct err err;
	struct result *then_cancel;
};

static const char *answer(struct canned_http *h, const char *request)
{
	struct fixture *fx = h->data;
	uv_stop(&fx->loop);
	if (strncmp(request, "GET /version ", 13) == 0) {
		fx->asked++;
		return fx->version;
	}
	size_t len = strlen(fx->paths);
	(void)snprintf(fx->paths + len, sizeof(fx->paths) - len, "%.*s;",
		(int)strcspn(request, "\r"), request);
	return fx->answer;
}

static void on_version(void *data)
{
	struct fixture *fx = data;
	fx->versions++;
	uv_stop(&fx->loop);
}

static void on_done(void *data, int status, const struct cJSON *json, const struct err *err)
{
	struct result *r = data;
	r->calls++;
	r->status = status;
	r->json = json != NULL;
	r->err = err ? *err : (struct err){0};
	if (r->then_cancel)
		docker_api_cancel(r->fixture->api, r->then_cancel);
	uv_stop(&r->fixture->loop);
}

static void on_closed(void *data)
{
	struct fixture *fx = data;
	fx->closed = true;
	uv_stop(&fx->loop);
}

static void setup(struct fixture *fx, const char *version)
{
	memset(fx, 0, sizeof(*fx));
	fx->version = version;
	fx->answer = "204 No Content\r\n\r\n";
	log_init(&fx->log, NULL);
	assert_int_equal(uv_loop_init(&fx->loop), 0);
	canned_http_open(&fx->server, &fx->loop, answer, fx);
	assert_int_equal(docker_api_open(&fx->loop, fx->server.path, &fx->log, on_version, fx,
				 &fx->api, NULL),
		0);
}

static void send_call(struct fixture *fx, const char *path, struct result *r)
{
	const struct docker_call call = {
		.method = "POST", .path = path, .done = on_done, .data = r};
	r->fixture = fx;
	assert_int_equal(docker_api_send(fx->api, &call, NULL), 0);
	assert_int_equal(r->calls, 0);
}

static void run_until(struct fixture *fx, const unsigned *count, unsigned n)
{
	while (*count < n)
		assert_int_not_equal(uv_run(&fx->loop, UV_RUN_DEFAULT), 0);
}

static void teardown(struct fixture *fx)
{
	docker_api_close(fx->api, on_closed, fx);
	while (!fx->closed)
		(void)uv_run(&fx->loop, UV_RUN_DEFAULT); /* closed says when to end */
	canned_http_close(&fx->server);
	while (uv_run(&fx->loop, UV_RUN_DEFAULT) != 0)
		;
	assert_int_equal(uv_loop_close(&fx->loop), 0);
}

TEST(docker_api, speaks_the_version_that_both_know)
{
	struct fixture fx;
	struct result r = {0};
	setup(&fx, DOCKER_20);

	send_call(&fx, "/a", &r); /* waits for the version */

	run_until(&fx, &r.calls, 1);
	assert_int_equal(r.status, 204);
	assert_string_equal(fx.paths, "POST /v1.41/a HTTP/1.1;");
	assert_string_equal(docker_api_version(fx.api)->engine, "20.10.24");
	assert_int_equal(fx.versions, 1);
	teardown(&fx);
}

TEST(docker_api, speaks_no_newer_version_than_it_knows)
{
	struct fixture fx;
	setup(&fx, "200 OK\r\nContent-Length: "
		   "44\r\n\r\n{\"ApiVersion\":\"1.52\",\"MinAPIVersion\":\"1.44\"}");
	run_until(&fx, &fx.versions, 1);
	assert_string_equal(docker_api_version(fx.api)->api, "1.44");
	teardown(&fx);

	setup(&fx, "200 OK\r\nContent-Length: "
		   "44\r\n\r\n{\"ApiVersion\":\"1.60\",\"MinAPIVersion\":\"1.50\"}");
	run_until(&fx, &fx.versions, 1);
	assert_string_equal(docker_api_version(fx.api)->api, "1.50");
	teardown(&fx);
}

TEST(docker_api, refuses_engines_that_are_too_old_or_none)
{
	static const char *const versions[] = {
		"200 OK\r\nContent-Length: 21\r\n\r\n{\"ApiVersion\":\"1.40\"}",
		"200 OK\r\nContent-Length: 5\r\n\r\nhello",
		"200 OK\r\nContent-Length: 20\r\n\r\n{\"ApiVersion\":\"2.0\"}",
		"200 OK\r\nContent-Length: 2\r\n\r\n[]"};
	for (size_t i = 0; i < ARRAY_LEN(versions); i++) {
		struct fixture fx;
		struct result r = {0};
		setup(&fx, versions[i]);

		send_call(&fx, "/a", &r);

		run_until(&fx, &r.calls, 1);
		assert_int_equal(r.status, 0);
		assert_int_equal(r.err.code, E_ENGINE);
		assert_non_null(docker_api_away(fx.api));
		teardown(&fx);
	}
}

TEST(docker_api, passes_the_engines_words_on)
{
	struct fixture fx;
	struct result r = {0};
	setup(&fx, DOCKER_20);
	fx.answer = "409 Conflict\r\nContent-Length: 25\r\n\r\n{\"message\":\"is \xff in use\"}";

	send_call(&fx, "/a", &r);

	run_until(&fx, &r.calls, 1);
	assert_int_equal(r.status, 409);
	assert_int_equal(r.err.code, E_ENGINE);
	assert_string_equal(r.err.text, "container engine: is   in use");
	teardown(&fx);
}

TEST(docker_api, asks_for_the_version_again_after_the_engine_was_away)
{
	struct fixture fx;
	struct result r = {0}, again = {0};
	char moved[128];
	setup(&fx, DOCKER_20);
	run_until(&fx, &fx.versions, 1);
	(void)snprintf(moved, sizeof(moved), "%s.away", fx.server.path);
	assert_int_equal(rename(fx.server.path, moved), 0);
	while (fx.server.n_open > 0) /* the engine ends: its connections too */
		uv_close((uv_handle_t *)fx.server.open[--fx.server.n_open], canned_on_peer_closed);

	send_call(&fx, "/a", &r);
	run_until(&fx, &r.calls, 1);
	assert_int_equal(r.err.code, E_ENGINE_DOWN);
	assert_non_null(strstr(r.err.text, "is it running?"));
	assert_int_equal(rename(moved, fx.server.path), 0);
	send_call(&fx, "/b", &again);
	run_until(&fx, &again.calls, 1);

	assert_int_equal(again.status, 204);
	assert_int_equal(fx.asked, 2);
	assert_null(docker_api_away(fx.api));
	teardown(&fx);
}

TEST(docker_api, done_may_cancel_what_still_waits)
{
	struct fixture fx;
	struct result first = {0}, second = {0}, third = {0};
	setup(&fx, "200 OK\r\nContent-Length: 10\r\n\r\nno version");
	first.then_cancel = &second;

	send_call(&fx, "/a", &first);
	send_call(&fx, "/b", &second);
	send_call(&fx, "/c", &third);

	run_until(&fx, &third.calls, 1);
	assert_int_equal(first.calls, 1);
	assert_int_equal(second.calls, 0);
	teardown(&fx);
}

TEST(docker_api, close_drops_what_is_in_flight)
{
	struct fixture fx;
	struct result r = {0}, waiting = {0};
	setup(&fx, DOCKER_20);
	fx.answer = NULL;
	send_call(&fx, "/a", &r);
	while (!fx.paths[0])
		(void)uv_run(&fx.loop, UV_RUN_DEFAULT); /* paths say when to end */
	send_call(&fx, "/b", &waiting);

	teardown(&fx);

	assert_int_equal(r.calls + waiting.calls, 0);
}

RUN(TEST_ROW(docker_api, speaks_the_version_that_both_know),
	TEST_ROW(docker_api, speaks_no_newer_version_than_it_knows),
	TEST_ROW(docker_api, refuses_engines_that_are_too_old_or_none),
	TEST_ROW(docker_api, passes_the_engines_words_on),
	TEST_ROW(docker_api, asks_for_the_version_again_after_the_engine_was_away),
	TEST_ROW(docker_api, done_may_cancel_what_still_waits),
	TEST_ROW(docker_api, close_drops_what_is_in_flight))
