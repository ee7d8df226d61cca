#include "gateway/spine/relay.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gateway/base/json.h"
#include "gateway/spine/blank.h"
#include "gateway/spine/desk.h"
#include "gateway/spine/input.h"
#include "gateway/spine/limits.h"
#include "gateway/spine/notice.h"
#include "gateway/spine/split.h"

#define INFO_FRESH_MS 1000u

bool relay_is_untracked(const char *msg_type)
{
	static const char *const untracked[] = {"kernel_info_request", "comm_info_request",
		"shutdown_request", "interrupt_request", "debug_request"};
	for (size_t i = 0; i < ARRAY_LEN(untracked); i++) {
		if (strcmp(msg_type, untracked[i]) == 0)
			return true;
	}
	return false;
}

/* Code points of a JSON string that was scanned: a pair of surrogate escapes is one. */
static long long count_points(struct bytes raw)
{
	long long n = 0;
	for (size_t i = 1; i + 1 < raw.len; i++) {
		uint8_t c = raw.data[i];
		if ((c & 0xc0) == 0x80)
			continue;
		n++;
		if (c != '\\')
			continue;
		if (raw.data[++i] != 'u')
			continue;
		bool high = (raw.data[i + 1] | 0x20) == 'd' && strchr("89abAB", raw.data[i + 2]);
		i += high ? 10 : 4; /* the scan proved that a partner follows */
	}
	return n;
}

static bool parse_whole(struct bytes raw, long long *ret)
{
	char text[24], *end;
	if (raw.len == 0 || raw.len >= sizeof text)
		return false;
	memcpy(text, raw.data, raw.len);
	text[raw.len] = '\0';
	*ret = strtoll(text, &end, 10);
	return *end == '\0';
}

static int with_cursor(const struct jmsg *m, struct bytes old, long long cursor, struct jmsg **ret,
	struct err *err)
{
	struct bytes content = m->part[PART_CONTENT];
	size_t before = (size_t)(old.data - content.data), after = before + old.len;
	AUTO(buf_done) struct buf b;
	buf_init(&b, content.len + 24);
	(void)buf_add(&b, content.data, before);
	(void)buf_addf(&b, "%lld", cursor);
	(void)buf_add(&b, content.data + after, content.len - after);
	int rc = buf_check(&b, "content", err);
	if (rc != 0)
		return rc;
	struct jmsg_source source = {
		.channel = m->channel, .buffers = m->buffers, .n_buffers = m->n_buffers};
	memcpy(source.part, m->part, sizeof source.part);
	source.part[PART_CONTENT] = (struct bytes){.data = b.data, .len = b.len};
	return jmsg_new(&source, false, ret, err);
}

int relay_clamp_cursor(struct jmsg *m, struct jmsg **ret, struct err *err)
{
	struct json_want wants[] = {{.key = "code"}, {.key = "cursor_pos"}};
	struct bytes content = m->part[PART_CONTENT];
	bool found = json_scan(content, wants, ARRAY_LEN(wants), NULL) == 0;
	struct bytes code = wants[0].value, raw = wants[1].value;
	long long cursor = 0, length = 0;
	bool is_text = found && code.len > 1 && code.data[0] == '"';
	bool is_number = found && raw.len > 0 && strchr("-0123456789", raw.data[0]);
	if (is_text)
		length = count_points(code);
	/* A fraction, or more digits than fit, is not a position either: the end is meant. */
	bool whole = is_number && parse_whole(raw, &cursor);
	if (!is_text || !is_number || (whole && cursor >= 0 && cursor <= length)) {
		*ret = jmsg_ref(m);
		return 0;
	}
	return with_cursor(m, raw, whole && cursor < 0 ? 0 : length, ret, err);
}

static void say_present(struct desk *d, uint64_t client)
{
	if (desk_is_busy(d))
		notice_status(d, "busy", NULL, client);
}

/* An answer of our own, to that client alone: other pages' indicators stay right. */
static void answer_error(
	struct desk *d, uint64_t client, const struct jmsg *m, const char *ename, const char *text)
{
	AUTO(freep) char *content = notice_error_content(ename, text);
	notice_status(d, "busy", m, client);
	notice_reply(d, m, content, client, NULL);
	notice_status(d, "idle", m, client);
	say_present(d, client);
}

static void say_again(struct desk *d, uint64_t client, const struct jmsg *m, struct jmsg *reply)
{
	uint64_t number;
	notice_status(d, "busy", m, client);
	(void)desk_post(d, reply, client, &number); /* closes by itself */
	notice_status(d, "idle", m, client);
	say_present(d, client);
}

