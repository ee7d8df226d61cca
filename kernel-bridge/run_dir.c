#include "kernel-bridge/run_dir.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "gateway/base/crypto.h"

#define LONGEST_SOCKET "/01234567/s/control-4294967295"
#define NAME_TRIES     8

_Static_assert(RUN_SOCKET_PATH_MAX == sizeof(((struct sockaddr_un *)0)->sun_path),
	"a socket path is as long as the system allows");

static void close_fd(int *fd)
{
	if (*fd >= 0)
		(void)close(*fd); /* nothing was written through it */
}

static void close_dir(DIR **dir)
{
	if (*dir)
		(void)closedir(*dir); /* it was only read */
}

static int make_folder(const char *path, mode_t mode, struct err *err)
{
	if (mkdir(path, mode) < 0 && errno != EEXIST)
		return err_set(err, E_IO, "folder %s cannot be made: %s", path, strerror(errno));
	return 0;
}

/* Folders above the last one are for everybody to pass, as mkdir -p makes them. */
static int make_parents(const char *path, struct err *err)
{
	char part[RUN_SOCKET_PATH_MAX];
	for (const char *at = strchr(path + 1, '/'); at; at = strchr(at + 1, '/')) {
		if (!copy_text(part, sizeof(part), path, (size_t)(at - path)))
			return err_set(err, E_INVALID, "run folder %s: path too long", path);
		int rc = make_folder(part, 0755, err);
		if (rc < 0)
			return rc;
	}
	return 0;
}

static int lock_folder(const char *path, int *ret_fd, struct err *err)
{
	AUTO(close_fd) int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (fd < 0)
		return err_set(err, E_IO, "run folder %s: %s", path, strerror(errno));
	if (flock(fd, LOCK_EX | LOCK_NB) < 0)
		return err_set(err, E_CONFLICT,
			"run folder %s is in use by another gateway: end that one, or give this "
			"one folders of its own (--run-dir and --data-dir)",
			path);
	*ret_fd = fd;
	fd = -1;
	return 0;
}

int run_dir_open(const char *path, struct run_dir *ret, struct err *err)
{
	if (path[0] != '/')
		return err_set(err, E_INVALID, "run folder '%s' is not an absolute path", path);
	int rc = make_parents(path, err);
	if (rc == 0)
		rc = make_folder(path, 0700, err);
	if (rc < 0)
		return rc;
	AUTO(freep) char *real = realpath(path, NULL);
	if (!real)
		return err_set(err, E_IO, "run folder %s: %s", path, strerror(errno));
	if (strlen(real) + sizeof(LONGEST_SOCKET) > RUN_SOCKET_PATH_MAX)
		return err_set(err, E_INVALID,
			"run folder %s: longer than %zu characters, too long for names of sockets",
			real, RUN_SOCKET_PATH_MAX - sizeof(LONGEST_SOCKET));
	rc = lock_folder(real, &ret->lock, err);
	if (rc == 0)
		(void)copy_text(ret->path, sizeof(ret->path), real, strlen(real)); /* it fits */
	return rc;
}

void run_dir_close(struct run_dir *d)
{
	close_fd(&d->lock);
	d->lock = -1;
}

/* Files of a folder that is ours: nothing in it was made by a guest. Without keep all of them go.
 */
