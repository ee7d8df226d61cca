#include <signal.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include "history/repo.h"
#include "tests/lib/history_fixture.h"

#define FINE ",\"silent\":false,\"store_history\":true"

/* Counts steps, fails or kills at one of them. Shared with the child that dies. */
struct steps {
	unsigned n, at;
	bool kills;
	unsigned n_told;
	char told[64][16]; /* msg_ids that were told as recorded */
};

static int at_step(void *data, enum record_step step)
{
	struct steps *s = data;
	(void)step;
	if (++s->n != s->at)
		return 0;
	if (s->kills)
		(void)kill(getpid(), SIGKILL);
	return -1;
}

/* The code of the run, as a file of its own: later nodes have those of all before them. */
static void end_with_file(struct tape *t)
{
	char facts[256], blob[HISTORY_NODE_SIZE];
	struct bytes code = {(const uint8_t *)t->msg_id, strlen(t->msg_id)};
	assert_true(repo_blob_name(code, blob));
	(void)snprintf(facts, sizeof facts,
		",\"files\":{\"changed\":[{\"path\":\"d/"
		"%s\",\"mode\":\"100644\",\"blob\":\"%s\"}]}",
		t->msg_id, blob);
	tape_end(t, "ok", 1, facts);
}

static void assert_files(struct hfix *fx, const char *history, const char *expected)
{
	assert_git(fx, history, "ls-tree -r --name-only main files/", expected);
	assert_git(fx, history, "grep -l coppice-lost main -- files/ || true", "");
}

static struct tape *cell(struct hfix *fx, const char *msg_id, const char *history)
{
	struct tape *t = tape_new(fx, msg_id, msg_id, FINE);
	tape_stream(t, "stdout", "out\n");
	tape_say_to(t, "m0", "stream", "{\"name\":\"stdout\",\"text\":\"late\"}");
	end_with_file(t);
	assert_int_equal(hand_over_to(fx, t, history, "k1", 1), 0);
	return t;
}

static bool indexed_once(struct hfix *fx, const char *history, size_t n)
{
	struct history_question q = {.what = HISTORY_ONE, .history = history, .limit = 1000};
	cJSON *tree = ask_tree(fx, &q);
	size_t rows = (size_t)cJSON_GetArraySize(cJSON_GetObjectItem(tree, "nodes"));
	cJSON_Delete(tree);
	return rows == n + 1; /* and the root */
}

/* ---- a step fails ---- */

/* Hands over again what was not recorded, in order, until all of it is. */
static void insist(struct hfix *fx, struct tape **t, const char **history, size_t n)
{
	for (int round = 0; round < 5; round++) {
		size_t failed = 0;
		for (size_t i = 0; i < n; i++) {
			await(fx, t[i]);
			failed += t[i]->status != 0;
		}
		if (failed == 0)
			return;
		for (size_t i = 0; i < n; i++) {
			if (t[i]->status == 0)
				continue;
			t[i]->closed = 0;
			assert_int_equal(hand_over_to(fx, t[i], history[i], "k1", 1), 0);
		}
	}
	fail_msg("not recorded in five rounds");
}

static bool live(struct steps *s)
{
	static const char *ids[] = {"m0", "m1", "n0", "m2"};
	const char *history[] = {HISTORY_A, HISTORY_A, HISTORY_B, HISTORY_A};
	struct hfix *fx = hfix_make();
	struct tape *t[4];
	fx->hook = (struct record_hook){at_step, s};
	hfix_open(fx);
	for (size_t i = 0; i < 4; i++) {
		t[i] = tape_new(fx, ids[i], ids[i], FINE);
		tape_say_to(t[i], "m0", "stream", "{\"name\":\"stdout\",\"text\":\"late\"}");
		end_with_file(t[i]);
		assert_int_equal(hand_over_to(fx, t[i], history[i], i == 2 ? "k2" : "k1", 1), 0);
	}
	for (int round = 0; round < 5; round++) {
		size_t failed = 0;
		for (size_t i = 0; i < 4; i++)
			await(fx, t[i]);
		for (size_t i = 0; i < 4; i++) {
			if (t[i]->status == 0)
				continue;
			failed++;
			t[i]->closed = 0;
			assert_int_equal(
				hand_over_to(fx, t[i], history[i], i == 2 ? "k2" : "k1", 1), 0);
		}
		if (failed == 0)
			break;
		assert_true(round < 4);
	}
	assert_git(fx, HISTORY_A, "log --format=%s --all", "m2\nm1\nm0\nBegin\n");
	assert_git(fx, HISTORY_B, "log --format=%s --all", "n0\nBegin\n");
	assert_files(fx, HISTORY_A, "files/d/m0\nfiles/d/m1\nfiles/d/m2\n");
	assert_files(fx, HISTORY_B, "files/d/n0\n");
	assert_true(indexed_once(fx, HISTORY_A, 3) && indexed_once(fx, HISTORY_B, 1));
	assert_sound(fx, HISTORY_A);
	hfix_free(fx);
	return s->n >= s->at;
}

