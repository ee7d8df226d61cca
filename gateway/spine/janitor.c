#include "gateway/spine/janitor.h"

#include "gateway/spine/desk.h"

/* Milliseconds, or 0: never. */
static int64_t idle_limit(const struct desk *d)
{
	int64_t of_spec = d->kernel ? kernel_spec(d->kernel)->cull_idle_ms : -1;
	return of_spec >= 0 ? of_spec : d->gw->config.cull_idle_timeout;
}

/* The idle clock starts at the last tracked activity; the idle that ends a long cell is one. */
static bool is_due(const struct desk *d, uint64_t now_ms)
{
	const struct config *config = &d->gw->config;
	int64_t limit_ms = idle_limit(d);
	if (limit_ms <= 0)
		return false;
	if (clients_attached(d) > 0 && !config->cull_connected)
		return false;
	if (d->dead)
		return true;
	if (!d->open || ((desk_is_busy(d) || queue_busy(&d->queue)) && !config->cull_busy))
		return false;
	return now_ms - d->activity_ms > (uint64_t)limit_ms;
}

static void look(struct timer *t)
{
	struct kernels *ks = CONTAINER_OF(t, struct kernels, janitor);
	uint64_t now_ms = clock_now_ms(ks->gw->clock);
	LIST_EACH_SAFE (at, &ks->desks) {
		struct desk *d = CONTAINER_OF(at, struct desk, link);
		if (!is_due(d, now_ms))
			continue;
		log_info(&d->log, "kernel_culled idle_ms=%llu",
			(unsigned long long)(now_ms - d->activity_ms));
		ks->count.culled++;
		desk_end(d, "The kernel was ended because it was idle for long.", NULL, NULL);
	}
	timer_start(ks->gw->clock, t, (uint64_t)ks->gw->config.cull_interval);
}

void janitor_open(struct kernels *ks)
{
	timer_init(&ks->janitor, look);
	timer_start(ks->gw->clock, &ks->janitor, (uint64_t)ks->gw->config.cull_interval);
}

void janitor_close(struct kernels *ks)
{
	timer_stop(ks->gw->clock, &ks->janitor);
}
