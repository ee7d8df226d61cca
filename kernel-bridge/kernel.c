/* The life of one kernel: its slot, its lines, its state, what is sent to it. */
#include "kernel-bridge/kernel_adopt.h"
#include "kernel-bridge/kernel_folder.h"
#include "kernel-bridge/kernel_interrupt.h"
#include "kernel-bridge/kernel_launch.h"
#include "kernel-bridge/kernel_limit.h"
#include "kernel-bridge/kernel_place.h"
#include "kernel-bridge/kernel_pool.h"
#include "kernel-bridge/kernel_revive.h"

#include <assert.h>
#include <cjson/cJSON.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#define SOCKETS_PER_KERNEL 10 /* libzmq counts both ends of a monitor */
#define ENV_VALUE_MAX	   4096
#define ENV_MAX		   (32u << 10)
#define KEPT_MAX_BYTES	   (64u << 20)

/*
 *   starting --ready--> idle <--status--> busy
 *      ^                                    any --exit--> dead --restart--> starting
 *      +----- restart (from idle, busy) ----+
 */
static const struct sm_state kernel_states[KERNEL_STATES] = {
	[KERNEL_STARTING] = {"starting", TO(KERNEL_IDLE) | TO(KERNEL_DEAD)},
	[KERNEL_IDLE] = {"idle", TO(KERNEL_BUSY) | TO(KERNEL_STARTING) | TO(KERNEL_DEAD)},
	[KERNEL_BUSY] = {"busy", TO(KERNEL_IDLE) | TO(KERNEL_STARTING) | TO(KERNEL_DEAD)},
	[KERNEL_DEAD] = {"dead", TO(KERNEL_STARTING)},
};

void kernel_set_state(struct kernel *k, enum kernel_state state)
{
	sm_move(&k->sm, state);
	list_remove(&k->link);
	list_append(&k->bridge->kernels[state], &k->link);
}

enum kernel_state kernel_state(const struct kernel *k)
{
	return (enum kernel_state)k->sm.state;
}

void kernel_set_busy(struct kernel *k, bool busy)
{
	/* A status that was on its way while the kernel died or was restarted says nothing. */
	if (!kernel_is(k, KERNEL_IDLE) && !kernel_is(k, KERNEL_BUSY))
		return;
	if (!busy)
		kernel_interrupt_cancel(k);
	if (kernel_is(k, KERNEL_BUSY) != busy)
		kernel_set_state(k, busy ? KERNEL_BUSY : KERNEL_IDLE);
}

const struct kernelspec *kernel_spec(const struct kernel *k)
{
	return k->spec;
}

/* ---- environment ---- */

static bool is_name(const char *name)
{
	if (!*name || (*name >= '0' && *name <= '9'))
		return false;
	return name[strspn(name,
		       "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_")] == '\0';
}

/* Names that no process can be given are left out: a proxy passes on all that it has. */
int kernel_copy_env(const struct cJSON *env, struct cJSON **ret, struct err *err)
{
	struct cJSON *copy = cJSON_CreateObject();
	const struct cJSON *item;
	size_t total = 0;
	int rc = 0;

	/* What is in a list has no name. */
	if (env && !cJSON_IsNull(env) && !cJSON_IsObject(env)) {
		rc = err_set(err, E_INVALID, "env is not an object");
		env = NULL;
	}
	cJSON_ArrayForEach (item, env) {
		if (!cJSON_IsString(item))
			rc = err_set(err, E_INVALID, "env: %.64s is not a string", item->string);
		else if (strlen(item->valuestring) > ENV_VALUE_MAX)
			rc = err_set(err, E_INVALID, "env: %.64s is longer than %d bytes",
				item->string, ENV_VALUE_MAX);
		if (rc < 0)
			break;
		if (!is_name(item->string))
			continue;
		total += strlen(item->string) + strlen(item->valuestring) + 2;
		cJSON_AddStringToObject(copy, item->string, item->valuestring);
	}
	if (rc == 0 && total > ENV_MAX)
		rc = err_set(err, E_INVALID, "env: more than %u bytes together", ENV_MAX);
	if (rc < 0) {
		cJSON_Delete(copy);
		return rc;
	}
	*ret = copy;
	return 0;
}

/* ---- slots and lines ---- */

static void on_start_timeout(struct timer *t)
{
	struct kernel *k = CONTAINER_OF(t, struct kernel, start_timer);
	char why[128];

	if (k->adoption == ADOPT_REPLAYS) {
		kernel_adopt_timeout(k);
		return;
	}
	if (kernel_hand_over_failed(k))
		return;
	snprintf(why, sizeof(why), "it was not ready within %lld s",
		(long long)(k->bridge->env.config->start_timeout / 1000));
	kernel_fail(k, why);
}

