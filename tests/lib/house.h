/* The whole gateway in this process: door, spine, history (real git, real sqlite), conversations;
 * a bridge whose kernels answer by themselves, a model that answers as it is told, and a clock that
 * the test moves are fakes. Opened and ended in the order of gateway/cli_serve.c. Included by one
 * file per program, which links no other fake. */
#ifndef COPPICE_HOUSE_H
#define COPPICE_HOUSE_H

#include <fcntl.h>
#include <ftw.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>
#include <uv.h>

#include "frontend-adapter/adapter.h"
#include "gateway/base/crypto.h"
#include "gateway/base/json_tree.h"
#include "gateway/door/chat_client.h"
#include "gateway/door/listen.h"
#include "gateway/gateway.h"
#include "gateway/spine/desk.h"
#include "gateway/spine/scribe.h"
#include "gateway/spine/sessions.h"
#include "history/history.h"
#include "tests/lib/canned_http.h"
#include "tests/lib/fake_bridge.c"
#include "tests/lib/fake_clock.c"

#define HOUSE_KERNEL	   "11111111-2222-4333-8444-555555555555"
#define HOUSE_CONVERSATION "66666666-7777-4888-8999-aaaaaaaaaaaa"
#define HOUSE_TOKENS	   "[token ada]\nsecret = s\nscopes = read run admin\n"
#define HOUSE_POLL_MS	   1
#define LOWER		   "abcdefghijklmnopqrstuvwxyz"

struct house {
	uv_loop_t loop;
	struct gateway gw;
	struct owners *owners;
	char folder[64], model_url[64];
	struct canned_http model;
	bool ended;
};

/* ---- files ---- */

static inline void house_put(const struct house *h, const char *name, const char *text)
{
	char path[160];
	(void)snprintf(path, sizeof path, "%s/%s", h->folder, name); /* short */
	int fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
	if (fd < 0 || write(fd, text, strlen(text)) != (ssize_t)strlen(text) || close(fd) != 0)
		abort();
}

static inline int house_remove_one(
	const char *path, const struct stat *st, int type, struct FTW *ftw)
{
	(void)st, (void)type, (void)ftw;
	return remove(path);
}

static inline void house_put_conversation(const struct house *h)
{
	house_put(h, "chat/" HOUSE_CONVERSATION ".json",
		"{\"id\":\"" HOUSE_CONVERSATION "\",\"owner\":\"ada\",\"title\":\"t\","
		"\"created_us\":1796028863000000,\"messages\":[],\"records\":[]}");
}

/* In memory where that is to be had: what is tested does not depend on the disk. */
static inline void house_make_folder(struct house *h)
{
	char path[160];
	(void)snprintf(h->folder, sizeof h->folder, "%s/coppice-house-XXXXXX",
		access("/dev/shm", W_OK) == 0 ? "/dev/shm" : "/tmp");
	if (!mkdtemp(h->folder))
		abort();
	house_put(h, "tokens", HOUSE_TOKENS);
	(void)snprintf(path, sizeof path, "%s/chat", h->folder); /* short */
	if (mkdir(path, 0700) != 0)
		abort();
	house_put_conversation(h);
}

static inline void house_remove_folder(const struct house *h)
{
	(void)nftw(h->folder, house_remove_one, 16, FTW_DEPTH | FTW_PHYS); /* of the test's own */
}

/* ---- the fakes ---- */

/* Code at first, then what it means. */
static inline const char *house_model_says(struct canned_http *m, const char *request)
{
	static const char code[] =
		"200 OK\r\nContent-Type: text/event-stream\r\nContent-Length: 153\r\n\r\n"
		"data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"```python\\nx = 1\\nx\\n"
		"```\\n\"}}]}\n\ndata: "
		"{\"choices\":[{\"delta\":{},\"finish_reason\":\"stop\"}]}\n\n"
		"data: [DONE]\n\n";
	static const char words[] =
		"200 OK\r\nContent-Type: application/json\r\nContent-Length: 73\r\n\r\n"
		"{\"choices\":[{\"finish_reason\":\"stop\",\"message\":{\"content\":\"It is "
		"one.\"}}]}";
	(void)m;
	return strstr(request, "The code ran.") ? words : code;
}

