/* How a line ends by itself, and what people are told of it. */
#include "kernel-bridge/kernel_adopt.h"
#include "kernel-bridge/kernel_launch.h"
#include "kernel-bridge/kernel_interrupt.h"
#include "kernel-bridge/kernel_pool.h"
#include "kernel-bridge/kernel_revive.h"
#include "kernel-bridge/kernel_place.h"

#include <stdio.h>
#include <string.h>

#define QUIET_MS       50
#define DYING_MAX_MS   5000
#define FAILED_TO_LIVE "the kernel did not start: "

static void describe_size(int64_t bytes, char *ret_text, size_t size)
{
	if (bytes >= 1 << 30 && bytes % (1 << 30) == 0)
		snprintf(ret_text, size, "%lld GiB", (long long)(bytes >> 30));
	else
		snprintf(ret_text, size, "%lld MiB", (long long)(bytes >> 20));
}

static void describe_signal(struct kernel_death *death)
{
	const char *name = sigabbrev_np(death->code);

	if (name)
		snprintf(death->text, sizeof(death->text),
			"the kernel was killed by signal %d (SIG%s)", death->code, name);
	else
		snprintf(death->text, sizeof(death->text), "the kernel was killed by signal %d",
			death->code);
}

static void describe_oom(const struct kernel *k, struct kernel_death *death)
{
	char size[32];

	describe_size(k->bridge->env.config->memory, size, sizeof(size));
	snprintf(death->text, sizeof(death->text),
		"the kernel ran out of memory (limit %s) and was killed", size);
}

static void add_detail(struct kernel_death *death, const char *detail)
{
	size_t len = strlen(death->text), room = sizeof(death->text) - len;

	if (!detail || !*detail || room < 4)
		return;
	memcpy(death->text + len, ": ", 3);
	(void)copy_text(death->text + len + 2, room - 2, detail, strlen(detail)); /* may be cut */
}

static struct kernel_death death_of(const struct kernel *k, const struct line_exit *exit)
{
	struct kernel_death death = {.cause = DEATH_UNKNOWN, .text = "the kernel died"};

	if (!exit || !exit->known) {
		if (exit)
			add_detail(&death, exit->text);
		return death;
	}
	death.code = exit->signal ? exit->signal : exit->code;
	if (exit->oom) {
		death.cause = DEATH_OOM;
		describe_oom(k, &death);
	} else if (exit->signal) {
		death.cause = DEATH_SIGNAL;
		describe_signal(&death);
	} else {
		death.cause = DEATH_EXIT;
		snprintf(death.text, sizeof(death.text), "the kernel ended with exit code %d",
			exit->code);
	}
	add_detail(&death, exit->text);
	return death;
}

/* ---- dying ---- */

static void finish(struct kernel *k)
{
	struct err err;

	kernel_disconnect(k);
	kernel_drop_kept(k);
	if (k->slot_gone)
		kernel_drop_slot(k);
	k->dying = false;
	kernel_launch_over(k);
	kernel_adopt_last(k);
	kernel_set_state(k, KERNEL_DEAD);
	log_info(&k->log, "kernel_died line=%u why=%s", k->line, k->death.text);
	err_set(&err, E_DEAD, "%s", k->death.text);
	kernel_answer_restarts(k, &err);
	/* One who waited for the restart may have ended it or begun another. */
	if (k->wish == WISH_RUN && kernel_is(k, KERNEL_DEAD))
		k->watcher.on_death(k->watcher.data, &k->death);
}

static void on_quiet(struct timer *t)
{
	struct kernel *k = CONTAINER_OF(t, struct kernel, quiet_timer);

	if (!k->held) {
		finish(k);
		return;
	}
	/* What the kernel said last is still to be read, once the watcher has room. */
	k->dying_until_ms = clock_now_ms(kernel_clock(k)) + DYING_MAX_MS;
	timer_start(kernel_clock(k), &k->quiet_timer, QUIET_MS);
}

