/* What flow tests of the spine share: a gateway without door or engines, pages that pull what is
 * for them, and a kernel that answers as told. Included by one file per program. */
#ifndef COPPICE_SPINE_FIXTURE_H
#define COPPICE_SPINE_FIXTURE_H

#include <cjson/cJSON.h>
#include <dirent.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>
#include <uv.h>

#include "gateway/base/crypto.h"
#include "gateway/gateway.h"
#include "gateway/spine/admin.h"
#include "gateway/spine/client.h"
#include "gateway/spine/kernels.h"
#include "tests/lib/fake_bridge.h"
#include "tests/lib/fake_clock.h"
#include "tests/lib/fake_histories.h"
#include "tests/lib/test.h"

#define PAGE_MAX 40000

struct fixture {
	uv_loop_t loop;
	struct gateway gw;
	struct owner owner;
	char folder[64];
	struct desk *desk;
	struct kernel *kernel;
	bool all_ended;
};

/* A socket of a client, as the door would have it. */
struct page {
	struct client *client;
	bool readable, replaced;
	unsigned closed; /* code */
	uint64_t undelivered;
	size_t n;
	uint64_t number[PAGE_MAX];
	struct jmsg *got[PAGE_MAX];
};

static inline void fixture_configure(struct fixture *fx)
{
	struct config *c = &fx->gw.config;
	c->data_dir = fx->folder;
	c->max_kernels = 3;
	c->pool_ceiling = 100;
	c->auto_restart = true;
	c->restart_limit = 2;
	c->cull_interval = 60000;
	c->journal_memory = 8 << 20;
	c->journal_disk = 1 << 30;
}

static inline struct fixture *fixture_new(void)
{
	struct fixture *fx = calloc(1, sizeof *fx);
	assert_int_equal(crypto_init(NULL), 0);
	assert_int_equal(uv_loop_init(&fx->loop), 0);
	(void)snprintf(fx->folder, sizeof fx->folder, "/tmp/coppice-spine-XXXXXX");
	assert_non_null(mkdtemp(fx->folder));
	fixture_configure(fx);
	fx->gw.loop = &fx->loop;
	fx->gw.clock = clock_new(&fx->loop);
	fx->gw.started_us = clock_wall_us(fx->gw.clock);
	fx->gw.bridge = fake_bridge_new(fx->gw.clock);
	fx->owner = (struct owner){.name = "ada", .scopes = SCOPE_READ | SCOPE_RUN};
	assert_int_equal(kernels_open(&fx->gw, &fx->gw.kernels, NULL), 0);
	return fx;
}

/* Runs what waits in bridge, loop and clock (without moving it) until nothing does. */
static inline void settle(struct fixture *fx)
{
	for (int i = 0; i < 3; i++) {
		fake_bridge_run(fx->gw.bridge);
		fake_clock_advance(fx->gw.clock, 0);
		if (fx->gw.histories)
			fake_histories_work(fx->gw.histories);
		(void)uv_run(&fx->loop, UV_RUN_DEFAULT);
	}
}

static inline void advance(struct fixture *fx, uint64_t ms)
{
	settle(fx);
	fake_clock_advance(fx->gw.clock, ms);
	settle(fx);
}

static inline int fixture_start(struct fixture *fx)
{
	struct kernels_start start = {.owner = &fx->owner};
	int rc = kernels_start(fx->gw.kernels, &start, &fx->desk, NULL);
	fx->kernel =
		rc == 0 ? fake_kernel(fx->gw.bridge, fake_bridge_kernels(fx->gw.bridge) - 1) : NULL;
	return rc;
}

static inline struct fixture *fixture_with_kernel(void)
{
	struct fixture *fx = fixture_new();
	assert_int_equal(fixture_start(fx), 0);
	fake_kernel_ready(fx->kernel);
	return fx;
}

static inline void fixture_all_ended(void *data)
{
	struct fixture *fx = data;
	fx->all_ended = true;
}

static inline size_t files_left(const struct fixture *fx)
{
	char path[128];
	size_t n = 0;
	(void)snprintf(path, sizeof path, "%s/journals", fx->folder);
	DIR *dir = opendir(path);
	for (struct dirent *d; dir && (d = readdir(dir));)
		n += d->d_name[0] != '.';
	if (dir)
		closedir(dir);
	return n;
}

/* Pages must be done. */
static inline void fixture_free(struct fixture *fx)
{
	char path[128];
	if (!fx->all_ended) /* by the test itself */
		kernels_end_all(fx->gw.kernels, fixture_all_ended, fx);
	for (int i = 0; i < 30 && !fx->all_ended; i++) {
		advance(fx, fx->gw.histories ? 110 : 0);
		while (fx->gw.histories && fake_histories_waiting(fx->gw.histories) > 0)
			fake_histories_answer(fx->gw.histories, 0);
	}
	assert_true(fx->all_ended);
	assert_int_equal(files_left(fx), 0);
	if (fx->gw.histories)
		fake_histories_free(fx->gw.histories);
	kernels_free(fx->gw.kernels);
	fake_bridge_free(fx->gw.bridge);
	assert_int_equal(fake_clock_next(fx->gw.clock), UINT64_MAX);
	clock_close(fx->gw.clock, NULL, NULL);
	assert_int_equal(uv_loop_close(&fx->loop), 0);
	(void)snprintf(path, sizeof path, "%s/journals", fx->folder);
	(void)rmdir(path);
	(void)snprintf(path, sizeof path, "%s/kernels", fx->folder);
	(void)rmdir(path);
	assert_int_equal(rmdir(fx->folder), 0);
	free(fx);
}

