#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "frontend-adapter/conversation.h"
#include "gateway/base/file.h"
#include "gateway/base/json_tree.h"

#define FILE_MAX    (256u << 20)
#define EVENTS_GAP  1000000u /* ids that a killed gateway may have given out unsaved */
#define EVENTS_NEXT 16u	     /* and one that was killed between two turns */

static void add(struct cJSON *tree, const char *key, const char *text)
{
	(void)cJSON_AddStringToObject(tree, key, text); /* cannot fail (json_tree.h) */
}

static bool path_of(const struct chats *cs, const char *id, char ret[PATH_MAX])
{
	int n = snprintf(ret, PATH_MAX, "%s/%s.json", cs->folder, id);
	return n > 0 && n < PATH_MAX;
}

bool conversation_path(
	const struct conversation *c, const char *record, const char *word, char *ret, size_t size)
{
	int n = snprintf(ret, size, "%s/%s/%s.%s", c->chats->folder, c->id, record, word);
	return n > 0 && (size_t)n < size;
}

static void add_or_null(struct cJSON *tree, const char *key, const char *text)
{
	if (*text)
		add(tree, key, text);
	else
		(void)cJSON_AddNullToObject(tree, key); /* as in add() */
}

struct cJSON *conversation_head(const struct conversation *c)
{
	char stamp[CLOCK_STAMP_SIZE];
	struct cJSON *tree = cJSON_CreateObject();
	const cJSON *last = cJSON_GetArrayItem(c->records, cJSON_GetArraySize(c->records) - 1);
	clock_stamp(c->created_us, stamp);
	add(tree, "id", c->id);
	add(tree, "title", c->title);
	add(tree, "created", stamp);
	add_or_null(tree, "kernel_id", c->kernel_id);
	add_or_null(tree, "history_id", c->kernel_id);
	add_or_null(tree, "node", tree_text(last, "node"));
	add(tree, "tier", "none");
	return tree;
}

/* ---- writing ---- */

int conversation_save_or(const struct conversation *c, struct err *err)
{
	struct cJSON *tree = conversation_head(c);
	char path[PATH_MAX];
	struct err why;
	add(tree, "owner", c->owner);
	add(tree, "kernel_name", c->kernel_name);
	add(tree, "ran_in", c->ran_in);
	(void)cJSON_AddNumberToObject(tree, "created_us", (double)c->created_us);
	(void)cJSON_AddNumberToObject(tree, "last_event", (double)(c->last_event + EVENTS_NEXT));
	(void)cJSON_AddBoolToObject(tree, "answering", c->turn != NULL);
	(void)cJSON_AddItemReferenceToObject(tree, "kernels", c->kernels);
	(void)cJSON_AddItemReferenceToObject(tree, "messages", c->messages);
	(void)cJSON_AddItemReferenceToObject(tree, "records", c->records);
	AUTO(freep) char *text = json_print(tree, &why);
	cJSON_Delete(tree);
	if (!text)
		return err_set(err, why.code, "%s", why.text);
	if (!path_of(c->chats, c->id, path))
		return err_set(err, E_INVALID, "data_dir is too long");
	return file_write(path, text, strlen(text), err);
}

void conversation_save(struct conversation *c)
{
	struct err err;
	char text[sizeof err.text + 128];
	bool before = c->unsaved;
	c->unsaved = conversation_save_or(c, &err) != 0;
	if (!c->unsaved)
		return;
	log_warn(&c->chats->log, "conversation_not_saved id=%s error=\"%s\"", c->id, err.text);
	if (before)
		return;
	struct cJSON *tree = cJSON_CreateObject();
	(void)snprintf(text, sizeof text,
		"This conversation cannot be kept at present: what is said is lost if the gateway "
		"ends. %s",
		err.text); /* fits */
	add(tree, "text", text);
	conversation_tell(c, "notice", tree);
}

int conversation_write_record(
	const struct conversation *c, const char *id, const struct cJSON *record, struct err *err)
{
	char path[PATH_MAX];
	struct err why;
	AUTO(freep) char *text = json_print(record, &why);
	if (!text)
		return err_set(err, why.code, "%s", why.text);
	if (!conversation_path(c, id, "json", path, sizeof path))
		return err_set(err, E_INVALID, "data_dir is too long");
	int rc = file_folder_make(path, err);
	return rc == 0 ? file_write(path, text, strlen(text), err) : rc;
}

static void add_number(struct cJSON *row, const char *key, uint64_t number)
{
	if (number > 0)
		(void)cJSON_AddNumberToObject(row, key, (double)number); /* as in add() */
}

