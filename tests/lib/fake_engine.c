#include "tests/lib/fake_engine.h"

#include <assert.h>
#include <cjson/cJSON.h>
#include <dirent.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>
#include <zmq.h>

#include "gateway/base/buf.h"
#include "kernel-bridge/wire.h"

#define HELLO_MS 5000 /* as docker_adopt.c */

struct fake_slot {
	struct slot slot;
	struct fake_engine *engine;
	unsigned line;
	bool removed;
};

static struct fake_engine *engine_of(struct slot *s)
{
	return CONTAINER_OF(s, struct fake_slot, slot)->engine;
}

/* ---- scripted kernel ---- */

static void *bind_socket(struct script_kernel *k, struct fake_engine *e, enum channel c)
{
	static const int zero = 0;
	static const int one = 1;
	static const int linger_ms = 60000; /* what was sent before the end arrives */
	char *address = k->endpoints.address[c];
	void *s = zmq_socket(e->zmq, c == CHANNEL_IOPUB ? ZMQ_PUB : ZMQ_ROUTER);

	zmq_setsockopt(s, ZMQ_LINGER, &linger_ms, sizeof(linger_ms));
	zmq_setsockopt(s, ZMQ_SNDHWM, &zero, sizeof(zero));
	if (c != CHANNEL_IOPUB) /* as ipykernel: who comes back with the same id is the one */
		zmq_setsockopt(s, ZMQ_ROUTER_HANDOVER, &one, sizeof(one));
	if (k->script.curve) {
		zmq_setsockopt(s, ZMQ_CURVE_SERVER, &one, sizeof(one));
		zmq_setsockopt(s, ZMQ_CURVE_SECRETKEY, k->endpoints.curve_secret, 41);
	}
	snprintf(address, ENDPOINT_SIZE, "ipc://%s/%u-%s", e->dir, e->serial, channel_name(c));
	if (!(c == CHANNEL_STDIN && k->script.deaf_stdin) && zmq_bind(s, address) < 0)
		abort();
	return s;
}

void script_listen_stdin(struct script_kernel *k)
{
	if (zmq_bind(k->socket[CHANNEL_STDIN], k->endpoints.address[CHANNEL_STDIN]) < 0)
		abort();
}

static struct script_kernel *script_new(struct fake_engine *e, unsigned line, const char *key)
{
	struct script_kernel *k = xcalloc(1, sizeof(*k));
	struct err err;

	k->script = e->script;
	k->line = line;
	if (k->script.curve &&
		zmq_curve_keypair(k->endpoints.curve_public, k->endpoints.curve_secret) < 0)
		abort();
	e->serial++;
	for (int c = 0; c < CHANNEL_COUNT; c++)
		k->socket[c] = bind_socket(k, e, (enum channel)c);
	snprintf(k->endpoints.key, sizeof(k->endpoints.key), "%s", key);
	k->endpoints.trusted_hwm = !e->script.foreign;
	if (sign_init(&k->sign, key, &err) < 0)
		abort();
	return k;
}

static void script_free(struct script_kernel *k)
{
	if (!k)
		return;
	for (int c = 0; c < CHANNEL_COUNT; c++) {
		if (k->socket[c])
			zmq_close(k->socket[c]);
		jmsg_unref(k->last[c]);
	}
	sign_done(&k->sign);
	free(k);
}

void script_send_raw(
	struct script_kernel *k, enum channel channel, const struct bytes *frames, size_t n)
{
	const char *ident = channel == CHANNEL_IOPUB ? "topic" : k->last_ident[channel];

	zmq_send(k->socket[channel], ident, strlen(ident), ZMQ_SNDMORE);
	for (size_t i = 0; i < n; i++)
		zmq_send(k->socket[channel], frames[i].data, frames[i].len,
			i + 1 < n ? ZMQ_SNDMORE : 0);
}