void kernel_death_postpone(struct kernel *k)
{
	if (clock_now_ms(kernel_clock(k)) < k->dying_until_ms)
		timer_start(kernel_clock(k), &k->quiet_timer, QUIET_MS);
}

void kernel_death_cancel(struct kernel *k)
{
	timer_stop(kernel_clock(k), &k->quiet_timer);
	timer_stop(kernel_clock(k), &k->fail_timer);
	k->dying = false;
}

void kernel_dies(struct kernel *k, const struct kernel_death *death)
{
	struct clock *clock = kernel_clock(k);

	if (kernel_hand_over_failed(k))
		return;
	timer_stop(clock, &k->start_timer);
	timer_stop(clock, &k->nudge_timer);
	timer_stop(clock, &k->stdin_timer);
	timer_stop(clock, &k->beat_timer);
	timer_stop(clock, &k->fail_timer);
	kernel_interrupt_cancel(k);
	k->death = *death;
	if (k->adoption != ADOPT_NO && !k->channels) {
		finish(k);
		return;
	}
	if (!k->ready && k->adoption == ADOPT_NO) {
		k->death.cause = DEATH_START;
		snprintf(
			k->death.text, sizeof(k->death.text), FAILED_TO_LIVE "%.200s", death->text);
		finish(k);
		return;
	}
	k->dying = true;
	channels_settle(k->channels);
	k->dying_until_ms = clock_now_ms(clock) + DYING_MAX_MS;
	timer_start(clock, &k->quiet_timer, QUIET_MS);
}

void kernel_fail(struct kernel *k, const char *why)
{
	if (kernel_hand_over_failed(k))
		return;
	timer_stop(kernel_clock(k), &k->start_timer);
	k->death = (struct kernel_death){.cause = DEATH_START};
	snprintf(k->death.text, sizeof(k->death.text), FAILED_TO_LIVE "%.200s", why);
	/* Whatever is left of the attempt goes with the slot; a restart gets a fresh one. */
	k->slot_gone = true;
	finish(k);
}

static void on_fail(struct timer *t)
{
	struct kernel *k = CONTAINER_OF(t, struct kernel, fail_timer);
	char why[sizeof(k->death.text)];

	memcpy(why, k->death.text, sizeof(why));
	kernel_fail(k, why);
}

void kernel_fail_later(struct kernel *k, const char *why)
{
	(void)copy_text(k->death.text, sizeof(k->death.text), why, strlen(why)); /* cut is fine */
	timer_start(kernel_clock(k), &k->fail_timer, 0);
}

void kernel_on_exit(void *data, unsigned line, const struct line_exit *exit)
{
	struct kernel *k = data;
	struct kernel_death death = death_of(k, exit);
	struct err err;

	err_set(&err, E_GONE, "%s", death.text);
	if (kernel_revival_failed(k, line, &err) || line != k->line || !k->alive)
		return;
	k->alive = false;
	if (k->wish != WISH_RUN) {
		kernel_wish_next(k);
		return;
	}
	kernel_dies(k, &death);
}

void kernel_on_gone(void *data, const struct line_exit *exit, const struct err *err)
{
	struct kernel *k = data;
	struct kernel_death death;
	bool was_alive = k->alive;

	kernel_revival_cancel(k, E_GONE, "the kernel's container is gone");
	k->alive = false;
	k->slot_gone = true;
	if (k->wish != WISH_RUN) {
		kernel_wish_next(k);
	} else if (kernel_is(k, KERNEL_DEAD)) {
		kernel_drop_slot(k);
	} else if (was_alive || !k->dying) {
		death = death_of(k, exit);
		if (!exit || !exit->known) {
			death.cause = DEATH_GONE;
			snprintf(death.text, sizeof(death.text),
				"the kernel's place is gone: %.200s",
				err && *err->text ? err->text : "nobody said why");
		}
		kernel_dies(k, &death);
	}
}

void kernel_death_init(struct kernel *k)
{
	timer_init(&k->quiet_timer, on_quiet);
	timer_init(&k->fail_timer, on_fail);
}
