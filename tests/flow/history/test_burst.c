/* Runs that are recorded together: one pack for a kernel's share of a batch. */
#include "tests/lib/forget_fixture.h"
#include "tests/lib/pack_fixture.h"

#define MUCH 1000000u
#define LONG 3600000u

static struct tape *make_cell(struct hfix *fx, const char *kernel, unsigned i)
{
	char id[32], code[64];
	(void)snprintf(id, sizeof id, "%s-m%u", kernel, i);
	(void)snprintf(code, sizeof code, "x = %u\nprint(x * %u)", i, i);
	struct tape *t = tape_new(fx, id, code, FINE);
	tape_stream(t, "stdout", "a line of output\n");
	tape_end(t, "ok", 1, "");
	return t;
}

static struct tape *burst_cell(struct hfix *fx, const char *history, const char *kernel, unsigned i)
{
	struct tape *t = make_cell(fx, kernel, i);
	assert_int_equal(hand_over_to(fx, t, history, kernel, 1), 0);
	return t;
}

/* n runs of k1 in one batch, recorded once this returns. */
static void burst(struct hfix *fx, unsigned first, unsigned n)
{
	struct tape *t[BATCH_MAX];
	hfix_gather(fx);
	hfix_open(fx);
	for (unsigned i = 0; i < n; i++)
		t[i] = burst_cell(fx, HISTORY_A, "k1", first + i);
	hfix_close(fx);
	for (unsigned i = 0; i < n; i++)
		await_fine(fx, t[i]);
	fx->gather_ms = 0;
}

/* Loose objects, but for empty folders. */
static unsigned loose_objects(struct hfix *fx, const char *history)
{
	char *out = git(fx, history, "count-objects");
	unsigned n = (unsigned)strtoul(out, NULL, 10);
	free(out);
	return n;
}

static void assert_count(struct hfix *fx, const char *history, unsigned n)
{
	char expected[16];
	(void)snprintf(expected, sizeof expected, "%u\n", n + 1);
	assert_git(fx, history, "rev-list --count --all", expected);
	assert_sound(fx, history);
}

TEST(burst, a_batch_is_one_pack)
{
	struct hfix *fx = hfix_make();
	fx->keeping = (struct history_keeping){MUCH, LONG, 20};
	burst(fx, 0, 30);
	assert_int_equal(packs(fx), 1);
	assert_int_equal(loose_objects(fx, HISTORY_A), 0);
	burst(fx, 30, BATCH_MAX);
	assert_int_equal(packs(fx), 2);
	assert_int_equal(loose_objects(fx, HISTORY_A), 0);
	assert_count(fx, HISTORY_A, 30 + BATCH_MAX);
	/* Each is there, for us and for git, in order. */
	hfix_open(fx);
	for (unsigned i = 0; i < 30 + BATCH_MAX; i += 7) {
		char name[32], code[64], id[32];
		(void)snprintf(name, sizeof name, "HEAD~%u", 29 + BATCH_MAX - i);
		(void)snprintf(code, sizeof code, "x = %u\nprint(x * %u)", i, i);
		(void)snprintf(id, sizeof id, "k1-m%u", i);
		cJSON *node = ask_node(fx, name);
		assert_string_equal(text_at(node, "code"), code);
		assert_string_equal(text_at(node, "msg_id"), id);
		cJSON_Delete(node);
	}
	hfix_free(fx);
}

TEST(burst, a_few_are_files_of_their_own)
{
	struct hfix *fx = hfix_make();
	fx->keeping = (struct history_keeping){MUCH, LONG, 20};
	burst(fx, 0, 3);
	assert_int_equal(packs(fx), 0);
	assert_true(loose_objects(fx, HISTORY_A) > 20);
	assert_count(fx, HISTORY_A, 3);
	hfix_free(fx);
}

