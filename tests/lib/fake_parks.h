/* A part of fake_bridge.c, which alone includes it: what is parked; kernels that are killed, and
 * looked for. */
#ifndef COPPICE_FAKE_PARKS_H
#define COPPICE_FAKE_PARKS_H

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

void kernel_kill(struct kernel *k)
{
	assert(!k->ending);
	k->kills++;
}

unsigned fake_kernel_kills(const struct kernel *k)
{
	return k->kills;
}

void kernel_look(struct kernel *k, void (*cb)(void *data, const struct err *left), void *data)
{
	assert(!k->ending && !k->look.cb && k->state == KERNEL_DEAD);
	k->look.cb = cb;
	k->look.data = data;
}

bool fake_kernel_is_looked_for(const struct kernel *k)
{
	return k->look.cb != NULL;
}

void fake_kernel_looked(struct kernel *k, const char *left)
{
	void (*cb)(void *data, const struct err *left) = k->look.cb;
	struct err err;
	k->look.cb = NULL;
	if (left)
		err_set(&err, k->lost ? E_GONE : E_BUSY, "%s", left);
	k->lost = k->lost || left;
	cb(k->look.data, left ? &err : NULL);
}

#endif