TEST(crash, whatever_step_fails_all_is_recorded_once_when_tried_again)
{
	unsigned nth = 1;
	for (;; nth++) {
		struct steps s = {.at = nth};
		if (!live(&s))
			break;
	}
	assert_true(nth > 8);
}

/* ---- killed ---- */

static void told_in_child(void *data, const struct history_recorded *recorded)
{
	struct hfix *fx = data;
	struct steps *s = fx->hook.data;
	const struct tape *t = recorded->run_data;
	assert_int_equal(recorded->status, 0);
	(void)snprintf(s->told[s->n_told], 16, "%.15s", t->msg_id);
	(void)__atomic_add_fetch(&s->n_told, 1, __ATOMIC_RELEASE); /* read by the other process */
	fx->told++;
}

/* Records n runs, two handed over at a time, and dies on the way or at the end. */
static void child(struct hfix *fx, struct steps *s, unsigned first, unsigned n)
{
	struct histories_setup setup = {.loop = &fx->loop,
		.clock = fx->clock,
		.folder = fx->folder,
		.on_recorded = told_in_child,
		.data = fx};
	fx->hook = (struct record_hook){at_step, s};
	if (histories_open_hooked(&setup, &fx->hook, &fx->h, NULL) != 0)
		_exit(3);
	for (unsigned i = 0; i < n; i++) {
		char id[16];
		(void)snprintf(id, sizeof id, "m%u", first + i);
		(void)cell(fx, id, HISTORY_A);
		while (i % 2 && fx->told < i + 1)
			(void)uv_run(&fx->loop, UV_RUN_ONCE);
	}
	while (fx->told < n)
		(void)uv_run(&fx->loop, UV_RUN_ONCE);
	(void)kill(getpid(), SIGKILL);
}

static void assert_kept(struct hfix *fx, const struct steps *s)
{
	char *log = git(fx, HISTORY_A, "log --format=%s main");
	for (unsigned i = 0; i < s->n_told; i++) {
		char line[32];
		(void)snprintf(line, sizeof line, "%s\n", s->told[i]);
		const char *at = strstr(log, line);
		if (!at)
			fail_msg("%s was told and is lost", s->told[i]);
		assert_null(strstr(at + 1, line));
	}
	free(log);
}

static int by_text(const void *a, const void *b)
{
	return strcmp(a, b);
}

/* The folder of the last node has what each run left. */
static void assert_all_files(struct hfix *fx, unsigned n)
{
	AUTO(buf_done) struct buf expected;
	char names[64][16];
	buf_init(&expected, 1 << 16);
	for (unsigned i = 0; i < n; i++)
		(void)snprintf(names[i], sizeof names[i], "m%u", i);
	qsort(names, n, sizeof names[0], by_text);
	for (unsigned i = 0; i < n; i++)
		(void)buf_addf(&expected, "files/d/%s\n", names[i]);
	assert_files(fx, HISTORY_A, (char *)expected.data);
}

/* Every run once, in order, however often each was handed over. */
static void assert_once(struct hfix *fx, unsigned n)
{
	AUTO(buf_done) struct buf expected;
	buf_init(&expected, 1 << 16);
	for (unsigned i = n; i-- > 0;)
		(void)buf_addf(&expected, "m%u\n", i);
	(void)buf_add_text(&expected, "Begin\n");
	assert_git(fx, HISTORY_A, "log --format=%s --all", (char *)expected.data);
	assert_true(indexed_once(fx, HISTORY_A, n));
	assert_sound(fx, HISTORY_A);
}

static void die_once(struct hfix *fx, struct steps *s, unsigned first, unsigned n)
{
	pid_t pid = fork();
	assert_true(pid >= 0);
	if (pid == 0)
		child(fx, s, first, n);
	int status;
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
}

