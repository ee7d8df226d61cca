/* The engine `process`: slots that are nothing but a row, kernelspecs of the host. */
#include "kernel-bridge/engine_process.h"

#include <assert.h>
#include <cjson/cJSON.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "kernel-bridge/spec.h"

#define TRIM_MS 10000 /* how often logs are looked at */
#define LATE_MS 4000  /* a process that SIGKILL has not ended by then is given up */

static struct process_engine *engine_of(struct engine *e)
{
	return CONTAINER_OF(e, struct process_engine, engine);
}

static struct process_slot *slot_of(struct slot *s)
{
	return CONTAINER_OF(s, struct process_slot, slot);
}

static void on_slot_told(struct timer *t)
{
	struct process_slot *s = CONTAINER_OF(t, struct process_slot, told);

	if (slot_state(&s->slot) == SLOT_ENDING) {
		process_slot_empty(s);
		return;
	}
	slot_move(&s->slot, SLOT_WARM);
	s->slot.watcher.on_warm(s->slot.watcher.data);
}

static void on_late(struct timer *t)
{
	struct process_slot *s = CONTAINER_OF(t, struct process_slot, late);

	LIST_EACH (at, &s->lines)
		process_line_forget(process_line_of(at));
}

static int launch(struct engine *engine, const struct kernelspec *spec, const char *owner,
	const struct slot_watcher *watcher, struct slot **ret, struct err *err)
{
	struct process_engine *e = engine_of(engine);
	struct process_slot *s = xcalloc(1, sizeof(*s));

	(void)spec;
	(void)owner; /* every kernel runs as the gateway's user */
	(void)err;
	list_init(&s->lines);
	timer_init(&s->told, on_slot_told);
	timer_init(&s->late, on_late);
	slot_init(&s->slot, engine, watcher, e->env.log, &e->slots);
	timer_start(e->env.clock, &s->told, 0);
	*ret = &s->slot;
	return 0;
}

static void on_trim(struct timer *t)
{
	struct process_engine *e = CONTAINER_OF(t, struct process_engine, trim);
	bool any = false;

	LIST_EACH (slot, &e->slots) {
		struct process_slot *s = slot_of(CONTAINER_OF(slot, struct slot, link));

		LIST_EACH (line, &s->lines) {
			process_line_trim_log(process_line_of(line));
			any = true;
		}
	}
	if (any)
		timer_start(e->env.clock, &e->trim, TRIM_MS);
}

static int start(struct slot *slot, const struct line_start *start_, struct err *err)
{
	struct process_engine *e = engine_of(slot->engine);
	size_t len = strlen(start_->kernel_id);

	/* The id becomes part of a file's name. */
	if (len == 0 || len > 64 ||
		strspn(start_->kernel_id, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
					  "0123456789-_") != len)
		return err_set(err, E_INVALID, "kernel id is not one");
	assert(slot_state(slot) != SLOT_CREATING && slot_state(slot) != SLOT_ENDING);
	if (slot_state(slot) == SLOT_WARM)
		slot_move(slot, SLOT_TAKEN);
	process_line_start(slot_of(slot), start_);
	if (!timer_running(&e->trim))
		timer_start(e->env.clock, &e->trim, TRIM_MS);
	return 0;
}

static int signal_line(struct slot *slot, unsigned line, int signo, struct err *err)
{
	struct process_line *l = process_line_find(slot_of(slot), line);

	if (!l)
		return err_set(err, E_UNAVAILABLE, "line %u has ended", line);
	return process_line_signal(l, signo, err);
}

static int kill_line(struct slot *slot, unsigned line, struct err *err)
{
	struct process_line *l = process_line_find(slot_of(slot), line);

	if (!l)
		return err_set(err, E_UNAVAILABLE, "line %u has ended", line);
	process_line_kill(l);
	return 0;
}

void process_slot_empty(struct process_slot *s)
{
	struct process_engine *e = engine_of(s->slot.engine);
	void (*cb)(void *data) = s->on_removed;
	void *data = s->on_removed_data;

	timer_stop(e->env.clock, &s->told);
	timer_stop(e->env.clock, &s->late);
	slot_done(&s->slot);
	free(s);
	cb(data);
}

static void remove_slot(struct slot *slot, void (*cb)(void *data), void *data)
{
	struct process_slot *s = slot_of(slot);
	struct process_engine *e = engine_of(slot->engine);

	slot_move(slot, SLOT_ENDING);
	s->on_removed = cb;
	s->on_removed_data = data;
	timer_stop(e->env.clock, &s->told);
	if (list_empty(&s->lines)) {
		timer_start(e->env.clock, &s->told, 0);
		return;
	}
	LIST_EACH (at, &s->lines)
		process_line_kill(process_line_of(at));
	timer_start(e->env.clock, &s->late, LATE_MS);
}

