#include "kernel-bridge/channel.h"

#include <assert.h>
#include <string.h>
#include <uv.h>

#include "kernel-bridge/channel_socket.h"

#define IOPUB_BUDGET 256 /* messages of one kernel in one turn; then others have theirs */
#define OTHER_BUDGET 64
#define STARVED_MAX  32 /* turns that a flood on iopub may keep shell and stdin waiting */
#define RELINK_MS    100

/* Lets sets take turns just before the loop polls: everything that became readable in one poll is
 * there by then, so iopub can come first, and what a callback queues is sent by the same poll. */
struct channel_hub {
	struct clock *clock;
	struct zcontext *zmq;
	uv_prepare_t prepare;
	uv_idle_t idle; /* keeps the poll from waiting while a set is dirty */
	struct list dirty;
	size_t n_handles;
	void (*closed)(void *data);
	void *closed_data;
};

struct channels {
	struct channel_hub *hub;
	struct list link; /* in hub->dirty */
	struct channels_watcher watcher;
	struct endpoints endpoints;
	char routing_id[64];
	int64_t max_message_bytes;
	struct zsocket *socket[CHANNEL_COUNT];
	struct zsocket *old[CHANNEL_COUNT]; /* lost ones that may still hold messages */
	struct zsocket *monitor;	    /* of iopub; a lost DEALER shows it itself */
	struct timer relink;
	unsigned starved;
	unsigned untold; /* channels whose loss is to be told, by bit */
	bool held, settled, closed, in_turn;
};

static void on_prepare(uv_prepare_t *handle);
static void on_idle(uv_idle_t *handle)
{
	(void)handle; /* only its being there matters */
}

/* ---- hub ---- */

int channel_hub_new(struct uv_loop_s *loop, struct clock *clock, int64_t max_sockets,
	struct channel_hub **ret, struct err *err)
{
	struct zcontext *zmq = NULL;
	struct channel_hub *hub;
	int rc = zcontext_new(loop, max_sockets, &zmq, err);

	if (rc < 0)
		return rc;
	hub = xcalloc(1, sizeof(*hub));
	hub->clock = clock;
	hub->zmq = zmq;
	list_init(&hub->dirty);
	/* Neither can fail. */
	(void)uv_prepare_init(loop, &hub->prepare);
	(void)uv_idle_init(loop, &hub->idle);
	hub->prepare.data = hub->idle.data = hub;
	*ret = hub;
	return 0;
}

static void on_handle_closed(uv_handle_t *handle)
{
	struct channel_hub *hub = handle->data;
	void (*cb)(void *data) = hub->closed;
	void *data = hub->closed_data;

	if (--hub->n_handles > 0)
		return;
	free(hub);
	cb(data);
}

void channel_hub_close(struct channel_hub *hub, void (*cb)(void *data), void *data)
{
	assert(list_empty(&hub->dirty));
	zcontext_free(hub->zmq);
	hub->closed = cb;
	hub->closed_data = data;
	hub->n_handles = 2;
	uv_close((uv_handle_t *)&hub->prepare, on_handle_closed);
	uv_close((uv_handle_t *)&hub->idle, on_handle_closed);
}

static void make_dirty(struct channels *set)
{
	struct channel_hub *hub = set->hub;

	if (!list_empty(&set->link) || set->closed)
		return;
	list_append(&hub->dirty, &set->link);
	/* Starting a handle that runs changes nothing and cannot fail. */
	(void)uv_prepare_start(&hub->prepare, on_prepare);
	(void)uv_idle_start(&hub->idle, on_idle);
}

static void touch(struct zsocket *s)
{
	s->touched = true;
	make_dirty(s->data);
}

/* ---- making, losing and making again ---- */

static int connect_socket(
	struct channels *set, enum channel channel, struct zsocket *s, struct err *err)
{
	int rc = 0;

	/* libzmq tells of a lost SUB through its monitor only. */
	if (channel == CHANNEL_IOPUB && !s->pipe)
		rc = zsocket_monitor(s, &set->monitor, err);
	if (rc == 0)
		rc = zsocket_connect(s, set->endpoints.address[channel], err);
	return rc;
}

/* Makes set->socket[channel], which must be empty. */
static int open_channel(struct channels *set, enum channel channel, struct err *err)
{
	struct zsocket_open open = {
		.channel = channel,
		.endpoints = &set->endpoints,
		.routing_id = set->routing_id,
		.max_message_bytes = set->max_message_bytes,
		.on_readable = touch,
		.data = set,
	};
	struct zsocket *s = NULL;
	int rc = zsocket_open(set->hub->zmq, &open, &s, err);

	if (rc == 0)
		rc = connect_socket(set, channel, s, err);
	if (rc < 0) {
		zsocket_close(&s);
		if (channel == CHANNEL_IOPUB)
			zsocket_close(&set->monitor);
		return err_wrap(err, "channel %s", channel_name(channel));
	}
	if (set->held && channel != CHANNEL_HB)
		zsocket_watch(s, false);
	set->socket[channel] = s;
	touch(s);
	if (channel == CHANNEL_IOPUB && set->monitor)
		touch(set->monitor);
	return 0;
}