static void start_line(struct kernel *k)
{
	k->line = kernel_place_next_line(k);
	struct line_start start = {
		.line = k->line,
		.kernel_id = k->unowned ? "" : k->id,
		.spec = k->spec,
		.env = k->env,
		.key = k->key,
		.folder = k->folder,
	};
	struct err err = {0};

	sign_fresh_key(k->key);
	crypto_random_hex(k->routing_id, (ROUTING_ID_SIZE - 1) / 2);
	k->alive = true;
	k->pid = 0;
	k->handed = 0;
	if (k->watcher.on_record)
		k->watcher.on_record(k->watcher.data);
	if (k->place->slot->engine->ops->start(k->place->slot, &start, &err) < 0) {
		k->alive = false;
		kernel_fail_later(k, err.text);
	}
}

void kernel_on_warm(struct kernel *k)
{
	struct err err;

	if (k->unowned && !kernel_can_wait(k, &err)) {
		kernel_fail(k, err.text);
		return;
	}
	if (k->adoption == ADOPT_NO || k->line == 0) {
		k->adoption = ADOPT_NO; /* it was not begun when the earlier gateway ended */
		timer_start(kernel_clock(k), &k->start_timer,
			(uint64_t)k->bridge->env.config->start_timeout);
		start_line(k);
	}
}

void kernel_on_started(struct kernel *k, unsigned line, const struct endpoints *endpoints, long pid)
{
	struct err err;

	if (kernel_revival_started(k, line, endpoints, pid))
		return;
	if (line != k->line || !k->alive || k->channels)
		return;
	k->pid = pid;
	log_info(&k->log, "kernel_started line=%u pid=%ld", line, pid);
	if (kernel_connect(k, endpoints, &err) < 0)
		kernel_fail(k, err.text);
	else
		kernel_answer_restarts(k, NULL);
}

void kernel_on_start_failed(struct kernel *k, unsigned line, const struct err *err)
{
	if (kernel_revival_failed(k, line, err) || line != k->line || !k->alive)
		return;
	k->alive = false;
	if (k->wish == WISH_RUN)
		kernel_fail(k, err->text);
	else
		kernel_wish_next(k);
}

void kernel_answer(struct kernel *k, int64_t id, const char *status, struct bytes text)
{
	if (k->place && k->alive && k->place->slot->engine->ops->answer)
		k->place->slot->engine->ops->answer(k->place->slot, k->line, id, status, text);
}

void kernel_begin(struct kernel *k)
{
	struct err err = {0};

	timer_start(
		kernel_clock(k), &k->start_timer, (uint64_t)k->bridge->env.config->start_timeout);
	if (k->place && k->place->warm)
		start_line(k);
	else if (!k->place && kernel_launch(k, &err) < 0)
		kernel_fail_later(k, err.text);
}

void kernel_drop_slot(struct kernel *k)
{
	kernel_revival_cancel(k, E_GONE, "the kernel's container is gone");
	kernel_limit_cancel(k, E_GONE, "its container is gone");
	kernel_laying_lost(k);
	kernel_launch_over(k);
	if (k->place && kernel_place_leave(k))
		k->n_removing++;
	k->slot_gone = k->alive = false;
}

/* ---- starting and freeing ---- */

static void kernel_init(struct kernel *k, struct bridge *b, const struct kernel_start *start)
{
	k->bridge = b;
	k->spec = start->spec;
	k->owner = xstrdup(start->owner ? start->owner : "");
	k->folder = xstrdup(start->folder ? start->folder : "");
	k->unowned = !start->id;
	if (start->id)
		(void)copy_text(k->id, sizeof(k->id), start->id, strlen(start->id)); /* fits */
	log_child(&k->log, b->env.log, "kernel", start->id ? k->id : "nobody's");
	sm_init(&k->sm, "kernel", kernel_states, KERNEL_STATES, KERNEL_STARTING, &k->log);
	list_init(&k->link);
	list_init(&k->kept);
	list_init(&k->restarts);
	(void)copy_text(k->asker, sizeof(k->asker), b->session, strlen(b->session)); /* fits */
	kernel_adopt_init(k);
	list_init(&k->beside);
	kernel_launch_init(k);
	timer_init(&k->start_timer, on_start_timeout);
	kernel_ready_init(k);
	kernel_death_init(k);
	kernel_end_init(k);
	kernel_interrupt_init(k);
	list_append(&b->kernels[KERNEL_STARTING], &k->link);
	b->n_kernels++;
	b->n_unowned += k->unowned ? 1 : 0;
}

