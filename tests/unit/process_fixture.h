/* The engine `process` with a real loop and real children: a shell script stands in for a kernel,
 * says what it was given, and waits. Nothing here sleeps: each wait is for a callback or for the
 * end of a fifo. */
#ifndef COPPICE_PROCESS_FIXTURE_H
#define COPPICE_PROCESS_FIXTURE_H

#include <cjson/cJSON.h>
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <netinet/in.h>
#include <arpa/inet.h>
#include <unistd.h>
#include <uv.h>

#include "kernel-bridge/engine_process.h"
#include "kernel-bridge/spec.h"
#include "tests/lib/test.h"

#define ID "01234567-89ab-cdef-0123-456789abcdef"

/* Something that is waited for: ends the turn of the loop in which it comes. */
struct flag {
	uv_loop_t *loop;
	bool up;
};

struct fixture {
	char root[64];
	uv_loop_t loop;
	struct clock *clock;
	struct config config;
	struct log log;
	struct engine *engine;
	struct slot *slot;
	/* What the watcher heard. */
	bool warm;
	struct flag removed, closed, swept;
	unsigned started, failed, exited;
	struct endpoints endpoints;
	long pid;
	struct line_exit exit;
	struct err err;
};

static inline void on_warm(void *data)
{
	struct fixture *fx = data;

	fx->warm = true;
	uv_stop(&fx->loop);
}

static inline void on_gone(void *data, const struct line_exit *exit, const struct err *err)
{
	(void)data;
	(void)exit;
	fail_msg("a process slot goes away by itself: %s", err->text);
}

static inline void on_started(
	void *data, unsigned line, const struct endpoints *endpoints, long pid)
{
	struct fixture *fx = data;

	fx->started = line;
	fx->endpoints = *endpoints;
	fx->pid = pid;
	uv_stop(&fx->loop);
}

static inline void on_start_failed(void *data, unsigned line, const struct err *err)
{
	struct fixture *fx = data;

	fx->failed = line;
	fx->err = *err;
	uv_stop(&fx->loop);
}

static inline void on_exit_told(void *data, unsigned line, const struct line_exit *exit)
{
	struct fixture *fx = data;

	assert_true(line == fx->started); /* never before its start was told */
	fx->exited = line;
	fx->exit = *exit;
	uv_stop(&fx->loop);
}

static inline void set_flag(void *data)
{
	struct flag *flag = data;

	flag->up = true;
	uv_stop(flag->loop);
}

/* Turns the loop until the flag is up; a test that hangs here is ended by the runner. */
static inline void wait_flag(struct fixture *fx, const bool *flag)
{
	while (!*flag)
		(void)uv_run(&fx->loop, UV_RUN_DEFAULT); /* its result says only if more is open */
}

static inline void wait_line(struct fixture *fx, const unsigned *heard, unsigned line)
{
	while (*heard != line)
		(void)uv_run(&fx->loop, UV_RUN_DEFAULT); /* as above */
}

/* A kernel's processes are known by its id in their environment: two programs that use this at once
 * would end each other's. Until the program ends. */
static inline void be_alone(void)
{
	static int lock = -1;
	char path[64];

	if (lock >= 0)
		return;
	(void)snprintf(path, sizeof(path), "/tmp/coppice-test-process-%u", (unsigned)getuid());
	lock = open(path, O_CREAT | O_RDWR | O_CLOEXEC, 0600);
	assert_true(lock >= 0);
	assert_int_equal(flock(lock, LOCK_EX), 0);
}

static inline void setup(struct fixture *fx)
{
	struct bridge_env env = {.loop = &fx->loop, .config = &fx->config, .log = &fx->log};

	be_alone();
	*fx = (struct fixture){.root = "/tmp/test-process-XXXXXX"};
	assert_non_null(mkdtemp(fx->root));
	assert_int_equal(uv_loop_init(&fx->loop), 0);
	fx->removed.loop = fx->closed.loop = fx->swept.loop = &fx->loop;
	fx->clock = clock_new(&fx->loop);
	env.clock = fx->clock;
	fx->config.run_dir = fx->root;
	fx->config.data_dir = fx->root;
	fx->config.engine = "process";
	assert_int_equal(engine_process_open(&env, &fx->engine, &fx->err), 0);
}

