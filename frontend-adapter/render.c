/* Starts coppice-render for each bundle, bounds what it takes and says, hears how it ended. */
#include <assert.h>
#include <cjson/cJSON.h>
#include <signal.h>
#include <string.h>
#include <uv.h>

#include "frontend-adapter/adapter.h"
#include "gateway/base/buf.h"
#include "gateway/base/clock.h"
#include "gateway/base/json_tree.h"
#include "gateway/base/list.h"
#include "gateway/base/log.h"

#define PARALLEL_MAX  2
#define WAITING_MAX   64
#define BUNDLE_MAX    (64u << 20)
#define HTML_MAX_MIN  (16u << 10) /* what is said beside a result has room too */
#define PNG_MAX_MIN   1024u
#define MAX_BYTES_MAX (32u << 20)
#define HEAD_MAX      1024u
#define SAID_MAX      400u
#define LIMIT_MS      15000u

struct renderer {
	struct renderer_setup setup;
	char *program;
	struct list waiting, running; /* of struct job by link */
	unsigned n_waiting, n_running;
	struct timer end; /* runs while closing and nothing does */
	bool closing;
	void (*closed)(void *data);
	void *closed_data;
};

struct job {
	struct list link;
	struct renderer *r;
	struct buf in, out, said;
	render_done *done;
	void *data;
	enum render_to to;
	uv_process_t process;
	uv_pipe_t pipe[3]; /* its stdin, stdout, stderr */
	uv_write_t write;
	struct timer limit;
	char block[65536];
	unsigned open; /* handles */
	int spawned;   /* 0, or why not */
	int64_t exit;
	int signal;
	bool late;
};

static void begin_next(struct renderer *r);

static struct job *job_of(struct list *link)
{
	return CONTAINER_OF(link, struct job, link);
}

static void free_job(struct job *j)
{
	list_remove(&j->link);
	buf_done(&j->in);
	buf_done(&j->out);
	buf_done(&j->said);
	free(j);
}

/* ---- its end ---- */

static const char *text_of(const struct cJSON *head, const char *key)
{
	const char *text = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(head, key));
	return text ? text : "";
}

static int tell_result(struct job *j, struct err *err)
{
	const uint8_t *end = j->out.len ? memchr(j->out.data, '\n', j->out.len) : NULL;
	size_t len = end ? (size_t)(end - j->out.data) : 0;
	if (len == 0 || len >= HEAD_MAX)
		return err_set(err, E_IO, "coppice-render said what it never says");
	struct err why = {0};
	struct cJSON *head = json_parse((struct bytes){j->out.data, len}, NULL, &why);
	if (!head)
		return err_set(err, why.code == E_NOMEM ? E_NOMEM : E_IO,
			"coppice-render said what it never says: %s", why.text);
	struct render_result result = {
		.body = {end + 1, j->out.len - len - 1},
		.mime = j->to == RENDER_TO_PNG ? "image/png" : "text/html; charset=utf-8",
		.from = text_of(head, "from"),
		.cut = cJSON_IsTrue(cJSON_GetObjectItemCaseSensitive(head, "cut")),
	};
	j->done(j->data, 0, &result, NULL);
	cJSON_Delete(head);
	return 0;
}

/* The exit codes of render/render.h. */
static int code_of(int64_t exit)
{
	switch (exit) {
	case 2:
	case 3:
		return E_INVALID;
	case 4:
		return E_TOO_BIG;
	case 5:
		return E_UNAVAILABLE;
	default:
		return E_IO;
	}
}

static int judge(struct job *j, struct err *err)
{
	const char *said = j->said.data ? (const char *)j->said.data : "";
	if (j->spawned != 0)
		return err_set(err, E_UNAVAILABLE, "%s cannot be started: %s", j->r->program,
			uv_strerror(j->spawned));
	if (j->r->closing)
		return err_set(err, E_UNAVAILABLE, "the gateway ends");
	if (j->late || j->signal == SIGXCPU)
		return err_set(err, E_TIMEOUT, "drawing took too long");
	if (j->out.failed)
		return err_set(err, E_TOO_BIG, "what was drawn is too long");
	if (j->signal != 0)
		return err_set(err, E_IO, "drawing ended by signal %d", j->signal);
	if (j->exit != 0)
		return err_set(err, code_of(j->exit), "%.*s", (int)strcspn(said, "\n"), said);
	return tell_result(j, err);
}

