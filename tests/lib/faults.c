#include "tests/lib/faults.h"

#include <dlfcn.h>
#include <errno.h>
#include <execinfo.h>
#include <fcntl.h>
#include <libwebsockets.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

#define SITES_MAX 8192
#define FRAMES	  10
#define SKIPPED	  3 /* of our own */

struct site {
	uint64_t hash;
	bool was_target;
};

static struct {
	pthread_mutex_t lock;
	enum faults_kind kind;
	enum faults_depth depth;
	bool armed, fired, first;
	struct site site[SITES_MAX];
	size_t n, target, calls, n_fired;
	void *frame[FRAMES];
	int n_frames;
	const char *name;
} sweep = {.lock = PTHREAD_MUTEX_INITIALIZER};

static _Thread_local unsigned own; /* > 0: not to be counted */

void faults_own(bool begins)
{
	own = begins ? own + 1 : own - 1;
}

static bool wanted(size_t i)
{
	return sweep.depth != FAULTS_SOME || i % 8 == 3;
}

void faults_sweep(enum faults_kind kind, enum faults_depth depth)
{
	void *frame[FRAMES];
	(void)backtrace(frame, FRAMES); /* loads what it needs */
	sweep.kind = kind;
	sweep.depth = depth;
	sweep.n = sweep.target = sweep.n_fired = 0;
	sweep.first = true;
}

/* The first run has none, so that all is seen; each later one may add what only a failure calls. */
bool faults_next(void)
{
	sweep.fired = false;
	sweep.calls = 0;
	sweep.n_frames = 0;
	if (sweep.first) {
		sweep.first = false;
		sweep.target = SIZE_MAX;
		return sweep.armed = true;
	}
	size_t next = sweep.target == SIZE_MAX ? 0 : sweep.target + 1;
	while (sweep.depth != FAULTS_EACH && next < sweep.n && !wanted(next))
		next++;
	sweep.target = next;
	bool more =
		sweep.depth == FAULTS_EACH ? next == 0 || sweep.n_fired == next : next < sweep.n;
	return sweep.armed = more;
}

bool faults_disarm(void)
{
	pthread_mutex_lock(&sweep.lock);
	bool fired = sweep.fired;
	if (fired && getenv("FAULTS_TELL"))
		faults_tell("failed");
	sweep.armed = false;
	sweep.n_fired += fired;
	pthread_mutex_unlock(&sweep.lock);
	return fired;
}

size_t faults_fired(void)
{
	return sweep.n_fired;
}

const char *faults_name(void)
{
	return sweep.fired ? sweep.name : NULL;
}

void faults_tell(const char *what)
{
	fprintf(stderr, "%s: fault %zu, %s\n", what, sweep.target,
		sweep.name ? sweep.name : "none");
	if (sweep.n_frames > 0)
		backtrace_symbols_fd(sweep.frame, sweep.n_frames, STDERR_FILENO);
}

/* ---- which one is it? ---- */

static size_t find(void *const *frame, int n)
{
	uint64_t hash = 0xcbf29ce484222325u;
	for (int i = SKIPPED; i < n; i++)
		hash = (hash ^ (uintptr_t)frame[i]) * 0x100000001b3u;
	for (size_t i = 0; i < sweep.n; i++)
		if (sweep.site[i].hash == hash)
			return i;
	if (sweep.n == SITES_MAX)
		abort(); /* make it larger */
	sweep.site[sweep.n].hash = hash;
	return sweep.n++;
}

static bool hit(const char *name)
{
	void *frame[FRAMES];
	int n = backtrace(frame, FRAMES);
	pthread_mutex_lock(&sweep.lock);
	size_t which = sweep.depth == FAULTS_EACH ? sweep.calls++ : find(frame, n);
	bool fires = sweep.armed && !sweep.fired && which == sweep.target;
	if (fires) {
		sweep.fired = true;
		sweep.name = name;
		memcpy(sweep.frame, frame, sizeof frame);
		sweep.n_frames = n;
	}
	pthread_mutex_unlock(&sweep.lock);
	return fires;
}

__attribute__((noinline)) static bool fails(enum faults_kind kind, int error, const char *name)
{
	if (!sweep.armed || own > 0 || sweep.kind != kind)
		return false;
	own++;
	bool fires = hit(name);
	own--;
	if (fires)
		errno = error;
	return fires;
}

/* ---- memory ---- */

#define NO_MEMORY() fails(FAULTS_MEMORY, ENOMEM, __func__)

void *faults_malloc(size_t size);
void *faults_malloc(size_t size)
{
	return NO_MEMORY() ? NULL : malloc(size);
}

void *faults_calloc(size_t n, size_t size);
void *faults_calloc(size_t n, size_t size)
{
	return NO_MEMORY() ? NULL : calloc(n, size);
}

void *faults_realloc(void *p, size_t size);
void *faults_realloc(void *p, size_t size)
{
	return NO_MEMORY() ? NULL : realloc(p, size);
}

char *faults_strdup(const char *s);
char *faults_strdup(const char *s)
{
	return NO_MEMORY() ? NULL : strdup(s);
}

char *faults_strndup(const char *s, size_t n);
char *faults_strndup(const char *s, size_t n)
{
	return NO_MEMORY() ? NULL : strndup(s, n);
}

__attribute__((format(printf, 2, 3))) int faults_asprintf(char **ret, const char *format, ...);
__attribute__((format(printf, 2, 3))) int faults_asprintf(char **ret, const char *format, ...)
{
	va_list args;
	va_start(args, format);
	int n = NO_MEMORY() ? -1 : vasprintf(ret, format, args);
	va_end(args);
	return n;
}

