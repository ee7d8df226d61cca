#include <sched.h>
#include <signal.h>
#include <sys/mount.h>

#include "tests/lib/pack_fixture.h"

#define MUCH 1000000u
#define LONG 3600000u

static struct hfix *open_keeping(unsigned every, uint64_t idle_ms)
{
	struct hfix *fx = hfix_make();
	fx->keeping = (struct history_keeping){every, idle_ms, 20};
	hfix_open(fx);
	return fx;
}

/* Packs that are gone and still open here. */
static unsigned deleted_packs(void)
{
	DIR *dir = opendir("/proc/self/fd");
	unsigned n = 0;
	assert_non_null(dir);
	for (struct dirent *d; (d = readdir(dir));) {
		char path[300], to[512] = "";
		(void)snprintf(path, sizeof path, "/proc/self/fd/%s", d->d_name);
		if (readlink(path, to, sizeof to - 1) > 0)
			n += strstr(to, "/pack-") && strstr(to, "(deleted)");
	}
	(void)closedir(dir);
	return n;
}

static void assert_count(struct hfix *fx, unsigned n)
{
	char expected[16];
	(void)snprintf(expected, sizeof expected, "%u\n", n + 1);
	assert_git(fx, HISTORY_A, "rev-list --count --all", expected);
	assert_sound(fx, HISTORY_A);
}

TEST(pack, after_so_many_executions)
{
	struct hfix *fx = open_keeping(20, LONG);
	unsigned most = 0;
	record_each(fx, 0, 19);
	assert_int_equal(packs(fx), 0);
	record_each(fx, 19, 1);
	AWAIT(fx, packs(fx) == 1);
	/* What comes while one begins is left to a pause. */
	hfix_close(fx);
	fx->keeping.idle_ms = 50;
	hfix_open(fx);
	for (unsigned round = 0; round < 15; round++) {
		record_each(fx, 20 + 20 * round, 20);
		AWAIT(fx, loose(fx) == 0);
		most = packs(fx) > most ? packs(fx) : most;
	}
	/* Small ones become one. */
	assert_true(most > 1 && most <= 5);
	record_each(fx, 320, 5);
	assert_count(fx, 325);
	/* What was packed away is read and written on. */
	for (unsigned i = 0; i < 325; i += 13) {
		char name[32], code[64];
		(void)snprintf(name, sizeof name, "HEAD~%u", 324 - i);
		(void)snprintf(code, sizeof code, "x = %u\nprint(x * %u)", i, i);
		cJSON *node = ask_node(fx, name);
		assert_string_equal(text_at(node, "code"), code);
		cJSON_Delete(node);
	}
	AWAIT(fx, deleted_packs() == 0);
	hfix_free(fx);
}

TEST(pack, one_that_rests)
{
	struct hfix *fx = open_keeping(MUCH, 30);
	record_each(fx, 0, 3);
	AWAIT(fx, packs(fx) == 1 && loose(fx) == 0);
	record_each(fx, 3, 1);
	AWAIT(fx, packs(fx) > 0 && loose(fx) == 0);
	assert_count(fx, 4);
	hfix_free(fx);
}

TEST(pack, what_lies_loose_at_the_start)
{
	struct hfix *fx = open_keeping(MUCH, LONG);
	record_each(fx, 0, 60);
	hfix_close(fx);
	assert_int_equal(packs(fx), 0);
	fx->keeping.every = 1; /* how many lie there is an estimate */
	hfix_open(fx);
	AWAIT(fx, packs(fx) == 1 && loose(fx) == 0);
	assert_count(fx, 60);
	hfix_free(fx);
}

TEST(pack, the_recorder_does_not_wait_for_it)
{
	struct hfix *fx = open_keeping(10, LONG);
	hold_git(fx);
	record_each(fx, 0, 10);
	AWAIT(fx, is_there(fx, "began"));
	record_each(fx, 10, 300);
	assert_int_equal(packs(fx), 0);
	touch(fx, "go");
	AWAIT(fx, packs(fx) > 0 && loose(fx) == 0);
	record_each(fx, 310, 5);
	unhold_git(fx);
	assert_count(fx, 315);
	hfix_free(fx);
}

