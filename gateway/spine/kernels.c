#include "gateway/spine/kernels.h"

#include <assert.h>
#include <cjson/cJSON.h>
#include <ctype.h>
#include <limits.h>
#include <malloc.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "gateway/base/buf.h"
#include "gateway/spine/branches.h"
#include "gateway/spine/desk.h"
#include "gateway/spine/janitor.h"
#include "gateway/spine/survive.h"

/* Each larger block is a mapping of its own and leaves with its message. Left to itself glibc moves
 * this bound up to the largest block that was ever freed, and a flood of large messages then stays
 * in the heap below the few that are kept. */
#define LARGE_BYTES (256 << 10)
#define NAMES_MAX   320u  /* what fits into an error beside the rest */
#define WAITERS_MAX 1000u /* for a place */

static struct desk *desk_of(struct list *at)
{
	return CONTAINER_OF(at, struct desk, link);
}

static void end_if_last(struct kernels *ks)
{
	void (*cb)(void *) = ks->ended;
	if (!cb || ks->n_alive > 0 || !pool_is_empty(ks->pool))
		return;
	ks->ended = NULL;
	cb(ks->ended_data);
}

static void on_pool_emptied(void *data)
{
	end_if_last(data);
}

size_t kernels_places(const struct kernels *ks)
{
	const struct config *c = &ks->gw->config;
	return (size_t)(c->max_kernels < c->pool_ceiling ? c->max_kernels : c->pool_ceiling);
}

static bool has_place(void *data)
{
	const struct kernels *ks = data;
	return ks->n_alive < kernels_places(ks);
}

static void on_end_timer(struct timer *t)
{
	end_if_last(CONTAINER_OF(t, struct kernels, end_timer));
}

void kernels_watch(struct kernels *ks, const struct kernels_watch *watch)
{
	ks->watch = *watch;
}

int kernels_open(struct gateway *gw, struct kernels **ret, struct err *err)
{
	char journals[PATH_MAX], rows[PATH_MAX];
	int n = snprintf(journals, sizeof journals, "%s/journals", gw->config.data_dir);
	if (n < 0 || (size_t)n >= sizeof journals)
		return err_set(err, E_INVALID, "data_dir is too long");
	(void)mkdir(journals, 0700); /* the first write tells if it is not there */
	n = snprintf(rows, sizeof rows, "%s/kernels", gw->config.data_dir);
	if (n < 0 || (size_t)n >= sizeof rows)
		return err_set(err, E_INVALID, "data_dir is too long");
	(void)mkdir(rows, 0700);		      /* likewise */
	(void)mallopt(M_MMAP_THRESHOLD, LARGE_BYTES); /* if it is refused, only memory is lost */
	struct kernels *ks = xcalloc(1, sizeof *ks);
	ks->gw = gw;
	list_init(&ks->desks);
	list_init(&ks->unlisted);
	list_init(&ks->branchings);
	timer_init(&ks->end_timer, on_end_timer);
	ks->pool = pool_new(gw, &ks->n_alive);
	waiting_init(&ks->waiting, gw->clock, has_place, ks);
	janitor_open(ks);
	*ret = ks;
	return 0;
}

void kernels_begin(struct kernels *ks)
{
	pool_begin(ks->pool);
}

static void begin_end(struct kernels *ks, void (*cb)(void *data), void *data)
{
	assert(!ks->ended);
	janitor_close(ks);
	ks->ended = cb;
	ks->ended_data = data;
	waiting_end(&ks->waiting);
	branches_end(ks);
	pool_end(ks->pool, on_pool_emptied, ks);
}

void kernels_end_all(struct kernels *ks, void (*cb)(void *data), void *data)
{
	begin_end(ks, cb, data);
	while (!list_empty(&ks->desks))
		desk_end(desk_of(ks->desks.next), "The gateway is ending.", NULL, NULL);
	timer_start(ks->gw->clock, &ks->end_timer, 0); /* where there was none to wait for */
}

void kernels_leave_all(struct kernels *ks, void (*cb)(void *data), void *data)
{
	begin_end(ks, cb, data);
	while (!list_empty(&ks->desks))
		survive_leave(desk_of(ks->desks.next));
	timer_start(ks->gw->clock, &ks->end_timer, 0); /* where there was none to wait for */
}

void kernels_free(struct kernels *ks)
{
	assert(!ks || ks->n_alive == 0);
	if (!ks)
		return;
	janitor_close(ks);
	timer_stop(ks->gw->clock, &ks->end_timer);
	waiting_end(&ks->waiting);
	pool_free(ks->pool);
	free(ks);
}

void kernels_list_desk(struct desk *d)
{
	struct kernels *ks = d->kernels;
	HASH_ADD_STR(ks->by_id, id, d);
	list_append(&ks->desks, &d->link);
}

void kernels_unlist(struct desk *d)
{
	HASH_DEL(d->kernels->by_id, d);
	list_remove(&d->link);
	list_append(&d->kernels->unlisted, &d->link);
}

static bool is_on(const struct desk *d, const char *history)
{
	return strcmp(d->id, history) == 0 || strcmp(scribe_history(d), history) == 0;
}

static bool holds_history(
	const struct list *desks, const struct owner *owner, const char *history, const char *but)
{
	LIST_EACH (at, desks) {
		const struct desk *d = CONTAINER_OF(at, struct desk, link);
		if (d->owner == owner && is_on(d, history) && !(but && strcmp(d->id, but) == 0))
			return true;
	}
	return false;
}

bool kernels_hold_history(
	const struct kernels *ks, const struct owner *owner, const char *history, const char *but)
{
	return holds_history(&ks->desks, owner, history, but) ||
	       holds_history(&ks->unlisted, owner, history, but);
}

