#include "gateway/spine/telling.h"

#include <cjson/cJSON.h>
#include <string.h>

#include "gateway/spine/desk.h"
#include "gateway/spine/told_folder.h"

#define PORTION_BYTES (4u << 20)
#define ALL_BYTES     (HISTORY_CONTENTS_WAIT / 4 * 3) /* of all kernels */
#define AGAIN_MS      20u

static void on_again(struct timer *t);

struct telling *telling_new(
	struct desk *d, const char *msg_id, const char *history, struct cJSON *change)
{
	struct telling *t = xcalloc(1, sizeof *t);
	t->desk = d;
	t->msg_id = xstrdup(msg_id);
	t->history = history && *history ? xstrdup(history) : NULL;
	t->change = change;
	timer_init(&t->again, on_again);
	return t;
}

static void telling_free(struct telling *t)
{
	if (t->desk || t->expects > 0)
		return; /* its last callback does */
	free(t->msg_id);
	free(t->history);
	free(t->names);
	cJSON_Delete(t->change);
	free(t);
}

static void give_back(struct telling *t)
{
	t->desk->kernels->files_bytes -= t->portion_bytes;
	t->portion_bytes = 0;
}

void telling_drop(struct telling *t)
{
	if (!t)
		return;
	give_back(t);
	timer_stop(t->desk->gw->clock, &t->again);
	t->desk = NULL;
	telling_free(t);
}

static struct history_whose whose(const struct telling *t)
{
	return (struct history_whose){
		.history_id = t->desk->id, .wanted = t->history, .owner = t->desk->owner->name};
}

static void fail(struct telling *t, const struct err *err)
{
	log_warn(&t->desk->log, "files_not_told msg_id=%s error=\"%s\"", t->msg_id, err->text);
	files_told(t, err);
}

/* Among those that were asked for. What is not to be had is lost; history sees it as it records. */
static void whole(struct telling *t)
{
	if (t->n_gone > 0)
		log_warn(&t->desk->log, "contents_gone msg_id=%s n=%zu", t->msg_id, t->n_gone);
	t->is_whole = true;
	files_told(t, NULL);
}

static size_t next_portion(const struct telling *t, const char **names, size_t *ret_bytes)
{
	size_t n = 0, bytes = 0;
	while (n < FILES_WANT_MAX && t->asked + n < t->n) {
		const struct content_name *c = &t->names[t->asked + n];
		if (n > 0 && bytes + c->bytes > PORTION_BYTES)
			break;
		bytes += c->bytes;
		names[n++] = c->name;
	}
	*ret_bytes = bytes;
	return n;
}

/* An empty list is an answer too: the container forgets what it kept for us. */
static void want(struct telling *t)
{
	const char *names[FILES_WANT_MAX];
	struct desk *d = t->desk;
	struct err err;
	size_t bytes, n = next_portion(t, names, &bytes);
	if (d->kernels->files_bytes > 0 && d->kernels->files_bytes + bytes > ALL_BYTES) {
		timer_start(d->gw->clock, &t->again, AGAIN_MS);
		return;
	}
	const struct kernel_want wanted = {
		.msg_id = t->msg_id, .names = names, .n = n, .last = t->asked + n == t->n};
	if (kernel_want(d->kernel, &wanted, &err) != 0) {
		fail(t, &err);
		return;
	}
	t->asked += n;
	t->portion_bytes = bytes;
	d->kernels->files_bytes += bytes;
	if (t->n == 0)
		whole(t);
}

static void on_again(struct timer *timer)
{
	want(CONTAINER_OF(timer, struct telling, again));
}

static void go_on(struct telling *t)
{
	if (t->back < t->asked || t->n_keeping > 0)
		return;
	give_back(t);
	if (t->asked == t->n)
		whole(t);
	else
		want(t);
}

static void on_kept(void *data, int status, const struct err *err)
{
	struct telling *t = data;
	t->expects--;
	if (!t->desk) {
		telling_free(t);
		return;
	}
	if (status != 0)
		log_warn(&t->desk->log, "content_not_kept msg_id=%s error=\"%s\"", t->msg_id,
			err->text);
	t->n_gone += status != 0 ? 1 : 0;
	t->n_keeping--;
	go_on(t);
}

void telling_content(struct telling *t, const char *name, struct bytes bytes)
{
	const struct content_name *c = &t->names[t->back];
	if (t->is_whole || t->back >= t->asked || strcmp(c->name, name) != 0)
		return; /* of a Change that was given up */
	const struct history_whose to = whose(t);
	t->back++;
	if (bytes.data && bytes.len <= c->bytes) {
		t->expects++;
		t->n_keeping++;
		history_keep(t->desk->gw->histories, &to, name, bytes, on_kept, t);
	} else {
		t->n_gone++;
	}
	go_on(t);
}

static void on_lacks(void *data, int status, const size_t *lacking, size_t n, const struct err *err)
{
	struct telling *t = data;
	t->expects--;
	if (!t->desk) {
		telling_free(t);
		return;
	}
	if (status != 0) {
		fail(t, err);
		return;
	}
	for (size_t i = 0; i < n; i++) /* they are in order */
		t->names[i] = t->names[lacking[i]];
	t->n = n;
	want(t);
}

static void ask_history(struct telling *t)
{
	const struct history_whose of = whose(t);
	const char **names = xcalloc(t->n, sizeof *names);
	for (size_t i = 0; i < t->n; i++)
		names[i] = t->names[i].name;
	t->expects++;
	history_lacks(t->desk->gw->histories, &of, names, t->n, on_lacks, t);
	free((void *)names);
}

void telling_begin(struct telling *t)
{
	struct err err;
	if (t->change && told_contents(t->change, &t->names, &t->n, &err) != 0)
		fail(t, &err);
	else if (t->n > 0)
		ask_history(t);
	else
		want(t);
}
