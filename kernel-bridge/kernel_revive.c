/* Going back: a new line is begun from a park beside the old one, proves that it is what was
 * parked, answers on its channels, and takes the old one's place. Until then nothing has moved.
 *
 *   asked --started, revived--> proved --reply, iopub, stdin--> switched
 *     any --start_failed, exited, another digest, too late, cancelled--> undone
 */
#include "kernel-bridge/kernel_revive.h"
#include "kernel-bridge/kernel_adopt.h"
#include "kernel-bridge/kernel_folder.h"
#include "kernel-bridge/kernel_place.h"

#include <assert.h>
#include <string.h>

#include "gateway/base/json.h"

#define REVIVE_MS    10000 /* a state of gigabytes stands within 0.1 s */
#define NUDGE_MS     20
#define NUDGE_MAX_MS 500
#define NO_SUCH_PARK "that parked state is not there any more"

struct revival {
	struct kernel *kernel;
	struct kernel_revival want;
	char digest[DIGEST_SIZE]; /* the park's */
	unsigned line;
	long pid;
	char key[SIGN_KEY_SIZE], routing_id[ROUTING_ID_SIZE];
	struct endpoints endpoints;
	bool started;
	char *said; /* `revived`; NULL: it has not come */
	struct sign sign;
	struct channels *channels; /* NULL until it is proved */
	struct jmsg *reply;
	bool heard, stdin_up;
	struct timer deadline, nudge;
	uint64_t nudge_ms;
};

void kernel_release(struct kernel *k, int64_t park)
{
	if (!k->place)
		return;
	if (park == PARK_ALL)
		kernel_place_release_all(k);
	else if (kernel_place_find_park(k->place, park))
		kernel_place_release(k->place, park);
}

/* ---- the end of a revival ---- */

static void kill_line(struct kernel *k, unsigned line)
{
	struct err err;

	if (k->place && k->place->slot->engine->ops->kill_line(k->place->slot, line, &err) < 0)
		log_debug(&k->log, "kill_failed line=%u why=%s", line, err.text);
}

static void revival_free(struct revival *r)
{
	struct kernel *k = r->kernel;

	timer_stop(kernel_clock(k), &r->deadline);
	timer_stop(kernel_clock(k), &r->nudge);
	if (r->channels)
		channels_close(r->channels);
	jmsg_unref(r->reply);
	sign_done(&r->sign);
	free(r->said);
	k->revival = NULL;
	free(r);
}

/* From the loop. The line is killed, if it may be there. */
static void undo(struct revival *r, const struct err *why)
{
	struct kernel *k = r->kernel;
	const struct kernel_revival want = r->want;
	const struct err err = *why;

	log_warn(&k->log, "not_revived line=%u why=%s", r->line, err.text);
	kill_line(k, r->line);
	revival_free(r);
	want.cb(want.data, &err);
}

void kernel_revival_cancel(struct kernel *k, int code, const char *why)
{
	struct revival *r = k->revival;
	struct err err;

	if (!r)
		return;
	err_set(&err, code, "%s", why);
	log_info(&k->log, "not_revived line=%u why=%s", r->line, why);
	kill_line(k, r->line);
	kernel_answer_later(kernel_clock(k), r->want.cb, r->want.data, &err);
	revival_free(r);
}

static void on_deadline(struct timer *t)
{
	struct err err;

	err_set(&err, E_TIMEOUT, "the parked state did not stand up within %d s", REVIVE_MS / 1000);
	undo(CONTAINER_OF(t, struct revival, deadline), &err);
}

/* ---- the switch ---- */

static void leave_old(struct kernel *k)
{
	kernel_death_cancel(k);
	timer_stop(kernel_clock(k), &k->start_timer);
	timer_stop(kernel_clock(k), &k->step_timer);
	kernel_drop_kept(k);
	kernel_adopt_drop(k);
	kernel_disconnect(k);
	if (!kernel_is(k, KERNEL_STARTING))
		kernel_set_state(k, KERNEL_STARTING);
}

static void take_new(struct kernel *k, struct revival *r)
{
	k->line = r->line;
	k->pid = r->pid;
	k->alive = true;
	k->handed = 0;
	memcpy(k->key, r->key, sizeof(k->key));
	memcpy(k->routing_id, r->routing_id, sizeof(k->routing_id));
	sign_done(&k->sign);
	k->sign = r->sign;
	r->sign = (struct sign){0};
	k->channels = TAKE(r->channels);
	k->reply = TAKE(r->reply);
	k->heard = k->stdin_up = true;
	k->n_nudges = 0;
	kernel_listen(k);
}

