#include "gateway/spine/move_internal.h"

#include <cjson/cJSON.h>
#include <stdio.h>
#include <string.h>

#include "gateway/base/json.h"
#include "gateway/base/json_tree.h"
#include "gateway/spine/limits.h"
#include "gateway/spine/move_text.h"
#include "gateway/spine/notice.h"

#define INTERRUPT_MS 10000u
#define RECORD_MS    3000u
#define FILES_MS     10000u /* more: what a record waits for at most */

static const struct sm_state states[MOVE_STATES] = {
	[MOVE_WAITS] = {"waits", TO(MOVE_RECORDS) | TO(MOVE_OVER)},
	[MOVE_RECORDS] = {"records", TO(MOVE_ASKS) | TO(MOVE_OVER)},
	[MOVE_ASKS] = {"asks",
		TO(MOVE_SCANS) | TO(MOVE_FETCHES) | TO(MOVE_REVIVES) | TO(MOVE_OVER)},
	[MOVE_SCANS] = {"scans", TO(MOVE_RECORDS) | TO(MOVE_FETCHES) | TO(MOVE_OVER)},
	[MOVE_FETCHES] = {"fetches", TO(MOVE_LAYS) | TO(MOVE_REVIVES) | TO(MOVE_OVER)},
	[MOVE_LAYS] = {"lays", TO(MOVE_REVIVES) | TO(MOVE_OVER)},
	[MOVE_REVIVES] = {"revives", TO(MOVE_OVER)},
	[MOVE_OVER] = {"over", 0},
};

struct filed {
	char *node;
	struct jmsg *asker;
};

static void on_timer(struct timer *t);

static const char *text_of(const cJSON *o, const char *key)
{
	const char *text = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(o, key));
	return text ? text : "";
}

static struct bytes bytes_of(const char *text)
{
	return (struct bytes){(const uint8_t *)text, strlen(text)};
}

/* ---- the end ---- */

void move_free(struct move *m)
{
	if (m->expects > 0)
		return; /* its last callback does */
	jmsg_unref(m->asker);
	way_drop(m);
	cJSON_Delete(m->entries);
	free(m->node);
	free(m->branch);
	free(m);
}

static cJSON *details(struct move *m, const struct err *err)
{
	cJSON *told = cJSON_CreateObject();
	if (err->code == E_STALE)
		cJSON_AddNumberToObject(
			told, "state_version", (double)m->desk->scribe.state_version);
	if (err->code == E_PARTIAL && m->report)
		cJSON_AddItemToObject(told, "report", TAKE(m->report));
	return told;
}

static void answer_failed(struct move *m, const struct err *err)
{
	if (!m->cb)
		return;
	cJSON *tree = m->desk ? details(m, err) : NULL;
	m->cb(m->data, tree, err);
	cJSON_Delete(tree);
}

/* To people: on the page of the cell that asked, or for all. */
static void tell(struct move *m, const char *text)
{
	struct desk *d = m->desk;
	uint64_t number;
	AUTO(jmsg_unrefp) struct jmsg *said = notice_stream_message(d, m->asker, text);
	if (said)
		(void)desk_post(d, said, JOURNAL_TO_ALL, &number); /* closes by itself */
}

static void tell_refused(struct move *m, const struct err *err)
{
	char text[sizeof err->text + 64];
	(void)snprintf(text, sizeof text, "Not gone back: %s\n", err->text); /* fits */
	if (m->asker)
		tell(m, text);
}

void move_fail(struct move *m, const struct err *err)
{
	struct desk *d = m->desk;
	struct err shown = *err;
	bool died = m->died;
	log_info(&d->log, "not_moved state=%s reason=\"%s\"", sm_name(&m->sm), err->text);
	timer_stop(d->gw->clock, &m->timer);
	move_files_end(m, false);
	sm_move(&m->sm, MOVE_OVER);
	d->move = NULL;
	if (err->code == E_PARTIAL && m->way)
		move_add_rebuild(&shown, m->way);
	tell_refused(m, &shown);
	answer_failed(m, err);
	m->desk = NULL;
	move_free(m);
	if (died)
		desk_after_death(d);
	else
		desk_open(d);
}

static void filed_free(struct filed *f)
{
	jmsg_unref(f->asker);
	free(f->node);
	free(f);
}

