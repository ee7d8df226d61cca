#include "kernel-bridge/channel.h"

#include <assert.h>
#include <string.h>
#include <uv.h>

#include "kernel-bridge/channel_pipe.h"
#include "kernel-bridge/channel_socket.h"

#define IOPUB_BUDGET 256 /* messages of one kernel in one turn; then others have theirs */
#define OTHER_BUDGET 64
#define STARVED_MAX  32 /* turns that a flood on iopub may keep shell and stdin waiting */
#define RELINK_MS    100
/* While a shell request runs its output is read every so often, not message by message: each
 * reading wakes the gateway and its clients and takes a processor from the kernel that still
 * computes. */
#define REST_MS	      5
#define REST_MESSAGES 16 /* more in one reading: a flood, which is read as it comes */

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
	/* Of iopub, and of stdin until it is up: a lost DEALER shows it itself. */
	struct zsocket *monitor[CHANNEL_COUNT];
	struct timer relink;
	struct timer rest; /* runs: iopub is not watched */
	uint64_t heard_ms; /* when iopub last had something to read */
	unsigned starved;
	unsigned untold;	      /* channels whose loss is to be told, by bit */
	unsigned came[CHANNEL_COUNT]; /* messages in this turn */
	bool rests;		      /* a shell request was sent, and no reply came */
	bool rested;		      /* this turn ends a rest */
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

/* Whose connection the watcher is told of. */
static bool is_linked(enum channel channel)
{
	return channel == CHANNEL_IOPUB || channel == CHANNEL_STDIN;
}

static int connect_socket(
	struct channels *set, enum channel channel, struct zsocket *s, struct err *err)
{
	int rc = 0;

	/* libzmq tells of a lost SUB, and of a DEALER that came up, through a monitor only. */
	if (is_linked(channel) && !s->pipe)
		rc = zsocket_monitor(s, &set->monitor[channel], err);
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
		zsocket_close(&set->monitor[channel]);
		return err_wrap(err, "channel %s", channel_name(channel));
	}
	if (set->held && channel != CHANNEL_HB)
		zsocket_watch(s, false);
	set->socket[channel] = s;
	touch(s);
	if (set->monitor[channel])
		touch(set->monitor[channel]);
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
	zsocket_close(&set->monitor[channel]);
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

static void on_iopub_event(struct channels *set, enum zevent event)
{
	struct zsocket *iopub = set->socket[CHANNEL_IOPUB];

	/* After a loss libzmq tries again within a moment, unless it never will. A pipe shows its
	 * losses itself, on whichever channel. */
	if (event == ZEVENT_DOWN && !iopub->pipe)
		lose(set, CHANNEL_IOPUB);
	else if (event != ZEVENT_DOWN)
		iopub->lost = false;
	if (event != ZEVENT_RETRY)
		set->watcher.on_link(set->watcher.data, CHANNEL_IOPUB, event != ZEVENT_DOWN);
}

/* Connected is not enough: a ROUTER drops what is for a peer whose name has not come yet. */
static void on_stdin_event(struct channels *set, enum zevent event)
{
	if (event != ZEVENT_UP)
		return;
	zsocket_close(&set->monitor[CHANNEL_STDIN]);
	set->watcher.on_link(set->watcher.data, CHANNEL_STDIN, true);
}

/* What tells of the connection: a pipe itself, or a monitor if it may have something to tell. */
static struct zsocket *teller(struct channels *set, enum channel channel)
{
	struct zsocket *s = set->socket[channel], *monitor = set->monitor[channel];

	if (set->closed)
		return NULL;
	if (s && s->pipe)
		return s;
	return monitor && monitor->touched ? monitor : NULL;
}

static void read_link(struct channels *set, enum channel channel)
{
	struct zsocket *s;

	while ((s = teller(set, channel))) {
		enum zevent event = zsocket_event(s);

		if (event == ZEVENT_NONE && !s->pipe)
			s->touched = false;
		if (event == ZEVENT_NONE)
			return;
		if (channel == CHANNEL_IOPUB)
			on_iopub_event(set, event);
		else
			on_stdin_event(set, event);
	}
}

/* ---- reading ---- */

