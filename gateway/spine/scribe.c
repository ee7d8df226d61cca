#include "gateway/spine/scribe.h"

#include <assert.h>
#include <cjson/cJSON.h>
#include <stdio.h>
#include <string.h>

#include "gateway/base/json.h"
#include "gateway/spine/branches.h"
#include "gateway/spine/desk.h"
#include "gateway/spine/facts.h"
#include "gateway/spine/files.h"
#include "gateway/spine/magic.h"
#include "gateway/spine/moves.h"
#include "gateway/spine/scribe_source.h"
#include "gateway/spine/survive.h"

#define AGAIN_MS 5000u
#define OUT_MAX	 64u /* recorded together they cost one sync and one pack */

struct range {
	struct list link;
	struct desk *desk;
	uint64_t first, last;
	uint64_t epoch;
	uint64_t ended_ms;  /* 0: in an earlier gateway */
	struct stand_at at; /* of that process */
	bool is_out;
	char *msg_id;	       /* of its request */
	struct carried *files; /* what it has to say of the folder, or NULL */
	bool is_report;	       /* one entry: what was learnt of an execution after its end */
	char *history;	       /* scribe.history as it was, NULL for "" */
};

static void on_again(struct timer *t);

void scribe_init(struct desk *d)
{
	list_init(&d->scribe.ranges);
	files_init(d);
	timer_init(&d->scribe.again, on_again);
}

static void drop(struct desk *d, struct range *range)
{
	list_remove(&range->link);
	d->scribe.n--;
	d->kernels->n_unrecorded--;
	carried_free(range->files);
	free(range->msg_id);
	free(range->history);
	free(range);
}

void scribe_done(struct desk *d)
{
	assert(d->scribe.n_out == 0);
	timer_stop(d->gw->clock, &d->scribe.again);
	LIST_EACH_SAFE (at, &d->scribe.ranges)
		drop(d, CONTAINER_OF(at, struct range, link));
	forgotten_done(&d->scribe.forgotten);
	files_done(d);
}

static bool is_on(const struct desk *d)
{
	return d->gw->histories != NULL;
}

int scribe_check_name(const char *name, struct err *err)
{
	size_t len = name ? strlen(name) : 0;
	if (len >= HISTORY_NAME_SIZE)
		return err_set(err, E_INVALID,
			HISTORY_VARIABLE ": the name of a history has at most %d "
					 "bytes",
			HISTORY_NAME_SIZE - 1);
	for (size_t i = 0; i < len; i++)
		if ((unsigned char)name[i] < ' ' || name[i] == 0x7f)
			return err_set(err, E_INVALID,
				HISTORY_VARIABLE ": the name of a history is one "
						 "line of text");
	return 0;
}

void scribe_continue(struct desk *d, const char *history)
{
	struct scribe *s = &d->scribe;
	s->history[0] = s->history_id[0] = '\0';
	files_turn(d);
	if (history)
		(void)copy_text(
			s->history, sizeof s->history, history, strlen(history)); /* was checked */
}

bool scribe_holds(const struct desk *d)
{
	return d->scribe.n_out > 0 || (d->scribe.n > 0 && !d->leaving);
}

/* ---- into the journal ---- */

static uint64_t keep(struct desk *d, struct jmsg *m)
{
	uint64_t number = 0;
	struct err err;
	if (journal_append(d->journal, m, JOURNAL_TO_NOBODY, &number, &err) == 0)
		return number;
	log_error(&d->log, "not_recorded error=\"%s\"", err.text);
	return 0;
}

/* What the last one ran in: one that is gone cannot say it any more. */
static const char *environment_of(struct desk *d)
{
	const char *known = d->kernel ? kernel_environment(d->kernel) : "";
	if (*known)
		(void)copy_text(d->scribe.environment, sizeof d->scribe.environment, known,
			strlen(known)); /* fits */
	return d->scribe.environment;
}

/* Once: a cell that names another history is itself in the old one. */
static void take_history(struct execution *x)
{
	if (!x->history)
		x->history = xstrdup(x->desk->scribe.history);
}

