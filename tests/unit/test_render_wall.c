/* Each attempt in a child of its own, since the wall never comes down. */
#include "tests/lib/test.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "frontend-adapter/render/render.h"

#define ALIVE 7 /* and it was as expected */

/* The wait status of a child that tries it behind the wall. */
static int behind(bool (*attempt)(void))
{
	int status = 0;
	pid_t child = fork();
	assert_true(child >= 0);
	if (child == 0) {
		struct err err;
		if (wall_up(&err) != 0)
			_exit(1);
		_exit(attempt() ? ALIVE : 2);
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	return status;
}

static void lives(bool (*attempt)(void))
{
	int status = behind(attempt);
	assert_true(WIFEXITED(status));
	assert_int_equal(WEXITSTATUS(status), ALIVE);
}

static void dies(bool (*attempt)(void))
{
	int status = behind(attempt);
	assert_true(WIFSIGNALED(status));
	assert_int_equal(WTERMSIG(status), SIGSYS);
}

static bool opens(void)
{
	return open("/etc/passwd", O_RDONLY | O_CLOEXEC) == -1 && errno == EACCES;
}

static bool writes_a_file(void)
{
	return open("/tmp/coppice-wall", O_WRONLY | O_CREAT | O_CLOEXEC, 0600) == -1 &&
	       errno == EACCES;
}

static bool connects(void)
{
	return socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0) >= 0;
}

static bool connects_locally(void)
{
	return socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0) >= 0;
}

static bool forks(void)
{
	return fork() >= 0;
}

static bool runs(void)
{
	char *argv[] = {"/bin/true", NULL}, *environment[] = {NULL};
	return execve(argv[0], argv, environment) == 0;
}

static bool signals(void)
{
	return kill(getppid(), 0) == 0;
}

static bool removes(void)
{
	return unlink("/tmp/coppice-wall") == 0;
}

static bool maps_code(void)
{
	void *page = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	return page != MAP_FAILED && mprotect(page, 4096, PROT_READ | PROT_EXEC) == -1 &&
	       errno == EACCES &&
	       mmap(NULL, 4096, PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) == MAP_FAILED &&
	       errno == EACCES;
}

static bool raises_limits(void)
{
	struct rlimit all = {RLIM_INFINITY, RLIM_INFINITY};
	return setrlimit(RLIMIT_CPU, &all) == -1 && errno == EACCES;
}

static void *thread(void *data)
{
	*(int *)data = 1;
	return NULL;
}

static bool computes(void)
{
	pthread_t t;
	int ran = 0;
	void *memory = calloc(1, 8 << 20);
	bool works = memory && pthread_create(&t, NULL, thread, &ran) == 0 &&
		     pthread_join(t, NULL) == 0 && ran == 1;
	free(memory);
	return works;
}

TEST(wall, files_are_refused)
{
	lives(opens);
	lives(writes_a_file);
}

TEST(wall, no_network)
{
	dies(connects);
	dies(connects_locally);
}

TEST(wall, no_other_process)
{
	dies(forks);
	dies(runs);
	dies(signals);
	dies(removes);
}

TEST(wall, no_new_code)
{
	lives(maps_code);
}

TEST(wall, limits_stay)
{
	lives(raises_limits);
}

TEST(wall, work_goes_on)
{
	lives(computes);
}

static bool has_limits(void)
{
	struct rlimit cpu, core;
	return getrlimit(RLIMIT_CPU, &cpu) == 0 && cpu.rlim_max <= 10 &&
	       getrlimit(RLIMIT_CORE, &core) == 0 && core.rlim_max == 0;
}

TEST(wall, limits_are_set)
{
	int status = 0;
	pid_t child = fork();
	assert_true(child >= 0);
	if (child == 0) {
		wall_limits();
		_exit(has_limits() ? ALIVE : 2);
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(WEXITSTATUS(status), ALIVE);
}

RUN(TEST_ROW(wall, files_are_refused), TEST_ROW(wall, no_network), TEST_ROW(wall, no_other_process),
	TEST_ROW(wall, no_new_code), TEST_ROW(wall, limits_stay), TEST_ROW(wall, work_goes_on),
	TEST_ROW(wall, limits_are_set))