int conversation_add_record(struct conversation *c, struct cJSON *record,
	const struct run_facts *facts, struct err *err)
{
	struct cJSON *row = cJSON_CreateObject();
	const char *id = tree_text(record, "id");
	struct err why;
	add(row, "id", id);
	add(row, "msg_id", facts->msg_id);
	add_or_null(row, "node", facts->node);
	add_number(row, "record_ms", facts->record_ms);
	(void)cJSON_AddItemToArray(c->records, row); /* both are there */
	int rc = conversation_write_record(c, id, record, &why);
	if (rc != 0) {
		log_warn(&c->chats->log, "record_not_saved id=%s error=\"%s\"", id, why.text);
		add(row, "not_recorded", why.text);
		err_set(err, rc, "%s", why.text);
	}
	cJSON_Delete(record);
	return rc;
}

/* ---- reading ---- */

/* Of a file whose text is an object. */
static int read_text(const struct conversation *c, const char *id, struct buf *ret, struct err *err)
{
	char path[PATH_MAX];
	const char *why = tree_text(conversation_find(c, "id", id), "not_recorded");
	if (!conversation_path(c, id, "json", path, sizeof path))
		return err_set(err, E_INVALID, "data_dir is too long");
	int rc = *why ? E_NOT_FOUND : file_read(path, ret, err);
	if (rc == E_NOT_FOUND || (rc == 0 && (ret->len < 2 || ret->data[0] != '{')))
		return err_set(err, E_GONE, "the record `%.64s` could not be kept%s%s", id,
			*why ? ": " : "", why);
	return rc;
}

int conversation_read_record(
	const struct conversation *c, const char *id, struct cJSON **ret, struct err *err)
{
	AUTO(buf_done) struct buf text;
	buf_init(&text, FILE_MAX);
	int rc = read_text(c, id, &text, err);
	if (rc != 0)
		return rc;
	struct err why;
	*ret = json_parse((struct bytes){text.data, text.len}, NULL, &why);
	return *ret ? 0
		    : err_set(err, why.code == E_NOMEM ? E_NOMEM : E_IO,
			      "the record `%.64s` cannot be read: %s", id, why.text);
}

static void add_known(struct buf *b, const struct cJSON *row, const char *key)
{
	const struct cJSON *item = cJSON_GetObjectItemCaseSensitive(row, key);
	if (cJSON_IsNumber(item))
		(void)buf_addf(b, "\"%s\":%.0f,", key, item->valuedouble); /* latched */
	else
		(void)buf_addf(b, "\"%s\":null,", key);
}

/* What the row knows goes before the first member, all else is untouched. */
int conversation_record(
	const struct conversation *c, const struct cJSON *row, struct cJSON **ret, struct err *err)
{
	AUTO(buf_done) struct buf text, whole;
	const char *node = tree_text(row, "node");
	buf_init(&text, FILE_MAX);
	buf_init(&whole, FILE_MAX);
	int rc = read_text(c, tree_text(row, "id"), &text, err);
	if (rc != 0)
		return rc;
	(void)buf_addf(&whole, "{\"node\":%s%s%s,", *node ? "\"" : "", *node ? node : "null",
		*node ? "\"" : ""); /* latched */
	add_known(&whole, row, "record_ms");
	(void)buf_add(&whole, text.data + 1, text.len - 1);
	rc = buf_check(&whole, "a record", err);
	if (rc == 0)
		*ret = cJSON_CreateRaw((const char *)whole.data);
	return rc;
}

static struct cJSON *array_of(struct cJSON *tree, const char *key)
{
	struct cJSON *list = cJSON_DetachItemFromObjectCaseSensitive(tree, key);
	if (list && cJSON_IsArray(list))
		return list;
	cJSON_Delete(list);
	return cJSON_CreateArray();
}

/* The gateway was killed amid an answer: what there is of it stays. */
static void end_turn(struct conversation *c)
{
	struct cJSON *message = cJSON_CreateObject();
	add(message, "role", "assistant");
	add(message, "content", "");
	(void)cJSON_AddItemToObject(message, "records", conversation_unsaid(c));
	add(message, "status", "failed");
	struct cJSON *error = cJSON_AddObjectToObject(message, "error");
	add(error, "message", "the gateway was restarted while this was answered");
	add(error, "reason", err_name(E_GONE));
	conversation_said(c, message);
}

/* Earlier a conversation's file held the records themselves, and no list of kernels. */
static void take_records(struct conversation *c, struct cJSON *list)
{
	bool earlier = cJSON_HasObjectItem(list->child, "code");
	const struct run_facts unknown = {0};
	struct cJSON *row;
	while ((row = cJSON_DetachItemFromArray(list, 0))) {
		if (cJSON_HasObjectItem(row, "code"))
			(void)conversation_add_record(c, row, &unknown, NULL); /* its row says it */
		else
			(void)cJSON_AddItemToArray(c->records, row); /* both are there */
	}
	cJSON_Delete(list);
	if (*c->kernel_id && cJSON_GetArraySize(c->kernels) == 0)
		conversation_has_kernel(c);
	if (earlier)
		conversation_save(c);
}

static double number_of(const cJSON *tree, const char *key)
{
	double n = cJSON_GetNumberValue(cJSON_GetObjectItemCaseSensitive(tree, key));
	return n >= 0 && n < 9e15 ? n : 0;
}