int scribe_begins(struct execution *x, struct err *err)
{
	struct journal *j = x->desk->journal;
	take_history(x);
	uint64_t number = journal_next(j);
	int rc = is_on(x->desk)
			 ? journal_append(j, x->request->msg, JOURNAL_TO_NOBODY, &number, err)
			 : 0;
	if (rc == 0)
		x->first = number;
	(void)environment_of(x->desk);
	return rc;
}

/* Its request is in the journal, or is put there. */
static bool has_begun(struct execution *x)
{
	struct err err;
	if (x->first > 0 || scribe_begins(x, &err) == 0)
		return true;
	log_error(&x->desk->log, "not_recorded error=\"%s\"", err.text);
	return false;
}

void scribe_resumes(struct execution *x, uint64_t last)
{
	take_history(x);
	if (!is_on(x->desk) || (x->first > 0 && x->first <= last))
		return;
	x->first = 0;
	(void)has_begun(x); /* else it is tried again at its end */
}

static struct range *add_range(
	struct desk *d, uint64_t first, uint64_t last, const char *history, const char *msg_id)
{
	struct range *range = xcalloc(1, sizeof *range);
	range->history = history && *history ? xstrdup(history) : NULL;
	range->desk = d;
	range->first = first;
	range->last = last;
	range->epoch = d->epoch;
	range->at = d->at;
	range->msg_id = xstrdup(msg_id);
	list_append(&d->scribe.ranges, &range->link);
	d->scribe.n++;
	d->kernels->n_unrecorded++;
	return range;
}

static void keep_report(struct desk *d, const char *history, struct jmsg *m)
{
	uint64_t number = keep(d, m);
	if (number > 0)
		add_range(d, number, number, history, m->parent_id)->is_report = true;
}

/* One whose reply an earlier gateway had: what it said is known by the reply alone. */
static void recall(struct request *r)
{
	const struct answered *a =
		answers_find(&r->desk->requests.answers, r->msg->session, r->msg->msg_id);
	struct outcome outcome;
	if (r->x->status != EXECUTION_OPEN || !a || !a->reply || !outcome_read(a->reply, &outcome))
		return;
	r->x->status = outcome.status;
	r->x->execution_count = outcome.execution_count;
}

void scribe_look_soon(struct desk *d)
{
	if (!list_empty(&d->scribe.ranges))
		timer_start(d->gw->clock, &d->scribe.again, 0);
}

static void end_range(struct range *range, struct request *r)
{
	range->ended_ms = clock_now_ms(range->desk->gw->clock);
	range->files = files_carry(r);
}

bool scribe_add_files(struct desk *d, struct carried *c)
{
	struct err err;
	uint64_t number = 0;
	AUTO(jmsg_unrefp) struct jmsg *m = facts_folder(d, &err);
	if (m)
		number = keep(d, m);
	if (number == 0)
		return false;
	add_range(d, number, number, d->scribe.history, m->msg_id)->files = c;
	if (number <= journal_written(d->journal)) /* as below */
		scribe_look_soon(d);
	return true;
}

uint64_t scribe_ends(struct request *r)
{
	struct execution *x = r->x;
	struct desk *d = r->desk;
	if (!is_on(d) || d->leaving || x->repeats)
		return 0;
	recall(r);
	if (!has_begun(x))
		return 0;
	take_history(x);
	struct err err;
	uint64_t last = 0;
	AUTO(jmsg_unrefp) struct jmsg *m = facts_end(x, environment_of(d), &err);
	if (m && journal_append(d->journal, m, JOURNAL_TO_NOBODY, &last, &err) == 0)
		end_range(add_range(d, x->first, last, x->history, x->msg_id), r);
	else
		log_error(&d->log, "not_recorded error=\"%s\"", err.text);
	if (last > 0 && x->report)
		keep_report(d, x->history, x->report);
	if (last <= journal_written(d->journal)) /* its disk failed: it will not be written */
		scribe_look_soon(d);
	return last;
}

/* ---- what the kernel learns of it afterwards ---- */

