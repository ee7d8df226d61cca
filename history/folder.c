#include "history/folder.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "gateway/base/file.h"
#include "gateway/base/tree.h"
#include "history/chunk.h"
#include "history/files_tree.h"

#define DEPTH_MAX 16

int folder_lock(const char *folder, int *ret_fd, struct err *err)
{
	char path[PATH_MAX];
	int status = folders_make(folder, err);
	if (status != 0)
		return status;
	(void)snprintf(path, sizeof path, "%s/lock", folder);
	int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	if (fd < 0)
		return err_set(err, E_IO, "%s cannot be opened: %s", path, strerror(errno));
	if (flock(fd, LOCK_EX | LOCK_NB) != 0) {
		status = err_set(err, E_UNAVAILABLE,
			"another process has the histories in %s: end it, or give another "
			"--data-dir",
			folder);
		(void)close(fd); /* nothing was written */
		return status;
	}
	*ret_fd = fd;
	return 0;
}

bool folder_repository(const char *folder, const char *id, char *ret_path, size_t size)
{
	if (!id[0] || id[0] == '.' || strchr(id, '/'))
		return false;
	int len = snprintf(ret_path, size, "%s/%s.git", folder, id);
	return len > 0 && (size_t)len + 64 < size; /* room for the paths inside */
}

static bool ends_with(const char *name, const char *end)
{
	size_t n = strlen(name), m = strlen(end);
	return n > m && strcmp(name + n - m, end) == 0;
}

static int remove_file(const char *path, struct err *err)
{
	if (unlink(path) == 0 || errno == ENOENT)
		return 0;
	return err_set(err, E_IO, "%s cannot be removed: %s", path, strerror(errno));
}

/* Lock files below refs, and what was held for a purge; a branch name may hold folders. */
static int clean_refs(
	void *data, const char *path, const char *name, bool is_folder, struct err *err)
{
	int depth = *(int *)data + 1;
	if (is_folder)
		return depth < DEPTH_MAX ? tree_each(path, clean_refs, &depth, err) : 0;
	bool gone = ends_with(name, ".lock") || ends_with(path, "/" HELD_REF);
	return gone ? remove_file(path, err) : 0;
}

/* The recorder puts the index of a pack in place first, and did not come to the pack. */
static int clean_packs(
	void *data, const char *path, const char *name, bool is_folder, struct err *err)
{
	char pack[PATH_MAX];
	(void)data;
	if (is_folder || !ends_with(name, ".idx"))
		return 0;
	(void)snprintf(pack, sizeof pack, "%.*s.pack", (int)(strlen(path) - 4), path);
	return access(pack, F_OK) != 0 && errno == ENOENT ? remove_file(path, err) : 0;
}

static int clean_objects(
	void *data, const char *path, const char *name, bool is_folder, struct err *err)
{
	if (is_folder && strcmp(name, "pack") == 0)
		return tree_each(path, clean_packs, data, err);
	bool half = !is_folder && strncmp(name, "tmp_object", 10) == 0;
	return half ? remove_file(path, err) : 0;
}

/* HEAD, config, packed-refs. What git's packing leaves is pack.c's to clean. */
static int clean_top(
	void *data, const char *path, const char *name, bool is_folder, struct err *err)
{
	int depth = 0;
	if (is_folder && strcmp(name, "refs") == 0)
		return tree_each(path, clean_refs, &depth, err);
	if (is_folder && strcmp(name, "objects") == 0)
		return tree_each(path, clean_objects, data, err);
	return !is_folder && ends_with(name, ".lock") ? remove_file(path, err) : 0;
}

struct cleaning {
	int (*on_history)(void *data, const char *id, struct err *err);
	void *data;
};

static int clean_one(
	void *data, const char *path, const char *name, bool is_folder, struct err *err)
{
	const struct cleaning *c = data;
	char id[NAME_MAX + 1];
	if (is_folder && (ends_with(name, ".git.new") || ends_with(name, ".git.new.new") ||
				 ends_with(name, ".git.gone")))
		return tree_remove(path, err);
	if (!is_folder || !ends_with(name, ".git"))
		return 0;
	int status = tree_each(path, clean_top, NULL, err);
	if (status == 0)
		status = chunks_clean(path, err);
	(void)copy_text(id, sizeof id, name, strlen(name) - 4); /* a name fits */
	return status == 0 ? c->on_history(c->data, id, err) : status;
}

int folder_clean(const char *folder, int (*on_history)(void *data, const char *id, struct err *err),
	void *data, struct err *err)
{
	struct cleaning c = {on_history, data};
	return tree_each(folder, clean_one, &c, err);
}