static void finish(struct job *j)
{
	struct renderer *r = j->r;
	struct err err = {0};
	timer_stop(r->setup.clock, &j->limit);
	int status = judge(j, &err);
	if (status != 0) {
		log_info(r->setup.log, "render_failed reason=%s", err.text);
		j->done(j->data, status, NULL, &err);
	}
	r->n_running--;
	free_job(j);
	begin_next(r);
}

static void on_closed(uv_handle_t *handle)
{
	struct job *j = handle->data;
	if (--j->open == 0)
		finish(j);
}

static void close_handle(void *handle)
{
	if (!uv_is_closing(handle))
		uv_close(handle, on_closed);
}

static void on_exit_(uv_process_t *process, int64_t status, int signo)
{
	struct job *j = process->data;
	j->exit = status;
	j->signal = signo;
	close_handle(process);
	close_handle(&j->pipe[0]); /* it may have left some unread */
}

static void stop(struct job *j)
{
	if (!uv_is_closing((uv_handle_t *)&j->process))
		(void)uv_process_kill(&j->process, SIGKILL); /* or it has ended just now */
}

static void on_limit(struct timer *t)
{
	struct job *j = CONTAINER_OF(t, struct job, limit);
	j->late = true;
	stop(j);
}

/* ---- its pipes ---- */

static void on_alloc(uv_handle_t *handle, size_t size, uv_buf_t *ret)
{
	struct job *j = handle->data;
	(void)size;
	*ret = uv_buf_init(j->block, sizeof j->block);
}

static void on_out(uv_stream_t *stream, ssize_t n, const uv_buf_t *block)
{
	struct job *j = stream->data;
	if (n > 0 && buf_add(&j->out, block->base, (size_t)n) != 0)
		stop(j);
	else if (n < 0)
		close_handle(stream);
}

static void on_said(uv_stream_t *stream, ssize_t n, const uv_buf_t *block)
{
	struct job *j = stream->data;
	size_t room = SAID_MAX - j->said.len;
	if (n > 0)
		(void)buf_add(
			&j->said, block->base, (size_t)n < room ? (size_t)n : room); /* fits */
	else if (n < 0)
		close_handle(stream);
}

static void on_written(uv_write_t *write, int status)
{
	struct job *j = write->data;
	(void)status; /* a program that does not listen ends, and how says why */
	close_handle(&j->pipe[0]);
}

/* ---- its start ---- */

static int spawn(struct job *j)
{
	char *argv[] = {j->r->program, NULL};
	char *environment[] = {"PATH=/usr/bin:/bin", "LANG=C.UTF-8", "HOME=/nonexistent",
		"RAYON_NUM_THREADS=1", NULL};
	uv_stdio_container_t stdio[3];
	for (int i = 0; i < 3; i++) {
		stdio[i] = (uv_stdio_container_t){
			.flags = UV_CREATE_PIPE | (i == 0 ? UV_READABLE_PIPE : UV_WRITABLE_PIPE),
			.data.stream = (uv_stream_t *)&j->pipe[i]};
		(void)uv_pipe_init(j->r->setup.loop, &j->pipe[i], 0); /* cannot fail */
		j->pipe[i].data = j;
	}
	uv_process_options_t options = {.file = argv[0],
		.args = argv,
		.env = environment,
		.cwd = "/",
		.exit_cb = on_exit_,
		.stdio = stdio,
		.stdio_count = 3};
	j->process.data = j->write.data = j;
	j->open = 4;
	return uv_spawn(j->r->setup.loop, &j->process, &options);
}

static void begin(struct job *j)
{
	struct renderer *r = j->r;
	j->spawned = spawn(j);
	if (j->spawned != 0) {
		close_handle(&j->process);
		for (int i = 0; i < 3; i++)
			close_handle(&j->pipe[i]);
		return;
	}
	uv_buf_t in = uv_buf_init((char *)j->in.data, (unsigned)j->in.len);
	timer_start(r->setup.clock, &j->limit, r->setup.limit_ms);
	if (uv_write(&j->write, (uv_stream_t *)&j->pipe[0], &in, 1, on_written) != 0)
		close_handle(&j->pipe[0]);
	int rc = uv_read_start((uv_stream_t *)&j->pipe[1], on_alloc, on_out);
	rc |= uv_read_start((uv_stream_t *)&j->pipe[2], on_alloc, on_said);
	assert(rc == 0); /* they are open */
	(void)rc;	 /* only read by the assert */
}