static void lose(struct channels *set, enum channel channel)
{
	if (set->settled)
		return;
	set->socket[channel]->lost = true;
	/* Not at once: a guest that does it all the time must not keep the gateway busy. */
	if (!timer_running(&set->relink))
		timer_start(set->hub->clock, &set->relink, RELINK_MS);
}

static int relink(struct channels *set, enum channel channel, struct err *err)
{
	struct zsocket *lost = TAKE(set->socket[channel]);

	if (lost) {
		/* What it still holds is read first, unwatched: libzmq adds nothing to it. */
		zsocket_close(&set->old[channel]);
		set->old[channel] = lost;
		zsocket_watch(lost, false);
		touch(lost);
		set->untold |= 1u << channel;
	}
	if (channel == CHANNEL_IOPUB)
		zsocket_close(&set->monitor);
	return open_channel(set, channel, err);
}

static void on_relink(struct timer *t)
{
	struct channels *set = CONTAINER_OF(t, struct channels, relink);
	struct err err;

	for (int c = 0; c < CHANNEL_COUNT; c++) {
		struct zsocket *s = set->socket[c];

		if (s ? !s->lost : c == CHANNEL_HB)
			continue;
		/* Out of sockets: tried again later. */
		if (relink(set, (enum channel)c, &err) < 0)
			timer_start(set->hub->clock, &set->relink, RELINK_MS);
	}
}

static void tell_losses(struct channels *set)
{
	for (int c = 0; c < CHANNEL_COUNT && !set->closed; c++) {
		if (!(set->untold & 1u << c))
			continue;
		set->untold &= ~(1u << c);
		set->watcher.on_lost(set->watcher.data, (enum channel)c);
	}
}

static void read_monitor(struct channels *set)
{
	enum zevent event;

	if (!set->monitor || !set->monitor->touched)
		return;
	set->monitor->touched = false;
	while (set->monitor && (event = zsocket_event(set->monitor)) != ZEVENT_NONE) {
		/* After a loss libzmq tries again within a moment, unless it never will. */
		if (event == ZEVENT_DOWN)
			lose(set, CHANNEL_IOPUB);
		else
			set->socket[CHANNEL_IOPUB]->lost = false;
		if (event != ZEVENT_RETRY)
			set->watcher.on_link(set->watcher.data, event == ZEVENT_UP);
	}
}

/* A pipe shows its losses itself, on whichever channel. */
static void read_link(struct channels *set)
{
	struct zsocket *iopub;
	enum zevent event;

	while (!set->closed && (iopub = set->socket[CHANNEL_IOPUB]) && iopub->pipe &&
		(event = zsocket_event(iopub)) != ZEVENT_NONE)
		set->watcher.on_link(set->watcher.data, event == ZEVENT_UP);
}

/* ---- reading ---- */

/* A reply may be as large as any output: what is held waits in the guest, whatever its channel. */
static bool is_held(const struct channels *set, enum channel channel)
{
	return set->held && channel != CHANNEL_HB;
}

/* True if the budget ended before the messages did. */
static bool drain(struct channels *set, struct zsocket *s, enum channel channel, int budget)
{
	const struct bytes *frames;
	bool any = false;
	size_t n;

	if (!s || !s->touched)
		return false;
	for (; budget > 0; budget--) {
		if (!zsocket_receive(s, &frames, &n)) {
			bool shows = s->pipe || (!any && channel != CHANNEL_IOPUB);

			s->touched = false;
			if (shows && s == set->socket[channel] && zsocket_is_lost(s))
				lose(set, channel);
			return false;
		}
		any = true;
		set->watcher.on_frames(set->watcher.data, channel, frames, n);
		zcontext_release(set->hub->zmq);
		if (set->closed || s->closed || is_held(set, channel))
			return false;
	}
	return true;
}

/* The lost socket of the channel first, then its successor. */
static bool drain_channel(struct channels *set, enum channel channel, int budget)
{
	struct zsocket *old = set->old[channel];

	if (set->closed)
		return false;
	if (old && !is_held(set, channel) && drain(set, old, channel, budget))
		return true;
	if (set->closed)
		return false;
	if (old && old == set->old[channel] && !old->touched)
		zsocket_close(&set->old[channel]);
	if (is_held(set, channel))
		return false;
	return drain(set, set->socket[channel], channel, budget);
}

