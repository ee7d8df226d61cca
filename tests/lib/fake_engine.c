#include "tests/lib/fake_engine.h"

#include <assert.h>
#include <cjson/cJSON.h>
#include <dirent.h>
#include <signal.h>
#include <stdarg.h>
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
	char name[24];
	bool removed;
};

static struct fake_engine *engine_of(struct slot *s)
{
	return CONTAINER_OF(s, struct fake_slot, slot)->engine;
}

bool fake_engine_step(struct fake_engine *e)
{
	bool any = script_step(e->kernel);

	any = script_step(e->second) || any;
	if (e->kernel && e->kernel->wants_exit)
		fake_engine_exit(e, &(struct line_exit){.known = true});
	if (e->second && e->second->wants_exit)
		fake_engine_exit_second(e, &(struct line_exit){.known = true});
	return any;
}

/* ---- what the engine says, later ---- */

enum saying { SAY_WARM, SAY_GONE, SAY_STARTED, SAY_HANDED, SAY_EXIT, SAY_LOOKED, SAY_REMOVED };

struct word {
	struct list link; /* in the engine's words */
	struct timer timer;
	enum saying saying;
	struct fake_slot *slot;
	unsigned line;
	struct endpoints endpoints;
	struct line_exit exit;
	void (*cb)(void *data);
	void (*looked)(void *data, const struct err *left);
	void *data;
};

static void on_removed(struct word *w)
{
	w->slot->engine->removed++;
	w->cb(w->data);
	free(w->slot);
}

static void tell_looked(const struct word *w)
{
	const char *left = w->slot->engine->stays;
	struct err err;

	if (left)
		err_set(&err, E_BUSY, "%s", left);
	w->looked(w->data, left ? &err : NULL);
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
	else if (w->saying == SAY_LOOKED)
		tell_looked(w);
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
	struct word *w = e->tells_nothing ? NULL : say(e->slot, SAY_EXIT);

	if (w)
		w->exit = *exit;
	/* The sockets go down with the process; what is in the pipes arrives. */
	script_free(TAKE(e->kernel));
	e->kernel = TAKE(e->second);
	if (e->kernel)
		e->slot->line = e->kernel->line;
}

void fake_engine_exit_second(struct fake_engine *e, const struct line_exit *exit)
{
	struct word *w = say(e->slot, SAY_EXIT);

	w->exit = *exit;
	w->line = e->second->line;
	script_free(TAKE(e->second));
}

void fake_engine_lose_slot(struct fake_engine *e)
{
	script_free(TAKE(e->kernel));
	script_free(TAKE(e->second));
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
	snprintf(s->name, sizeof(s->name), "fake-%u", e->launched);
	if (!e->hangs_launch)
		say(s, SAY_WARM);
	*ret = &s->slot;
	return 0;
}

static void note_start(struct fake_engine *e, const struct line_start *start)
{
	AUTO(freep) char *env = start->env ? cJSON_PrintUnformatted(start->env) : NULL;

	snprintf(e->folder, sizeof(e->folder), "%s", start->folder ? start->folder : "");
	snprintf(e->kernel_id, sizeof(e->kernel_id), "%s", start->kernel_id);
	snprintf(e->kernel_env, sizeof(e->kernel_env), "%s", env ? env : "");
}

/* Beside the one that lives, or in its place. */
static void add_line(struct fake_slot *s, const struct line_start *start)
{
	struct fake_engine *e = s->engine;
	struct script_kernel *k = script_new(e, start->line, start->key);

	if (!e->hangs_start) {
		struct word *w = say(s, SAY_STARTED);

		w->line = start->line;
		w->endpoints = k->endpoints;
	}
	if (e->kernel) {
		assert(!e->second);
		e->second = k;
	} else {
		e->kernel = k;
		s->line = start->line;
	}
}

static int fake_start(struct slot *slot, const struct line_start *start, struct err *err)
{
	struct fake_engine *e = engine_of(slot);
	struct fake_slot *s = CONTAINER_OF(slot, struct fake_slot, slot);

	if (faulty(e, err))
		return E_ENGINE;
	e->started++;
	note_start(e, start);
	add_line(s, start);
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
	if (e->second && e->second->line == line)
		fake_engine_exit_second(e, &(struct line_exit){.known = true, .signal = SIGKILL});
	else if (!e->hangs_kill && e->kernel && e->kernel->line == line)
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
		script_free(TAKE(e->second));
	}
	w->cb = cb;
	w->data = data;
}

static struct cJSON *fake_slot_row(const struct slot *slot)
{
	cJSON *row = cJSON_CreateObject();

	cJSON_AddStringToObject(row, "slot", CONTAINER_OF(slot, struct fake_slot, slot)->name);
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

static struct script_kernel *script_of(struct fake_engine *e, unsigned line)
{
	if (e->kernel && e->kernel->line == line)
		return e->kernel;
	return e->second && e->second->line == line ? e->second : NULL;
}

static void say_line(struct fake_slot *s, unsigned line)
{
	struct fake_engine *e = s->engine;
	const struct script_kernel *k = e->left == LEFT_EXITED ? NULL : script_of(e, line);
	struct word *w = say(s, k ? SAY_STARTED : SAY_EXIT);

	w->line = line;
	if (k)
		w->endpoints = k->endpoints;
	else
		w->exit = (struct line_exit){.known = true, .code = 3};
}

/* What docker_adopt.c tells in each case. */
static void say_found(struct fake_slot *s, unsigned line)
{
	struct fake_engine *e = s->engine;

	if (e->left == LEFT_SILENT) {
		timer_start(e->env.clock, &say(s, SAY_GONE)->timer, HELLO_MS);
		return;
	}
	say(s, SAY_WARM);
	say_line(s, line);
	if (e->left == LEFT_EXITED)
		script_free(TAKE(e->kernel));
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
	s->line = e->kernel ? e->kernel->line : adopt->line;
	(void)snprintf(e->lay, sizeof(e->lay), "%s", adopt->lay); /* fits */
	snprintf(s->name, sizeof(s->name), "%s",
		cJSON_GetStringValue(cJSON_GetObjectItem(adopt->row, "slot")));
	e->adopted++;
	if (adopt->line > 0)
		say_found(s, adopt->line);
	else
		say(s, SAY_WARM);
	*ret = &s->slot;
	return 0;
}

static int fake_adopt_line(struct slot *slot, const struct slot_adopt *adopt, struct err *err)
{
	struct fake_engine *e = engine_of(slot);

	if (faulty(e, err))
		return E_ENGINE;
	e->adopted++;
	say_line(CONTAINER_OF(slot, struct fake_slot, slot), adopt->line);
	return 0;
}

static int fake_replay(
	struct slot *slot, unsigned line, char *const after[CHANNEL_HB], struct err *err)
{
	struct fake_engine *e = engine_of(slot);

	assert(script_of(e, line));
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

void fake_engine_kept_end_of(struct fake_engine *e, unsigned line, int64_t lost)
{
	const struct slot_watcher *w = &e->slot->slot.watcher;

	w->on_kept_end(w->data, line, lost);
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

#include "tests/lib/fake_engine_parks.h"

#include "tests/lib/fake_engine_files.h"

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
	script_free(e->second);
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
	.adopt_line = fake_adopt_line,
	.slot_row = fake_slot_row,
	.leave = fake_leave,
	.replay = fake_replay,
	.can_hand_over = fake_can_hand_over,
	.hand_over = fake_hand_over,
	.revive = fake_revive,
	.look = fake_look,
	.release = fake_release,
	.files = &fake_files_ops,
	.can_branch = fake_can_branch,
	.drop_folder = fake_drop_folder,
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
