#include "gateway/spine/acks.h"

#include <string.h>

#include "gateway/spine/desk.h"

/* Each word wakes the supervisor and a thread of the kernel, which takes the interpreter from the
 * cell that runs: seldom, but before the index of past messages (live.h) is half full. */
#define ACK_MS	     1000
#define ACK_BYTES    (8u << 20)
#define ACK_MESSAGES 8192u

static void tell(struct desk *d)
{
	struct acks *a = &d->acks;
	a->bytes = a->messages = 0;
	for (int c = 0; c < CHANNEL_HB; c++) {
		struct ack_mark *older = &a->older[c], *latest = &a->latest[c];
		if (older->number == 0 || older->number > a->written)
			continue;
		bool all = latest->number <= a->written;
		const char *id = all ? latest->msg_id : older->msg_id;
		kernel_written(d->kernel, (enum channel)c, id);
		live_acked(d->live, (enum channel)c, id);
		*older = *latest;
		if (all)
			older->number = 0;
	}
}

static void on_timer(struct timer *t)
{
	struct acks *a = CONTAINER_OF(t, struct acks, timer);
	struct desk *d = CONTAINER_OF(a, struct desk, acks);
	if (d->kernel && !d->ending && !d->dead)
		tell(d);
}

void acks_init(struct acks *a)
{
	timer_init(&a->timer, on_timer);
}

void acks_stop(struct desk *d)
{
	timer_stop(d->gw->clock, &d->acks.timer);
}

void acks_forget(struct desk *d)
{
	for (int c = 0; c < CHANNEL_HB; c++)
		d->acks.older[c].number = d->acks.latest[c].number = 0;
}

void acks_took(struct desk *d, const struct jmsg *m, uint64_t number)
{
	struct acks *a = &d->acks;
	if (m->channel >= CHANNEL_HB)
		return;
	struct ack_mark *latest = &a->latest[m->channel], *older = &a->older[m->channel];
	latest->number = number;
	(void)copy_text(latest->msg_id, sizeof latest->msg_id, m->msg_id,
		strlen(m->msg_id)); /* its length was checked */
	if (older->number == 0)
		*older = *latest;
	a->bytes += m->frame.len;
	a->messages++;
	if (number <= a->written) /* it is not kept: no writing will tell */
		acks_written(d, a->written);
}

void acks_written(struct desk *d, uint64_t last)
{
	struct acks *a = &d->acks;
	a->written = last;
	if (a->bytes >= ACK_BYTES || a->messages >= ACK_MESSAGES)
		timer_start(d->gw->clock, &a->timer, 0);
	else if (!timer_running(&a->timer))
		timer_start(d->gw->clock, &a->timer, ACK_MS);
}