static struct steps *shared_steps(void)
{
	struct steps *s =
		mmap(NULL, sizeof *s, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	assert_ptr_not_equal(s, MAP_FAILED);
	return s;
}

/* Killed at step nth of five runs, the next gateway is handed all of them again. */
static bool die_at(unsigned nth)
{
	struct hfix *fx = hfix_make();
	struct steps *s = shared_steps();
	*s = (struct steps){.at = nth, .kills = true};
	die_once(fx, s, 0, 5);
	bool met = s->n >= nth;
	hfix_open(fx);
	if (s->n_told > 0)
		assert_kept(fx, s);
	for (unsigned i = 0; i < 5; i++) {
		char id[16];
		(void)snprintf(id, sizeof id, "m%u", i);
		await_fine(fx, cell(fx, id, HISTORY_A));
	}
	assert_once(fx, 5);
	assert_all_files(fx, 5);
	hfix_free(fx);
	assert_int_equal(munmap(s, sizeof *s), 0);
	return met;
}

TEST(crash, killed_at_any_step_nothing_is_lost_or_doubled)
{
	unsigned nth = 1;
	while (die_at(nth))
		nth++;
	assert_true(nth > 15);
}

TEST(crash, killed_again_and_again_in_one_folder)
{
	struct hfix *fx = hfix_make();
	struct steps *s = shared_steps();
	unsigned seed = 1;
	for (unsigned round = 0; round < 12; round++) {
		seed = seed * 1103515245u + 12345u;
		*s = (struct steps){.at = 1 + seed / 65536 % 14, .kills = true};
		die_once(fx, s, 0, 6);
		hfix_open(fx);
		if (s->n_told > 0)
			assert_kept(fx, s);
		hfix_close(fx);
	}
	hfix_open(fx);
	for (unsigned i = 0; i < 6; i++) {
		char id[16];
		(void)snprintf(id, sizeof id, "m%u", i);
		await_fine(fx, cell(fx, id, HISTORY_A));
	}
	assert_once(fx, 6);
	assert_all_files(fx, 6);
	hfix_free(fx);
	assert_int_equal(munmap(s, sizeof *s), 0);
}

/* Killed from outside, wherever it is by then. */
TEST(crash, killed_at_any_moment_nothing_is_lost_or_doubled)
{
	enum { RUNS = 40 };
	struct steps *s = shared_steps();
	for (unsigned round = 0; round < 12; round++) {
		struct hfix *fx = hfix_make();
		*s = (struct steps){0};
		pid_t pid = fork();
		assert_true(pid >= 0);
		if (pid == 0)
			child(fx, s, 0, RUNS);
		while (__atomic_load_n(&s->n_told, __ATOMIC_ACQUIRE) < 1 + round * 3)
			;
		assert_int_equal(kill(pid, SIGKILL), 0);
		int status;
		assert_int_equal(waitpid(pid, &status, 0), pid);
		hfix_open(fx);
		assert_kept(fx, s);
		for (unsigned i = 0; i < RUNS; i++) {
			char id[16];
			(void)snprintf(id, sizeof id, "m%u", i);
			await_fine(fx, cell(fx, id, HISTORY_A));
		}
		assert_once(fx, RUNS);
		assert_all_files(fx, RUNS);
		hfix_free(fx);
	}
	assert_int_equal(munmap(s, sizeof *s), 0);
}

/* ---- what is left lying, and what is damaged ---- */

static void in_folder(struct hfix *fx, const char *command)
{
	char line[512];
	(void)snprintf(line, sizeof line, "cd '%s' && %s", fx->folder, command);
	shell(line);
}

static void three_cells(struct hfix *fx)
{
	for (unsigned i = 0; i < 3; i++) {
		char id[16];
		(void)snprintf(id, sizeof id, "m%u", i);
		await_fine(fx, cell(fx, id, HISTORY_A));
	}
}

TEST(crash, locks_of_the_dead_are_removed)
{
	struct hfix *fx = hfix_new();
	three_cells(fx);
	hfix_close(fx);
	in_folder(fx, "cd " HISTORY_A ".git && touch refs/heads/main.lock packed-refs.lock "
		      "config.lock HEAD.lock objects/tmp_object_git2_x");
	in_folder(fx, "mkdir -p x.git.new/refs && touch x.git.new/config");
	hfix_open(fx);
	await_fine(fx, cell(fx, "m3", HISTORY_A));
	assert_once(fx, 4);
	in_folder(fx, "test -z \"$(find . -name '*.lock' -o -name '*.new' -o -name 'tmp_*')\"");
	hfix_free(fx);
}

TEST(crash, an_index_that_is_gone_damaged_or_later_is_made_anew)
{
	static const char *const harms[] = {"rm -f index.sqlite*",
		"rm -f index.sqlite-*; head -c 20000 /dev/urandom > index.sqlite",
		"rm -f index.sqlite-*; dd if=/dev/urandom of=index.sqlite bs=4096 seek=2 count=3 "
		"conv=notrunc 2>/dev/null",
		"rm -f index.sqlite-*; : > index.sqlite",
		"git -C " HISTORY_A ".git pack-refs --all; git -C " HISTORY_A ".git repack -adq"};
	struct hfix *fx = hfix_new();
	three_cells(fx);
	for (size_t i = 0; i < ARRAY_LEN(harms); i++) {
		struct history_question q = {
			.what = HISTORY_ONE, .history = HISTORY_A, .silent = true};
		assert_int_equal(ask(fx, &q), 0);
		char *before = strdup(fx->json);
		hfix_close(fx);
		in_folder(fx, harms[i]);
		hfix_open(fx);
		assert_int_equal(ask(fx, &q), 0);
		assert_string_equal(fx->json, before);
		free(before);
		struct tape *again = cell(fx, "m2", HISTORY_A);
		await_fine(fx, again);
		assert_int_equal(again->state_version, 3);
	}
	await_fine(fx, cell(fx, "m3", HISTORY_A));
	assert_once(fx, 4);
	hfix_free(fx);
}

TEST(crash, the_index_follows_refs_that_went_back)
{
	struct hfix *fx = hfix_new();
	three_cells(fx);
	hfix_close(fx);
	in_folder(fx, "git -C " HISTORY_A ".git update-ref refs/heads/main main~2");
	hfix_open(fx);
	assert_once(fx, 1);
	await_fine(fx, cell(fx, "m1", HISTORY_A));
	assert_once(fx, 2);
	hfix_free(fx);
}

TEST(crash, a_clock_that_goes_back_changes_no_order)
{
	struct hfix *fx = hfix_new();
	static const char *const times[] = {"", ",\"running_us\":1500000000000000",
		",\"running_us\":0,\"sent_us\":0,\"accepted_us\":0,\"done_us\":0",
		",\"running_us\":1000000,\"done_us\":1"};
	for (unsigned i = 0; i < ARRAY_LEN(times); i++) {
		char id[16];
		(void)snprintf(id, sizeof id, "m%u", i);
		struct tape *t = tape_new(fx, id, id, FINE);
		tape_end(t, "ok", 1, times[i]);
		hand_over(fx, t);
		await_fine(fx, t);
	}
	struct history_question q = {.what = HISTORY_ONE, .history = HISTORY_A};
	assert_int_equal(ask(fx, &q), 0);
	char *before = strdup(fx->json);
	hfix_close(fx);
	in_folder(fx, "rm index.sqlite*");
	hfix_open(fx);
	assert_int_equal(ask(fx, &q), 0);
	assert_string_equal(fx->json, before);
	free(before);
	assert_once(fx, 4);
	hfix_free(fx);
}

TEST(crash, a_history_that_cannot_be_read_closes_no_other)
{
	struct hfix *fx = hfix_new();
	three_cells(fx);
	hfix_close(fx);
	in_folder(fx, "mkdir bad.git && echo x > bad.git/HEAD");
	hfix_open(fx);
	await_fine(fx, cell(fx, "m3", HISTORY_A));
	struct tape *t = cell(fx, "m9", "bad");
	await(fx, t);
	assert_int_equal(t->status, E_IO);
	hfix_free(fx);
}

TEST(crash, the_folder_is_ones_alone)
{
	struct hfix *fx = hfix_new(), *other = hfix_make();
	char keep[64];
	struct err err;
	memcpy(keep, other->folder, sizeof keep);
	memcpy(other->folder, fx->folder, sizeof keep);
	assert_int_equal(hfix_try_open(other, &err), E_UNAVAILABLE);
	memcpy(other->folder, keep, sizeof keep);
	hfix_free(other);
	hfix_free(fx);
}

/* Writing beyond a file size fails as a full disk does. In a child: the limit is the process's. */
static void record_on_a_full_disk(struct hfix *fx, rlim_t bytes)
{
	struct rlimit limit = {bytes, RLIM_INFINITY};
	(void)signal(SIGXFSZ, SIG_IGN);
	hfix_open(fx);
	await_fine(fx, cell(fx, "m0", HISTORY_A));
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &limit), 0);
	struct tape *t[3];
	const char *history[] = {HISTORY_A, HISTORY_A, HISTORY_A};
	for (unsigned i = 0; i < 3; i++) {
		char id[16];
		(void)snprintf(id, sizeof id, "m%u", 1 + i);
		t[i] = cell(fx, id, HISTORY_A);
	}
	for (unsigned i = 0; i < 3; i++) {
		await(fx, t[i]);
		if (bytes < 100)
			assert_true(t[i]->status == E_IO || t[i]->status == E_UNAVAILABLE);
	}
	limit.rlim_cur = RLIM_INFINITY;
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &limit), 0);
	insist(fx, t, history, 3);
	while (!indexed_once(fx, HISTORY_A, 4))
		; /* the index is written behind, without a next run */
	assert_once(fx, 4);
	hfix_free(fx);
}

