#include "gateway/spine/request.h"

#include <assert.h>
#include <string.h>

#include "gateway/spine/desk.h"
#include "gateway/spine/msg_key.h"
#include "gateway/spine/notice.h"

#define SLIM_BYTES (16u << 10) /* larger ones are kept without content once they were sent */

static void half_fire(struct timer *t);

void requests_init(struct requests *rs)
{
	*rs = (struct requests){0};
	list_init(&rs->all);
	answers_init(&rs->answers);
	timer_init(&rs->half_timer, half_fire);
}

void requests_done(struct requests *rs)
{
	assert(list_empty(&rs->all));
	answers_done(&rs->answers);
}

struct request *requests_find(const struct requests *rs, const char *session, const char *msg_id)
{
	struct request *r;
	struct msg_key key = msg_key_of(session, msg_id);
	HASH_FIND(hh, rs->by_key, key.text, key.len, r);
	return r;
}

static void remember(struct requests *rs, const struct request *r)
{
	answers_add(&rs->answers, &(struct answered){
					  .session = r->msg->session,
					  .msg_id = r->msg->msg_id,
					  .msg_type = r->msg->msg_type,
					  .channel = r->msg->channel,
					  .client = r->client,
					  .reply_at = r->reply_at,
					  .idle_at = r->idle_at,
					  .status = r->x ? r->x->status : EXECUTION_OPEN,
					  .execution_count = r->x ? r->x->execution_count : -1,
					  .reply = r->reply,
				  });
}

static bool ends_with(const char *text, const char *tail)
{
	size_t n = strlen(text), m = strlen(tail);
	return n >= m && strcmp(text + n - m, tail) == 0;
}

/* Requests of types that a kernel never answers would fill the table: the oldest gives way. */
static void evict_unanswered(struct desk *d)
{
	LIST_EACH (at, &d->requests.all) {
		struct request *r = CONTAINER_OF(at, struct request, link);
		if (!r->is_sent || r->x)
			continue;
		AUTO(freep)
		char *content = notice_error_content("NoReply", "the kernel gave no answer");
		request_end(r, content, r->client);
		return;
	}
}

static struct request *make(struct desk *d, struct jmsg *m, uint64_t client);

int request_new(
	struct desk *d, struct jmsg *m, uint64_t client, struct request **ret, struct err *err)
{
	struct requests *rs = &d->requests;
	if (rs->n >= REQUESTS_MAX)
		evict_unanswered(d);
	if (rs->n >= REQUESTS_MAX || (rs->n > 0 && rs->bytes + m->frame.len > REQUESTS_BYTES))
		return err_set(err, E_UNAVAILABLE,
			"too much waits for this kernel (%zu requests, %zu bytes): this one was "
			"not taken",
			rs->n, rs->bytes);
	struct request *r = make(d, m, client);
	r->row = live_request(d->live, m, client);
	if (!r->row)
		live_unkept(d->live, 1);
	*ret = r;
	return 0;
}

static struct request *make(struct desk *d, struct jmsg *m, uint64_t client)
{
	struct requests *rs = &d->requests;
	struct request *r = xcalloc(1, sizeof *r);
	list_init(&r->held);
	r->desk = d;
	r->msg = jmsg_ref(m);
	r->bytes = m->frame.len;
	r->client = client;
	r->wants_reply = ends_with(m->msg_type, "_request");
	struct msg_key key = msg_key_of(m->session, m->msg_id);
	r->key = xcalloc(1, key.len);
	r->key_len = key.len;
	memcpy(r->key, key.text, key.len);
	HASH_ADD_KEYPTR(hh, rs->by_key, r->key, r->key_len, r);
	list_append(&rs->all, &r->link);
	rs->n++;
	rs->bytes += r->bytes;
	if (m->channel == CHANNEL_SHELL && strcmp(m->msg_type, "execute_request") == 0)
		r->x = execution_new(d, r);
	return r;
}