TEST(pack, never_two_at_once_in_a_history)
{
	struct hfix *fx = open_keeping(10, LONG);
	int lock = -1;
	record_each(fx, 0, 5);
	assert_int_equal(pack_lock(path_in(fx, ""), false, &lock, NULL), 0);
	record_each(fx, 5, 100);
	/* Another history is packed meanwhile, after this one was tried. */
	for (unsigned i = 0; i < 20; i++) {
		char id[16];
		(void)snprintf(id, sizeof id, "n%u", i);
		struct tape *t = tape_new(fx, id, id, ",\"silent\":false,\"store_history\":true");
		tape_end(t, "ok", 1, "");
		assert_int_equal(hand_over_to(fx, t, HISTORY_B, "k2", 1), 0);
		await_fine(fx, t);
	}
	AWAIT(fx, count_names(fx, "../" HISTORY_B ".git/objects/pack", ".idx") > 0);
	assert_int_equal(packs(fx), 0);
	assert_int_equal(close(lock), 0);
	AWAIT(fx, packs(fx) > 0 && loose(fx) == 0);
	assert_count(fx, 105);
	hfix_free(fx);
}

TEST(pack, an_end_does_not_wait_for_it)
{
	struct hfix *fx = open_keeping(10, LONG);
	hold_git(fx);
	record_each(fx, 0, 10);
	AWAIT(fx, is_there(fx, "began"));
	hfix_close(fx);
	unhold_git(fx);
	assert_int_equal(packs(fx), 0);
	fx->keeping.every = 1; /* as above */
	hfix_open(fx);
	AWAIT(fx, packs(fx) == 1);
	assert_count(fx, 10);
	hfix_free(fx);
}

/* ---- killed ---- */

static bool is_clean(struct hfix *fx)
{
	char line[512];
	(void)snprintf(line, sizeof line,
		"cd '%s' && test -z \"$(find . -name 'tmp_*' -o -name '.tmp-*' -o -name "
		"'*.lock')\" &&"
		" for f in " HISTORY_A ".git/objects/pack/pack-*; do"
		" test ! -e \"$f\" -o -e \"${f%%.*}.idx\" || exit 1; done",
		fx->folder);
	return system(line) == 0;
}

/* Packs what lies there and dies, with its git or without. */
static void die_packing(struct hfix *fx, unsigned delay_us, bool git_too)
{
	char path[256];
	pid_t pid = fork();
	assert_true(pid >= 0);
	if (pid == 0) {
		fx->keeping.every = 1;
		hold_git(fx);
		hfix_open(fx);
		for (;;)
			(void)uv_run(&fx->loop, UV_RUN_ONCE);
	}
	(void)snprintf(path, sizeof path, "%s/began", fx->folder);
	while (access(path, F_OK) != 0)
		(void)poll(NULL, 0, 1); /* between two questions */
	int git = 0;
	FILE *file = fopen(path, "re");
	assert_non_null(file);
	assert_int_equal(fscanf(file, "%d", &git), 1);
	assert_int_equal(fclose(file), 0);
	touch(fx, "go");
	struct timespec now, until;
	(void)clock_gettime(CLOCK_MONOTONIC, &until);
	until.tv_nsec += (long)delay_us * 1000;
	until.tv_sec += until.tv_nsec / 1000000000;
	until.tv_nsec %= 1000000000;
	do
		(void)clock_gettime(CLOCK_MONOTONIC, &now);
	while (now.tv_sec < until.tv_sec ||
		(now.tv_sec == until.tv_sec && now.tv_nsec < until.tv_nsec));
	assert_int_equal(kill(pid, SIGKILL), 0);
	if (git_too)
		(void)kill(-git, SIGKILL); /* it may be done */
	int status;
	assert_int_equal(waitpid(pid, &status, 0), pid);
}

TEST(pack, killed_at_any_moment)
{
	for (unsigned round = 0; round < 12; round++) {
		struct hfix *fx = open_keeping(MUCH, LONG);
		record_each(fx, 0, 150);
		hfix_close(fx);
		die_packing(fx, round * 3000, round % 2);
		fx->keeping.every = MUCH;
		fx->keeping.idle_ms = 10;
		hfix_open(fx);
		record_each(fx, 150, 10);
		assert_sound(fx, HISTORY_A);
		AWAIT(fx, loose(fx) == 0);
		AWAIT(fx, is_clean(fx));
		assert_count(fx, 160);
		hfix_free(fx);
	}
}

