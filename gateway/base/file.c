#include "gateway/base/file.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static int make_one(const char *folder, struct err *err)
{
	if (mkdir(folder, 0700) == 0 || errno == EEXIST)
		return 0;
	return err_set(err, E_IO, "folder %s cannot be made: %s", folder, strerror(errno));
}

int folders_make(const char *path, struct err *err)
{
	char folder[PATH_MAX];
	if (!*path || !copy_text(folder, sizeof folder, path, strlen(path)))
		return err_set(err, E_INVALID, "the path '%.100s' is empty or too long", path);
	for (char *slash = strchr(folder + 1, '/'); slash; slash = strchr(slash + 1, '/')) {
		*slash = '\0';
		int status = make_one(folder, err);
		if (status != 0)
			return status;
		*slash = '/';
	}
	int status = make_one(folder, err);
	struct stat st;
	if (status == 0 && (stat(folder, &st) != 0 || !S_ISDIR(st.st_mode)))
		status = err_set(err, E_IO, "%s is not a folder", folder);
	return status;
}

int file_folder_make(const char *path, struct err *err)
{
	char folder[PATH_MAX];
	const char *slash = strrchr(path, '/');
	if (!slash || slash == path)
		return 0;
	if (!copy_text(folder, sizeof folder, path, (size_t)(slash - path)))
		return err_set(err, E_INVALID, "the path %.100s... is too long", path);
	return folders_make(folder, err);
}

static int write_all(int fd, const char *path, const uint8_t *data, size_t len, struct err *err)
{
	while (len > 0) {
		ssize_t n = write(fd, data, len);
		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return err_set(
				err, E_IO, "%s cannot be written: %s", path, strerror(errno));
		data += n;
		len -= (size_t)n;
	}
	return 0;
}

int file_write(const char *path, const void *data, size_t len, struct err *err)
{
	char temporary[PATH_MAX];
	int n = snprintf(temporary, sizeof temporary, "%s.XXXXXX", path);
	if (n < 0 || (size_t)n >= sizeof temporary)
		return err_set(err, E_INVALID, "the path %.100s... is too long", path);
	int fd = mkostemp(temporary, O_CLOEXEC); /* 0600 */
	if (fd < 0)
		return err_set(err, E_IO, "%s cannot be written: %s", path, strerror(errno));
	int status = write_all(fd, path, data, len, err);
	close(fd);
	if (status == 0 && rename(temporary, path) != 0)
		status = err_set(err, E_IO, "%s cannot be replaced: %s", path, strerror(errno));
	if (status != 0)
		(void)unlink(temporary); /* best effort: the first fault is the one that is told */
	return status;
}

int file_read(const char *path, struct buf *ret, struct err *err)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return err_set(
			err, errno == ENOENT ? E_NOT_FOUND : E_IO, "%s: %s", path, strerror(errno));
	uint8_t part[4096];
	ssize_t n;
	while ((n = read(fd, part, sizeof part)) > 0 || (n < 0 && errno == EINTR))
		if (n > 0 && buf_add(ret, part, (size_t)n) != 0)
			break;
	int status = n < 0 ? err_set(err, E_IO, "%s: %s", path, strerror(errno))
			   : buf_check(ret, path, err);
	close(fd);
	return status;
}