static void switch_lines(struct revival *r)
{
	struct kernel *k = r->kernel;
	const struct kernel_revival want = r->want;
	unsigned old = k->line;
	bool was_alive = k->alive;

	log_info(&k->log, "kernel_revived park=%lld line=%u was=%u", (long long)want.park, r->line,
		old);
	want.on_switch(want.data);
	leave_old(k);
	take_new(k, r);
	kernel_laying_counts(k);
	revival_free(r);
	if (k->watcher.on_record)
		k->watcher.on_record(k->watcher.data);
	if (was_alive)
		kill_line(k, old);
	kernel_become_ready(k);
	want.cb(want.data, NULL);
}

/* ---- readiness, as kernel_ready.c has it ---- */

static void go_on(struct revival *r)
{
	if (r->channels && r->reply && r->heard && r->stdin_up)
		switch_lines(r);
}

static void nudge(struct revival *r)
{
	AUTO(jmsg_unrefp) struct jmsg *m = NULL;
	struct wire_head head;
	struct err err;
	int rc = jmsg_make(
		CHANNEL_CONTROL, "kernel_info_request", r->kernel->asker, NULL, "{}", &m, &err);

	if (rc == 0) {
		wire_encode(&r->sign, m, &head);
		rc = channels_send(r->channels, CHANNEL_CONTROL, head.frames, WIRE_HEAD, &err);
	}
	if (rc < 0)
		log_debug(&r->kernel->log, "nudge_failed why=%s", err.text);
}

static void on_nudge(struct timer *t)
{
	struct revival *r = CONTAINER_OF(t, struct revival, nudge);

	nudge(r);
	timer_start(kernel_clock(r->kernel), &r->nudge, r->nudge_ms);
	r->nudge_ms = r->nudge_ms * 2 < NUDGE_MAX_MS ? r->nudge_ms * 2 : NUDGE_MAX_MS;
}

static void on_frames(void *data, enum channel channel, const struct bytes *frames, size_t n)
{
	struct revival *r = data;
	AUTO(jmsg_unrefp) struct jmsg *m = NULL;
	struct err err;

	if (channel == CHANNEL_HB || n == 0)
		return;
	if (wire_decode(&r->sign, channel, frames, n, &m, &err) < 0) {
		r->kernel->bad_frames++;
		return;
	}
	if (channel == CHANNEL_IOPUB)
		r->heard = true;
	else if (!r->reply && strcmp(m->parent_session, r->kernel->asker) == 0 &&
		 strcmp(m->msg_type, "kernel_info_reply") == 0)
		r->reply = jmsg_ref(m);
	go_on(r);
}

static void on_turn(void *data)
{
	(void)data; /* nothing of it was handed on */
}

static void on_lost(void *data, enum channel channel)
{
	(void)data, (void)channel; /* it is connected anew, or too late */
}

static void on_link(void *data, enum channel channel, bool up)
{
	struct revival *r = data;

	if (channel == CHANNEL_STDIN && up) {
		r->stdin_up = true;
		go_on(r);
	}
}

static int connect_channels(struct revival *r, struct err *err)
{
	struct kernel *k = r->kernel;
	const struct channels_watcher watcher = {.on_frames = on_frames,
		.on_turn = on_turn,
		.on_lost = on_lost,
		.on_link = on_link,
		.data = r};
	const struct channels_open open = {.endpoints = &r->endpoints,
		.routing_id = r->routing_id,
		.max_message_bytes =
			r->endpoints.trusted_hwm ? k->bridge->env.config->message_limit : 0};
	int rc = sign_init(&r->sign, r->endpoints.key, err);

	if (rc == 0)
		rc = channels_open(k->bridge->hub, &open, &watcher, &r->channels, err);
	if (rc == 0)
		timer_start(kernel_clock(k), &r->nudge, 0);
	return rc;
}

/* ---- what it says of itself ---- */

static int prove(const struct revival *r, struct err *err)
{
	const struct bytes text = {(const uint8_t *)r->said, strlen(r->said)};
	char digest[DIGEST_SIZE], why[1100];
	struct json_want error = {.key = "error"};

	if (json_scan(text, &error, 1, NULL) == 0 && json_text(error.value, why, sizeof(why)))
		return err_set(err, E_GONE, "the parked state did not stand up: %s", why);
	kernel_read_digest(text, digest);
	if (!*digest || strcmp(digest, r->digest) != 0)
		return err_set(err, E_CONFLICT,
			"what stood up is not the state that was parked: it was not used");
	return r->want.check(r->want.data, text, err);
}

static void said_or_started(struct revival *r)
{
	struct err err;

	if (!r->started || !r->said || r->channels)
		return;
	if (prove(r, &err) < 0 || connect_channels(r, &err) < 0)
		undo(r, &err);
}

void kernel_on_revived(struct kernel *k, unsigned line, struct bytes text)
{
	struct revival *r = k->revival;

	if (!r || r->line != line || r->said)
		return;
	r->said = strndup((const char *)text.data, text.len);
	said_or_started(r);
}

bool kernel_revives_line(const struct kernel *k, unsigned line)
{
	return k->revival && k->revival->line == line;
}