/* libwebsockets' own start is left out: one that fails half-way leaves handles of its own open in
 * our loop for good. The gateway then ends by the bound of its end. */
struct lws_context *faults_lws_create_context(const struct lws_context_creation_info *info);
struct lws_context *faults_lws_create_context(const struct lws_context_creation_info *info)
{
	faults_own(true);
	struct lws_context *context = lws_create_context(info);
	faults_own(false);
	return context;
}

/* ---- calls: they take the place of the C library's, for libraries too ---- */

static void *real(const char *name)
{
	void *f = dlsym(RTLD_NEXT, name);
	if (!f)
		abort();
	return f;
}

#define NO_CALL(error) fails(FAULTS_CALLS, error, __func__)

/* Calls the C library's function of this name, or fails. */
#define CALL(error, result, types, ...)                                                            \
	do {                                                                                       \
		result(*f) types = (result(*) types)real(__func__);                                \
		return NO_CALL(error) ? -1 : f(__VA_ARGS__);                                       \
	} while (0)

static mode_t mode_of(int flags, va_list args)
{
	return flags & (O_CREAT | O_TMPFILE) ? va_arg(args, mode_t) : 0;
}

#define OPEN(name)                                                                                 \
	int name(const char *path, int flags, ...)                                                 \
	{                                                                                          \
		va_list args;                                                                      \
		va_start(args, flags);                                                             \
		mode_t mode = mode_of(flags, args);                                                \
		va_end(args);                                                                      \
		CALL(EMFILE, int, (const char *, int, ...), path, flags, mode);                    \
	}
OPEN(open)
OPEN(open64)

int mkostemp(char *path, int flags)
{
	CALL(EMFILE, int, (char *, int), path, flags);
}

static bool is_file(int fd)
{
	struct stat st;
	return fstat(fd, &st) == 0 && S_ISREG(st.st_mode);
}

/* Of a socket or an eventfd it is another thing. */
ssize_t write(int fd, const void *data, size_t len)
{
	ssize_t (*f)(int, const void *, size_t) =
		(ssize_t(*)(int, const void *, size_t))real("write");
	return is_file(fd) && NO_CALL(ENOSPC) ? -1 : f(fd, data, len);
}

ssize_t writev(int fd, const struct iovec *part, int n)
{
	ssize_t (*f)(int, const struct iovec *, int) =
		(ssize_t(*)(int, const struct iovec *, int))real("writev");
	return is_file(fd) && NO_CALL(ENOSPC) ? -1 : f(fd, part, n);
}

ssize_t pwrite(int fd, const void *data, size_t len, off_t at)
{
	CALL(ENOSPC, ssize_t, (int, const void *, size_t, off_t), fd, data, len, at);
}

ssize_t pwrite64(int fd, const void *data, size_t len, off64_t at)
{
	CALL(ENOSPC, ssize_t, (int, const void *, size_t, off64_t), fd, data, len, at);
}

ssize_t pwritev(int fd, const struct iovec *part, int n, off_t at)
{
	CALL(ENOSPC, ssize_t, (int, const struct iovec *, int, off_t), fd, part, n, at);
}

ssize_t pwritev64(int fd, const struct iovec *part, int n, off64_t at)
{
	CALL(ENOSPC, ssize_t, (int, const struct iovec *, int, off64_t), fd, part, n, at);
}

int ftruncate(int fd, off_t len)
{
	CALL(ENOSPC, int, (int, off_t), fd, len);
}

int ftruncate64(int fd, off64_t len)
{
	CALL(ENOSPC, int, (int, off64_t), fd, len);
}

int fsync(int fd)
{
	CALL(EIO, int, (int), fd);
}

int fdatasync(int fd)
{
	CALL(EIO, int, (int), fd);
}

int syncfs(int fd)
{
	CALL(EIO, int, (int), fd);
}

int mkdir(const char *path, mode_t mode)
{
	CALL(ENOSPC, int, (const char *, mode_t), path, mode);
}

int rename(const char *from, const char *to)
{
	CALL(ENOSPC, int, (const char *, const char *), from, to);
}

int link(const char *from, const char *to)
{
	CALL(ENOSPC, int, (const char *, const char *), from, to);
}

int socket(int domain, int type, int protocol)
{
	CALL(EMFILE, int, (int, int, int), domain, type, protocol);
}

int socketpair(int domain, int type, int protocol, int ret[2])
{
	CALL(EMFILE, int, (int, int, int, int *), domain, type, protocol, ret);
}

int bind(int fd, const struct sockaddr *at, socklen_t len)
{
	CALL(EADDRINUSE, int, (int, const struct sockaddr *, socklen_t), fd, at, len);
}

int connect(int fd, const struct sockaddr *to, socklen_t len)
{
	CALL(ECONNREFUSED, int, (int, const struct sockaddr *, socklen_t), fd, to, len);
}

int accept(int fd, struct sockaddr *from, socklen_t *len)
{
	CALL(EMFILE, int, (int, struct sockaddr *, socklen_t *), fd, from, len);
}

int accept4(int fd, struct sockaddr *from, socklen_t *len, int flags)
{
	CALL(EMFILE, int, (int, struct sockaddr *, socklen_t *, int), fd, from, len, flags);
}

int pipe2(int ret[2], int flags)
{
	CALL(EMFILE, int, (int *, int), ret, flags);
}

int eventfd(unsigned n, int flags)
{
	CALL(EMFILE, int, (unsigned, int), n, flags);
}

int epoll_create1(int flags)
{
	CALL(EMFILE, int, (int), flags);
}
