#include "frontend-adapter/attempt.h"

#include <cjson/cJSON.h>
#include <string.h>

#include "frontend-adapter/plain.h"

#define ERROR_MAX 65536u

void attempt_init(struct attempt *a, const struct collect_sink *sink)
{
	*a = (struct attempt){0};
	collect_init(&a->result, sink);
}

void attempt_done(struct attempt *a)
{
	prepared_done(&a->is);
	collect_done(&a->result);
	run_log_close(a->log);
}

void attempt_next(struct attempt *a, struct prepared *code, bool repairs)
{
	struct attempt before = *a;
	attempt_done(a);
	attempt_init(a, &before.result.to);
	a->is = *code;
	*code = (struct prepared){0};
	a->number = before.number + 1;
	if (!repairs)
		return;
	memcpy(a->repairs, before.record, sizeof a->repairs);
	memcpy(a->repairs_msg_id, before.msg_id, sizeof a->repairs_msg_id);
}

void attempt_begin(struct attempt *a, const struct conversation *c)
{
	char path[PATH_MAX];
	const struct chats *cs = c->chats;
	a->started_us = clock_wall_us(cs->setup.clock);
	crypto_uuid(a->record);
	if (conversation_path(c, a->record, "log", path, sizeof path))
		a->log = run_log_new(cs->setup.loop, &cs->log, path);
}

/* ---- its record ---- */

static void add(struct cJSON *tree, const char *key, const char *text)
{
	(void)cJSON_AddStringToObject(tree, key, text); /* without memory it is incomplete */
}

static void add_number(struct cJSON *tree, const char *key, uint64_t number)
{
	(void)cJSON_AddNumberToObject(tree, key, (double)number); /* as in add() */
}

struct cJSON *usage_tree(const struct model_usage *u)
{
	struct cJSON *tree = cJSON_CreateObject();
	add_number(tree, "prompt_tokens", u->prompt_tokens);
	add_number(tree, "completion_tokens", u->completion_tokens);
	return tree;
}

static void add_what(struct cJSON *record, const struct attempt *a)
{
	add(record, "code", a->is.written ? a->is.written : a->is.code);
	add(record, "prepared_code", a->is.code);
	(void)cJSON_AddItemToObject(record, "changes",
		a->is.changes ? cJSON_Duplicate(a->is.changes, true) : cJSON_CreateArray());
	add_number(record, "attempt", a->number);
	if (*a->repairs)
		add(record, "repair_of", a->repairs);
}

static void add_cost(
	struct cJSON *record, const struct attempt *a, const struct chat_outcome *outcome)
{
	struct cJSON *timings = cJSON_AddObjectToObject(record, "timings");
	add_number(timings, "model_ms", a->usage.whole_ms);
	add_number(timings, "model_first_ms", a->usage.first_ms);
	add_number(timings, "waited_ms", outcome->waited_ms);
	add_number(timings, "ran_ms", outcome->ran_ms);
	if (outcome->peak_memory_bytes > 0)
		add_number(record, "peak_memory_bytes", outcome->peak_memory_bytes);
	else
		(void)cJSON_AddNullToObject(record, "peak_memory_bytes"); /* as in add() */
	(void)cJSON_AddItemToObject(record, "usage", usage_tree(&a->usage));
	collect_bytes(&a->result, record);
}

struct cJSON *attempt_record(
	const struct attempt *a, const struct conversation *c, const struct chat_outcome *outcome)
{
	char stamp[CLOCK_STAMP_SIZE];
	struct cJSON *record = cJSON_CreateObject();
	clock_stamp(a->started_us, stamp);
	add(record, "id", a->record);
	add(record, "conversation_id", c->id);
	add(record, "kernel_id", c->kernel_id);
	add(record, "msg_id", a->msg_id);
	add(record, "status", outcome->status);
	add_what(record, a);
	add(record, "started", stamp);
	add_number(record, "duration_ms", outcome->ran_ms);
	collect_record(&a->result, record);
	add_cost(record, a, outcome);
	return record;
}

/* ---- its error ---- */

char *attempt_error(const struct attempt *a)
{
	struct buf b;
	if (!a->result.error)
		return NULL;
	buf_init(&b, ERROR_MAX);
	const char *name = tree_text(a->result.error, "ename");
	const char *value = tree_text(a->result.error, "evalue");
	plain_add(&b, (struct bytes){(const uint8_t *)name, strlen(name)});
	(void)buf_add_text(&b, ": "); /* latched */
	plain_add(&b, (struct bytes){(const uint8_t *)value, strnlen(value, ERROR_MAX / 4)});
	char *text = xstrdup(b.data ? (const char *)b.data : "");
	buf_done(&b);
	return text;
}

bool attempt_was_ended(const struct attempt *a)
{
	const char *name = tree_text(a->result.error, "ename");
	const char *value = tree_text(a->result.error, "evalue");
	if (strcmp(name, "KeyboardInterrupt") == 0)
		return true;
	return strcmp(name, "SystemExit") == 0 && (!*value || strcmp(value, "0") == 0);
}