TEST(crash, a_disk_that_was_full_loses_nothing)
{
	/* Nothing fits; objects do, but not the index. */
	static const rlim_t limits[] = {40, 4096};
	for (size_t i = 0; i < ARRAY_LEN(limits); i++) {
		pid_t pid = fork();
		assert_true(pid >= 0);
		if (pid == 0) {
			record_on_a_full_disk(hfix_make(), limits[i]);
			_exit(0);
		}
		int status;
		assert_int_equal(waitpid(pid, &status, 0), pid);
		assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
	}
}

static struct tape *incompressible(struct hfix *fx, unsigned i)
{
	static char text[20000]; /* of one test at a time */
	char id[16];
	uint64_t state = i + 1;
	(void)snprintf(id, sizeof id, "m%u", i);
	for (size_t k = 0; k < sizeof text - 1; k++) {
		state = state * 6364136223846793005u + 1442695040888963407u;
		text[k] = (char)('!' + (state >> 40) % 90);
	}
	struct tape *t = tape_new(fx, id, id, FINE);
	tape_stream(t, "stdout", text);
	tape_end(t, "ok", 1, "");
	return t;
}

static void on_mount(struct hfix *fx, const char *command)
{
	char line[256];
	(void)snprintf(line, sizeof line, "%s '%s'", command, fx->folder);
	shell(line); /* needs root, as the tests' engine does */
}

