/* Working files beside history_fixture.h: Changes, contents and what came of them. Included by one
 * file per program. */
#ifndef COPPICE_FILES_FIXTURE_H
#define COPPICE_FILES_FIXTURE_H

#include "history/chunk.h"
#include "history/files.h"
#include "tests/lib/history_fixture.h"

static const struct history_whose files_whose = {HISTORY_A, NULL, "ada"};

/* The last answer about contents. */
struct told_content {
	bool told;
	int status;
	char why[512];
	size_t lacking[64], n;
	struct buf bytes;
};

static inline void told_keep(void *data, int status, const struct err *err)
{
	struct told_content *t = data;
	assert_int_equal(status == 0, err == NULL);
	t->told = true;
	t->status = status;
	(void)snprintf(t->why, sizeof t->why, "%s", err ? err->text : "");
}

static inline void told_lacks(
	void *data, int status, const size_t *lacking, size_t n, const struct err *err)
{
	struct told_content *t = data;
	told_keep(data, status, err);
	t->n = n;
	for (size_t i = 0; i < n && i < ARRAY_LEN(t->lacking); i++)
		t->lacking[i] = lacking[i];
}

static inline void told_read(void *data, int status, struct bytes content, const struct err *err)
{
	struct told_content *t = data;
	told_keep(data, status, err);
	buf_init(&t->bytes, HISTORY_CONTENT_MAX);
	(void)buf_add(&t->bytes, content.data, content.len);
}

static inline void await_content(struct hfix *fx, const struct told_content *t)
{
	while (!t->told)
		(void)uv_run(&fx->loop, UV_RUN_ONCE);
}

static inline struct bytes text_bytes(const char *text)
{
	return (struct bytes){(const uint8_t *)text, strlen(text)};
}

static inline int keep_named(struct hfix *fx, const struct history_whose *whose, const char *name,
	struct bytes content, struct told_content *t)
{
	*t = (struct told_content){.told = false};
	history_keep(fx->h, whose, name, content, told_keep, t);
	assert_false(t->told);
	await_content(fx, t);
	return t->status;
}

static inline void keep_as(
	struct hfix *fx, const struct history_whose *whose, const char *name, struct bytes content)
{
	struct told_content t;
	if (keep_named(fx, whose, name, content, &t) != 0)
		fail_msg("%s: %s", name, t.why);
}

/* Git's name of that text, which is kept. */
static inline const char *keep_blob(struct hfix *fx, const char *text, char name[HISTORY_NODE_SIZE])
{
	assert_true(repo_blob_name(text_bytes(text), name));
	keep_as(fx, &files_whose, name, text_bytes(text));
	return name;
}

static inline const char *chunk_name(struct bytes content, char name[CHUNK_NAME_LEN + 1])
{
	crypto_digest_hex(&content, 1, name);
	return name;
}

static inline bool is_lacking(struct hfix *fx, const char *name)
{
	struct told_content t = {.told = false};
	const char *const names[] = {name};
	history_lacks(fx->h, &files_whose, names, 1, told_lacks, &t);
	await_content(fx, &t);
	assert_int_equal(t.status, 0);
	return t.n == 1;
}

/* ---- runs ---- */

static inline void tape_end_with(struct tape *t, const char *more)
{
	AUTO(buf_done) struct buf content;
	buf_init(&content, 1u << 28);
	(void)buf_addf(&content,
		"{\"msg_id\":\"%s\",\"status\":\"ok\",\"execution_count\":1,"
		"\"accepted_us\":1790000000000000,\"sent_us\":1790000000000100,"
		"\"running_us\":1790000000000200,\"done_us\":1790000000012700,"
		"\"queue_position\":0,",
		t->msg_id);
	(void)buf_addf(&content, "%s}", more);
	tape_message(t, CHANNEL_IOPUB, "coppice_execution", "x", t->msg_id, NULL,
		(struct bytes){content.data, content.len});
}

static inline struct tape *files_tape(struct hfix *fx, const char *msg_id, const char *change)
{
	AUTO(buf_done) struct buf facts;
	buf_init(&facts, 1u << 27);
	struct tape *t = tape_new(fx, msg_id, "x = 1", "");
	(void)buf_add_text(&facts, "\"files\":");
	(void)buf_add_text(&facts, change);
	tape_end_with(t, (const char *)facts.data);
	return t;
}

/* A run whose facts carry that Change. */
static inline struct tape *run_with(struct hfix *fx, const char *msg_id, const char *change)
{
	struct tape *t = files_tape(fx, msg_id, change);
	hand_over(fx, t);
	await_fine(fx, t);
	return t;
}

/* A change of files while no cell ran. */
static inline struct tape *files_alone(struct hfix *fx, const char *msg_id, const char *change)
{
	struct tape *t = calloc(1, sizeof *t);
	AUTO(buf_done) struct buf content;
	buf_init(&content, 1u << 20);
	(void)snprintf(t->msg_id, sizeof t->msg_id, "%s", msg_id);
	(void)buf_addf(&content, "{\"done_us\":1790000000099000,\"files\":%s}", change);
	tape_message(t, CHANNEL_IOPUB, "coppice_files", msg_id, NULL, NULL,
		(struct bytes){content.data, content.len});
	t->next = fx->tapes;
	fx->tapes = t;
	hand_over(fx, t);
	await_fine(fx, t);
	return t;
}

/* ---- looking ---- */

static inline cJSON *ask_files(struct hfix *fx, const char *node)
{
	struct history_question q = {.what = HISTORY_FILES, .history = HISTORY_A, .node = node};
	return ask_tree(fx, &q);
}

static inline cJSON *entry_of(cJSON *files, const char *path)
{
	cJSON *e;
	cJSON_ArrayForEach (e, cJSON_GetObjectItem(files, "entries")) {
		if (strcmp(text_at(e, "path"), path) == 0)
			return e;
	}
	return NULL;
}

static inline int entries(cJSON *files)
{
	return cJSON_GetArraySize(cJSON_GetObjectItem(files, "entries"));
}

#endif
