#include "gateway/door/delivery.h"

#define RING_MIN 32

void delivery_init(struct delivery *d)
{
	*d = (struct delivery){0};
}

void delivery_done(struct delivery *d)
{
	free(d->ring);
	*d = (struct delivery){0};
}

static struct delivered *at(const struct delivery *d, size_t i)
{
	return &d->ring[(d->head + i) % d->size];
}

static bool grow(struct delivery *d)
{
	size_t size = d->size == 0 ? RING_MIN : 2 * d->size;
	struct delivered *ring = calloc(size, sizeof *ring);
	if (!ring)
		return false;
	for (size_t i = 0; i < d->count; i++)
		ring[i] = *at(d, i);
	free(d->ring);
	d->ring = ring;
	d->size = size;
	d->head = 0;
	return true;
}

bool delivery_full(const struct delivery *d)
{
	return d->count == d->size;
}

void delivery_ended(struct delivery *d, uint64_t number, uint64_t end)
{
	if (delivery_full(d) && !grow(d)) {
		/* Without memory the newest row speaks for this one too: what it covers is sent
		 * again rather than lost. */
		if (d->count > 0)
			at(d, d->count - 1)->end = end;
		return;
	}
	d->count++;
	*at(d, d->count - 1) = (struct delivered){number, end};
}

void delivery_trim(struct delivery *d, uint64_t unacked)
{
	uint64_t had = unacked < d->total ? d->total - unacked : 0;
	while (d->count > 0 && at(d, 0)->end <= had) {
		d->head = (d->head + 1) % d->size;
		d->count--;
	}
	if (d->count == 0) {
		free(d->ring);
		d->ring = NULL;
		d->size = d->head = 0;
	}
}

uint64_t delivery_first(struct delivery *d, uint64_t unacked)
{
	delivery_trim(d, unacked);
	return d->count > 0 ? at(d, 0)->number : 0;
}