/* It is looked at again once all that the kernel kept has come: an answer that comes again is
 * passed over for a page that had it, and this one asks all the same. */
static void put_off(struct desk *d, uint64_t client, const struct jmsg *m)
{
	struct repeats *repeats = &d->repeats;
	if (repeats->n == REPEATS_MAX)
		return; /* as before: the page has the first answer or gets it */
	repeats->of[repeats->n].msg = jmsg_ref((struct jmsg *)(uintptr_t)m); /* only counted */
	repeats->of[repeats->n++].client = client;
}

/* Kernels drop a message that they saw before, without a word: the first one's outcome counts. */
static bool answer_duplicate(struct desk *d, uint64_t client, const struct jmsg *m)
{
	const struct request *first = requests_find(&d->requests, m->session, m->msg_id);
	const struct answered *answered = answers_find(&d->requests.answers, m->session, m->msg_id);
	if (!first && !answered)
		return false;
	struct jmsg *reply = answered ? answered->reply : NULL;
	d->kernels->count.duplicates++;
	log_info(&d->log, "duplicate msg_id=%s", m->msg_id);
	if (first && first->client == client) {
		if (d->adopting && !first->is_over)
			put_off(d, client, m);
		return true;
	}
	if (!reply) {
		char text[JMSG_ID_MAX + 64];
		(void)snprintf(text, sizeof text, "msg_id %s was used before", m->msg_id);
		answer_error(d, client, m, "DuplicateMessage", text);
		return true;
	}
	say_again(d, client, m, reply);
	return true;
}

void relay_repeats(struct desk *d)
{
	struct repeats *repeats = &d->repeats;
	for (size_t i = 0; i < repeats->n; i++)
		(void)answer_duplicate(
			d, repeats->of[i].client, repeats->of[i].msg); /* it is one */
	repeats_done(repeats);
}

void repeats_done(struct repeats *repeats)
{
	while (repeats->n > 0)
		jmsg_unref(repeats->of[--repeats->n].msg);
}

void relay_answer_again(struct request *r, const struct answered *a)
{
	struct desk *d = r->desk;
	uint64_t client = r->client;
	AUTO(freep) char *text = NULL;
	if (a->reply) {
		struct bytes content = a->reply->part[PART_CONTENT];
		text = strndup((const char *)content.data, content.len);
	} else
		text = notice_error_content("DuplicateMessage", "this msg_id was used before");
	if (r->x) {
		r->x->status = a->status;
		r->x->repeats = true;
	}
	request_end(r, text, client);
	say_present(d, client);
}

bool relay_info_is_fresh(const struct desk *d)
{
	return d->from_pool && !d->asked &&
	       clock_now_ms(d->gw->clock) - d->ready_ms < INFO_FRESH_MS;
}

static bool info_is_kept(const struct desk *d)
{
	return (d->open || d->move) && d->info && (desk_is_busy(d) || relay_info_is_fresh(d));
}

bool relay_answer_info(struct request *r)
{
	struct desk *d = r->desk;
	if (!d->info)
		return false;
	struct bytes content = d->info->part[PART_CONTENT];
	AUTO(freep) char *text = strndup((const char *)content.data, content.len);
	uint64_t client = r->client;
	request_end(r, text, client);
	say_present(d, client);
	return true;
}

static void watch_shutdown(struct desk *d, const struct jmsg *m)
{
	struct json_want want = {.key = "restart"};
	(void)json_scan(m->part[PART_CONTENT], &want, 1, NULL); /* not found means false */
	desk_shutdown_asked(d, bytes_equal(want.value, "true"));
}

static void control_send(struct request *r)
{
	struct err err;
	if (request_send(r, &err) == 0)
		return;
	AUTO(freep) char *content = notice_error_content(err_ename(err.code), err.text);
	request_end(r, content, r->client);
}

static void take_request(struct desk *d, uint64_t client, struct jmsg *m)
{
	struct request *r;
	struct err err;
	if (answer_duplicate(d, client, m))
		return;
	if (request_new(d, m, client, &r, &err) != 0) {
		d->kernels->count.refused++;
		answer_error(d, client, m, err_ename(err.code), err.text);
		return;
	}
	if (strcmp(m->msg_type, "shutdown_request") == 0)
		watch_shutdown(d, m);
	if (strcmp(m->msg_type, "interrupt_request") == 0)
		limit_interrupted(d);
	if (m->channel == CHANNEL_CONTROL)
		control_send(r);
	else if (strcmp(m->msg_type, "kernel_info_request") == 0 && info_is_kept(d))
		(void)relay_answer_info(r); /* there is one */
	else
		queue_push(d, r);
}

