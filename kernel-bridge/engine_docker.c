/* Life of the engine and of a slot until it is warm or gone. */
#include "kernel-bridge/docker_line.h"

#include <assert.h>
#include <cjson/cJSON.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>

#include "kernel-bridge/docker_create.h"
#include "kernel-bridge/docker_facts.h"
#include "kernel-bridge/docker_files.h"
#include "kernel-bridge/docker_foreign.h"
#include "kernel-bridge/docker_look.h"

#define ENDED_TRIES   40 /* for the engine to notice that a container has ended */
#define ENDED_MS      50
#define WAIT_AGAIN_MS 500
#define FAULT_TRIES   4
#define FOR_EVER_MS   INT32_MAX
#define SIGNAL_OFFSET 128 /* an exit code above it is a signal, as shells have it */

struct docker_slot *docker_slot_of(struct slot *s)
{
	return CONTAINER_OF(s, struct docker_slot, base);
}

const char *docker_slot_image(const struct docker_slot *s)
{
	return s->spec && s->spec->image ? s->spec->image : s->docker->env.config->image;
}

int docker_slot_call(struct docker_slot *s, const char *method, const char *path,
	const struct cJSON *body,
	void (*done)(void *data, int status, const struct cJSON *json, const struct err *err),
	struct err *err)
{
	char full[DOCKER_PATH_MAX];
	/* A name and a literal: both are short. */
	(void)snprintf(full, sizeof(full), "/containers/%s%s", s->container, path);
	const struct docker_call call = {
		.method = method,
		.path = full,
		.body = body,
		.done = done,
		.data = s,
	};
	return docker_api_send(s->docker->api, &call, err);
}

void docker_slot_close_ctl(struct docker_slot *s);

static void on_ctl_closed(void *data)
{
	struct docker *d = data;
	d->open_ctls--;
	docker_maybe_closed(d);
}

void docker_slot_close_ctl(struct docker_slot *s)
{
	if (s->ctl)
		ctl_close(TAKE(s->ctl), on_ctl_closed, s->docker);
}

/* ---- how it ended ---- */

void docker_exit_read(const struct cJSON *inspected, struct line_exit *ret)
{
	const cJSON *state = cJSON_GetObjectItemCaseSensitive(inspected, "State");
	const cJSON *code = cJSON_GetObjectItemCaseSensitive(state, "ExitCode");
	const cJSON *why = cJSON_GetObjectItemCaseSensitive(state, "Error");
	memset(ret, 0, sizeof(*ret));
	if (!cJSON_IsNumber(code))
		return;
	ret->known = true;
	ret->code = code->valueint;
	if (ret->code > SIGNAL_OFFSET && ret->code < SIGNAL_OFFSET + 65)
		ret->signal = ret->code - SIGNAL_OFFSET;
	ret->oom = ret->signal == 9 &&
		   cJSON_IsTrue(cJSON_GetObjectItemCaseSensitive(state, "OOMKilled"));
	if (cJSON_IsString(why) && why->valuestring[0])
		/* Cut is good enough for people. */
		(void)copy_text(
			ret->text, sizeof(ret->text), why->valuestring, strlen(why->valuestring));
	else
		(void)snprintf(ret->text, sizeof(ret->text),
			"the container ended with exit code %d", ret->code);
}

static void tell_gone(struct docker_slot *s, const struct line_exit *exit)
{
	/* The engine may have said the same already. */
	if (slot_state(&s->base) == SLOT_CREATING && exit->known &&
		!strstr(s->why.text, exit->text))
		(void)err_wrap(&s->why, "%s", exit->text); /* the code stays */
	log_warn(&s->log, "slot_gone reason=%s exit=%s", s->why.text, exit->text);
	s->base.watcher.on_gone(s->base.watcher.data, exit, &s->why);
}

static void look_how_it_ended(struct docker_slot *s);
static void launch_again(struct docker_slot *s);

void docker_slot_ended_timer(struct timer *t)
{
	struct docker_slot *s = CONTAINER_OF(t, struct docker_slot, retry);
	if (s->gone)
		look_how_it_ended(s);
	else if (s->again)
		launch_again(s);
	else
		docker_slot_wait(s);
}

