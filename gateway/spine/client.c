#include "gateway/spine/client.h"

#include <assert.h>
#include <cjson/cJSON.h>
#include <stdio.h>
#include <string.h>

#include "gateway/spine/desk.h"
#include "gateway/spine/gap.h"
#include "gateway/spine/merge.h"
#include "gateway/spine/notice.h"
#include "gateway/spine/relay.h"

#define GONE_MAX 64u /* clients that are kept without a socket */

struct client {
	struct list link; /* desk's clients; the gone ones in order of their going */
	struct desk *desk;
	uint64_t number;
	char session_id[JMSG_ID_MAX];
	bool keeps; /* named by its session_id: kept while it is gone */
	bool attached, closing;
	bool old;  /* its socket is from before a restart that somebody asked for */
	bool told; /* on_readable was said, nothing was pulled down to the end since */
	struct client_socket socket;
	struct cursor cursor;
	struct entry *first; /* delivered before all else: greeting, or what was pulled ahead */
	struct gap gap;	     /* what is told in the place of what was cut, before the cursor */
	struct timer tell_timer;
	struct live_client *row; /* where its cursor outlives us, or NULL */
	uint64_t had; /* by the numbers of the earlier gateway: everything before it; 0: no more
			 than what the file holds */
};

static struct client *client_of(struct list *at)
{
	return CONTAINER_OF(at, struct client, link);
}

static void tell(struct client *c)
{
	if (!c->attached || c->told)
		return;
	c->told = true;
	c->socket.on_readable(c->socket.data);
}

static void on_cursor_ready(void *data)
{
	tell(data);
}

static void on_tell_timer(struct timer *t)
{
	tell(CONTAINER_OF(t, struct client, tell_timer));
}

/* Where it goes on if what was handed out from `unsent` on (0: nothing of it) is lost. */
static uint64_t stands_at(const struct client *c, uint64_t unsent)
{
	uint64_t at = c->cursor.next;
	if (c->first && c->first->number < at)
		at = c->first->number;
	if (unsent > 0 && unsent < at)
		at = unsent;
	return gap_resume(&c->gap, at);
}

static void go_back(struct client *c, uint64_t first_undelivered)
{
	cursor_seek(&c->cursor, stands_at(c, first_undelivered));
	entry_unref(TAKE(c->first));
	gap_drop(&c->gap);
}

static void client_free(struct client *c)
{
	timer_stop(c->desk->gw->clock, &c->tell_timer);
	entry_unref(c->first);
	gap_drop(&c->gap);
	cursor_done(&c->cursor);
	list_remove(&c->link);
	if (c->row && !c->desk->leaving)
		c->row->number = 0;
	free(c);
}

/* A page that comes (back) while a cell runs gets that cell's output from its beginning. */
static uint64_t begin_at(const struct desk *d)
{
	const struct execution *x = queue_running(&d->queue);
	uint64_t next = journal_next(d->journal);
	return x && x->first > 0 && x->first < next ? x->first : next;
}

static struct client *client_make(
	struct desk *d, const char *session_id, uint64_t number, uint64_t next)
{
	struct client *c = xcalloc(1, sizeof *c);
	c->desk = d;
	c->number = number;
	c->keeps = session_id && *session_id;
	if (c->keeps)
		(void)copy_text(c->session_id, sizeof c->session_id, session_id,
			strlen(session_id)); /* length was checked */
	else
		crypto_uuid(c->session_id);
	cursor_init(&c->cursor, d->journal, next);
	c->cursor.on_ready = on_cursor_ready;
	c->cursor.data = c;
	timer_init(&c->tell_timer, on_tell_timer);
	list_append(&d->clients, &c->link);
	return c;
}

static struct client *client_new(struct desk *d, const char *session_id)
{
	struct client *c = client_make(d, session_id, ++d->last_client, begin_at(d));
	if (c->keeps)
		c->row = live_client(d->live, c->number, c->session_id);
	if (c->row)
		c->row->next = c->cursor.next;
	return c;
}

void client_restore(struct desk *d, struct live_client *row, uint64_t last)
{
	row->session_id[sizeof row->session_id - 1] = '\0';
	uint64_t had = live_client_had(row);
	uint64_t next = had > last + 1 ? last + 1 : had;
	struct client *c = client_make(d, row->session_id, row->number, next > 0 ? next : 1);
	live_client_wrote(row, c->cursor.next);
	c->row = row;
	c->had = had > last + 1 ? had : 0;
}

