/* A part of fake_bridge.c, which includes it: parks, and going back to them. */
#ifndef COPPICE_FAKE_BRIDGE_PARKS_H
#define COPPICE_FAKE_BRIDGE_PARKS_H

void fake_kernel_parks(struct kernel *k, int64_t park, const char *msg_id, const char *text)
{
	k->watcher.on_parked(
		k->watcher.data, msg_id, park, (struct bytes){(const uint8_t *)text, strlen(text)});
}

void fake_kernel_unparks(struct kernel *k, int64_t park)
{
	k->watcher.on_unparked(k->watcher.data, park, "thinned");
}

void fake_kernel_not_parked(struct kernel *k, const char *msg_id, const char *reason)
{
	k->watcher.on_not_parked(k->watcher.data, msg_id, reason);
}

void kernel_revive(struct kernel *k, const struct kernel_revival *revival)
{
	assert(!k->ending && !k->revival.cb);
	if (fault_hit(k->bridge) || k->state == KERNEL_STARTING) {
		struct deferred *d = defer(k, revival->data);
		d->cb = revival->cb;
		d->code = E_UNAVAILABLE;
		return;
	}
	k->revival = *revival;
}

int64_t fake_kernel_revives(const struct kernel *k)
{
	return k->revival.cb ? k->revival.park : 0;
}

static void revival_cancel(struct kernel *k)
{
	if (!k->revival.cb)
		return;
	struct deferred *d = defer(k, k->revival.data);
	d->cb = k->revival.cb;
	d->code = E_DEAD;
	k->revival = (struct kernel_revival){0};
}

void fake_kernel_not_revived(struct kernel *k, int code)
{
	const struct kernel_revival revival = k->revival;
	struct err err;
	err_set(&err, code, "it did not stand up");
	k->revival = (struct kernel_revival){0};
	revival.cb(revival.data, &err);
}

void fake_kernel_proves(struct kernel *k, const char *text)
{
	const struct kernel_revival revival = k->revival;
	struct err err;
	k->revival = (struct kernel_revival){0};
	if (revival.check(revival.data, (struct bytes){(const uint8_t *)text, strlen(text)}, &err) <
		0) {
		revival.cb(revival.data, &err);
		return;
	}
	revival.on_switch(revival.data);
	while (k->first < k->last)
		jmsg_unref(k->sent[k->first++]);
	k->restarts++;
	(void)snprintf(k->session, sizeof k->session, "kernel-%u", k->restarts + 1);
	k->state = KERNEL_STARTING;
	if (k->watcher.on_record)
		k->watcher.on_record(k->watcher.data);
	fake_kernel_ready(k);
	revival.cb(revival.data, NULL);
}

void kernel_release(struct kernel *k, int64_t park)
{
	k->released = park;
}

int64_t fake_kernel_released(const struct kernel *k)
{
	return k->released;
}

#endif