static void on_inspected(void *data, int status, const struct cJSON *json, const struct err *err)
{
	struct docker_slot *s = data;
	struct line_exit exit = {0};
	const cJSON *state = cJSON_GetObjectItemCaseSensitive(json, "State");
	bool running = cJSON_IsTrue(cJSON_GetObjectItemCaseSensitive(state, "Running"));
	(void)status; /* err says it */
	if (!err && running && s->tries++ < ENDED_TRIES) {
		timer_start(s->docker->env.clock, &s->retry, ENDED_MS);
		return;
	}
	if (!err && !running)
		docker_exit_read(json, &exit);
	else if (err && err->code == E_ENGINE_DOWN)
		(void)err_wrap(&s->why, "the container engine is away"); /* the code stays */
	tell_gone(s, &exit);
}

static void look_how_it_ended(struct docker_slot *s)
{
	struct line_exit exit = {0};
	struct err err;
	if (docker_slot_call(s, "GET", "/json", NULL, on_inspected, &err) < 0)
		tell_gone(s, &exit);
}

void docker_slot_gone(struct docker_slot *s, const struct err *why)
{
	struct line_exit exit = {0};
	if (s->gone || slot_state(&s->base) == SLOT_ENDING)
		return;
	s->gone = true;
	s->why = *why;
	timer_stop(s->docker->env.clock, &s->deadline);
	timer_stop(s->docker->env.clock, &s->retry);
	docker_api_cancel(s->docker->api, &s->wait_tag);
	docker_slot_close_ctl(s);
	docker_lines_drop(s);
	s->tries = 0;
	if (s->made && !s->in_flight && why->code != E_TIMEOUT)
		look_how_it_ended(s);
	else
		tell_gone(s, &exit);
}

/* ---- launch: create, start, wait for hello ---- */

static void on_up(void *data, long pid, const struct cJSON *hello)
{
	struct docker_slot *s = data;
	s->pid = pid;
	s->keeps = cJSON_IsArray(cJSON_GetObjectItemCaseSensitive(hello, "lines"));
	s->hands = ctl_bool(hello, "hands_over");
	docker_files_up(s, hello);
	s->branches = ctl_bool(hello, "branches");
	run_slot_unlink(&s->dir, "ctl");
	log_info(&s->log, "supervisor_up pid=%ld image=%s python=%s", pid,
		ctl_text(hello, "image", ""), ctl_text(hello, "python", ""));
	if (s->adopts)
		docker_adopt_clear(s);
	docker_adopt_strays(s, hello);
	docker_slot_ask_image(s);
	docker_slot_warm(s);
	if (s->adopts)
		docker_adopt_up(s, hello);
}

void docker_slot_warm(struct docker_slot *s)
{
	timer_stop(s->docker->env.clock, &s->deadline);
	timer_stop(s->docker->env.clock, &s->retry);
	docker_api_cancel(s->docker->api, &s->wait_tag);
	slot_move(&s->base, SLOT_WARM);
	s->base.watcher.on_warm(s->base.watcher.data);
}

static int on_message(void *data, enum ctl_type type, const struct cJSON *message, struct err *err)
{
	return docker_files_are_meant(type) ? docker_files_message(data, type, message, err)
					    : docker_line_message(data, type, message, err);
}

static void on_down(void *data, const struct err *err)
{
	docker_slot_gone(data, err);
}

static void on_room(void *data)
{
	docker_files_go_on(data);
}

static void on_launch_deadline(struct timer *t)
{
	struct docker_slot *s = CONTAINER_OF(t, struct docker_slot, deadline);
	struct err err = s->why;
	if (!s->again)
		(void)err_set(&err, E_TIMEOUT, "the container was not ready within %" PRId64 " ms",
			s->docker->env.config->start_timeout);
	docker_slot_gone(s, &err);
}

/* The container ended before its supervisor spoke. An engine that is away says nothing about it:
 * the supervisor needs no engine to come. */
static void on_waited(void *data, int status, const struct cJSON *json, const struct err *err)
{
	struct docker_slot *s = CONTAINER_OF((char *)data, struct docker_slot, wait_tag);
	struct err why;
	(void)json; /* inspecting tells more */
	if (err && status == 0) {
		timer_start(s->docker->env.clock, &s->retry, WAIT_AGAIN_MS);
		return;
	}
	if (err)
		why = *err;
	else
		(void)err_set(
			&why, E_ENGINE, "no supervisor came up in image %s", docker_slot_image(s));
	docker_slot_gone(s, &why);
}

