#include "gateway/spine/waiting.h"

#include "gateway/base/base.h"

struct place_waiter {
	struct list link;
	size_t position; /* when it came */
	uint64_t until_ms;
	int64_t wait_ms;
	void (*cb)(void *data, const struct err *err);
	void *data;
};

static struct place_waiter *first(const struct waiting *w)
{
	return list_empty(&w->waiters) ? NULL
				       : CONTAINER_OF(w->waiters.next, struct place_waiter, link);
}

static void call_first(struct waiting *w, const struct err *err)
{
	struct place_waiter *x = first(w);
	list_remove(&x->link);
	w->n--;
	x->cb(x->data, err);
	free(x);
}

static void wait_for_first(struct waiting *w)
{
	const struct place_waiter *x = first(w);
	uint64_t now_ms = clock_now_ms(w->clock);
	if (x)
		timer_start(
			w->clock, &w->deadline, x->until_ms > now_ms ? x->until_ms - now_ms : 0);
	else
		timer_stop(w->clock, &w->deadline);
}

static void refuse_first(struct waiting *w)
{
	const struct place_waiter *x = first(w);
	struct err err;
	(void)err_set(&err, E_QUEUE_TIMEOUT,
		"no place for a kernel became free within %lld s: this request was number %zu of "
		"those that waited; end a kernel, or try again later",
		(long long)((x->wait_ms + 999) / 1000), x->position);
	w->refused++;
	call_first(w, &err);
}

static void on_deadline(struct timer *t)
{
	struct waiting *w = CONTAINER_OF(t, struct waiting, deadline);
	uint64_t now_ms = clock_now_ms(w->clock);
	while (!list_empty(&w->waiters) && first(w)->until_ms <= now_ms)
		refuse_first(w);
	wait_for_first(w);
}

static void on_serve(struct timer *t)
{
	struct waiting *w = CONTAINER_OF(t, struct waiting, serve);
	while (!list_empty(&w->waiters) && w->has_place(w->data)) {
		w->served++;
		w->admits = true;
		call_first(w, NULL);
		w->admits = false;
	}
	wait_for_first(w);
}

void waiting_init(struct waiting *w, struct clock *clock, bool (*has_place)(void *data), void *data)
{
	*w = (struct waiting){.clock = clock, .has_place = has_place, .data = data};
	list_init(&w->waiters);
	timer_init(&w->deadline, on_deadline);
	timer_init(&w->serve, on_serve);
}

void waiting_add(struct waiting *w, int64_t wait_ms, void (*cb)(void *data, const struct err *err),
	void *data)
{
	struct place_waiter *x = xcalloc(1, sizeof *x);
	x->position = ++w->n;
	x->wait_ms = wait_ms;
	x->until_ms = clock_now_ms(w->clock) + (uint64_t)wait_ms;
	x->cb = cb;
	x->data = data;
	list_append(&w->waiters, &x->link);
	if (!timer_running(&w->deadline))
		wait_for_first(w);
}

void waiting_serve(struct waiting *w)
{
	if (!list_empty(&w->waiters) && !timer_running(&w->serve))
		timer_start(w->clock, &w->serve, 0);
}

void waiting_end(struct waiting *w)
{
	struct err err;
	timer_stop(w->clock, &w->deadline);
	timer_stop(w->clock, &w->serve);
	(void)err_set(&err, E_UNAVAILABLE, "the gateway is ending");
	while (!list_empty(&w->waiters))
		call_first(w, &err);
}
