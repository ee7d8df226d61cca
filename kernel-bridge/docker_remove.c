/* How a slot ends: its container, its folder, its memory; and what an earlier gateway left. */
#include "kernel-bridge/docker_files.h"
#include "kernel-bridge/docker_line.h"

#include <cjson/cJSON.h>
#include <stdio.h>
#include <string.h>

#include "gateway/base/buf.h"
#include "kernel-bridge/docker_create.h"
#include "kernel-bridge/docker_foreign.h"
#include "kernel-bridge/docker_look.h"

#define GIVE_UP_MS   3000 /* the one who waits for a removal hears of it by then in any case */
#define RETRY_MS     200
#define RETRY_SHIFTS 5 /* 6.4 s between tries in the end */
#define REMOVE	     "?force=true&v=true"

static void delete_container(struct docker_slot *s);

void docker_slot_free(struct docker_slot *s)
{
	struct clock *clock = s->docker->env.clock;
	timer_stop(clock, &s->deadline);
	timer_stop(clock, &s->retry);
	docker_api_cancel(s->docker->api, s);
	docker_api_cancel(s->docker->api, &s->wait_tag);
	docker_slot_close_ctl(s);
	docker_lines_drop(s);
	docker_foreign_free(s);
	docker_look_drop(s);
	docker_files_drop(s);
	if (s->dir.name[0] && !s->left)
		run_slot_remove(&s->dir);
	slot_done(&s->base);
	free(s);
}

static void tell_removed(struct docker_slot *s)
{
	void (*removed)(void *data) = TAKE(s->removed);
	if (removed)
		removed(s->removed_data);
}

static void finish(struct docker_slot *s)
{
	/* Out of the list first: the callback may close the engine, which frees what is in it. */
	slot_done(&s->base);
	tell_removed(s);
	docker_slot_free(s);
}

static void on_give_up(struct timer *t)
{
	struct docker_slot *s = CONTAINER_OF(t, struct docker_slot, deadline);
	log_warn(&s->log, "removal_late container=%s", s->container);
	tell_removed(s);
}

static void on_retry(struct timer *t)
{
	struct docker_slot *s = CONTAINER_OF(t, struct docker_slot, retry);
	if (s->made)
		delete_container(s);
	else
		finish(s);
}

static void retry_later(struct docker_slot *s, const struct err *err)
{
	unsigned shift = s->tries < RETRY_SHIFTS ? s->tries : RETRY_SHIFTS;
	if (s->tries++ == 1)
		log_warn(&s->log, "removal_failed container=%s reason=%s", s->container, err->text);
	timer_start(s->docker->env.clock, &s->retry, (uint64_t)RETRY_MS << shift);
}

static void on_deleted(void *data, int status, const struct cJSON *json, const struct err *err)
{
	struct docker_slot *s = data;
	(void)json; /* has none */
	/* 409 means that another removal is under way: 404 says when it is done. */
	if (err && status != 404)
		retry_later(s, err);
	else
		finish(s);
}

static void delete_container(struct docker_slot *s)
{
	struct err err;
	if (docker_slot_call(s, "DELETE", REMOVE, NULL, on_deleted, &err) < 0)
		retry_later(s, &err);
}

void docker_slot_remove_now(struct docker_slot *s)
{
	if (s->made)
		delete_container(s);
	else
		timer_start(s->docker->env.clock, &s->retry, 0);
}

void docker_slot_remove(struct slot *slot, void (*cb)(void *data), void *data)
{
	struct docker_slot *s = docker_slot_of(slot);
	struct docker *d = s->docker;
	slot_move(slot, SLOT_ENDING);
	s->removed = cb;
	s->removed_data = data;
	s->tries = 0;
	timer_stop(d->env.clock, &s->deadline);
	timer_stop(d->env.clock, &s->retry);
	timer_init(&s->deadline, on_give_up);
	timer_init(&s->retry, on_retry);
	docker_slot_close_ctl(s);
	docker_lines_drop(s);
	docker_foreign_free(s);
	docker_api_cancel(d->api, &s->wait_tag);
	timer_start(d->env.clock, &s->deadline, GIVE_UP_MS);
	/* A create that is dropped may still make a container: its answer is waited for. */
	if (s->in_flight)
		return;
	docker_api_cancel(d->api, s);
	docker_slot_remove_now(s);
}

