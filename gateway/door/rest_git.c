/* `git clone` of a history: git's own server program, started for each request with an argument
 * vector and an environment of its own, speaks CGI. libgit2 has no server. Read only. */
#include <assert.h>
#include <cjson/cJSON.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <uv.h>

#include "gateway/base/buf.h"
#include "gateway/base/json_tree.h"
#include "gateway/door/rest_history.h"
#include "gateway/door/route.h"
#include "gateway/gateway.h"

#define BEHIND_MAX (4u << 20) /* more waits in git's pipe */
#define HEAD_MAX   8192u
#define TEXT_SIZE  4200
#define ENV_MAX	   16
#define GIT_SCOPES (SCOPE_READ | SCOPE_RUN | ROUTE_BASIC)

struct git {
	struct call *call;
	const char *tail; /* "/info/refs" */
	uv_process_t process;
	uv_pipe_t in, out;
	uv_write_t write;
	struct buf head; /* of its answer, until all of it is there */
	bool begun, stopped;
	char block[65536];
	unsigned open; /* handles */
};

static void free_git(struct git *g)
{
	buf_done(&g->head);
	free(g);
}

static void fail(struct git *g, int code, const char *what)
{
	struct err err;
	err_set(&err, code, "git http-backend: %s", what);
	answer_error(g->call, &err);
	free_git(g);
}

/* ---- its answer ---- */

static const char *value_of(const char *head, const char *name, char *ret, size_t size)
{
	const char *at = strcasestr(head, name);
	size_t len = at ? strcspn(at + strlen(name), "\r\n") : 0;
	(void)copy_text(ret, size, at ? at + strlen(name) : "", len); /* may be cut */
	return ret;
}

static void on_alloc(uv_handle_t *handle, size_t size, uv_buf_t *ret);
static void on_read(uv_stream_t *stream, ssize_t n, const uv_buf_t *block);

static void on_drained(void *data)
{
	struct git *g = data;
	if (!g->stopped)
		return;
	g->stopped = false;
	(void)uv_read_start((uv_stream_t *)&g->out, on_alloc, on_read); /* it is open */
}

static void on_gone(void *data)
{
	struct git *g = data;
	on_drained(g);
	(void)uv_process_kill(&g->process, SIGTERM); /* it may have ended by itself */
}

/* The head of CGI is there: its type becomes ours, and what follows it goes out. False: it is not
 * there yet. A status other than 200 has a short text, which is dropped. */
static bool begin(struct git *g)
{
	char head[HEAD_MAX], type[128];
	const uint8_t *data = g->head.data;
	const uint8_t *end = data ? memmem(data, g->head.len, "\r\n\r\n", 4) : NULL;
	if (!end || (size_t)(end - data) >= sizeof head)
		return false;
	(void)copy_text(head, sizeof head, (const char *)data, (size_t)(end - data));
	if (strcasestr(head, "Status: "))
		return false;
	size_t skip = (size_t)(end - data) + 4;
	(void)value_of(head, "Content-Type: ", type, sizeof type);
	answer_header(g->call, "Cache-Control", "no-cache");
	g->call->on_drained = on_drained;
	answer_begin(g->call, *type ? type : "application/octet-stream", on_gone, g);
	(void)answer_add(
		g->call, (struct bytes){data + skip, g->head.len - skip}); /* as in take() */
	g->begun = true;
	return true;
}

static void take(struct git *g, struct bytes piece)
{
	if (g->begun) {
		(void)answer_add(g->call, piece); /* of one that has left the rest is dropped */
		g->stopped = answer_backlog(g->call) > BEHIND_MAX;
		if (g->stopped)
			(void)uv_read_stop((uv_stream_t *)&g->out); /* cannot fail */
		return;
	}
	(void)buf_add(&g->head, piece.data, piece.len); /* latched */
	(void)begin(g);					/* not yet then */
}

static void tell(struct git *g)
{
	if (g->begun) {
		answer_end(g->call);
		free_git(g);
	} else {
		fail(g, g->head.len > 0 ? E_NOT_FOUND : E_UNAVAILABLE,
			g->head.len > 0 ? "it has no such thing" : "it could not be started");
	}
}

static void on_closed(uv_handle_t *handle)
{
	struct git *g = handle->data;
	if (--g->open == 0)
		tell(g);
}

static void close_handle(uv_handle_t *handle)
{
	if (!uv_is_closing(handle))
		uv_close(handle, on_closed);
}

static void on_ended(uv_process_t *process, int64_t status, int signo)
{
	(void)status, (void)signo; /* what it said counts */
	close_handle((uv_handle_t *)process);
}

static void on_alloc(uv_handle_t *handle, size_t size, uv_buf_t *ret)
{
	struct git *g = handle->data;
	(void)size;
	*ret = uv_buf_init(g->block, sizeof g->block);
}

static void on_read(uv_stream_t *stream, ssize_t n, const uv_buf_t *block)
{
	struct git *g = stream->data;
	if (n > 0)
		take(g, (struct bytes){(const uint8_t *)block->base, (size_t)n});
	else if (n < 0)
		close_handle((uv_handle_t *)stream);
}

static void on_written(uv_write_t *write, int status)
{
	struct git *g = write->data;
	(void)status; /* a program that does not listen says why */
	close_handle((uv_handle_t *)&g->in);
}

/* ---- its start ---- */

struct environment {
	char text[ENV_MAX][TEXT_SIZE];
	char *list[ENV_MAX + 1];
	unsigned n;
};

