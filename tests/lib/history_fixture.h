/* Histories over a folder of their own, runs from synthetic messages, stock git to look at what
 * came of them. Included by one file per program. */
#ifndef COPPICE_HISTORY_FIXTURE_H
#define COPPICE_HISTORY_FIXTURE_H

#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
#include <uv.h>
#include <cjson/cJSON.h>

#include "gateway/base/jmsg.h"
#include "history/lanes.h"
#include "history/pack.h"
#include "tests/lib/test.h"

#define HISTORY_A "11111111-1111-4111-8111-111111111111"
#define HISTORY_B "22222222-2222-4222-8222-222222222222"

/* The messages of one run. */
struct tape {
	struct jmsg **m;
	size_t n, size, at;
	size_t fails_at; /* 0: never */
	char msg_id[64];
	unsigned closed; /* how often */
	/* What was told of it. */
	unsigned told;
	int status;
	char why[256];
	char history[64], node[HISTORY_NODE_SIZE], branch[HISTORY_BRANCH_SIZE];
	uint64_t state_version;
	struct tape *next;
};

struct hfix {
	uv_loop_t loop;
	struct clock *clock;
	char folder[64];
	struct histories *h;
	struct record_hook hook;
	struct history_keeping keeping;
	uint64_t gather_ms, gather_most_ms;
	struct log_sink sink;
	struct log log;
	unsigned warnings; /* in the log, of any thread */
	bool prints;	   /* COPPICE_TEST_LOG is set: they are printed */
	struct tape *tapes;
	size_t told;
	const struct tape *order[4096];
	bool closed;
	/* The last answer. */
	bool answered;
	int status;
	char why[512];
	char *json;
};

/* ---- tapes ---- */

static inline void tape_put(struct tape *t, struct jmsg *m)
{
	if (t->n == t->size) {
		t->size = t->size ? 2 * t->size : 8;
		t->m = realloc(t->m, t->size * sizeof(struct jmsg *));
	}
	t->m[t->n++] = m;
}

static inline void tape_message(struct tape *t, enum channel channel, const char *type,
	const char *id, const char *parent, const char *metadata, struct bytes content)
{
	char header[512], parent_header[512] = "{}";
	struct jmsg *m;
	struct err err;
	(void)snprintf(header, sizeof header,
		"{\"msg_id\":\"%s\",\"msg_type\":\"%s\",\"session\":\"s\"}", id, type);
	if (parent)
		(void)snprintf(parent_header, sizeof parent_header,
			"{\"msg_id\":\"%s\",\"msg_type\":\"execute_request\"}", parent);
	struct jmsg_source source = {.channel = channel};
	source.part[PART_HEADER] = (struct bytes){(uint8_t *)header, strlen(header)};
	source.part[PART_PARENT] = (struct bytes){(uint8_t *)parent_header, strlen(parent_header)};
	if (metadata)
		source.part[PART_METADATA] = (struct bytes){(uint8_t *)metadata, strlen(metadata)};
	source.part[PART_CONTENT] = content;
	if (jmsg_new(&source, false, &m, &err) != 0)
		fail_msg("%s", err.text);
	tape_put(t, m);
}

/* request: further members of the request's content, or "". */
static inline struct tape *tape_new(
	struct hfix *fx, const char *msg_id, const char *code, const char *request)
{
	struct tape *t = calloc(1, sizeof *t);
	AUTO(buf_done) struct buf content;
	buf_init(&content, 1u << 28);
	(void)snprintf(t->msg_id, sizeof t->msg_id, "%s", msg_id);
	(void)buf_add_text(&content, "{\"code\":");
	(void)buf_add_json_string(&content, code, strlen(code));
	(void)buf_addf(&content, "%s}", request);
	tape_message(t, CHANNEL_SHELL, "execute_request", msg_id, NULL, "{\"cellId\":\"c-1\"}",
		(struct bytes){content.data, content.len});
	t->next = fx->tapes;
	fx->tapes = t;
	return t;
}

static inline void tape_say_to(
	struct tape *t, const char *parent, const char *type, const char *content)
{
	tape_message(t, CHANNEL_IOPUB, type, "k", parent, NULL,
		(struct bytes){(const uint8_t *)content, strlen(content)});
}

static inline void tape_say(struct tape *t, const char *type, const char *content)
{
	tape_say_to(t, t->msg_id, type, content);
}

static inline void tape_stream(struct tape *t, const char *name, const char *text)
{
	AUTO(buf_done) struct buf content;
	buf_init(&content, 1u << 30);
	(void)buf_addf(&content, "{\"name\":\"%s\",\"text\":", name);
	(void)buf_add_json_string(&content, text, strlen(text));
	(void)buf_add_text(&content, "}");
	tape_message(t, CHANNEL_IOPUB, "stream", "k", t->msg_id, NULL,
		(struct bytes){content.data, content.len});
}

