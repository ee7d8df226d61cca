#include "gateway/base/tree.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <unistd.h>

#include "gateway/base/file.h"

#define DEPTH_MAX 32

int tree_each(const char *folder,
	int (*visit)(
		void *data, const char *path, const char *name, bool is_folder, struct err *err),
	void *data, struct err *err)
{
	DIR *dir = opendir(folder);
	int status = 0;
	if (!dir && errno == ENOENT)
		return 0;
	if (!dir)
		return err_set(err, E_IO, "%s cannot be read: %s", folder, strerror(errno));
	for (struct dirent *d; status == 0 && (d = readdir(dir));) {
		char path[PATH_MAX];
		struct stat st;
		if (strcmp(d->d_name, ".") == 0 || strcmp(d->d_name, "..") == 0)
			continue;
		if (snprintf(path, sizeof path, "%s/%s", folder, d->d_name) >= (int)sizeof path ||
			lstat(path, &st) != 0)
			continue;
		status = visit(data, path, d->d_name, S_ISDIR(st.st_mode), err);
	}
	(void)closedir(dir); /* read only */
	return status;
}

/* ---- removing ---- */

static int remove_entry(
	void *data, const char *path, const char *name, bool is_folder, struct err *err)
{
	int depth = *(int *)data + 1, status = 0;
	(void)name;
	if (depth > DEPTH_MAX)
		return err_set(err, E_IO, "%s lies too deep", path);
	if (is_folder)
		status = tree_each(path, remove_entry, &depth, err);
	if (status == 0 && (is_folder ? rmdir(path) : unlink(path)) != 0 && errno != ENOENT)
		status = err_set(err, E_IO, "%s cannot be removed: %s", path, strerror(errno));
	return status;
}

int tree_remove(const char *folder, struct err *err)
{
	return remove_entry(&(int){0}, folder, "", true, err);
}

/* ---- measuring ---- */

struct sum {
	uint64_t bytes;
	int depth;
};

static int add_bytes(
	void *data, const char *path, const char *name, bool is_folder, struct err *err)
{
	struct sum *sum = data;
	struct stat st;
	int status = 0;
	(void)name;
	if (lstat(path, &st) == 0)
		sum->bytes += (uint64_t)st.st_blocks * 512;
	if (is_folder && sum->depth < DEPTH_MAX) {
		sum->depth++;
		status = tree_each(path, add_bytes, sum, err);
		sum->depth--;
	}
	return status;
}

int tree_bytes(const char *folder, uint64_t *ret_bytes, struct err *err)
{
	struct sum sum = {0};
	int status = tree_each(folder, add_bytes, &sum, err);
	if (status == 0)
		*ret_bytes = sum.bytes;
	return status;
}

/* ---- copying ---- */

static int fail(const char *path, const char *what, struct err *err)
{
	return err_set(err, errno == ENOENT ? E_NOT_FOUND : E_IO, "%s cannot be %s: %s", path, what,
		strerror(errno));
}

static int copy_bytes(int in, int out, const char *to, struct err *err)
{
	for (ssize_t n = 1; n != 0;) {
		n = sendfile(out, in, NULL, 1u << 24);
		if (n < 0 && errno != EINTR)
			return fail(to, "written", err);
	}
	return 0;
}

int tree_copy_file(const char *from, const char *to, struct err *err)
{
	int in = open(from, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
	if (in < 0)
		return fail(from, "read", err);
	int out = open(to, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	int status = out < 0 ? fail(to, "made", err) : copy_bytes(in, out, to, err);
	if (out >= 0 && close(out) != 0 && status == 0)
		status = fail(to, "written", err);
	(void)close(in); /* read only */
	return status;
}

struct copying {
	const char *to;
	bool links;
	bool (*skips)(const char *name);
	int depth;
};

static int copy_entry(
	void *data, const char *path, const char *name, bool is_folder, struct err *err)
{
	struct copying c = *(const struct copying *)data;
	char to[PATH_MAX];
	if (c.skips && c.skips(name))
		return 0;
	if (++c.depth > DEPTH_MAX || snprintf(to, sizeof to, "%s/%s", c.to, name) >= (int)sizeof to)
		return err_set(err, E_IO, "%s lies too deep", path);
	if (is_folder) {
		c.to = to;
		int status = folders_make(to, err);
		return status == 0 ? tree_each(path, copy_entry, &c, err) : status;
	}
	if (c.links)
		return link(path, to) == 0 ? 0 : fail(path, "linked", err);
	int status = tree_copy_file(path, to, err);
	return status == E_NOT_FOUND ? 0 : status; /* it went meanwhile */
}

int tree_copy(const char *from, const char *to, bool links, bool (*skips)(const char *name),
	struct err *err)
{
	struct copying c = {.to = to, .links = links, .skips = skips};
	int status = folders_make(to, err);
	return status == 0 ? tree_each(from, copy_entry, &c, err) : status;
}
