#include "gateway/base/http_client.h"

#include "tests/lib/canned_http.h"
#include "tests/lib/test.h"

#define HELLO "200 OK\r\nContent-Length: 5\r\n\r\nhello"

struct fixture {
	uv_loop_t loop;
	struct canned_http server;
	struct http_client *client;
	const char *answer; /* of the server */
	char seen[CANNED_REQUEST_MAX];
	bool closed;
};

struct result {
	unsigned calls;
	int status;
	char body[64];
	int code;
	bool after_closed;
	struct fixture *fixture;
	bool then_close;		  /* done closes the client */
	struct http_request *then_cancel; /* done cancels it */
};

static const char *answer(struct canned_http *h, const char *request)
{
	struct fixture *fx = h->data;
	(void)snprintf(fx->seen, sizeof(fx->seen), "%s", request);
	uv_stop(&fx->loop);
	return fx->answer;
}

static void on_closed(void *data)
{
	struct fixture *fx = data;
	fx->closed = true;
	uv_stop(&fx->loop);
}

static void on_done(void *data, int status, const char *body, size_t len, const struct err *err)
{
	struct result *r = data;
	r->calls++;
	r->status = status;
	r->after_closed = r->fixture->closed;
	(void)copy_text(r->body, sizeof(r->body), body, len); /* cut is fine */
	r->code = err ? err->code : 0;
	if (r->then_cancel)
		http_client_cancel(r->then_cancel);
	if (r->then_close)
		http_client_close(r->fixture->client, on_closed, r->fixture);
	uv_stop(&r->fixture->loop);
}

static void setup(struct fixture *fx, const char *text)
{
	memset(fx, 0, sizeof(*fx));
	fx->answer = text;
	assert_int_equal(uv_loop_init(&fx->loop), 0);
	canned_http_open(&fx->server, &fx->loop, answer, fx);
	assert_int_equal(http_client_new(&fx->loop, &fx->client, NULL), 0);
}

static struct http_request *ask(
	struct fixture *fx, const char *method, const char *body, struct result *r)
{
	struct http_request *request = NULL;
	r->fixture = fx;
	const struct http_call call = {
		.method = method,
		.unix_socket = fx->server.path,
		.url = "http://engine/v1.41/x",
		.body = body,
		.timeout_ms = 20000,
		.max_bytes = 32,
		.done = on_done,
		.data = r,
	};
	assert_int_equal(http_client_send(fx->client, &call, &request, NULL), 0);
	return request;
}

/* Each event that a test waits for stops the loop: a turn may serve timers, then wait for ever. */
static void run_until(struct fixture *fx, const unsigned *count, unsigned n)
{
	while (*count < n)
		assert_int_not_equal(uv_run(&fx->loop, UV_RUN_DEFAULT), 0);
}

static void run_until_closed(struct fixture *fx)
{
	while (!fx->closed)
		(void)uv_run(&fx->loop, UV_RUN_DEFAULT); /* closed says when to end */
}

static void teardown(struct fixture *fx)
{
	if (!fx->closed)
		http_client_close(fx->client, on_closed, fx);
	run_until_closed(fx);
	canned_http_close(&fx->server);
	assert_int_equal(uv_run(&fx->loop, UV_RUN_DEFAULT), 0);
	assert_int_equal(uv_loop_close(&fx->loop), 0);
}

TEST(http_client, gets_an_answer_over_a_unix_socket)
{
	struct fixture fx;
	struct result r = {0};
	setup(&fx, HELLO);

	(void)ask(&fx, "GET", NULL, &r);

	assert_int_equal(r.calls, 0); /* never inside send */
	run_until(&fx, &r.calls, 1);
	assert_int_equal(r.status, 200);
	assert_string_equal(r.body, "hello");
	assert_non_null(strstr(fx.seen, "GET /v1.41/x HTTP/1.1\r\n"));
	teardown(&fx);
	assert_int_equal(r.calls, 1);
}

TEST(http_client, posts_a_body_without_expect)
{
	struct fixture fx;
	struct result r = {0};
	char body[4096];
	setup(&fx, HELLO);
	memset(body, 'x', sizeof(body) - 1);
	body[sizeof(body) - 1] = '\0';

	(void)ask(&fx, "POST", body, &r);
	body[0] = '!'; /* it was borrowed for the call only */

	run_until(&fx, &r.calls, 1);
	assert_non_null(strstr(fx.seen, "POST /v1.41/x"));
	assert_non_null(strstr(fx.seen, "Content-Type: application/json\r\n"));
	assert_non_null(strstr(fx.seen, "\r\n\r\nxxx"));
	assert_null(strstr(fx.seen, "Expect"));
	teardown(&fx);
}

