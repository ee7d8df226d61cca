#include "gateway/spine/pool.h"

#include <assert.h>
#include <cjson/cJSON.h>
#include <string.h>

#define ASKED_MAX    256u   /* moments of demand that are remembered */
#define STOCK_MS     10000u /* demand of so long is met from stock: then there are new ones */
#define LOOK_MS	     10000u
#define CALM_MS	     250u /* after a hand-over: the owner's first request has the processors */
#define RETRY_MS     500u
#define RETRY_SHIFTS 6u	    /* 32 s between tries in the end */
#define STABLE_MS    60000u /* a ready one that lived so long was no failure */

struct pool_kernel {
	struct list link;
	struct pool *pool;
	struct kernel *kernel;
	bool ready;
	uint64_t since_ms; /* in its present state */
};

struct pool {
	struct gateway *gw;
	const size_t *n_owned;
	const struct kernelspec *spec; /* NULL: there is no pool */
	struct list ready, starting;   /* of struct pool_kernel, oldest first */
	size_t n_ready, n_starting, n_ending;
	uint64_t asked_ms[ASKED_MAX]; /* a ring: the last is at n_asked - 1 */
	size_t n_asked;
	unsigned failures; /* in a row */
	char trouble[256]; /* why the last one failed; "" if it did not */
	uint64_t calm_until_ms;
	struct timer turn, look, retry;
	uint64_t started, taken, missed, idled, failed;
	bool ended;
	void (*emptied)(void *data);
	void *emptied_data;
};

static struct pool_kernel *first(const struct list *l)
{
	return list_empty(l) ? NULL : CONTAINER_OF(l->next, struct pool_kernel, link);
}

static struct pool_kernel *last(const struct list *l)
{
	return list_empty(l) ? NULL : CONTAINER_OF(l->prev, struct pool_kernel, link);
}

static void turn_later(struct pool *p)
{
	if (!timer_running(&p->turn))
		timer_start(p->gw->clock, &p->turn, 0);
}

/* ---- how many ---- */

/* The most that were asked for within STOCK_MS, of late. */
static size_t peak(const struct pool *p)
{
	uint64_t now_ms = clock_now_ms(p->gw->clock), age_ms = (uint64_t)p->gw->config.pool_demand;
	uint64_t since_ms = now_ms > age_ms ? now_ms - age_ms : 0;
	size_t from = p->n_asked > ASKED_MAX ? p->n_asked - ASKED_MAX : 0, most = 0;
	for (size_t i = from; i < p->n_asked; i++) {
		uint64_t at_ms = p->asked_ms[i % ASKED_MAX];
		while (p->asked_ms[from % ASKED_MAX] < since_ms ||
			p->asked_ms[from % ASKED_MAX] + STOCK_MS < at_ms) {
			if (from == i)
				break;
			from++;
		}
		if (at_ms >= since_ms && i - from + 1 > most)
			most = i - from + 1;
	}
	return most;
}

static size_t room(const struct pool *p)
{
	size_t ceiling = (size_t)p->gw->config.pool_ceiling;
	return ceiling > *p->n_owned ? ceiling - *p->n_owned : 0;
}

static size_t wanted(const struct pool *p)
{
	const struct config *c = &p->gw->config;
	size_t n = peak(p), floor = (size_t)c->pool_floor, free_places = room(p);
	if (!p->spec || p->ended)
		return 0;
	if (n > (size_t)c->pool_max)
		n = (size_t)c->pool_max;
	if (n < floor)
		n = floor;
	return n < free_places ? n : free_places;
}

static void note_demand(struct pool *p)
{
	p->asked_ms[p->n_asked++ % ASKED_MAX] = clock_now_ms(p->gw->clock);
}

/* ---- its kernels ---- */

static void leave(struct pool_kernel *pk)
{
	struct pool *p = pk->pool;
	list_remove(&pk->link);
	if (pk->ready)
		p->n_ready--;
	else
		p->n_starting--;
	free(pk);
}

static void on_kernel_ended(void *data)
{
	struct pool *p = data;
	p->n_ending--;
	turn_later(p); /* not at once: the kernel itself rests one turn */
}

void pool_end_kernel(struct pool *p, struct kernel *k)
{
	p->n_ending++;
	kernel_end(k, on_kernel_ended, p);
}

static void end_one(struct pool_kernel *pk)
{
	struct pool *p = pk->pool;
	struct kernel *k = pk->kernel;
	leave(pk);
	pool_end_kernel(p, k);
}

static void note_failure(struct pool *p, const char *why)
{
	unsigned shift = p->failures < RETRY_SHIFTS ? p->failures : RETRY_SHIFTS;
	p->failures++;
	p->failed++;
	(void)copy_text(p->trouble, sizeof p->trouble, why, strlen(why)); /* may be cut */
	log_warn(&p->gw->log, "pool_kernel_failed in_a_row=%u reason=\"%s\"", p->failures, why);
	timer_start(p->gw->clock, &p->retry, RETRY_MS << shift);
}