static int take_shell(struct desk *d, uint64_t client, struct jmsg *m, struct err *err)
{
	AUTO(jmsg_unrefp) struct jmsg *clamped = NULL;
	bool has_cursor = strcmp(m->msg_type, "complete_request") == 0 ||
			  strcmp(m->msg_type, "inspect_request") == 0;
	if (has_cursor) {
		int rc = relay_clamp_cursor(m, &clamped, err);
		if (rc != 0)
			return rc;
	}
	take_request(d, client, clamped ? clamped : m);
	return 0;
}

static void take_input(struct desk *d, uint64_t client, const struct jmsg *m)
{
	struct err err;
	input_keep(d, m, client);
	if (kernel_send(d->kernel, m, &err) != 0)
		notice_text(d, client, "The input could not be sent: %s", err.text);
}

int relay_from_client(struct desk *d, uint64_t client, struct jmsg *m, struct err *err)
{
	d->kernels->count.messages_in++;
	d->kernels->count.bytes_in += m->frame.len;
	switch (m->channel) {
	case CHANNEL_SHELL:
		return take_shell(d, client, m, err);
	case CHANNEL_CONTROL:
		take_request(d, client, m);
		return 0;
	case CHANNEL_STDIN:
		take_input(d, client, m);
		return 0;
	case CHANNEL_IOPUB: /* nothing goes to a kernel on these; Jupyter ignores it too */
	case CHANNEL_HB:
	case CHANNEL_COUNT:
		break;
	}
	log_debug(&d->log, "ignored channel=%s type=%s", channel_name(m->channel), m->msg_type);
	return 0;
}

static struct request *find_request(const struct desk *d, const struct jmsg *m)
{
	return *m->parent_id ? requests_find(&d->requests, m->parent_session, m->parent_id) : NULL;
}

/* The request that m answers, if it went to the kernel. Of one that an earlier gateway answered
 * only what came before that does: the rest is late. */
static struct request *request_of(const struct desk *d, const struct jmsg *m)
{
	uint64_t to;
	struct request *r = find_request(d, m);
	bool late = r && r->is_over && !past_receiver(d->past, m, &to);
	return r && r->is_sent && !late ? r : NULL;
}

static bool was_answered(const struct desk *d, const struct jmsg *m)
{
	const struct request *r = find_request(d, m);
	return (r && r->is_over) || (*m->parent_id && answers_find(&d->requests.answers,
							      m->parent_session, m->parent_id));
}

enum said { SAID_BUSY, SAID_IDLE, SAID_OTHER, SAID_NONSENSE };

static enum said read_status(const struct jmsg *m)
{
	static const char *const other[] = {"\"starting\"", "\"restarting\"", "\"dead\""};
	struct json_want want = {.key = "execution_state"};
	if (json_scan(m->part[PART_CONTENT], &want, 1, NULL) != 0)
		return SAID_NONSENSE;
	if (bytes_equal(want.value, "\"busy\""))
		return SAID_BUSY;
	if (bytes_equal(want.value, "\"idle\""))
		return SAID_IDLE;
	for (size_t i = 0; i < ARRAY_LEN(other); i++) {
		if (bytes_equal(want.value, other[i]))
			return SAID_OTHER;
	}
	return SAID_NONSENSE;
}

/* An idle said twice (a forked child that thinks it is the kernel), or after we said it. */
static bool is_stale(const struct desk *d, const struct request *r, const struct jmsg *m)
{
	if (r)
		return r->idled;
	return was_answered(d, m);
}

/* Another lane's execution still runs: with subshells one idle is not the kernel's. One that only
 * waits for its reply does not: all of iopub is read before shell. */
static bool others_run(const struct desk *d, const struct request *r)
{
	for (const struct lane *lane = d->queue.lanes; lane; lane = lane->hh.next) {
		const struct request *other = lane->running ? lane->running->request : NULL;
		if (other && other != r && !other->idled)
			return true;
	}
	return false;
}

static void take_status(struct desk *d, struct request *r, const struct jmsg *m, enum said said)
{
	if (!relay_is_untracked(m->parent_type) && said != SAID_OTHER)
		desk_set_busy(d, said == SAID_BUSY || others_run(d, r));
	if (r && said == SAID_BUSY)
		request_busied(r);
	if (r && said == SAID_IDLE)
		request_idled(r);
}

