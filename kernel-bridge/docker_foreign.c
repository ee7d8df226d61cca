/* Kernels without coppice_kernel: a container per line with the kernelspec's own command, which
 * binds its sockets in a small tmpfs of the container. What it puts there is untrusted: a name is
 * opened without following links, must be a socket, and is connected to by descriptor. */
#include "kernel-bridge/docker_foreign.h"
#include "kernel-bridge/docker_facts.h"

#include <cjson/cJSON.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <linux/openat2.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "gateway/base/buf.h"
#include "gateway/base/json_tree.h"
#include "kernel-bridge/docker_create.h"

#define LOOK_MS		50
#define WAIT_AGAIN_MS	500
#define WAIT_MS		INT32_MAX
#define ARGV_WORD_MAX	65536
#define CONNECTION_MARK "{connection_file}"

/*   idle --start--> making --sockets--> running --wait--> ended (idle again)  is told by `line`,
 * which is 0 while there is no container. */
struct docker_foreign {
	struct docker_slot *slot;
	unsigned line;
	bool started;
	bool kill_wanted; /* while create or start was in flight */
	uint64_t due_ms;  /* the sockets must be there by then */
	struct timer look;
	struct timer wait_again; /* for its end, once the engine is back */
	struct endpoints endpoints;
	char volume[PATH_MAX]; /* host folder of the container's tmpfs */
	long pid;
	int fds[CHANNEL_COUNT]; /* O_PATH of the sockets, -1 while not found */
};

static void on_look(struct timer *t);
static void on_wait_again(struct timer *t);

static void delete_tree(cJSON **tree)
{
	cJSON_Delete(*tree);
}

static void drop_fds(struct docker_foreign *f)
{
	for (int c = 0; c < CHANNEL_COUNT; c++) {
		if (f->fds[c] >= 0)
			(void)close(f->fds[c]); /* O_PATH: there is nothing to lose */
		f->fds[c] = -1;
	}
}

static void on_warm(struct timer *t)
{
	docker_slot_warm(CONTAINER_OF(t, struct docker_slot, deadline));
}

int docker_foreign_new(struct docker_slot *s, struct err *err)
{
	AUTO(delete_tree) cJSON *argv = cJSON_Parse(s->spec->argv);
	if (!cJSON_IsArray(argv) || !argv->child)
		return err_set(err, E_INVALID, "kernelspec %s: argv is not a list of texts",
			s->spec->name);
	struct docker_foreign *f = xcalloc(1, sizeof(*f));
	f->slot = s;
	for (int c = 0; c < CHANNEL_COUNT; c++)
		f->fds[c] = -1;
	timer_init(&f->look, on_look);
	timer_init(&f->wait_again, on_wait_again);
	s->foreign = f;
	/* There is nothing to make before a line is asked for. */
	timer_init(&s->deadline, on_warm);
	timer_start(s->docker->env.clock, &s->deadline, 0);
	return 0;
}

void docker_foreign_free(struct docker_slot *s)
{
	if (!s->foreign)
		return;
	timer_stop(s->docker->env.clock, &s->foreign->look);
	timer_stop(s->docker->env.clock, &s->foreign->wait_again);
	drop_fds(s->foreign);
	free(TAKE(s->foreign));
}

/* ---- the end of a line ---- */

/* The line's container goes; the next line has one of another name. */
static void drop_container(struct docker_slot *s)
{
	docker_api_cancel(s->docker->api, s);
	docker_api_cancel(s->docker->api, &s->wait_tag);
	timer_stop(s->docker->env.clock, &s->foreign->look);
	timer_stop(s->docker->env.clock, &s->foreign->wait_again);
	drop_fds(s->foreign);
	s->foreign->line = 0;
	if (s->made)
		docker_container_remove(s->docker, s->container);
	s->made = false;
}

static void line_failed(struct docker_slot *s, const struct err *err)
{
	unsigned line = s->foreign->line;
	drop_container(s);
	s->base.watcher.on_start_failed(s->base.watcher.data, line, err);
}

static void line_ended(struct docker_slot *s, const struct line_exit *exit)
{
	unsigned line = s->foreign->line;
	struct err err;
	bool started = s->foreign->started;
	drop_container(s);
	log_info(&s->log, "line_exited line=%u %s", line, exit->text);
	(void)err_set(&err, E_ENGINE, "the kernel did not start: %s", exit->text);
	if (started)
		s->base.watcher.on_exit(s->base.watcher.data, line, exit);
	else
		s->base.watcher.on_start_failed(s->base.watcher.data, line, &err);
}

static void on_exit_inspected(
	void *data, int status, const struct cJSON *json, const struct err *err)
{
	struct docker_slot *s = data;
	struct line_exit exit = {0};
	(void)status; /* err says it */
	if (!err)
		docker_exit_read(json, &exit);
	line_ended(s, &exit);
}

