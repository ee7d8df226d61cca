/* One kernel process: from its files to its exit. */
#include "kernel-bridge/engine_process.h"

#include <cjson/cJSON.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "kernel-bridge/channel.h"

#define LOG_MAX	  (1 << 20)
#define STEM_SIZE 120

struct process_line {
	uv_process_t handle;
	struct list link; /* in process_slot.lines */
	struct process_slot *slot;
	struct timer told;	  /* on_started or on_start_failed, a turn after start */
	struct timer second_look; /* for what an exec hid, before the exit is told */
	unsigned number;
	bool running; /* the process exists and has not been reaped */
	bool ready;
	int64_t greeting;  /* bytes of log until it was ready: no reason for any death after that */
	struct err failed; /* the start's, code 0 if it went well */
	struct line_exit exit;
	struct endpoints endpoints;
	struct process_ports ports;
	struct process_id id;
	char stem[STEM_SIZE]; /* kernel-ID-LINE */
	char mark[STEM_SIZE]; /* ID/LINE */
};

static struct process_engine *engine_of(const struct process_line *l)
{
	return CONTAINER_OF(l->slot->slot.engine, struct process_engine, engine);
}

static bool silent(const struct process_line *l)
{
	return slot_state(&l->slot->slot) == SLOT_ENDING;
}

struct process_line *process_line_of(struct list *link)
{
	return CONTAINER_OF(link, struct process_line, link);
}

/* The handle is closed: nothing refers to the line any more. */
static void on_handle_closed(uv_handle_t *handle)
{
	struct process_line *l = CONTAINER_OF((uv_process_t *)handle, struct process_line, handle);
	struct process_slot *s = l->slot;
	struct process_engine *e = engine_of(l);
	bool failed = l->failed.code != 0, tell = !silent(l);

	timer_stop(e->env.clock, &l->told);
	list_remove(&l->link);
	if (list_empty(&s->lines) && !tell)
		process_slot_empty(s);
	else if (tell && failed)
		s->slot.watcher.on_start_failed(s->slot.watcher.data, l->number, &l->failed);
	else if (tell)
		s->slot.watcher.on_exit(s->slot.watcher.data, l->number, &l->exit);
	free(l);
}

static void tell_started(struct process_line *l)
{
	const struct slot_watcher *w = &l->slot->slot.watcher;

	if (!silent(l))
		w->on_started(w->data, l->number, &l->endpoints, (long)l->id.pid);
}

static void on_told(struct timer *t)
{
	struct process_line *l = CONTAINER_OF(t, struct process_line, told);

	tell_started(l);
}

/* A process in the middle of an exec shows no environment, and so no mark, for a moment. */
#define SECOND_LOOK_MS 30

static void on_second_look(struct timer *t)
{
	struct process_line *l = CONTAINER_OF(t, struct process_line, second_look);
	int left = process_tree_kill(l->id.pid, false, l->mark);

	if (left > 0)
		log_info(engine_of(l)->env.log, "process_left line=%s left=%d", l->mark, left);
	uv_close((uv_handle_t *)&l->handle, on_handle_closed);
}

static void on_exited(uv_process_t *handle, int64_t status, int signo)
{
	struct process_line *l = CONTAINER_OF(handle, struct process_line, handle);
	struct process_engine *e = engine_of(l);
	char log[PROCESS_PATH_SIZE];
	int left;

	l->running = false;
	/* An exit can come before the timer that tells of the start. */
	if (timer_running(&l->told)) {
		timer_stop(e->env.clock, &l->told);
		tell_started(l);
	}
	process_file_path(log, e->dir.path, l->stem, "log");
	l->exit = (struct line_exit){.known = true, .code = (int)status, .signal = signo};
	process_log_tail(log, l->greeting, l->exit.text, sizeof(l->exit.text));
	if (!l->ready && process_log_in_use(log))
		e->shy_ports = true;
	left = process_tree_kill(l->id.pid, false, l->mark);
	log_info(e->env.log, "process_exited line=%s pid=%d code=%d signal=%d left=%d", l->mark,
		(int)l->id.pid, (int)status, signo, left);
	process_ports_release(&l->ports);
	process_remove_files(e->dir.path, l->stem);
	timer_start(e->env.clock, &l->second_look, SECOND_LOOK_MS);
}

/* metadata.supported_encryption is "curve", or a list that holds it. */
static bool wants_curve(const struct kernelspec *spec)
{
	const cJSON *metadata = cJSON_GetObjectItemCaseSensitive(spec->spec, "metadata");
	const cJSON *item = cJSON_GetObjectItemCaseSensitive(metadata, "supported_encryption");

	if (cJSON_IsArray(item))
		item = item->child;
	for (; item; item = item->next) {
		if (cJSON_IsString(item) && strcmp(item->valuestring, "curve") == 0)
			return true;
		if (item == cJSON_GetObjectItemCaseSensitive(metadata, "supported_encryption"))
			break; /* a text's neighbours are other members */
	}
	return false;
}

static int make_endpoints(struct process_line *l, const struct line_start *start, struct err *err)
{
	int rc = process_ports_take(&l->ports, !engine_of(l)->shy_ports, err);

	if (rc < 0)
		return rc;
	for (int c = 0; c < CHANNEL_COUNT; c++)
		(void)snprintf(l->endpoints.address[c], ENDPOINT_SIZE, "tcp://127.0.0.1:%u",
			l->ports.port[c]); /* fits */
	if (!copy_text(l->endpoints.key, sizeof(l->endpoints.key), start->key, strlen(start->key)))
		return err_set(err, E_INVALID, "signature key is too long");
	if (wants_curve(start->spec) &&
		channel_curve_pair(l->endpoints.curve_public, l->endpoints.curve_secret) < 0)
		return err_set(err, E_UNAVAILABLE, "libzmq was built without CURVE");
	return 0;
}

