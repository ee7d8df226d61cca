#include "gateway/spine/forgotten.h"

#include <cjson/cJSON.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "gateway/base/file.h"
#include "gateway/base/hash.h"
#include "gateway/base/json_tree.h"

#define FILE_BYTES (8u << 20) /* ids are chosen by clients */

struct forgotten_run {
	UT_hash_handle hh;
	char msg_id[];
};

static void drop(struct forgotten *f, struct forgotten_run *run)
{
	HASH_DEL(f->runs, run);
	free(run);
}

void forgotten_done(struct forgotten *f)
{
	while (f->runs)
		drop(f, f->runs);
}

bool forgotten_has(const struct forgotten *f, const char *msg_id)
{
	struct forgotten_run *run = NULL;
	HASH_FIND_STR(f->runs, msg_id, run);
	return run != NULL;
}

static void note(struct forgotten *f, const char *msg_id)
{
	size_t len = strlen(msg_id);
	if (forgotten_has(f, msg_id))
		return;
	struct forgotten_run *run = xcalloc(1, sizeof *run + len + 1);
	memcpy(run->msg_id, msg_id, len);
	HASH_ADD_KEYPTR(hh, f->runs, run->msg_id, len, run);
	if (HASH_COUNT(f->runs) > FORGOTTEN_MAX)
		drop(f, f->runs);
}

static bool path_of(const char *folder, char ret_path[PATH_MAX])
{
	int n = snprintf(ret_path, PATH_MAX, "%s/" FORGOTTEN_FILE, folder);
	return n > 0 && n < PATH_MAX;
}

int forgotten_add(struct forgotten *f, const char *folder, const char *msg_id, struct err *err)
{
	char path[PATH_MAX];
	struct forgotten_run *run, *next;
	note(f, msg_id);
	cJSON *list = cJSON_CreateArray();
	HASH_ITER (hh, f->runs, run, next)
		cJSON_AddItemToArray(list, cJSON_CreateString(run->msg_id));
	AUTO(freep) char *text = json_print(list, err);
	cJSON_Delete(list);
	if (!text)
		return E_NOMEM;
	if (!path_of(folder, path))
		return err_set(err, E_INVALID, "data_dir is too long");
	int rc = file_folder_make(path, err);
	return rc == 0 ? file_write(path, text, strlen(text), err) : rc;
}

void forgotten_read(struct forgotten *f, const char *folder)
{
	AUTO(buf_done) struct buf text;
	char path[PATH_MAX];
	const cJSON *one;
	buf_init(&text, FILE_BYTES);
	if (!path_of(folder, path) || file_read(path, &text, NULL) != 0)
		return;
	cJSON *list = json_parse((struct bytes){text.data, text.len}, NULL, NULL);
	cJSON_ArrayForEach (one, list)
		if (cJSON_IsString(one))
			note(f, one->valuestring);
	cJSON_Delete(list);
}
