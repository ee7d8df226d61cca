/* The renderer with a real loop and real children: a shell script stands in for coppice-render.
 * Nothing here sleeps: each wait is for a callback. */
#include "tests/lib/test.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <uv.h>

#include "frontend-adapter/adapter.h"
#include "gateway/base/clock.h"
#include "gateway/base/log.h"

struct fixture {
	char folder[40], script[80];
	uv_loop_t loop;
	struct clock *clock;
	struct log log;
	struct renderer *renderer;
	bool closed;
};

struct heard {
	struct fixture *fx;
	unsigned calls, wanted;
	int status;
	char body[200], from[80], said[512];
	size_t len;
	bool cut, after_closed;
};

static void write_script(struct fixture *fx, const char *text)
{
	FILE *file = fopen(fx->script, "we");
	assert_non_null(file);
	fprintf(file, "#!/bin/sh\n%s\n", text);
	assert_int_equal(fclose(file), 0);
	assert_int_equal(chmod(fx->script, 0700), 0);
}

static void setup(struct fixture *fx, const char *script, unsigned limit_ms)
{
	*fx = (struct fixture){.folder = "/tmp/coppice-renderer-XXXXXX"};
	(void)signal(SIGPIPE, SIG_IGN); /* as main() does; cannot fail */
	assert_non_null(mkdtemp(fx->folder));
	(void)snprintf(fx->script, sizeof fx->script, "%s/render", fx->folder); /* fits */
	if (script)
		write_script(fx, script);
	assert_int_equal(uv_loop_init(&fx->loop), 0);
	fx->clock = clock_new(&fx->loop);
	log_init(&fx->log, NULL);
	struct renderer_setup s = {&fx->loop, fx->clock, &fx->log, fx->script, limit_ms};
	fx->renderer = renderer_open(&s);
}

static void on_closed(void *data)
{
	struct fixture *fx = data;
	fx->closed = true;
	clock_close(fx->clock, NULL, NULL);
}

static void teardown(struct fixture *fx)
{
	renderer_close(fx->renderer, on_closed, fx);
	assert_false(fx->closed);
	assert_int_equal(uv_run(&fx->loop, UV_RUN_DEFAULT), 0);
	assert_true(fx->closed);
	assert_int_equal(uv_loop_close(&fx->loop), 0);
	(void)unlink(fx->script); /* may not be there */
	assert_int_equal(rmdir(fx->folder), 0);
}

static void on_done(
	void *data, int status, const struct render_result *result, const struct err *err)
{
	struct heard *h = data;
	h->status = status;
	h->after_closed = h->fx->closed;
	if (status == 0) {
		h->len = result->body.len;
		(void)copy_text(h->body, sizeof h->body, (const char *)result->body.data, h->len);
		(void)snprintf(h->from, sizeof h->from, "%s", result->from);
		h->cut = result->cut;
	} else {
		(void)snprintf(h->said, sizeof h->said, "%s", err->text);
	}
	if (++h->calls == h->wanted)
		uv_stop(&h->fx->loop);
}

static int ask(struct fixture *fx, const char *bundle, struct heard *h)
{
	struct err err;
	struct render_request q = {
		{(const uint8_t *)bundle, strlen(bundle)}, RENDER_TO_HTML, 20000};
	h->fx = fx;
	return renderer_ask(fx->renderer, &q, on_done, h, &err);
}

static void hear(struct fixture *fx, const char *bundle, struct heard *h)
{
	*h = (struct heard){.wanted = 1};
	assert_int_equal(ask(fx, bundle, h), 0);
	assert_int_equal(h->calls, 0);
	(void)uv_run(&fx->loop, UV_RUN_DEFAULT); /* until on_done stops it */
	assert_int_equal(h->calls, 1);
}

TEST(renderer, hands_over_and_hears)
{
	struct fixture fx;
	struct heard h;
	setup(&fx, "echo '{\"mime\":\"m\",\"from\":\"text/plain\",\"cut\":true}'; cat", 0);
	hear(&fx, "{\"data\":{}}", &h);
	assert_int_equal(h.status, 0);
	assert_string_equal(h.body, "{\"to\":\"html\",\"max_bytes\":20000}\n{\"data\":{}}");
	assert_string_equal(h.from, "text/plain");
	assert_true(h.cut);
	teardown(&fx);
}

