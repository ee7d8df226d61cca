/* Restart in place, and the end: polite first, then not. */
#include "kernel-bridge/kernel_adopt.h"
#include "kernel-bridge/kernel_interrupt.h"
#include "kernel-bridge/kernel_launch.h"
#include "kernel-bridge/kernel_limit.h"
#include "kernel-bridge/kernel_revive.h"
#include "kernel-bridge/kernel_place.h"

#include <assert.h>
#include <stdio.h>

#define RESTART_POLITE_MS 1000
#define RESTART_KILL_MS	  2000
#define END_POLITE_MS	  2000
#define END_KILL_MS	  1000
#define END_DEADLINE_MS	  4900

struct restart_waiter {
	struct list link;
	void (*cb)(void *data, const struct err *err);
	void *data;
};

void kernel_answer_restarts(struct kernel *k, const struct err *err)
{
	while (!list_empty(&k->restarts)) {
		struct restart_waiter *w =
			CONTAINER_OF(k->restarts.next, struct restart_waiter, link);
		void (*cb)(void *data, const struct err *err) = w->cb;
		void *data = w->data;

		list_remove(&w->link);
		free(w);
		cb(data, err);
	}
}

static void refuse_restarts(struct kernel *k)
{
	struct err err;

	err_set(&err, E_DEAD, "the kernel is ended");
	while (!list_empty(&k->restarts)) {
		struct restart_waiter *w =
			CONTAINER_OF(k->restarts.next, struct restart_waiter, link);

		kernel_answer_later(kernel_clock(k), w->cb, w->data, &err);
		list_remove(&w->link);
		free(w);
	}
}

/* ---- the old line ---- */

static void kill_line(struct kernel *k)
{
	struct err err;

	k->killed = true;
	if (k->place->slot->engine->ops->kill_line(k->place->slot, k->line, &err) < 0)
		log_debug(&k->log, "kill_failed line=%u why=%s", k->line, err.text);
	timer_start(kernel_clock(k), &k->step_timer,
		k->wish == WISH_END ? END_KILL_MS : RESTART_KILL_MS);
}

/* Asks the line to end, by message if it can hear one. on_exit or the step timer goes on. */
static void ask_to_end(struct kernel *k)
{
	bool end = k->wish == WISH_END;
	struct err err;

	k->killed = false;
	if (k->ready && kernel_ask(k, CHANNEL_CONTROL, "shutdown_request",
				end ? "{\"restart\":false}" : "{\"restart\":true}", &err) == 0)
		timer_start(
			kernel_clock(k), &k->step_timer, end ? END_POLITE_MS : RESTART_POLITE_MS);
	else
		kill_line(k);
}

static void on_step(struct timer *t)
{
	struct kernel *k = CONTAINER_OF(t, struct kernel, step_timer);

	if (!k->killed) {
		kill_line(k);
		return;
	}
	/* Not even killing helps: the slot goes. */
	log_warn(&k->log, "line_not_killed line=%u", k->line);
	k->slot_gone = true;
	kernel_wish_next(k);
}

/* ---- the end ---- */

static void on_free(struct timer *t)
{
	kernel_free(CONTAINER_OF(t, struct kernel, free_timer));
}

static void tell_ended(struct kernel *k)
{
	void (*cb)(void *data) = TAKE(k->ended);

	timer_stop(kernel_clock(k), &k->deadline_timer);
	if (cb)
		cb(k->ended_data);
}

static void end_if_removed(struct kernel *k)
{
	if (k->place || k->n_removing > 0 || timer_running(&k->free_timer))
		return;
	/* Dead things rest one loop: whoever is on the way here may still look at them. */
	timer_start(kernel_clock(k), &k->free_timer, 0);
	tell_ended(k);
}

static void on_deadline(struct timer *t)
{
	struct kernel *k = CONTAINER_OF(t, struct kernel, deadline_timer);

	if (!k->place && k->n_removing == 0) {
		end_if_removed(k);
		return;
	}
	/* The engine is slow to remove; nobody need wait for that. The slot stays reserved. */
	log_warn(&k->log, "end_is_slow line=%u", k->line);
	tell_ended(k);
}

void kernel_on_removed(void *data)
{
	struct kernel *k = data;

	k->n_removing--;
	if (k->wish == WISH_END)
		end_if_removed(k);
}

