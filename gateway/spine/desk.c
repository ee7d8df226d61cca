#include "gateway/spine/desk_new.h"

#include <assert.h>
#include <cjson/cJSON.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "gateway/spine/limits.h"
#include "gateway/spine/look.h"
#include "gateway/spine/magic.h"
#include "gateway/spine/moves.h"
#include "gateway/spine/notice.h"
#include "gateway/spine/relay.h"
#include "gateway/spine/sessions.h"
#include "gateway/spine/survive.h"

#define REATTACH_MS  2000u /* who asked for a restart comes back with a new socket by then */
#define EXIT_HOLD_MS 2000u

void desk_set_busy(struct desk *d, bool busy)
{
	enum kernel_state now = kernel_state(d->kernel);
	if (now == (busy ? KERNEL_IDLE : KERNEL_BUSY))
		kernel_set_busy(d->kernel, busy);
}

bool desk_post(struct desk *d, struct jmsg *m, uint64_t to, uint64_t *ret_number)
{
	struct err err;
	if (journal_append(d->journal, m, to, ret_number, &err) != 0) {
		log_error(&d->log, "journal_append error=\"%s\"", err.text);
		clients_close(d, to, 1011, err.text);
		return false;
	}
	live_took(d->live, m, *ret_number, to);
	past_again(d->past, m, *ret_number);
	if (to != JOURNAL_TO_NOBODY)
		clients_tell(d, to);
	return true;
}

void desk_shutdown_asked(struct desk *d, bool restarts)
{
	d->shutdown_ms = clock_now_ms(d->gw->clock);
	d->shutdown_restarts = restarts;
}

static bool is_up(const struct desk *d)
{
	enum kernel_state state = d->kernel ? kernel_state(d->kernel) : KERNEL_DEAD;
	return !d->dead && !d->ending && !d->adopting && !d->move && !limit_holds(d) &&
	       (state == KERNEL_IDLE || state == KERNEL_BUSY);
}

static void on_exit_timer(struct timer *t)
{
	struct desk *d = CONTAINER_OF(t, struct desk, exit_timer);
	if (!is_up(d))
		return;
	d->open = true;
	queue_open(d);
}

void desk_open(struct desk *d)
{
	if (!is_up(d))
		return;
	d->open = true;
	if (!desk_is_busy(d))
		notice_status(d, "idle", NULL, JOURNAL_TO_ALL);
	queue_open(d);
}

void desk_exit_asked(struct desk *d)
{
	d->exit_ms = clock_now_ms(d->gw->clock);
	d->open = false;
	timer_start(d->gw->clock, &d->exit_timer, EXIT_HOLD_MS);
}

void desk_tell_waiters(struct desk *d, const struct err *err)
{
	while (!list_empty(&d->waiters)) {
		struct waiter *w = CONTAINER_OF(d->waiters.next, struct waiter, link);
		list_remove(&w->link);
		if (w->cb)
			w->cb(w->data, err);
		free(w);
	}
}

void desk_die(struct desk *d, const char *reason)
{
	d->dead = true;
	(void)copy_text(d->reason, sizeof d->reason, reason, strlen(reason)); /* may be cut */
	log_warn(&d->log, "kernel_dead reason=\"%s\"", d->reason);
	requests_abort(d, true);
	notice_break(d, "dead", JOURNAL_TO_ALL);
	live_restarts(d->live, false); /* it was carried out, in vain */
	survive_record(d);
	clients_close(d, JOURNAL_TO_ALL, 1000, "the kernel is dead");
}

static void on_restarted(void *data, const struct err *err)
{
	struct desk *d = data;
	if (d->ending)
		return;
	if (err)
		log_warn(&d->log, "restart error=\"%s\"", err->text);
	/* A newer restart may be on its way already: then the kernel is not dead. */
	if (err && !d->dead && kernel_state(d->kernel) == KERNEL_DEAD) {
		notice_text(
			d, JOURNAL_TO_ALL, "The kernel could not be started again: %s", err->text);
		desk_die(d, err->text);
	}
	desk_tell_waiters(d, err);
}

/* Its container is gone: a kernel that is ready takes its place, if there is one. */
static void take_another(struct desk *d)
{
	struct pool *pool = d->kernels->pool;
	struct kernel *old = d->kernel;
	const struct kernel_start start = {.id = d->id,
		.owner = d->owner->name,
		.spec = kernel_spec(old),
		.env = kernel_env(old)};
	struct kernel_watcher watcher = desk_watcher(d);
	/* One that waits works in the usual folder since it was begun. */
	if (kernel_has_place(old) || *kernel_folder(old) ||
		!pool_take(pool, &start, &watcher, &d->kernel))
		return;
	survive_record(d);
	pool_end_kernel(pool, old);
}

