#include "gateway/door/chat_drop.h"

#include <cjson/cJSON.h>
#include <string.h>

#include "gateway/gateway.h"
#include "gateway/spine/kernels.h"
#include "gateway/spine/owners.h"
#include "gateway/spine/sessions.h"
#include "history/history.h"

#define AGAIN_MS 100u
#define TRIES	 150u /* what the kernel ran is being recorded, or its history is packed */

struct drop {
	struct gateway *gw;
	const struct owner *owner; /* NULL: the tokens name it no more, so it has no kernels */
	char kernel_id[UUID_SIZE];
	struct timer again;
	unsigned tries;
	void (*cb)(void *data, const struct err *err);
	void *cb_data;
};

static void end(struct drop *d, const struct err *err)
{
	struct drop copy = *d;
	timer_stop(d->gw->clock, &d->again);
	free(d);
	copy.cb(copy.cb_data, err);
}

static void try_again(struct drop *d)
{
	struct err busy;
	if (++d->tries < TRIES) {
		timer_start(d->gw->clock, &d->again, AGAIN_MS);
		return;
	}
	err_set(&busy, E_BUSY, "its history is in use: try again");
	end(d, &busy);
}

static void on_removed(void *data, int status, struct bytes json, const struct err *err)
{
	struct drop *d = data;
	(void)json; /* how much became free */
	if (status == E_BUSY && !d->gw->ending)
		try_again(d);
	else
		end(d, status == 0 || status == E_NOT_FOUND ? NULL : err);
}

/* The history of a kernel that has run nothing, or of which nothing is recorded, is none. One that
 * another kernel went on in is that one's too, and stays. */
static void remove_history(struct drop *d)
{
	const struct kernels *ks = d->gw->kernels;
	if (!d->gw->histories || kernels_hold_history(ks, d->owner, d->kernel_id, d->kernel_id))
		end(d, NULL);
	else if (kernels_hold_history(ks, d->owner, d->kernel_id, NULL))
		try_again(d);
	else
		history_remove(d->gw->histories, d->kernel_id, on_removed, d);
}

static void on_again(struct timer *t)
{
	remove_history(CONTAINER_OF(t, struct drop, again));
}

static void on_ended(void *data)
{
	remove_history(data);
}

/* A page that was opened on the kernel is somebody else's use of it. */
static bool has_sessions(const struct drop *d)
{
	struct cJSON *rows = sessions_rows(d->gw->sessions, d->kernel_id);
	bool has = cJSON_GetArraySize(rows) > 0;
	cJSON_Delete(rows);
	return has;
}

static const struct owner *owner_of(const struct gateway *gw, const char *name)
{
	const struct owner *o = owners_next(gw->owners, NULL);
	while (o && strcmp(o->name, name) != 0)
		o = owners_next(gw->owners, o);
	return o;
}

/* The callback never comes within the call. */
static void on_begin(struct timer *t)
{
	struct drop *d = CONTAINER_OF(t, struct drop, again);
	timer_init(t, on_again);
	if (has_sessions(d))
		end(d, NULL);
	else
		remove_history(d);
}

void chat_drop(void *data, const char *owner, const char *kernel_id,
	void (*cb)(void *data, const struct err *err), void *cb_data)
{
	struct gateway *gw = data;
	struct desk *desk;
	struct drop *d = xcalloc(1, sizeof *d);
	const struct owner *o = owner_of(gw, owner);
	*d = (struct drop){.gw = gw, .owner = o, .cb = cb, .cb_data = cb_data};
	(void)copy_text(
		d->kernel_id, sizeof d->kernel_id, kernel_id, strlen(kernel_id)); /* a uuid */
	timer_init(&d->again, on_again);
	if (!has_sessions(d) && o && kernels_find(gw->kernels, o, kernel_id, &desk, NULL) == 0) {
		desk_end(desk, "its conversation was deleted", on_ended, d);
		return;
	}
	timer_init(&d->again, on_begin);
	timer_start(gw->clock, &d->again, 0);
}