static void take(struct chats *cs, struct cJSON *tree)
{
	const char *kernel = tree_text(tree, "kernel_id");
	struct conversation *c = conversation_new(
		cs, tree_text(tree, "id"), tree_text(tree, "owner"), tree_text(tree, "title"));
	(void)copy_text(
		c->kernel_id, sizeof c->kernel_id, kernel, strlen(kernel)); /* was checked */
	(void)copy_text(c->ran_in, sizeof c->ran_in, tree_text(tree, "ran_in"),
		strlen(tree_text(tree, "ran_in"))); /* cut, it is another's */
	c->created_us = (int64_t)number_of(tree, "created_us");
	c->last_event = (uint64_t)number_of(tree, "last_event");
	free(c->kernel_name);
	c->kernel_name = xstrdup(tree_text(tree, "kernel_name"));
	cJSON_Delete(c->kernels);
	c->kernels = array_of(tree, "kernels");
	c->messages = array_of(tree, "messages");
	c->records = cJSON_CreateArray();
	take_records(c, array_of(tree, "records"));
	conversation_expect_all(c);
	if (!cJSON_IsTrue(cJSON_GetObjectItemCaseSensitive(tree, "answering")))
		return;
	c->last_event += EVENTS_GAP;
	end_turn(c);
	conversation_save(c);
}

static int load(struct chats *cs, const char *path, struct err *err)
{
	AUTO(buf_done) struct buf text;
	buf_init(&text, FILE_MAX);
	int rc = file_read(path, &text, err);
	if (rc != 0)
		return rc;
	struct err why = {0};
	struct cJSON *tree = json_parse((struct bytes){text.data, text.len}, NULL, &why);
	if (!tree && why.code == E_NOMEM)
		return err_set(err, E_NOMEM, "%s: %s", path, why.text);
	if (strlen(tree_text(tree, "id")) != UUID_SIZE - 1 ||
		strlen(tree_text(tree, "kernel_id")) >= UUID_SIZE)
		rc = err_set(err, E_INVALID, "%s is no conversation", path);
	else
		take(cs, tree);
	cJSON_Delete(tree);
	return rc;
}

/* "ID.json" */
static bool is_conversation(const char *name)
{
	return strlen(name) == UUID_SIZE - 1 + 5 && strcmp(name + UUID_SIZE - 1, ".json") == 0;
}

/* "ID.json.XXXXXX": a gateway was killed while it wrote it. */
static bool is_half(const char *name)
{
	return strlen(name) == UUID_SIZE - 1 + 12 &&
	       strncmp(name + UUID_SIZE - 1, ".json.", 6) == 0;
}

int conversations_load(struct chats *cs, struct err *err)
{
	char path[PATH_MAX];
	int rc = 0;
	DIR *dir = opendir(cs->folder);
	if (!dir)
		return err_set(err, E_IO, "%s cannot be read: %s", cs->folder, strerror(errno));
	for (struct dirent *e; rc == 0 && (e = readdir(dir));) {
		int n = snprintf(path, sizeof path, "%s/%s", cs->folder, e->d_name);
		if (n < 0 || n >= (int)sizeof path)
			continue;
		if (is_half(e->d_name))
			(void)unlink(path); /* it is never read */
		if (!is_conversation(e->d_name))
			continue;
		struct err why;
		rc = load(cs, path, &why);
		if (rc == E_INVALID || rc == E_TOO_BIG) { /* it stays as it is */
			log_warn(&cs->log, "conversation_not_read error=\"%s\"", why.text);
			rc = 0;
		} else if (rc != 0) {
			err_set(err, rc, "a conversation cannot be read: %s", why.text);
		}
	}
	closedir(dir);
	return rc;
}

/* ---- removing ---- */

static void remove_folder(const char *folder)
{
	char path[PATH_MAX];
	DIR *dir = opendir(folder);
	for (struct dirent *e; dir && (e = readdir(dir));) {
		int n = snprintf(path, sizeof path, "%s/%s", folder, e->d_name);
		if (n > 0 && n < (int)sizeof path && e->d_name[0] != '.')
			(void)unlink(path); /* the folder stays then, which is told */
	}
	if (dir)
		closedir(dir);
}

/* The conversation's own file last: as long as it is there, its deletion can be asked for again. */
void conversation_remove(const struct conversation *c)
{
	char folder[PATH_MAX], path[PATH_MAX];
	int n = snprintf(folder, sizeof folder, "%s/%s", c->chats->folder, c->id);
	if (n < 0 || n >= (int)sizeof folder || !path_of(c->chats, c->id, path))
		return;
	remove_folder(folder);
	if ((rmdir(folder) != 0 && errno != ENOENT) || (unlink(path) != 0 && errno != ENOENT))
		log_error(&c->chats->log, "conversation_not_removed id=%s error=\"%s\"", c->id,
			strerror(errno));
}
