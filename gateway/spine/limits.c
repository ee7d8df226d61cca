#include "gateway/spine/limits.h"

#include <cjson/cJSON.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gateway/base/json.h"
#include "gateway/gateway.h"
#include "gateway/spine/desk.h"
#include "gateway/spine/moves.h"
#include "gateway/spine/notice.h"
#include "gateway/spine/owners.h"

#define ENAME	   "TimeLimitExceeded"
#define NUMBER_MAX 24u

/*
 *   interrupted --grace is over--> killed --the kernel is dead--> looked for --known--> goes back
 *     |                              |                              |                     |
 *     +-- the cell ended ---------+  +-- the kernel lives (an earlier gateway's kill) ---- over
 */
enum limit_state {
	LIMIT_INTERRUPTED,
	LIMIT_KILLED,
	LIMIT_LOOKED_FOR,
	LIMIT_GOES_BACK,
	LIMIT_OVER,
	LIMIT_STATES
};

static const struct sm_state states[LIMIT_STATES] = {
	[LIMIT_INTERRUPTED] = {"interrupted",
		TO(LIMIT_KILLED) | TO(LIMIT_LOOKED_FOR) | TO(LIMIT_OVER)},
	[LIMIT_KILLED] = {"killed", TO(LIMIT_LOOKED_FOR) | TO(LIMIT_OVER)},
	[LIMIT_LOOKED_FOR] = {"looked_for", TO(LIMIT_GOES_BACK) | TO(LIMIT_OVER)},
	[LIMIT_GOES_BACK] = {"goes_back", TO(LIMIT_OVER)},
	[LIMIT_OVER] = {"over", 0},
};

struct limit {
	struct sm sm;
	struct desk *desk; /* NULL: it was let go of; freed once nobody calls back any more */
	struct timer grace;
	struct jmsg *asker; /* the cell on whose page it is told, or NULL: not known any more */
	bool expects;	    /* the bridge or the move will call back */
};

static void on_grace(struct timer *t);

/* ---- how long ---- */

static uint64_t of_tier(const struct desk *d)
{
	const struct config *c = &d->gw->config;
	if (strcmp(d->owner->tier, "standard") == 0)
		return (uint64_t)c->time_limit_standard;
	return strcmp(d->owner->tier, "premium") == 0 ? (uint64_t)c->time_limit_premium : 0;
}

/* Whoever asks may want less: metadata.coppice.timeout, in seconds. */
static uint64_t asked_for(const struct jmsg *request)
{
	struct json_want ours = {.key = "coppice"}, timeout = {.key = "timeout"};
	char text[NUMBER_MAX], *end;
	if (json_scan(request->part[PART_METADATA], &ours, 1, NULL) != 0 ||
		!json_is_object(ours.value) || json_scan(ours.value, &timeout, 1, NULL) != 0 ||
		timeout.value.len == 0 ||
		!copy_text(text, sizeof text, (const char *)timeout.value.data, timeout.value.len))
		return 0;
	double seconds = strtod(text, &end);
	if (*end != '\0' || !(seconds > 0) || seconds >= 1e9)
		return 0;
	return seconds < 0.001 ? 1 : (uint64_t)(seconds * 1000);
}

static uint64_t limit_of(const struct execution *x)
{
	uint64_t tier = of_tier(x->desk), asked = asked_for(x->request->msg);
	return tier == 0 || (asked > 0 && asked < tier) ? asked : tier;
}

/* "30 s (tier standard)" */
static void say_limit(const struct execution *x, char *ret_text, size_t size)
{
	bool whole = x->limit_ms % 1000 == 0;
	const char *from = x->limit_ms == of_tier(x->desk) ? x->desk->owner->tier : "";
	char seconds[NUMBER_MAX];
	(void)snprintf(seconds, sizeof seconds, whole ? "%.0f s" : "%.1f s",
		(double)x->limit_ms / 1000); /* fits, as below */
	(void)snprintf(ret_text, size, *from ? "%s (tier %s)" : "%s (asked for)%s", seconds, from);
}

/* ---- deadlines ---- */

static bool runs(const struct execution *x)
{
	return x && x->request && !x->request->replied && !x->request->idled;
}

static struct execution *next_due(const struct desk *d)
{
	struct execution *first = NULL;
	for (struct lane *lane = d->queue.lanes; lane; lane = lane->hh.next) {
		struct execution *x = lane->running;
		if (runs(x) && x->deadline_ms > 0 &&
			(!first || x->deadline_ms < first->deadline_ms))
			first = x;
	}
	return first;
}

static struct execution *timed_out(const struct desk *d)
{
	for (struct lane *lane = d->queue.lanes; lane; lane = lane->hh.next)
		if (lane->running && lane->running->request && lane->running->timed_out)
			return lane->running;
	return NULL;
}

static bool still_runs(const struct desk *d)
{
	for (struct lane *lane = d->queue.lanes; lane; lane = lane->hh.next)
		if (runs(lane->running) && lane->running->timed_out)
			return true;
	return false;
}

