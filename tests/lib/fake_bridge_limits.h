/* A part of fake_bridge.c, which includes it: kernels that are killed, and looked for. */
#ifndef COPPICE_FAKE_BRIDGE_LIMITS_H
#define COPPICE_FAKE_BRIDGE_LIMITS_H

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

static void look_cancel(struct kernel *k)
{
	if (!k->look.cb)
		return;
	struct deferred *d = defer(k, k->look.data);
	d->cb = k->look.cb;
	d->code = E_DEAD;
	k->look.cb = NULL;
}

#endif
