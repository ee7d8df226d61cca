/* All conversations, and what can be asked of one. */
#include <cjson/cJSON.h>
#include <stdio.h>
#include <string.h>

#include "frontend-adapter/conversation.h"
#include "frontend-adapter/deletion.h"
#include "frontend-adapter/turn.h"
#include "gateway/base/file.h"

#define TITLE_MAX  200u
#define PAGE_BYTES (8u << 20) /* of the records of a page, unless one alone is longer */

/* ---- all of them ---- */

/* A start that failed: nobody waits for it. */
static void on_abandoned(void *data)
{
	(void)data;
}

int chats_open(const struct chats_setup *setup, struct chats **ret, struct err *err)
{
	int rc = folders_make(setup->folder, err);
	if (rc != 0)
		return rc;
	struct chats *cs = xcalloc(1, sizeof *cs);
	cs->setup = *setup;
	cs->setup.folder = cs->folder = xstrdup(setup->folder);
	log_child(&cs->log, setup->log, "room", "chat");
	list_init(&cs->deletions);
	const struct model_setup model = {.loop = setup->loop,
		.clock = setup->clock,
		.url = setup->model_url,
		.name = setup->model_name,
		.key = setup->model_key,
		.timeout_ms = setup->model_timeout_ms};
	if (*setup->model_url)
		rc = model_open(&model, &cs->model, err);
	if (rc != 0) {
		free(cs->folder);
		free(cs);
		return rc;
	}
	rc = conversations_load(cs, err);
	if (rc != 0) {
		chats_close(cs, on_abandoned, NULL);
		return rc;
	}
	*ret = cs;
	return 0;
}

static void on_model_closed(void *data)
{
	struct chats *cs = data;
	void (*cb)(void *data) = cs->closed;
	void *cb_data = cs->closed_data;
	free(cs->folder);
	free(cs);
	cb(cb_data);
}

void chats_close(struct chats *cs, void (*cb)(void *data), void *data)
{
	struct conversation *c, *next;
	cs->closed = cb;
	cs->closed_data = data;
	deletions_leave(cs);
	HASH_ITER (hh, cs->by_id, c, next)
		conversation_free(c);
	if (cs->model)
		model_close(cs->model, on_model_closed, cs);
	else
		on_model_closed(cs);
}

const struct chats_figures *chats_figures(const struct chats *cs)
{
	return &cs->figures;
}

static int find(const struct chats *cs, const char *owner, const char *id,
	struct conversation **ret, struct err *err)
{
	struct conversation *c;
	HASH_FIND_STR(cs->by_id, id, c);
	if (!c || c->leaving || strcmp(c->owner, owner) != 0)
		return err_set(err, E_NOT_FOUND, "there is no conversation `%.64s`", id);
	*ret = c;
	return 0;
}

int chat_create(struct chats *cs, const char *owner, const struct cJSON *wish, struct cJSON **ret,
	struct err *err)
{
	char id[UUID_SIZE];
	const char *title = tree_text(wish, "title");
	if (strlen(title) > TITLE_MAX)
		return err_set(err, E_INVALID, "title: longer than %u bytes", TITLE_MAX);
	crypto_uuid(id);
	struct conversation *c = conversation_new(cs, id, owner, title);
	free(c->kernel_name);
	c->kernel_name = xstrdup(tree_text(wish, "kernel_name"));
	c->created_us = clock_wall_us(cs->setup.clock);
	c->messages = cJSON_CreateArray();
	c->records = cJSON_CreateArray();
	int rc = conversation_save_or(c, err);
	if (rc == 0)
		*ret = conversation_head(c);
	else
		conversation_free(c);
	return rc;
}

/* ---- pages ---- */

/* Newest first. */
static int compare(const void *a, const void *b)
{
	const struct conversation *x = *(struct conversation *const *)a;
	const struct conversation *y = *(struct conversation *const *)b;
	if (x->created_us != y->created_us)
		return x->created_us < y->created_us ? 1 : -1;
	return strcmp(y->id, x->id);
}

/* "CREATED.ID" of the last one of the page before. */
static int read_cursor(const char *cursor, struct conversation *ret, struct err *err)
{
	char *end;
	if (!cursor || !*cursor)
		return 0;
	ret->created_us = strtoll(cursor, &end, 10);
	if (end != cursor && *end == '.' && strlen(end + 1) == UUID_SIZE - 1) {
		(void)copy_text(ret->id, sizeof ret->id, end + 1, UUID_SIZE - 1); /* it fits */
		return 0;
	}
	return err_set(err, E_INVALID, "the cursor is none of ours");
}