void limit_look(struct desk *d)
{
	uint64_t now = clock_now_ms(d->gw->clock);
	const struct execution *x = next_due(d);
	timer_stop(d->gw->clock, &d->limit_timer);
	if (x)
		timer_start(d->gw->clock, &d->limit_timer,
			x->deadline_ms > now ? x->deadline_ms - now : 0);
}

void limit_sent(struct execution *x)
{
	struct desk *d = x->desk;
	struct live_request *row = x->request->row;
	uint64_t limit = limit_of(x), left = limit;
	int64_t now_us = clock_wall_us(d->gw->clock);
	memcpy(x->before, d->stands, sizeof x->before);
	x->timed_out = row && row->is_timed_out;
	if (limit == 0)
		return;
	x->limit_ms = limit;
	if (row && row->deadline_us > 0) { /* it runs since an earlier gateway's time */
		int64_t ms = (row->deadline_us - now_us) / 1000;
		left = ms <= 0 ? 0 : ms < (int64_t)limit ? (uint64_t)ms : limit;
	} else if (row) {
		row->deadline_us = now_us + (int64_t)limit * 1000;
	}
	x->deadline_ms = clock_now_ms(d->gw->clock) + left;
	limit_look(d);
}

static void on_nothing(void *data, const struct err *err)
{
	(void)data, (void)err; /* the cell ends, or its grace does */
}

static struct limit *limit_new(struct desk *d, enum limit_state state, struct jmsg *asker)
{
	struct limit *l = xcalloc(1, sizeof *l);
	sm_init(&l->sm, "limit", states, LIMIT_STATES, state, &d->log);
	timer_init(&l->grace, on_grace);
	l->desk = d;
	l->asker = asker ? jmsg_ref(asker) : NULL;
	d->limit = l;
	return l;
}

static void limit_free(struct limit *l)
{
	if (l->expects)
		return; /* its last callback does */
	jmsg_unref(l->asker);
	free(l);
}

static void over(struct limit *l)
{
	timer_stop(l->desk->gw->clock, &l->grace);
	sm_move(&l->sm, LIMIT_OVER);
	l->desk->limit = NULL;
	l->desk = NULL;
	limit_free(l);
}

static void time_up(struct execution *x)
{
	struct desk *d = x->desk;
	log_info(&d->log, "time_up msg_id=%s limit_ms=%llu", x->msg_id,
		(unsigned long long)x->limit_ms);
	x->timed_out = true;
	x->deadline_ms = 0; /* it has come */
	if (x->request->row)
		x->request->row->is_timed_out = true;
	/* Another lane's: they share one kernel, and its grace. */
	struct limit *l = d->limit ? d->limit : limit_new(d, LIMIT_INTERRUPTED, x->request->msg);
	if (l->sm.state != LIMIT_INTERRUPTED || timer_running(&l->grace))
		return;
	timer_start(d->gw->clock, &l->grace, LIMIT_GRACE_MS);
	kernel_interrupt(d->kernel, on_nothing, NULL);
}

/* While it is not to be spoken to, survive_settled() or the death that is on its way looks again.
 */
static void on_deadline(struct timer *t)
{
	struct desk *d = CONTAINER_OF(t, struct desk, limit_timer);
	uint64_t now = clock_now_ms(d->gw->clock);
	if (d->adopting || d->dead || !d->kernel || d->ending)
		return;
	for (struct execution *x; (x = next_due(d)) && x->deadline_ms <= now;)
		time_up(x);
	limit_look(d);
}

void limit_init(struct desk *d)
{
	timer_init(&d->limit_timer, on_deadline);
}

/* ---- the grace ---- */

static void on_grace(struct timer *t)
{
	struct limit *l = CONTAINER_OF(t, struct limit, grace);
	struct desk *d = l->desk;
	/* One that was half answered has ended: its other half is made good by itself. */
	if (!still_runs(d))
		return;
	sm_move(&l->sm, LIMIT_KILLED);
	d->open = false;
	live_kills(d->live, true); /* before it is: the next gateway must not take it for a crash */
	kernel_kill(d->kernel);
}

void limit_done(struct execution *x)
{
	struct desk *d = x->desk;
	struct limit *l = d->limit;
	bool ran = x->status == EXECUTION_OK || x->status == EXECUTION_ERROR ||
		   x->status == EXECUTION_TIMED_OUT;
	if (ran && !x->repeats && !limit_holds(d))
		(void)copy_text(d->stands, sizeof d->stands, x->msg_id,
			strlen(x->msg_id)); /* its length was checked */
	if (l && l->sm.state == LIMIT_INTERRUPTED && x->timed_out && !timed_out(d))
		over(l);
	limit_look(d);
}

/* ---- what people read ---- */

static bool before_is_kept(const struct execution *x)
{
	return *x->before && parks_find(&x->desk->parks, x->before);
}