static struct client *find_session(const struct desk *d, const char *session_id)
{
	if (!session_id || !*session_id)
		return NULL;
	LIST_EACH (at, &d->clients) {
		struct client *c = client_of(at);
		if (!c->closing && strcmp(c->session_id, session_id) == 0)
			return c;
	}
	return NULL;
}

/* The greeting bears the number of what comes next, so that it never counts as undelivered alone.
 */
static void greet(struct client *c)
{
	if (!desk_is_busy(c->desk))
		return;
	AUTO(jmsg_unrefp) struct jmsg *m = notice_status_message(c->desk, "busy", NULL);
	if (m)
		c->first = entry_new(m, c->cursor.next, c->number);
}

static void replace(struct client *c)
{
	struct client_socket old = c->socket;
	go_back(c, old.undelivered ? old.undelivered(old.data) : 0);
	c->attached = false;
	log_info(&c->desk->log, "client_replaced client=%llu", (unsigned long long)c->number);
	old.on_replaced(old.data);
}

int client_attach(struct desk *d, const char *session_id, const struct client_socket *socket,
	struct client **ret, struct err *err)
{
	if (d->dead || d->ending)
		return err_set(err, E_DEAD, "the kernel is dead: %s", d->reason);
	if (session_id && strlen(session_id) >= JMSG_ID_MAX)
		return err_set(err, E_INVALID, "session_id is longer than %d bytes", JMSG_ID_MAX);
	struct client *c = find_session(d, session_id);
	if (c && c->attached)
		replace(c);
	if (!c)
		c = client_new(d, session_id);
	c->socket = *socket;
	c->attached = true;
	c->old = false;
	c->told = false;
	greet(c);
	timer_start(d->gw->clock, &c->tell_timer, 0);
	log_info(&d->log, "client_attached client=%llu", (unsigned long long)c->number);
	*ret = c;
	return 0;
}

void clients_drop_gone(struct desk *d, unsigned keep)
{
	unsigned n = 0;
	LIST_EACH (at, &d->clients)
		n += client_of(at)->attached ? 0 : 1;
	LIST_EACH_SAFE (at, &d->clients) {
		if (n <= keep)
			return;
		if (client_of(at)->attached)
			continue;
		client_free(client_of(at));
		n--;
	}
}

void client_detach(struct client *c, uint64_t first_undelivered)
{
	struct desk *d = c->desk;
	assert(c->attached);
	timer_stop(d->gw->clock, &c->tell_timer);
	c->attached = false;
	log_info(&d->log, "client_gone client=%llu", (unsigned long long)c->number);
	if (c->keeps && !d->ending && !d->dead) {
		go_back(c, first_undelivered);
		if (c->row)
			live_client_wrote(c->row, c->cursor.next);
		cursor_done(&c->cursor);
		c->closing = false;
		list_remove(&c->link);
		list_append(&d->clients, &c->link);
		clients_drop_gone(d, GONE_MAX);
	} else {
		client_free(c);
	}
	desk_release(d);
}

int client_receive(struct client *c, struct jmsg *m, struct err *err)
{
	struct desk *d = c->desk;
	if (c->closing || d->dead || d->ending)
		return 0; /* it was told; the close is on its way */
	return relay_from_client(d, c->number, m, err);
}

static bool is_for(const struct client *c, const struct entry *e)
{
	if (c->had > 0 && past_had(c->desk->past, e->number, c->had))
		return false;
	return e->to == JOURNAL_TO_ALL || e->to == c->number;
}

/* The cursor stands behind the gap; what was pulled from there is pulled again. */
static void tell_missed(struct client *c, uint64_t missed, struct entry *then)
{
	struct desk *d = c->desk;
	if (then)
		cursor_seek(&c->cursor, then->number);
	entry_unref(then);
	uint64_t to = c->cursor.next;
	d->kernels->count.missed += missed;
	if (!gap_open(&c->gap, d, c->number, to - missed, to))
		log_error(&d->log, "gap_not_told missed=%llu error=\"out of memory\"",
			(unsigned long long)missed);
}

static bool pulled_ahead(const struct client *c)
{
	return c->first || !gap_is_told(&c->gap);
}

/* 1: the cursor's next entry that is for this client; 0: none, or a gap comes first. */
static int read_on(struct client *c, struct entry **ret)
{
	for (;;) {
		uint64_t missed = 0;
		struct entry *e = NULL;
		int rc = cursor_next(&c->cursor, &missed, &e);
		if (missed > 0) {
			tell_missed(c, missed, e);
			return 0;
		}
		if (rc == 0)
			return 0;
		if (is_for(c, e)) {
			*ret = e;
			return 1;
		}
		entry_unref(e);
	}
}