void docker_slot_wait(struct docker_slot *s)
{
	char path[DOCKER_PATH_MAX];
	(void)snprintf(path, sizeof(path), "/containers/%s/wait", s->container); /* short */
	const struct docker_call call = {
		.method = "POST",
		.path = path,
		.timeout_ms = FOR_EVER_MS,
		.done = on_waited,
		.data = &s->wait_tag,
	};
	/* Without it an early end is seen at the deadline. */
	(void)docker_api_send(s->docker->api, &call, NULL);
}

/* An engine that was there and is not is being started anew, most likely, and with it go kernels
 * that are then to begin again. While it ends it has faults of its own for a moment. What it was
 * told just before may have been done or not. */
static bool waits_for_engine(
	struct docker_slot *s, int status, const struct err *err, enum again what)
{
	const struct docker_version *v = docker_api_version(s->docker->api);
	bool away = err && status == 0 && err->code == E_ENGINE_DOWN && v->engine[0];
	if (!away && (!err || status < 500 || s->tries++ == FAULT_TRIES))
		return false;
	if (!s->again)
		log_info(&s->log, "launch_waits_for_engine reason=%s", err->text);
	s->again = what;
	s->why = *err;
	timer_start(s->docker->env.clock, &s->retry, WAIT_AGAIN_MS);
	return true;
}

static void on_container_started(
	void *data, int status, const struct cJSON *json, const struct err *err)
{
	struct docker_slot *s = data;
	(void)json; /* has none */
	s->in_flight = false;
	if (slot_state(&s->base) == SLOT_ENDING)
		docker_slot_remove_now(s);
	else if (s->gone || slot_state(&s->base) != SLOT_CREATING)
		return; /* the supervisor was quicker than the engine's answer */
	else if (waits_for_engine(s, status, err, AGAIN_START))
		return;
	s->again = AGAIN_NO;
	if (err)
		docker_slot_gone(s, err);
	else
		docker_slot_wait(s);
}

static void start_container(struct docker_slot *s)
{
	struct err why;
	s->in_flight = true;
	if (docker_slot_call(s, "POST", "/start", NULL, on_container_started, &why) < 0) {
		s->in_flight = false;
		docker_slot_gone(s, &why);
	}
}

void docker_create_error(
	struct docker_slot *s, int status, const struct err *cause, struct err *ret_err)
{
	const char *image = docker_slot_image(s);
	bool own = strcmp(image, s->docker->env.config->image) == 0;
	const char *source = strstr(cause->text, "bind source path does not exist: ");
	*ret_err = *cause;
	if (status == 404) {
		if (own)
			s->docker->image = IMAGE_MISSING;
		(void)err_set(ret_err, E_ENGINE, "image %s is not there: make it with `make image`",
			image);
	} else if (source) {
		(void)err_set(ret_err, E_ENGINE, "a data folder of --mount is not there: %s",
			strchr(source, ':') + 2);
	}
}

static void on_created(void *data, int status, const struct cJSON *json, const struct err *err)
{
	struct docker_slot *s = data;
	struct err why;
	(void)json; /* the container is called by its name */
	s->in_flight = false;
	/* An earlier call may have made it, though its answer was lost. */
	bool there = !err || (s->again && status == 409);
	if (!there && status > 0 && status < 500)
		s->made = false;
	if (slot_state(&s->base) == SLOT_ENDING) {
		docker_slot_remove_now(s);
		return;
	}
	if (s->gone || waits_for_engine(s, status, err, AGAIN_CREATE))
		return;
	if (!there) {
		docker_create_error(s, status, err, &why);
		docker_slot_gone(s, &why);
		return;
	}
	s->docker->image = IMAGE_THERE;
	s->again = AGAIN_NO;
	start_container(s);
}

static void delete_tree(cJSON **tree)
{
	cJSON_Delete(*tree);
}

