#include "gateway/spine/told_folder.h"

#include <cjson/cJSON.h>
#include <string.h>

#include "gateway/base/hash.h"
#include "gateway/base/json.h"
#include "gateway/base/json_tree.h"

#define PATH_MAX_BYTES	 8192u /* escaped: three times what a file system takes, about */
#define ENTRY_COST	 128u  /* what an entry needs besides its texts */
#define FOLDER_BYTES_MAX (8u << 20)
#define TOKENS_MAX                                                                                 \
	300000u /* commas and brackets of a Change: a tree costs much more than its text */
#define CHUNKS_MAX     1024u
#define CHUNK_BYTES    (1u << 20)
#define FILE_BYTES_MAX 1e12 /* no sum of these leaves what a double counts exactly */
#define LOST_MAX       64
#define BLOB_DIGITS    40u
#define CHUNK_DIGITS   64u

struct folder_entry {
	UT_hash_handle hh;
	char *path;
	cJSON *entry;
	size_t bytes;
};

static const cJSON *member(const cJSON *o, const char *key)
{
	return cJSON_GetObjectItemCaseSensitive(o, key);
}

static const char *text_of(const cJSON *o, const char *key)
{
	return cJSON_GetStringValue(member(o, key));
}

static void delete_tree(cJSON **tree)
{
	cJSON_Delete(*tree);
}

/* ---- what a Change may say ---- */

static bool is_hex(const char *text, size_t digits)
{
	return text && strlen(text) == digits && text[strspn(text, "0123456789abcdef")] == '\0';
}

/* Relative, of components that lead nowhere else. */
static bool is_path(const char *path)
{
	size_t len = path ? strlen(path) : 0;
	if (len == 0 || len > PATH_MAX_BYTES)
		return false;
	for (const char *at = path;; at++) {
		size_t n = strcspn(at, "/");
		if (n == 0 || (n == 1 && at[0] == '.') || (n == 2 && at[0] == '.' && at[1] == '.'))
			return false;
		for (size_t i = 0; i < n; i++)
			if ((unsigned char)at[i] < ' ' || at[i] == 0x7f)
				return false;
		at += n;
		if (!*at)
			return true;
	}
}

static bool are_chunks(const cJSON *list)
{
	const cJSON *one;
	if (!cJSON_IsArray(list) || (size_t)cJSON_GetArraySize(list) > CHUNKS_MAX)
		return false;
	cJSON_ArrayForEach (one, list)
		if (!is_hex(cJSON_GetStringValue(one), CHUNK_DIGITS))
			return false;
	return true;
}

static bool is_entry(const cJSON *e)
{
	static const char *const modes[] = {"100644", "100755", "120000", "40000"};
	const char *mode = text_of(e, "mode");
	const cJSON *bytes = member(e, "bytes"), *blob = member(e, "blob");
	const cJSON *chunks = member(e, "chunks"), *lost = member(e, "lost");
	size_t i = 0;
	while (i < ARRAY_LEN(modes) && (!mode || strcmp(mode, modes[i]) != 0))
		i++;
	if (i == ARRAY_LEN(modes) || !is_path(text_of(e, "path")) ||
		(blob != NULL) + (chunks != NULL) + (lost != NULL) != (i == 3 ? 0 : 1))
		return false;
	if (i == 3)
		return true;
	return cJSON_IsNumber(bytes) && bytes->valuedouble >= 0 &&
	       bytes->valuedouble <= FILE_BYTES_MAX &&
	       (!blob || is_hex(cJSON_GetStringValue(blob), BLOB_DIGITS)) &&
	       (!chunks || are_chunks(chunks)) && (!lost || cJSON_IsString(lost));
}

static int check_entries(const cJSON *change, struct err *err)
{
	const cJSON *one;
	cJSON_ArrayForEach (one, member(change, "changed"))
		if (!is_entry(one))
			return err_set(err, E_INVALID, "an entry that is none");
	cJSON_ArrayForEach (one, member(change, "removed"))
		if (!is_path(cJSON_GetStringValue(one)))
			return err_set(err, E_INVALID, "a path that is none");
	cJSON_ArrayForEach (one, member(change, "lost"))
		if (!text_of(one, "path") || !text_of(one, "reason"))
			return err_set(err, E_INVALID, "a loss without path or reason");
	return 0;
}

static bool is_shallow(struct bytes text)
{
	size_t n = 0;
	for (size_t i = 0; i < text.len; i++)
		n += text.data[i] == ',' || text.data[i] == '[' || text.data[i] == '{';
	return n <= TOKENS_MAX;
}

int told_read(struct bytes text, struct cJSON **ret, struct err *err)
{
	int rc = json_scan(text, NULL, 0, err);
	if (rc != 0)
		return rc;
	if (!is_shallow(text))
		return err_set(err, E_TOO_BIG, "it has more in it than a folder may hold");
	AUTO(delete_tree) cJSON *change = json_parse(text, NULL, err);
	if (!change)
		return err->code;
	if (!cJSON_IsBool(member(change, "full")) || !cJSON_IsArray(member(change, "changed")) ||
		!cJSON_IsArray(member(change, "removed")) ||
		!cJSON_IsArray(member(change, "lost")) ||
		cJSON_GetArraySize(member(change, "lost")) > LOST_MAX)
		return err_set(err, E_INVALID, "full, changed, removed or lost is missing");
	rc = check_entries(change, err);
	if (rc == 0)
		*ret = TAKE(change);
	return rc;
}

