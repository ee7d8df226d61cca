/* The end of a turn, and what it leaves. */
#include <cjson/cJSON.h>
#include <string.h>

#include "frontend-adapter/turn.h"
#include "frontend-adapter/turn_parts.h"

struct cJSON *turn_text(const char *key, const char *text)
{
	struct cJSON *tree = cJSON_CreateObject();
	(void)cJSON_AddStringToObject(tree, key, text); /* cannot fail (json_tree.h), as all here */
	return tree;
}

void turn_notice(struct turn *t, const char *text)
{
	conversation_tell(t->c, "notice", turn_text("text", text));
}

/* ---- the end ---- */

void turn_free(struct turn *t)
{
	attempt_done(&t->attempt);
	cJSON_Delete(t->messages);
	cJSON_Delete(t->tried);
	buf_done(&t->text);
	buf_done(&t->said);
	free(t->error);
	free(t);
}

const char *chat_status_name(enum chat_status status)
{
	static const char *const names[CHAT_STATUSES] = {"ok", "not_fixed", "failed", "stopped"};
	return names[status];
}

static enum chat_status status_of(const struct turn *t, const struct err *err)
{
	if (err)
		return CHAT_FAILED;
	if (t->stopped)
		return CHAT_STOPPED;
	return t->failed ? CHAT_NOT_FIXED : CHAT_OK;
}

static struct cJSON *error_tree(const struct err *err)
{
	struct cJSON *tree = turn_text("message", err->text);
	(void)cJSON_AddStringToObject(tree, "reason", err_name(err->code));
	return tree;
}

/* The message and the event that ends it say the same. */
static struct cJSON *ending(const struct turn *t, const struct err *err)
{
	struct cJSON *tree = cJSON_CreateObject();
	enum chat_status status = status_of(t, err);
	t->c->chats->figures.answers[status]++;
	(void)cJSON_AddItemToObject(tree, "records", conversation_unsaid(t->c));
	(void)cJSON_AddStringToObject(tree, "status", chat_status_name(status));
	if (err)
		(void)cJSON_AddItemToObject(tree, "error", error_tree(err));
	if (t->messages)
		(void)cJSON_AddItemToObject(tree, "usage", usage_tree(&t->usage));
	if (t->left_out.bytes > 0) {
		struct cJSON *left_out = cJSON_AddObjectToObject(tree, "left_out");
		(void)cJSON_AddNumberToObject(left_out, "messages", t->left_out.messages);
		(void)cJSON_AddNumberToObject(left_out, "bytes", (double)t->left_out.bytes);
	}
	return tree;
}

/* Once all is done: what is on the disk then is not answered any more. */
static void say_last(struct conversation *c, struct cJSON *message, struct cJSON *end)
{
	struct err err;
	conversation_said(c, message);
	if (conversation_save_or(c, &err) == 0) {
		c->unsaved = false;
	} else {
		log_warn(&c->chats->log, "conversation_not_saved id=%s error=\"%s\"", c->id,
			err.text);
		c->unsaved = true;
		(void)cJSON_AddStringToObject(message, "not_recorded", err.text);
		(void)cJSON_AddStringToObject(end, "not_recorded", err.text);
	}
	conversation_tell(c, "message.end", end);
}

void turn_over(struct turn *t, const struct err *err)
{
	struct conversation *c = t->c;
	struct cJSON *end = ending(t, err), *message = cJSON_Duplicate(end, true);
	bool ran = cJSON_GetArraySize(cJSON_GetObjectItemCaseSensitive(end, "records")) > 0;
	sm_move(&t->sm, TURN_OVER);
	if (err)
		conversation_tell(c, "error", error_tree(err));
	(void)cJSON_AddStringToObject(message, "role", "assistant");
	(void)cJSON_AddStringToObject(
		message, "content", t->said.data ? (const char *)t->said.data : "");
	timer_stop(turn_clock(t), &t->step);
	timer_stop(turn_clock(t), &t->flush);
	c->turn = NULL;
	say_last(c, message, end);
	conversation_rest(c, ran ? NULL : err);
	turn_free(t); /* err may lie in it */
}