/* As the kernel sent it, or in pieces that a client can hold. */
static bool post_iopub(struct desk *d, struct jmsg *m, uint64_t to, uint64_t *ret_number)
{
	struct split split;
	struct err err;
	bool whole = true;
	int rc;
	if (!split_begin(&split, m))
		return desk_post(d, m, to, ret_number);
	for (struct jmsg *piece; (rc = split_next(&split, &piece, &err)) == 1;) {
		whole = desk_post(d, piece, to, ret_number) && whole;
		jmsg_unref(piece);
	}
	if (rc != 0)
		clients_close(d, to, 1011, err.text);
	return rc == 0 && whole;
}

static void from_iopub(struct desk *d, struct jmsg *m)
{
	uint64_t number, to = JOURNAL_TO_ALL;
	struct request *r = request_of(d, m);
	bool is_status = strcmp(m->msg_type, "status") == 0;
	enum said said = is_status ? read_status(m) : SAID_OTHER;
	if (said == SAID_NONSENSE)
		d->kernels->count.bad_messages++;
	if (is_status && (said == SAID_NONSENSE || is_stale(d, r, m)))
		to = JOURNAL_TO_NOBODY;
	(void)past_receiver(d->past, m, &to); /* it was judged before */
	if (r && r->x && said == SAID_IDLE && to == JOURNAL_TO_ALL)
		limit_tells(r->x);
	if (!post_iopub(d, m, to, &number))
		number = journal_next(d->journal) - 1;
	if (r)
		request_heard(r);
	if (r && r->x)
		execution_saw(r->x, m, number);
	if (is_status && to == JOURNAL_TO_ALL)
		take_status(d, r, m, said);
}

static bool is_reply_to(const struct request *r, const struct jmsg *m)
{
	size_t len = strlen(m->msg_type);
	return r->msg->channel == m->channel && !r->replied && len > 6 &&
	       strcmp(m->msg_type + len - 6, "_reply") == 0;
}

/* By its parent; else by the session its parent came from. A second reply is nobody's. */
static uint64_t receiver(const struct desk *d, const struct request *r, const struct jmsg *m)
{
	if (r)
		return r->replied && m->channel != CHANNEL_STDIN ? JOURNAL_TO_NOBODY : r->client;
	if (m->channel != CHANNEL_STDIN && was_answered(d, m))
		return JOURNAL_TO_NOBODY;
	return clients_by_session(d, m->parent_session);
}

static void from_other(struct desk *d, struct jmsg *m)
{
	uint64_t number;
	struct request *r = request_of(d, m);
	uint64_t to = receiver(d, r, m);
	bool is_past = past_receiver(d->past, m, &to); /* it was known before */
	if (to == JOURNAL_TO_NOBODY)
		log_info(&d->log, "nobody_for type=%s", m->msg_type);
	if (!desk_post(d, m, to, &number))
		number = journal_next(d->journal) - 1;
	if (!r && is_past)
		answers_add_reply(&d->requests.answers, m, number, to);
	if (r && !is_past && strcmp(m->msg_type, "input_request") == 0)
		input_asked(r, m);
	if (!r || m->channel == CHANNEL_STDIN || !is_reply_to(r, m))
		return;
	if (r->x)
		execution_saw(r->x, m, number);
	if (r->x && r->x->asked_exit)
		desk_exit_asked(d);
	request_replied(r, m);
}

/* Unless another client has a request of that id under way. */
static bool is_forgotten(const struct desk *d, const struct jmsg *m)
{
	if (!*m->parent_id || !forgotten_has(&d->scribe.forgotten, m->parent_id))
		return false;
	const struct request *r = find_request(d, m);
	return !r || r->is_over;
}

/* A thread of a run that was forgotten: what it says may be what was to be forgotten, and whatever
 * is posted is written down. Where it asks something it waits for an answer, so that is passed on,
 * without its words. */
static void from_forgotten(struct desk *d, struct jmsg *m)
{
	AUTO(jmsg_unrefp) struct jmsg *blank = NULL;
	if (m->channel == CHANNEL_STDIN)
		blank = blank_message(m);
	if (blank)
		from_other(d, blank);
	else
		log_debug(&d->log, "of_a_forgotten_run type=%s", m->msg_type);
}

void relay_from_kernel(struct desk *d, struct jmsg *m)
{
	d->kernels->count.messages_out++;
	d->kernels->count.bytes_out += m->frame.len;
	if (*m->session && strcmp(d->session, m->session) != 0)
		(void)copy_text(d->session, sizeof d->session, m->session, strlen(m->session));
	if (desk_is_busy(d) || !relay_is_untracked(m->parent_type))
		desk_touch(d);
	if (is_forgotten(d, m))
		from_forgotten(d, m);
	else if (m->channel == CHANNEL_IOPUB)
		from_iopub(d, m);
	else
		from_other(d, m);
}