static int pull(struct client *c, struct entry **ret)
{
	do {
		*ret = c->first ? TAKE(c->first) : gap_take(&c->gap);
		if (*ret || read_on(c, ret) == 1)
			return 1;
	} while (pulled_ahead(c));
	c->told = false;
	return 0;
}

/* Takes in what follows e as far as it can; the one that does not fit waits in first. */
static struct entry *merge(struct client *c, struct entry *e)
{
	struct merge g;
	uint64_t next_number = c->cursor.next;
	if (pulled_ahead(c) || !merge_begin(&g, e))
		return e;
	for (struct entry *next; !pulled_ahead(c) && read_on(c, &next) == 1;) {
		if (merge_add(&g, next))
			entry_unref(next);
		else
			c->first = next;
	}
	struct entry *whole = merge_end(&g);
	if (!whole) { /* out of memory: one by one then */
		go_back(c, next_number);
		return e;
	}
	entry_unref(e);
	return whole;
}

int client_next(struct client *c, struct entry **ret)
{
	struct entry *e;
	int rc = pull(c, &e);
	if (rc != 1)
		return rc;
	if (journal_next(c->desk->journal) - c->cursor.next > MERGE_BEHIND)
		e = merge(c, e);
	*ret = e;
	return 1;
}

struct mmsghdr *client_writes(struct client *c, uint64_t unsent, size_t block)
{
	return c->row ? live_client_writes(c->row, stands_at(c, unsent), block) : NULL;
}

void client_wrote(struct client *c, uint64_t unsent)
{
	if (c->row)
		live_client_wrote(c->row, stands_at(c, unsent));
}

bool client_waits(const struct client *c)
{
	return pulled_ahead(c) || c->cursor.next < journal_next(c->desk->journal);
}

uint64_t client_number(const struct client *c)
{
	return c->number;
}

const char *client_session_id(const struct client *c)
{
	return c->session_id;
}

void clients_tell(struct desk *d, uint64_t to)
{
	LIST_EACH_SAFE (at, &d->clients) {
		struct client *c = client_of(at);
		if (to == JOURNAL_TO_ALL || to == c->number)
			tell(c);
	}
}

void clients_close(struct desk *d, uint64_t to, unsigned code, const char *reason)
{
	LIST_EACH_SAFE (at, &d->clients) {
		struct client *c = client_of(at);
		if (!c->attached || c->closing || (to != JOURNAL_TO_ALL && to != c->number))
			continue;
		c->closing = true;
		c->socket.on_close(c->socket.data, code, reason);
	}
}

size_t clients_attached(const struct desk *d)
{
	size_t n = 0;
	LIST_EACH (at, &d->clients)
		n += client_of(at)->attached ? 1 : 0;
	return n;
}

bool clients_mark_old(struct desk *d)
{
	size_t n = 0;
	LIST_EACH (at, &d->clients) {
		client_of(at)->old = client_of(at)->attached;
		n += client_of(at)->attached ? 1 : 0;
	}
	return n > 1;
}

uint64_t clients_take_old(struct desk *d)
{
	LIST_EACH (at, &d->clients) {
		struct client *c = client_of(at);
		if (!c->old || !c->attached || c->closing)
			continue;
		c->old = false;
		return c->number;
	}
	return JOURNAL_TO_NOBODY;
}

uint64_t clients_by_session(const struct desk *d, const char *session_id)
{
	const struct client *c = find_session(d, session_id);
	return c ? c->number : JOURNAL_TO_NOBODY;
}

void clients_show(const struct desk *d, struct cJSON *rows)
{
	LIST_EACH (at, &d->clients) {
		const struct client *c = client_of(at);
		cJSON *row = cJSON_CreateObject();
		cJSON_AddStringToObject(row, "kernel", d->id);
		cJSON_AddStringToObject(row, "session_id", c->session_id);
		cJSON_AddNumberToObject(row, "number", (double)c->number);
		cJSON_AddBoolToObject(row, "attached", c->attached);
		cJSON_AddNumberToObject(row, "next", (double)c->cursor.next);
		cJSON_AddNumberToObject(
			row, "behind", (double)(journal_next(d->journal) - c->cursor.next));
		cJSON_AddItemToArray(rows, row);
	}
}
