#include "gateway/spine/gap.h"

#include <stdio.h>

#include "gateway/spine/desk.h"
#include "gateway/spine/notice.h"

/* Takes the reference on m; NULL is out of memory. */
static void add(struct gap *g, struct jmsg *m, uint64_t client)
{
	if (g->n == g->size) {
		size_t size = g->size ? 2 * g->size : 8;
		struct entry **entries = realloc(g->entries, size * sizeof *entries);
		g->failed = g->failed || !entries;
		g->entries = entries ? entries : g->entries;
		g->size = entries ? size : g->size;
	}
	struct entry *e = m && !g->failed ? entry_new(m, g->to - 1, client) : NULL;
	if (e)
		g->entries[g->n++] = e;
	else
		g->failed = true;
	jmsg_unref(m);
}

static void tell_count(struct gap *g, const struct desk *d, uint64_t client)
{
	char text[160];
	(void)snprintf(text, sizeof text,
		"[coppice] %llu messages of this kernel are missing here: its journal's bound "
		"was reached before they were read.\n",
		(unsigned long long)(g->to - g->from)); /* fits */
	add(g, notice_stream_message(d, NULL, text), client);
}

static bool is_in(const struct gap *g, uint64_t number)
{
	return g->from <= number && number < g->to;
}

static struct jmsg *reply_again(
	const struct desk *d, const struct answered *a, const struct jmsg *request)
{
	if (a->reply)
		return jmsg_ref(a->reply);
	AUTO(freep) char *content = answered_content(a);
	return notice_reply_message(d, request, content);
}

static void tell_answered(struct gap *g, const struct desk *d, const struct answered *a)
{
	bool reply = is_in(g, a->reply_at), idle = is_in(g, a->idle_at);
	/* One that an earlier gateway left half answered is open, and its idle is still to come. */
	idle = idle && !requests_find(&d->requests, a->session, a->msg_id);
	if (!reply && !idle)
		return;
	AUTO(jmsg_unrefp) struct jmsg *request = answered_request(a);
	if (!request) {
		g->failed = true;
		return;
	}
	if (reply)
		add(g, reply_again(d, a, request), a->client);
	if (idle)
		add(g, notice_status_message(d, "idle", request), a->client);
}

/* One of its halves was said, the other will be. */
static void tell_half(struct gap *g, const struct desk *d, const struct request *r)
{
	if (r->reply && is_in(g, r->reply_at))
		add(g, jmsg_ref(r->reply), r->client);
	if (is_in(g, r->idle_at))
		add(g, notice_status_message(d, "idle", r->msg), r->client);
}

/* What follows in the journal ends with the kernel's state, unless its last change was cut too. A
 * start ends with a status of its own, and death comes last in any journal. */
static void tell_state(struct gap *g, const struct desk *d, uint64_t client)
{
	bool is_up = !d->dead && d->kernel && kernel_state(d->kernel) != KERNEL_STARTING &&
		     kernel_state(d->kernel) != KERNEL_DEAD;
	if (is_up)
		add(g, notice_status_message(d, desk_is_busy(d) ? "busy" : "idle", NULL), client);
}

bool gap_open(struct gap *g, struct desk *d, uint64_t client, uint64_t from, uint64_t to)
{
	gap_drop(g);
	g->from = from;
	g->to = to;
	tell_count(g, d, client);
	LIST_EACH (at, &d->requests.answers.all) {
		const struct answered *a = CONTAINER_OF(at, struct answered, link);
		if (a->client == client)
			tell_answered(g, d, a);
	}
	LIST_EACH (at, &d->requests.all) {
		const struct request *r = CONTAINER_OF(at, struct request, link);
		if (r->client == client)
			tell_half(g, d, r);
	}
	tell_state(g, d, client);
	bool whole = !g->failed;
	if (!whole)
		gap_drop(g);
	return whole;
}

struct entry *gap_take(struct gap *g)
{
	if (gap_is_told(g))
		return NULL;
	struct entry *e = g->entries[g->at++];
	if (gap_is_told(g))
		gap_drop(g);
	return e;
}

bool gap_is_told(const struct gap *g)
{
	return g->at == g->n;
}

void gap_drop(struct gap *g)
{
	for (; g->at < g->n; g->at++)
		entry_unref(g->entries[g->at]);
	free(TAKE(g->entries));
	g->at = g->n = g->size = 0;
	g->failed = false;
}

uint64_t gap_resume(const struct gap *g, uint64_t at)
{
	uint64_t end = gap_is_told(g) ? g->to : g->to + 1;
	return g->from < at && at < end ? g->from : at;
}