static void on_ready(void *data, const struct jmsg *reply)
{
	struct pool_kernel *pk = data;
	struct pool *p = pk->pool;
	(void)reply; /* the bridge keeps it for the owner to come */
	list_remove(&pk->link);
	list_append(&p->ready, &pk->link);
	p->n_starting--;
	p->n_ready++;
	pk->ready = true;
	pk->since_ms = clock_now_ms(p->gw->clock);
	p->trouble[0] = '\0';
	turn_later(p);
}

static void on_death(void *data, const struct kernel_death *death)
{
	struct pool_kernel *pk = data;
	struct pool *p = pk->pool;
	if (pk->ready && clock_now_ms(p->gw->clock) - pk->since_ms >= STABLE_MS)
		p->failures = 0;
	note_failure(p, death->text);
	end_one(pk);
}

static void on_message(void *data, struct jmsg *m)
{
	(void)data, (void)m; /* it has no owner who could have asked for it */
}

static void on_turn(void *data)
{
	(void)data;
}

static void on_notice(void *data, const char *text)
{
	const struct pool_kernel *pk = data;
	log_warn(&pk->pool->gw->log, "pool_kernel_notice text=\"%s\"", text);
}

static bool start_one(struct pool *p)
{
	struct pool_kernel *pk = xcalloc(1, sizeof *pk);
	const struct kernel_start start = {.spec = p->spec};
	const struct kernel_watcher watcher = {.on_ready = on_ready,
		.on_message = on_message,
		.on_turn = on_turn,
		.on_death = on_death,
		.on_notice = on_notice,
		.data = pk};
	struct err err;
	pk->pool = p;
	pk->since_ms = clock_now_ms(p->gw->clock);
	if (kernel_start(p->gw->bridge, &start, &watcher, &pk->kernel, &err) != 0) {
		free(pk);
		note_failure(p, err.text);
		return false;
	}
	list_append(&p->starting, &pk->link);
	p->n_starting++;
	p->started++;
	return true;
}

/* ---- what is done about it ---- */

static void fill(struct pool *p)
{
	while (p->n_ready + p->n_starting < wanted(p) && !timer_running(&p->retry) &&
		p->n_starting < (size_t)p->gw->config.pool_starts)
		if (!start_one(p))
			return;
}

/* A place that somebody else takes is given up at once. */
static void make_room(struct pool *p)
{
	while (p->n_ready + p->n_starting > room(p)) {
		struct pool_kernel *pk = last(&p->starting);
		end_one(pk ? pk : first(&p->ready));
	}
}

static void end_idle(struct pool *p)
{
	uint64_t now_ms = clock_now_ms(p->gw->clock);
	for (struct pool_kernel *pk; (pk = first(&p->ready));) {
		if (p->n_ready + p->n_starting <= wanted(p) ||
			now_ms - pk->since_ms < (uint64_t)p->gw->config.pool_idle)
			return;
		log_info(&p->gw->log, "pool_kernel_idle ready=%zu", p->n_ready);
		p->idled++;
		end_one(pk);
	}
}

static void tell_if_empty(struct pool *p)
{
	void (*emptied)(void *data) = p->emptied;
	if (!emptied || !pool_is_empty(p))
		return;
	p->emptied = NULL;
	emptied(p->emptied_data);
}

static void turn(struct pool *p)
{
	if (p->ended) {
		tell_if_empty(p);
		return;
	}
	uint64_t now_ms = clock_now_ms(p->gw->clock);
	make_room(p);
	end_idle(p);
	if (now_ms < p->calm_until_ms)
		timer_start(p->gw->clock, &p->turn, p->calm_until_ms - now_ms);
	else
		fill(p);
	if (p->n_ready + p->n_starting > (size_t)p->gw->config.pool_floor)
		timer_start(p->gw->clock, &p->look, LOOK_MS);
}

static void on_turn_timer(struct timer *t)
{
	turn(CONTAINER_OF(t, struct pool, turn));
}

static void on_look(struct timer *t)
{
	turn(CONTAINER_OF(t, struct pool, look));
}

static void on_retry(struct timer *t)
{
	turn(CONTAINER_OF(t, struct pool, retry));
}

/* ---- its life ---- */

struct pool *pool_new(struct gateway *gw, const size_t *n_owned)
{
	struct pool *p = xcalloc(1, sizeof *p);
	p->gw = gw;
	p->n_owned = n_owned;
	list_init(&p->ready);
	list_init(&p->starting);
	timer_init(&p->turn, on_turn_timer);
	timer_init(&p->look, on_look);
	timer_init(&p->retry, on_retry);
	return p;
}

void pool_begin(struct pool *p)
{
	const struct kernelspec *spec = bridge_spec(p->gw->bridge, NULL);
	if (p->gw->config.pool_floor == 0 || !spec || !bridge_fits(p->gw->bridge, spec, NULL))
		return;
	p->spec = spec;
	log_info(&p->gw->log, "pool_begin spec=%s floor=%lld", spec->name,
		(long long)p->gw->config.pool_floor);
	turn_later(p);
}

