/* Conversations over HTTP: made, looked at, said something to; events as server-sent events. */
#include <cjson/cJSON.h>
#include <stdio.h>
#include <string.h>

#include "frontend-adapter/adapter.h"
#include "gateway/base/json_tree.h"
#include "gateway/door/rest.h"
#include "gateway/door/route.h"
#include "gateway/gateway.h"

#define KEEP_ALIVE_MS 15000u
#define TIMEOUT_MIN_S 0.001
#define TIMEOUT_MAX_S 1e8

/* A call that listens to a turn. */
struct listening {
	struct call *call;
	char id[UUID_SIZE];
	bool record; /* what is answered in the end is the last record, not the message */
	struct timer keep_alive;
};

static struct chats *chats_of(const struct call *r)
{
	return r->door->gw->chats;
}

static void answer(struct call *r, int status, int code, struct cJSON *tree, const struct err *err)
{
	if (status != 0)
		answer_error(r, err);
	else if (tree)
		answer_json(r, code, tree);
	else
		answer_empty(r, code);
}

static int read_page(const struct call *r, struct chat_page *ret, struct err *err)
{
	ret->cursor = call_query(r, "cursor");
	return rest_limit(r, &ret->limit, err);
}

static void list_get(struct call *r)
{
	struct cJSON *tree = NULL;
	struct chat_page page;
	struct err err;
	int status = read_page(r, &page, &err);
	if (status == 0)
		status = chat_list(chats_of(r), r->owner->name, &page, &tree, &err);
	answer(r, status, 200, tree, &err);
}

static void list_post(struct call *r)
{
	static const struct rest_member members[] = {
		{"title", REST_TEXT}, {"tier", REST_TEXT}, {"kernel_name", REST_TEXT}};
	struct cJSON *body = NULL, *tree = NULL;
	struct err err;
	int status = call_json(r, &body, &err);
	if (status == 0)
		status = rest_check(body, "", members, ARRAY_LEN(members), &err);
	if (status == 0)
		status = chat_create(chats_of(r), r->owner->name, body, &tree, &err);
	cJSON_Delete(body);
	answer(r, status, 201, tree, &err);
}

static void get_page(struct call *r, bool whole)
{
	struct cJSON *tree = NULL;
	struct chat_page page;
	struct err err;
	int status = read_page(r, &page, &err);
	if (status == 0)
		status = chat_get(
			chats_of(r), r->owner->name, r->param[0], whole, &page, &tree, &err);
	answer(r, status, 200, tree, &err);
}

static void one_get(struct call *r)
{
	get_page(r, true);
}

static void records_get(struct call *r)
{
	get_page(r, false);
}

static void one_patch(struct call *r)
{
	struct cJSON *body = NULL;
	struct err err;
	int status = call_json(r, &body, &err);
	const char *title = rest_text(body, "title");
	if (status == 0 && !title)
		status = err_set(&err, E_INVALID, "title: a text is needed");
	if (status == 0)
		status = chat_rename(chats_of(r), r->owner->name, r->param[0], title, &err);
	cJSON_Delete(body);
	if (status != 0)
		answer_error(r, &err);
	else
		get_page(r, true);
}

static void on_deleted(void *data, const struct err *err)
{
	answer(data, err ? err->code : 0, 204, NULL, err);
}

static void one_delete(struct call *r)
{
	struct err err;
	if (chat_delete(chats_of(r), r->owner->name, r->param[0], on_deleted, r, &err) != 0)
		answer_error(r, &err);
}

static void interrupt_post(struct call *r)
{
	struct err err;
	int status = chat_interrupt(chats_of(r), r->owner->name, r->param[0], &err);
	answer(r, status, 204, NULL, &err);
}

static void record_get(struct call *r)
{
	struct cJSON *tree = NULL;
	struct err err;
	int status = chat_record(chats_of(r), r->owner->name, r->param[0], &tree, &err);
	answer(r, status, 200, tree, &err);
}

/* ---- listening ---- */

static void listening_free(struct listening *l)
{
	timer_stop(l->call->door->gw->clock, &l->keep_alive);
	free(l);
}

static void on_event(void *data, uint64_t id, const char *name, const char *json)
{
	struct listening *l = data;
	char head[128];
	if (!l->call->streams)
		return;
	int n = snprintf(head, sizeof head, "id: %llu\nevent: %s\ndata: ", (unsigned long long)id,
		name); /* fits: names are ours */
	/* What is not added for want of memory ends the connection: who comes back reads on from
	 * the last event that it has. JSON text of ours has no line ends. */
	(void)(answer_add(l->call, (struct bytes){(const uint8_t *)head, (size_t)n}) &&
		answer_add(l->call, (struct bytes){(const uint8_t *)json, strlen(json)}) &&
		answer_add(l->call, (struct bytes){(const uint8_t *)"\n\n", 2}));
}

/* What has run is never answered with a status that clients ask again for by themselves: 410 where
 * the message or record is not to be had. */
static void answer_whole(struct listening *l, const struct err *failure)
{
	static const char lost[] =
		"{\"message\":\"it ran, but there is no memory for the answer: ask for the "
		"conversation or its records again\",\"reason\":\"out_of_memory\"}";
	struct call *r = l->call;
	struct cJSON *last = NULL;
	struct err err;
	answer_header(r, "X-Should-Retry", "false");
	if (failure) {
		answer_error(r, failure);
		return;
	}
	if (chat_last(chats_of(r), r->owner->name, l->id, l->record, &last, &err) != 0) {
		err.code = E_GONE;
		answer_error(r, &err);
		return;
	}
	AUTO(freep) char *text = json_print(last, NULL);
	const char *body = text ? text : lost;
	cJSON_Delete(last);
	answer_bytes(r, text ? 200 : 410, "application/json",
		(struct bytes){(const uint8_t *)body, strlen(body)});
}