void limit_tells(struct execution *x)
{
	static const char offer[] = "`%coppice undo` goes back to the state before it.";
	char limit[64];
	bool kept = before_is_kept(x);
	if (!x->timed_out) {
		if (x->interrupted && x->raised && kept)
			notice_about(x->desk, x->request->msg,
				"What the cell did until it was interrupted stays; %s", offer);
		return;
	}
	say_limit(x, limit, sizeof limit);
	notice_about(x->desk, x->request->msg,
		"Time limit of %s: the cell was interrupted. What it did until then stays; %s",
		limit,
		kept ? offer
		     : "the state before it is not kept (docs: parked), so nothing leads back to "
		       "it.");
}

static void tell_killed(struct execution *x)
{
	char limit[64];
	say_limit(x, limit, sizeof limit);
	notice_about(x->desk, x->request->msg,
		"Time limit of %s: the cell did not end within %u s of being interrupted. It was "
		"killed, with everything that it had started.",
		limit, LIMIT_GRACE_MS / 1000);
}

static void end_cell(struct execution *x)
{
	char limit[64], text[160];
	say_limit(x, limit, sizeof limit);
	(void)snprintf(text, sizeof text, "the cell ran longer than its time limit of %s", limit);
	tell_killed(x);
	AUTO(freep) char *content = notice_error_content(ENAME, text);
	execution_time_up(x, content);
}

/* ---- it is dead ---- */

static void on_moved(void *data, const struct cJSON *answer, const struct err *err)
{
	struct limit *l = data;
	struct desk *d = l->desk;
	(void)answer; /* the move has told it */
	l->expects = false;
	if (!d) {
		limit_free(l);
		return;
	}
	if (err)
		notice_about(d, l->asker,
			"A fresh kernel takes its place, without any variables: run again what is "
			"needed of them.");
	over(l);
	live_kills(d->live, false);
	if (err)
		desk_begin_anew(d);
}

static void on_looked(void *data, const struct err *left)
{
	struct limit *l = data;
	struct desk *d = l->desk;
	l->expects = false;
	if (!d) {
		limit_free(l);
		return;
	}
	log_info(&d->log, "time_up_looked left=\"%s\"", left ? left->text : "");
	if (left && left->code == E_BUSY)
		notice_about(d, l->asker,
			"Not all of it was gone %d ms later: %s. The container was destroyed and "
			"another takes its place.",
			KERNEL_CLEAN_MS, left->text);
	else if (left)
		notice_about(d, l->asker, "Its container went too (%s): another takes its place.",
			d->death.how.text);
	const struct move_order back = {
		.state_version = -1, .accept = FIDELITY_PARTIAL, .asker = l->asker};
	sm_move(&l->sm, LIMIT_GOES_BACK);
	l->expects = true;
	desk_checkout(d, &back, on_moved, l);
}

bool limit_takes_death(struct desk *d)
{
	struct limit *l = d->limit;
	if (!l)
		return false;
	timer_stop(d->gw->clock, &l->grace);
	sm_move(&l->sm, LIMIT_LOOKED_FOR);
	for (struct execution *x; (x = timed_out(d));)
		end_cell(x);
	if (d->move) { /* it had waited for that cell, and is the way back */
		over(l);
		live_kills(d->live, false);
		requests_abort(d, false);
		return move_takes_death(d);
	}
	requests_abort(d, false);
	l->expects = true;
	kernel_look(d->kernel, on_looked, l);
	return true;
}

bool limit_holds(const struct desk *d)
{
	return d->limit && d->limit->sm.state != LIMIT_INTERRUPTED;
}

bool limit_ends_line(const struct desk *d)
{
	return limit_holds(d) && d->limit->sm.state != LIMIT_GOES_BACK;
}

void limit_ready(struct desk *d)
{
	struct limit *l = d->limit;
	live_kills(d->live, false);
	if (l && l->sm.state == LIMIT_KILLED)
		over(l); /* an earlier gateway did not come to it: it is interrupted anew */
}

/* ---- other ends ---- */

void limit_interrupted(struct desk *d)
{
	for (struct lane *lane = d->queue.lanes; lane; lane = lane->hh.next)
		if (runs(lane->running))
			lane->running->interrupted = true;
}

void limit_stands(struct desk *d, const char *msg_id)
{
	if (*d->stands || !copy_text(d->stands, sizeof d->stands, msg_id, strlen(msg_id)))
		return;
	for (struct lane *lane = d->queue.lanes; lane; lane = lane->hh.next)
		if (lane->running && !*lane->running->before)
			memcpy(lane->running->before, d->stands, sizeof d->stands);
}

void limit_restore(struct desk *d)
{
	const struct execution *x;
	if (!live_is_killed(d->live))
		return;
	x = timed_out(d);
	(void)limit_new(d, LIMIT_KILLED, x ? x->request->msg : NULL);
}

void limit_leave(struct desk *d)
{
	timer_stop(d->gw->clock, &d->limit_timer);
	if (d->limit)
		over(d->limit);
}

void limit_cancel(struct desk *d)
{
	live_kills(d->live, false);
	limit_leave(d);
}