static void on_waited(void *data, int status, const struct cJSON *json, const struct err *err)
{
	struct docker_slot *s = CONTAINER_OF((char *)data, struct docker_slot, wait_tag);
	struct line_exit exit = {0};
	(void)json; /* inspecting tells more */
	/* An engine that is away says nothing about it: with live-restore it lives on, and else its
	 * sockets tell. */
	if (err && status == 0) {
		timer_start(s->docker->env.clock, &s->foreign->wait_again, WAIT_AGAIN_MS);
		return;
	}
	if (err)
		(void)copy_text(exit.text, sizeof(exit.text), err->text, strlen(err->text));
	if (err || docker_slot_call(s, "GET", "/json", NULL, on_exit_inspected, NULL) < 0)
		line_ended(s, &exit);
}

/* ---- the start of a line ---- */

static int wait_for_end(struct docker_slot *s, struct err *err)
{
	char path[DOCKER_PATH_MAX];
	(void)snprintf(path, sizeof(path), "/containers/%s/wait", s->container); /* short */
	const struct docker_call call = {
		.method = "POST",
		.path = path,
		.timeout_ms = WAIT_MS,
		.done = on_waited,
		.data = &s->wait_tag,
	};
	return docker_api_send(s->docker->api, &call, err);
}

static void on_wait_again(struct timer *t)
{
	struct docker_slot *s = CONTAINER_OF(t, struct docker_foreign, wait_again)->slot;
	struct err err;
	if (wait_for_end(s, &err) < 0)
		timer_start(s->docker->env.clock, t, WAIT_AGAIN_MS);
}

static void close_fd(int *fd)
{
	if (*fd >= 0)
		(void)close(*fd); /* O_PATH: there is nothing to lose */
}

/* The folder as the host sees it: the volume's, else through the container's first process (an
 * engine with mounts of its own). */
