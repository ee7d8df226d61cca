/* All repositories as they are at one moment each, while they are recorded in. What branches lead
 * to is there before they do, and objects are never changed: branches are copied first, then
 * objects get a second name. Only packing takes objects away, and that is kept out for so long. */
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "gateway/base/file.h"
#include "gateway/base/tree.h"
#include "history/chunk.h"
#include "history/history.h"
#include "history/pack.h"

static bool ends_with(const char *name, const char *end)
{
	size_t n = strlen(name), m = strlen(end);
	return n > m && strcmp(name + n - m, end) == 0;
}

static bool is_lock(const char *name)
{
	return ends_with(name, ".lock");
}

/* What is on its way to become an object. */
static bool is_half(const char *name)
{
	return is_lock(name) || strncmp(name, "tmp_", 4) == 0 || strncmp(name, ".tmp-", 5) == 0;
}

struct taking {
	const char *into;
	size_t n;
};

/* Branches that are packed are in packed-refs before they go from refs. */
static int take_refs(const char *from, const char *to, struct err *err)
{
	static const char *const files[] = {"packed-refs", "config", "HEAD"};
	char a[PATH_MAX + 32], b[PATH_MAX + 32];
	(void)snprintf(a, sizeof a, "%s/refs", from); /* cut, it is not there; as below */
	(void)snprintf(b, sizeof b, "%s/refs", to);
	int status = tree_copy(a, b, false, is_lock, err);
	for (size_t i = 0; status == 0 && i < ARRAY_LEN(files); i++) {
		(void)snprintf(a, sizeof a, "%s/%s", from, files[i]);
		(void)snprintf(b, sizeof b, "%s/%s", to, files[i]);
		if (i > 0 || access(a, F_OK) == 0)
			status = tree_copy_file(a, b, err);
	}
	return status;
}

static int take_locked(const char *from, const char *to, struct err *err)
{
	char a[PATH_MAX + 32], b[PATH_MAX + 32];
	int status = folders_make(to, err);
	if (status == 0)
		status = take_refs(from, to, err);
	(void)snprintf(a, sizeof a, "%s/objects", from);
	(void)snprintf(b, sizeof b, "%s/objects", to);
	if (status == 0)
		status = tree_copy(a, b, true, is_half, err);
	(void)snprintf(a, sizeof a, "%s/" CHUNK_FOLDER, from);
	(void)snprintf(b, sizeof b, "%s/" CHUNK_FOLDER, to);
	return status == 0 && access(a, F_OK) == 0 ? tree_copy(a, b, true, is_half, err) : status;
}

/* One that goes meanwhile is none of them. */
static int take_one(void *data, const char *path, const char *name, bool is_folder, struct err *err)
{
	struct taking *t = data;
	char to[PATH_MAX];
	int lock = -1;
	if (!is_folder || !ends_with(name, ".git"))
		return 0;
	if (snprintf(to, sizeof to, "%s/%s", t->into, name) >= (int)sizeof to)
		return err_set(err, E_IO, "%s is too long", path);
	int status = pack_lock(path, true, &lock, err);
	if (status == 0)
		status = take_locked(path, to, err);
	if (lock >= 0)
		(void)close(lock); /* nothing is written through it */
	if (status == 0)
		t->n++;
	if (status == 0 || access(path, F_OK) == 0)
		return status;
	return tree_remove(to, err);
}

int histories_snapshot(const char *folder, const char *into, size_t *ret_n, struct err *err)
{
	struct taking t = {.into = into};
	int status = folders_make(into, err);
	if (status == 0)
		status = tree_each(folder, take_one, &t, err);
	*ret_n = t.n;
	return status;
}
