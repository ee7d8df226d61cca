/* The real clock on a real loop. Order and counts are asserted, no durations. */
#include "tests/lib/test.h"

#include <string.h>
#include <uv.h>

#include "gateway/base/clock.h"

struct row {
	struct timer timer;
	struct fixture *fx;
	char name;
};

struct fixture {
	uv_loop_t loop;
	struct clock *clock;
	struct row rows[8];
	char fired[64];
	int closed;
};

static void note(struct row *r)
{
	size_t n = strlen(r->fx->fired);
	assert_true(n + 1 < sizeof r->fx->fired);
	r->fx->fired[n] = r->name;
}

static void on_fire(struct timer *t)
{
	note(CONTAINER_OF(t, struct row, timer));
}

static void setup(struct fixture *fx)
{
	memset(fx, 0, sizeof *fx);
	assert_int_equal(uv_loop_init(&fx->loop), 0);
	fx->clock = clock_new(&fx->loop);
	for (unsigned i = 0; i < ARRAY_LEN(fx->rows); i++) {
		fx->rows[i].fx = fx;
		fx->rows[i].name = (char)('a' + i);
		timer_init(&fx->rows[i].timer, on_fire);
	}
}

static void on_closed(void *data)
{
	++*(int *)data;
}

static void teardown(struct fixture *fx)
{
	clock_close(fx->clock, on_closed, &fx->closed);
	assert_int_equal(fx->closed, 0);
	uv_run(&fx->loop, UV_RUN_DEFAULT);
	assert_int_equal(fx->closed, 1);
	assert_int_equal(uv_loop_close(&fx->loop), 0);
}

TEST(clock, fires_in_order_of_due_time)
{
	struct fixture fx;
	setup(&fx);
	timer_start(fx.clock, &fx.rows[0].timer, 6);
	timer_start(fx.clock, &fx.rows[1].timer, 2);
	timer_start(fx.clock, &fx.rows[2].timer, 4);
	timer_start(fx.clock, &fx.rows[3].timer, 2);
	timer_start(fx.clock, &fx.rows[4].timer, 0);
	assert_string_equal(fx.fired, "");
	uv_run(&fx.loop, UV_RUN_DEFAULT);
	assert_string_equal(fx.fired, "ebdca");
	assert_false(timer_running(&fx.rows[0].timer));
	teardown(&fx);
}

TEST(clock, stop_and_restart)
{
	struct fixture fx;
	setup(&fx);
	timer_start(fx.clock, &fx.rows[0].timer, 1);
	timer_start(fx.clock, &fx.rows[1].timer, 2);
	timer_start(fx.clock, &fx.rows[2].timer, 100000);
	timer_stop(fx.clock, &fx.rows[0].timer);
	timer_stop(fx.clock, &fx.rows[0].timer);
	timer_start(fx.clock, &fx.rows[2].timer, 3);
	assert_true(timer_running(&fx.rows[2].timer));
	uv_run(&fx.loop, UV_RUN_DEFAULT);
	assert_string_equal(fx.fired, "bc");
	teardown(&fx);
}

/* a stops b, which is due in the same turn, and starts itself again with no delay, twice. */
static void on_fire_busy(struct timer *t)
{
	struct row *r = CONTAINER_OF(t, struct row, timer);
	note(r);
	timer_stop(r->fx->clock, &r->fx->rows[1].timer);
	if (strlen(r->fx->fired) < 5)
		timer_start(r->fx->clock, t, 0);
}

TEST(clock, callbacks_may_start_and_stop)
{
	struct fixture fx;
	setup(&fx);
	timer_init(&fx.rows[0].timer, on_fire_busy);
	timer_start(fx.clock, &fx.rows[0].timer, 0);
	timer_start(fx.clock, &fx.rows[1].timer, 0);
	timer_start(fx.clock, &fx.rows[2].timer, 0);
	uv_run(&fx.loop, UV_RUN_DEFAULT);
	/* A timer started in a callback waits for the next turn, so c is not starved. */
	assert_string_equal(fx.fired, "acaaa");
	teardown(&fx);
}

static void on_fire_close(struct timer *t)
{
	struct row *r = CONTAINER_OF(t, struct row, timer);
	note(r);
	clock_close(r->fx->clock, on_closed, &r->fx->closed);
}