static int open_folder(const struct docker_foreign *f)
{
	char path[64];
	int fd = open(f->volume, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (fd >= 0 && faccessat(fd, "k-1", F_OK, AT_SYMLINK_NOFOLLOW) == 0)
		return fd;
	if (fd >= 0)
		(void)close(fd); /* as above */
	if (f->pid <= 0)
		return -1;
	(void)snprintf(path, sizeof(path), "/proc/%ld/root", f->pid); /* short */
	AUTO(close_fd) int root = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
	/* A link in the image must not lead out of the container. */
	struct open_how how = {
		.flags = O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC, .resolve = RESOLVE_IN_ROOT};
	return (int)syscall(SYS_openat2, root, DOCKER_FOREIGN, &how, sizeof(how));
}

/* True once all five sockets are there and held. */
static bool find_sockets(struct docker_foreign *f)
{
	AUTO(close_fd) int folder = open_folder(f);
	for (int c = 0; folder >= 0 && c < CHANNEL_COUNT; c++) {
		char name[16];
		struct stat st;
		(void)snprintf(name, sizeof(name), "k-%d", c + 1); /* short */
		f->fds[c] = openat(folder, name, O_PATH | O_NOFOLLOW | O_CLOEXEC);
		if (f->fds[c] < 0 || fstat(f->fds[c], &st) < 0 || !S_ISSOCK(st.st_mode)) {
			drop_fds(f);
			return false;
		}
		(void)snprintf(f->endpoints.address[c], ENDPOINT_SIZE, "ipc:///proc/self/fd/%d",
			f->fds[c]); /* short */
	}
	return folder >= 0;
}

static void on_look(struct timer *t)
{
	struct docker_foreign *f = CONTAINER_OF(t, struct docker_foreign, look);
	struct docker_slot *s = f->slot;
	struct err err;
	if (find_sockets(f)) {
		f->started = true;
		docker_slot_ask_image(s);
		s->base.watcher.on_started(s->base.watcher.data, f->line, &f->endpoints, f->pid);
		return;
	}
	if (clock_now_ms(s->docker->env.clock) < f->due_ms) {
		timer_start(s->docker->env.clock, &f->look, LOOK_MS);
		return;
	}
	(void)err_set(&err, E_TIMEOUT,
		"the kernel did not bind its sockets in " DOCKER_FOREIGN " (they can be seen by "
		"root only)");
	line_failed(s, &err);
}

static void read_folder(struct docker_foreign *f, const cJSON *inspected)
{
	const cJSON *state = cJSON_GetObjectItemCaseSensitive(inspected, "State");
	const cJSON *pid = cJSON_GetObjectItemCaseSensitive(state, "Pid");
	const cJSON *mount;
	f->pid = cJSON_IsNumber(pid) ? pid->valueint : 0;
	f->volume[0] = '\0';
	cJSON_ArrayForEach (mount, cJSON_GetObjectItemCaseSensitive(inspected, "Mounts")) {
		const char *target = ctl_text(mount, "Destination", "");
		const char *source = ctl_text(mount, "Source", "");
		/* What is cut cannot be opened, and then the process's own view is taken. */
		if (strcmp(target, DOCKER_FOREIGN) == 0)
			(void)copy_text(f->volume, sizeof(f->volume), source, strlen(source));
	}
}

static void on_inspected(void *data, int status, const struct cJSON *json, const struct err *err)
{
	struct docker_slot *s = data;
	struct err why;
	(void)status; /* err says it */
	if (err) {
		line_failed(s, err);
		return;
	}
	read_folder(s->foreign, json);
	if (wait_for_end(s, &why) < 0) {
		line_failed(s, &why);
		return;
	}
	timer_start(s->docker->env.clock, &s->foreign->look, LOOK_MS);
}

/* Answers to create and start have this in common. */
static bool answered(struct docker_slot *s)
{
	s->in_flight = false;
	if (slot_state(&s->base) == SLOT_ENDING) {
		docker_slot_remove_now(s);
		return false;
	}
	if (!s->foreign->kill_wanted)
		return true;
	const struct line_exit killed = {.known = true, .signal = 9};
	s->foreign->started = true; /* the one who asked waits for an exit */
	line_ended(s, &killed);
	return false;
}

static void on_container_started(
	void *data, int status, const struct cJSON *json, const struct err *err)
{
	struct docker_slot *s = data;
	struct err why;
	(void)status, (void)json; /* err says it */
	if (!answered(s))
		return;
	if (err)
		line_failed(s, err);
	else if (docker_slot_call(s, "GET", "/json", NULL, on_inspected, &why) < 0)
		line_failed(s, &why);
}

static void on_created(void *data, int status, const struct cJSON *json, const struct err *err)
{
	struct docker_slot *s = data;
	struct err why;
	(void)json; /* the container is called by its name */
	if (err && status > 0)
		s->made = false;
	if (!answered(s))
		return;
	if (err) {
		docker_create_error(s, status, err, &why);
		line_failed(s, &why);
		return;
	}
	s->in_flight = true;
	if (docker_slot_call(s, "POST", "/start", NULL, on_container_started, &why) < 0) {
		s->in_flight = false;
		line_failed(s, &why);
	}
}

static void connection_name(unsigned line, char *ret, size_t size)
{
	(void)snprintf(ret, size, "connection-%u.json", line); /* sized for it */
}

/* Read-only in the container, and in a host folder that only the gateway and the engine can pass:
 * its key is known to that container alone. */
static int write_connection(struct docker_slot *s, const struct line_start *start, struct err *err)
{
	static const char *const ports[CHANNEL_COUNT] = {
		"shell_port", "iopub_port", "stdin_port", "control_port", "hb_port"};
	char name[32];
	AUTO(delete_tree) cJSON *o = cJSON_CreateObject();
	bool ok = cJSON_AddStringToObject(o, "transport", "ipc") &&
		  cJSON_AddStringToObject(o, "ip", DOCKER_FOREIGN "/k") &&
		  cJSON_AddStringToObject(o, "key", start->key) &&
		  cJSON_AddStringToObject(o, "signature_scheme", "hmac-sha256") &&
		  cJSON_AddStringToObject(o, "kernel_name", start->spec->name);
	for (int c = 0; ok && c < CHANNEL_COUNT; c++)
		ok = cJSON_AddNumberToObject(o, ports[c], c + 1) != NULL;
	AUTO(freep) char *text = ok ? json_print(o, NULL) : NULL;
	if (!text)
		return err_set(err, E_NOMEM, "connection file: out of memory");
	connection_name(start->line, name, sizeof(name));
	return run_slot_write(&s->dir, name, text, err);
}

static int add_word(cJSON *argv, const char *word, const char *file)
{
	AUTO(buf_done) struct buf b;
	const char *mark;
	buf_init(&b, ARGV_WORD_MAX);
	/* Checked together below. */
	while ((mark = strstr(word, CONNECTION_MARK))) {
		(void)buf_add(&b, word, (size_t)(mark - word));
		(void)buf_addf(&b, DOCKER_SOCKETS "/%s", file);
		word = mark + strlen(CONNECTION_MARK);
	}
	(void)buf_add_text(&b, word);
	cJSON *item = b.failed ? NULL : cJSON_CreateString(b.data ? (const char *)b.data : "");
	if (cJSON_AddItemToArray(argv, item))
		return 0;
	cJSON_Delete(item);
	return E_NOMEM;
}

static int make_argv(const struct docker_slot *s, unsigned line, cJSON **ret, struct err *err)
{
	AUTO(delete_tree) cJSON *given = cJSON_Parse(s->spec->argv);
	AUTO(delete_tree) cJSON *argv = cJSON_CreateArray();
	const cJSON *word;
	char file[32];
	connection_name(line, file, sizeof(file));
	cJSON_ArrayForEach (word, given)
		if (!cJSON_IsString(word) || add_word(argv, word->valuestring, file) < 0)
			return err_set(err, E_INVALID, "kernelspec %s: argv is not a list of texts",
				s->spec->name);
	*ret = TAKE(argv);
	return 0;
}

static bool set_text(cJSON *o, const char *name, const char *value)
{
	cJSON_DeleteItemFromObjectCaseSensitive(o, name);
	return cJSON_AddStringToObject(o, name, value) != NULL;
}

static int make_env(const struct line_start *start, cJSON **ret, struct err *err)
{
	AUTO(delete_tree) cJSON *env = cJSON_CreateObject();
	const cJSON *parts[] = {
		cJSON_GetObjectItemCaseSensitive(start->spec->spec, "env"), start->env};
	const cJSON *item;
	bool ok = set_text(env, "HOME", "/home/coppice") && set_text(env, "USER", "coppice") &&
		  set_text(env, "LOGNAME", "coppice");
	for (size_t i = 0; i < ARRAY_LEN(parts); i++)
		cJSON_ArrayForEach (item, parts[i])
			if (cJSON_IsString(item))
				ok = ok && set_text(env, item->string, item->valuestring);
	if (!ok)
		return err_set(err, E_NOMEM, "environment: out of memory");
	*ret = TAKE(env);
	return 0;
}

static int create_container(struct docker_slot *s, const struct line_start *start, struct err *err)
{
	AUTO(delete_tree) cJSON *body = NULL, *argv = NULL, *env = NULL;
	char path[DOCKER_PATH_MAX];
	int rc = make_argv(s, start->line, &argv, err);
	if (rc == 0)
		rc = make_env(start, &env, err);
	if (rc < 0)
		return rc;
	const struct docker_create create = {
		.config = s->docker->env.config,
		.image = docker_slot_image(s),
		.run = s->docker->run.path,
		.slot = s->dir.name,
		.sockets = s->dir.sockets,
		.argv = argv,
		.env = env,
	};
	rc = docker_create_body(&create, &body, err);
	if (rc < 0)
		return rc;
	(void)snprintf(path, sizeof(path), "/containers/create?name=%s", s->container); /* short */
	const struct docker_call call = {
		.method = "POST", .path = path, .body = body, .done = on_created, .data = s};
	rc = docker_api_send(s->docker->api, &call, err);
	s->made = s->in_flight = rc == 0;
	return rc;
}

int docker_foreign_start(struct docker_slot *s, const struct line_start *start, struct err *err)
{
	struct docker_foreign *f = s->foreign;
	if (s->in_flight)
		return err_set(err, E_CONFLICT, "the kernel before is still there");
	/* Its sockets said that it is gone; the engine has not. */
	if (f->line != 0 || s->made)
		drop_container(s);
	int rc = write_connection(s, start, err);
	/* Both are short. */
	(void)snprintf(
		s->container, sizeof(s->container), "coppice-%s-%u", s->dir.name, start->line);
	if (rc == 0)
		rc = create_container(s, start, err);
	if (rc < 0)
		return rc;
	f->line = start->line;
	f->started = f->kill_wanted = false;
	f->due_ms =
		clock_now_ms(s->docker->env.clock) + (uint64_t)s->docker->env.config->start_timeout;
	memset(&f->endpoints, 0, sizeof(f->endpoints));
	/* A key is made by the bridge: it fits. */
	(void)copy_text(f->endpoints.key, sizeof(f->endpoints.key), start->key, strlen(start->key));
	return 0;
}

static void on_signalled(void *data, int status, const struct cJSON *json, const struct err *err)
{
	struct docker *d = data;
	(void)json; /* has none */
	/* 409: it has ended meanwhile, which the wait call tells. */
	if (err && status != 409)
		log_warn(&d->log, "signal_failed reason=%s", err->text);
}

int docker_foreign_signal(struct docker_slot *s, unsigned line, int signo, struct err *err)
{
	char path[DOCKER_PATH_MAX];
	if (!s->foreign || s->foreign->line != line || !s->made || s->in_flight)
		return err_set(err, E_UNAVAILABLE, "kernel process %u is not there", line);
	(void)snprintf(path, sizeof(path), "/containers/%s/kill?signal=%d", s->container, signo);
	const struct docker_call call = {
		.method = "POST", .path = path, .done = on_signalled, .data = s->docker};
	return docker_api_send(s->docker->api, &call, err);
}

int docker_foreign_kill(struct docker_slot *s, unsigned line, struct err *err)
{
	if (s->foreign->line == line && s->in_flight) {
		s->foreign->kill_wanted = true;
		return 0;
	}
	return docker_foreign_signal(s, line, 9, err);
}