/* A disk of its own, which fills up. In the order of the kernel: what failed is handed over again
 * before what came after it. */
TEST(crash, a_small_disk_that_was_full_loses_nothing)
{
	enum { RUNS = 30 };
	struct hfix *fx = hfix_make();
	struct tape *t[RUNS];
	unsigned full = 0;
	on_mount(fx, "mount -t tmpfs -o size=600k,mode=700 none");
	hfix_open(fx);
	for (unsigned i = 0; i < RUNS && full == 0; i++) {
		t[i] = incompressible(fx, i);
		hand_over(fx, t[i]);
		await(fx, t[i]);
		full = t[i]->status == 0 ? 0 : i;
	}
	assert_true(full > 0 && full < RUNS - 1);
	assert_int_equal(t[full]->status, E_IO);
	assert_true(t[full]->why[0] != '\0');
	on_mount(fx, "mount -o remount,size=32m");
	for (unsigned i = full; i < RUNS; i++) {
		t[i] = i == full ? t[i] : incompressible(fx, i);
		t[i]->closed = 0;
		hand_over(fx, t[i]);
		await_fine(fx, t[i]);
	}
	while (!indexed_once(fx, HISTORY_A, RUNS))
		; /* the index is written behind, without a next run */
	assert_once(fx, RUNS);
	hfix_close(fx);
	on_mount(fx, "umount");
	hfix_open(fx);
	hfix_free(fx);
}

RUN(TEST_ROW(crash, whatever_step_fails_all_is_recorded_once_when_tried_again),
	TEST_ROW(crash, killed_at_any_step_nothing_is_lost_or_doubled),
	TEST_ROW(crash, killed_again_and_again_in_one_folder),
	TEST_ROW(crash, killed_at_any_moment_nothing_is_lost_or_doubled),
	TEST_ROW(crash, locks_of_the_dead_are_removed),
	TEST_ROW(crash, an_index_that_is_gone_damaged_or_later_is_made_anew),
	TEST_ROW(crash, the_index_follows_refs_that_went_back),
	TEST_ROW(crash, a_clock_that_goes_back_changes_no_order),
	TEST_ROW(crash, a_history_that_cannot_be_read_closes_no_other),
	TEST_ROW(crash, the_folder_is_ones_alone),
	TEST_ROW(crash, a_disk_that_was_full_loses_nothing),
	TEST_ROW(crash, a_small_disk_that_was_full_loses_nothing))
