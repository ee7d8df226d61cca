#include "frontend-adapter/deletion.h"

#include <cjson/cJSON.h>

#include "frontend-adapter/turn.h"

struct deletion {
	struct list link;
	struct conversation *c; /* NULL: the gateway ends */
	int next;		/* of its kernels */
	struct timer step;
	void (*cb)(void *data, const struct err *err);
	void *data;
};

static void end(struct deletion *d, const struct err *err)
{
	struct deletion copy = *d;
	if (d->c)
		timer_stop(d->c->chats->setup.clock, &d->step);
	list_remove(&d->link);
	free(d);
	copy.cb(copy.data, err);
}

static void finish(struct deletion *d)
{
	conversation_remove(d->c);
	timer_stop(d->c->chats->setup.clock, &d->step);
	conversation_free(TAKE(d->c));
	end(d, NULL);
}

static void on_dropped(void *data, const struct err *err)
{
	struct deletion *d = data;
	struct err gone;
	if (!d->c) {
		err_set(&gone, E_UNAVAILABLE, "the gateway ends: the conversation is not deleted");
		end(d, &gone);
	} else if (err) {
		d->c->leaving = false;
		end(d, err);
	} else {
		d->next++;
		timer_start(d->c->chats->setup.clock, &d->step, 0);
	}
}

static void on_step(struct timer *t)
{
	struct deletion *d = CONTAINER_OF(t, struct deletion, step);
	const struct chats_setup *s = &d->c->chats->setup;
	const cJSON *kernel = cJSON_GetArrayItem(d->c->kernels, d->next);
	if (!kernel)
		finish(d);
	else
		s->runner->drop(s->runner_data, d->c->owner, kernel->valuestring, on_dropped, d);
}

void deletion_begin(
	struct conversation *c, void (*cb)(void *data, const struct err *err), void *data)
{
	struct deletion *d = xcalloc(1, sizeof *d);
	d->c = c;
	d->cb = cb;
	d->data = data;
	c->leaving = true;
	if (c->turn)
		turn_drop(c);
	list_append(&c->chats->deletions, &d->link);
	timer_init(&d->step, on_step);
	timer_start(c->chats->setup.clock, &d->step, 0);
}

void deletions_leave(struct chats *cs)
{
	LIST_EACH_SAFE (at, &cs->deletions) {
		struct deletion *d = CONTAINER_OF(at, struct deletion, link);
		bool waits = timer_running(&d->step);
		timer_stop(cs->setup.clock, &d->step);
		list_remove(&d->link);
		d->c = NULL;
		if (waits) /* nobody else calls it back */
			on_dropped(d, NULL);
	}
}