static int spawn(
	struct process_line *l, const struct process_command *c, int log_fd, struct err *err)
{
	uv_stdio_container_t stdio[3] = {
		{.flags = UV_IGNORE}, /* /dev/null */
		{.flags = UV_INHERIT_FD, .data.fd = log_fd},
		{.flags = UV_INHERIT_FD, .data.fd = log_fd},
	};
	uv_process_options_t options = {
		.exit_cb = on_exited,
		.file = c->argv[0],
		.args = c->argv,
		.env = c->env,
		.cwd = c->cwd,
		.flags = UV_PROCESS_DETACHED, /* a session of its own */
		.stdio_count = 3,
		.stdio = stdio,
	};
	int rc = uv_spawn(engine_of(l)->env.loop, &l->handle, &options);

	if (rc < 0)
		return err_set(
			err, E_UNAVAILABLE, "cannot run %s: %s", c->argv[0], uv_strerror(rc));
	l->running = true;
	l->id = process_id_of(l->handle.pid);
	return 0;
}

static int run_command(struct process_line *l, const struct line_start *start,
	const char *connection_file, struct err *err)
{
	struct process_engine *e = engine_of(l);
	struct process_command_source source = {.spec = start->spec,
		.env = start->env,
		.connection_file = connection_file,
		.mark = l->mark,
		.data_dir = e->env.config->data_dir};
	AUTO(process_command_done) struct process_command command = {0};
	char path[PROCESS_PATH_SIZE];
	int rc = process_command_init(&command, &source, err);
	int fd;

	if (rc < 0)
		return rc;
	process_environment(start->spec, &command, l->slot->environment);
	process_file_path(path, e->dir.path, l->stem, "log");
	fd = process_open_log(path, err);
	if (fd < 0)
		return fd;
	rc = spawn(l, &command, fd, err);
	(void)close(fd); /* the kernel has its own */
	if (rc < 0)
		return rc;
	process_file_path(path, e->dir.path, l->stem, "pid");
	return process_write_pid(path, l->id, l->mark, err);
}

static int begin(struct process_line *l, const struct line_start *start, struct err *err)
{
	struct process_engine *e = engine_of(l);
	char path[PROCESS_PATH_SIZE];
	int rc = make_endpoints(l, start, err);

	if (rc < 0)
		return rc;
	process_file_path(path, e->dir.path, l->stem, "json");
	rc = process_write_connection(path, &l->endpoints, &l->ports, start->spec->name, err);
	return rc < 0 ? rc : run_command(l, start, path, err);
}

void process_line_start(struct process_slot *s, const struct line_start *start)
{
	struct process_line *l = xcalloc(1, sizeof(*l));
	struct process_engine *e = CONTAINER_OF(s->slot.engine, struct process_engine, engine);

	l->slot = s;
	l->number = start->line;
	timer_init(&l->told, on_told);
	timer_init(&l->second_look, on_second_look);
	list_append(&s->lines, &l->link);
	(void)snprintf(l->stem, sizeof(l->stem), "kernel-%.64s-%u", start->kernel_id, start->line);
	(void)snprintf(l->mark, sizeof(l->mark), "%.64s/%u", start->kernel_id, start->line);
	if (begin(l, start, &l->failed) == 0) {
		timer_start(e->env.clock, &l->told, 0);
		return;
	}
	if (l->running) { /* without its record nobody could sweep it: its exit reports the failure
			   */
		process_line_kill(l);
		return;
	}
	process_ports_release(&l->ports);
	process_remove_files(e->dir.path, l->stem);
	uv_close((uv_handle_t *)&l->handle, on_handle_closed);
}

struct process_line *process_line_find(struct process_slot *s, unsigned line)
{
	LIST_EACH (at, &s->lines)
		if (process_line_of(at)->number == line)
			return process_line_of(at);
	return NULL;
}

int process_line_signal(struct process_line *l, int signo, struct err *err)
{
	int rc = l->running ? uv_process_kill(&l->handle, signo) : UV_ESRCH;

	return rc == 0 ? 0
		       : err_set(err, E_UNAVAILABLE, "signal %d to pid %d: %s", signo,
				 (int)l->id.pid, uv_strerror(rc));
}

void process_line_kill(struct process_line *l)
{
	if (l->running)
		(void)process_tree_kill(
			l->id.pid, true, l->mark); /* the exit counts what is left */
}

void process_line_forget(struct process_line *l)
{
	if (!l->running)
		return;
	l->running = false;
	log_warn(engine_of(l)->env.log, "process_stuck line=%s pid=%d", l->mark, (int)l->id.pid);
	process_ports_release(&l->ports);
	uv_close((uv_handle_t *)&l->handle, on_handle_closed);
}

void process_line_ready(struct process_line *l)
{
	char log[PROCESS_PATH_SIZE];

	process_file_path(log, engine_of(l)->dir.path, l->stem, "log");
	l->greeting = process_log_size(log);
	l->ready = true;
	process_ports_release(&l->ports);
}

void process_line_trim_log(struct process_line *l)
{
	char path[PROCESS_PATH_SIZE];

	process_file_path(path, engine_of(l)->dir.path, l->stem, "log");
	if (process_log_size(path) > LOG_MAX)
		(void)truncate(path, 0); /* tried again in a few seconds */
}

struct cJSON *process_line_report(const struct process_line *l)
{
	cJSON *tree = cJSON_CreateObject();

	cJSON_AddNumberToObject(tree, "line", l->number);
	cJSON_AddNumberToObject(tree, "pid", l->id.pid);
	cJSON_AddBoolToObject(tree, "encrypted", l->endpoints.curve_public[0] != '\0');
	return tree;
}