void script_send(struct script_kernel *k, enum channel channel, const char *msg_type,
	const struct jmsg *parent, const char *content)
{
	AUTO(jmsg_unrefp) struct jmsg *m = NULL;
	struct wire_head head;
	struct err err;

	if (jmsg_make(channel, msg_type, "kernel-session", parent, content, &m, &err) < 0)
		abort();
	wire_encode(&k->sign, m, &head);
	script_send_raw(k, channel, head.frames, WIRE_HEAD);
}

static void answer_info(struct script_kernel *k, enum channel c, const struct jmsg *request)
{
	k->infos++;
	if (k->script.mute || (c == CHANNEL_CONTROL && k->script.mute_control))
		return;
	if (!k->script.deaf_iopub)
		script_send(k, CHANNEL_IOPUB, "status", request, "{\"execution_state\":\"busy\"}");
	script_send(k, c, "kernel_info_reply", request, "{\"status\":\"ok\"}");
	if (!k->script.deaf_iopub)
		script_send(k, CHANNEL_IOPUB, "status", request, "{\"execution_state\":\"idle\"}");
}

static void take(struct script_kernel *k, enum channel c, struct jmsg *m)
{
	if (strcmp(m->msg_type, "kernel_info_request") == 0) {
		answer_info(k, c, m);
		return;
	}
	jmsg_unref(k->last[c]);
	k->last[c] = jmsg_ref(m);
	k->requests[c]++;
	if (strcmp(m->msg_type, "shutdown_request") == 0 && !k->script.rude)
		k->wants_exit = true;
	if (strcmp(m->msg_type, "interrupt_request") == 0 && !k->script.ignores_interrupt)
		script_send(k, c, "interrupt_reply", m, "{\"status\":\"ok\"}");
}

#define PARTS_MAX 64
static bool step_channel(struct script_kernel *k, enum channel c)
{
	AUTO(jmsg_unrefp) struct jmsg *m = NULL;
	struct bytes frames[PARTS_MAX];
	zmq_msg_t parts[PARTS_MAX];
	struct err err;
	size_t n = 0;
	bool more = true;

	while (more && n < PARTS_MAX) {
		zmq_msg_init(&parts[n]);
		if (zmq_msg_recv(&parts[n], k->socket[c], ZMQ_DONTWAIT) < 0)
			return false;
		more = zmq_msg_more(&parts[n]);
		frames[n] = (struct bytes){zmq_msg_data(&parts[n]), zmq_msg_size(&parts[n])};
		n++;
	}
	snprintf(k->last_ident[c], sizeof(k->last_ident[c]), "%.*s", (int)frames[0].len,
		(const char *)frames[0].data);
	if (c == CHANNEL_HB) {
		k->beats++;
	} else {
		if (wire_decode(&k->sign, c, frames, n, &m, &err) < 0)
			abort();
		take(k, c, m);
	}
	while (n > 0)
		zmq_msg_close(&parts[--n]);
	return true;
}

bool fake_engine_step(struct fake_engine *e)
{
	static const enum channel order[] = {
		CHANNEL_CONTROL, CHANNEL_SHELL, CHANNEL_STDIN, CHANNEL_HB};
	bool any = false;

	for (size_t i = 0; i < ARRAY_LEN(order); i++)
		while (e->kernel && step_channel(e->kernel, order[i]))
			any = true;
	if (e->kernel && e->kernel->wants_exit)
		fake_engine_exit(e, &(struct line_exit){.known = true});
	return any;
}

/* ---- what the engine says, later ---- */

enum saying { SAY_WARM, SAY_GONE, SAY_STARTED, SAY_HANDED, SAY_EXIT, SAY_REMOVED };

struct word {
	struct list link; /* in the engine's words */
	struct timer timer;
	enum saying saying;
	struct fake_slot *slot;
	unsigned line;
	struct endpoints endpoints;
	struct line_exit exit;
	void (*cb)(void *data);
	void *data;
};

static void on_removed(struct word *w)
{
	w->slot->engine->removed++;
	w->cb(w->data);
	free(w->slot);
}