static void limit(struct slot *slot)
{
	struct process_slot *s = slot_of(slot);

	if (!list_empty(&s->lines)) /* the newest line is the one that got ready */
		process_line_ready(process_line_of(s->lines.prev));
}

static void on_swept(struct timer *t)
{
	struct process_engine *e = CONTAINER_OF(t, struct process_engine, swept);

	e->on_swept(e->on_swept_data);
}

static void sweep(struct engine *engine, void (*cb)(void *data), void *data)
{
	struct process_engine *e = engine_of(engine);

	process_sweep_files(e->dir.path, e->env.log);
	e->on_swept = cb;
	e->on_swept_data = data;
	timer_start(e->env.clock, &e->swept, 0);
}

static const char *environment(const struct slot *slot)
{
	return CONTAINER_OF(slot, const struct process_slot, slot)->environment;
}

static struct cJSON *report(const struct engine *engine)
{
	cJSON *tree = cJSON_CreateObject();
	cJSON *warnings;

	cJSON_AddStringToObject(tree, "name", engine->name);
	cJSON_AddBoolToObject(tree, "isolates", false);
	warnings = cJSON_AddArrayToObject(tree, "warnings");
	cJSON_AddItemToArray(warnings,
		cJSON_CreateString("engine process isolates nothing: code runs as the user of the "
				   "gateway"));
	return tree;
}

static struct cJSON *slot_report(const struct slot *slot)
{
	const struct process_slot *s = CONTAINER_OF(slot, const struct process_slot, slot);
	cJSON *tree = cJSON_CreateObject();
	cJSON *lines;

	cJSON_AddStringToObject(tree, "engine", slot->engine->name);
	cJSON_AddStringToObject(tree, "slot", sm_name(&slot->sm));
	lines = cJSON_AddArrayToObject(tree, "lines");
	LIST_EACH (at, &s->lines)
		cJSON_AddItemToArray(lines, process_line_report(process_line_of(at)));
	return tree;
}

/* Beside another engine the names say that these kernels are not in a container. */
static bool is_alone(const struct config *config)
{
	const char *at = config->engine;
	char item[64];

	while (config_list_next(&at, item, sizeof(item)))
		if (strcmp(item, "process") != 0)
			return false;
	return true;
}

static int specs(struct engine *engine, struct list *list, struct err *err)
{
	struct process_engine *e = engine_of(engine);
	struct spec_dirs dirs;

	(void)err; /* a spec that cannot be read is left out */
	spec_dirs_init(&dirs);
	spec_read(&dirs, is_alone(e->env.config) ? "" : "process-", engine->name, list, e->env.log);
	spec_dirs_done(&dirs);
	return 0;
}

static void on_closed(struct timer *t)
{
	struct process_engine *e = CONTAINER_OF(t, struct process_engine, closed);
	void (*cb)(void *data) = e->on_closed;
	void *data = e->on_closed_data;

	(void)rmdir(e->dir.path); /* stays if somebody put something in it */
	run_dir_close(&e->dir);
	free(e);
	cb(data);
}

static void close_engine(struct engine *engine, void (*cb)(void *data), void *data)
{
	struct process_engine *e = engine_of(engine);

	assert(list_empty(&e->slots));
	timer_stop(e->env.clock, &e->trim);
	timer_stop(e->env.clock, &e->swept);
	e->on_closed = cb;
	e->on_closed_data = data;
	timer_start(e->env.clock, &e->closed, 0);
}

static const struct engine_ops ops = {
	.launch = launch,
	.start = start,
	.signal = signal_line,
	.kill_line = kill_line,
	.remove = remove_slot,
	.limit = limit,
	.sweep = sweep,
	.environment = environment,
	.report = report,
	.slot_report = slot_report,
	.specs = specs,
	.close = close_engine,
};

int engine_process_open(const struct bridge_env *env, struct engine **ret, struct err *err)
{
	char path[PROCESS_PATH_SIZE];
	struct process_engine *e;
	struct run_dir dir;
	int rc;

	if ((size_t)snprintf(path, sizeof(path), "%s/process", env->config->run_dir) >=
		sizeof(path))
		return err_set(err, E_INVALID, "run_dir is too long: %s", env->config->run_dir);
	/* A folder and a lock of its own: the engine docker has those of RUN_DIR itself. */
	rc = run_dir_open(path, &dir, err);
	if (rc < 0)
		return rc;
	e = xcalloc(1, sizeof(*e));
	e->dir = dir;
	e->engine = (struct engine){.ops = &ops, .name = "process"};
	e->env = *env;
	list_init(&e->slots);
	timer_init(&e->trim, on_trim);
	timer_init(&e->swept, on_swept);
	timer_init(&e->closed, on_closed);
	*ret = &e->engine;
	return 0;
}