/* Over `ctl` it may overtake the idle, where much output waits to be read; and a cell that ended in
 * an earlier gateway is known by its answer alone. */
void scribe_report(void *desk, const char *msg_id, struct bytes text)
{
	struct desk *d = desk;
	if (!is_on(d) || d->leaving || forgotten_has(&d->scribe.forgotten, msg_id))
		return;
	struct execution *x = execution_find(d, msg_id);
	struct answered *a = x ? NULL : answers_execution(&d->requests.answers, msg_id);
	bool *reported = x ? &x->reported : a ? &a->reported : NULL;
	if (!reported || *reported)
		return;
	const char *history = x ? x->history : d->scribe.history;
	AUTO(jmsg_unrefp) struct jmsg *m = facts_report(d, msg_id, history, text);
	if (!m)
		return;
	*reported = true;
	if (x && x->request)
		x->report = TAKE(m);
	else
		keep_report(d, history, m);
}

/* ---- to the recorder ---- */

static void lose(struct desk *d, struct range *range, const char *why)
{
	log_error(&d->log, "not_recorded first=%llu last=%llu report=%d error=\"%s\"",
		(unsigned long long)range->first, (unsigned long long)range->last, range->is_report,
		why);
	if (range->files)
		files_lost(d);
	if (!range->is_report) {
		(void)copy_text(d->scribe.trouble, sizeof d->scribe.trouble, why, strlen(why));
		d->kernels->count.not_recorded++;
	}
	drop(d, range);
}

/* False: the range is to wait. */
static bool hand_over(struct desk *d, struct range *range)
{
	struct journal_stretch stretch;
	struct err err;
	if (!journal_stretch(d->journal, range->first, range->last, &stretch)) {
		lose(d, range, "its journal was cut or could not be written");
		return true;
	}
	const struct history_run run = {
		.history_id = d->id,
		.name = d->path && *d->path ? d->path : d->id,
		.wanted = range->history,
		.owner = d->owner->name,
		.kernel_id = d->id,
		.kernelspec = d->name,
		.environment = "",
		.epoch = range->epoch,
		.at = range->at.node,
		.branch = range->at.branch,
		.after_version = range->at.version,
		.source = scribe_source(&stretch, range->files ? carried_text(range->files) : ""),
		.data = range,
	};
	if (history_record(d->gw->histories, &run, &err) != 0) {
		timer_start(d->gw->clock, &d->scribe.again, AGAIN_MS);
		return false;
	}
	range->is_out = true;
	d->scribe.n_out++;
	return true;
}

static void go_on(struct desk *d)
{
	struct scribe *s = &d->scribe;
	if (d->leaving || timer_running(&s->again) || (s->failing && s->n_out > 0))
		return;
	s->failing = false;
	LIST_EACH_SAFE (at, &s->ranges) {
		struct range *range = CONTAINER_OF(at, struct range, link);
		if (range->is_out)
			continue;
		if (s->n_out == OUT_MAX || range->last > journal_written(d->journal) ||
			(range->files && !carried_is_ready(range->files)) || !hand_over(d, range))
			return;
	}
}

void scribe_written(struct desk *d)
{
	go_on(d);
}

static void on_again(struct timer *t)
{
	struct desk *d = CONTAINER_OF(CONTAINER_OF(t, struct scribe, again), struct desk, scribe);
	go_on(d);
	desk_release(d);
}

/* Before it is noted as recorded: a gateway that is killed in between tells it again. */
static void tell_watcher(const struct kernels *ks, const struct range *range, const char *node)
{
	if (ks->watch.recorded)
		ks->watch.recorded(ks->watch.data, range->msg_id, node);
}

/* By its id from now on: of two that are called alike another may be worked in last. */
static void pin(struct desk *d, const struct range *range, const char *id)
{
	struct scribe *s = &d->scribe;
	const char *called = range->history ? range->history : "";
	if (!id || !*id || strcmp(called, s->history) != 0)
		return; /* it goes on elsewhere by now */
	(void)copy_text(s->history_id, sizeof s->history_id, id, strlen(id)); /* fits */
	if (strcmp(id, *called ? called : d->id) == 0)
		return;
	(void)copy_text(s->history, sizeof s->history, id, strlen(id)); /* fits */
	survive_record(d);
}