void move_cancel(struct desk *d, const char *why)
{
	struct move *m = TAKE(d->move);
	struct filed *f = TAKE(d->filed);
	struct err err;
	if (f)
		filed_free(f);
	if (!m)
		return;
	timer_stop(d->gw->clock, &m->timer);
	move_files_end(m, false);
	sm_move(&m->sm, MOVE_OVER);
	m->desk = NULL;
	err_set(&err, E_GONE, "%s", why);
	answer_failed(m, &err);
	move_free(m);
}

/* ---- revives ---- */

/* What the new line says of itself: it has not taken over yet. */
static int check(void *data, struct bytes text, struct err *err)
{
	struct move *m = data;
	if (!m->desk)
		return err_set(err, E_GONE, "nobody waits for it");
	report_add_lost(m->report, text);
	if (!m->laid && !move_same_folder(bytes_of(m->park->text), text)) {
		report_lower(m->report, FIDELITY_PARTIAL);
		report_note(m->report,
			"Files of the working folder are not as they were: they stay as they are "
			"now.");
	}
	if (report_fidelity(m->report) <= m->accept)
		return 0;
	return err_set(err, E_PARTIAL, "less than %s would come back: see the report",
		fidelity_name(m->accept));
}

static void on_switch(void *data)
{
	struct move *m = data;
	struct desk *d = m->desk;
	if (!d)
		return; /* the bridge was told to give it up */
	requests_abort(d, false);
	m->died = d->dead = false;
	d->reason[0] = '\0';
	d->shutdown_ms = d->exit_ms = 0;
	timer_stop(d->gw->clock, &d->exit_timer);
	acks_forget(d);
	desk_new_epoch(d);
	limit_stands(d, m->park->msg_id);
	scribe_moved(d, &m->to);
	if (m->laid)
		files_laid(d, m->entries);
}

static void succeed(struct move *m)
{
	struct desk *d = m->desk;
	AUTO(buf_done) struct buf text;
	double ms = (double)(clock_now_ms(d->gw->clock) - m->began_ms);
	cJSON *told = cJSON_CreateObject();
	cJSON_AddStringToObject(told, "node", m->to.node);
	cJSON_AddStringToObject(told, "branch", m->to.branch);
	cJSON_AddNumberToObject(told, "state_version", (double)m->to.version);
	cJSON_AddStringToObject(told, "restored_by", "parked");
	cJSON_AddItemToObject(told, "report", TAKE(m->report));
	cJSON_AddNumberToObject(told, "duration_ms", ms);
	move_notice(&text, m->way, told);
	if (!text.failed)
		tell(m, (const char *)text.data);
	move_files_end(m, true);
	log_info(&d->log, "moved node=%.8s branch=%s ms=%.0f", m->to.node, m->to.branch, ms);
	sm_move(&m->sm, MOVE_OVER);
	d->move = NULL;
	d->deaths = 0;
	if (m->cb)
		m->cb(m->data, told, NULL);
	cJSON_Delete(told);
	m->desk = NULL;
	move_free(m);
	desk_open(d);
}

/* Whatever kept it from standing up, it is no way back any more. */
static void refuse(struct move *m, const struct err *cause)
{
	struct err err = *cause;
	if (cause->code != E_PARTIAL && cause->code != E_DEAD && cause->code != E_UNAVAILABLE) {
		cJSON_Delete(m->report);
		m->report = move_code_only(m->way, cause->text);
		err_set(&err, E_PARTIAL, "%s; its code can be run again: see the report",
			cause->text);
	}
	move_fail(m, &err);
}

static void on_revived(void *data, const struct err *err)
{
	struct move *m = data;
	m->expects--;
	if (!m->desk)
		move_free(m);
	else if (err)
		refuse(m, err);
	else
		succeed(m);
}

void move_revive(struct move *m)
{
	const struct kernel_revival revival = {.park = m->park->park,
		.check = check,
		.on_switch = on_switch,
		.cb = on_revived,
		.data = m};
	m->expects++;
	sm_move(&m->sm, MOVE_REVIVES);
	kernel_revive(m->desk->kernel, &revival);
}

/* ---- asks ---- */