/* more: further facts, or "". */
static inline void tape_end(struct tape *t, const char *status, int count, const char *more)
{
	char content[1024];
	(void)snprintf(content, sizeof content,
		"{\"msg_id\":\"%s\",\"status\":\"%s\",\"execution_count\":%d,"
		"\"accepted_us\":1790000000000000,\"sent_us\":1790000000000100,"
		"\"running_us\":1790000000000200,\"done_us\":1790000000012700,"
		"\"queue_position\":0%s}",
		t->msg_id, status, count, more);
	tape_message(t, CHANNEL_IOPUB, "coppice_execution", "x", t->msg_id, NULL,
		(struct bytes){(const uint8_t *)content, strlen(content)});
}

static inline int tape_next(void *data, struct bytes *ret_frame, struct err *err)
{
	struct tape *t = data;
	if (t->fails_at && t->at == t->fails_at)
		return err_set(err, E_GONE, "the journal was cut");
	if (t->at == t->n)
		return 0;
	*ret_frame = t->m[t->at++]->frame;
	return 1;
}

static inline void tape_close(void *data)
{
	struct tape *t = data;
	t->closed++;
}

/* ---- histories ---- */

static inline void on_told(void *data, const struct history_recorded *recorded)
{
	struct hfix *fx = data;
	struct tape *t = recorded->run_data;
	t->told++;
	t->status = recorded->status;
	assert_int_equal(t->status == 0, recorded->err == NULL);
	(void)snprintf(t->why, sizeof t->why, "%.200s", recorded->err ? recorded->err->text : "");
	(void)snprintf(t->node, sizeof t->node, "%s", recorded->node);
	(void)snprintf(t->branch, sizeof t->branch, "%s", recorded->branch);
	(void)snprintf(t->history, sizeof t->history, "%s", recorded->history);
	t->state_version = recorded->state_version;
	if (fx->told < ARRAY_LEN(fx->order))
		fx->order[fx->told] = t;
	fx->told++;
}

static inline void on_warning(void *data, const char *line, size_t len)
{
	struct hfix *fx = data;
	if (fx->prints)
		(void)fprintf(stderr, "%.*s", (int)len, line);
	(void)__atomic_add_fetch(&fx->warnings, 1, __ATOMIC_RELEASE); /* read by the test */
}

static inline int hfix_try_open(struct hfix *fx, struct err *err)
{
	struct histories_setup setup = {.loop = &fx->loop,
		.clock = fx->clock,
		.log = &fx->log,
		.folder = fx->folder,
		.on_recorded = on_told,
		.data = fx,
		.keeping = fx->keeping,
		.gather_ms = fx->gather_ms,
		.gather_most_ms = fx->gather_most_ms};
	return histories_open_hooked(&setup, &fx->hook, &fx->h, err);
}

static inline void hfix_open(struct hfix *fx)
{
	struct err err;
	if (hfix_try_open(fx, &err) != 0)
		fail_msg("%s", err.text);
}

static inline struct hfix *hfix_make(void)
{
	struct hfix *fx = calloc(1, sizeof *fx);
	assert_int_equal(crypto_init(NULL), 0);
	assert_int_equal(uv_loop_init(&fx->loop), 0);
	fx->clock = clock_new(&fx->loop);
	fx->prints = getenv("COPPICE_TEST_LOG") != NULL;
	fx->sink = (struct log_sink){.level = LOG_WARN, .write = on_warning, .data = fx};
	log_init(&fx->log, &fx->sink);
	/* In memory where that is to be had: what a kill leaves does not depend on the disk, and
	 * the disk of a test machine is slow. */
	(void)snprintf(fx->folder, sizeof fx->folder, "%s/coppice-history-XXXXXX",
		access("/dev/shm", W_OK) == 0 ? "/dev/shm" : "/tmp");
	assert_non_null(mkdtemp(fx->folder));
	return fx;
}

static inline struct hfix *hfix_new(void)
{
	struct hfix *fx = hfix_make();
	hfix_open(fx);
	return fx;
}

/* What is handed over from the next opening on waits for the end, or for a full batch. */
static inline void hfix_gather(struct hfix *fx)
{
	fx->gather_ms = fx->gather_most_ms = 3600000;
}

static inline void on_hfix_closed(void *data)
{
	((struct hfix *)data)->closed = true;
}

static inline void hfix_close(struct hfix *fx)
{
	fx->closed = false;
	histories_close(fx->h, on_hfix_closed, fx);
	while (!fx->closed)
		(void)uv_run(&fx->loop, UV_RUN_ONCE);
	fx->h = NULL;
}

static inline void hfix_reopen(struct hfix *fx)
{
	hfix_close(fx);
	hfix_open(fx);
}

static inline void shell(const char *command)
{
	int status = system(command);
	if (status != 0)
		fail_msg("%s: %d", command, status);
}

static inline void hfix_forget_tapes(struct hfix *fx)
{
	while (fx->tapes) {
		struct tape *t = fx->tapes;
		fx->tapes = t->next;
		for (size_t i = 0; i < t->n; i++)
			jmsg_unref(t->m[i]);
		free(t->m);
		free(t);
	}
}

