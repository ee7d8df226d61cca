/* Answers of a container engine: all that the engine `docker` reads of them, in a life of a slot.
 * The HTTP client is a fake whose answers are the lines of the input, in the order of the requests:
 * "200 BODY", "-" for one that stays open, "0" for none. The first byte: 1 a kernelspec of another
 * image, 2 a slot that an earlier gateway left (the first line is its row), 4 a sweep too. */
#include <cjson/cJSON.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <uv.h>

#include "gateway/base/crypto.h"
#include "gateway/base/http_client.h"
#include "kernel-bridge/engine_docker.h"
#include "tests/lib/fake_clock.c"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

#define ROUNDS	200	   /* more than any slot asks of its engine */
#define STEP_MS 60	   /* longer than what is looked at again and again */
#define LEFT	"01234567" /* the slot of an earlier gateway */

struct setting {
	uv_loop_t loop;
	struct config config;
	struct config_spec foreign;
	struct kernelspec spec;
	struct log log;
	struct engine *engine;
	struct slot *slot;
	struct bytes rest; /* of the input */
	bool warm, removed, swept, closed;
	unsigned gone;
};

/* ---- the HTTP client ---- */

struct http_request {
	struct list link;
	struct http_call call;
	bool hangs;
};

struct http_client {
	struct list requests;
};

static struct http_client *client; /* the one of the engine under test */

int http_client_new(struct uv_loop_s *loop, struct http_client **ret, struct err *err)
{
	(void)loop, (void)err;
	client = *ret = xcalloc(1, sizeof **ret);
	list_init(&client->requests);
	return 0;
}

int http_client_send(struct http_client *c, const struct http_call *call,
	struct http_request **ret_request, struct err *err)
{
	struct http_request *r = xcalloc(1, sizeof *r);
	(void)err;
	r->call = *call;
	list_append(&c->requests, &r->link);
	if (ret_request)
		*ret_request = r;
	return 0;
}

void http_client_cancel(struct http_request *r)
{
	list_remove(&r->link);
	free(r);
}

void http_client_close(struct http_client *c, void (*closed)(void *data), void *data)
{
	if (!list_empty(&c->requests))
		abort(); /* everything was to be cancelled */
	free(c);
	client = NULL;
	closed(data);
}

static struct bytes next_line(struct setting *s)
{
	const uint8_t *end = s->rest.len ? memchr(s->rest.data, '\n', s->rest.len) : NULL;
	struct bytes line = {s->rest.data, end ? (size_t)(end - s->rest.data) : s->rest.len};
	size_t used = line.len + (end != NULL);
	s->rest = (struct bytes){s->rest.data + used, s->rest.len - used};
	return line;
}

static void answer(struct http_request *r, struct bytes line)
{
	static const struct err err = {E_UNAVAILABLE, "no answer"};
	struct http_call call = r->call;
	int status = 0;
	size_t at = 0;
	for (; at < line.len && at < 3 && line.data[at] >= '0' && line.data[at] <= '9'; at++)
		status = status * 10 + (line.data[at] - '0');
	at += at < line.len; /* the blank */
	/* A block of the exact size, with the NUL that the real client puts behind it. */
	AUTO(freep) char *body = xcalloc(1, line.len - at + 1);
	memcpy(body, line.data + at, line.len - at);
	http_client_cancel(r);
	call.done(call.data, status, body, line.len - at, status ? NULL : &err);
}

static bool answer_next(struct setting *s)
{
	LIST_EACH (at, &client->requests) {
		struct http_request *r = CONTAINER_OF(at, struct http_request, link);
		if (r->hangs)
			continue;
		struct bytes line = next_line(s);
		r->hangs = line.len > 0 && line.data[0] == '-';
		if (!r->hangs)
			answer(r, line);
		return true;
	}
	return false;
}

/* ---- who watches the slot ---- */

static void on_warm(void *data)
{
	((struct setting *)data)->warm = true;
}

static void on_gone(void *data, const struct line_exit *exit, const struct err *err)
{
	struct setting *s = data;
	if (s->gone++ > 0 || err->text[0] == '\0' || strlen(exit->text) >= sizeof exit->text)
		abort(); /* once, and with a reason */
}

static void on_started(void *data, unsigned line, const struct endpoints *endpoints, long pid)
{
	(void)data, (void)line, (void)endpoints, (void)pid;
}

static void on_start_failed(void *data, unsigned line, const struct err *err)
{
	(void)data, (void)line;
	if (err->text[0] == '\0')
		abort();
}

static void on_exit_(void *data, unsigned line, const struct line_exit *exit)
{
	(void)data, (void)line, (void)exit;
}

static const struct slot_watcher watcher = {.on_warm = on_warm,
	.on_gone = on_gone,
	.on_started = on_started,
	.on_start_failed = on_start_failed,
	.on_exit = on_exit_};