TEST(renderer, exit_codes_are_errors)
{
	static const struct {
		const char *script;
		int status;
		const char *said;
	} rows[] = {{"echo 'why not' >&2; exit 2", E_INVALID, "why not"},
		{"echo nothing >&2; exit 3", E_INVALID, "nothing"},
		{"echo big >&2; exit 4", E_TOO_BIG, "big"},
		{"echo wall >&2; exit 5", E_UNAVAILABLE, "wall"}, {"exit 1", E_IO, ""},
		{"kill -SYS $$", E_IO, "signal 31"}, {"kill -XCPU $$", E_TIMEOUT, "too long"},
		{"cat >/dev/null; echo no head", E_IO, "never says"},
		{"exit 0", E_IO, "never says"}};
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		struct fixture fx;
		struct heard h;
		setup(&fx, rows[i].script, 0);
		hear(&fx, "{}", &h);
		assert_int_equal(h.status, rows[i].status);
		assert_non_null(strstr(h.said, rows[i].said));
		teardown(&fx);
	}
}

TEST(renderer, a_program_that_is_not_there)
{
	struct fixture fx;
	struct heard h;
	setup(&fx, NULL, 0);
	hear(&fx, "{}", &h);
	assert_int_equal(h.status, E_UNAVAILABLE);
	teardown(&fx);
}

/* It would wait for ever: what ends it is the limit, however long that takes. */
TEST(renderer, who_is_not_done_is_killed)
{
	struct fixture fx;
	struct heard h;
	setup(&fx, "exec cat /dev/zero >/dev/null", 50);
	hear(&fx, "{}", &h);
	assert_int_equal(h.status, E_TIMEOUT);
	teardown(&fx);
}

TEST(renderer, who_says_too_much_is_killed)
{
	struct fixture fx;
	struct heard h;
	setup(&fx, "exec cat /dev/zero", 0);
	hear(&fx, "{}", &h);
	assert_int_equal(h.status, E_TOO_BIG);
	teardown(&fx);
	setup(&fx, "exec cat /dev/zero >&2", 50);
	hear(&fx, "{}", &h);
	assert_int_equal(h.status, E_TIMEOUT);
	teardown(&fx);
}

/* Three wait while two run; all are answered, in any order. */
TEST(renderer, some_at_once)
{
	struct fixture fx;
	struct heard h = {.wanted = 5};
	setup(&fx, "echo '{\"from\":\"a\"}'; cat", 0);
	for (int i = 0; i < 5; i++)
		assert_int_equal(ask(&fx, "{}", &h), 0);
	(void)uv_run(&fx.loop, UV_RUN_DEFAULT); /* until the fifth */
	assert_int_equal(h.calls, 5);
	assert_int_equal(h.status, 0);
	teardown(&fx);
}

TEST(renderer, the_queue_is_bounded)
{
	struct fixture fx;
	struct heard h = {0};
	unsigned taken = 0;
	setup(&fx, "exec cat /dev/zero >/dev/null", 0);
	while (taken < 1000 && ask(&fx, "{}", &h) == 0)
		taken++;
	assert_int_equal(taken, 66);
	teardown(&fx); /* answers all of them */
	assert_int_equal(h.calls, 66);
	assert_int_equal(h.status, E_UNAVAILABLE);
	assert_false(h.after_closed);
}

TEST(renderer, refuses_at_once)
{
	struct fixture fx;
	struct err err;
	struct heard h = {0};
	setup(&fx, "exit 0", 0);
	struct render_request q = {{(const uint8_t *)"{}", 2}, RENDER_TO_PNG, 100};
	assert_int_equal(renderer_ask(fx.renderer, &q, on_done, &h, &err), E_INVALID);
	q = (struct render_request){{(const uint8_t *)"{}", 65u << 20}, RENDER_TO_PNG, 0};
	assert_int_equal(renderer_ask(fx.renderer, &q, on_done, &h, &err), E_TOO_BIG);
	teardown(&fx);
	assert_int_equal(h.calls, 0);
}

RUN(TEST_ROW(renderer, hands_over_and_hears), TEST_ROW(renderer, exit_codes_are_errors),
	TEST_ROW(renderer, a_program_that_is_not_there),
	TEST_ROW(renderer, who_is_not_done_is_killed),
	TEST_ROW(renderer, who_says_too_much_is_killed), TEST_ROW(renderer, some_at_once),
	TEST_ROW(renderer, the_queue_is_bounded), TEST_ROW(renderer, refuses_at_once))