static void begin_next(struct renderer *r)
{
	if (r->closing && r->n_running == 0)
		timer_start(r->setup.clock, &r->end, 0);
	while (!r->closing && r->n_running < PARALLEL_MAX && !list_empty(&r->waiting)) {
		struct job *j = job_of(r->waiting.next);
		list_remove(&j->link);
		list_append(&r->running, &j->link);
		r->n_waiting--;
		r->n_running++;
		begin(j);
	}
}

/* ---- what others call ---- */

static void on_end(struct timer *t)
{
	struct renderer *r = CONTAINER_OF(t, struct renderer, end);
	struct err err;
	err_set(&err, E_UNAVAILABLE, "the gateway ends");
	LIST_EACH_SAFE (at, &r->waiting) {
		struct job *j = job_of(at);
		j->done(j->data, E_UNAVAILABLE, NULL, &err);
		free_job(j);
	}
	void (*closed)(void *data) = r->closed;
	void *data = r->closed_data;
	free(r->program);
	free(r);
	closed(data);
}

struct renderer *renderer_open(const struct renderer_setup *setup)
{
	struct renderer *r = xcalloc(1, sizeof *r);
	r->setup = *setup;
	r->program = xstrdup(setup->program);
	r->setup.program = r->program;
	r->setup.limit_ms = setup->limit_ms ? setup->limit_ms : LIMIT_MS;
	list_init(&r->waiting);
	list_init(&r->running);
	timer_init(&r->end, on_end);
	return r;
}

void renderer_close(struct renderer *r, void (*closed)(void *data), void *data)
{
	assert(!r->closing);
	r->closing = true;
	r->closed = closed;
	r->closed_data = data;
	LIST_EACH (at, &r->running)
		stop(job_of(at));
	begin_next(r);
}

static int check(const struct renderer *r, const struct render_request *q, struct err *err)
{
	if (r->closing)
		return err_set(err, E_UNAVAILABLE, "the gateway ends");
	size_t least = q->to == RENDER_TO_PNG ? PNG_MAX_MIN : HTML_MAX_MIN;
	if (q->max_bytes != 0 && q->max_bytes < least)
		return err_set(err, E_INVALID, "max_bytes: at least %zu", least);
	if (q->bundle.len > BUNDLE_MAX)
		return err_set(err, E_TOO_BIG, "the bundle is longer than %u bytes", BUNDLE_MAX);
	if (r->n_waiting >= WAITING_MAX)
		return err_set(err, E_UNAVAILABLE, "%u drawings wait already", r->n_waiting);
	return 0;
}

int renderer_ask(struct renderer *r, const struct render_request *q, render_done *done, void *data,
	struct err *err)
{
	int status = check(r, q, err);
	size_t max = q->max_bytes && q->max_bytes < MAX_BYTES_MAX ? q->max_bytes : MAX_BYTES_MAX;
	if (status != 0)
		return status;
	struct job *j = xcalloc(1, sizeof *j);
	*j = (struct job){.r = r, .done = done, .data = data, .to = q->to};
	list_init(&j->link);
	timer_init(&j->limit, on_limit);
	buf_init(&j->in, BUNDLE_MAX + HEAD_MAX);
	buf_init(&j->out, max + HEAD_MAX);
	buf_init(&j->said, SAID_MAX);
	(void)buf_addf(&j->in, "{\"to\":\"%s\",\"max_bytes\":%zu}\n",
		q->to == RENDER_TO_PNG ? "png" : "html", max); /* latched */
	status = buf_add(&j->in, q->bundle.data, q->bundle.len);
	if (status != 0) {
		free_job(j);
		return err_set(err, status, "the bundle cannot be taken");
	}
	list_append(&r->waiting, &j->link);
	r->n_waiting++;
	begin_next(r);
	return 0;
}