static size_t sorted(const struct chats *cs, const char *owner, struct conversation **ret)
{
	size_t n = 0;
	for (struct conversation *c = cs->by_id; c; c = c->hh.next)
		if (strcmp(c->owner, owner) == 0 && !c->leaving)
			ret[n++] = c;
	qsort(ret, n, sizeof *ret, compare);
	return n;
}

static void add_next(struct cJSON *page, const char *next)
{
	if (*next)
		(void)cJSON_AddStringToObject(page, "next", next); /* cannot fail (json_tree.h) */
	else
		(void)cJSON_AddNullToObject(page, "next");
}

int chat_list(const struct chats *cs, const char *owner, const struct chat_page *page,
	struct cJSON **ret, struct err *err)
{
	struct conversation from = {.created_us = INT64_MAX}, *last = &from;
	char next[64] = "";
	int rc = read_cursor(page->cursor, &from, err);
	if (rc != 0)
		return rc;
	AUTO(freep) struct conversation **all = xcalloc(HASH_COUNT(cs->by_id) + 1, sizeof *all);
	size_t n = sorted(cs, owner, all), shown = 0, i = 0;
	struct cJSON *tree = cJSON_CreateObject();
	struct cJSON *list = cJSON_AddArrayToObject(tree, "conversations");
	while (i < n && compare(&all[i], &last) <= 0)
		i++;
	for (; i < n && shown < page->limit; i++, shown++) {
		last = all[i];
		(void)cJSON_AddItemToArray(list, conversation_head(last));
	}
	if (i < n)
		(void)snprintf(next, sizeof next, "%lld.%s", (long long)last->created_us, last->id);
	add_next(tree, next);
	*ret = tree;
	return 0;
}

static int read_index(const char *cursor, int *ret, struct err *err)
{
	char *end;
	*ret = 0;
	if (!cursor || !*cursor)
		return 0;
	unsigned long n = strtoul(cursor, &end, 10);
	if (*end || *cursor == '-' || n > INT32_MAX)
		return err_set(err, E_INVALID, "the cursor is none of ours");
	*ret = (int)n;
	return 0;
}

/* A record whose file is gone is shown by its row. */
static int record_of(
	const struct conversation *c, const struct cJSON *row, struct cJSON **ret, struct err *err)
{
	int rc = conversation_record(c, row, ret, err);
	if (rc == E_GONE)
		*ret = cJSON_Duplicate(row, true);
	return rc == E_GONE ? 0 : rc;
}

static int add_records(const struct conversation *c, const struct chat_page *page,
	struct cJSON *tree, struct err *err)
{
	int from, n = cJSON_GetArraySize(c->records);
	size_t bytes = 0;
	char next[16] = "";
	int rc = read_index(page->cursor, &from, err);
	struct cJSON *list = cJSON_AddArrayToObject(tree, "records");
	int end = from + (int)page->limit < n ? from + (int)page->limit : n;
	for (; rc == 0 && from < end; from++) {
		struct cJSON *record = NULL;
		rc = record_of(c, cJSON_GetArrayItem(c->records, from), &record, err);
		if (rc != 0)
			break;
		bytes += record->valuestring ? strlen(record->valuestring) : 0;
		if (bytes > PAGE_BYTES && cJSON_GetArraySize(list) > 0) {
			cJSON_Delete(record);
			break;
		}
		(void)cJSON_AddItemToArray(list, record);
	}
	if (from < n)
		(void)snprintf(next, sizeof next, "%d", from);
	add_next(tree, next);
	return rc;
}

int chat_find(const struct chats *cs, const char *owner, const char *id, struct err *err)
{
	struct conversation *c;
	return find(cs, owner, id, &c, err);
}

int chat_get(const struct chats *cs, const char *owner, const char *id, bool whole,
	const struct chat_page *page, struct cJSON **ret, struct err *err)
{
	struct conversation *c;
	int rc = find(cs, owner, id, &c, err);
	if (rc != 0)
		return rc;
	struct cJSON *tree = whole ? conversation_head(c) : cJSON_CreateObject();
	if (whole)
		(void)cJSON_AddItemToObject(tree, "messages", cJSON_Duplicate(c->messages, true));
	rc = add_records(c, page, tree, err);
	if (rc == 0)
		*ret = tree;
	else
		cJSON_Delete(tree);
	return rc;
}

