/* A container engine with canned answers, and this process as the supervisor that comes back to
 * `ctl`, or does not. Included by one file per program. */
#ifndef COPPICE_DOCKER_FIXTURE_H
#define COPPICE_DOCKER_FIXTURE_H

#include <cjson/cJSON.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>
#include <uv.h>

#include "gateway/base/crypto.h"
#include "kernel-bridge/engine_docker.h"
#include "tests/lib/canned_http.h"
#include "tests/lib/fake_clock.h"
#include "tests/lib/test.h"

#define GUARD_NS UINT64_C(20000000000)
#define NAME	 "01234567"

struct fixture {
	uv_loop_t loop;
	uv_timer_t tick;
	struct canned_http http;
	struct config config;
	struct log log;
	struct kernelspec spec;
	struct engine *engine;
	struct clock *clock;
	struct slot *slot;
	char run[64], folder[96], sockets[96];
	bool vanished;	 /* the container */
	const char *lay; /* that an earlier gateway wrote down; NULL: none */
	char text[1024]; /* of the answer */
	const char *top; /* what `top` answers; NULL: that there is no such container */
	int peer;	 /* the supervisor's end of ctl */
	unsigned begin;	 /* a line to start as soon as it is warm */

	int64_t asked, park;
	unsigned parked, unparked, not_parked, revived;
	unsigned asks, reports, warm, started, exits, gone, kept, kept_ends, removed, closed,
		deleted, killed;
	unsigned line;
	long pid;
	struct line_exit exit;
	struct err why;
	char bytes[64];
	enum channel channel;
	int64_t lost;
};

/* ---- what it tells ---- */

static void on_warm(void *data)
{
	struct fixture *fx = data;
	fx->warm++;
	const struct line_start start = {
		.line = fx->begin, .kernel_id = "k", .spec = &fx->spec, .key = "key"};
	if (fx->begin > 0)
		assert_int_equal(fx->engine->ops->start(fx->slot, &start, NULL), 0);
}

static void on_gone(void *data, const struct line_exit *exit, const struct err *err)
{
	struct fixture *fx = data;
	fx->gone++;
	fx->exit = *exit;
	fx->why = *err;
}

static void on_started(void *data, unsigned line, const struct endpoints *endpoints, long pid)
{
	struct fixture *fx = data;
	assert_non_null(strstr(endpoints->address[CHANNEL_SHELL], "/" NAME "/s/shell-"));
	fx->started++;
	fx->line = line;
	fx->pid = pid;
}

static void on_start_failed(void *data, unsigned line, const struct err *err)
{
	(void)data, (void)line;
	fail_msg("%s", err->text);
}

static void on_line_exit(void *data, unsigned line, const struct line_exit *exit)
{
	struct fixture *fx = data;
	fx->exits++;
	fx->line = line;
	fx->exit = *exit;
}

static void on_kept(void *data, unsigned line, enum channel channel, struct bytes frames)
{
	struct fixture *fx = data;
	assert_int_equal(line, 1);
	assert_true(frames.len < sizeof fx->bytes);
	fx->kept++;
	fx->channel = channel;
	(void)snprintf(
		fx->bytes, sizeof fx->bytes, "%.*s", (int)frames.len, (const char *)frames.data);
}

static void on_kept_end(void *data, unsigned line, int64_t lost)
{
	struct fixture *fx = data;
	assert_int_equal(line, 1);
	fx->kept_ends++;
	fx->lost = lost;
}

static void on_report(void *data, unsigned line, const char *msg_id, struct bytes text)
{
	struct fixture *fx = data;
	assert_int_equal(line, 1);
	fx->reports++;
	(void)snprintf(fx->bytes, sizeof fx->bytes, "%s %.*s", msg_id, (int)text.len,
		(const char *)text.data);
}

static void on_ask(void *data, unsigned line, int64_t id, const char *what, const char *about)
{
	struct fixture *fx = data;
	assert_int_equal(line, 1);
	fx->asks++;
	fx->asked = id;
	(void)snprintf(fx->bytes, sizeof fx->bytes, "%s %s", what, about);
}