static void on_end(void *data, const struct err *failure)
{
	struct listening *l = data;
	struct call *r = l->call;
	timer_stop(r->door->gw->clock, &l->keep_alive);
	if (r->streams)
		answer_end(r);
	else
		answer_whole(l, failure);
	free(l);
}

static void on_gone(void *data)
{
	struct listening *l = data;
	struct call *r = l->call;
	chat_unlisten(chats_of(r), l->id, l);
	listening_free(l);
	answer_end(r);
}

/* So that whoever has left is noticed, and no proxy gives up. */
static void on_keep_alive(struct timer *t)
{
	static const char comment[] = ": still here\n\n";
	struct listening *l = CONTAINER_OF(t, struct listening, keep_alive);
	timer_start(l->call->door->gw->clock, t, KEEP_ALIVE_MS);
	(void)answer_add(l->call,
		(struct bytes){(const uint8_t *)comment, sizeof comment - 1}); /* on_gone tells */
}

static struct listening *listening_new(struct call *r, bool record)
{
	struct listening *l = xcalloc(1, sizeof *l);
	l->call = r;
	l->record = record;
	(void)copy_text(l->id, sizeof l->id, r->param[0], strlen(r->param[0])); /* was found */
	timer_init(&l->keep_alive, on_keep_alive);
	return l;
}

static bool wants_events(const struct call *r)
{
	const char *accept = r->header[HEADER_ACCEPT];
	return accept && strstr(accept, "text/event-stream");
}

static void begin_events(struct listening *l)
{
	struct call *r = l->call;
	answer_header(r, "Cache-Control", "no-store");
	answer_header(r, "X-Accel-Buffering", "no");
	timer_start(r->door->gw->clock, &l->keep_alive, KEEP_ALIVE_MS);
	answer_begin(r, "text/event-stream", on_gone, l);
}

/* In seconds; without it the token's tier says how long. */
static int read_timeout(const struct cJSON *body, double *ret, struct err *err)
{
	const struct cJSON *timeout = cJSON_GetObjectItemCaseSensitive(body, "timeout");
	*ret = 0;
	if (!timeout || cJSON_IsNull(timeout))
		return 0;
	if (!cJSON_IsNumber(timeout) || !(timeout->valuedouble > 0) ||
		timeout->valuedouble > TIMEOUT_MAX_S)
		return err_set(err, E_INVALID, "timeout: a number of seconds above 0 is needed");
	*ret = timeout->valuedouble < TIMEOUT_MIN_S ? TIMEOUT_MIN_S : timeout->valuedouble;
	return 0;
}

static void say(struct call *r, const char *key, bool model)
{
	struct cJSON *body = NULL;
	struct err err;
	int status = call_json(r, &body, &err);
	const char *text = rest_text(body, key);
	struct chat_message message = {.content = text, .model = model};
	struct listening *l = listening_new(r, !model);
	const struct chat_listener listener = {.on_event = on_event, .on_end = on_end, .data = l};
	if (status == 0 && (!text || !*text))
		status = err_set(&err, E_INVALID, "%s: a text is needed", key);
	if (status == 0 && !model)
		status = read_timeout(body, &message.timeout_s, &err);
	if (status == 0)
		status = chat_say(
			chats_of(r), r->owner->name, r->param[0], &message, &listener, &err);
	cJSON_Delete(body);
	if (status == 0 && wants_events(r))
		begin_events(l);
	if (status == 0)
		return;
	listening_free(l);
	/* Libraries say it again by themselves: in vain, or behind the answer under way. */
	answer_header(r, "X-Should-Retry", "false");
	answer_error(r, &err);
}

static void messages_post(struct call *r)
{
	say(r, "content", true);
}

static void executions_post(struct call *r)
{
	say(r, "code", false);
}

static void events_get(struct call *r)
{
	const char *last = r->header[HEADER_LAST_EVENT_ID];
	struct listening *l = listening_new(r, false);
	const struct chat_listener listener = {.on_event = on_event, .on_end = on_end, .data = l};
	struct err err;
	if (chat_find(chats_of(r), r->owner->name, r->param[0], &err) != 0) {
		listening_free(l);
		answer_error(r, &err);
		return;
	}
	begin_events(l);
	(void)chat_listen(chats_of(r), r->owner->name, r->param[0],
		last ? strtoull(last, NULL, 10) : 0, &listener, NULL); /* it was found just now */
}

#define C "/chat/conversations/{c}"

const struct route rest_conversations_routes[] = {
	{METHOD_GET, "/chat/conversations", SCOPE_READ, list_get},
	{METHOD_POST, "/chat/conversations", SCOPE_RUN, list_post},
	{METHOD_GET, C, SCOPE_READ, one_get},
	{METHOD_PATCH, C, SCOPE_RUN, one_patch},
	{METHOD_DELETE, C, SCOPE_RUN, one_delete},
	{METHOD_POST, C "/messages", SCOPE_RUN, messages_post},
	{METHOD_POST, C "/executions", SCOPE_RUN, executions_post},
	{METHOD_POST, C "/interrupt", SCOPE_RUN, interrupt_post},
	{METHOD_GET, C "/events", SCOPE_READ, events_get},
	{METHOD_GET, C "/records", SCOPE_READ, records_get},
	{METHOD_GET, "/chat/records/{r}", SCOPE_READ, record_get},
	{0},
};