/* One file that `git repack` would not find behind a packed commit. */
TEST(burst, with_a_large_output_nothing_is_packed)
{
	struct hfix *fx = hfix_make();
	AUTO(buf_done) struct buf text;
	struct tape *t[12];
	fx->keeping = (struct history_keeping){MUCH, LONG, 20};
	buf_init(&text, 4u << 20);
	for (unsigned i = 0; text.len < 2u << 20; i++)
		(void)buf_addf(&text, "line %u\n", i);
	hfix_gather(fx);
	hfix_open(fx);
	for (unsigned i = 0; i < ARRAY_LEN(t); i++) {
		t[i] = i == 5 ? record_cell(fx, "large", "large", (char *)text.data)
			      : burst_cell(fx, HISTORY_A, "k1", i);
	}
	hfix_close(fx);
	for (unsigned i = 0; i < ARRAY_LEN(t); i++)
		await_fine(fx, t[i]);
	assert_int_equal(packs(fx), 0);
	assert_count(fx, HISTORY_A, ARRAY_LEN(t));
	fx->keeping = (struct history_keeping){MUCH, 10, 20};
	hfix_open(fx);
	AWAIT(fx, packs(fx) == 1 && loose(fx) == 0);
	assert_count(fx, HISTORY_A, ARRAY_LEN(t));
	hfix_free(fx);
}

TEST(burst, many_kernels_in_one_batch)
{
	enum { KERNELS = 8, RUNS = 10 };
	struct hfix *fx = hfix_make();
	struct tape *t[KERNELS][RUNS];
	char history[KERNELS][64], kernel[KERNELS][16];
	fx->keeping = (struct history_keeping){MUCH, LONG, 20};
	hfix_gather(fx);
	hfix_open(fx);
	for (unsigned i = 0; i < RUNS; i++) {
		for (unsigned k = 0; k < KERNELS; k++) {
			/* Two kernels in each history. */
			(void)snprintf(history[k], 64, "%08u-1111-4111-8111-111111111111", k / 2);
			(void)snprintf(kernel[k], 16, "k%u", k);
			t[k][i] = burst_cell(fx, history[k], kernel[k], i);
		}
	}
	hfix_close(fx);
	for (unsigned k = 0; k < KERNELS; k++)
		for (unsigned i = 0; i < RUNS; i++)
			await_fine(fx, t[k][i]);
	for (unsigned k = 0; k < KERNELS; k += 2) {
		assert_count(fx, history[k], 2 * RUNS);
		assert_int_equal(loose_objects(fx, history[k]), 0);
	}
	/* Each kernel's runs are a line, in their order. */
	for (unsigned k = 0; k < KERNELS; k++) {
		assert_string_equal(t[k][0]->branch, k % 2 ? "main.2" : "main");
		for (unsigned i = 1; i < RUNS; i++) {
			char command[128], expected[HISTORY_NODE_SIZE + 1];
			(void)snprintf(command, sizeof command, "rev-parse %s^", t[k][i]->node);
			(void)snprintf(expected, sizeof expected, "%s\n", t[k][i - 1]->node);
			assert_git(fx, history[k], command, expected);
		}
	}
	hfix_free(fx);
}

/* A folder where the pack is to be written: that repository alone cannot be written. */
TEST(burst, a_repository_that_fails_is_no_other_kernels_trouble)
{
	enum { RUNS = 20 };
	struct hfix *fx = hfix_make();
	struct tape *a[RUNS], *b[RUNS];
	fx->keeping = (struct history_keeping){MUCH, LONG, 20};
	burst(fx, 1000, 1);
	hfix_gather(fx);
	hfix_open(fx);
	assert_int_equal(mkdir(path_in(fx, "objects/tmp_object_pack"), 0700), 0);
	for (unsigned i = 0; i < RUNS; i++) {
		b[i] = burst_cell(fx, HISTORY_B, "k2", i);
		a[i] = burst_cell(fx, HISTORY_A, "k1", i);
	}
	hfix_close(fx);
	for (unsigned i = 0; i < RUNS; i++) {
		await(fx, a[i]);
		assert_int_equal(a[i]->status, E_IO);
		assert_non_null(strstr(a[i]->why, "tmp_object_pack"));
		await_fine(fx, b[i]);
	}
	assert_count(fx, HISTORY_A, 1);
	assert_count(fx, HISTORY_B, RUNS);
	assert_int_equal(rmdir(path_in(fx, "objects/tmp_object_pack")), 0);
	hfix_open(fx);
	for (unsigned i = 0; i < RUNS; i++) {
		a[i]->closed = 0;
		assert_int_equal(hand_over_to(fx, a[i], HISTORY_A, "k1", 1), 0);
	}
	hfix_close(fx);
	for (unsigned i = 0; i < RUNS; i++)
		await_fine(fx, a[i]);
	assert_count(fx, HISTORY_A, 1 + RUNS);
	hfix_free(fx);
}