void desk_new_epoch(struct desk *d)
{
	d->epoch = (uint64_t)clock_wall_us(d->gw->clock);
	d->death.known = false;
	d->at.node[0] = d->at.branch[0] = d->stands[0] = '\0';
	live_epoch(d->live, d->epoch);
}

void desk_start_again(struct desk *d)
{
	d->dead = d->from_pool = false;
	d->reason[0] = '\0';
	d->shutdown_ms = d->exit_ms = d->ready_ms = 0;
	d->open = false;
	timer_stop(d->gw->clock, &d->exit_timer);
	acks_forget(d);
	desk_new_epoch(d);
	d->kernels->count.restarts++;
	take_another(d);
	kernel_restart(d->kernel, on_restarted, d);
}

/* The page whose user asked for the restart comes back with a new socket of its session. With
 * several pages the others must say that their variables are gone: on `restarting` they do. */
static void on_restart_timer(struct timer *t)
{
	struct desk *d = CONTAINER_OF(t, struct desk, restart_timer);
	for (uint64_t to; (to = clients_take_old(d)) != JOURNAL_TO_NOBODY;) {
		notice_break(d, "restarting", to);
		notice_status(d, desk_is_busy(d) ? "busy" : "idle", NULL, to);
	}
}

void desk_tell_restart(struct desk *d)
{
	d->others_untold = clients_mark_old(d);
	notice_restart(d);
}

static void on_ready(void *data, const struct jmsg *reply)
{
	struct desk *d = data;
	struct jmsg *kept = (struct jmsg *)(uintptr_t)reply; /* counted: kept beyond the call */
	jmsg_unref(d->info);
	d->info = jmsg_ref(kept);
	if (*reply->session)
		(void)copy_text(
			d->session, sizeof d->session, reply->session, strlen(reply->session));
	d->was_ready = true;
	live_restarts(d->live, false);
	limit_ready(d);
	survive_ready(d);
	d->open = !d->adopting && !d->move; /* else survive_settled() or the move opens it */
	d->asked = d->adopting;
	d->ready_ms = clock_now_ms(d->gw->clock);
	log_info(&d->log, "kernel_ready");
	kernel_hold(d->kernel, d->held);
	if (d->adopting && requests_run(&d->requests))
		desk_set_busy(d, true);
	else if (d->open)
		notice_status(d, "idle", NULL, JOURNAL_TO_ALL);
	if (d->others_untold)
		timer_start(d->gw->clock, &d->restart_timer, REATTACH_MS);
	d->others_untold = false;
	if (d->open)
		queue_open(d);
	journal_turn(d->journal);
}

static void on_message(void *data, struct jmsg *m)
{
	struct desk *d = data;
	if (past_has(d->past, m))
		return;
	relay_from_kernel(d, m);
	acks_took(d, m, journal_next(d->journal) - 1);
}

static void on_turn(void *data)
{
	struct desk *d = data;
	if (d->adopting && d->ready_ms > 0)
		survive_settled(d);
	journal_turn(d->journal);
}

static void on_notice(void *data, const char *text)
{
	notice_text(data, JOURNAL_TO_ALL, "%s", text);
}

static void on_record(void *data)
{
	survive_record(data);
}

static void on_pressure(void *data, bool over)
{
	struct desk *d = data;
	d->held = over;
	log_info(&d->log, "kernel_hold hold=%d", over);
	if (d->kernel && !d->ending)
		kernel_hold(d->kernel, over);
}

static void on_written(void *data, uint64_t last)
{
	struct desk *d = data;
	live_written(d->live, last);
	scribe_written(d);
	if (!d->ending)
		acks_written(d, last);
}

/* What an earlier gateway's clients were answered: a message that comes again is not run again. */
static void on_kept(void *data, struct bytes frame, uint64_t number, uint64_t to)
{
	struct desk *d = data;
	AUTO(jmsg_unrefp) struct jmsg *m = NULL;
	if (jmsg_from_frame(frame, &m, NULL) == 0)
		answers_add_reply(&d->requests.answers, m, number, to);
}