static int create_container(struct docker_slot *s, struct err *err)
{
	AUTO(delete_tree) cJSON *body = NULL;
	char path[DOCKER_PATH_MAX];
	const struct docker_create create = {
		.config = s->docker->env.config,
		.image = docker_slot_image(s),
		.run = s->docker->run.path,
		.slot = s->dir.name,
		.sockets = s->dir.sockets,
	};
	int rc = docker_create_body(&create, &body, err);
	if (rc < 0)
		return rc;
	(void)snprintf(path, sizeof(path), "/containers/create?name=%s", s->container); /* short */
	const struct docker_call call = {
		.method = "POST",
		.path = path,
		.body = body,
		.done = on_created,
		.data = s,
	};
	rc = docker_api_send(s->docker->api, &call, err);
	s->made = s->in_flight = rc == 0;
	return rc;
}

static void launch_again(struct docker_slot *s)
{
	struct err err;
	if (s->again == AGAIN_START)
		start_container(s);
	else if (create_container(s, &err) < 0)
		docker_slot_gone(s, &err);
}

int docker_slot_listen(struct docker_slot *s, struct err *err)
{
	int fd = -1;
	const struct ctl_watcher watcher = {
		.on_up = on_up,
		.on_message = on_message,
		.on_down = on_down,
		.on_room = on_room,
		.data = s,
	};
	/* A uid of the container needs leave to connect; the folder above lets nobody else come. */
	int rc = run_slot_listen(&s->dir, "ctl", SOCK_SEQPACKET, 0666, &fd, err);
	if (rc == 0)
		rc = ctl_open(s->docker->env.loop, &s->log, fd, &watcher, &s->ctl, err);
	if (rc < 0)
		return rc;
	ctl_park(s->ctl, s->docker->env.config->parks);
	ctl_take_files(s->ctl, docker_files_taken(s->docker));
	s->docker->open_ctls++;
	return 0;
}

const struct config_spec *docker_spec_find(const struct config *config, const char *name)
{
	for (size_t i = 0; i < config->n_specs; i++)
		if (strcasecmp(config->specs[i].name, name) == 0)
			return &config->specs[i];
	return NULL;
}

static int fill_slot(struct docker_slot *s, struct err *err)
{
	int rc = run_slot_make(&s->docker->run, &s->dir, err);
	if (rc < 0)
		return rc;
	log_child(&s->log, &s->docker->log, "slot", s->dir.name);
	/* The slot's name has eight characters. */
	(void)snprintf(s->container, sizeof(s->container), "coppice-%s", s->dir.name);
	if (s->spec && s->spec->argv && s->spec->argv[0])
		return docker_foreign_new(s, err);
	rc = docker_slot_listen(s, err);
	if (rc == 0)
		rc = create_container(s, err);
	if (rc == 0)
		timer_start(s->docker->env.clock, &s->deadline,
			(uint64_t)s->docker->env.config->start_timeout);
	return rc;
}

static int docker_launch(struct engine *e, const struct kernelspec *spec, const char *owner,
	const struct slot_watcher *watcher, struct slot **ret, struct err *err)
{
	struct docker *d = CONTAINER_OF(e, struct docker, engine);
	struct docker_slot *s = xcalloc(1, sizeof(*s));
	(void)owner; /* a container has one owner by its life: it never serves a second kernel id */
	s->docker = d;
	s->log = d->log;
	s->spec = docker_spec_find(d->env.config, spec->name);
	list_init(&s->lines);
	timer_init(&s->deadline, on_launch_deadline);
	timer_init(&s->retry, docker_slot_ended_timer);
	slot_init(&s->base, e, watcher, &s->log, &d->slots);
	int rc = fill_slot(s, err);
	if (rc < 0) {
		docker_slot_free(s);
		return rc;
	}
	*ret = &s->base;
	return 0;
}

static void on_updated(void *data, int status, const struct cJSON *json, const struct err *err)
{
	struct docker_slot *s = data;
	(void)json; /* has none */
	s->unlimited = err && status == 0;
	if (err)
		log_warn(&s->log, "cpu_limit_failed reason=%s", err->text);
}

static void docker_limit(struct slot *slot)
{
	struct docker_slot *s = docker_slot_of(slot);
	AUTO(delete_tree) cJSON *body = docker_update_body(s->docker->env.config);
	char path[DOCKER_PATH_MAX];
	struct err err;
	(void)snprintf(path, sizeof(path), "/containers/%s/update", s->container); /* short */
	const struct docker_call call = {
		.method = "POST",
		.path = path,
		.body = body,
		.done = on_updated,
		.data = s,
	};
	if (docker_api_send(s->docker->api, &call, &err) < 0)
		log_warn(&s->log, "cpu_limit_failed reason=%s", err.text);
}