bool told_is_full(const struct cJSON *change)
{
	return cJSON_IsTrue(member(change, "full"));
}

bool told_is_empty(const struct cJSON *change)
{
	return !told_is_full(change) && !member(change, "changed")->child &&
	       !member(change, "removed")->child;
}

/* ---- the folder ---- */

static void entry_free(struct folder *f, struct folder_entry *e)
{
	HASH_DEL(f->by_path, e);
	f->n--;
	f->bytes -= e->bytes;
	free(e->path);
	cJSON_Delete(e->entry);
	free(e);
}

void folder_clear(struct folder *f)
{
	struct folder_entry *e, *next;
	HASH_ITER (hh, f->by_path, e, next) {
		entry_free(f, e);
	}
	cJSON_Delete(TAKE(f->lost));
}

static void remove_path(struct folder *f, const char *path)
{
	struct folder_entry *e;
	HASH_FIND_STR(f->by_path, path, e);
	if (e)
		entry_free(f, e);
}

static size_t cost_of(const cJSON *entry)
{
	const char *lost = text_of(entry, "lost");
	return ENTRY_COST + 2 * strlen(text_of(entry, "path")) + (lost ? strlen(lost) : 0) +
	       (size_t)cJSON_GetArraySize(member(entry, "chunks")) * (CHUNK_DIGITS + ENTRY_COST);
}

static void put(struct folder *f, const cJSON *entry)
{
	struct folder_entry *e = xcalloc(1, sizeof *e);
	remove_path(f, text_of(entry, "path"));
	e->path = xstrdup(text_of(entry, "path"));
	e->entry = cJSON_Duplicate(entry, true);
	e->bytes = cost_of(entry);
	HASH_ADD_KEYPTR(hh, f->by_path, e->path, strlen(e->path), e);
	f->n++;
	f->bytes += e->bytes;
}

/* Before anything is done: as if all of it were new. */
static int check_room(const struct folder *f, const cJSON *change, struct err *err)
{
	size_t n = told_is_full(change) ? 0 : f->n, bytes = n > 0 ? f->bytes : 0;
	const cJSON *one;
	cJSON_ArrayForEach (one, member(change, "changed")) {
		struct folder_entry *e = NULL;
		if (!told_is_full(change))
			HASH_FIND_STR(f->by_path, text_of(one, "path"), e);
		n += e ? 0 : 1;
		bytes += cost_of(one) - (e ? e->bytes : 0);
	}
	return n <= FOLDER_ENTRIES_MAX && bytes <= FOLDER_BYTES_MAX
		       ? 0
		       : err_set(err, E_TOO_BIG, "the folder holds more than can be told");
}

int folder_apply(struct folder *f, const struct cJSON *change, struct err *err)
{
	const cJSON *one;
	int rc = check_room(f, change, err);
	if (rc != 0)
		return rc;
	if (told_is_full(change))
		folder_clear(f);
	cJSON_ArrayForEach (one, member(change, "removed"))
		remove_path(f, cJSON_GetStringValue(one));
	cJSON_ArrayForEach (one, member(change, "changed"))
		put(f, one);
	cJSON_Delete(f->lost);
	f->lost = cJSON_Duplicate(member(change, "lost"), true);
	return 0;
}

struct cJSON *folder_change(const struct folder *f)
{
	struct folder_entry *e, *next;
	cJSON *change = cJSON_CreateObject();
	cJSON_AddTrueToObject(change, "full");
	cJSON *list = cJSON_AddArrayToObject(change, "changed");
	HASH_ITER (hh, f->by_path, e, next) {
		cJSON_AddItemToArray(list, cJSON_Duplicate(e->entry, true));
	}
	cJSON_AddArrayToObject(change, "removed");
	cJSON_AddItemToObject(
		change, "lost", f->lost ? cJSON_Duplicate(f->lost, true) : cJSON_CreateArray());
	return change;
}

/* ---- contents ---- */

static size_t count_contents(const cJSON *change)
{
	const cJSON *one;
	size_t n = 0;
	cJSON_ArrayForEach (one, member(change, "changed"))
		n += member(one, "blob") ? 1 : (size_t)cJSON_GetArraySize(member(one, "chunks"));
	return n;
}

static void name(struct content_name *to, const char *text, double bytes)
{
	(void)copy_text(to->name, sizeof to->name, text, strlen(text)); /* was checked */
	to->bytes = bytes < CHUNK_BYTES ? (uint32_t)bytes : CHUNK_BYTES;
}

int told_contents(
	const struct cJSON *change, struct content_name **ret, size_t *ret_n, struct err *err)
{
	const cJSON *one, *chunk;
	size_t n = count_contents(change), i = 0;
	if (n > FOLDER_NAMES_MAX)
		return err_set(err, E_TOO_BIG, "it names more contents than are kept");
	struct content_name *names = xcalloc(n + 1, sizeof *names);
	cJSON_ArrayForEach (one, member(change, "changed")) {
		const char *blob = text_of(one, "blob");
		if (blob)
			name(&names[i++], blob, member(one, "bytes")->valuedouble);
		cJSON_ArrayForEach (chunk, member(one, "chunks"))
			name(&names[i++], cJSON_GetStringValue(chunk), CHUNK_BYTES);
	}
	*ret = names;
	*ret_n = n;
	return 0;
}