/* A reply may be as large as any output: what is held waits in the guest, whatever its channel. */
static bool is_held(const struct channels *set, enum channel channel)
{
	return set->held && channel != CHANNEL_HB;
}

/* After a receive that found nothing. True: something has come by now. */
static bool look_again(struct channels *set, struct zsocket *s, enum channel channel, bool any)
{
	bool shows = s->pipe || (!any && channel != CHANNEL_IOPUB);
	enum zquiet why = shows && s == set->socket[channel] ? zsocket_why_quiet(s) : ZQUIET_WAITS;

	if (why == ZQUIET_LOST)
		lose(set, channel);
	return why == ZQUIET_CAME;
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
			if (look_again(set, s, channel, any))
				continue;
			s->touched = false;
			return false;
		}
		any = true;
		set->came[channel]++;
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

/* ---- rest ---- */

static void on_rest(struct timer *t)
{
	struct channels *set = CONTAINER_OF(t, struct channels, rest);

	set->rested = true;
	touch(set->socket[CHANNEL_IOPUB]);
}

/* Only a pipe: libzmq's thread reads whether we do or not. */
static bool may_rest(const struct channels *set)
{
	const struct zsocket *iopub = set->socket[CHANNEL_IOPUB];

	return set->rests && !set->held && iopub->pipe && pipe_is_between(iopub->pipe);
}

static void begin_rest(struct channels *set)
{
	if (!may_rest(set) || timer_running(&set->rest))
		return;
	zsocket_watch(set->socket[CHANNEL_IOPUB], false);
	timer_start(set->hub->clock, &set->rest, REST_MS);
}

static void end_rest(struct channels *set)
{
	timer_stop(set->hub->clock, &set->rest);
	if (!set->held)
		zsocket_watch(set->socket[CHANNEL_IOPUB], true);
}

/* After a reading of n messages. One that came alone is likely to stay alone for longer than a
 * rest, at the end of which we would wake for nothing and watch again. */
static bool is_dense(struct channels *set, unsigned n)
{
	uint64_t now_ms = clock_now_ms(set->hub->clock);
	bool dense = n > 1 || (n == 1 && (set->rested || now_ms - set->heard_ms < REST_MS / 2));

	set->rested = false;
	if (n > 0)
		set->heard_ms = now_ms;
	return dense;
}

/* After a reading. What ends a request follows its reply, so that is waited for awake. */
static void rest_or_watch(struct channels *set, bool waits)
{
	unsigned n = set->came[CHANNEL_IOPUB];
	bool dense = is_dense(set, n);

	if (set->came[CHANNEL_SHELL] > 0)
		set->rests = false;
	if (!may_rest(set) || waits || n > REST_MESSAGES)
		end_rest(set);
	else if (dense)
		begin_rest(set);
	else if (!timer_running(&set->rest))
		end_rest(set);
}

static void turn(struct channels *set)
{
	bool waits;

	set->in_turn = true;
	memset(set->came, 0, sizeof(set->came));
	/* What came on another channel must not overtake the output before it. */
	if (timer_running(&set->rest))
		set->socket[CHANNEL_IOPUB]->touched = true;
	read_link(set, CHANNEL_STDIN);
	read_link(set, CHANNEL_IOPUB);
	tell_losses(set);
	waits = drain_all(set);
	if (!set->closed)
		rest_or_watch(set, waits);
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
	timer_init(&set->rest, on_rest);
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

void channels_watch(struct channels *set, const struct channels_watcher *watcher)
{
	set->watcher = *watcher;
}

void channels_close(struct channels *set)
{
	set->closed = true;
	list_remove(&set->link);
	timer_stop(set->hub->clock, &set->relink);
	timer_stop(set->hub->clock, &set->rest);
	for (int c = 0; c < CHANNEL_COUNT; c++) {
		zsocket_close(&set->socket[c]);
		zsocket_close(&set->old[c]);
		zsocket_close(&set->monitor[c]);
	}
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
	if (rc == 0 && channel == CHANNEL_SHELL) {
		set->rests = true;
		begin_rest(set);
	}
	/* Sending may have taken libzmq's signal that something can be read. */
	if (set->socket[channel] && !set->socket[channel]->pipe)
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
	timer_stop(set->hub->clock, &set->rest);
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