static bool is_in_file(uint64_t number, uint64_t last)
{
	return number > 0 && number <= last;
}

/* What is in the file counts, the rest comes again: from the kernel or, where we had said it, from
 * us. */
static void restore_halves(struct request *r, uint64_t last)
{
	const struct live_request *row = r->row;
	r->is_sent = row->is_sent;
	r->is_busy = row->is_running || is_in_file(row->busied, last);
	r->replied = is_in_file(row->replied, last);
	r->reply_at = r->replied ? row->replied : 0;
	r->idled = is_in_file(row->idled, last);
	r->idle_at = r->idled ? row->idled : 0;
}

/* Its execution runs, or its halves are partly said. */
static void restore_sent(struct request *r, uint64_t last)
{
	const struct live_request *row = r->row;
	if (r->msg->channel == CHANNEL_SHELL)
		queue_restore(r->desk, r);
	if (!r->x)
		return;
	r->x->first = row->first;
	scribe_resumes(r->x, last);
	if (!row->is_running)
		return;
	r->x->running_us = r->x->sent_us;
	execution_step(r->x);
}

void request_restore(struct desk *d, struct live_request *row, uint64_t last)
{
	AUTO(jmsg_unrefp) struct jmsg *m = NULL;
	struct bytes frame = {.data = row->frame, .len = row->len};
	bool over = is_in_file(row->noted > 0 ? row->noted : row->ended, last);
	bool fits = row->len <= sizeof row->frame && !over && jmsg_from_frame(frame, &m, NULL) == 0;
	if (!fits || requests_find(&d->requests, m->session, m->msg_id)) {
		live_request_free(d->live, row);
		return;
	}
	struct request *r = make(d, m, row->client);
	r->row = row;
	r->is_over = row->ended > 0;
	restore_halves(r, last);
	if (r->is_over)
		return;
	if (r->is_sent)
		restore_sent(r, last);
	else if (!row->is_slim && m->channel == CHANNEL_SHELL)
		queue_push(d, r);
	else
		request_end(r, NOTICE_ABORTED, JOURNAL_TO_ALL);
}

/* What is still needed of a request that was sent is its header. An execute stays whole: its
 * stop_on_error is looked at when it fails. */
static void slim(struct request *r)
{
	struct jmsg *slim_msg;
	if (r->x || r->msg->frame.len <= SLIM_BYTES)
		return;
	struct jmsg_source source = {.channel = r->msg->channel};
	source.part[PART_HEADER] = r->msg->part[PART_HEADER];
	source.part[PART_CONTENT] = (struct bytes){.data = (const uint8_t *)"{}", .len = 2};
	if (jmsg_new(&source, false, &slim_msg, NULL) != 0)
		return;
	struct requests *rs = &r->desk->requests;
	rs->bytes -= r->bytes;
	jmsg_unref(r->msg);
	r->msg = slim_msg;
	r->bytes = slim_msg->frame.len;
	rs->bytes += r->bytes;
}

int request_send(struct request *r, struct err *err)
{
	if (r->is_sent)
		return 0; /* by an earlier gateway */
	int rc = kernel_send(r->desk->kernel, r->msg, err);
	if (rc != 0)
		return rc;
	r->is_sent = true;
	r->desk->asked = true;
	if (r->row) {
		r->row->first = r->x ? r->x->first : 0;
		r->row->is_sent = true;
	}
	slim(r);
	return 0;
}

static void gone(struct request *r)
{
	struct desk *d = r->desk;
	struct requests *rs = &d->requests;
	bool stops = r->x && r->x->stops_queue;
	HASH_DEL(rs->by_key, r);
	list_remove(&r->link);
	rs->n--;
	rs->bytes -= r->bytes;
	remember(rs, r);
	uint64_t noted = r->x ? scribe_ends(r) : 0;
	if (noted > 0 && r->row)
		live_request_noted(d->live, r->row, noted, r->row_stays);
	else if (!d->leaving && !r->row_stays)
		live_request_free(d->live, r->row);
	if (!d->leaving)
		live_request_free(d->live, r->input);
	if (!d->leaving && !r->row)
		live_unkept(d->live, -1);
	if (r->x) {
		r->x->request = NULL;
		execution_step(r->x);
	}
	queue_left(d, r, stops);
	jmsg_unref(r->msg);
	jmsg_unref(r->reply);
	free(r->key);
	free(r);
}