/* ---- gathering ---- */

TEST(burst, a_full_batch_does_not_wait)
{
	struct hfix *fx = hfix_make();
	struct tape *t[BATCH_MAX];
	fx->keeping = (struct history_keeping){MUCH, LONG, 20};
	hfix_gather(fx);
	hfix_open(fx);
	for (unsigned i = 0; i < BATCH_MAX; i++)
		t[i] = burst_cell(fx, HISTORY_A, "k1", i);
	for (unsigned i = 0; i < BATCH_MAX; i++)
		await_fine(fx, t[i]);
	assert_int_equal(packs(fx), 1);
	hfix_free(fx);
}

TEST(burst, a_pause_ends_the_waiting_and_so_does_its_bound)
{
	static const uint64_t times[][2] = {{1, LONG}, {LONG, 1}, {20, 40}};
	for (size_t i = 0; i < ARRAY_LEN(times); i++) {
		struct hfix *fx = hfix_make();
		fx->gather_ms = times[i][0];
		fx->gather_most_ms = times[i][1];
		hfix_open(fx);
		for (unsigned k = 0; k < 3; k++)
			await_fine(fx, burst_cell(fx, HISTORY_A, "k1", k));
		assert_count(fx, HISTORY_A, 3);
		hfix_free(fx);
	}
}

static void on_gone(void *data, int status, struct bytes json, const struct err *err)
{
	struct hfix *fx = data;
	(void)json, (void)err;
	fx->answered = true;
	fx->status = status;
}

/* What else is wanted of the recorder does not wait for a pause. */
TEST(burst, who_wants_something_is_not_kept_waiting)
{
	struct hfix *fx = hfix_make();
	struct forgot g = {0};
	fx->keeping = (struct history_keeping){MUCH, LONG, 20};
	burst(fx, 0, 10);
	hfix_gather(fx);
	hfix_open(fx);
	struct tape *t = burst_cell(fx, HISTORY_A, "k1", 10);
	forget_fine(fx, &g, "HEAD~3");
	await_fine(fx, t);
	fx->answered = false;
	struct tape *b = burst_cell(fx, HISTORY_B, "k2", 0);
	history_gc(fx->h, HISTORY_A, on_gone, fx);
	await_fine(fx, b);
	AWAIT(fx, fx->answered);
	assert_int_equal(fx->status, 0);
	free(g.json);
	hfix_free(fx);
}

/* ---- beside what else is done with packs ---- */

TEST(burst, packs_of_bursts_are_put_together)
{
	struct hfix *fx = hfix_make();
	for (unsigned i = 0; i < 12; i++) {
		fx->keeping = (struct history_keeping){MUCH, LONG, 20};
		burst(fx, i * 20, 20);
	}
	assert_int_equal(packs(fx), 12);
	char *before = git(fx, HISTORY_A, "log --format=%H%s main");
	fx->keeping = (struct history_keeping){MUCH, 10, 20};
	hfix_open(fx); /* which counts them */
	AWAIT(fx, packs(fx) < 4);
	hfix_close(fx);
	char *after = git(fx, HISTORY_A, "log --format=%H%s main");
	assert_string_equal(after, before);
	assert_count(fx, HISTORY_A, 240);
	assert_int_equal(access(path_in(fx, "objects/tmp_join"), F_OK), -1);
	free(before);
	free(after);
	hfix_free(fx);
}