static void on_trouble(void *data, const char *text)
{
	struct desk *d = data;
	log_error(&d->log, "journal_disk error=\"%s\"", text);
	notice_text(d, JOURNAL_TO_ALL,
		"The gateway's disk failed: only recent output is kept for clients that are away.");
	scribe_look_soon(d);
}

void desk_free(void *data)
{
	struct desk *d = data;
	struct kernels *ks = d->kernels;
	LIST_EACH_SAFE (at, &d->executions)
		execution_free(CONTAINER_OF(at, struct execution, link));
	past_free(d->past);
	parks_done(&d->parks);
	requests_done(&d->requests);
	queue_done(&d->queue);
	repeats_done(&d->repeats);
	jmsg_unref(d->info);
	free(d->name);
	free(d->path);
	list_remove(&d->link);
	free(d);
	kernels_freed(ks);
}

void desk_release(struct desk *d)
{
	if (!d->ending || d->kernel || !d->journal || clients_attached(d) > 0 || scribe_holds(d))
		return;
	clients_drop_gone(d, 0);
	magic_drop(d);
	look_drop(d);
	timer_stop(d->gw->clock, &d->requests.half_timer);
	timer_stop(d->gw->clock, &d->restart_timer);
	timer_stop(d->gw->clock, &d->exit_timer);
	acks_stop(d);
	scribe_done(d);
	struct journal *j = TAKE(d->journal);
	live_close(TAKE(d->live));
	if (!d->leaving)
		survive_remove(d);
	if (d->leaving)
		journal_leave(j, desk_free, d);
	else
		journal_close(j, desk_free, d);
}

int desk_open_journal(struct desk *d, bool goes_on, struct err *err)
{
	char folder[PATH_MAX];
	const struct config *config = &d->gw->config;
	int n = snprintf(folder, sizeof folder, "%s/journals/%s", config->data_dir, d->id);
	if (n < 0 || (size_t)n >= sizeof folder)
		return err_set(err, E_INVALID, "data_dir is too long");
	struct journal_setup setup = {
		.loop = d->gw->loop,
		.clock = d->gw->clock,
		.folder = folder,
		.goes_on = goes_on,
		.memory_max = (size_t)config->journal_memory,
		.disk_max = (uint64_t)config->journal_disk,
		.on_kept = on_kept,
		.on_pressure = on_pressure,
		.on_written = on_written,
		.on_trouble = on_trouble,
		.data = d,
	};
	int rc = journal_open(&setup, &d->journal, err);
	if (rc == 0)
		survive_open(d, goes_on);
	return rc;
}

void desk_timers_init(struct desk *d)
{
	timer_init(&d->restart_timer, on_restart_timer);
	timer_init(&d->exit_timer, on_exit_timer);
}

struct kernel_watcher desk_watcher(struct desk *d)
{
	return (struct kernel_watcher){
		.on_ready = on_ready,
		.on_message = on_message,
		.on_turn = on_turn,
		.on_death = desk_died,
		.on_notice = on_notice,
		.on_record = on_record,
		.on_report = scribe_report,
		.on_ask = magic_ask,
		.on_parked = parks_on_parked,
		.on_unparked = parks_on_unparked,
		.on_not_parked = parks_on_not_parked,
		.on_files = files_on_files,
		.on_content = files_on_content,
		.data = d,
	};
}

void desk_interrupt(struct desk *d, void (*cb)(void *data, const struct err *err), void *data)
{
	log_info(&d->log, "kernel_interrupt");
	limit_interrupted(d);
	kernel_interrupt(d->kernel, cb, data);
}

/* Once aborted is said the old process must not answer any more, also not to the next gateway. */
static void restart(struct desk *d)
{
	live_restarts(d->live, true);
	d->open = d->adopting = false;
	limit_cancel(d);
	move_cancel(d, "the kernel was restarted meanwhile");
	requests_abort(d, true);
	desk_tell_restart(d);
	desk_start_again(d);
}

void desk_restart(struct desk *d, void (*cb)(void *data, const struct err *err), void *data)
{
	struct waiter *w = xcalloc(1, sizeof *w);
	w->cb = cb;
	w->data = data;
	bool under_way = !list_empty(&d->waiters);
	list_append(&d->waiters, &w->link);
	if (under_way)
		return;
	log_info(&d->log, "kernel_restart");
	d->deaths = 0;
	restart(d);
}

void desk_restart_on(struct desk *d)
{
	log_info(&d->log, "kernel_restart by=\"an earlier gateway\"");
	restart(d);
}
