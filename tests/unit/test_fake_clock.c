/* The fake clock keeps the real one's promises. Its definitions take the place of clock.o. */
#include "tests/lib/test.h"

#include <string.h>

#include "tests/lib/fake_clock.c"

struct row {
	struct timer timer;
	struct clock *clock;
	char *fired;
	char name;
	unsigned again; /* how often it starts itself anew with no delay */
};

static void on_fire(struct timer *t)
{
	struct row *r = CONTAINER_OF(t, struct row, timer);
	r->fired[strlen(r->fired)] = r->name;
	if (r->again-- > 0)
		timer_start(r->clock, t, 0);
}

static void setup(struct row *rows, unsigned n, struct clock *clock, char *fired)
{
	for (unsigned i = 0; i < n; i++) {
		rows[i] = (struct row){.clock = clock, .fired = fired, .name = (char)('a' + i)};
		timer_init(&rows[i].timer, on_fire);
	}
}

TEST(fake_clock, fires_in_order_and_only_what_is_due)
{
	struct clock *c = clock_new(NULL);
	struct row rows[4];
	char fired[32] = "";
	setup(rows, 4, c, fired);
	timer_start(c, &rows[0].timer, 300);
	timer_start(c, &rows[1].timer, 100);
	timer_start(c, &rows[2].timer, 100);
	timer_start(c, &rows[3].timer, 301);
	assert_int_equal(fake_clock_next(c), 100);
	fake_clock_advance(c, 99);
	assert_string_equal(fired, "");
	fake_clock_advance(c, 1);
	assert_string_equal(fired, "bc");
	uint64_t before = clock_now_ms(c);
	fake_clock_advance(c, 200);
	assert_string_equal(fired, "bca");
	assert_int_equal(clock_now_ms(c), before + 200);
	timer_stop(c, &rows[3].timer);
	assert_true(fake_clock_next(c) == UINT64_MAX);
	clock_close(c, NULL, NULL);
}

TEST(fake_clock, no_delay_fires_on_the_next_advance)
{
	struct clock *c = clock_new(NULL);
	struct row rows[2];
	char fired[32] = "";
	setup(rows, 2, c, fired);
	rows[0].again = 2;
	timer_start(c, &rows[0].timer, 0);
	timer_start(c, &rows[1].timer, 0);
	assert_string_equal(fired, "");
	fake_clock_advance(c, 0);
	assert_string_equal(fired, "abaa");
	clock_close(c, NULL, NULL);
}

RUN(TEST_ROW(fake_clock, fires_in_order_and_only_what_is_due),
	TEST_ROW(fake_clock, no_delay_fires_on_the_next_advance))