TEST(burst, gc_and_an_index_made_anew)
{
	struct hfix *fx = hfix_make();
	struct history_question q = {.what = HISTORY_ONE, .history = HISTORY_A, .limit = 100};
	char line[256];
	fx->keeping = (struct history_keeping){MUCH, LONG, 20};
	burst(fx, 0, 40);
	hfix_open(fx);
	assert_int_equal(ask(fx, &q), 0);
	char *before = strdup(fx->json);
	hfix_close(fx);
	(void)snprintf(line, sizeof line, "rm '%s'/index.sqlite*", fx->folder);
	shell(line);
	hfix_open(fx);
	assert_int_equal(ask(fx, &q), 0);
	assert_string_equal(fx->json, before);
	fx->answered = false;
	history_gc(fx->h, HISTORY_A, on_gone, fx);
	AWAIT(fx, fx->answered);
	assert_int_equal(fx->status, 0);
	await_fine(fx, burst_cell(fx, HISTORY_A, "k1", 40));
	assert_count(fx, HISTORY_A, 41);
	free(before);
	hfix_free(fx);
}

TEST(burst, one_is_forgotten_out_of_a_pack)
{
	struct hfix *fx = hfix_make();
	struct forgot g = {0};
	struct tape *t[24];
	fx->keeping = (struct history_keeping){MUCH, LONG, 20};
	hfix_gather(fx);
	hfix_open(fx);
	for (unsigned i = 0; i < ARRAY_LEN(t); i++)
		t[i] = i == 7 ? record_cell(fx, "secret", "k = '" SECRET "'", SECRET "\n")
			      : burst_cell(fx, HISTORY_A, "k1", i);
	hfix_close(fx);
	assert_int_equal(packs(fx), 1);
	hfix_open(fx);
	assert_true(is_found(fx, SECRET));
	forget_fine(fx, &g, t[7]->node);
	assert_gone(fx);
	assert_count(fx, HISTORY_A, ARRAY_LEN(t));
	free(g.json);
	hfix_free(fx);
}

/* Between the index and its pack, and before. */
TEST(burst, what_the_killed_left_of_a_pack_is_removed)
{
	struct hfix *fx = hfix_make();
	char line[512];
	fx->keeping = (struct history_keeping){MUCH, LONG, 20};
	burst(fx, 0, 20);
	(void)snprintf(line, sizeof line,
		"cd '%s/" HISTORY_A ".git/objects' && cp pack/*.idx pack/pack-0b.idx &&"
		" cp pack/*.pack tmp_object_pack && cp pack/pack-0b.idx tmp_object_idx",
		fx->folder);
	shell(line);
	burst(fx, 20, 20);
	assert_int_equal(packs(fx), 2);
	assert_int_equal(access(path_in(fx, "objects/tmp_object_pack"), F_OK), -1);
	assert_int_equal(access(path_in(fx, "objects/tmp_object_idx"), F_OK), -1);
	assert_count(fx, HISTORY_A, 40);
	hfix_free(fx);
}

RUN(TEST_ROW(burst, a_batch_is_one_pack), TEST_ROW(burst, a_few_are_files_of_their_own),
	TEST_ROW(burst, with_a_large_output_nothing_is_packed),
	TEST_ROW(burst, many_kernels_in_one_batch),
	TEST_ROW(burst, a_repository_that_fails_is_no_other_kernels_trouble),
	TEST_ROW(burst, a_full_batch_does_not_wait),
	TEST_ROW(burst, a_pause_ends_the_waiting_and_so_does_its_bound),
	TEST_ROW(burst, who_wants_something_is_not_kept_waiting),
	TEST_ROW(burst, packs_of_bursts_are_put_together),
	TEST_ROW(burst, gc_and_an_index_made_anew), TEST_ROW(burst, one_is_forgotten_out_of_a_pack),
	TEST_ROW(burst, what_the_killed_left_of_a_pack_is_removed))