static bool drain_all(struct channels *set)
{
	bool waits = drain_channel(set, CHANNEL_IOPUB, IOPUB_BUDGET);

	/* A reply or a prompt must not overtake the output before it; but a flood has no end. */
	if (!waits || ++set->starved > STARVED_MAX) {
		set->starved = 0;
		waits |= drain_channel(set, CHANNEL_STDIN, OTHER_BUDGET);
		waits |= drain_channel(set, CHANNEL_SHELL, OTHER_BUDGET);
	}
	waits |= drain_channel(set, CHANNEL_CONTROL, OTHER_BUDGET);
	waits |= drain_channel(set, CHANNEL_HB, OTHER_BUDGET);
	return waits;
}

static void turn(struct channels *set)
{
	bool waits;

	set->in_turn = true;
	read_monitor(set);
	read_link(set);
	tell_losses(set);
	waits = drain_all(set);
	if (!set->closed)
		set->watcher.on_turn(set->watcher.data);
	set->in_turn = false;
	if (set->closed)
		free(set);
	else if (waits)
		make_dirty(set);
}

static void on_prepare(uv_prepare_t *handle)
{
	struct channel_hub *hub = handle->data;
	struct list round;

	/* Those that become dirty meanwhile come in the next round. */
	list_init(&round);
	while (!list_empty(&hub->dirty)) {
		struct list *at = hub->dirty.next;

		list_remove(at);
		list_append(&round, at);
	}
	while (!list_empty(&round)) {
		struct list *at = round.next;

		list_remove(at);
		turn(CONTAINER_OF(at, struct channels, link));
	}
	if (!list_empty(&hub->dirty))
		return;
	(void)uv_prepare_stop(&hub->prepare); /* neither can fail */
	(void)uv_idle_stop(&hub->idle);
}

/* ---- for the kernel ---- */

int channels_open(struct channel_hub *hub, const struct channels_open *open,
	const struct channels_watcher *watcher, struct channels **ret, struct err *err)
{
	static const enum channel order[] = {
		CHANNEL_IOPUB, CHANNEL_STDIN, CHANNEL_SHELL, CHANNEL_CONTROL};
	struct channels *set = xcalloc(1, sizeof(*set));

	set->hub = hub;
	list_init(&set->link);
	set->watcher = *watcher;
	set->endpoints = *open->endpoints;
	set->max_message_bytes = open->max_message_bytes;
	(void)copy_text(set->routing_id, sizeof(set->routing_id), open->routing_id,
		strlen(open->routing_id)); /* a uuid fits */
	timer_init(&set->relink, on_relink);
	for (size_t i = 0; i < ARRAY_LEN(order); i++) {
		int rc = open_channel(set, order[i], err);

		if (rc < 0) {
			channels_close(set);
			return rc;
		}
	}
	*ret = set;
	return 0;
}

void channels_close(struct channels *set)
{
	set->closed = true;
	list_remove(&set->link);
	timer_stop(set->hub->clock, &set->relink);
	for (int c = 0; c < CHANNEL_COUNT; c++) {
		zsocket_close(&set->socket[c]);
		zsocket_close(&set->old[c]);
	}
	zsocket_close(&set->monitor);
	if (!set->in_turn)
		free(set);
}

int channels_send(struct channels *set, enum channel channel, const struct bytes *frames, size_t n,
	struct err *err)
{
	int rc = 0;

	if (!set->socket[channel])
		rc = open_channel(set, channel, err);
	if (rc == 0)
		rc = zsocket_send(set->socket[channel], frames, n, err);
	if (rc == E_GONE && !set->settled) {
		rc = relink(set, channel, err);
		if (rc == 0)
			rc = zsocket_send(set->socket[channel], frames, n, err);
	}
	/* Sending may have taken the signal that something can be read. */
	if (set->socket[channel])
		touch(set->socket[channel]);
	return rc;
}

int channels_beat(struct channels *set, struct err *err)
{
	static const struct bytes beat = {(const uint8_t *)"beat", 4};

	return channels_send(set, CHANNEL_HB, &beat, 1, err);
}

void channels_hold(struct channels *set, bool hold)
{
	if (set->held == hold)
		return;
	set->held = hold;
	for (int c = 0; c < CHANNEL_COUNT; c++) {
		struct zsocket *s = set->socket[c];

		if (!s || c == CHANNEL_HB)
			continue;
		/* The descriptor stays readable while nobody reads: unwatched, or the loop would
		 * spin. */
		zsocket_watch(s, !hold);
		if (!hold)
			touch(s);
	}
}

void channels_settle(struct channels *set)
{
	set->settled = true;
	timer_stop(set->hub->clock, &set->relink);
}
