/* What conversations keep of a run that is to be forgotten. */
#include <cjson/cJSON.h>
#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "frontend-adapter/conversation.h"
#include "frontend-adapter/turn.h"

#define FORGOTTEN "(forgotten)"

static bool is_code(const cJSON *record, const char *key, struct bytes code)
{
	const char *text = tree_text(record, key);
	return strlen(text) == code.len && memcmp(text, code.data, code.len) == 0;
}

/* Of a kernel the code says which run it was, or that it ran the same. */
static bool is_of(const cJSON *record, const char *kernel_id, struct bytes code)
{
	return code.len > 0 && strcmp(tree_text(record, "kernel_id"), kernel_id) == 0 &&
	       (is_code(record, "code", code) || is_code(record, "prepared_code", code));
}

static int set(cJSON *tree, const char *key, cJSON *value, struct err *err)
{
	if (!cJSON_GetObjectItemCaseSensitive(tree, key)) {
		cJSON_Delete(value);
		return 0;
	}
	if (value && cJSON_ReplaceItemInObjectCaseSensitive(tree, key, value))
		return 0;
	cJSON_Delete(value);
	return err_set(err, E_NOMEM, "a record cannot be forgotten: out of memory");
}

static bool stays(const char *key)
{
	static const char *const keys[] = {"id", "conversation_id", "kernel_id", "node", "msg_id",
		"status", "started", "duration_ms", "attempt", "repair_of", "code", "prepared_code",
		"stdout", "stderr", "outputs", "truncated", "timings", "bytes", "usage",
		"peak_memory_bytes", "queue_position"};
	for (size_t i = 0; i < ARRAY_LEN(keys); i++)
		if (strcmp(key, keys[i]) == 0)
			return true;
	return false;
}

/* Whatever else may come to stand in a record goes. */
static int forget_record(cJSON *record, struct err *err)
{
	int rc = set(record, "code", cJSON_CreateString(FORGOTTEN), err);
	if (rc == 0)
		rc = set(record, "prepared_code", cJSON_CreateString(FORGOTTEN), err);
	if (rc == 0)
		rc = set(record, "stdout", cJSON_CreateString(""), err);
	if (rc == 0)
		rc = set(record, "stderr", cJSON_CreateString(""), err);
	if (rc == 0)
		rc = set(record, "outputs", cJSON_CreateArray(), err);
	for (cJSON *at = record->child, *next; at; at = next) {
		next = at->next;
		if (!stays(at->string))
			cJSON_Delete(cJSON_DetachItemViaPointer(record, at));
	}
	return rc;
}

static bool names(const cJSON *message, const char *record_id)
{
	const cJSON *id;
	cJSON_ArrayForEach (id, cJSON_GetObjectItemCaseSensitive(message, "records")) {
		if (cJSON_IsString(id) && strcmp(id->valuestring, record_id) == 0)
			return true;
	}
	return false;
}

/* The answer that the record belongs to, which had the code in it, and what was asked before it. */
static int forget_messages(struct conversation *c, const char *record_id, struct err *err)
{
	cJSON *message, *asked = NULL;
	int rc = 0;
	cJSON_ArrayForEach (message, c->messages) {
		if (strcmp(tree_text(message, "role"), "user") == 0)
			asked = message;
		bool is_it = names(message, record_id);
		if (!is_it && strcmp(tree_text(message, "role"), "assistant") == 0)
			asked = NULL;
		if (!is_it)
			continue;
		rc = set(message, "content", cJSON_CreateString(FORGOTTEN), err);
		if (rc == 0 && asked)
			rc = set(asked, "content", cJSON_CreateString(FORGOTTEN), err);
		asked = NULL;
		if (rc != 0)
			return rc;
	}
	return rc;
}

/* Its file, and its log. */
static int forget_files(
	const struct conversation *c, const char *id, cJSON *record, struct err *err)
{
	char log[PATH_MAX];
	int rc = forget_record(record, err);
	if (rc == 0)
		rc = conversation_write_record(c, id, record, err);
	if (rc != 0 || !conversation_path(c, id, "log", log, sizeof log))
		return rc;
	if (unlink(log) == 0 || errno == ENOENT)
		return 0;
	return err_set(err, E_IO, "%s cannot be removed: %s", log, strerror(errno));
}

