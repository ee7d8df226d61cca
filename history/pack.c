#include "history/pack.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "gateway/base/tree.h"

#define OBJECTS_PER_NODE 9u /* code, outputs, meta, four or five trees, a commit */
#define FANOUT		 256u
#define GRACE		 "1.hour.ago"

int pack_lock(const char *repository, bool waits, int *ret_fd, struct err *err)
{
	char path[PATH_MAX];
	(void)snprintf(path, sizeof path, "%s/objects/pack", repository); /* fits: folder.h */
	int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (fd < 0)
		return err_set(err, errno == ENOENT ? E_NOT_FOUND : E_IO, "%s cannot be opened: %s",
			path, strerror(errno));
	int rc;
	while ((rc = flock(fd, LOCK_EX | (waits ? 0 : LOCK_NB))) != 0 && errno == EINTR)
		;
	if (rc != 0) {
		(void)close(fd); /* nothing was written */
		return err_set(err, E_UNAVAILABLE, "%s is being packed or copied", repository);
	}
	*ret_fd = fd;
	return 0;
}

/* ---- cleaning ---- */

static bool begins_with(const char *name, const char *start)
{
	return strncmp(name, start, strlen(start)) == 0;
}

static int remove_file(const char *path, struct err *err)
{
	if (unlink(path) == 0 || errno == ENOENT)
		return 0;
	return err_set(err, E_IO, "%s cannot be removed: %s", path, strerror(errno));
}

/* A pack's index is put in place last and removed first: a file without it is half a pack. */
static bool is_half(const char *path, const char *name)
{
	char index[PATH_MAX];
	const char *dot = strrchr(path, '.');
	if (!begins_with(name, "pack-") || !dot || strcmp(dot, ".idx") == 0 ||
		strcmp(dot, ".keep") == 0)
		return false;
	(void)snprintf(index, sizeof index, "%.*s.idx", (int)(dot - path), path);
	return access(index, F_OK) != 0 && errno == ENOENT;
}

static int clean_pack(
	void *data, const char *path, const char *name, bool is_folder, struct err *err)
{
	(void)data;
	bool half = begins_with(name, "tmp_") || begins_with(name, ".tmp-") || is_half(path, name);
	return half && !is_folder ? remove_file(path, err) : 0;
}

static int clean_loose(
	void *data, const char *path, const char *name, bool is_folder, struct err *err)
{
	(void)data;
	return !is_folder && begins_with(name, "tmp_obj_") ? remove_file(path, err) : 0;
}

static int clean_objects(
	void *data, const char *path, const char *name, bool is_folder, struct err *err)
{
	if (is_folder && strlen(name) == 2)
		return tree_each(path, clean_loose, data, err);
	return 0;
}

int pack_clean(const char *repository, struct err *err)
{
	char path[PATH_MAX];
	(void)snprintf(path, sizeof path, "%s/objects/pack", repository);
	int status = tree_each(path, clean_pack, NULL, err);
	(void)snprintf(path, sizeof path, "%s/objects/tmp_join", repository);
	if (status == 0)
		status = tree_remove(path, err);
	(void)snprintf(path, sizeof path, "%s/objects", repository);
	return status == 0 ? tree_each(path, clean_objects, NULL, err) : status;
}

/* ---- packing ---- */

/* Not --geometric: it takes along what lies loose by no name, so of a run that is being written the
 * commit but not the tree; a repack passes over a packed commit, and the tree lies loose for ever.
 */
int pack_recent(struct child *child, const char *repository, int lock, struct err *err)
{
	const char *const loose[] = {"git", "-C", repository, "repack", "-d", "-q", NULL};
	int status = child_run(child, loose, lock, err);
	return status == 0 ? pack_join(child, repository, lock, err) : status;
}

int pack_whole(struct child *child, const char *repository, int lock, struct err *err)
{
	const char *const repack[] = {"git", "-C", repository, "repack", "-A", "-d", "-q",
		"--unpack-unreachable=" GRACE, NULL};
	const char *const prune[] = {"git", "-C", repository, "prune", "--expire=" GRACE, NULL};
	int status = pack_bursts(child, repository, lock, err);
	if (status == 0)
		status = child_run(child, repack, lock, err);
	return status == 0 ? child_run(child, prune, lock, err) : status;
}

/* ---- how much is to be done ---- */

static int count_entry(
	void *data, const char *path, const char *name, bool is_folder, struct err *err)
{
	(void)path, (void)is_folder, (void)err;
	if (strlen(name) >= 38)
		++*(unsigned *)data;
	return 0;
}

static int count_folder(
	void *data, const char *path, const char *name, bool is_folder, struct err *err)
{
	(void)path, (void)err;
	if (is_folder && strlen(name) == 2)
		++*(unsigned *)data;
	return 0;
}

static int count_burst(
	void *data, const char *path, const char *name, bool is_folder, struct err *err)
{
	(void)path, (void)is_folder, (void)err;
	if (begins_with(name, "pack-" PACK_OF_BURST))
		++*(unsigned *)data;
	return 0;
}

/* Names are hashes: one folder of the 256 stands for all. */
unsigned pack_loose_nodes(const char *repository)
{
	char path[PATH_MAX];
	unsigned folders = 0, files = 0, bursts = 0;
	(void)snprintf(path, sizeof path, "%s/objects", repository);
	(void)tree_each(path, count_folder, &folders, NULL); /* 0 of what cannot be read */
	(void)snprintf(path, sizeof path, "%s/objects/17", repository);
	(void)tree_each(path, count_entry, &files, NULL);
	(void)snprintf(path, sizeof path, "%s/objects/pack", repository);
	(void)tree_each(path, count_burst, &bursts, NULL);
	unsigned nodes = files * FANOUT / OBJECTS_PER_NODE;
	return nodes == 0 && (folders > 0 || bursts > 0) ? 1 : nodes;
}