TEST(clock, close_in_a_callback_drops_the_rest)
{
	struct fixture fx;
	setup(&fx);
	timer_init(&fx.rows[0].timer, on_fire_close);
	for (unsigned i = 0; i < 3; i++)
		timer_start(fx.clock, &fx.rows[i].timer, 0);
	timer_start(fx.clock, &fx.rows[3].timer, 5);
	uv_run(&fx.loop, UV_RUN_DEFAULT);
	assert_string_equal(fx.fired, "a");
	assert_int_equal(fx.closed, 1);
	for (unsigned i = 0; i < 4; i++)
		assert_false(timer_running(&fx.rows[i].timer));
	assert_int_equal(uv_loop_close(&fx.loop), 0);
}

struct ordered {
	struct timer timer;
	uint64_t *last_ms;
	unsigned *n;
};

static void on_fire_ordered(struct timer *t)
{
	struct ordered *o = CONTAINER_OF(t, struct ordered, timer);
	assert_true(t->due_ms >= *o->last_ms);
	*o->last_ms = t->due_ms;
	++*o->n;
}

TEST(clock, many_timers_keep_order)
{
	struct ordered rows[1000];
	struct fixture fx;
	uint64_t last_ms = 0;
	unsigned n = 0;
	setup(&fx);
	for (unsigned i = 0; i < ARRAY_LEN(rows); i++) {
		rows[i].last_ms = &last_ms;
		rows[i].n = &n;
		timer_init(&rows[i].timer, on_fire_ordered);
		timer_start(fx.clock, &rows[i].timer, i * 7919 % 20);
	}
	uv_run(&fx.loop, UV_RUN_DEFAULT);
	assert_int_equal(n, ARRAY_LEN(rows));
	teardown(&fx);
}

TEST(clock, stamps)
{
	char text[CLOCK_STAMP_SIZE];
	clock_stamp(0, text);
	assert_string_equal(text, "1970-01-01T00:00:00.000000Z");
	clock_stamp(INT64_C(1796028863123456), text);
	assert_string_equal(text, "2026-11-30T08:54:23.123456Z");
	clock_stamp(INT64_C(951782400000001), text);
	assert_string_equal(text, "2000-02-29T00:00:00.000001Z");
	clock_stamp(-1, text);
	assert_string_equal(text, "1969-12-31T23:59:59.999999Z");
	clock_stamp(INT64_MAX, text);
	assert_int_equal(strlen(text), CLOCK_STAMP_SIZE - 1);
	clock_stamp(INT64_MIN, text);
	assert_int_equal(strlen(text), CLOCK_STAMP_SIZE - 1);
}

TEST(clock, stamps_are_read)
{
	static const struct {
		const char *text;
		int64_t us; /* -1: it is none */
	} rows[] = {
		{"1970-01-01T00:00:00.000000Z", 0},
		{"2026-11-30T08:54:23.123456Z", INT64_C(1796028863123456)},
		{"2026-11-30T09:54:23.123456+01:00", INT64_C(1796028863123456)},
		{"2026-11-30T08:54:23Z", INT64_C(1796028863000000)},
		{"2026-11-30T08:54:23.1Z", INT64_C(1796028863100000)},
		{"2026-11-30T08:54:23.123456789Z", INT64_C(1796028863123456)},
		{"2026-11-30T08:54:23.123456", -1},
		{"2026-11-30", -1},
		{"2026-11-30T08:54:23.123456Zx", -1},
		{"2026-13-30T08:54:23.123456Z", -1},
		{"", -1},
	};
	for (unsigned i = 0; i < ARRAY_LEN(rows); i++) {
		int64_t us = -1;
		bool is_one = clock_stamp_read(rows[i].text, &us);
		if (us != rows[i].us || is_one != (us >= 0))
			fail_msg("%s: %lld", rows[i].text, (long long)us);
	}
}

RUN(TEST_ROW(clock, fires_in_order_of_due_time), TEST_ROW(clock, stop_and_restart),
	TEST_ROW(clock, callbacks_may_start_and_stop),
	TEST_ROW(clock, close_in_a_callback_drops_the_rest),
	TEST_ROW(clock, many_timers_keep_order), TEST_ROW(clock, stamps),
	TEST_ROW(clock, stamps_are_read))