static void on_way(void *data, int status, struct bytes json, const struct err *failure)
{
	struct move *m = data;
	struct err err;
	m->expects--;
	if (!m->desk) {
		move_free(m);
		return;
	}
	if (status != 0) {
		move_fail(m, failure);
		return;
	}
	m->way = json_parse(json, NULL, &err);
	if (!m->way || way_look(m, &err) != 0)
		move_fail(m, &err);
	else if (files_are_on(m->desk))
		move_files(m);
	else
		move_revive(m);
}

static void ask(struct move *m)
{
	struct desk *d = m->desk;
	AUTO(buf_done) struct buf parked;
	parks_list_of(d, &parked);
	const struct history_question q = {
		.what = HISTORY_WAY,
		.owner = d->owner->name,
		.history = scribe_history(d),
		.node = m->node,
		.kernel_id = d->id,
		.epoch = d->epoch,
		.at = d->at.node,
		.parked = parked.data ? (const char *)parked.data : "",
	};
	m->expects++;
	sm_move(&m->sm, MOVE_ASKS);
	history_ask(d->gw->histories, &q, on_way, m);
}

/* ---- waits, records ---- */

static void wait_for_records(struct move *m)
{
	struct desk *d = m->desk;
	sm_move(&m->sm, MOVE_RECORDS);
	timer_start(d->gw->clock, &m->timer, RECORD_MS + (files_are_on(d) ? FILES_MS : 0));
}

static void step(struct move *m)
{
	struct desk *d = m->desk;
	if (m->sm.state == MOVE_WAITS && !queue_busy(&d->queue))
		wait_for_records(m);
	if (m->sm.state != MOVE_RECORDS || d->scribe.n > 0)
		return;
	timer_stop(d->gw->clock, &m->timer);
	ask(m);
}

/* By its id from now on: a name like HEAD~1 would lead elsewhere, since HEAD moves. */
void move_record(struct move *m)
{
	free(m->node);
	m->node = xstrdup(text_of(cJSON_GetObjectItemCaseSensitive(m->way, "node"), "id"));
	m->known_version = -1;
	way_drop(m);
	wait_for_records(m);
	step(m);
}

static void on_timer(struct timer *t)
{
	struct move *m = CONTAINER_OF(t, struct move, timer);
	const char *trouble = m->desk->scribe.trouble;
	struct err err;
	if (m->sm.state == MOVE_WAITS && !queue_busy(&m->desk->queue)) {
		step(m);
		return;
	}
	if (m->sm.state == MOVE_WAITS)
		err_set(&err, E_BUSY, "the cell that runs does not obey the interrupt");
	else
		err_set(&err, E_UNAVAILABLE, "what ran before is not recorded yet%s%.200s",
			*trouble ? ": " : "", trouble);
	move_fail(m, &err);
}

void move_look(struct desk *d)
{
	struct move *m = d->move;
	if (m && (m->sm.state == MOVE_WAITS || m->sm.state == MOVE_RECORDS))
		step(m);
}

bool move_takes_death(struct desk *d)
{
	if (!d->move)
		return false;
	d->move->died = true;
	return true;
}

static void on_interrupted(void *data, const struct err *err)
{
	(void)data, (void)err; /* the cell ends, or the time is up */
}

/* ---- the beginning ---- */

/* As a ref takes it, and no name that leads to a node. */
int move_check_branch(const char *name, struct err *err)
{
	size_t len = name ? strlen(name) : 0;
	bool fine =
		len < HISTORY_BRANCH_SIZE &&
		(len == 0 || (name[strspn(name, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvw"
						"xyz0123456789._-")] == '\0' &&
				     name[0] != '.' && name[0] != '-' && name[len - 1] != '.' &&
				     !strstr(name, "..") && strncmp(name, "HEAD", 4) != 0));
	if (fine && len > 5 && strcmp(name + len - 5, ".lock") == 0)
		fine = false;
	return fine ? 0
		    : err_set(err, E_INVALID,
			      "branch: a name of letters, digits, '.', '_' and '-' is needed");
}