/* The engine is there, for the first time or again. */
static void on_engine(void *data)
{
	struct docker *d = data;
	docker_facts_ask(d);
	LIST_EACH (at, &d->slots) {
		struct docker_slot *s = CONTAINER_OF(at, struct docker_slot, base.link);
		if (s->unlimited)
			docker_limit(&s->base);
	}
}

static cJSON *docker_slot_report(const struct slot *slot)
{
	const struct docker_slot *s = CONTAINER_OF(slot, struct docker_slot, base);
	cJSON *o = cJSON_CreateObject();
	/* A report that lacks a line for want of memory is still a report. */
	(void)cJSON_AddStringToObject(o, "slot", s->dir.name);
	(void)cJSON_AddStringToObject(o, "state", sm_name(&s->base.sm));
	(void)cJSON_AddStringToObject(o, "container", s->container);
	(void)cJSON_AddStringToObject(o, "image", docker_slot_image(s));
	(void)cJSON_AddNumberToObject(o, "supervisor_pid", (double)s->pid);
	return o;
}

/* ---- the engine ---- */

void docker_maybe_closed(struct docker *d)
{
	if (!d->closed || d->api || d->open_ctls > 0)
		return;
	void (*closed)(void *data) = d->closed;
	void *data = d->closed_data;
	run_dir_close(&d->run);
	cJSON_Delete(d->info);
	free(d);
	closed(data);
}

static void on_api_closed(void *data)
{
	struct docker *d = data;
	d->api = NULL;
	docker_maybe_closed(d);
}

static void docker_close(struct engine *e, void (*cb)(void *data), void *data)
{
	struct docker *d = CONTAINER_OF(e, struct docker, engine);
	d->closed = cb;
	d->closed_data = data;
	docker_sweep_drop(d);
	docker_leftovers_drop(d);
	/* Only those are left whose removal the engine has not confirmed: the next sweep's. */
	LIST_EACH_SAFE (at, &d->slots)
		docker_slot_free(CONTAINER_OF(at, struct docker_slot, base.link));
	docker_api_close(d->api, on_api_closed, d);
}

static const struct engine_ops docker_ops = {
	.launch = docker_launch,
	.start = docker_line_start,
	.signal = docker_line_signal,
	.kill_line = docker_line_kill,
	.ack = docker_line_ack,
	.answer = docker_line_answer,
	.adopt = docker_adopt,
	.adopt_line = docker_adopt_line,
	.slot_row = docker_slot_row,
	.leave = docker_leave,
	.replay = docker_replay,
	.remove = docker_slot_remove,
	.fits = docker_fits,
	.can_hand_over = docker_can_hand_over,
	.hand_over = docker_line_hand_over,
	.revive = docker_line_revive,
	.look = docker_look,
	.release = docker_park_release,
	.files = &docker_files_ops,
	.can_branch = docker_can_branch,
	.drop_folder = docker_drop_folder,
	.limit = docker_limit,
	.sweep = docker_sweep,
	.environment = docker_environment,
	.report = docker_report,
	.slot_report = docker_slot_report,
	.specs = docker_specs,
	.close = docker_close,
};

int engine_docker_open(const struct bridge_env *env, struct engine **ret, struct err *err)
{
	int rc = docker_mounts_check(env->config, err);
	if (rc < 0)
		return rc;
	struct docker *d = xcalloc(1, sizeof(*d));
	d->engine = (struct engine){.ops = &docker_ops, .name = "docker"};
	d->env = *env;
	log_child(&d->log, env->log, "engine", "docker");
	list_init(&d->slots);
	list_init(&d->leftovers);
	rc = run_dir_open(env->config->run_dir, &d->run, err);
	if (rc < 0) {
		free(d);
		return rc;
	}
	rc = docker_api_open(
		env->loop, env->config->engine_socket, &d->log, on_engine, d, &d->api, err);
	if (rc < 0) {
		run_dir_close(&d->run);
		free(d);
		return rc;
	}
	*ret = &d->engine;
	return 0;
}