void pool_places_changed(struct pool *p)
{
	if (p->spec && !p->ended)
		turn_later(p);
}

void pool_end(struct pool *p, void (*emptied)(void *data), void *data)
{
	assert(!p->ended);
	p->ended = true;
	p->emptied = emptied;
	p->emptied_data = data;
	timer_stop(p->gw->clock, &p->look);
	timer_stop(p->gw->clock, &p->retry);
	while (!list_empty(&p->ready))
		end_one(first(&p->ready));
	while (!list_empty(&p->starting))
		end_one(first(&p->starting));
	turn_later(p);
}

bool pool_is_empty(const struct pool *p)
{
	return p->n_ready + p->n_starting + p->n_ending == 0;
}

void pool_free(struct pool *p)
{
	if (!p)
		return;
	assert(pool_is_empty(p));
	timer_stop(p->gw->clock, &p->turn);
	timer_stop(p->gw->clock, &p->look);
	timer_stop(p->gw->clock, &p->retry);
	free(p);
}

/* ---- taking one ---- */

static bool take(struct pool_kernel *pk, const struct kernel_start *start,
	const struct kernel_watcher *watcher, struct kernel **ret, struct err *err)
{
	struct pool *p = pk->pool;
	struct kernel *k = pk->kernel;
	if (kernel_hand_over(k, start, watcher, err) != 0)
		return false; /* a dead one: its watcher is about to hear of it */
	log_info(&p->gw->log, "pool_take kernel=%s ready=%d left=%zu", start->id, pk->ready,
		p->n_ready + p->n_starting - 1);
	leave(pk);
	p->taken++;
	p->failures = 0;
	uint64_t now_ms = clock_now_ms(p->gw->clock);
	if (now_ms >= p->calm_until_ms)
		p->calm_until_ms = now_ms + CALM_MS;
	turn_later(p);
	*ret = k;
	return true;
}

/* The newest of the ready ones, so that those too many grow old; of the others the one that was
 * begun first. */
bool pool_take(struct pool *p, const struct kernel_start *start,
	const struct kernel_watcher *watcher, struct kernel **ret)
{
	struct err err = {0};
	if (p->ended || !p->spec || start->spec != p->spec ||
		!bridge_fits(p->gw->bridge, start->spec, start->env))
		return false;
	note_demand(p);
	for (struct list *at = p->ready.prev; at != &p->ready && err.code != E_INVALID;
		at = at->prev)
		if (take(CONTAINER_OF(at, struct pool_kernel, link), start, watcher, ret, &err))
			return true;
	for (struct list *at = p->starting.next; at != &p->starting && err.code != E_INVALID;
		at = at->next)
		if (take(CONTAINER_OF(at, struct pool_kernel, link), start, watcher, ret, &err))
			return true;
	p->missed++;
	turn_later(p);
	return false;
}

/* ---- how it stands ---- */

void pool_figures(const struct pool *p, struct pool_figures *ret)
{
	*ret = (struct pool_figures){.ready = p->n_ready,
		.starting = p->n_starting,
		.ending = p->n_ending,
		.wanted = wanted(p),
		.started = p->started,
		.taken = p->taken,
		.missed = p->missed,
		.idled = p->idled,
		.failed = p->failed};
}

static void add_kernels(cJSON *rows, const struct list *list, uint64_t now_ms)
{
	LIST_EACH (at, list) {
		const struct pool_kernel *pk = CONTAINER_OF(at, struct pool_kernel, link);
		cJSON *row = kernel_report(pk->kernel);
		cJSON_AddBoolToObject(row, "ready", pk->ready);
		cJSON_AddNumberToObject(row, "age_ms", (double)(now_ms - pk->since_ms));
		cJSON_AddItemToArray(rows, row);
	}
}

struct cJSON *pool_show(const struct pool *p)
{
	uint64_t now_ms = clock_now_ms(p->gw->clock);
	cJSON *row = cJSON_CreateObject();
	cJSON_AddBoolToObject(row, "on", p->spec != NULL);
	cJSON_AddStringToObject(row, "spec", p->spec ? p->spec->name : "");
	cJSON_AddStringToObject(row, "trouble", p->trouble);
	cJSON_AddNumberToObject(row, "ready", (double)p->n_ready);
	cJSON_AddNumberToObject(row, "starting", (double)p->n_starting);
	cJSON_AddNumberToObject(row, "ending", (double)p->n_ending);
	cJSON_AddNumberToObject(row, "wanted", (double)wanted(p));
	cJSON_AddNumberToObject(row, "started", (double)p->started);
	cJSON_AddNumberToObject(row, "taken", (double)p->taken);
	cJSON_AddNumberToObject(row, "missed", (double)p->missed);
	cJSON_AddNumberToObject(row, "idled", (double)p->idled);
	cJSON_AddNumberToObject(row, "failed", (double)p->failed);
	cJSON *kernels = cJSON_AddArrayToObject(row, "kernels");
	add_kernels(kernels, &p->ready, now_ms);
	add_kernels(kernels, &p->starting, now_ms);
	return row;
}
