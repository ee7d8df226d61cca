#include "gateway/base/child.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#define HELD_FD	 9 /* any that is not 0, 1, 2 */
#define NICE	 10
#define SAID_MAX 300

/* Whoever runs us, the repositories are ours. One thread: the other processors are the kernels'. */
static const char *const environment[] = {"PATH=/usr/local/bin:/usr/bin:/bin", "HOME=/nonexistent",
	"LC_ALL=C", "GIT_CONFIG_NOSYSTEM=1", "GIT_TERMINAL_PROMPT=0", "GIT_CONFIG_COUNT=4",
	"GIT_CONFIG_KEY_0=safe.directory", "GIT_CONFIG_VALUE_0=*",
	"GIT_CONFIG_KEY_1=core.hooksPath", "GIT_CONFIG_VALUE_1=/dev/null",
	"GIT_CONFIG_KEY_2=pack.threads", "GIT_CONFIG_VALUE_2=1", "GIT_CONFIG_KEY_3=gc.auto",
	"GIT_CONFIG_VALUE_3=0", NULL};

void child_init(struct child *c)
{
	*c = (struct child){0};
	(void)pthread_mutex_init(&c->lock, NULL); /* cannot fail */
}

void child_done(struct child *c)
{
	(void)pthread_mutex_destroy(&c->lock); /* nobody holds it */
}

/* What a child has open; -1: not. */
struct files {
	int input, said, held;
};

static int spawn(const char *const *argv, const struct files *f, pid_t *ret_pid)
{
	posix_spawn_file_actions_t files;
	posix_spawnattr_t attributes;
	sigset_t none, usual;
	int rc = posix_spawn_file_actions_init(&files);
	if (rc != 0)
		return rc;
	(void)posix_spawnattr_init(&attributes); /* these have nothing to fail at */
	(void)sigemptyset(&none);
	(void)sigemptyset(&usual);
	(void)sigaddset(&usual, SIGPIPE); /* which we ignore */
	(void)posix_spawnattr_setsigmask(&attributes, &none);
	(void)posix_spawnattr_setsigdefault(&attributes, &usual);
	(void)posix_spawnattr_setpgroup(&attributes, 0);
	(void)posix_spawnattr_setflags(&attributes,
		POSIX_SPAWN_SETPGROUP | POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
	if (f->input >= 0)
		rc = posix_spawn_file_actions_adddup2(&files, f->input, 0);
	else
		rc = posix_spawn_file_actions_addopen(&files, 0, "/dev/null", O_RDONLY, 0);
	if (rc == 0)
		rc = posix_spawn_file_actions_adddup2(&files, f->said, 1);
	if (rc == 0)
		rc = posix_spawn_file_actions_adddup2(&files, f->said, 2);
	if (rc == 0 && f->held >= 0)
		rc = posix_spawn_file_actions_adddup2(&files, f->held, HELD_FD);
	/* argv and environment are not written to; the prototype is older than const. */
	if (rc == 0)
		rc = posix_spawnp(ret_pid, argv[0], &files, &attributes,
			(char *const *)(uintptr_t)argv, (char *const *)(uintptr_t)environment);
	(void)posix_spawnattr_destroy(&attributes);
	(void)posix_spawn_file_actions_destroy(&files);
	return rc;
}

static int start(struct child *c, const char *const *argv, const struct files *files,
	pid_t *ret_pid, struct err *err)
{
	pthread_mutex_lock(&c->lock);
	int rc = c->stopped ? ECANCELED : spawn(argv, files, ret_pid);
	if (rc == 0)
		c->pid = *ret_pid;
	pthread_mutex_unlock(&c->lock);
	if (rc == ECANCELED)
		return err_set(err, E_UNAVAILABLE, "%s: everything ends", argv[0]);
	if (rc != 0)
		return err_set(err, E_IO, "%s cannot be started: %s", argv[0], strerror(rc));
	(void)setpriority(PRIO_PROCESS, (id_t)*ret_pid, NICE); /* as well as it goes */
	return 0;
}

/* What it said, on one line. */
static void read_said(int said, char ret_text[SAID_MAX])
{
	ssize_t n = pread(said, ret_text, SAID_MAX - 1, 0);
	ret_text[n > 0 ? n : 0] = '\0';
	for (char *at = ret_text; *at; at++)
		if ((unsigned char)*at < ' ')
			*at = ' ';
}

/* Its number is not given to another process before it was reaped, which is under the lock. */
static bool reap(struct child *c, pid_t pid, int *ret_status)
{
	siginfo_t info;
	while (waitid(P_PID, (id_t)pid, &info, WEXITED | WNOWAIT) != 0 && errno == EINTR)
		;
	pthread_mutex_lock(&c->lock);
	while (waitpid(pid, ret_status, 0) < 0 && errno == EINTR)
		;
	c->pid = 0;
	bool stopped = c->stopped;
	pthread_mutex_unlock(&c->lock);
	return stopped;
}

int child_run(struct child *c, const char *const *argv, int held_fd, struct err *err)
{
	return child_run_fed(c, argv, -1, held_fd, err);
}

int child_run_fed(
	struct child *c, const char *const *argv, int input_fd, int held_fd, struct err *err)
{
	char text[SAID_MAX];
	pid_t pid = 0;
	int how = 0, said = memfd_create("said", MFD_CLOEXEC);
	if (said < 0)
		return err_set(err, E_IO, "%s: %s", argv[0], strerror(errno));
	if (input_fd >= 0)
		(void)lseek(input_fd, 0, SEEK_SET); /* it is a file */
	const struct files files = {input_fd, said, held_fd};
	int status = start(c, argv, &files, &pid, err);
	if (status == 0) {
		bool stopped = reap(c, pid, &how);
		read_said(said, text);
		if (how != 0 && stopped)
			status = err_set(err, E_UNAVAILABLE, "%s: everything ends", argv[0]);
		else if (how != 0)
			status = err_set(err, E_IO, "%s: %s %d: %s", argv[0],
				WIFSIGNALED(how) ? "signal" : "exit code",
				WIFSIGNALED(how) ? WTERMSIG(how) : WEXITSTATUS(how), text);
	}
	(void)close(said); /* nothing is kept in it */
	return status;
}

void child_stop(struct child *c)
{
	pthread_mutex_lock(&c->lock);
	c->stopped = true;
	if (c->pid > 0)
		(void)kill(-c->pid, SIGTERM); /* it may have ended by itself */
	pthread_mutex_unlock(&c->lock);
}