static void take_place(
	struct desk *d, const struct range *range, const struct history_recorded *recorded)
{
	struct scribe *s = &d->scribe;
	(void)copy_text(s->node, sizeof s->node, recorded->node, strlen(recorded->node));
	(void)copy_text(s->branch, sizeof s->branch, recorded->branch, strlen(recorded->branch));
	if (s->state_version < recorded->state_version)
		s->state_version = recorded->state_version;
	d->kernels->count.recorded++;
	if (range->ended_ms > 0)
		costs_add(&d->kernels->count.costs, COST_RECORD_SECONDS,
			(double)(clock_now_ms(d->gw->clock) - range->ended_ms) / 1000);
	if (!d->ending)
		pin(d, range, recorded->history);
	tell_watcher(d->kernels, range, s->node);
}

void scribe_recorded(void *data, const struct history_recorded *recorded)
{
	(void)data;
	struct range *range = recorded->run_data;
	struct desk *d = range->desk;
	struct scribe *s = &d->scribe;
	range->is_out = false;
	s->n_out--;
	if (recorded->status == 0) {
		if (!range->is_report)
			take_place(d, range, recorded);
		s->trouble[0] = '\0';
		live_recorded(d->live, range->last);
		drop(d, range);
	} else if (recorded->status == E_GONE || recorded->status == E_INVALID || d->gw->ending) {
		lose(d, range, recorded->err->text);
	} else {
		log_warn(&d->log, "not_recorded_yet error=\"%s\"", recorded->err->text);
		if (!s->failing) /* the later ones fail because of it, and say only that */
			(void)copy_text(s->trouble, sizeof s->trouble, recorded->err->text,
				strlen(recorded->err->text));
		s->failing = true;
		timer_start(d->gw->clock, &s->again, AGAIN_MS);
	}
	go_on(d);
	magic_recorded(d);
	move_look(d);
	branches_look(d->kernels);
	desk_release(d);
}

static void rename_node(
	char node[HISTORY_NODE_SIZE], const struct history_rewritten *rewritten, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		if (strcmp(node, rewritten[i].was) != 0)
			continue;
		memcpy(node, rewritten[i].now, HISTORY_NODE_SIZE);
		return;
	}
}

void scribe_renamed(struct desk *d, const struct history_rewritten *rewritten, size_t n)
{
	rename_node(d->scribe.node, rewritten, n);
	rename_node(d->at.node, rewritten, n);
}

void scribe_moved(struct desk *d, const struct stand_at *at)
{
	struct scribe *s = &d->scribe;
	d->at = *at;
	memcpy(s->node, at->node, sizeof s->node);
	memcpy(s->branch, at->branch, sizeof s->branch);
	s->state_version = at->version;
}

/* One that was killed in the middle of the row's writing has none of it. */
void scribe_restore_stand(struct desk *d, const struct cJSON *row)
{
	const char *node = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(row, "at"));
	const char *branch = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(row, "branch"));
	const char *epoch = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(row, "epoch"));
	const char *version =
		cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(row, "version"));
	struct stand_at at = {0};
	if (!epoch || !version || !node || !branch ||
		!copy_text(at.node, sizeof at.node, node, strlen(node)) ||
		!copy_text(at.branch, sizeof at.branch, branch, strlen(branch)))
		return;
	at.version = strtoull(version, NULL, 10);
	d->epoch = strtoull(epoch, NULL, 10);
	d->at = at;
	d->scribe.state_version = at.version;
}

void scribe_add_stand(const struct desk *d, struct cJSON *row)
{
	char digits[24];
	/* As texts: a time in microseconds is not to pass through a double. */
	(void)cJSON_AddStringToObject(row, "at", d->at.node); /* without memory: as above */
	(void)cJSON_AddStringToObject(row, "branch", d->at.branch);
	(void)snprintf(digits, sizeof digits, "%llu", (unsigned long long)d->epoch);
	(void)cJSON_AddStringToObject(row, "epoch", digits);
	(void)snprintf(digits, sizeof digits, "%llu", (unsigned long long)d->at.version);
	(void)cJSON_AddStringToObject(row, "version", digits);
}