bool kernel_revival_started(
	struct kernel *k, unsigned line, const struct endpoints *endpoints, long pid)
{
	struct revival *r = k->revival;

	if (!r || r->line != line)
		return false;
	r->started = true;
	r->endpoints = *endpoints;
	r->pid = pid;
	said_or_started(r);
	return true;
}

bool kernel_revival_failed(struct kernel *k, unsigned line, const struct err *err)
{
	struct revival *r = k->revival;
	struct err why;

	if (!r || r->line != line)
		return false;
	err_set(&why, E_GONE, "the parked state did not stand up: %s", err->text);
	undo(r, &why);
	return true;
}

/* ---- the beginning ---- */

static int check(const struct kernel *k, int64_t park, struct err *err)
{
	bool is_up =
		kernel_is(k, KERNEL_IDLE) || kernel_is(k, KERNEL_BUSY) || kernel_is(k, KERNEL_DEAD);

	if (k->wish == WISH_END)
		return err_set(err, E_DEAD, "the kernel is ended");
	if (k->revival)
		return err_set(err, E_UNAVAILABLE, "the kernel is on its way to another state");
	if (!is_up || k->wish != WISH_RUN || k->adoption != ADOPT_NO || k->handing != HAND_NO)
		return err_set(err, E_UNAVAILABLE, "the kernel is starting");
	if (!k->place || !k->place->warm || k->slot_gone || !kernel_place_find_park(k->place, park))
		return err_set(err, E_GONE, NO_SUCH_PARK);
	if (!k->place->slot->engine->ops->revive)
		return err_set(err, E_UNAVAILABLE, "engine %s parks nothing", k->spec->engine);
	return 0;
}

static struct revival *revival_new(struct kernel *k, const struct kernel_revival *want)
{
	struct revival *r = xcalloc(1, sizeof(*r));

	r->kernel = k;
	r->want = *want;
	r->line = kernel_place_next_line(k);
	r->nudge_ms = NUDGE_MS;
	memcpy(r->digest, kernel_place_find_park(k->place, want->park)->digest, sizeof(r->digest));
	sign_fresh_key(r->key);
	crypto_random_hex(r->routing_id, (ROUTING_ID_SIZE - 1) / 2);
	timer_init(&r->deadline, on_deadline);
	timer_init(&r->nudge, on_nudge);
	k->revival = r;
	return r;
}

static int begin(struct kernel *k, const struct kernel_revival *want, struct err *err)
{
	int rc = check(k, want->park, err);
	struct revival *r;

	if (rc < 0)
		return rc;
	r = revival_new(k, want);
	const struct line_start start = {
		.line = r->line,
		.kernel_id = k->id,
		.spec = k->spec,
		.env = k->env,
		.key = r->key,
		.folder = k->folder,
	};
	/* Its number is used, whatever comes of it: the next gateway is to know. */
	if (k->watcher.on_record)
		k->watcher.on_record(k->watcher.data);
	rc = k->place->slot->engine->ops->revive(k->place->slot, &start, want->park, err);
	if (rc < 0)
		revival_free(r);
	else
		timer_start(kernel_clock(k), &r->deadline, REVIVE_MS);
	return rc;
}

void kernel_revive(struct kernel *k, const struct kernel_revival *want)
{
	struct err err;

	if (begin(k, want, &err) < 0)
		kernel_answer_later(kernel_clock(k), want->cb, want->data, &err);
}

/* ---- a kernel beside another ---- */

static int may_join(const struct kernel *of, struct err *err)
{
	const struct engine_ops *ops = of->place ? of->place->slot->engine->ops : NULL;

	if (!ops || of->slot_gone || !of->place->warm || of->wish == WISH_END || of->unowned)
		return err_set(err, E_GONE, NO_SUCH_PARK);
	if (!ops->can_branch)
		return err_set(err, E_UNAVAILABLE, "engine %s parks nothing", of->spec->engine);
	if (kernel_place_is_full(of->place))
		return err_set(err, E_CAPACITY,
			"%u branches live in this container already, which is as many as may: end "
			"the kernel of one of them first",
			BESIDE_MAX);
	return ops->can_branch(of->place->slot, err);
}

int kernel_beside(struct kernel *of, const struct kernel_start *start,
	const struct kernel_watcher *watcher, struct kernel **ret, struct err *err)
{
	struct cJSON *env = NULL;
	int rc = may_join(of, err);

	if (rc == 0)
		rc = kernel_may_start(of->bridge, err);
	if (rc == 0)
		rc = kernel_copy_env(start->env, &env, err);
	if (rc < 0)
		return rc;
	*ret = kernel_new(of->bridge, start, env, watcher);
	kernel_set_state(*ret, KERNEL_DEAD);
	kernel_place_join(of->place, *ret);
	return 0;
}

bool kernel_is_beside(const struct kernel *k, const struct kernel *other)
{
	return k->place && k->place == other->place;
}
