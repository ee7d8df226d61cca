/* Runs whose commits are told later. */
#include <string.h>

#include "frontend-adapter/conversation.h"
#include "frontend-adapter/turn.h"

static void expected_free(struct expected *e)
{
	HASH_DEL(e->c->chats->expected, e);
	free(e);
}

static struct expected *find(const struct chats *cs, const char *msg_id)
{
	struct expected *e;
	HASH_FIND_STR(cs->expected, msg_id, e);
	return e;
}

void conversation_expect(struct conversation *c, const char *msg_id)
{
	struct expected *e = xcalloc(1, sizeof *e);
	(void)copy_text(e->msg_id, sizeof e->msg_id, msg_id, strlen(msg_id)); /* a uuid */
	e->c = c;
	HASH_ADD_STR(c->chats->expected, msg_id, e);
}

void conversation_ended(struct conversation *c, const char *msg_id)
{
	struct expected *e = find(c->chats, msg_id);
	if (e)
		e->ended_ms = clock_now_ms(c->chats->setup.clock);
}

void conversation_expect_all(struct conversation *c)
{
	const cJSON *row;
	cJSON_ArrayForEach (row, c->records) {
		const char *msg_id = tree_text(row, "msg_id");
		if (!*tree_text(row, "node") && strlen(msg_id) == UUID_SIZE - 1 &&
			!find(c->chats, msg_id))
			conversation_expect(c, msg_id);
	}
}

void conversation_expect_nothing(struct conversation *c)
{
	struct expected *e, *next;
	HASH_ITER (hh, c->chats->expected, e, next) {
		if (e->c == c)
			expected_free(e);
	}
}

static void set(cJSON *row, const char *key, cJSON *value)
{
	cJSON_DeleteItemFromObjectCaseSensitive(row, key);
	(void)cJSON_AddItemToObject(row, key, value); /* both are there */
}

void chats_recorded(struct chats *cs, const char *msg_id, const char *node)
{
	struct expected *e = find(cs, msg_id);
	if (!e)
		return;
	struct conversation *c = e->c;
	uint64_t record_ms = e->ended_ms ? clock_now_ms(cs->setup.clock) - e->ended_ms : 0;
	cJSON *row = conversation_find(c, "msg_id", msg_id);
	if (row) {
		set(row, "node", cJSON_CreateString(node));
		if (record_ms > 0)
			set(row, "record_ms", cJSON_CreateNumber((double)record_ms));
		conversation_save(c);
	} else if (c->turn) {
		turn_recorded(c, msg_id, node, record_ms);
	}
	expected_free(e);
}
