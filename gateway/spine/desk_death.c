/* How a desk takes its kernel's death: who is told, and what comes after it. */
#include <string.h>

#include "gateway/spine/desk.h"
#include "gateway/spine/limits.h"
#include "gateway/spine/moves.h"
#include "gateway/spine/notice.h"

#define STABLE_MS	     60000u /* alive so long: earlier deaths are forgotten */
#define SHUTDOWN_EXPECTED_MS 30000u
#define EXIT_EXPECTED_MS     10000u

static bool lately(const struct desk *d, uint64_t when_ms, unsigned within_ms)
{
	return when_ms > 0 && clock_now_ms(d->gw->clock) - when_ms <= within_ms;
}

/* A kernel that never came up does not come up the second time either. */
static bool may_restart(struct desk *d, bool was_stable)
{
	if (was_stable)
		d->deaths = 0;
	d->deaths++;
	return d->gw->config.auto_restart && d->was_ready &&
	       d->deaths <= (uint64_t)d->gw->config.restart_limit;
}

static void say_why(struct desk *d, const struct kernel_death *death, bool by_user)
{
	log_warn(&d->log, "kernel_died cause=%d code=%d text=\"%s\"", (int)death->cause,
		death->code, death->text);
	if (by_user)
		notice_text(d, JOURNAL_TO_ALL, "User code ended the kernel (exit() or quit()).");
	else
		notice_text(d, JOURNAL_TO_ALL, "The kernel died: %s", death->text);
}

static bool is_by_user(const struct desk *d)
{
	return lately(d, d->exit_ms, EXIT_EXPECTED_MS) && d->death.how.cause == DEATH_EXIT;
}

void desk_died(void *data, const struct kernel_death *death)
{
	struct desk *d = data;
	if (d->dead || d->ending)
		return; /* a start that failed: on_restarted had the last word */
	d->open = d->adopting = false;
	d->death.known = true;
	d->death.how = *death;
	d->kernels->count.deaths++;
	if (d->unborn)
		return; /* desk_is_born() goes on */
	if (!d->move)
		move_cancel(d, "the kernel died"); /* one that its last cell asked for */
	if (lately(d, d->shutdown_ms, SHUTDOWN_EXPECTED_MS)) {
		move_cancel(d, "a client shut the kernel down");
		requests_abort(d, true);
		if (d->shutdown_restarts) {
			desk_tell_restart(d);
			desk_start_again(d);
		} else
			desk_end(d, "A client shut the kernel down.", NULL, NULL);
		return;
	}
	if (limit_takes_death(d))
		return;
	say_why(d, death, is_by_user(d));
	if (move_takes_death(d))
		requests_abort(d, false);
	else
		desk_after_death(d);
}

void desk_after_death(struct desk *d)
{
	const struct kernel_death death = d->death.how;
	bool by_user = is_by_user(d);
	bool stable = d->ready_ms > 0 && clock_now_ms(d->gw->clock) - d->ready_ms >= STABLE_MS;
	bool restarts = may_restart(d, stable);
	/* What came after exit() is for the kernel that follows. */
	requests_abort(d, !by_user || !restarts);
	if (restarts) {
		notice_break(d, "restarting", JOURNAL_TO_ALL);
		desk_start_again(d);
		return;
	}
	desk_die(d, death.text);
	struct err err;
	err_set(&err, E_DEAD, "%s", death.text);
	desk_tell_waiters(d, &err);
}

void desk_begin_anew(struct desk *d)
{
	d->deaths = 0; /* it did not die by itself */
	requests_abort(d, true);
	notice_break(d, "restarting", JOURNAL_TO_ALL);
	desk_start_again(d);
}
