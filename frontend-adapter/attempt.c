#include "frontend-adapter/attempt.h"

#include <cjson/cJSON.h>
#include <stdio.h>
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
	cJSON_Delete(a->restored);
	cJSON_Delete(a->notes);
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
	memcpy(a->repairs_msg_id, before.facts.msg_id, sizeof a->repairs_msg_id);
}

void attempt_begin(struct attempt *a, const struct conversation *c)
{
	char path[PATH_MAX];
	const struct chats *cs = c->chats;
	a->started_us = clock_wall_us(cs->setup.clock);
	crypto_uuid(a->record);
	if (conversation_path(c, a->record, "log", path, sizeof path))
		a->log = run_log_new(cs->setup.loop, cs->setup.log, path); /* outlives us */
}

/* ---- its record ---- */

static void add(struct cJSON *tree, const char *key, const char *text)
{
	(void)cJSON_AddStringToObject(tree, key, text); /* cannot fail (json_tree.h) */
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

static void add_restored(struct cJSON *record, const struct cJSON *restored)
{
	const struct cJSON *report = cJSON_GetObjectItemCaseSensitive(restored, "report");
	if (!restored)
		return;
	add(record, "restored_by", tree_text(restored, "restored_by"));
	if (report)
		(void)cJSON_AddItemToObject(
			record, "report", cJSON_Duplicate(report, true)); /* as in add() */
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
	add_restored(record, a->restored);
}

static void add_cost(
	struct cJSON *record, const struct attempt *a, const struct chat_outcome *outcome)
{
	struct cJSON *timings = cJSON_AddObjectToObject(record, "timings");
	add_number(timings, "model_ms", a->usage.whole_ms);
	add_number(timings, "model_first_ms", a->usage.first_ms);
	add_number(timings, "place_ms", a->place_ms);
	add_number(timings, "waited_ms", outcome->waited_ms);
	add_number(timings, "ran_ms", outcome->ran_ms);
	if (outcome->peak_memory_bytes > 0)
		add_number(record, "peak_memory_bytes", outcome->peak_memory_bytes);
	else
		(void)cJSON_AddNullToObject(record, "peak_memory_bytes"); /* as in add() */
	(void)cJSON_AddItemToObject(record, "usage", usage_tree(&a->usage));
	add_number(record, "queue_position", outcome->queue_position);
	collect_bytes(&a->result, record);
}

static void add_log_trouble(struct cJSON *record, const struct attempt *a)
{
	const char *why = a->log ? run_log_trouble(a->log) : "its path is too long";
	char text[256];
	if (!why)
		return;
	(void)snprintf(text, sizeof text, "log: not all is in it: %s", why);
	(void)cJSON_AddItemToArray(cJSON_GetObjectItemCaseSensitive(record, "truncated"),
		cJSON_CreateString(text)); /* both are there */
}

static void add_lost(struct cJSON *record, const struct chat_outcome *outcome)
{
	char text[256];
	if (!*outcome->lost)
		return;
	(void)snprintf(
		text, sizeof text, "not all that the kernel sent is here: %s", outcome->lost);
	(void)cJSON_AddItemToArray(cJSON_GetObjectItemCaseSensitive(record, "truncated"),
		cJSON_CreateString(text)); /* both are there */
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
	add(record, "msg_id", a->facts.msg_id);
	add(record, "status", outcome->status);
	add_what(record, a);
	add(record, "started", stamp);
	add_number(record, "duration_ms", outcome->ran_ms);
	collect_record(&a->result, record);
	add_log_trouble(record, a);
	add_lost(record, outcome);
	if (strcmp(outcome->status, "ok") == 0) /* of one that ended early it is no error */
		cJSON_DeleteItemFromObjectCaseSensitive(record, "error");
	(void)cJSON_AddItemToObject(
		record, "notes", a->notes ? cJSON_Duplicate(a->notes, true) : cJSON_CreateArray());
	add_cost(record, a, outcome);
	return record;
}

/* ---- its error ---- */

int attempt_error(const struct attempt *a, char **ret, struct err *err)
{
	AUTO(buf_done) struct buf b;
	buf_init(&b, ERROR_MAX);
	*ret = NULL;
	if (!a->result.error)
		return 0;
	const char *name = tree_text(a->result.error, "ename");
	const char *value = tree_text(a->result.error, "evalue");
	plain_add(&b, (struct bytes){(const uint8_t *)name, strlen(name)});
	(void)buf_add_text(&b, ": "); /* latched */
	plain_add(&b, (struct bytes){(const uint8_t *)value, strnlen(value, ERROR_MAX / 4)});
	if (b.failed && b.code == E_NOMEM)
		return buf_check(&b, "an error", err);
	*ret = xstrdup((const char *)b.data);
	return 0;
}

void attempt_note(struct attempt *a, const char *sentence)
{
	if (!a->notes)
		a->notes = cJSON_CreateArray();
	(void)cJSON_AddItemToArray(a->notes, cJSON_CreateString(sentence)); /* both are there */
}

bool attempt_ended_early(const struct attempt *a)
{
	const char *name = tree_text(a->result.error, "ename");
	const char *value = tree_text(a->result.error, "evalue");
	return strcmp(name, "SystemExit") == 0 &&
	       (!*value || strcmp(value, "0") == 0 || strcmp(value, "None") == 0);
}

bool attempt_was_interrupted(const struct attempt *a)
{
	return strcmp(tree_text(a->result.error, "ename"), "KeyboardInterrupt") == 0;
}
