/* How a desk begins: anew, taken over from an earlier gateway, or beside another. */
#include <cjson/cJSON.h>
#include <string.h>

#include "gateway/spine/desk_new.h"
#include "gateway/spine/limits.h"
#include "gateway/spine/survive.h"

static int start_kernel(struct desk *d, const struct kernels_start *start,
	const struct kernelspec *spec, struct err *err)
{
	struct kernel_start kernel = {
		.id = d->id, .owner = d->owner->name, .spec = spec, .env = start->env};
	struct kernel_watcher watcher = desk_watcher(d);
	d->from_pool = pool_take(d->kernels->pool, &kernel, &watcher, &d->kernel);
	if (d->from_pool)
		return 0;
	return kernel_start(d->gw->bridge, &kernel, &watcher, &d->kernel, err);
}

static struct desk *desk_alloc(struct kernels *ks, const struct kernels_start *start,
	const char *id, const struct kernelspec *spec)
{
	struct desk *d = xcalloc(1, sizeof *d);
	d->kernels = ks;
	d->gw = ks->gw;
	d->owner = start->owner;
	(void)copy_text(d->id, sizeof d->id, id, strlen(id)); /* was checked */
	d->name = xstrdup(spec->name);
	d->path = start->path ? xstrdup(start->path) : NULL;
	crypto_uuid(d->session);
	list_init(&d->link);
	list_init(&d->clients);
	list_init(&d->executions);
	list_init(&d->waiters);
	requests_init(&d->requests);
	acks_init(&d->acks);
	parks_init(&d->parks);
	scribe_init(d);
	scribe_continue(d, start->history ? start->history
					  : cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(
						    start->env, HISTORY_VARIABLE)));
	desk_timers_init(d);
	limit_init(d);
	log_child(&d->log, &ks->gw->log, "kernel", d->id);
	desk_touch(d);
	return d;
}

int desk_new(struct kernels *ks, const struct kernels_start *start, const char *id,
	const struct kernelspec *spec, struct desk **ret, struct err *err)
{
	struct desk *d = desk_alloc(ks, start, id, spec);
	int rc = desk_open_journal(d, false, err);
	if (rc != 0) {
		desk_free(d);
		return rc;
	}
	rc = start_kernel(d, start, spec, err);
	if (rc != 0) {
		d->ending = true;
		d->kernel = NULL;
		desk_release(d);
		return rc;
	}
	desk_new_epoch(d);
	survive_record(d);
	log_info(&d->log, "kernel_start spec=%s owner=%s", d->name, d->owner->name);
	*ret = d;
	return 0;
}

int desk_beside(struct desk *of, const struct kernels_start *start, const char *id,
	const char *folder, struct desk **ret, struct err *err)
{
	const struct kernelspec *spec = kernel_spec(of->kernel);
	struct desk *d = desk_alloc(of->kernels, start, id, spec);
	const struct kernel_start kernel = {.id = d->id,
		.owner = d->owner->name,
		.spec = spec,
		.env = kernel_env(of->kernel),
		.folder = folder};
	const struct kernel_watcher watcher = desk_watcher(d);
	d->unborn = true;
	int rc = desk_open_journal(d, false, err);
	if (rc != 0) {
		desk_free(d);
		return rc;
	}
	rc = kernel_beside(of->kernel, &kernel, &watcher, &d->kernel, err);
	if (rc != 0) {
		d->ending = true;
		d->kernel = NULL;
		desk_release(d);
		return rc;
	}
	*ret = d;
	return 0;
}

void desk_is_born(struct desk *d, const char *branch)
{
	(void)copy_text(d->at.branch, sizeof d->at.branch, branch, strlen(branch)); /* fits */
	memcpy(d->scribe.branch, d->at.branch, sizeof d->scribe.branch);
	d->unborn = false;
	kernels_list_desk(d);
	survive_record(d);
	pool_places_changed(d->kernels->pool);
	log_info(&d->log, "kernel_branch spec=%s owner=%s branch=%s", d->name, d->owner->name,
		d->at.branch);
	if (d->death.known)
		desk_after_death(d);
}

void desk_end_unborn(struct desk *d)
{
	d->open = false;
	d->ending = true;
	timer_stop(d->gw->clock, &d->exit_timer);
	kernel_end(d->kernel, desk_on_ended, d);
}

int desk_restore(struct kernels *ks, const struct kernels_start *start, const char *id,
	const struct kernelspec *spec, struct desk **ret, struct err *err)
{
	struct desk *d = desk_alloc(ks, start, id, spec);
	int rc = desk_open_journal(d, true, err);
	if (rc != 0)
		desk_free(d);
	else
		*ret = d;
	return rc;
}