static void set(void *data)
{
	*(bool *)data = true;
}

/* ---- the life ---- */

static char run_dir[64], left_slot[80], left_sockets[96]; /* of all runs of this process */

static void remove_run_dir(void)
{
	(void)rmdir(left_sockets); /* not there, if it was taken up at last */
	(void)rmdir(left_slot);
	(void)rmdir(run_dir); /* what is in it shows a leak to who looks */
}

static void make_run_dir(void)
{
	if (run_dir[0])
		return;
	(void)snprintf(run_dir, sizeof run_dir, "/tmp/coppice-fuzz-XXXXXX");
	if (!mkdtemp(run_dir) || crypto_init(NULL) != 0 || atexit(remove_run_dir) != 0)
		abort();
	(void)snprintf(left_slot, sizeof left_slot, "%s/" LEFT, run_dir); /* sized for it */
	(void)snprintf(left_sockets, sizeof left_sockets, "%s/s", left_slot);
}

static void open_engine(struct setting *s, bool foreign)
{
	struct bridge_env env = {
		.loop = &s->loop, .clock = clock_new(NULL), .config = &s->config, .log = &s->log};
	s->foreign = (struct config_spec){
		.name = "other", .argv = "[\"k\",\"{connection_file}\"]", .image = "other"};
	s->config.run_dir = run_dir;
	s->config.engine_socket = "/nowhere";
	s->config.image = "coppice-kernel";
	s->config.mount = "";
	s->config.start_timeout = 1000;
	s->config.message_limit = 1 << 16;
	s->config.specs = &s->foreign;
	s->config.n_specs = 1;
	s->spec = (struct kernelspec){.name = foreign ? "other" : "python3", .engine = "docker"};
	log_init(&s->log, NULL);
	if (uv_loop_init(&s->loop) != 0 || engine_docker_open(&env, &s->engine, NULL) != 0)
		abort();
}

static int adopt(struct setting *s, const struct slot_watcher *w, struct err *err)
{
	(void)mkdir(left_slot, 0700);	 /* may be there */
	(void)mkdir(left_sockets, 0755); /* likewise */
	struct bytes line = next_line(s);
	cJSON *row = cJSON_ParseWithLength((const char *)line.data, line.len);
	const struct slot_adopt what = {.row = row, .line = 1, .key = "key", .lay = "lay"};
	int rc = s->engine->ops->adopt(s->engine, &s->spec, &what, w, &s->slot, err);
	cJSON_Delete(row);
	return rc;
}

static void start_line(struct setting *s)
{
	const struct line_start start = {
		.line = 1, .kernel_id = "k", .spec = &s->spec, .key = "key"};
	if (!s->warm || s->gone > 0)
		return;
	s->warm = false;
	(void)s->engine->ops->start(s->slot, &start, NULL); /* a slot without supervisor refuses */
}

static void look(struct setting *s)
{
	cJSON_Delete(s->engine->ops->report(s->engine));
	if (s->slot && !s->removed)
		cJSON_Delete(s->engine->ops->slot_report(s->slot));
}

static void run(struct setting *s, struct clock *clock)
{
	for (int i = 0; i < ROUNDS && (answer_next(s) || fake_clock_next(clock) <= STEP_MS); i++) {
		fake_clock_advance(clock, STEP_MS);
		(void)uv_run(&s->loop, UV_RUN_NOWAIT);
		start_line(s);
		look(s);
	}
}

static void end(struct setting *s, struct clock *clock)
{
	if (s->slot)
		s->engine->ops->remove(s->slot, set, &s->removed);
	run(s, clock);
	s->engine->ops->close(s->engine, set, &s->closed);
	while (!s->closed || uv_loop_alive(&s->loop))
		(void)uv_run(&s->loop, UV_RUN_DEFAULT);
	clock_close(clock, NULL, NULL);
	if (uv_loop_close(&s->loop) != 0)
		abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	if (len == 0)
		return 0;
	struct setting *s = xcalloc(1, sizeof *s);
	struct slot_watcher w = watcher;
	struct err err;
	w.data = s;
	s->rest = (struct bytes){data + 1, len - 1};
	make_run_dir();
	open_engine(s, (data[0] & 3) == 1);
	struct clock *clock = CONTAINER_OF(s->engine, struct docker, engine)->env.clock;
	int rc = data[0] & 2
			 ? adopt(s, &w, &err)
			 : s->engine->ops->launch(s->engine, &s->spec, "owner", &w, &s->slot, &err);
	if (rc != 0)
		s->slot = NULL;
	if (data[0] & 4)
		s->engine->ops->sweep(s->engine, set, &s->swept);
	run(s, clock);
	end(s, clock);
	free(s);
	return 0;
}