static void on_word(struct timer *t)
{
	struct word *w = CONTAINER_OF(t, struct word, timer);
	const struct slot_watcher *watcher = &w->slot->slot.watcher;
	struct err err = {.code = E_ENGINE, .text = "the container went away"};

	list_remove(&w->link);
	if (w->saying == SAY_REMOVED)
		on_removed(w);
	else if (w->slot->removed)
		; /* the watcher hears nothing any more */
	else if (w->saying == SAY_WARM)
		watcher->on_warm(watcher->data);
	else if (w->saying == SAY_GONE)
		watcher->on_gone(watcher->data, &w->exit, &err);
	else if (w->saying == SAY_STARTED)
		watcher->on_started(watcher->data, w->line, &w->endpoints, 4711);
	else if (w->saying == SAY_HANDED)
		watcher->on_handed_over(watcher->data, w->line);
	else
		watcher->on_exit(watcher->data, w->line, &w->exit);
	free(w);
}

static struct word *say(struct fake_slot *s, enum saying saying)
{
	struct word *w = xcalloc(1, sizeof(*w));

	w->saying = saying;
	w->slot = s;
	w->line = s->line;
	list_append(&s->engine->words, &w->link);
	timer_init(&w->timer, on_word);
	timer_start(s->engine->env.clock, &w->timer, 0);
	return w;
}

/* Of a slot that is left: nobody is there to hear them. */
static void drop_words(struct fake_engine *e, const struct fake_slot *s)
{
	LIST_EACH_SAFE (at, &e->words) {
		struct word *w = CONTAINER_OF(at, struct word, link);

		if (w->slot != s)
			continue;
		timer_stop(e->env.clock, &w->timer);
		list_remove(at);
		free(w);
	}
}

void fake_engine_exit(struct fake_engine *e, const struct line_exit *exit)
{
	/* The sockets go down with the process; what is in the pipes arrives. */
	script_free(TAKE(e->kernel));
	if (!e->tells_nothing)
		say(e->slot, SAY_EXIT)->exit = *exit;
}

void fake_engine_lose_slot(struct fake_engine *e)
{
	script_free(TAKE(e->kernel));
	say(e->slot, SAY_GONE);
}

static bool faulty(struct fake_engine *e, struct err *err)
{
	if (e->fault == 0 || --e->fault > 0)
		return false;
	e->fault_met = true;
	err_set(err, E_ENGINE, "injected fault");
	return true;
}

/* ---- the table ---- */

static struct fake_slot *slot_new(struct fake_engine *e, const struct slot_watcher *watcher)
{
	struct fake_slot *s = xcalloc(1, sizeof(*s));

	s->engine = e;
	s->slot.engine = &e->engine;
	s->slot.watcher = *watcher;
	e->slot = s;
	return s;
}

static int fake_launch(struct engine *engine, const struct kernelspec *spec, const char *owner,
	const struct slot_watcher *watcher, struct slot **ret, struct err *err)
{
	struct fake_engine *e = CONTAINER_OF(engine, struct fake_engine, engine);
	struct fake_slot *s;

	(void)spec, (void)owner;
	if (faulty(e, err))
		return E_ENGINE;
	s = slot_new(e, watcher);
	e->launched++;
	if (!e->hangs_launch)
		say(s, SAY_WARM);
	*ret = &s->slot;
	return 0;
}

static void note_start(struct fake_engine *e, const struct line_start *start)
{
	AUTO(freep) char *env = start->env ? cJSON_PrintUnformatted(start->env) : NULL;

	snprintf(e->kernel_id, sizeof(e->kernel_id), "%s", start->kernel_id);
	snprintf(e->kernel_env, sizeof(e->kernel_env), "%s", env ? env : "");
}

static int fake_start(struct slot *slot, const struct line_start *start, struct err *err)
{
	struct fake_engine *e = engine_of(slot);
	struct fake_slot *s = CONTAINER_OF(slot, struct fake_slot, slot);

	if (faulty(e, err))
		return E_ENGINE;
	s->line = start->line;
	e->started++;
	note_start(e, start);
	script_free(e->kernel);
	e->kernel = script_new(e, start->line, start->key);
	if (!e->hangs_start)
		say(s, SAY_STARTED)->endpoints = e->kernel->endpoints;
	return 0;
}

