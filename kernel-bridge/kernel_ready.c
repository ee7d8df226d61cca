/* What comes from a line: readiness, messages for the watcher, connections that are lost. */
#include "kernel-bridge/kernel_adopt.h"
#include "kernel-bridge/kernel_interrupt.h"
#include "kernel-bridge/kernel_launch.h"
#include "kernel-bridge/kernel_pool.h"
#include "kernel-bridge/kernel_place.h"

#include <string.h>

#define NUDGE_FIRST_MS	  100
#define NUDGE_MAX_MS	  500
#define NUDGE_UNHEARD_MS  20 /* it answers, only iopub has not been heard yet */
#define NUDGES_TILL_SHELL 3
#define BEAT_FIRST_MS	  200 /* an engine that can tell has told by then */
#define BEAT_MS		  900
#define BEATS_MISSED_MAX  3
#define LOST_NOTICE_MS	  1000
#define STDIN_MS	  3000 /* a kernel that never listens there is ready without it */

/* ---- readiness ---- */

void kernel_become_ready(struct kernel *k)
{
	if (kernel_hand_over_ready(k))
		return;
	AUTO(jmsg_unrefp) struct jmsg *reply = TAKE(k->reply);

	k->ready = true;
	timer_stop(kernel_clock(k), &k->nudge_timer);
	timer_stop(kernel_clock(k), &k->start_timer);
	kernel_launch_over(k);
	log_info(&k->log, "kernel_ready line=%u nudges=%u", k->line, k->n_nudges);
	kernel_set_state(k, KERNEL_IDLE);
	if (k->unowned)
		k->info = jmsg_ref(reply);
	k->watcher.on_ready(k->watcher.data, reply);
	if (!kernel_is(k, KERNEL_IDLE) && !kernel_is(k, KERNEL_BUSY))
		return; /* the watcher ended or restarted it at once */
	kernel_flush_kept(k);
	if (!k->place->limited)
		k->place->slot->engine->ops->limit(k->place->slot);
	k->place->limited = true;
}

/* A first cell may ask for input at once, and a kernel's ROUTER drops what is for a peer that it
 * does not know yet: shell waits until stdin is connected. */
static void go_on(struct kernel *k)
{
	if (k->ready || k->wish != WISH_RUN || k->dying || !k->reply || !k->heard)
		return;
	timer_stop(kernel_clock(k), &k->nudge_timer);
	if (!k->stdin_up) {
		timer_stop(kernel_clock(k), &k->start_timer);
		if (!timer_running(&k->stdin_timer))
			timer_start(kernel_clock(k), &k->stdin_timer, STDIN_MS);
		return;
	}
	timer_stop(kernel_clock(k), &k->stdin_timer);
	if (k->adoption != ADOPT_NO)
		kernel_adopt_heard(k);
	else
		kernel_become_ready(k);
}

static void on_stdin_late(struct timer *t)
{
	struct kernel *k = CONTAINER_OF(t, struct kernel, stdin_timer);

	log_warn(&k->log, "stdin_not_connected line=%u: a cell that asks for input may hang",
		k->line);
	k->stdin_up = true;
	go_on(k);
}

static void note(struct kernel *k, struct jmsg *m, bool own)
{
	if (k->ready || k->wish != WISH_RUN || k->dying || k->handing == HAND_ASKED)
		return;
	if (m->channel == CHANNEL_IOPUB)
		k->heard = true;
	else if (own && !k->reply && strcmp(m->msg_type, "kernel_info_reply") == 0)
		k->reply = jmsg_ref(m);
	if (k->reply && !k->heard && m == k->reply)
		timer_start(kernel_clock(k), &k->nudge_timer, NUDGE_UNHEARD_MS);
	go_on(k);
}

static void on_nudge(struct timer *t)
{
	struct kernel *k = CONTAINER_OF(t, struct kernel, nudge_timer);
	struct err err;
	int rc = kernel_ask(k, CHANNEL_CONTROL, "kernel_info_request", "{}", &err);

	/* A foreign kernel may know no kernel_info on control. */
	if (rc == 0 && ++k->n_nudges == NUDGES_TILL_SHELL && !k->reply)
		rc = kernel_ask(k, CHANNEL_SHELL, "kernel_info_request", "{}", &err);
	if (rc < 0)
		log_debug(&k->log, "nudge_failed why=%s", err.text);
	timer_start(kernel_clock(k), &k->nudge_timer, k->nudge_ms);
	k->nudge_ms += k->nudge_ms / 2;
	if (k->nudge_ms > NUDGE_MAX_MS)
		k->nudge_ms = NUDGE_MAX_MS;
}

/* ---- messages ---- */

static void count_bad(struct kernel *k, enum channel channel, const char *why)
{
	if (k->bad_frames++ > 0)
		return;
	log_warn(&k->log, "bad_frame channel=%s why=%s", channel_name(channel), why);
	kernel_notice(k, "the kernel sent a message that was dropped: %s (channel %s; told once)",
		why, channel_name(channel));
}

static void on_message(struct kernel *k, struct jmsg *m)
{
	bool own = strcmp(m->parent_session, k->asker) == 0;
	bool was_ready = k->ready;

	k->received++;
	if (own && strcmp(m->msg_type, "interrupt_reply") == 0)
		kernel_interrupt_landed(k);
	note(k, m, own);
	/* The welcome of an XPUB is between it and us. */
	if (own || strcmp(m->msg_type, "iopub_welcome") == 0)
		return;
	if (k->adoption != ADOPT_NO)
		kernel_adopt_live(k, m);
	if (!was_ready || k->unowned || k->adoption != ADOPT_NO || kernel_adopt_seen(k, m))
		return;
	k->delivered = true;
	k->watcher.on_message(k->watcher.data, m);
}