static void on_parked(void *data, const struct slot_parked *parked)
{
	struct fixture *fx = data;
	fx->parked++;
	fx->park = parked->park;
	(void)snprintf(fx->bytes, sizeof fx->bytes, "%s %.*s", parked->msg_id,
		(int)parked->text.len, (const char *)parked->text.data);
}

static void on_unparked(void *data, int64_t park, const char *reason)
{
	struct fixture *fx = data;
	fx->unparked++;
	fx->park = park;
	(void)snprintf(fx->bytes, sizeof fx->bytes, "%s", reason);
}

static void on_not_parked(void *data, unsigned line, const char *msg_id, const char *reason)
{
	struct fixture *fx = data;
	fx->not_parked++;
	fx->line = line;
	(void)snprintf(fx->bytes, sizeof fx->bytes, "%s %s", msg_id, reason);
}

static void on_revived(void *data, unsigned line, struct bytes text)
{
	struct fixture *fx = data;
	fx->revived++;
	fx->line = line;
	(void)snprintf(fx->bytes, sizeof fx->bytes, "%.*s", (int)text.len, (const char *)text.data);
}

static void count(void *data)
{
	++*(unsigned *)data;
}

static const char *respond(struct fixture *fx, const char *status, const char *body)
{
	(void)snprintf(fx->text, sizeof fx->text, "%s\r\nContent-Length: %zu\r\n\r\n%s", status,
		strlen(body), body);
	return fx->text;
}

static const char *answer(struct canned_http *h, const char *request)
{
	struct fixture *fx = h->data;
	if (strstr(request, "/version "))
		return respond(fx, "200 OK", "{\"ApiVersion\":\"1.41\"}");
	if (strstr(request, "/wait ") && !fx->vanished)
		return NULL; /* it is answered when the container ends */
	if (strstr(request, "/top?ps_args=-eo%20pid,ppid,stat ") && fx->top)
		return respond(fx, "200 OK", fx->top);
	fx->killed += strstr(request, "/kill ") != NULL;
	fx->deleted += strncmp(request, "DELETE", 6) == 0;
	return respond(fx, "404 Not Found", "{\"message\":\"No such container\"}");
}

/* ---- set-up ---- */

static void on_tick(uv_timer_t *t)
{
	(void)t; /* so that a turn never waits long */
}

static void turn(struct fixture *fx)
{
	fake_clock_advance(fx->clock, 0);
	(void)uv_run(&fx->loop, UV_RUN_ONCE);
}

static void until(struct fixture *fx, const unsigned *what)
{
	uint64_t start_ns = uv_hrtime();
	while (*what == 0) {
		turn(fx);
		if (uv_hrtime() - start_ns > GUARD_NS)
			fail_msg("waited in vain");
	}
}

static void setup(struct fixture *fx)
{
	memset(fx, 0, sizeof *fx);
	fx->peer = -1;
	assert_int_equal(crypto_init(NULL), 0);
	assert_int_equal(uv_loop_init(&fx->loop), 0);
	assert_int_equal(uv_timer_init(&fx->loop, &fx->tick), 0);
	assert_int_equal(uv_timer_start(&fx->tick, on_tick, 1, 1), 0);
	canned_http_open(&fx->http, &fx->loop, answer, fx);
	(void)snprintf(fx->run, sizeof fx->run, "/tmp/coppice-adopt-XXXXXX");
	assert_non_null(mkdtemp(fx->run));
	(void)snprintf(fx->folder, sizeof fx->folder, "%s/" NAME, fx->run);
	(void)snprintf(fx->sockets, sizeof fx->sockets, "%s/" NAME "/s", fx->run);
	assert_int_equal(mkdir(fx->folder, 0700), 0);
	assert_int_equal(mkdir(fx->sockets, 0755), 0);
	fx->config.run_dir = fx->run;
	fx->config.engine_socket = fx->http.path;
	fx->config.image = "coppice-kernel";
	fx->config.mount = "";
	fx->config.start_timeout = 60000;
	fx->config.message_limit = 1 << 20;
	fx->spec = (struct kernelspec){.name = "python3", .engine = "docker"};
	log_init(&fx->log, NULL);
	fx->clock = clock_new(&fx->loop);
	const struct bridge_env env = {&fx->loop, fx->clock, &fx->config, &fx->log};
	assert_int_equal(engine_docker_open(&env, &fx->engine, NULL), 0);
}