/* True in *ret_is: it was that run, and is forgotten. */
static int forget_row(struct conversation *c, const cJSON *row, const char *kernel_id,
	struct bytes code, bool *ret_is, struct err *err)
{
	cJSON *record = NULL;
	const char *id = tree_text(row, "id");
	int rc = conversation_read_record(c, id, &record, err);
	*ret_is = rc == 0 && is_of(record, kernel_id, code);
	if (*ret_is && c->turn)
		rc = err_set(err, E_CONFLICT,
			"an answer is under way in the conversation that ran it: ask again "
			"once it has ended");
	else if (*ret_is)
		rc = forget_files(c, id, record, err);
	if (rc == 0 && *ret_is)
		rc = forget_messages(c, id, err);
	cJSON_Delete(record);
	return rc == E_GONE ? 0 : rc; /* there is nothing of it then */
}

static bool had_kernel(const struct conversation *c, const char *kernel_id)
{
	const cJSON *at;
	cJSON_ArrayForEach (at, c->kernels)
		if (cJSON_IsString(at) && strcmp(at->valuestring, kernel_id) == 0)
			return true;
	return false;
}

static int forget_in(
	struct conversation *c, const char *kernel_id, struct bytes code, struct err *err)
{
	const cJSON *row;
	bool found = false, is;
	int rc = 0;
	if (!had_kernel(c, kernel_id))
		return 0;
	cJSON_ArrayForEach (row, c->records) {
		rc = forget_row(c, row, kernel_id, code, &is, err);
		if (rc != 0)
			return rc;
		found = found || is;
	}
	if (!found)
		return 0;
	conversation_forget_events(c);
	return conversation_save_or(c, err);
}

/* Half files of one folder. */
static int sweep_folder(const char *folder, struct err *err)
{
	char path[PATH_MAX];
	int rc = 0;
	DIR *dir = opendir(folder);
	if (!dir && errno != ENOENT)
		return err_set(err, E_IO, "%s cannot be read: %s", folder, strerror(errno));
	for (struct dirent *d; dir && rc == 0 && (d = readdir(dir));) {
		bool half = strlen(d->d_name) > UUID_SIZE - 1 + 5 &&
			    strncmp(d->d_name + UUID_SIZE - 1, ".json.", 6) == 0;
		int n = snprintf(path, sizeof path, "%s/%s", folder, d->d_name);
		if (half && n > 0 && n < (int)sizeof path && unlink(path) != 0 && errno != ENOENT)
			rc = err_set(err, E_IO, "%s cannot be removed: %s", path, strerror(errno));
	}
	if (dir)
		(void)closedir(dir); /* read only */
	return rc;
}

/* A process that was killed while it wrote leaves what it had written beside. */
static int sweep(const struct chats *cs, struct err *err)
{
	char path[PATH_MAX];
	if (access(cs->folder, R_OK) != 0) /* a conversation without records has no folder */
		return err_set(err, E_IO, "%s cannot be read: %s", cs->folder, strerror(errno));
	int rc = sweep_folder(cs->folder, err);
	for (const struct conversation *c = cs->by_id; c && rc == 0; c = c->hh.next) {
		int n = snprintf(path, sizeof path, "%s/%s", cs->folder, c->id);
		if (n > 0 && n < (int)sizeof path)
			rc = sweep_folder(path, err);
	}
	return rc;
}

/* Rows of records say which nodes they are; the records' own files do not. */
static bool rename_rows(struct conversation *c,
	const char *(*now_of)(const void *data, const char *node), const void *data)
{
	cJSON *row;
	bool any = false;
	cJSON_ArrayForEach (row, c->records) {
		const char *node = tree_text(row, "node"), *now = *node ? now_of(data, node) : NULL;
		if (!now)
			continue;
		(void)cJSON_ReplaceItemInObjectCaseSensitive(
			row, "node", cJSON_CreateString(now)); /* the old one leads there, too */
		any = true;
	}
	return any;
}

void chats_renamed(struct chats *cs, const char *(*now_of)(const void *data, const char *node),
	const void *data)
{
	struct conversation *c, *next;
	HASH_ITER (hh, cs->by_id, c, next) {
		if (c->turn)
			turn_renamed(c, now_of, data);
		if (rename_rows(c, now_of, data))
			conversation_save(c);
	}
}

int chats_forget(struct chats *cs, const char *kernel_id, struct bytes code, struct err *err)
{
	struct conversation *c, *next;
	int rc = sweep(cs, err);
	HASH_ITER (hh, cs->by_id, c, next) {
		if (rc == 0)
			rc = forget_in(c, kernel_id, code, err);
	}
	return rc;
}