static int fake_signal(struct slot *slot, unsigned line, int signo, struct err *err)
{
	struct fake_engine *e = engine_of(slot);

	(void)line;
	if (faulty(e, err))
		return E_UNAVAILABLE;
	assert(signo == SIGINT);
	e->signals++;
	return 0;
}

static int fake_kill_line(struct slot *slot, unsigned line, struct err *err)
{
	struct fake_engine *e = engine_of(slot);

	if (faulty(e, err))
		return E_ENGINE;
	e->killed++;
	if (!e->hangs_kill && e->kernel && e->kernel->line == line)
		fake_engine_exit(e, &(struct line_exit){.known = true, .signal = SIGKILL});
	return 0;
}

static void fake_remove(struct slot *slot, void (*cb)(void *data), void *data)
{
	struct fake_engine *e = engine_of(slot);
	struct fake_slot *s = CONTAINER_OF(slot, struct fake_slot, slot);
	struct word *w = say(s, SAY_REMOVED);

	s->removed = true;
	if (e->slot == s) {
		e->slot = NULL;
		script_free(TAKE(e->kernel));
	}
	w->cb = cb;
	w->data = data;
}

static struct cJSON *fake_slot_row(const struct slot *slot)
{
	cJSON *row = cJSON_CreateObject();

	(void)slot;
	cJSON_AddStringToObject(row, "slot", "fake");
	return row;
}

/* The kernel lives on. */
static void fake_leave(struct slot *slot)
{
	struct fake_engine *e = engine_of(slot);
	struct fake_slot *s = CONTAINER_OF(slot, struct fake_slot, slot);

	drop_words(e, s);
	e->slot = NULL;
	free(s);
}

/* What docker_adopt.c tells in each case. */
static void say_found(struct fake_slot *s)
{
	struct fake_engine *e = s->engine;

	if (e->left == LEFT_SILENT) {
		timer_start(e->env.clock, &say(s, SAY_GONE)->timer, HELLO_MS);
		return;
	}
	say(s, SAY_WARM);
	if (e->left == LEFT_EXITED || !e->kernel)
		fake_engine_exit(e, &(struct line_exit){.known = true, .code = 3});
	else
		say(s, SAY_STARTED)->endpoints = e->kernel->endpoints;
}

static int fake_adopt(struct engine *engine, const struct kernelspec *spec,
	const struct slot_adopt *adopt, const struct slot_watcher *watcher, struct slot **ret,
	struct err *err)
{
	struct fake_engine *e = CONTAINER_OF(engine, struct fake_engine, engine);
	struct fake_slot *s;

	(void)spec;
	if (faulty(e, err))
		return E_ENGINE;
	if (e->left == LEFT_GONE)
		return err_set(err, E_NOT_FOUND, "its folder is gone");
	assert(cJSON_IsObject(adopt->row));
	s = slot_new(e, watcher);
	s->line = adopt->line;
	e->adopted++;
	if (adopt->line > 0)
		say_found(s);
	else
		say(s, SAY_WARM);
	*ret = &s->slot;
	return 0;
}

static int fake_replay(
	struct slot *slot, unsigned line, char *const after[CHANNEL_HB], struct err *err)
{
	struct fake_engine *e = engine_of(slot);

	assert(line == e->slot->line);
	if (faulty(e, err))
		return E_ENGINE;
	if (e->keeps_nothing)
		return err_set(err, E_UNAVAILABLE, "nothing was kept");
	for (int c = 0; c < CHANNEL_HB; c++)
		snprintf(e->after[c], sizeof(e->after[c]), "%s", after[c] ? after[c] : "");
	e->replays++;
	return 0;
}

void fake_engine_keeps_raw(struct fake_engine *e, enum channel channel, struct bytes all)
{
	const struct slot_watcher *w = &e->slot->slot.watcher;

	w->on_kept(w->data, e->slot->line, channel, all);
}

