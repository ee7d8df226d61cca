/* A gateway that is killed, and the next one over what it left. Included by one file per program.
 */
#ifndef COPPICE_SURVIVE_FIXTURE_H
#define COPPICE_SURVIVE_FIXTURE_H

#include <fcntl.h>
#include <sys/stat.h>

#include "gateway/spine/owners.h"
#include "tests/lib/spine_fixture.h"

static inline struct fixture *mortal(void)
{
	struct fixture *fx = fixture_new();
	fake_bridge_survive(fx->gw.bridge);
	assert_int_equal(fixture_start(fx), 0);
	fake_kernel_ready(fx->kernel);
	return fx;
}

static inline void copy_file(const char *from, const char *to)
{
	static char block[1 << 16];
	int in = open(from, O_RDONLY | O_CLOEXEC);
	int out = open(to, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	assert_true(in >= 0 && out >= 0);
	for (ssize_t n; (n = read(in, block, sizeof block)) > 0;)
		assert_int_equal(write(out, block, (size_t)n), n);
	assert_int_equal(close(in) | close(out), 0);
}

static inline void copy_folder(const char *from, const char *to)
{
	char a[512], b[512];
	DIR *dir = opendir(from);
	assert_non_null(dir);
	(void)mkdir(to, 0700); /* it may be there */
	for (struct dirent *d; (d = readdir(dir));) {
		struct stat st;
		(void)snprintf(a, sizeof a, "%s/%s", from, d->d_name);
		(void)snprintf(b, sizeof b, "%s/%s", to, d->d_name);
		assert_int_equal(stat(a, &st), 0);
		if (d->d_name[0] == '.')
			continue;
		if (S_ISDIR(st.st_mode))
			copy_folder(a, b);
		else
			copy_file(a, b);
	}
	closedir(dir);
}

static inline struct owners *make_owners(const struct fixture *fx)
{
	char path[128];
	struct owners *owners;
	static const char rows[] = "[token ada]\nsecret = 0123456789abcdef\nscopes = read run\n";
	(void)snprintf(path, sizeof path, "%s/tokens", fx->folder);
	int fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
	assert_int_equal(write(fd, rows, sizeof rows - 1), sizeof rows - 1);
	assert_int_equal(close(fd), 0);
	assert_int_equal(owners_open(path, &owners, NULL), 0);
	assert_int_equal(unlink(path), 0);
	return owners;
}

/* The next gateway over a copy of the data folder as it is now. lost: its kernel is gone by then.
 */
static inline struct fixture *next_gateway(const struct fixture *fx, const char *id, bool lost)
{
	struct fixture *next = fixture_new();
	next->gw.config.auto_restart = fx->gw.config.auto_restart;
	next->gw.config.journal_memory = fx->gw.config.journal_memory;
	next->gw.config.journal_disk = fx->gw.config.journal_disk;
	next->gw.config.time_limit_standard = fx->gw.config.time_limit_standard;
	fake_clock_advance(
		next->gw.clock, clock_now_ms(fx->gw.clock) - clock_now_ms(next->gw.clock));
	copy_folder(fx->folder, next->folder);
	next->gw.owners = make_owners(next);
	fake_bridge_survive(next->gw.bridge);
	if (fx->gw.histories)
		next->gw.histories = fake_histories_new();
	if (lost)
		assert_true(fault_arm(fake_bridge_fault(next->gw.bridge), 1));
	assert_int_equal(kernels_adopt(next->gw.kernels, NULL), 0);
	assert_int_equal(kernels_find(next->gw.kernels, owners_next(next->gw.owners, NULL), id,
				 &next->desk, NULL),
		0);
	next->kernel = fake_kernel(next->gw.bridge, 0);
	return next;
}

/* With what the folder and the mapped file hold at this moment. */
static inline struct fixture *after_a_kill(const struct fixture *fx)
{
	return next_gateway(fx, desk_id(fx->desk), false);
}

static inline void nothing(void *data, const struct err *err)
{
	(void)data, (void)err;
}

static inline void replay_is_over(struct fixture *fx)
{
	fake_kernel_turn(fx->kernel);
	settle(fx);
}

static inline void next_free(struct fixture *next)
{
	struct owners *owners = next->gw.owners;
	fixture_free(next);
	owners_free(owners);
}

/* A page has its answer, asks all the same, and does so before the next gateway knows what the
 * kernel kept: it gets its answer once more, and nothing is run again. */
static inline void sent_again_too_early(struct fixture *fx)
{
	struct page *p = page_open(fx, "s1");
	advance(fx, 110);
	execute(p, "a");
	struct jmsg *a = kernel_takes(fx, "a"), *kept[2];
	kept[0] = fake_kernel_says(fx->kernel, CHANNEL_SHELL, "execute_reply", a, REPLY_OK);
	kept[1] = fake_kernel_says(
		fx->kernel, CHANNEL_IOPUB, "status", a, "{\"execution_state\":\"idle\"}");
	page_pull(p);
	client_wrote(p->client, 0); /* it has its answer, and asks all the same */
	struct fixture *next = after_a_kill(fx);
	struct page *q = page_open(next, "s1");
	execute(q, "a");
	execute(q, "b");
	fake_kernel_ready(next->kernel);
	assert_int_equal(fake_kernel_waiting(next->kernel), 0);
	for (size_t i = 0; i < ARRAY_LEN(kept); i++)
		fake_kernel_says_again(next->kernel, kept[i]);
	replay_is_over(next);
	kernel_answers(next, "b", REPLY_OK);
	assert_int_equal(fake_kernel_waiting(next->kernel), 0);
	page_pull_all(next, q);
	assert_int_equal(page_count(q, "execute_reply", "a", "\"execution_count\":1"), 1);
	assert_true(page_has_end(q, "a", "execute_reply"));
	assert_true(page_has_end(q, "b", "execute_reply"));
	for (size_t i = 0; i < ARRAY_LEN(kept); i++)
		jmsg_unref(kept[i]);
	jmsg_unref(a);
	page_leave(q, 0);
	next_free(next);
	page_leave(p, 0);
	fixture_free(fx);
}

#endif