void kernel_free(struct kernel *k)
{
	struct timer *timers[] = {&k->start_timer, &k->nudge_timer, &k->stdin_timer,
		&k->quiet_timer, &k->beat_timer, &k->fail_timer, &k->interrupt_timer,
		&k->gate_timer, &k->step_timer, &k->deadline_timer, &k->free_timer};

	assert(!k->place && !k->channels && k->n_removing == 0 && list_empty(&k->restarts));
	assert(!k->revival);
	kernel_limit_cancel(k, E_DEAD, "the kernel is ended");
	kernel_laying_drop(k);
	for (size_t i = 0; i < ARRAY_LEN(timers); i++)
		timer_stop(kernel_clock(k), timers[i]);
	kernel_drop_kept(k);
	kernel_adopt_drop(k);
	kernel_launch_over(k);
	list_remove(&k->link);
	struct bridge *b = k->bridge;
	b->n_unowned -= k->unowned ? 1 : 0;
	jmsg_unref(k->info);
	sign_done(&k->sign);
	cJSON_Delete(k->env);
	free(k->owner);
	free(k->folder);
	free(k);
	bridge_kernel_freed(b);
}

struct kernel *kernel_new(struct bridge *b, const struct kernel_start *start, struct cJSON *env,
	const struct kernel_watcher *watcher)
{
	struct kernel *k = xcalloc(1, sizeof(*k));

	kernel_init(k, b, start);
	k->env = env;
	k->watcher = *watcher;
	return k;
}

int kernel_may_start(const struct bridge *b, struct err *err)
{
	if ((int64_t)(b->n_kernels - b->n_unowned) < b->env.config->max_kernels)
		return 0;
	return err_set(err, E_CAPACITY, "the limit of %lld kernels is reached",
		(long long)b->env.config->max_kernels);
}

int kernel_start(struct bridge *b, const struct kernel_start *start,
	const struct kernel_watcher *watcher, struct kernel **ret, struct err *err)
{
	struct kernel *k;
	struct cJSON *env = NULL;
	int rc = kernel_copy_env(start->env, &env, err);

	if (rc < 0)
		return rc;
	rc = start->id ? kernel_may_start(b, err) : 0;
	if (rc < 0) {
		cJSON_Delete(env);
		return rc;
	}
	k = kernel_new(b, start, env, watcher);
	rc = kernel_launch(k, err);
	if (rc < 0) {
		kernel_free(k);
		return rc;
	}
	*ret = k;
	return 0;
}

/* ---- sending ---- */

static int send_now(struct kernel *k, const struct jmsg *m, struct err *err)
{
	struct bytes few[WIRE_HEAD + 16];
	struct bytes *frames = few;
	struct wire_head head;
	int rc = wire_encode(&k->sign, m, &head);

	if (rc < 0)
		return err_set(err, rc, "a message to the kernel: out of memory");
	if (m->n_buffers > 16)
		frames = xcalloc(WIRE_HEAD + m->n_buffers, sizeof(*frames));
	memcpy(frames, head.frames, sizeof(head.frames));
	if (m->n_buffers > 0)
		memcpy(frames + WIRE_HEAD, m->buffers, m->n_buffers * sizeof(*frames));
	rc = channels_send(k->channels, m->channel, frames, WIRE_HEAD + m->n_buffers, err);
	if (frames != few)
		free(frames);
	if (rc == 0)
		k->sent++;
	return rc;
}

static int keep(struct kernel *k, const struct jmsg *m, struct err *err)
{
	struct kept *kept;

	if (k->kept_bytes + m->frame.len > KEPT_MAX_BYTES && !list_empty(&k->kept))
		return err_set(err, E_UNAVAILABLE, "too much waits for the kernel to be ready");
	kept = xcalloc(1, sizeof(*kept));
	kept->m = jmsg_ref((struct jmsg *)m); /* counting is no change of the message */
	k->kept_bytes += m->frame.len;
	list_append(&k->kept, &kept->link);
	return 0;
}

static struct jmsg *take_kept(struct kernel *k)
{
	struct kept *kept = CONTAINER_OF(k->kept.next, struct kept, link);
	struct jmsg *m = kept->m;

	list_remove(&kept->link);
	free(kept);
	k->kept_bytes -= m->frame.len;
	return m;
}

void kernel_flush_kept(struct kernel *k)
{
	struct err err;

	while (!list_empty(&k->kept) && k->channels && !kernel_interrupt_gate(k)) {
		AUTO(jmsg_unrefp) struct jmsg *m = take_kept(k);

		if (send_now(k, m, &err) < 0)
			kernel_notice(k, "a %s could not be sent: %s", m->msg_type, err.text);
	}
}

void kernel_drop_kept(struct kernel *k)
{
	while (!list_empty(&k->kept))
		jmsg_unref(take_kept(k));
}