static void put(struct environment *e, const char *name, const char *value)
{
	int len = snprintf(e->text[e->n], TEXT_SIZE, "%s=%s", name, value);
	if (len > 0 && len < TEXT_SIZE && e->n < ENV_MAX) {
		e->list[e->n] = e->text[e->n];
		e->n++;
	}
}

static void make_environment(struct environment *e, const struct git *g, const char *repository)
{
	const struct call *r = g->call;
	char text[TEXT_SIZE];
	const char *service = call_query(r, "service");
	put(e, "PATH", "/usr/local/bin:/usr/bin:/bin");
	put(e, "GIT_CONFIG_NOSYSTEM", "1");
	put(e, "GIT_CONFIG_COUNT", "1"); /* whoever runs us, the repositories are ours */
	put(e, "GIT_CONFIG_KEY_0", "safe.directory");
	put(e, "GIT_CONFIG_VALUE_0", "*");
	put(e, "HOME", "/nonexistent");
	put(e, "GIT_HTTP_EXPORT_ALL", "1");
	put(e, "REMOTE_USER", r->owner->name);
	put(e, "REQUEST_METHOD", method_name(r->method));
	(void)snprintf(text, sizeof text, "%s%s", repository, g->tail); /* bounded by put() */
	put(e, "PATH_TRANSLATED", text);
	(void)snprintf(text, sizeof text, "service=%s", service ? service : "");
	put(e, "QUERY_STRING", service ? text : "");
	put(e, "CONTENT_TYPE", "application/x-git-upload-pack-request");
	(void)snprintf(text, sizeof text, "%zu", r->body.len);
	put(e, "CONTENT_LENGTH", text);
	if (r->header[HEADER_CONTENT_ENCODING])
		put(e, "HTTP_CONTENT_ENCODING", r->header[HEADER_CONTENT_ENCODING]);
}

static void feed(struct git *g)
{
	const struct call *r = g->call;
	uv_buf_t body = uv_buf_init((char *)r->body.data, (unsigned)r->body.len);
	g->write.data = g;
	if (r->body.len == 0 ||
		uv_write(&g->write, (uv_stream_t *)&g->in, &body, 1, on_written) != 0)
		close_handle((uv_handle_t *)&g->in);
}

static int spawn(struct git *g, const char *repository)
{
	char *argv[] = {"git", "http-backend", NULL};
	struct environment *e = xcalloc(1, sizeof *e);
	uv_loop_t *loop = g->call->door->gw->loop;
	uv_stdio_container_t stdio[] = {
		{.flags = UV_CREATE_PIPE | UV_READABLE_PIPE, .data.stream = (uv_stream_t *)&g->in},
		{.flags = UV_CREATE_PIPE | UV_WRITABLE_PIPE, .data.stream = (uv_stream_t *)&g->out},
		{.flags = UV_IGNORE}};
	make_environment(e, g, repository);
	uv_process_options_t options = {.file = argv[0],
		.args = argv,
		.env = e->list,
		.exit_cb = on_ended,
		.stdio = stdio,
		.stdio_count = ARRAY_LEN(stdio)};
	(void)uv_pipe_init(loop, &g->in, 0); /* these cannot fail */
	(void)uv_pipe_init(loop, &g->out, 0);
	g->in.data = g->out.data = g->process.data = g;
	g->open = 3;
	int rc = uv_spawn(loop, &g->process, &options);
	free(e);
	return rc;
}

static void on_place(void *data, int status, struct bytes json, const struct err *err)
{
	struct git *g = data;
	if (status != 0) {
		answer_error(g->call, err);
		free_git(g);
		return;
	}
	struct cJSON *tree = json_parse(json, NULL, NULL); /* NULL: as without a path */
	const char *path = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(tree, "path"));
	int rc = path ? spawn(g, path) : UV_EINVAL;
	cJSON_Delete(tree);
	if (rc == 0) {
		feed(g);
		rc = uv_read_start((uv_stream_t *)&g->out, on_alloc, on_read);
		assert(rc == 0); /* it is open */
		return;
	}
	if (!path) {
		fail(g, E_IO, "the repository is not known");
		return;
	}
	close_handle((uv_handle_t *)&g->process);
	close_handle((uv_handle_t *)&g->in);
	close_handle((uv_handle_t *)&g->out);
}

/* The segment is NAME.git. */
static void serve(struct call *r, const char *tail)
{
	struct err err;
	size_t len = strlen(r->param[0]);
	if (len < 5 || strcmp(r->param[0] + len - 4, ".git") != 0) {
		err_set(&err, E_NOT_FOUND, "nothing is here");
		answer_error(r, &err);
		return;
	}
	struct history_question q;
	r->param[0][len - 4] = '\0';
	if (question_read(r, HISTORY_REPOSITORY, r->param[0], &q, &err) != 0) {
		answer_error(r, &err);
		return;
	}
	struct git *g = xcalloc(1, sizeof *g);
	g->call = r;
	g->tail = tail;
	buf_init(&g->head, HEAD_MAX + sizeof g->block);
	history_ask(r->door->gw->histories, &q, on_place, g);
}

static void refs_get(struct call *r)
{
	const char *service = call_query(r, "service");
	struct err err;
	if (service && strcmp(service, "git-upload-pack") == 0) {
		serve(r, "/info/refs");
		return;
	}
	err_set(&err, E_FORBIDDEN, "histories are read only: nothing can be pushed into one");
	answer_error(r, &err);
}

static void pack_post(struct call *r)
{
	serve(r, "/git-upload-pack");
}

const struct route rest_git_routes[] = {
	{METHOD_GET, "/history/{h}/info/refs", GIT_SCOPES, refs_get},
	{METHOD_POST, "/history/{h}/git-upload-pack", GIT_SCOPES, pack_post},
	{0},
};