static void on_frames(void *data, enum channel channel, const struct bytes *frames, size_t n)
{
	struct kernel *k = data;
	AUTO(jmsg_unrefp) struct jmsg *m = NULL;
	struct err err;

	if (k->dying)
		kernel_death_postpone(k);
	if (channel == CHANNEL_HB) {
		k->missed_beats = 0;
		return;
	}
	if (k->wish == WISH_END)
		return;
	if (n == 0)
		count_bad(k, channel, "it had too many parts or bytes");
	else if (wire_decode(&k->sign, channel, frames, n, &m, &err) < 0)
		count_bad(k, channel, err.text);
	else
		on_message(k, m);
}

static void on_turn(void *data)
{
	struct kernel *k = data;

	if (!k->delivered || k->wish == WISH_END)
		return;
	k->delivered = false;
	k->watcher.on_turn(k->watcher.data);
}

/* ---- connections ---- */

static void on_lost(void *data, enum channel channel)
{
	struct kernel *k = data;
	uint64_t now_ms = clock_now_ms(kernel_clock(k));

	k->lost++;
	if (channel == CHANNEL_HB || (k->lost_told_ms && now_ms < k->lost_told_ms + LOST_NOTICE_MS))
		return;
	k->lost_told_ms = now_ms;
	log_warn(&k->log, "connection_lost channel=%s", channel_name(channel));
	kernel_notice(k,
		"a message larger than %lld MiB was dropped, others near it may be missing "
		"(channel %s)",
		(long long)(k->bridge->env.config->message_limit >> 20), channel_name(channel));
}

/* An engine that cannot tell when a kernel ends: its sockets close and nothing answers. A busy
 * kernel may answer beats late but keeps its sockets, so a missed beat alone means nothing. */
static void on_beat(struct timer *t)
{
	struct kernel *k = CONTAINER_OF(t, struct kernel, beat_timer);
	struct kernel_death death = {.cause = DEATH_GONE,
		.text = "the kernel is gone: its sockets are closed and it answers no heartbeat"};
	struct err err;

	if (k->missed_beats++ < BEATS_MISSED_MAX) {
		if (channels_beat(k->channels, &err) < 0)
			log_debug(&k->log, "beat_failed why=%s", err.text);
		timer_start(kernel_clock(k), &k->beat_timer, BEAT_MS);
		return;
	}
	if (k->place->slot->engine->ops->kill_line(k->place->slot, k->line, &err) < 0)
		log_debug(&k->log, "kill_failed why=%s", err.text);
	k->alive = false;
	kernel_dies(k, &death);
}

static void on_link(void *data, enum channel channel, bool up)
{
	struct kernel *k = data;

	if (channel == CHANNEL_STDIN) {
		k->stdin_up = k->stdin_up || up;
		go_on(k);
	} else if (up) {
		timer_stop(kernel_clock(k), &k->beat_timer);
	} else if (k->ready && k->wish == WISH_RUN && !k->dying) {
		k->missed_beats = 0;
		timer_start(kernel_clock(k), &k->beat_timer, BEAT_FIRST_MS);
	}
}

void kernel_ready_init(struct kernel *k)
{
	timer_init(&k->nudge_timer, on_nudge);
	timer_init(&k->beat_timer, on_beat);
	timer_init(&k->stdin_timer, on_stdin_late);
}

static struct channels_watcher channels_watcher(struct kernel *k)
{
	return (struct channels_watcher){.on_frames = on_frames,
		.on_turn = on_turn,
		.on_lost = on_lost,
		.on_link = on_link,
		.data = k};
}

void kernel_listen(struct kernel *k)
{
	const struct channels_watcher watcher = channels_watcher(k);

	channels_watch(k->channels, &watcher);
	channels_hold(k->channels, k->held);
}

int kernel_connect(struct kernel *k, const struct endpoints *endpoints, struct err *err)
{
	const struct channels_watcher watcher = channels_watcher(k);
	const struct channels_open open = {.endpoints = endpoints,
		.routing_id = k->routing_id,
		.max_message_bytes =
			endpoints->trusted_hwm ? k->bridge->env.config->message_limit : 0};
	int rc;

	sign_done(&k->sign);
	rc = sign_init(&k->sign, endpoints->key, err);
	if (rc == 0)
		rc = channels_open(k->bridge->hub, &open, &watcher, &k->channels, err);
	if (rc < 0)
		return rc;
	channels_hold(k->channels, k->held);
	k->nudge_ms = NUDGE_FIRST_MS;
	k->n_nudges = 0;
	timer_start(kernel_clock(k), &k->nudge_timer, 0);
	return 0;
}

void kernel_disconnect(struct kernel *k)
{
	struct channels *channels = TAKE(k->channels);

	timer_stop(kernel_clock(k), &k->nudge_timer);
	timer_stop(kernel_clock(k), &k->beat_timer);
	timer_stop(kernel_clock(k), &k->stdin_timer);
	kernel_interrupt_cancel(k);
	kernel_interrupt_landed(k);
	jmsg_unref(TAKE(k->reply));
	k->heard = k->stdin_up = k->ready = k->delivered = false;
	if (channels)
		channels_close(channels);
}