int kernel_send(struct kernel *k, const struct jmsg *m, struct err *err)
{
	bool cell = strcmp(m->msg_type, "execute_request") == 0;

	if (kernel_is(k, KERNEL_DEAD) || k->dying)
		return err_set(err, E_DEAD, "the kernel is dead");
	if (m->channel == CHANNEL_IOPUB || m->channel >= CHANNEL_HB)
		return err_set(
			err, E_INVALID, "nothing can be sent on %s", channel_name(m->channel));
	if (kernel_is(k, KERNEL_STARTING))
		return keep(k, m, err);
	/* The escalation of an earlier interrupt must not hit this cell. */
	if (cell)
		kernel_interrupt_cancel(k);
	if (m->channel == CHANNEL_SHELL && (!list_empty(&k->kept) || kernel_interrupt_gate(k)))
		return keep(k, m, err);
	if (m->channel == CHANNEL_CONTROL && strcmp(m->msg_type, "interrupt_request") == 0)
		kernel_interrupt_asked(k);
	return send_now(k, m, err);
}

int kernel_ask(struct kernel *k, enum channel channel, const char *msg_type, const char *content,
	struct err *err)
{
	AUTO(jmsg_unrefp) struct jmsg *m = NULL;
	int rc = jmsg_make(channel, msg_type, k->asker, NULL, content, &m, err);

	if (rc == 0)
		rc = send_now(k, m, err);
	return rc;
}

void kernel_written(struct kernel *k, enum channel channel, const char *msg_id)
{
	if (k->place && k->alive && k->place->slot->engine->ops->ack)
		k->place->slot->engine->ops->ack(k->place->slot, k->line, channel, msg_id);
}

void kernel_hold(struct kernel *k, bool hold)
{
	k->held = hold;
	if (k->channels)
		channels_hold(k->channels, hold);
}

void kernel_notice(struct kernel *k, const char *format, ...)
{
	char text[512];
	va_list args;

	if (k->wish == WISH_END)
		return;
	va_start(args, format);
	vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	k->watcher.on_notice(k->watcher.data, text);
}

/* ---- answers, report, bridge ---- */

struct answer {
	struct timer timer;
	void (*cb)(void *data, const struct err *err);
	void *data;
	struct err err;
};

static void on_answer(struct timer *t)
{
	struct answer *a = CONTAINER_OF(t, struct answer, timer);

	a->cb(a->data, a->err.code ? &a->err : NULL);
	free(a);
}

void kernel_answer_later(struct clock *clock, void (*cb)(void *data, const struct err *err),
	void *data, const struct err *err)
{
	struct answer *a = xcalloc(1, sizeof(*a));

	a->cb = cb;
	a->data = data;
	if (err)
		a->err = *err;
	timer_init(&a->timer, on_answer);
	timer_start(clock, &a->timer, 0);
}

const char *kernel_folder(const struct kernel *k)
{
	return k->folder;
}

const char *kernel_environment(const struct kernel *k)
{
	const struct engine_ops *ops = k->place ? k->place->slot->engine->ops : NULL;

	return ops && ops->environment ? ops->environment(k->place->slot) : "";
}

struct cJSON *kernel_report(const struct kernel *k)
{
	struct cJSON *tree = cJSON_CreateObject();

	cJSON_AddStringToObject(tree, "state", sm_name(&k->sm));
	cJSON_AddStringToObject(tree, "engine", k->spec->engine);
	cJSON_AddNumberToObject(tree, "line", k->line);
	cJSON_AddNumberToObject(tree, "pid", (double)k->pid);
	cJSON_AddBoolToObject(tree, "held", k->held);
	cJSON_AddNumberToObject(tree, "bad_frames", (double)k->bad_frames);
	cJSON_AddNumberToObject(tree, "sent", (double)k->sent);
	cJSON_AddNumberToObject(tree, "received", (double)k->received);
	cJSON_AddNumberToObject(tree, "lost_connections", (double)k->lost);
	cJSON_AddItemToObject(tree, "slot",
		k->place ? k->place->slot->engine->ops->slot_report(k->place->slot)
			 : cJSON_CreateNull());
	return tree;
}

int bridge_kernels_init(struct bridge *b, struct err *err)
{
	for (int i = 0; i < KERNEL_STATES; i++)
		list_init(&b->kernels[i]);
	list_init(&b->launches);
	list_init(&b->places);
	crypto_uuid(b->session);
	return channel_hub_new(b->env.loop, b->env.clock,
		(b->env.config->max_kernels + b->env.config->pool_max + 8) * SOCKETS_PER_KERNEL,
		&b->hub, err);
}

void bridge_kernels_done(struct bridge *b, void (*cb)(void *data), void *data)
{
	if (b->hub)
		channel_hub_close(TAKE(b->hub), cb, data);
	else
		cb(data);
}
