#include "frontend-adapter/conversation.h"

#include <string.h>

#include "frontend-adapter/turn.h"
#include "gateway/base/json_tree.h"

/* ---- events ---- */

static const char no_memory[] =
	"{\"message\":\"out of memory: what this event says is lost; the conversation has what was "
	"said, its records what ran\",\"reason\":\"out_of_memory\"}";

static void event_free(struct conversation *c, struct event *e)
{
	c->n_events--;
	c->event_bytes -= e->bytes;
	list_remove(&e->link);
	free(e->name);
	free(e->json);
	free(e);
}

void conversation_forget_events(struct conversation *c)
{
	LIST_EACH_SAFE (at, &c->events)
		event_free(c, CONTAINER_OF(at, struct event, link));
}

static void keep_event(struct conversation *c, struct event *e)
{
	list_append(&c->events, &e->link);
	c->n_events++;
	c->event_bytes += e->bytes;
	while (c->n_events > EVENTS_MAX || (c->n_events > 1 && c->event_bytes > EVENTS_BYTES))
		event_free(c, CONTAINER_OF(c->events.next, struct event, link));
}

void conversation_tell(struct conversation *c, const char *name, struct cJSON *tree)
{
	struct event *e = xcalloc(1, sizeof *e);
	list_init(&e->link);
	e->id = ++c->last_event;
	e->name = xstrdup(name);
	e->json = json_print(tree, NULL);
	cJSON_Delete(tree);
	if (!e->json)
		e->json = xstrdup(no_memory);
	e->bytes = strlen(e->json) + sizeof *e;
	LIST_EACH_SAFE (at, &c->listeners) {
		struct listener *l = CONTAINER_OF(at, struct listener, link);
		l->to.on_event(l->to.data, e->id, e->name, e->json);
	}
	keep_event(c, e);
}

void listener_free(struct listener *l)
{
	list_remove(&l->link);
	free(l);
}

void conversation_rest(struct conversation *c, const struct err *failure)
{
	while (!list_empty(&c->listeners)) {
		struct listener *l = CONTAINER_OF(c->listeners.next, struct listener, link);
		struct chat_listener to = l->to;
		listener_free(l);
		to.on_end(to.data, failure);
	}
}

/* ---- messages and records ---- */

void conversation_said(struct conversation *c, struct cJSON *message)
{
	(void)cJSON_AddItemToArray(c->messages, message);
}

struct cJSON *conversation_unsaid(const struct conversation *c)
{
	struct cJSON *ids = cJSON_CreateArray();
	const cJSON *message, *row;
	int said = 0, i = 0;
	cJSON_ArrayForEach (message, c->messages)
		said += cJSON_GetArraySize(cJSON_GetObjectItemCaseSensitive(message, "records"));
	cJSON_ArrayForEach (row, c->records)
		if (i++ >= said)
			(void)cJSON_AddItemToArray(ids, cJSON_CreateString(tree_text(row, "id")));
	return ids;
}

struct cJSON *conversation_find(const struct conversation *c, const char *key, const char *value)
{
	struct cJSON *row;
	cJSON_ArrayForEach (row, c->records)
		if (strcmp(tree_text(row, key), value) == 0)
			return row;
	return NULL;
}

void conversation_has_kernel(struct conversation *c)
{
	(void)cJSON_AddItemToArray(
		c->kernels, cJSON_CreateString(c->kernel_id)); /* both are there */
}

/* ---- life ---- */

struct conversation *conversation_new(
	struct chats *cs, const char *id, const char *owner, const char *title)
{
	struct conversation *c = xcalloc(1, sizeof *c);
	c->chats = cs;
	(void)copy_text(c->id, sizeof c->id, id, strlen(id)); /* a uuid */
	c->owner = xstrdup(owner);
	c->title = xstrdup(title);
	c->kernel_name = xstrdup("");
	c->kernels = cJSON_CreateArray();
	list_init(&c->events);
	list_init(&c->listeners);
	HASH_ADD_STR(cs->by_id, id, c);
	return c;
}

void conversation_free(struct conversation *c)
{
	struct err gone;
	err_set(&gone, E_GONE, "the conversation is gone");
	if (c->turn)
		turn_drop(c);
	conversation_rest(c, &gone);
	conversation_forget_events(c);
	conversation_expect_nothing(c);
	HASH_DEL(c->chats->by_id, c);
	cJSON_Delete(c->messages);
	cJSON_Delete(c->records);
	cJSON_Delete(c->kernels);
	free(c->owner);
	free(c->title);
	free(c->kernel_name);
	free(c);
}