/* ---- a container that no slot has any more ---- */

struct docker_leftover {
	struct docker *docker;
	char container[DOCKER_NAME_SIZE];
	struct timer retry;
	unsigned tries;
	struct list link;
};

static void leftover_free(struct docker_leftover *l)
{
	timer_stop(l->docker->env.clock, &l->retry);
	list_remove(&l->link);
	free(l);
}

static void remove_leftover(struct docker_leftover *l);

static void on_leftover_retry(struct timer *t)
{
	remove_leftover(CONTAINER_OF(t, struct docker_leftover, retry));
}

static void leftover_later(struct docker_leftover *l)
{
	unsigned shift = l->tries < RETRY_SHIFTS ? l->tries++ : RETRY_SHIFTS;
	timer_start(l->docker->env.clock, &l->retry, (uint64_t)RETRY_MS << shift);
}

static void on_leftover_removed(
	void *data, int status, const struct cJSON *json, const struct err *err)
{
	(void)json; /* has none */
	if (err && status != 404)
		leftover_later(data);
	else
		leftover_free(data);
}

static void remove_leftover(struct docker_leftover *l)
{
	char path[DOCKER_PATH_MAX];
	(void)snprintf(path, sizeof(path), "/containers/%s" REMOVE, l->container); /* short */
	const struct docker_call call = {
		.method = "DELETE", .path = path, .done = on_leftover_removed, .data = l};
	if (docker_api_send(l->docker->api, &call, NULL) < 0)
		leftover_later(l);
}

void docker_container_remove(struct docker *d, const char *name)
{
	struct docker_leftover *l = xcalloc(1, sizeof(*l));
	l->docker = d;
	(void)copy_text(l->container, sizeof(l->container), name, strlen(name)); /* fits */
	timer_init(&l->retry, on_leftover_retry);
	list_append(&d->leftovers, &l->link);
	remove_leftover(l);
}

void docker_leftovers_drop(struct docker *d)
{
	LIST_EACH_SAFE (at, &d->leftovers) {
		struct docker_leftover *l = CONTAINER_OF(at, struct docker_leftover, link);
		docker_api_cancel(d->api, l);
		leftover_free(l);
	}
}

/* ---- what an earlier gateway left ---- */

struct sweep {
	struct docker *docker;
	unsigned pending;
	bool failed; /* the engine did not say or do it all: tried again */
	unsigned tries;
	struct timer begin;
	void (*cb)(void *data); /* NULL once it was told */
	void *data;
};

static bool is_alive(void *data, const char *name)
{
	const struct docker *d = data;
	LIST_EACH (at, &d->slots)
		if (strcmp(CONTAINER_OF(at, struct docker_slot, base.link)->dir.name, name) == 0)
			return true;
	return false;
}

/* The one who waits hears of the first try, whatever came of it: a gateway serves without an engine
 * too. A folder is kept as long as its container may live. */
static void sweep_end(struct sweep *w)
{
	struct docker *d = w->docker;
	void (*cb)(void *data) = TAKE(w->cb);
	void *data = w->data;
	if (w->failed) {
		unsigned shift = w->tries < RETRY_SHIFTS ? w->tries++ : RETRY_SHIFTS;
		timer_start(d->env.clock, &w->begin, (uint64_t)RETRY_MS << shift);
	} else {
		run_dir_sweep(&d->run, is_alive, d);
		free(TAKE(d->sweep));
	}
	if (cb)
		cb(data);
}

static void sweep_failed(struct sweep *w, const struct err *err)
{
	if (w->tries == 0)
		log_warn(&w->docker->log, "sweep_failed reason=%s", err->text);
	w->failed = true;
}

void docker_sweep_drop(struct docker *d)
{
	if (!d->sweep)
		return;
	timer_stop(d->env.clock, &d->sweep->begin);
	docker_api_cancel(d->api, d->sweep);
	free(TAKE(d->sweep));
}