TEST(pack, what_the_dead_left_is_removed)
{
	struct hfix *fx = open_keeping(MUCH, LONG);
	char line[512];
	record_each(fx, 0, 5);
	hfix_close(fx);
	(void)snprintf(line, sizeof line,
		"cd '%s/" HISTORY_A ".git/objects' && touch pack/tmp_pack_x pack/tmp_idx_x"
		" pack/.tmp-1-pack-0a.pack pack/.tmp-1-pack-0a.idx pack/pack-0b.pack"
		" pack/pack-0b.rev && touch $(ls -d ?? | head -1)/tmp_obj_x",
		fx->folder);
	shell(line);
	hfix_open(fx);
	AWAIT(fx, is_clean(fx));
	assert_count(fx, 5);
	hfix_free(fx);
}

/* Whatever a git that was killed had locked. */
TEST(pack, locks_of_a_dead_git)
{
	struct hfix *fx = open_keeping(10, LONG);
	char line[512];
	record_each(fx, 0, 12);
	AWAIT(fx, packs(fx) == 1);
	hfix_close(fx);
	(void)snprintf(line, sizeof line,
		"cd '%s/" HISTORY_A ".git' && git pack-refs --all && mkdir -p refs/heads/a/b"
		" refs/coppice refs/notes && touch refs/heads/main.lock refs/heads/a/b/c.lock"
		" refs/coppice/state.lock refs/notes/coppice.lock packed-refs.lock packed-refs.new"
		" config.lock HEAD.lock shallow.lock gc.pid",
		fx->folder);
	shell(line);
	/* Packed when idle: what is recorded while a pack is made waits for the next one. */
	fx->keeping = (struct history_keeping){1000000, 20, 20};
	hfix_open(fx);
	record_each(fx, 12, 10);
	AWAIT(fx, loose(fx) == 0);
	AWAIT(fx, is_clean(fx));
	assert_count(fx, 22);
	hfix_free(fx);
}

/* ---- a full disk ---- */

/* In a child: what it mounts is its own. */
static void pack_on_a_full_disk(struct hfix *fx)
{
	char line[512];
	if (unshare(CLONE_NEWNS) != 0 || mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) != 0 ||
		mount("tmpfs", fx->folder, "tmpfs", 0, "size=12m") != 0)
		fail_msg("a small disk cannot be made; is this root?");
	fx->keeping = (struct history_keeping){1000000, LONG, 20};
	hfix_open(fx);
	record_each(fx, 0, 100);
	hfix_close(fx);
	(void)snprintf(line, sizeof line,
		"cd '%s' && dd if=/dev/zero of=filler bs=4096 status=none 2>/dev/null;"
		" truncate -s -40K filler",
		fx->folder);
	shell(line);
	fx->keeping.every = 1;
	hfix_open(fx);
	/* It is tried again and again; nothing is lost by it. */
	AWAIT(fx, __atomic_load_n(&fx->warnings, __ATOMIC_ACQUIRE) >= 3);
	assert_int_equal(packs(fx), 0);
	assert_sound(fx, HISTORY_A);
	(void)snprintf(line, sizeof line, "rm '%s/filler'", fx->folder);
	shell(line);
	AWAIT(fx, packs(fx) == 1 && loose(fx) == 0);
	AWAIT(fx, is_clean(fx));
	record_each(fx, 100, 5);
	assert_count(fx, 105);
	hfix_close(fx);
	assert_int_equal(umount2(fx->folder, MNT_DETACH), 0);
	hfix_free(fx);
}

TEST(pack, a_disk_that_was_full_loses_nothing)
{
	pid_t pid = fork();
	assert_true(pid >= 0);
	if (pid == 0) {
		pack_on_a_full_disk(hfix_make());
		_exit(0);
	}
	int status;
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

RUN(TEST_ROW(pack, after_so_many_executions), TEST_ROW(pack, one_that_rests),
	TEST_ROW(pack, what_lies_loose_at_the_start),
	TEST_ROW(pack, the_recorder_does_not_wait_for_it),
	TEST_ROW(pack, never_two_at_once_in_a_history), TEST_ROW(pack, an_end_does_not_wait_for_it),
	TEST_ROW(pack, killed_at_any_moment), TEST_ROW(pack, what_the_dead_left_is_removed),
	TEST_ROW(pack, locks_of_a_dead_git), TEST_ROW(pack, a_disk_that_was_full_loses_nothing))
