#include "gateway/spine/execution.h"

#include <string.h>

#include "gateway/base/json.h"
#include "gateway/spine/desk.h"
#include "gateway/spine/facts.h"
#include "gateway/spine/limits.h"
#include "gateway/spine/notice.h"

#define EXECUTIONS_KEPT 32u /* finished ones, for the admin view */

static const struct sm_state states[EXECUTION_STATES] = {
	[EXECUTION_ACCEPTED] = {"accepted", TO(EXECUTION_QUEUED)},
	[EXECUTION_QUEUED] = {"queued", TO(EXECUTION_SENT) | TO(EXECUTION_DONE)},
	[EXECUTION_SENT] = {"sent", TO(EXECUTION_RUNNING) | TO(EXECUTION_DONE)},
	[EXECUTION_RUNNING] = {"running", TO(EXECUTION_DONE)},
	[EXECUTION_DONE] = {"done", 0},
};

const char *execution_status_name(enum execution_status status)
{
	static const char *const names[EXECUTION_STATUSES] = {
		"open", "ok", "error", "aborted", "died", "timed_out"};
	return names[status];
}

static void drop_old(struct desk *d)
{
	LIST_EACH_SAFE (at, &d->executions) {
		struct execution *x = CONTAINER_OF(at, struct execution, link);
		if (d->n_executions < EXECUTIONS_KEPT)
			return;
		if (x->sm.state == EXECUTION_DONE)
			execution_free(x);
	}
}

struct execution *execution_new(struct desk *d, struct request *r)
{
	drop_old(d);
	struct execution *x = xcalloc(1, sizeof *x);
	sm_init(&x->sm, "execution", states, EXECUTION_STATES, EXECUTION_ACCEPTED, &d->log);
	x->desk = d;
	x->request = r;
	x->msg_id = xstrdup(r->msg->msg_id);
	x->client = r->client;
	x->execution_count = -1;
	x->accepted_us = clock_wall_us(d->gw->clock);
	list_append(&d->executions, &x->link);
	d->n_executions++;
	return x;
}

void execution_free(struct execution *x)
{
	list_remove(&x->link);
	x->desk->n_executions--;
	jmsg_unref(x->report);
	free(x->history);
	free(x->msg_id);
	free(x);
}

struct execution *execution_find(const struct desk *d, const char *msg_id)
{
	LIST_EACH (at, &d->executions) {
		struct execution *x = CONTAINER_OF(at, struct execution, link);
		if (!x->repeats && strcmp(x->msg_id, msg_id) == 0)
			return x;
	}
	return NULL;
}

static void send_now(struct execution *x)
{
	struct err err;
	/* What was sent is so by an earlier gateway. What cannot be recorded does not run. */
	int rc = x->request->is_sent ? 0 : scribe_begins(x, &err);
	x->sent_us = clock_wall_us(x->desk->gw->clock);
	if (rc == 0 && request_send(x->request, &err) == 0) {
		limit_sent(x);
		return;
	}
	AUTO(freep) char *content = notice_error_content(err_ename(err.code), err.text);
	request_end(x->request, content, JOURNAL_TO_ALL); /* steps again, without its request */
}

static void done(struct execution *x)
{
	x->done_us = clock_wall_us(x->desk->gw->clock);
	limit_done(x);
	x->desk->kernels->count.executions[x->status]++;
	if (x->running_us > 0 && !x->repeats)
		costs_add_execution(&x->desk->kernels->count.costs, x);
	log_info(&x->desk->log, "execution_done msg_id=%s status=%s ms=%lld", x->msg_id,
		execution_status_name(x->status),
		(long long)((x->done_us - x->accepted_us) / 1000));
}

/* The request's going is the end: it goes once both halves, its reply and its idle, were said, by
 * the kernel or in its stead. */
void execution_step(struct execution *x)
{
	for (;;) {
		switch ((enum execution_state)x->sm.state) {
		case EXECUTION_ACCEPTED: /* left at once */
			sm_move(&x->sm, EXECUTION_QUEUED);
			continue;
		case EXECUTION_QUEUED: /* left when the lane is free, or when it is aborted */
			if (x->request && !x->free_lane)
				return;
			sm_move(&x->sm, x->request ? EXECUTION_SENT : EXECUTION_DONE);
			if (x->sm.state == EXECUTION_SENT)
				send_now(x);
			else
				done(x);
			return;
		case EXECUTION_SENT: /* left with the kernel's first sign */
			if (x->request && !x->running_us)
				return;
			sm_move(&x->sm, x->request ? EXECUTION_RUNNING : EXECUTION_DONE);
			break;
		case EXECUTION_RUNNING: /* left when both halves were said */
			if (x->request)
				return;
			sm_move(&x->sm, EXECUTION_DONE);
			break;
		case EXECUTION_DONE:
		case EXECUTION_STATES:
			return;
		}
		if (x->sm.state == EXECUTION_DONE)
			done(x);
	}
}