static bool is_ended(const struct request *r)
{
	return r->idled && (r->replied || !r->wants_reply);
}

static void halves_changed(struct request *r)
{
	struct clock *clock = r->desk->gw->clock;
	struct timer *t = &r->desk->requests.half_timer;
	if (is_ended(r)) {
		gone(r);
		return;
	}
	if (r->is_over)
		return;
	if (r->half_ms == 0)
		r->half_ms = clock_now_ms(clock) + 1;
	if (!timer_running(t))
		timer_start(clock, t, HALF_MS);
}

void request_heard(struct request *r)
{
	if (r->half_ms > 0)
		r->half_ms = clock_now_ms(r->desk->gw->clock) + 1;
}

void request_busied(struct request *r)
{
	r->is_busy = true;
	if (r->row)
		r->row->busied = journal_next(r->desk->journal) - 1;
}

void request_replied(struct request *r, struct jmsg *reply)
{
	r->replied = true;
	r->reply = jmsg_ref(reply);
	r->reply_at = journal_next(r->desk->journal) - 1;
	if (r->row)
		r->row->replied = r->reply_at;
	halves_changed(r);
}

void request_idled(struct request *r)
{
	r->idled = true;
	r->idle_at = journal_next(r->desk->journal) - 1;
	if (r->row)
		r->row->idled = r->idle_at;
	halves_changed(r);
}

bool requests_run(const struct requests *rs)
{
	LIST_EACH (at, &rs->all) {
		const struct request *r = CONTAINER_OF(at, struct request, link);
		if (r->x && r->is_sent && !r->idled && !r->is_over)
			return true;
	}
	return false;
}

/* One that goes may take others with it: the list is looked at anew. */
static struct request *first_ended(const struct requests *rs)
{
	LIST_EACH (at, &rs->all) {
		struct request *r = CONTAINER_OF(at, struct request, link);
		if (is_ended(r))
			return r;
	}
	return NULL;
}

static struct request *first_over(const struct requests *rs)
{
	LIST_EACH (at, &rs->all) {
		struct request *r = CONTAINER_OF(at, struct request, link);
		if (r->is_over)
			return r;
	}
	return NULL;
}

void requests_settled(struct desk *d)
{
	for (struct request *r; (r = first_over(&d->requests));)
		request_end(r, NOTICE_ABORTED, JOURNAL_TO_ALL);
	for (struct request *r; (r = first_ended(&d->requests));)
		gone(r);
	LIST_EACH (at, &d->requests.all) {
		struct request *r = CONTAINER_OF(at, struct request, link);
		if (r->replied || r->idled)
			halves_changed(r);
	}
}

/* It was said just now. A client that had it from an earlier gateway, as then, passes over it. */
static uint64_t note(const struct desk *d, uint64_t *then)
{
	uint64_t now = journal_next(d->journal) - 1;
	if (then && *then > 0)
		past_said(d->past, now, *then);
	if (then)
		*then = now;
	return now;
}

static void say_missing(struct request *r, const char *content, uint64_t to)
{
	struct desk *d = r->desk;
	struct live_request *row = r->row;
	if (!r->is_busy) {
		notice_status(d, "busy", r->msg, to);
		(void)note(d, row ? &row->busied : NULL); /* nobody asks later */
	}
	if (r->wants_reply && !r->replied) {
		notice_reply(d, r->msg, content, r->client, &r->reply);
		r->reply_at = note(d, row ? &row->replied : NULL);
	}
	if (!r->idled) {
		notice_status(d, "idle", r->msg, to);
		r->idle_at = note(d, row ? &row->idled : NULL);
	}
}

