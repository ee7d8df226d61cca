/* A disk that fails at any one call, or is full from one call on, for the recorder's thread alone:
 * the calls of git, sqlite and ourselves are counted. Included by one file per program. */
#ifndef COPPICE_FAILING_DISK_H
#define COPPICE_FAILING_DISK_H

#include <dlfcn.h>
#include <errno.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/types.h>

#include "tests/lib/history_fixture.h"

/* Only the recorder's thread fails. */
static _Thread_local bool in_recorder;
static unsigned calls, fails_at;
static bool stays_full;
static bool kills;	  /* instead of failing */
static unsigned n_pruned; /* folders of objects that go under what is written */

static bool call_fails(void)
{
	if (!in_recorder || fails_at == 0)
		return false;
	calls++;
	if (calls != fails_at && !(stays_full && calls > fails_at))
		return false;
	if (kills)
		(void)kill(getpid(), SIGKILL);
	errno = ENOSPC;
	return true;
}

static void *real(const char *name)
{
	void *f = dlsym(RTLD_NEXT, name);
	if (!f)
		abort();
	return f;
}

ssize_t write(int fd, const void *data, size_t len)
{
	ssize_t (*f)(int, const void *, size_t) = real("write");
	struct stat st; /* the loop is woken by a write too */
	bool is_file = fstat(fd, &st) == 0 && S_ISREG(st.st_mode);
	return is_file && call_fails() ? -1 : f(fd, data, len);
}

ssize_t pwrite64(int fd, const void *data, size_t len, off64_t at)
{
	ssize_t (*f)(int, const void *, size_t, off64_t) = real("pwrite64");
	return call_fails() ? -1 : f(fd, data, len, at);
}

int fsync(int fd)
{
	int (*f)(int) = real("fsync");
	return call_fails() ? -1 : f(fd);
}

int fdatasync(int fd)
{
	int (*f)(int) = real("fdatasync");
	return call_fails() ? -1 : f(fd);
}

int syncfs(int fd)
{
	int (*f)(int) = real("syncfs");
	return call_fails() ? -1 : f(fd);
}

int rename(const char *from, const char *to)
{
	int (*f)(const char *, const char *) = real("rename");
	return call_fails() ? -1 : f(from, to);
}

/* As `git prune-packed` does where nothing lies in it. */
static void prune_folder_of(const char *object)
{
	char folder[512];
	const char *slash = strrchr(object, '/');
	if (!in_recorder || !strstr(object, "/objects/") || n_pruned == 0)
		return;
	(void)snprintf(folder, sizeof folder, "%.*s", (int)(slash - object), object);
	if (rmdir(folder) == 0)
		n_pruned--;
}

int link(const char *from, const char *to)
{
	int (*f)(const char *, const char *) = real("link");
	prune_folder_of(to); /* libgit2 puts an object in place so; a rename follows if it fails */
	return call_fails() ? -1 : f(from, to);
}

int mkdir(const char *path, mode_t mode)
{
	int (*f)(const char *, mode_t) = real("mkdir");
	return call_fails() ? -1 : f(path, mode);
}

int ftruncate64(int fd, off64_t len)
{
	int (*f)(int, off64_t) = real("ftruncate64");
	return call_fails() ? -1 : f(fd, len);
}

static int at_step(void *data, enum record_step step)
{
	(void)data;
	(void)step;
	in_recorder = true;
	return 0;
}

#endif