static void on_swept(void *data, int status, const struct cJSON *json, const struct err *err)
{
	struct sweep *w = data;
	(void)json; /* has none */
	if (err && status != 404)
		sweep_failed(w, err);
	if (--w->pending == 0)
		sweep_end(w);
}

static void sweep_container(struct sweep *w, const cJSON *container)
{
	const cJSON *id = cJSON_GetObjectItemCaseSensitive(container, "Id");
	const cJSON *labels = cJSON_GetObjectItemCaseSensitive(container, "Labels");
	const cJSON *slot = cJSON_GetObjectItemCaseSensitive(labels, DOCKER_LABEL_SLOT);
	char path[DOCKER_PATH_MAX];
	if (!cJSON_IsString(id) || strlen(id->valuestring) > 128)
		return;
	if (cJSON_IsString(slot) && is_alive(w->docker, slot->valuestring))
		return;
	(void)snprintf(path, sizeof(path), "/containers/%s" REMOVE, id->valuestring); /* short */
	const struct docker_call call = {
		.method = "DELETE", .path = path, .done = on_swept, .data = w};
	struct err err;
	if (docker_api_send(w->docker->api, &call, &err) == 0)
		w->pending++;
	else
		sweep_failed(w, &err);
	log_info(&w->docker->log, "sweep container=%.12s", id->valuestring);
}

static void on_listed(void *data, int status, const struct cJSON *json, const struct err *err)
{
	struct sweep *w = data;
	const cJSON *container, *listed = err ? NULL : json;
	(void)status; /* err says it */
	if (err)
		sweep_failed(w, err);
	cJSON_ArrayForEach (container, listed)
		sweep_container(w, container);
	if (w->pending == 0)
		sweep_end(w);
}

static void add_escaped(struct buf *url, const char *text)
{
	for (const char *c = text; *c; c++)
		(void)buf_addf(
			url, "%%%02X", (unsigned)(unsigned char)*c); /* checked by sweep_list */
}

/* {"label":["coppice.run=PATH"]}, with every byte escaped: simple, and right for any path. */
static int sweep_list(struct sweep *w, struct err *err)
{
	AUTO(buf_done) struct buf filter, url;
	buf_init(&filter, DOCKER_PATH_MAX);
	buf_init(&url, DOCKER_PATH_MAX);
	char label[RUN_SOCKET_PATH_MAX + sizeof(DOCKER_LABEL_RUN "=")];
	(void)snprintf(label, sizeof(label), DOCKER_LABEL_RUN "=%s", w->docker->run.path);
	/* Checked together below. */
	(void)buf_add_text(&filter, "{\"label\":[");
	(void)buf_add_json_string(&filter, label, strlen(label));
	(void)buf_add_text(&filter, "]}");
	(void)buf_add_text(&url, "/containers/json?all=true&filters=");
	if (filter.data)
		add_escaped(&url, (const char *)filter.data);
	int rc = buf_check(&filter, "filter", err);
	if (rc == 0)
		rc = buf_check(&url, "filter", err);
	const struct docker_call call = {
		.method = "GET", .path = (const char *)url.data, .done = on_listed, .data = w};
	return rc < 0 ? rc : docker_api_send(w->docker->api, &call, err);
}

static void on_sweep_begin(struct timer *t)
{
	struct sweep *w = CONTAINER_OF(t, struct sweep, begin);
	struct err err;
	w->failed = false;
	if (sweep_list(w, &err) < 0) {
		sweep_failed(w, &err);
		sweep_end(w);
	}
}

void docker_sweep(struct engine *e, void (*cb)(void *data), void *data)
{
	struct docker *d = CONTAINER_OF(e, struct docker, engine);
	struct sweep *w = xcalloc(1, sizeof(*w));
	docker_sweep_drop(d);
	w->docker = d;
	w->cb = cb;
	w->data = data;
	d->sweep = w;
	timer_init(&w->begin, on_sweep_begin);
	/* Begun from the loop, so that no failure calls back inside this call. */
	timer_start(d->env.clock, &w->begin, 0);
}