void kernels_freed(struct kernels *ks)
{
	ks->n_alive--;
	waiting_serve(&ks->waiting);
	if (!ks->ended)
		pool_places_changed(ks->pool);
	end_if_last(ks);
}

bool kernels_is_id(const char *text)
{
	for (size_t i = 0; i < UUID_SIZE - 1; i++) {
		bool dash = i == 8 || i == 13 || i == 18 || i == 23;
		if (dash ? text[i] != '-' : !isxdigit((unsigned char)text[i]))
			return false;
	}
	return text[UUID_SIZE - 1] == '\0';
}

static int pick_id(struct kernels *ks, const struct kernels_start *start, char ret_id[UUID_SIZE],
	struct err *err)
{
	struct desk *there;
	const char *id = start->kernel_id;
	if (!id)
		id = cJSON_GetStringValue(
			cJSON_GetObjectItemCaseSensitive(start->env, "KERNEL_ID"));
	if (!id) {
		crypto_uuid(ret_id);
		return 0;
	}
	if (!kernels_is_id(id))
		return err_set(err, E_INVALID, "a kernel id must be a uuid, not '%.64s'", id);
	HASH_FIND_STR(ks->by_id, id, there);
	if (there)
		return err_set(err, E_CONFLICT, "a kernel with id %s exists already", id);
	(void)copy_text(ret_id, UUID_SIZE, id, strlen(id)); /* was measured */
	return 0;
}

int kernels_no_spec(const struct kernels *ks, int code, const char *name, struct err *err)
{
	AUTO(buf_done) struct buf names;
	buf_init(&names, NAMES_MAX);
	LIST_EACH (at, bridge_specs(ks->gw->bridge)) {
		const struct kernelspec *spec = CONTAINER_OF(at, struct kernelspec, link);
		if (buf_addf(&names, "%s%s", names.len > 0 ? ", " : "", spec->name) != 0)
			break; /* the first of them must do */
	}
	if (names.len == 0)
		return err_set(err, code,
			"no such kernelspec: '%.100s'; there is none at all, see `coppice doctor`",
			name ? name : "");
	return err_set(err, code, "no such kernelspec: '%.100s'; there are: %s%s", name ? name : "",
		(const char *)names.data, names.failed ? ", ..." : "");
}

static bool is_full(const struct kernels *ks)
{
	bool others = !list_empty(&ks->waiting.waiters) && !ks->waiting.admits;
	return ks->ended || others || ks->n_alive >= kernels_places(ks);
}

bool kernels_may_wait(const struct kernels *ks)
{
	return is_full(ks) && !ks->ended && ks->gw->config.pool_wait > 0 &&
	       ks->waiting.n < WAITERS_MAX;
}

void kernels_await_place(
	struct kernels *ks, void (*cb)(void *data, const struct err *err), void *data)
{
	waiting_add(&ks->waiting, ks->gw->config.pool_wait, cb, data);
}

int kernels_reserve(struct kernels *ks, struct err *err)
{
	if (is_full(ks))
		return err_set(
			err, E_CAPACITY, "the limit of %zu kernels is reached", kernels_places(ks));
	ks->n_alive++;
	return 0;
}

int kernels_start(
	struct kernels *ks, const struct kernels_start *start, struct desk **ret, struct err *err)
{
	char id[UUID_SIZE];
	struct desk *d;
	const struct kernelspec *spec = bridge_spec(ks->gw->bridge, start->spec_name);
	if (!spec)
		return kernels_no_spec(ks, E_NOT_FOUND, start->spec_name, err);
	int rc = pick_id(ks, start, id, err);
	if (rc == 0)
		rc = scribe_check_name(cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(
					       start->env, HISTORY_VARIABLE)),
			err);
	if (rc != 0)
		return rc;
	rc = kernels_reserve(ks, err);
	if (rc != 0)
		return rc;
	rc = desk_new(ks, start, id, spec, &d, err);
	if (rc != 0)
		return rc;
	kernels_list_desk(d);
	pool_places_changed(ks->pool);
	*ret = d;
	return 0;
}

int kernels_find(struct kernels *ks, const struct owner *owner, const char *id, struct desk **ret,
	struct err *err)
{
	struct desk *d;
	HASH_FIND_STR(ks->by_id, id, d);
	if (!d || d->owner != owner)
		return err_set(err, E_NOT_FOUND, "Kernel does not exist: %.64s", id);
	*ret = d;
	return 0;
}

struct cJSON *kernels_list(const struct kernels *ks, const struct owner *owner)
{
	cJSON *list = cJSON_CreateArray();
	LIST_EACH (at, &ks->desks) {
		if (desk_of(at)->owner == owner)
			cJSON_AddItemToArray(list, desk_model(desk_of(at)));
	}
	return list;
}

size_t kernels_count(const struct kernels *ks, const struct owner *owner)
{
	size_t n = 0;
	LIST_EACH (at, &ks->desks)
		n += !owner || desk_of(at)->owner == owner ? 1 : 0;
	return n;
}

size_t kernels_connections(const struct kernels *ks, const struct owner *owner)
{
	size_t n = 0;
	LIST_EACH (at, &ks->desks) {
		if (!owner || desk_of(at)->owner == owner)
			n += clients_attached(desk_of(at));
	}
	return n;
}

int64_t kernels_last_activity_us(const struct kernels *ks, const struct owner *owner)
{
	int64_t last_us = ks->gw->started_us;
	LIST_EACH (at, &ks->desks) {
		const struct desk *d = desk_of(at);
		if ((!owner || d->owner == owner) && d->last_activity_us > last_us)
			last_us = d->last_activity_us;
	}
	return last_us;
}