static void remove_files(
	int parent, const char *name, bool (*keep)(void *data, const char *name), void *data)
{
	int fd = openat(parent, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (fd < 0)
		return;
	AUTO(close_dir) DIR *dir = fdopendir(fd);
	if (!dir) {
		(void)close(fd); /* nothing was written through it */
		return;
	}
	struct dirent *e;
	while ((e = readdir(dir)))
		/* What stays makes the removal of the folder fail, which the sweep tries again. */
		if (!keep || !keep(data, e->d_name))
			(void)unlinkat(fd, e->d_name, 0);
}

static void remove_slot_folder(int parent, const char *name)
{
	AUTO(close_fd)
	int fd = openat(parent, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (fd < 0)
		return;
	remove_files(fd, "s", NULL, NULL);
	/* A folder that stays is found by the next sweep. */
	(void)unlinkat(fd, "s", AT_REMOVEDIR);
	(void)unlinkat(parent, name, AT_REMOVEDIR);
}

static bool is_slot_name(const char *name)
{
	return strlen(name) == RUN_SLOT_NAME_SIZE - 1 &&
	       strspn(name, "0123456789abcdef") == RUN_SLOT_NAME_SIZE - 1;
}

void run_dir_sweep(const struct run_dir *d, bool (*keep)(void *data, const char *name), void *data)
{
	AUTO(close_dir) DIR *dir = opendir(d->path);
	struct dirent *e;
	while (dir && (e = readdir(dir)))
		if (is_slot_name(e->d_name) && !keep(data, e->d_name))
			remove_slot_folder(dirfd(dir), e->d_name);
}

/* run_dir_open has seen to it that both fit. */
static void set_paths(const struct run_dir *d, struct run_slot *s)
{
	(void)snprintf(s->folder, sizeof(s->folder), "%.*s/%s",
		(int)(sizeof(s->folder) - sizeof(LONGEST_SOCKET)), d->path, s->name);
	(void)snprintf(s->sockets, sizeof(s->sockets), "%.*s/s",
		(int)(sizeof(s->sockets) - sizeof("/s")), s->folder);
}

int run_slot_open(const struct run_dir *d, const char *name, struct run_slot *ret, struct err *err)
{
	struct run_slot s = {0};
	struct stat st;
	if (!is_slot_name(name) || !copy_text(s.name, sizeof(s.name), name, strlen(name)))
		return err_set(err, E_INVALID, "'%.64s' is no name of a slot", name);
	set_paths(d, &s);
	if (lstat(s.sockets, &st) < 0 || !S_ISDIR(st.st_mode))
		return err_set(err, E_NOT_FOUND, "folder %s is gone", s.sockets);
	*ret = s;
	return 0;
}

int run_slot_make(const struct run_dir *d, struct run_slot *ret, struct err *err)
{
	struct run_slot s = {0};
	for (int i = 0; i < NAME_TRIES; i++) {
		crypto_random_hex(s.name, (RUN_SLOT_NAME_SIZE - 1) / 2);
		set_paths(d, &s);
		if (mkdir(s.folder, 0700) == 0)
			break;
		if (errno != EEXIST || i == NAME_TRIES - 1)
			return err_set(err, E_IO, "folder %s cannot be made: %s", s.folder,
				strerror(errno));
	}
	/* The umask may have taken what the guest needs to pass. */
	if (mkdir(s.sockets, 0755) < 0 || chmod(s.sockets, 0755) < 0) {
		(void)err_set(
			err, E_IO, "folder %s cannot be made: %s", s.sockets, strerror(errno));
		run_slot_remove(&s);
		return E_IO;
	}
	*ret = s;
	return 0;
}

void run_slot_remove(const struct run_slot *s)
{
	AUTO(close_fd) int parent = -1;
	char path[RUN_SOCKET_PATH_MAX];
	const char *slash = strrchr(s->folder, '/');
	if (!slash || !copy_text(path, sizeof(path), s->folder, (size_t)(slash - s->folder)))
		return;
	parent = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (parent >= 0)
		remove_slot_folder(parent, slash + 1);
}

static int socket_path(
	const struct run_slot *s, const char *name, struct sockaddr_un *ret, struct err *err)
{
	memset(ret, 0, sizeof(*ret));
	ret->sun_family = AF_UNIX;
	int len = snprintf(ret->sun_path, sizeof(ret->sun_path), "%s/%s", s->sockets, name);
	if (len < 0 || (size_t)len >= sizeof(ret->sun_path))
		return err_set(err, E_INVALID, "socket name %s/%s is too long", s->sockets, name);
	return 0;
}

int run_slot_listen(const struct run_slot *s, const char *name, int type, mode_t mode, int *ret_fd,
	struct err *err)
{
	struct sockaddr_un address;
	int rc = socket_path(s, name, &address, err);
	if (rc < 0)
		return rc;
	AUTO(close_fd) int fd = socket(AF_UNIX, type | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return err_set(err, E_IO, "socket %s: %s", address.sun_path, strerror(errno));
	if (bind(fd, (struct sockaddr *)&address, sizeof(address)) < 0)
		return err_set(err, errno == EADDRINUSE ? E_CONFLICT : E_IO, "socket %s: %s",
			address.sun_path, strerror(errno));
	if (chmod(address.sun_path, mode) < 0 || listen(fd, RUN_BACKLOG) < 0) {
		(void)err_set(err, E_IO, "socket %s: %s", address.sun_path, strerror(errno));
		run_slot_unlink(s, name);
		return E_IO;
	}
	*ret_fd = fd;
	fd = -1;
	return 0;
}

void run_slot_unlink(const struct run_slot *s, const char *name)
{
	struct sockaddr_un address;
	if (socket_path(s, name, &address, NULL) == 0)
		(void)unlink(address.sun_path); /* gone already is as good */
}

void run_slot_clear(
	const struct run_slot *s, bool (*keep)(void *data, const char *name), void *data)
{
	AUTO(close_fd) int fd = open(s->folder, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (fd >= 0)
		remove_files(fd, "s", keep, data);
}

int run_slot_write(const struct run_slot *s, const char *name, const char *text, struct err *err)
{
	struct sockaddr_un address;
	size_t len = strlen(text);
	int rc = socket_path(s, name, &address, err);
	if (rc < 0)
		return rc;
	AUTO(close_fd)
	int fd =
		open(address.sun_path, O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0644);
	if (fd < 0 || fchmod(fd, 0644) < 0 || write(fd, text, len) != (ssize_t)len)
		return err_set(err, E_IO, "file %s: %s", address.sun_path, strerror(errno));
	return 0;
}