static bool is_false(struct bytes raw)
{
	return bytes_equal(raw, "false") || bytes_equal(raw, "null") || bytes_equal(raw, "0");
}

static bool stop_on_error(const struct jmsg *request)
{
	struct json_want want = {.key = "stop_on_error"};
	if (json_scan(request->part[PART_CONTENT], &want, 1, NULL) != 0)
		return true;
	return !is_false(want.value);
}

static int64_t parse_count(struct bytes raw)
{
	int64_t count = 0;
	if (raw.len == 0 || raw.len > 15)
		return -1;
	for (size_t i = 0; i < raw.len; i++) {
		if (raw.data[i] < '0' || raw.data[i] > '9')
			return -1;
		count = count * 10 + (raw.data[i] - '0');
	}
	return count;
}

bool outcome_read(const struct jmsg *reply, struct outcome *ret)
{
	struct json_want wants[] = {
		{.key = "status"}, {.key = "execution_count"}, {.key = "payload"}};
	if (json_scan(reply->part[PART_CONTENT], wants, ARRAY_LEN(wants), NULL) != 0)
		return false;
	struct bytes status = wants[0].value, payload = wants[2].value;
	if (bytes_equal(status, "\"ok\""))
		ret->status = EXECUTION_OK;
	else if (bytes_equal(status, "\"aborted\"") || bytes_equal(status, "\"abort\""))
		ret->status = EXECUTION_ABORTED;
	else
		ret->status = EXECUTION_ERROR;
	ret->execution_count = parse_count(wants[1].value);
	ret->asks_exit = payload.len > 0 && memmem(payload.data, payload.len, "\"ask_exit\"", 10);
	return true;
}

static void read_reply(struct execution *x, const struct jmsg *reply)
{
	struct outcome outcome;
	if (!outcome_read(reply, &outcome))
		return;
	x->status = x->timed_out ? EXECUTION_TIMED_OUT : outcome.status;
	x->execution_count = outcome.execution_count;
	x->asked_exit = outcome.asks_exit;
	x->stops_queue = outcome.status == EXECUTION_ERROR && stop_on_error(x->request->msg);
}

void execution_time_up(struct execution *x, const char *content)
{
	x->status = EXECUTION_TIMED_OUT;
	x->stops_queue = stop_on_error(x->request->msg);
	request_end(x->request, content, JOURNAL_TO_ALL);
}

/* 0: it has none. */
static int64_t stamp_in(struct bytes part, const char *key)
{
	struct json_want want = {.key = key};
	char text[64];
	int64_t us = 0;
	bool is_there = json_scan(part, &want, 1, NULL) == 0 &&
			json_text(want.value, text, sizeof text) && clock_stamp_read(text, &us);
	return is_there ? us : 0;
}

/* When it ran is the kernel's to say: what came within a turn of a loop that had other things to do
 * was read in the same moment. Its word counts if all of it lies between the sending and now. */
static void read_times(struct execution *x, const struct jmsg *reply)
{
	int64_t from = stamp_in(reply->part[PART_METADATA], "started");
	int64_t to = stamp_in(reply->part[PART_HEADER], "date");
	if (from == 0)
		from = x->busy_us;
	if (from < x->sent_us || to < from || to > clock_wall_us(x->desk->gw->clock))
		return;
	x->running_us = from;
	x->ended_us = to;
}

void execution_saw(struct execution *x, const struct jmsg *m, uint64_t number)
{
	x->last = number;
	x->output_bytes += m->channel == CHANNEL_IOPUB ? m->frame.len : 0;
	x->raised = x->raised || (m->channel == CHANNEL_IOPUB && strcmp(m->msg_type, "error") == 0);
	if (m->channel == CHANNEL_SHELL) {
		read_reply(x, m);
		x->peak_bytes = facts_peak(m);
	}
	if (x->running_us == 0) {
		x->running_us = clock_wall_us(x->desk->gw->clock);
		x->busy_us = stamp_in(m->part[PART_HEADER], "date");
		if (x->request && x->request->row)
			x->request->row->is_running = true;
		execution_step(x);
	}
	if (m->channel == CHANNEL_SHELL)
		read_times(x, m);
}