void fake_engine_keeps(struct fake_engine *e, enum channel channel, const struct jmsg *m)
{
	AUTO(buf_done) struct buf all;
	struct wire_head head;

	wire_encode(&e->kernel->sign, m, &head);
	buf_init(&all, 64 << 20);
	for (size_t i = 0; i < WIRE_HEAD; i++) {
		size_t len = head.frames[i].len;
		const uint8_t size[4] = {(uint8_t)(len >> 24), (uint8_t)(len >> 16),
			(uint8_t)(len >> 8), (uint8_t)len};

		buf_add(&all, size, sizeof(size));
		buf_add(&all, head.frames[i].data, len);
	}
	if (all.failed)
		abort();
	fake_engine_keeps_raw(e, channel, (struct bytes){all.data, all.len});
}

void fake_engine_kept_end(struct fake_engine *e, int64_t lost)
{
	const struct slot_watcher *w = &e->slot->slot.watcher;

	w->on_kept_end(w->data, e->slot->line, lost);
}

static int fake_can_hand_over(struct slot *slot, struct err *err)
{
	return engine_of(slot)->no_pool ? err_set(err, E_UNAVAILABLE, "an older image") : 0;
}

static int fake_hand_over(struct slot *slot, const struct line_start *start, struct err *err)
{
	struct fake_engine *e = engine_of(slot);

	if (faulty(e, err))
		return E_ENGINE;
	e->handed++;
	note_start(e, start);
	if (!e->hangs_hand_over)
		say(CONTAINER_OF(slot, struct fake_slot, slot), SAY_HANDED);
	return 0;
}

static void fake_limit(struct slot *slot)
{
	engine_of(slot)->limited++;
}

static void fake_sweep(struct engine *e, void (*cb)(void *data), void *data)
{
	(void)e;
	cb(data);
}

static struct cJSON *fake_report(const struct engine *e)
{
	(void)e;
	return cJSON_CreateObject();
}

static struct cJSON *fake_slot_report(const struct slot *s)
{
	(void)s;
	return cJSON_CreateObject();
}

static int fake_specs(struct engine *e, struct list *specs, struct err *err)
{
	(void)e; /* tests start kernels from fake_engine.spec */
	(void)specs, (void)err;
	return 0;
}

/* libzmq leaves its socket files. */
static void remove_dir(const char *path)
{
	DIR *dir = opendir(path);
	struct dirent *entry;

	while (dir && (entry = readdir(dir)))
		(void)unlinkat(dirfd(dir), entry->d_name, 0); /* . and .. are no files */
	if (dir)
		closedir(dir);
	if (rmdir(path) < 0)
		abort();
}

static void fake_close(struct engine *engine, void (*cb)(void *data), void *data)
{
	struct fake_engine *e = CONTAINER_OF(engine, struct fake_engine, engine);

	script_free(e->kernel);
	zmq_ctx_term(e->zmq);
	remove_dir(e->dir);
	free(e);
	cb(data);
}

static const struct engine_ops fake_ops = {
	.launch = fake_launch,
	.start = fake_start,
	.signal = fake_signal,
	.kill_line = fake_kill_line,
	.remove = fake_remove,
	.adopt = fake_adopt,
	.slot_row = fake_slot_row,
	.leave = fake_leave,
	.replay = fake_replay,
	.can_hand_over = fake_can_hand_over,
	.hand_over = fake_hand_over,
	.limit = fake_limit,
	.sweep = fake_sweep,
	.report = fake_report,
	.slot_report = fake_slot_report,
	.specs = fake_specs,
	.close = fake_close,
};

struct fake_engine *fake_engine_new(const struct bridge_env *env)
{
	struct fake_engine *e = xcalloc(1, sizeof(*e));

	e->engine.ops = &fake_ops;
	e->engine.name = "fake";
	e->env = *env;
	list_init(&e->words);
	e->zmq = zmq_ctx_new();
	snprintf(e->dir, sizeof(e->dir), "/tmp/fake_engine.XXXXXX");
	if (!mkdtemp(e->dir))
		abort();
	e->spec = (struct kernelspec){.name = "fake",
		.engine = "fake",
		.interrupt_mode = INTERRUPT_MESSAGE,
		.cull_idle_ms = -1};
	return e;
}