static void add_text(struct cJSON *model, const char *key, const char *text)
{
	if (*text)
		(void)cJSON_AddStringToObject(model, key, text); /* or not */
	else
		(void)cJSON_AddNullToObject(model, key);
}

const char *scribe_history(const struct desk *d)
{
	const struct scribe *s = &d->scribe;
	return s->history_id[0] ? s->history_id : s->history[0] ? s->history : d->id;
}

void scribe_add(const struct desk *d, struct cJSON *model)
{
	if (!is_on(d))
		return;
	const struct scribe *s = &d->scribe;
	bool known = s->history_id[0] || kernels_is_id(s->history);
	/* A name leads to one with the first run. */
	add_text(model, "history_id",
		s->history_id[0] ? s->history_id
		: !s->history[0] ? d->id
		: known		 ? s->history
				 : "");
	add_text(model, "node", d->scribe.node);
	add_text(model, "branch", d->scribe.branch);
	(void)cJSON_AddNumberToObject(model, "state_version", (double)d->scribe.state_version);
	if (d->scribe.trouble[0])
		(void)cJSON_AddStringToObject(model, "not_recorded", d->scribe.trouble);
}

/* ---- what an earlier gateway left ---- */

static uint64_t number_in(struct bytes content, const char *key)
{
	struct json_want want = {.key = key};
	char text[24];
	if (json_scan(content, &want, 1, NULL) != 0 || want.value.len == 0 ||
		want.value.len >= sizeof text)
		return 0;
	memcpy(text, want.value.data, want.value.len);
	text[want.value.len] = '\0';
	return strtoull(text, NULL, 10);
}

static struct stand_at stand_in(struct bytes content)
{
	struct stand_at at = {.version = number_in(content, "after_version")};
	struct json_want wants[] = {{.key = "at"}, {.key = "branch"}};
	if (json_scan(content, wants, ARRAY_LEN(wants), NULL) != 0 ||
		!json_text(wants[0].value, at.node, sizeof at.node))
		at.node[0] = '\0';
	if (!json_text(wants[1].value, at.branch, sizeof at.branch))
		at.branch[0] = '\0';
	return at;
}

static void take_end(struct desk *d, const struct scanned *found)
{
	char history[HISTORY_NAME_SIZE];
	struct json_want want = {.key = "history"};
	AUTO(jmsg_unrefp) struct jmsg *m = NULL;
	if (found->to != JOURNAL_TO_NOBODY || jmsg_from_frame(found->frame, &m, NULL) != 0 ||
		m->channel != CHANNEL_HB)
		return;
	if (json_scan(m->part[PART_CONTENT], &want, 1, NULL) != 0 ||
		!json_text(want.value, history, sizeof history))
		history[0] = '\0';
	if (strcmp(m->msg_type, SCRIBE_REPORT) == 0)
		add_range(d, found->number, found->number, history, m->parent_id)->is_report = true;
	if (strcmp(m->msg_type, SCRIBE_END) != 0)
		return;
	uint64_t first = number_in(m->part[PART_CONTENT], "first");
	if (first == 0 || first >= found->number)
		return;
	struct range *range = add_range(d, first, found->number, history, m->parent_id);
	range->epoch = number_in(m->part[PART_CONTENT], "epoch");
	range->at = stand_in(m->part[PART_CONTENT]);
}

void scribe_restore(struct desk *d, uint64_t last)
{
	struct journal_stretch stretch;
	struct scanned found;
	uint64_t from = live_recorded_to(d->live) + 1;
	if (from < journal_first(d->journal))
		from = journal_first(d->journal);
	if (!is_on(d) || from > last || !journal_stretch(d->journal, from, last, &stretch))
		return;
	struct journal_scan *scan = journal_scan_new(&stretch);
	while (journal_scan_next(scan, &found, NULL) == 1)
		take_end(d, &found);
	journal_scan_free(scan);
	go_on(d);
}