static inline int remove_one(const char *path, const struct stat *st, int flag, struct FTW *where)
{
	(void)st;
	(void)flag;
	(void)where;
	return remove(path);
}

static inline void remove_slot(struct fixture *fx)
{
	fx->engine->ops->remove(fx->slot, set_flag, &fx->removed);
	assert_false(fx->removed.up);
	wait_flag(fx, &fx->removed.up);
	fx->slot = NULL;
}

static inline void close_engine(struct fixture *fx)
{
	fx->engine->ops->close(fx->engine, set_flag, &fx->closed);
	assert_false(fx->closed.up);
	wait_flag(fx, &fx->closed.up);
	fx->engine = NULL;
}

static inline void teardown(struct fixture *fx)
{
	struct flag clock_closed = {.loop = &fx->loop};

	if (fx->slot)
		remove_slot(fx);
	if (fx->engine)
		close_engine(fx);
	clock_close(fx->clock, set_flag, &clock_closed);
	wait_flag(fx, &clock_closed.up);
	assert_int_equal(uv_run(&fx->loop, UV_RUN_DEFAULT), 0);
	assert_int_equal(uv_loop_close(&fx->loop), 0);
	assert_int_equal(nftw(fx->root, remove_one, 8, FTW_DEPTH | FTW_PHYS), 0);
}

/* A kernelspec that runs a shell script; more is JSON members to add, or "". */
static inline struct kernelspec *given_spec(const char *script, const char *more)
{
	struct kernelspec *s = NULL;
	struct err err = {0};
	char text[4096];

	(void)snprintf(text, sizeof(text),
		"{\"argv\":[\"/bin/"
		"sh\",\"-c\",\"%s\",\"{resource_dir}\",\"{connection_file}\",\"{prefix}\"]%s}",
		script, more);
	assert_int_equal(spec_new("sh", "process", cJSON_Parse(text), "/p/share/jupyter/kernels/sh",
				 &s, &err),
		0);
	return s;
}

static inline void given_slot(struct fixture *fx, const struct kernelspec *spec)
{
	struct slot_watcher watcher = {.on_warm = on_warm,
		.on_gone = on_gone,
		.on_started = on_started,
		.on_start_failed = on_start_failed,
		.on_exit = on_exit_told,
		.data = fx};

	assert_int_equal(
		fx->engine->ops->launch(fx->engine, spec, "owner", &watcher, &fx->slot, &fx->err),
		0);
	assert_false(fx->warm);
	wait_flag(fx, &fx->warm);
}

static inline void start_line(
	struct fixture *fx, const struct kernelspec *spec, unsigned line, const struct cJSON *env)
{
	struct line_start start = {
		.line = line, .kernel_id = ID, .spec = spec, .env = env, .key = "secretkey"};

	assert_int_equal(fx->engine->ops->start(fx->slot, &start, &fx->err), 0);
	assert_true(fx->started != line);
}

static inline void path_of(const struct fixture *fx, const char *name, char ret_path[256])
{
	(void)snprintf(ret_path, 256, "%s/%s", fx->root, name);
}

/* Reads until every writer has gone: also the wait for a child to end. */
static inline void read_text(const struct fixture *fx, const char *name, char *ret, size_t size)
{
	char path[256];
	size_t len = 0;
	ssize_t n;
	int fd;

	path_of(fx, name, path);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	assert_true(fd >= 0);
	while ((n = read(fd, ret + len, size - 1 - len)) > 0)
		len += (size_t)n;
	ret[len] = '\0';
	assert_int_equal(close(fd), 0);
}

static inline bool exists(const struct fixture *fx, const char *name)
{
	char path[256];

	path_of(fx, name, path);
	return access(path, F_OK) == 0;
}

#endif