TEST(http_client, posts_without_a_body_say_their_length)
{
	struct fixture fx;
	struct result r = {0};
	setup(&fx, "204 No Content\r\n\r\n");

	(void)ask(&fx, "POST", NULL, &r);

	run_until(&fx, &r.calls, 1);
	assert_int_equal(r.status, 204);
	assert_string_equal(r.body, "");
	assert_non_null(strstr(fx.seen, "Content-Length: 0\r\n"));
	assert_null(strstr(fx.seen, "Content-Type"));
	teardown(&fx);
}

TEST(http_client, gives_up_an_answer_that_is_too_long)
{
	struct fixture fx;
	struct result r = {0};
	setup(&fx, "200 OK\r\nContent-Length: 40\r\n\r\n0123456789012345678901234567890123456789");

	(void)ask(&fx, "GET", NULL, &r);

	run_until(&fx, &r.calls, 1);
	assert_int_equal(r.status, 0);
	assert_int_equal(r.code, E_TOO_BIG);
	teardown(&fx);
}

TEST(http_client, says_that_nobody_listens)
{
	struct fixture fx;
	struct result r = {0};
	setup(&fx, HELLO);
	assert_int_equal(unlink(fx.server.path), 0);

	(void)ask(&fx, "GET", NULL, &r);

	assert_int_equal(r.calls, 0);
	run_until(&fx, &r.calls, 1);
	assert_int_equal(r.status, 0);
	assert_int_equal(r.code, E_UNAVAILABLE);
	teardown(&fx);
}

TEST(http_client, times_out)
{
	struct fixture fx;
	struct result r = {.fixture = &fx};
	setup(&fx, NULL);
	const struct http_call call = {
		.method = "GET",
		.unix_socket = fx.server.path,
		.url = "http://engine/",
		.timeout_ms = 1,
		.max_bytes = 32,
		.done = on_done,
		.data = &r,
	};

	assert_int_equal(http_client_send(fx.client, &call, NULL, NULL), 0);

	run_until(&fx, &r.calls, 1);
	assert_int_equal(r.code, E_TIMEOUT);
	teardown(&fx);
}

TEST(http_client, hears_nothing_of_what_it_cancelled)
{
	struct fixture fx;
	struct result first = {0}, second = {0}, third = {0};
	setup(&fx, NULL);
	struct http_request *request = ask(&fx, "GET", NULL, &first);
	run_until(&fx, &fx.server.requests, 1); /* it is under way */

	http_client_cancel(request);
	http_client_cancel(ask(&fx, "GET", NULL, &second)); /* not begun yet */

	fx.answer = HELLO;
	(void)ask(&fx, "GET", NULL, &third);
	run_until(&fx, &third.calls, 1);
	teardown(&fx);
	assert_int_equal(first.calls + second.calls, 0);
}

TEST(http_client, done_may_cancel_another)
{
	struct fixture fx;
	struct result first = {0}, second = {0};
	setup(&fx, NULL);
	second.then_cancel = ask(&fx, "GET", NULL, &first);
	run_until(&fx, &fx.server.requests, 1);
	fx.answer = HELLO;

	(void)ask(&fx, "GET", NULL, &second);

	run_until(&fx, &second.calls, 1);
	teardown(&fx);
	assert_int_equal(first.calls, 0);
}

TEST(http_client, close_answers_what_is_in_flight)
{
	struct fixture fx;
	struct result r = {0};
	setup(&fx, NULL);
	(void)ask(&fx, "GET", NULL, &r);
	run_until(&fx, &fx.server.requests, 1);

	http_client_close(fx.client, on_closed, &fx);

	assert_int_equal(r.calls, 0);
	run_until(&fx, &r.calls, 1);
	assert_int_equal(r.code, E_UNAVAILABLE);
	assert_false(r.after_closed);
	teardown(&fx);
	assert_int_equal(r.calls, 1);
}

TEST(http_client, done_may_close)
{
	struct fixture fx;
	struct result r = {0}, other = {0};
	setup(&fx, NULL);
	(void)ask(&fx, "GET", NULL, &other);
	run_until(&fx, &fx.server.requests, 1);
	fx.answer = HELLO;
	r.then_close = true;

	(void)ask(&fx, "GET", NULL, &r);

	run_until_closed(&fx);
	teardown(&fx);
	assert_int_equal(r.calls, 1);
	assert_int_equal(other.calls, 1);
}

RUN(TEST_ROW(http_client, gets_an_answer_over_a_unix_socket),
	TEST_ROW(http_client, posts_a_body_without_expect),
	TEST_ROW(http_client, posts_without_a_body_say_their_length),
	TEST_ROW(http_client, gives_up_an_answer_that_is_too_long),
	TEST_ROW(http_client, says_that_nobody_listens), TEST_ROW(http_client, times_out),
	TEST_ROW(http_client, hears_nothing_of_what_it_cancelled),
	TEST_ROW(http_client, done_may_cancel_another),
	TEST_ROW(http_client, close_answers_what_is_in_flight),
	TEST_ROW(http_client, done_may_close))
