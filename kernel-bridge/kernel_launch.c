#include "kernel-bridge/kernel_launch.h"
#include "kernel-bridge/kernel_place.h"

#define SHARE_MS 5000 /* one that takes longer, or for ever, does not keep the others waiting */

static void on_share_over(struct timer *t)
{
	kernel_launch_over(CONTAINER_OF(t, struct kernel, launch_timer));
}

void kernel_launch_init(struct kernel *k)
{
	list_init(&k->launch_link);
	timer_init(&k->launch_timer, on_share_over);
}

static int launch_now(struct kernel *k, struct err *err)
{
	struct engine *e = bridge_engine(k->bridge, k->spec->engine);
	int rc;

	if (!e)
		return err_set(err, E_UNAVAILABLE, "engine %s is not open", k->spec->engine);
	rc = kernel_place_launch(k, e, err);
	if (rc < 0)
		return rc;
	k->launching = true;
	k->bridge->n_launching++;
	timer_start(kernel_clock(k), &k->launch_timer, SHARE_MS);
	timer_start(
		kernel_clock(k), &k->start_timer, (uint64_t)k->bridge->env.config->start_timeout);
	return 0;
}

static bool is_free(const struct bridge *b)
{
	return b->n_launching < (size_t)b->env.config->parallel_starts;
}

/* Before those that nobody has asked for. */
static void wait_in_order(struct kernel *k)
{
	struct list *at = &k->bridge->launches;

	while (!k->unowned && at->prev != &k->bridge->launches &&
		CONTAINER_OF(at->prev, struct kernel, launch_link)->unowned)
		at = at->prev;
	list_append(at, &k->launch_link); /* before at */
	timer_stop(kernel_clock(k), &k->start_timer);
	log_info(&k->log, "launch_waits");
}

int kernel_launch(struct kernel *k, struct err *err)
{
	k->line = 0;
	k->slot_gone = false;
	if (is_free(k->bridge))
		return launch_now(k, err);
	wait_in_order(k);
	return 0;
}

static void serve(struct bridge *b)
{
	while (!list_empty(&b->launches) && is_free(b)) {
		struct kernel *k = CONTAINER_OF(b->launches.next, struct kernel, launch_link);
		struct err err;

		list_remove(&k->launch_link);
		if (launch_now(k, &err) < 0)
			kernel_fail_later(k, err.text);
		else if (k->watcher.on_record)
			k->watcher.on_record(k->watcher.data);
	}
}

void kernel_launch_over(struct kernel *k)
{
	list_remove(&k->launch_link);
	timer_stop(kernel_clock(k), &k->launch_timer);
	if (!k->launching)
		return;
	k->launching = false;
	k->bridge->n_launching--;
	serve(k->bridge);
}