static void say_again(struct request *r)
{
	struct desk *d = r->desk;
	uint64_t client = r->row->is_private ? r->client : JOURNAL_TO_ALL;
	AUTO(freep) char *content = live_answer(r->row);
	say_missing(r, content ? content : NOTICE_ABORTED, client);
	if (client != JOURNAL_TO_ALL && desk_is_busy(d))
		notice_status(d, "busy", NULL, client);
}

void request_end(struct request *r, const char *content, uint64_t to)
{
	struct desk *d = r->desk;
	if (r->x && r->x->status == EXECUTION_OPEN)
		r->x->status = r->is_sent ? EXECUTION_DIED : EXECUTION_ABORTED;
	if (r->is_over)
		say_again(r);
	else
		say_missing(r, content, to);
	if (r->row) {
		r->row->is_private = r->row->is_private || to != JOURNAL_TO_ALL;
		r->row_stays = true;
		live_request_ended(
			d->live, r->row, journal_next(d->journal) - 1, r->is_over ? NULL : content);
	}
	d->kernels->count.synthesised++;
	gone(r);
}

static void end_half(struct request *r)
{
	struct desk *d = r->desk;
	log_warn(&d->log, "half_missing msg_id=%s missing=%s", r->msg->msg_id,
		r->idled ? "reply" : "idle");
	if (r->x) {
		r->x->silent_kernel = true;
		if (!r->replied)
			r->x->status = EXECUTION_ERROR;
	}
	if (r->idled)
		notice_text(
			d, JOURNAL_TO_ALL, "The kernel went idle without a reply to this request.");
	AUTO(freep)
	char *content = notice_error_content(
		"NoReply", "the kernel went idle without a reply to this request");
	request_end(r, content, JOURNAL_TO_ALL);
}

static struct request *find_overdue(struct requests *rs, uint64_t now_ms, bool *ret_waits)
{
	*ret_waits = false;
	LIST_EACH (at, &rs->all) {
		struct request *r = CONTAINER_OF(at, struct request, link);
		if (r->half_ms == 0)
			continue;
		if (now_ms + 1 >= r->half_ms + HALF_MS)
			return r;
		*ret_waits = true;
	}
	return NULL;
}

/* While the kernel is not read from, the other half may wait in its sockets. */
static void half_fire(struct timer *t)
{
	struct requests *rs = CONTAINER_OF(t, struct requests, half_timer);
	struct desk *d = CONTAINER_OF(rs, struct desk, requests);
	struct clock *clock = d->gw->clock;
	bool waits = d->held;
	for (struct request *r; !d->held && (r = find_overdue(rs, clock_now_ms(clock), &waits));)
		end_half(r);
	if (waits && !timer_running(t))
		timer_start(clock, t, d->held ? HALF_MS : HALF_MS / 10);
}

/* The oldest that is to end. An ending may take others with it: the list is looked at anew. */
static struct request *first_to_abort(const struct requests *rs, bool held_too)
{
	LIST_EACH (at, &rs->all) {
		struct request *r = CONTAINER_OF(at, struct request, link);
		if (held_too || r->is_sent || r->is_over)
			return r;
	}
	return NULL;
}

void requests_abort(struct desk *d, bool held_too)
{
	struct requests *rs = &d->requests;
	timer_stop(d->gw->clock, &rs->half_timer);
	for (struct request *r; (r = first_to_abort(rs, held_too));)
		request_end(r, NOTICE_ABORTED, JOURNAL_TO_ALL);
}

void requests_forget(struct desk *d)
{
	struct requests *rs = &d->requests;
	timer_stop(d->gw->clock, &rs->half_timer);
	while (!list_empty(&rs->all))
		gone(CONTAINER_OF(rs->all.next, struct request, link));
}