static inline void house_kernel_answers(struct kernel *k, const struct jmsg *m)
{
	char type[64];
	size_t len = strlen(m->msg_type);
	bool asks = len > 8 && strcmp(m->msg_type + len - 8, "_request") == 0;
	if (!asks || len >= sizeof type || strspn(m->msg_type, LOWER "_") != len)
		return;
	(void)snprintf(type, sizeof type, "%.*s_reply", (int)len - 8, m->msg_type);
	fake_kernel_say(k, CHANNEL_IOPUB, "status", m, "{\"execution_state\":\"busy\"}");
	if (strcmp(m->msg_type, "execute_request") == 0) {
		fake_kernel_say(k, CHANNEL_IOPUB, "execute_input", m,
			"{\"code\":\"1\",\"execution_count\":1}");
		fake_kernel_say(
			k, CHANNEL_IOPUB, "stream", m, "{\"name\":\"stdout\",\"text\":\"out\\n\"}");
		fake_kernel_say(k, CHANNEL_IOPUB, "execute_result", m,
			"{\"data\":{\"text/plain\":\"1\"},\"metadata\":{},\"execution_count\":1}");
	}
	fake_kernel_say(k, m->channel, type, m, "{\"status\":\"ok\",\"execution_count\":1}");
	fake_kernel_say(k, CHANNEL_IOPUB, "status", m, "{\"execution_state\":\"idle\"}");
	fake_kernel_turn(k);
}

static inline void house_kernel_is_ready(struct kernel *k)
{
	fake_kernel_ready(k);
	fake_kernel_turn(k);
}

/* Each kernel becomes ready and answers what it got. */
static inline void house_kernels_work(struct house *h)
{
	struct kernel *k;
	for (size_t i = 0; (k = fake_kernel(h->gw.bridge, i)); i++) {
		if (k->ending || k->state == KERNEL_DEAD || k->lost)
			continue;
		if (k->state == KERNEL_STARTING && !k->unowned)
			house_kernel_is_ready(k);
		for (struct jmsg *m; !k->ending && (m = fake_kernel_take(k)); jmsg_unref(m))
			house_kernel_answers(k, m);
	}
}

/* ---- turns ---- */

/* Waits a little for what is on its way (other threads, the model), not for timers. */
static inline void house_turn(struct house *h)
{
	struct pollfd wait = {.fd = uv_backend_fd(&h->loop), .events = POLLIN};
	(void)poll(&wait, 1, uv_backend_timeout(&h->loop) == 0 ? 0 : HOUSE_POLL_MS);
	fake_bridge_run(h->gw.bridge);
	house_kernels_work(h);
	fake_clock_advance(h->gw.clock, 0);
	(void)uv_run(&h->loop, UV_RUN_NOWAIT);
}

/* ---- open ---- */

static inline void house_configure(struct house *h)
{
	struct config *c = &h->gw.config;
	c->data_dir = h->folder;
	c->listen = "127.0.0.1:0";
	c->base_url = "/";
	c->max_kernels = c->pool_ceiling = 3;
	c->auto_restart = true;
	c->restart_limit = 1;
	c->cull_interval = 60000;
	c->journal_memory = 1 << 20;
	c->journal_disk = 1 << 24;
	c->message_limit = 1 << 16;
	c->record = true;
	c->model_url = h->model_url;
	c->model_name = "m";
	c->model_timeout = 10000;
	c->model_history = 1 << 17;
	c->pool_wait = 1000;
}

/* Loop, clock, folder, fakes: what a test needs to go on. */
static inline void house_begin(struct house *h)
{
	if (crypto_init(NULL) != 0 || uv_loop_init(&h->loop) != 0)
		abort();
	json_tree_init();
	if (!h->folder[0])
		house_make_folder(h);
	int port = canned_http_open_port(&h->model, &h->loop, house_model_says, h);
	(void)snprintf(h->model_url, sizeof h->model_url, "http://127.0.0.1:%d/v1", port);
	house_configure(h);
	log_init(&h->gw.log, NULL);
	h->gw.loop = &h->loop;
	h->gw.clock = clock_new(&h->loop);
	h->gw.started_us = clock_wall_us(h->gw.clock);
	h->gw.bridge = fake_bridge_new(h->gw.clock);
}

static inline int house_open_history(struct house *h, struct err *err)
{
	char folder[128];
	const struct histories_setup setup = {.loop = &h->loop,
		.clock = h->gw.clock,
		.log = &h->gw.log,
		.folder = folder,
		.on_recorded = scribe_recorded};
	(void)snprintf(folder, sizeof folder, "%s/history", h->folder); /* short */
	return histories_open(&setup, &h->gw.histories, err);
}