static int may_begin(const struct desk *d, const struct move_order *order, struct err *err)
{
	bool runs = queue_busy(&d->queue);
	int rc = move_check_branch(order->branch, err);
	if (rc != 0)
		return rc;
	if (!d->gw->histories)
		return err_set(err, E_NOT_FOUND, "nothing is recorded here: `record` is off");
	if (!d->kernel || d->ending)
		return err_set(err, E_GONE, "the kernel is ended");
	if (d->move || d->filed || limit_ends_line(d))
		return err_set(err, E_BUSY, "the kernel is on its way to another node already");
	if (!list_empty(&d->waiters) || d->adopting ||
		(!d->dead && kernel_state(d->kernel) == KERNEL_STARTING))
		return err_set(err, E_BUSY, "the kernel is being started");
	if (runs && !order->interrupt)
		return err_set(err, E_BUSY, "a cell runs: wait for it, or ask with `interrupt`");
	return 0;
}

static struct move *move_new(struct desk *d, const struct move_order *order)
{
	struct move *m = xcalloc(1, sizeof *m);
	sm_init(&m->sm, "move", states, MOVE_STATES, MOVE_WAITS, &d->log);
	timer_init(&m->timer, on_timer);
	m->desk = d;
	m->node = xstrdup(order->node ? order->node : HISTORY_BEFORE);
	m->branch = order->branch && *order->branch ? xstrdup(order->branch) : NULL;
	m->known_version = order->state_version;
	m->accept = order->accept;
	m->asker = order->asker ? jmsg_ref(order->asker) : NULL;
	m->began_ms = clock_now_ms(d->gw->clock);
	return m;
}

static void begin(struct move *m)
{
	struct desk *d = m->desk;
	bool runs = queue_busy(&d->queue);
	d->move = m;
	d->open = false;
	if (!runs)
		notice_status(d, "busy", NULL, JOURNAL_TO_ALL);
	else
		kernel_interrupt(d->kernel, on_interrupted, NULL);
	/* What may end it at once is not to call back from within the call. */
	timer_start(d->gw->clock, &m->timer, runs ? INTERRUPT_MS : 0);
}

struct refused {
	struct timer timer;
	struct err err;
	void (*cb)(void *data, const struct cJSON *answer, const struct err *err);
	void *data;
};

static void on_refused(struct timer *t)
{
	struct refused *r = CONTAINER_OF(t, struct refused, timer);
	r->cb(r->data, NULL, &r->err);
	free(r);
}

void desk_checkout(struct desk *d, const struct move_order *order,
	void (*cb)(void *data, const struct cJSON *answer, const struct err *err), void *data)
{
	struct err err;
	struct move *m = move_new(d, order);
	if (may_begin(d, order, &err) == 0) {
		m->cb = cb;
		m->data = data;
		begin(m);
		return;
	}
	tell_refused(m, &err);
	move_free(m);
	struct refused *r = xcalloc(1, sizeof *r);
	r->err = err;
	r->cb = cb;
	r->data = data;
	timer_init(&r->timer, on_refused);
	timer_start(d->gw->clock, &r->timer, 0);
}

/* ---- asked for by a cell ---- */

int move_file(struct desk *d, const struct cJSON *way, struct err *err)
{
	struct parks_found found = {0};
	struct execution *x = queue_running(&d->queue);
	if (!x || !x->request)
		return err_set(err, E_INVALID, "that is asked in a cell, while it runs");
	if (d->move || d->filed)
		return err_set(err, E_BUSY, "the kernel is on its way to another node already");
	int rc = parks_find_way(d->kernels, d->owner, d, way, &found, err);
	cJSON_Delete(found.report);
	if (rc != 0) {
		move_add_rebuild(err, way);
		return rc;
	}
	d->filed = xcalloc(1, sizeof *d->filed);
	d->filed->node = xstrdup(text_of(cJSON_GetObjectItemCaseSensitive(way, "node"), "id"));
	d->filed->asker = jmsg_ref(x->request->msg);
	return 0;
}

void move_cell_over(struct desk *d, const struct request *r)
{
	struct filed *f = d->filed;
	struct err err;
	if (d->move && !queue_busy(&d->queue) && d->move->sm.state == MOVE_WAITS)
		timer_start(d->gw->clock, &d->move->timer, 0);
	if (!f || f->asker != r->msg || d->ending || d->leaving)
		return;
	const struct move_order order = {.node = f->node,
		.state_version = -1,
		.accept = FIDELITY_PARTIAL,
		.asker = f->asker};
	d->filed = NULL;
	struct move *m = move_new(d, &order);
	if (may_begin(d, &order, &err) == 0) {
		begin(m);
	} else {
		tell_refused(m, &err);
		move_free(m);
	}
	filed_free(f);
}