static inline void page_readable(void *data)
{
	struct page *p = data;
	p->readable = true;
}

static inline void page_closed(void *data, unsigned code, const char *reason)
{
	struct page *p = data;
	assert_non_null(reason);
	assert_int_equal(p->closed, 0);
	p->closed = code;
}

static inline void page_replaced(void *data)
{
	struct page *p = data;
	p->replaced = true;
	p->client = NULL;
}

static inline uint64_t page_undelivered(void *data)
{
	return ((struct page *)data)->undelivered;
}

static inline int page_try(struct fixture *fx, struct page **ret, const char *session_id)
{
	struct page *p = calloc(1, sizeof *p);
	struct client_socket socket = {.on_readable = page_readable,
		.on_close = page_closed,
		.on_replaced = page_replaced,
		.undelivered = page_undelivered,
		.data = p};
	int rc = client_attach(fx->desk, session_id, &socket, &p->client, NULL);
	*ret = p;
	return rc;
}

static inline struct page *page_open(struct fixture *fx, const char *session_id)
{
	struct page *p;
	assert_int_equal(page_try(fx, &p, session_id), 0);
	return p;
}

static inline bool page_pull_one(struct page *p)
{
	struct entry *e;
	if (!p->client || client_next(p->client, &e) != 1)
		return false;
	assert_true(p->n < PAGE_MAX);
	p->number[p->n] = e->number;
	p->got[p->n++] = jmsg_ref(e->msg);
	entry_unref(e);
	return true;
}

static inline void page_pull(struct page *p)
{
	while (page_pull_one(p))
		;
	p->readable = false;
}

/* Pulls as often as there is something to pull, the file's blocks included. */
static inline void page_pull_all(struct fixture *fx, struct page *p)
{
	page_pull(p);
	for (settle(fx); p->readable; settle(fx))
		page_pull(p);
}

static inline void page_forget(struct page *p)
{
	while (p->n > 0)
		jmsg_unref(p->got[--p->n]);
}

static inline void page_leave(struct page *p, uint64_t first_undelivered)
{
	if (p->client)
		client_detach(p->client, first_undelivered);
	page_forget(p);
	free(p);
}

static inline struct jmsg *ask_with(
	struct page *p, enum channel channel, const char *type, const char *id, const char *content)
{
	char header[512];
	struct jmsg *m;
	int len = snprintf(header, sizeof header,
		"{\"msg_id\":\"%s\",\"msg_type\":\"%s\",\"session\":\"%s\",\"username\":\"u\","
		"\"version\":\"5.3\"}",
		id, type, client_session_id(p->client));
	struct jmsg_source source = {.channel = channel};
	source.part[PART_HEADER] = (struct bytes){(const uint8_t *)header, (size_t)len};
	source.part[PART_CONTENT] = (struct bytes){(const uint8_t *)content, strlen(content)};
	assert_int_equal(jmsg_new(&source, false, &m, NULL), 0);
	return m;
}

static inline void ask(
	struct page *p, enum channel channel, const char *type, const char *id, const char *content)
{
	struct jmsg *m = ask_with(p, channel, type, id, content);
	assert_int_equal(client_receive(p->client, m, NULL), 0);
	jmsg_unref(m);
}

static inline void execute(struct page *p, const char *id)
{
	ask(p, CHANNEL_SHELL, "execute_request", id, "{\"code\":\"1\",\"silent\":false}");
}

static inline void say_status(struct kernel *k, const struct jmsg *parent, const char *state)
{
	char content[64];
	(void)snprintf(content, sizeof content, "{\"execution_state\":\"%s\"}", state);
	fake_kernel_say(k, CHANNEL_IOPUB, "status", parent, content);
}

static inline void say_stream(struct kernel *k, const struct jmsg *parent, const char *text)
{
	char content[256];
	(void)snprintf(content, sizeof content, "{\"name\":\"stdout\",\"text\":\"%s\"}", text);
	fake_kernel_say(k, CHANNEL_IOPUB, "stream", parent, content);
}

static inline void say_reply(struct kernel *k, const struct jmsg *parent, const char *content)
{
	char type[64];
	(void)snprintf(type, sizeof type, "%.*sreply", (int)strlen(parent->msg_type) - 7,
		parent->msg_type);
	fake_kernel_say(k, parent->channel, type, parent, content);
}

/* The kernel takes the next message, which must be `id`. Caller unrefs. */
static inline struct jmsg *kernel_takes(struct fixture *fx, const char *id)
{
	struct jmsg *m = fake_kernel_take(fx->kernel);
	assert_non_null(m);
	assert_string_equal(m->msg_id, id);
	return m;
}

