#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "frontend-adapter/conversation.h"
#include "gateway/base/file.h"

#define FILE_MAX   (256u << 20)
#define EVENTS_GAP 1000000u /* ids that a killed gateway may have given out unsaved */

static void add(struct cJSON *tree, const char *key, const char *text)
{
	(void)cJSON_AddStringToObject(tree, key, text); /* without memory it is left out */
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
	add(tree, "owner", c->owner);
	add(tree, "kernel_name", c->kernel_name);
	(void)cJSON_AddNumberToObject(tree, "created_us", (double)c->created_us);
	(void)cJSON_AddNumberToObject(tree, "last_event", (double)c->last_event);
	(void)cJSON_AddBoolToObject(tree, "answering", c->turn != NULL);
	(void)cJSON_AddItemReferenceToObject(tree, "kernels", c->kernels);
	(void)cJSON_AddItemReferenceToObject(tree, "messages", c->messages);
	(void)cJSON_AddItemReferenceToObject(tree, "records", c->records);
	AUTO(freep) char *text = cJSON_PrintUnformatted(tree);
	cJSON_Delete(tree);
	if (!text || !path_of(c->chats, c->id, path))
		return err_set(err, E_NOMEM, "out of memory, or its path is too long");
	return file_write(path, text, strlen(text), err);
}

void conversation_save(const struct conversation *c)
{
	struct err err;
	if (conversation_save_or(c, &err) != 0)
		log_warn(&c->chats->log, "conversation_not_saved id=%s error=\"%s\"", c->id,
			err.text);
}

int conversation_write_record(
	const struct conversation *c, const char *id, const struct cJSON *record, struct err *err)
{
	char path[PATH_MAX];
	AUTO(freep) char *text = cJSON_PrintUnformatted(record);
	if (!text || !conversation_path(c, id, "json", path, sizeof path))
		return err_set(err, E_NOMEM, "out of memory, or its path is too long");
	int rc = file_folder_make(path, err);
	return rc == 0 ? file_write(path, text, strlen(text), err) : rc;
}

void conversation_add_record(
	struct conversation *c, struct cJSON *record, const char *msg_id, const char *node)
{
	struct cJSON *row = cJSON_CreateObject();
	const char *id = tree_text(record, "id");
	struct err err;
	add(row, "id", id);
	add(row, "msg_id", msg_id);
	add_or_null(row, "node", node);
	(void)cJSON_AddItemToArray(c->records, row);
	if (conversation_write_record(c, id, record, &err) != 0)
		log_warn(&c->chats->log, "record_not_saved id=%s error=\"%s\"", id, err.text);
	cJSON_Delete(record);
}

/* ---- reading ---- */

/* Of a file whose text is an object. */
static int read_text(const struct conversation *c, const char *id, struct buf *ret, struct err *err)
{
	char path[PATH_MAX];
	if (!conversation_path(c, id, "json", path, sizeof path))
		return err_set(err, E_INVALID, "data_dir is too long");
	int rc = file_read(path, ret, err);
	if (rc == E_NOT_FOUND || (rc == 0 && (ret->len < 2 || ret->data[0] != '{')))
		return err_set(err, E_GONE, "the record `%.64s` could not be kept", id);
	return rc;
}

int conversation_read_record(
	const struct conversation *c, const char *id, struct cJSON **ret, struct err *err)
{
	AUTO(buf_done) struct buf text;
	buf_init(&text, FILE_MAX);
	int rc = read_text(c, id, &text, err);
	if (rc == 0)
		*ret = cJSON_ParseWithLength((const char *)text.data, text.len);
	return rc == 0 && !*ret ? err_set(err, E_IO, "the record `%.64s` cannot be read", id) : rc;
}

/* The node goes before the first member, all else is untouched. */
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
	struct cJSON *row;
	while ((row = cJSON_DetachItemFromArray(list, 0))) {
		if (cJSON_HasObjectItem(row, "code"))
			conversation_add_record(c, row, "", "");
		else
			(void)cJSON_AddItemToArray(c->records, row); /* both are there */
	}
	cJSON_Delete(list);
	if (*c->kernel_id && cJSON_GetArraySize(c->kernels) == 0)
		conversation_has_kernel(c);
	if (earlier)
		conversation_save(c);
}

static void expect_all(struct conversation *c)
{
	const cJSON *row;
	cJSON_ArrayForEach (row, c->records) {
		const char *msg_id = tree_text(row, "msg_id");
		if (!*tree_text(row, "node") && strlen(msg_id) == UUID_SIZE - 1)
			conversation_expect(c, msg_id);
	}
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
	c->created_us = (int64_t)number_of(tree, "created_us");
	c->last_event = (uint64_t)number_of(tree, "last_event");
	free(c->kernel_name);
	c->kernel_name = xstrdup(tree_text(tree, "kernel_name"));
	cJSON_Delete(c->kernels);
	c->kernels = array_of(tree, "kernels");
	c->messages = array_of(tree, "messages");
	c->records = cJSON_CreateArray();
	take_records(c, array_of(tree, "records"));
	expect_all(c);
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
	struct cJSON *tree = cJSON_ParseWithLength((const char *)text.data, text.len);
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

void conversations_load(struct chats *cs)
{
	char path[PATH_MAX];
	struct err err;
	DIR *dir = opendir(cs->folder);
	for (struct dirent *e; dir && (e = readdir(dir));) {
		int n = snprintf(path, sizeof path, "%s/%s", cs->folder, e->d_name);
		if (n < 0 || n >= (int)sizeof path)
			continue;
		if (is_half(e->d_name))
			(void)unlink(path); /* it is never read */
		if (!is_conversation(e->d_name))
			continue;
		if (load(cs, path, &err) != 0)
			log_warn(&cs->log, "conversation_not_read error=\"%s\"", err.text);
	}
	if (dir)
		closedir(dir);
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