static void on_end_begun(struct kernel *k)
{
	/* With no owner there is nothing that it could put in order. */
	if (k->alive && k->channels && !k->unowned) {
		ask_to_end(k);
		return;
	}
	kernel_disconnect(k);
	if (k->place)
		kernel_drop_slot(k);
}

void kernel_end(struct kernel *k, void (*cb)(void *data), void *data)
{
	assert(k->wish != WISH_END);
	kernel_revival_cancel(k, E_DEAD, "the kernel was ended meanwhile");
	kernel_limit_cancel(k, E_DEAD, "the kernel was ended meanwhile");
	k->wish = WISH_END;
	k->ended = cb;
	k->ended_data = data;
	timer_stop(kernel_clock(k), &k->start_timer);
	timer_stop(kernel_clock(k), &k->nudge_timer);
	timer_stop(kernel_clock(k), &k->stdin_timer);
	timer_stop(kernel_clock(k), &k->beat_timer);
	timer_stop(kernel_clock(k), &k->step_timer);
	kernel_death_cancel(k);
	kernel_interrupt_cancel(k);
	kernel_drop_kept(k);
	kernel_launch_over(k);
	refuse_restarts(k);
	if (!kernel_is(k, KERNEL_DEAD))
		kernel_set_state(k, KERNEL_DEAD);
	on_end_begun(k);
	/* With nothing left to wait for the deadline is now. */
	timer_start(kernel_clock(k), &k->deadline_timer,
		k->place || k->n_removing > 0 ? END_DEADLINE_MS : 0);
}

/* ---- restart ---- */

void kernel_wish_next(struct kernel *k)
{
	timer_stop(kernel_clock(k), &k->step_timer);
	kernel_disconnect(k);
	if (k->wish == WISH_END) {
		if (k->place)
			kernel_drop_slot(k);
		end_if_removed(k); /* where others stay there is nothing to wait for */
		return;
	}
	k->wish = WISH_RUN;
	if (k->slot_gone)
		kernel_drop_slot(k);
	kernel_begin(k);
}

static void restart_line(struct kernel *k)
{
	k->wish = WISH_RESTART;
	timer_stop(kernel_clock(k), &k->start_timer);
	timer_stop(kernel_clock(k), &k->nudge_timer);
	timer_stop(kernel_clock(k), &k->stdin_timer);
	timer_stop(kernel_clock(k), &k->beat_timer);
	kernel_interrupt_cancel(k);
	ask_to_end(k);
}

static void restart_dead(struct kernel *k)
{
	kernel_death_cancel(k);
	kernel_disconnect(k);
	if (k->slot_gone)
		kernel_drop_slot(k);
	kernel_begin(k);
}

void kernel_restart(struct kernel *k, void (*cb)(void *data, const struct err *err), void *data)
{
	struct restart_waiter *w;
	bool lives = k->alive && k->channels;
	struct err err;

	if (k->wish == WISH_END) {
		err_set(&err, E_DEAD, "the kernel is ended");
		kernel_answer_later(kernel_clock(k), cb, data, &err);
		return;
	}
	w = xcalloc(1, sizeof(*w));
	w->cb = cb;
	w->data = data;
	list_append(&k->restarts, &w->link);
	kernel_drop_kept(k); /* in flight, so the watcher's to end */
	kernel_revival_cancel(k, E_DEAD, "the kernel was restarted meanwhile");
	kernel_limit_cancel(k, E_DEAD, "the kernel was restarted meanwhile");
	/* One that is only just being made is as fresh as it gets: wait for it. */
	if (k->wish == WISH_RESTART || k->handing != HAND_NO ||
		(kernel_is(k, KERNEL_STARTING) && !k->channels && k->adoption == ADOPT_NO))
		return;
	kernel_adopt_drop(k);
	if (!kernel_is(k, KERNEL_STARTING))
		kernel_set_state(k, KERNEL_STARTING);
	if (lives)
		restart_line(k);
	else
		restart_dead(k);
}

void kernel_end_init(struct kernel *k)
{
	timer_init(&k->step_timer, on_step);
	timer_init(&k->deadline_timer, on_deadline);
	timer_init(&k->free_timer, on_free);
}
