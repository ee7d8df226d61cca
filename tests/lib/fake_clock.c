#include "tests/lib/fake_clock.h"

#include <assert.h>

#include "gateway/base/base.h"

/* 2026-11-30T08:54:23Z at the start, so that stamps in tests are readable. */
#define FAKE_WALL_US INT64_C(1796028863000000)

struct clock {
	uint64_t now_ms;
	struct list timers;
};

static struct timer *timer_of(struct list *link)
{
	return CONTAINER_OF(link, struct timer, link);
}

struct clock *clock_new(struct uv_loop_s *loop)
{
	(void)loop; /* a fake clock moves by hand; NULL is fine */
	struct clock *c = xcalloc(1, sizeof *c);
	c->now_ms = 1000;
	list_init(&c->timers);
	return c;
}

/* Not asynchronous: there is no loop that it could wait for. */
void clock_close(struct clock *c, void (*closed)(void *data), void *data)
{
	while (!list_empty(&c->timers))
		list_remove(c->timers.next);
	free(c);
	if (closed)
		closed(data);
}

uint64_t clock_now_ms(const struct clock *c)
{
	return c->now_ms;
}

int64_t clock_wall_us(const struct clock *c)
{
	return FAKE_WALL_US + (int64_t)(c->now_ms - 1000) * 1000;
}

void timer_start(struct clock *c, struct timer *t, uint64_t delay_ms)
{
	list_remove(&t->link);
	t->due_ms = delay_ms > UINT64_MAX - c->now_ms ? UINT64_MAX : c->now_ms + delay_ms;
	struct list *before = c->timers.prev;
	while (before != &c->timers && timer_of(before)->due_ms > t->due_ms)
		before = before->prev;
	list_append(before->next, &t->link);
}

void timer_stop(struct clock *c, struct timer *t)
{
	(void)c; /* the real clock needs it */
	list_remove(&t->link);
}

uint64_t fake_clock_next(const struct clock *c)
{
	if (list_empty((struct list *)&c->timers))
		return UINT64_MAX;
	uint64_t due_ms = timer_of(c->timers.next)->due_ms;
	return due_ms > c->now_ms ? due_ms - c->now_ms : 0;
}

/* Those that are due by now; what they start with no delay is for the next round. */
static void fire_due(struct clock *c)
{
	struct list due;
	list_init(&due);
	while (fake_clock_next(c) == 0) {
		struct list *link = c->timers.next;
		list_remove(link);
		list_append(&due, link);
	}
	while (!list_empty(&due)) {
		struct timer *t = timer_of(due.next);
		list_remove(&t->link);
		t->fire(t);
	}
}

void fake_clock_advance(struct clock *c, uint64_t ms)
{
	uint64_t until_ms = c->now_ms + ms;
	unsigned rounds = 0;
	while (fake_clock_next(c) <= until_ms - c->now_ms) {
		c->now_ms += fake_clock_next(c);
		fire_due(c);
		/* A timer that starts itself again with no delay would never let time pass. */
		assert(++rounds < 10000000);
	}
	c->now_ms = until_ms;
}
