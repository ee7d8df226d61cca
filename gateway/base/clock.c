#include "gateway/base/clock.h"

#include <assert.h>
#include <time.h>
#include <uv.h>

struct clock {
	uv_loop_t *loop;
	uv_timer_t uv; /* armed for armed_ms while some timer runs */
	uint64_t armed_ms;
	bool armed;
	bool closing;
	struct list timers; /* in order of due time */
	struct list due;    /* those of this loop turn that have not fired yet */
	void (*closed)(void *data);
	void *data;
};

static void on_uv_timer(uv_timer_t *uv);

static struct timer *timer_of(struct list *link)
{
	return CONTAINER_OF(link, struct timer, link);
}

/* A uv timer that is armed too early is left alone: it finds nothing due and arms again. */
static void clock_arm(struct clock *c)
{
	if (list_empty(&c->timers)) {
		(void)uv_timer_stop(&c->uv); /* cannot fail on an open timer */
		c->armed = false;
		return;
	}
	uint64_t due_ms = timer_of(c->timers.next)->due_ms, now_ms = uv_now(c->loop);
	if (c->armed && c->armed_ms <= due_ms)
		return;
	int status = uv_timer_start(&c->uv, on_uv_timer, due_ms > now_ms ? due_ms - now_ms : 0, 0);
	assert(status == 0);
	(void)status; /* only read by the assert */
	c->armed = true;
	c->armed_ms = due_ms;
}

static void on_uv_timer(uv_timer_t *uv)
{
	struct clock *c = uv->data;
	uint64_t now_ms = uv_now(c->loop);
	c->armed = false;
	/* Set apart first: a timer that a callback starts with no delay waits for the next turn. */
	while (!list_empty(&c->timers) && timer_of(c->timers.next)->due_ms <= now_ms) {
		struct list *link = c->timers.next;
		list_remove(link);
		list_append(&c->due, link);
	}
	while (!list_empty(&c->due)) {
		struct timer *t = timer_of(c->due.next);
		list_remove(&t->link);
		t->fire(t);
	}
	if (!c->closing)
		clock_arm(c);
}

struct clock *clock_new(struct uv_loop_s *loop)
{
	struct clock *c = xcalloc(1, sizeof *c);
	c->loop = loop;
	list_init(&c->timers);
	list_init(&c->due);
	int status = uv_timer_init(loop, &c->uv);
	assert(status == 0);
	(void)status; /* only read by the assert */
	c->uv.data = c;
	return c;
}

static void on_uv_closed(uv_handle_t *handle)
{
	struct clock *c = handle->data;
	void (*closed)(void *data) = c->closed;
	void *data = c->data;
	free(c);
	if (closed)
		closed(data);
}

void clock_close(struct clock *c, void (*closed)(void *data), void *data)
{
	assert(!c->closing);
	c->closing = true;
	c->closed = closed;
	c->data = data;
	/* Their owners may stop them later: they must not point into freed memory. */
	while (!list_empty(&c->timers))
		list_remove(c->timers.next);
	while (!list_empty(&c->due))
		list_remove(c->due.next);
	uv_close((uv_handle_t *)&c->uv, on_uv_closed);
}

uint64_t clock_now_ms(const struct clock *c)
{
	return uv_now(c->loop);
}

int64_t clock_wall_us(const struct clock *c)
{
	(void)c; /* the fake clock needs it */
	struct timespec now;
	clock_gettime(CLOCK_REALTIME, &now);
	return (int64_t)now.tv_sec * 1000000 + now.tv_nsec / 1000;
}

void timer_start(struct clock *c, struct timer *t, uint64_t delay_ms)
{
	assert(!c->closing);
	list_remove(&t->link);
	uint64_t now_ms = uv_now(c->loop);
	t->due_ms = delay_ms > UINT64_MAX - now_ms ? UINT64_MAX : now_ms + delay_ms;
	/* From the end: most timers are started with the longest delay that is around. */
	struct list *before = c->timers.prev;
	while (before != &c->timers && timer_of(before)->due_ms > t->due_ms)
		before = before->prev;
	list_append(before->next, &t->link);
	clock_arm(c);
}

void timer_stop(struct clock *c, struct timer *t)
{
	if (!timer_running(t))
		return;
	list_remove(&t->link);
	if (!c->closing)
		clock_arm(c);
}
