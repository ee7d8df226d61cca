#include "gateway/base/child.h"

#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "tests/lib/test.h"

static int run(struct child *c, const char *script, int held_fd, struct err *err)
{
	const char *const argv[] = {"sh", "-c", script, NULL};
	return child_run(c, argv, held_fd, err);
}

TEST(child, what_it_says_is_told_when_it_fails)
{
	struct child c;
	struct err err;
	child_init(&c);
	assert_int_equal(run(&c, "echo fine", -1, &err), 0);
	assert_int_equal(run(&c, "echo 'one\ntwo' >&2; exit 3", -1, &err), E_IO);
	assert_string_equal(err.text, "sh: exit code 3: one two ");
	assert_int_equal(run(&c, "kill -9 $$", -1, &err), E_IO);
	assert_string_equal(err.text, "sh: signal 9: ");
	const char *const none[] = {"no-such-program", NULL};
	assert_int_equal(child_run(&c, none, -1, &err), E_IO);
	child_done(&c);
}

TEST(child, has_nothing_of_ours)
{
	struct child c;
	struct err err;
	child_init(&c);
	int fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
	assert_true(fd >= 0);
	assert_int_equal(setenv("GIT_DIR", "/elsewhere", 1), 0);
	(void)signal(SIGPIPE, SIG_IGN);
	assert_int_equal(run(&c,
				 "test -z \"$GIT_DIR\" && test $HOME = /nonexistent &&"
				 " test -e /proc/self/fd/9 && kill -PIPE $$; exit 7",
				 fd, &err),
		E_IO);
	assert_string_equal(err.text, "sh: signal 13: ");
	assert_int_equal(unsetenv("GIT_DIR"), 0);
	assert_int_equal(close(fd), 0);
	child_done(&c);
}

TEST(child, reads_what_it_is_given)
{
	struct child c;
	struct err err;
	const char *const argv[] = {"sh", "-c", "cat >&2; exit 1", NULL};
	child_init(&c);
	int fd = memfd_create("given", MFD_CLOEXEC);
	assert_true(fd >= 0);
	assert_int_equal(write(fd, "one", 3), 3);
	for (int round = 0; round < 2; round++) { /* from its beginning each time */
		assert_int_equal(child_run_fed(&c, argv, fd, -1, &err), E_IO);
		assert_string_equal(err.text, "sh: exit code 1: one");
	}
	assert_int_equal(child_run(&c, argv, -1, &err), E_IO);
	assert_string_equal(err.text, "sh: exit code 1: ");
	assert_int_equal(close(fd), 0);
	child_done(&c);
}

static void *stop_it(void *data)
{
	struct child *c = data;
	bool runs = false;
	while (!runs) {
		pthread_mutex_lock(&c->lock);
		runs = c->pid > 0;
		pthread_mutex_unlock(&c->lock);
	}
	child_stop(c);
	return NULL;
}

TEST(child, is_stopped_with_what_it_began)
{
	struct child c;
	struct err err;
	pthread_t thread;
	child_init(&c);
	assert_int_equal(pthread_create(&thread, NULL, stop_it, &c), 0);
	assert_int_equal(run(&c, "sleep 1000 & sleep 1000", -1, &err), E_UNAVAILABLE);
	assert_int_equal(pthread_join(thread, NULL), 0);
	assert_int_equal(run(&c, "true", -1, &err), E_UNAVAILABLE);
	child_done(&c);
}

RUN(TEST_ROW(child, what_it_says_is_told_when_it_fails), TEST_ROW(child, has_nothing_of_ours),
	TEST_ROW(child, reads_what_it_is_given), TEST_ROW(child, is_stopped_with_what_it_began))