int chat_last(const struct chats *cs, const char *owner, const char *id, bool record,
	struct cJSON **ret, struct err *err)
{
	struct conversation *c;
	int rc = find(cs, owner, id, &c, err);
	if (rc != 0)
		return rc;
	const cJSON *list = record ? c->records : c->messages;
	const cJSON *last = cJSON_GetArrayItem(list, cJSON_GetArraySize(list) - 1);
	if (!last)
		return err_set(err, E_GONE, "the turn left nothing");
	if (record)
		return conversation_record(c, last, ret, err);
	*ret = cJSON_Duplicate(last, true);
	return 0;
}

/* ---- one ---- */

int chat_rename(
	struct chats *cs, const char *owner, const char *id, const char *title, struct err *err)
{
	struct conversation *c;
	int rc = find(cs, owner, id, &c, err);
	if (rc == 0 && strlen(title) > TITLE_MAX)
		rc = err_set(err, E_INVALID, "title: longer than %u bytes", TITLE_MAX);
	if (rc != 0)
		return rc;
	char *before = c->title;
	c->title = xstrdup(title);
	rc = conversation_save_or(c, err);
	free(rc == 0 ? before : c->title);
	c->title = rc == 0 ? c->title : before;
	return rc;
}

int chat_delete(struct chats *cs, const char *owner, const char *id,
	void (*cb)(void *data, const struct err *err), void *data, struct err *err)
{
	struct conversation *c;
	int rc = find(cs, owner, id, &c, err);
	if (rc == 0)
		deletion_begin(c, cb, data);
	return rc;
}

/* NULL: there is none of that owner's. */
static const struct conversation *find_record(const struct chats *cs, const char *owner,
	const char *record, const struct cJSON **ret_row, struct err *err)
{
	for (const struct conversation *c = cs->by_id; c; c = c->hh.next) {
		*ret_row = strcmp(c->owner, owner) == 0 && !c->leaving
				   ? conversation_find(c, "id", record)
				   : NULL;
		if (*ret_row)
			return c;
	}
	err_set(err, E_NOT_FOUND, "there is no record `%.64s`", record);
	return NULL;
}

int chat_record(const struct chats *cs, const char *owner, const char *record, struct cJSON **ret,
	struct err *err)
{
	const struct cJSON *row;
	const struct conversation *c = find_record(cs, owner, record, &row, err);
	return c ? conversation_record(c, row, ret, err) : E_NOT_FOUND;
}

int chat_log(const struct chats *cs, const char *owner, const char *record, char ret_path[PATH_MAX],
	struct err *err)
{
	const struct cJSON *row;
	const struct conversation *c = find_record(cs, owner, record, &row, err);
	if (!c)
		return E_NOT_FOUND;
	return conversation_path(c, record, "log", ret_path, PATH_MAX)
		       ? 0
		       : err_set(err, E_INVALID, "data_dir is too long");
}

int chat_interrupt(struct chats *cs, const char *owner, const char *id, struct err *err)
{
	struct conversation *c;
	int rc = find(cs, owner, id, &c, err);
	if (rc == 0 && c->turn)
		turn_stop(c);
	return rc;
}

/* ---- turns ---- */

static void listen(struct conversation *c, const struct chat_listener *to)
{
	struct listener *l = xcalloc(1, sizeof *l);
	l->to = *to;
	list_append(&c->listeners, &l->link);
}

int chat_say(struct chats *cs, const char *owner, const char *id,
	const struct chat_message *message, const struct chat_listener *listener, struct err *err)
{
	struct conversation *c;
	int rc = find(cs, owner, id, &c, err);
	if (rc == 0)
		rc = turn_begin(c, message, err);
	if (rc == 0)
		listen(c, listener);
	return rc;
}

int chat_listen(struct chats *cs, const char *owner, const char *id, uint64_t after,
	const struct chat_listener *listener, struct err *err)
{
	struct conversation *c;
	int rc = find(cs, owner, id, &c, err);
	if (rc != 0)
		return rc;
	LIST_EACH (at, &c->events) {
		const struct event *e = CONTAINER_OF(at, struct event, link);
		if (e->id > after)
			listener->on_event(listener->data, e->id, e->name, e->json);
	}
	if (c->turn)
		listen(c, listener);
	else
		listener->on_end(listener->data, NULL);
	return 0;
}

void chat_unlisten(struct chats *cs, const char *id, const void *data)
{
	struct conversation *c;
	HASH_FIND_STR(cs->by_id, id, c);
	if (!c)
		return;
	LIST_EACH_SAFE (at, &c->listeners) {
		struct listener *l = CONTAINER_OF(at, struct listener, link);
		if (l->to.data == data)
			listener_free(l);
	}
}