static int adopt(struct fixture *fx, const char *name, long pid, struct err *err)
{
	const struct slot_watcher watcher = {.on_warm = on_warm,
		.on_gone = on_gone,
		.on_started = on_started,
		.on_start_failed = on_start_failed,
		.on_exit = on_line_exit,
		.on_kept = on_kept,
		.on_kept_end = on_kept_end,
		.on_report = on_report,
		.on_ask = on_ask,
		.on_parked = on_parked,
		.on_unparked = on_unparked,
		.on_not_parked = on_not_parked,
		.on_revived = on_revived,
		.data = fx};
	cJSON *row = cJSON_CreateObject();
	cJSON_AddStringToObject(row, "slot", name);
	cJSON_AddNumberToObject(row, "pid", (double)pid);
	const struct slot_adopt what = {
		.row = row, .line = 1, .key = "key", .lay = fx->lay ? fx->lay : ""};
	int rc = fx->engine->ops->adopt(fx->engine, &fx->spec, &what, &watcher, &fx->slot, err);
	cJSON_Delete(row);
	return rc;
}

static void teardown(struct fixture *fx)
{
	if (fx->slot) {
		fx->engine->ops->remove(fx->slot, count, &fx->removed);
		until(fx, &fx->removed);
	}
	fx->engine->ops->close(fx->engine, count, &fx->closed);
	until(fx, &fx->closed);
	if (fx->peer >= 0)
		(void)close(fx->peer);
	canned_http_close(&fx->http);
	clock_close(fx->clock, NULL, NULL);
	uv_close((uv_handle_t *)&fx->tick, NULL);
	assert_int_equal(uv_run(&fx->loop, UV_RUN_DEFAULT), 0);
	assert_int_equal(uv_loop_close(&fx->loop), 0);
	(void)rmdir(fx->sockets); /* where the slot was not taken up, or was left */
	(void)rmdir(fx->folder);
	assert_int_equal(rmdir(fx->run), 0);
}

/* ---- the supervisor ---- */

static int dial(const struct fixture *fx)
{
	struct sockaddr_un to = {.sun_family = AF_UNIX};
	(void)snprintf(to.sun_path, sizeof to.sun_path, "%s/ctl", fx->sockets);
	int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	assert_int_equal(connect(fd, (struct sockaddr *)&to, sizeof to), 0);
	return fd;
}

static void say(struct fixture *fx, const char *packet)
{
	assert_int_equal(send(fx->peer, packet, strlen(packet), MSG_NOSIGNAL), strlen(packet));
}

/* The next packet of that type; the others are passed over. Caller deletes. */
static cJSON *hear(struct fixture *fx, const char *type)
{
	char packet[CTL_PACKET_MAX];
	uint64_t start_ns = uv_hrtime();
	while (uv_hrtime() - start_ns < GUARD_NS) {
		turn(fx);
		ssize_t n = recv(fx->peer, packet, sizeof packet, MSG_DONTWAIT);
		cJSON *m = n > 0 ? cJSON_ParseWithLength(packet, (size_t)n) : NULL;
		const char *got = cJSON_GetStringValue(cJSON_GetObjectItem(m, "type"));
		if (got && strcmp(got, type) == 0)
			return m;
		cJSON_Delete(m);
	}
	fail_msg("no %s came", type);
	return NULL;
}

#define HELLO "{\"type\":\"hello\",\"version\":1,\"pid\":5,\"lines\":["

static void come_back(struct fixture *fx, const char *hello)
{
	fx->peer = dial(fx);
	say(fx, hello);
	until(fx, &fx->warm);
}

__attribute__((unused)) static void adopted(struct fixture *fx, const char *hello)
{
	setup(fx);
	assert_int_equal(adopt(fx, NAME, getpid(), NULL), 0);
	come_back(fx, hello);
}

__attribute__((unused)) static void assert_state(struct fixture *fx, const char *state)
{
	cJSON *report = fx->engine->ops->slot_report(fx->slot);
	assert_string_equal(cJSON_GetStringValue(cJSON_GetObjectItem(report, "state")), state);
	cJSON_Delete(report);
}

#endif