static inline void house_on_recorded(void *data, const char *msg_id, const char *node)
{
	struct house *h = data;
	if (h->gw.chats)
		chats_recorded(h->gw.chats, msg_id, node);
}

static inline int house_open_chats(struct house *h, struct err *err)
{
	char folder[128];
	const struct chats_setup setup = {.loop = &h->loop,
		.clock = h->gw.clock,
		.log = &h->gw.log,
		.folder = folder,
		.model_url = h->model_url,
		.model_name = h->gw.config.model_name,
		.model_timeout_ms = 10000,
		.model_history = (size_t)h->gw.config.model_history,
		.renderer = h->gw.renderer,
		.runner = &chat_client_runner,
		.runner_data = &h->gw};
	(void)snprintf(folder, sizeof folder, "%s/chat", h->folder); /* short */
	kernels_watch(
		h->gw.kernels, &(struct kernels_watch){.recorded = house_on_recorded, .data = h});
	return chats_open(&setup, &h->gw.chats, err);
}

/* The rooms. What was opened when one fails is ended by house_end(), as all else. */
static inline int house_open(struct house *h, struct err *err)
{
	char tokens[128];
	const struct renderer_setup renderer = {
		.loop = &h->loop, .clock = h->gw.clock, .log = &h->gw.log, .program = "/bin/false"};
	(void)snprintf(tokens, sizeof tokens, "%s/tokens", h->folder); /* short */
	int status = owners_open(tokens, &h->owners, err);
	h->gw.owners = h->owners;
	if (status == 0)
		status = house_open_history(h, err);
	if (status == 0)
		status = kernels_open(&h->gw, &h->gw.kernels, err);
	if (status == 0)
		status = sessions_open(&h->gw, &h->gw.sessions, err);
	if (status != 0)
		return status;
	h->gw.renderer = renderer_open(&renderer);
	status = kernels_adopt(h->gw.kernels, err);
	if (status == 0)
		status = house_open_chats(h, err);
	if (status == 0)
		status = door_open(&h->gw, &h->gw.door, err);
	if (status == 0)
		kernels_begin(h->gw.kernels);
	return status;
}

/* ---- end ---- */

static inline void house_on_step(void *data)
{
	((struct house *)data)->ended = true;
}

#define HOUSE_END_TURNS 20000

/* Its callback is the only one that is awaited. */
static inline void house_await(struct house *h)
{
	for (int i = 0; !h->ended; i++) {
		if (i == HOUSE_END_TURNS)
			abort(); /* it does not end */
		house_turn(h);
		fake_clock_advance(h->gw.clock, i % 10 == 9 ? 500 : 0);
	}
	h->ended = false;
}

static inline void house_end_rooms(struct house *h, bool leave)
{
	struct gateway *gw = &h->gw;
	gw->ending = true;
	if (gw->door) {
		door_close(gw->door, 1001, "gateway ends", house_on_step, h);
		house_await(h);
	}
	if (gw->chats) {
		chats_close(TAKE(gw->chats), house_on_step, h);
		house_await(h);
	}
	if (gw->kernels) {
		(leave ? kernels_leave_all : kernels_end_all)(gw->kernels, house_on_step, h);
		house_await(h);
	}
	if (gw->histories) {
		histories_close(gw->histories, house_on_step, h);
		house_await(h);
		gw->histories = NULL;
	}
	if (gw->renderer) {
		renderer_close(TAKE(gw->renderer), house_on_step, h);
		house_await(h);
	}
}

/* Nothing holds the loop after it. The folder stays. */
static inline void house_end(struct house *h, bool leave)
{
	struct gateway *gw = &h->gw;
	house_end_rooms(h, leave);
	if (gw->sessions)
		sessions_free(gw->sessions);
	if (gw->kernels)
		kernels_free(gw->kernels);
	fake_bridge_free(gw->bridge);
	canned_http_close(&h->model);
	(void)uv_run(&h->loop, UV_RUN_DEFAULT);
	door_free(gw->door);
	if (fake_clock_next(gw->clock) != UINT64_MAX)
		abort(); /* somebody's timer runs on */
	clock_close(gw->clock, NULL, NULL);
	(void)uv_run(&h->loop, UV_RUN_DEFAULT);
	if (uv_loop_close(&h->loop) != 0) {
		uv_print_all_handles(&h->loop, stderr);
		abort();
	}
	owners_free(h->owners);
}

#endif