/* Takes `id` and answers it whole. */
static inline void kernel_answers(struct fixture *fx, const char *id, const char *content)
{
	struct jmsg *m = kernel_takes(fx, id);
	say_status(fx->kernel, m, "busy");
	say_reply(fx->kernel, m, content);
	say_status(fx->kernel, m, "idle");
	fake_kernel_turn(fx->kernel);
	jmsg_unref(m);
}

/* More than a journal of 1 MiB holds: all that was before it is cut. */
static inline void flood_1mib(struct fixture *fx)
{
	char text[128];
	for (int i = 0; i < 8000; i++) {
		(void)snprintf(text, sizeof text, "line %d. %080d", i, i);
		say_stream(fx->kernel, NULL, text);
		if (i % 50 == 0)
			fake_kernel_turn(fx->kernel);
		if (fake_kernel_held(fx->kernel))
			settle(fx);
	}
	fake_kernel_turn(fx->kernel);
	advance(fx, 100);
}

#define REPLY_OK    "{\"status\":\"ok\",\"execution_count\":1}"
#define REPLY_ERROR "{\"status\":\"error\",\"ename\":\"E\",\"evalue\":\"v\",\"traceback\":[]}"

/* Answers with a reply that has this metadata. */
static inline void answers_with(struct fixture *fx, const char *id, const char *metadata)
{
	struct jmsg *m = kernel_takes(fx, id), *reply;
	struct jmsg_source source = {.channel = CHANNEL_SHELL};
	char header[128];
	(void)snprintf(header, sizeof header,
		"{\"msg_id\":\"r-%s\",\"msg_type\":\"execute_reply\",\"session\":\"%s\"}", id,
		fake_kernel_session(fx->kernel));
	source.part[PART_HEADER] = (struct bytes){(const uint8_t *)header, strlen(header)};
	source.part[PART_PARENT] = m->part[PART_HEADER];
	source.part[PART_METADATA] = (struct bytes){(const uint8_t *)metadata, strlen(metadata)};
	source.part[PART_CONTENT] = (struct bytes){(const uint8_t *)REPLY_OK, strlen(REPLY_OK)};
	assert_int_equal(jmsg_new(&source, false, &reply, NULL), 0);
	say_status(fx->kernel, m, "busy");
	fake_kernel_says_again(fx->kernel, reply);
	say_status(fx->kernel, m, "idle");
	fake_kernel_turn(fx->kernel);
	jmsg_unref(reply);
	jmsg_unref(m);
}

static inline bool holds(const struct jmsg *m, const char *text)
{
	return memmem(m->part[PART_CONTENT].data, m->part[PART_CONTENT].len, text, strlen(text));
}

/* How many messages of that type, with that parent (NULL: any, "": none), whose content holds text.
 */
static inline size_t page_count(
	const struct page *p, const char *type, const char *parent_id, const char *text)
{
	size_t n = 0;
	for (size_t i = 0; i < p->n; i++)
		n += strcmp(p->got[i]->msg_type, type) == 0 &&
		     (!parent_id || strcmp(p->got[i]->parent_id, parent_id) == 0) &&
		     holds(p->got[i], text);
	return n;
}

/* Index of the first such message from `from` on; fails if there is none. */
static inline size_t page_find(const struct page *p, size_t from, const char *type,
	const char *parent_id, const char *text)
{
	for (size_t i = from; i < p->n; i++) {
		if (strcmp(p->got[i]->msg_type, type) == 0 &&
			(!parent_id || strcmp(p->got[i]->parent_id, parent_id) == 0) &&
			holds(p->got[i], text))
			return i;
	}
	fail_msg("no %s of parent %s with %s", type, parent_id ? parent_id : "any", text);
	return 0;
}

static inline bool page_has_end(const struct page *p, const char *id, const char *reply)
{
	return page_count(p, reply, id, "") == 1 && page_count(p, "status", id, "idle") == 1;
}

/* The admin view's row i. Caller deletes the tree. */
static inline cJSON *view(struct fixture *fx, const char *what)
{
	cJSON *tree = admin_show(&fx->gw, what);
	assert_non_null(tree);
	return tree;
}

static inline void assert_execution(
	struct fixture *fx, const char *id, const char *state, const char *status)
{
	cJSON *rows = view(fx, "executions"), *row, *found = NULL;
	cJSON_ArrayForEach (row, rows)
		if (strcmp(cJSON_GetStringValue(cJSON_GetObjectItem(row, "msg_id")), id) == 0)
			found = row;
	assert_non_null(found);
	assert_string_equal(cJSON_GetStringValue(cJSON_GetObjectItem(found, "state")), state);
	assert_string_equal(cJSON_GetStringValue(cJSON_GetObjectItem(found, "status")), status);
	cJSON_Delete(rows);
}

static inline void assert_state(struct fixture *fx, const char *state)
{
	cJSON *model = desk_model(fx->desk);
	assert_string_equal(
		cJSON_GetStringValue(cJSON_GetObjectItem(model, "execution_state")), state);
	cJSON_Delete(model);
}

#endif