static inline void hfix_free(struct hfix *fx)
{
	char command[128];
	if (fx->h)
		hfix_close(fx);
	clock_close(fx->clock, NULL, NULL);
	(void)uv_run(&fx->loop, UV_RUN_DEFAULT);
	assert_int_equal(uv_loop_close(&fx->loop), 0);
	(void)snprintf(command, sizeof command, "rm -rf '%s'", fx->folder);
	shell(command);
	hfix_forget_tapes(fx);
	free(fx->json);
	free(fx);
}

static inline int hand_over_to(
	struct hfix *fx, struct tape *t, const char *history, const char *kernel, uint64_t epoch)
{
	struct history_run run = {.history_id = history,
		.name = "walk",
		.owner = "ada",
		.kernel_id = kernel,
		.kernelspec = "python3",
		.environment = "sha256:abc",
		.epoch = epoch,
		.source = {tape_next, tape_close, t},
		.data = t};
	t->at = 0;
	t->told = 0;
	return history_record(fx->h, &run, NULL);
}

static inline void hand_over(struct hfix *fx, struct tape *t)
{
	assert_int_equal(hand_over_to(fx, t, HISTORY_A, "k1", 1), 0);
}

static inline void await(struct hfix *fx, const struct tape *t)
{
	while (!t->told)
		(void)uv_run(&fx->loop, UV_RUN_ONCE);
	assert_int_equal(t->told, 1);
	assert_int_equal(t->closed, 1);
}

/* A run of its own from code and text, told as recorded. */
static inline struct tape *record_cell(
	struct hfix *fx, const char *msg_id, const char *code, const char *text)
{
	static const char request[] = ",\"silent\":false,\"store_history\":true";
	struct tape *t = tape_new(fx, msg_id, code, request);
	if (text)
		tape_stream(t, "stdout", text);
	tape_end(t, "ok", 1, "");
	hand_over(fx, t);
	return t;
}

static inline void await_fine(struct hfix *fx, struct tape *t)
{
	await(fx, t);
	if (t->status != 0)
		fail_msg("%s: %s", t->msg_id, t->why);
}

/* ---- looking ---- */

static inline void on_answer(void *data, int status, struct bytes json, const struct err *err)
{
	struct hfix *fx = data;
	assert_int_equal(status == 0, err == NULL);
	fx->answered = true;
	fx->status = status;
	(void)snprintf(fx->why, sizeof fx->why, "%s", err ? err->text : "");
	free(fx->json);
	fx->json = status == 0 ? strndup((const char *)json.data, json.len) : NULL;
}

static inline int ask(struct hfix *fx, const struct history_question *question)
{
	fx->answered = false;
	history_ask(fx->h, question, on_answer, fx);
	assert_false(fx->answered);
	while (!fx->answered)
		(void)uv_run(&fx->loop, UV_RUN_ONCE);
	return fx->status;
}

/* The answer as a tree; the caller deletes it. */
static inline cJSON *ask_tree(struct hfix *fx, const struct history_question *question)
{
	if (ask(fx, question) != 0)
		fail_msg("%s", fx->why);
	cJSON *tree = cJSON_Parse(fx->json);
	assert_non_null(tree);
	return tree;
}

static inline cJSON *ask_node(struct hfix *fx, const char *node)
{
	struct history_question q = {.what = HISTORY_NODE, .history = HISTORY_A, .node = node};
	return ask_tree(fx, &q);
}

static inline const char *text_at(const cJSON *object, const char *key)
{
	const char *text = cJSON_GetStringValue(cJSON_GetObjectItem(object, key));
	return text ? text : "(none)";
}

/* Output of a git command on a history, up to a bound; the caller frees. It must exit with 0. */
static inline char *git(struct hfix *fx, const char *history, const char *command)
{
	char line[1024];
	AUTO(buf_done) struct buf out;
	buf_init(&out, 64u << 20);
	(void)snprintf(
		line, sizeof line, "git -C '%s/%s.git' %s 2>&1", fx->folder, history, command);
	FILE *pipe = popen(line, "re");
	assert_non_null(pipe);
	char block[4096];
	for (size_t n; (n = fread(block, 1, sizeof block, pipe)) > 0;)
		(void)buf_add(&out, block, n);
	int status = pclose(pipe);
	(void)buf_add(&out, "", 1);
	if (status != 0)
		fail_msg("git %s: %d: %s", command, status, (char *)out.data);
	return (char *)buf_take(&out, NULL);
}

static inline void assert_git(
	struct hfix *fx, const char *history, const char *command, const char *expected)
{
	char *out = git(fx, history, command);
	assert_string_equal(out, expected);
	free(out);
}

/* Not while it is packed: fsck takes for missing what goes into a pack meanwhile. */
static inline void assert_sound(struct hfix *fx, const char *history)
{
	char path[512];
	int lock = -1;
	(void)snprintf(path, sizeof path, "%s/%s.git", fx->folder, history);
	assert_int_equal(pack_lock(path, true, &lock, NULL), 0);
	char *out = git(fx, history, "fsck --strict --no-dangling --no-progress");
	assert_string_equal(out, "");
	free(out);
	assert_int_equal(close(lock), 0);
}

#endif
