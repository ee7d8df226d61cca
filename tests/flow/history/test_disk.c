/* A disk that fails while runs are recorded. */
#include "tests/lib/failing_disk.h"

#define FINE ",\"silent\":false,\"store_history\":true"

static struct tape *make_cell(struct hfix *fx, unsigned i)
{
	char id[16];
	(void)snprintf(id, sizeof id, "m%u", i);
	struct tape *t = tape_new(fx, id, id, FINE);
	tape_stream(t, "stdout", "out\n");
	tape_say_to(t, "m0", "stream", "{\"name\":\"stdout\",\"text\":\"late\"}");
	tape_end(t, "ok", 1, "");
	return t;
}

/* Hands over what is not recorded; returns how many are missing then. */
static size_t hand_over_missing(struct hfix *fx, struct tape **t, size_t n)
{
	size_t missing = 0;
	for (size_t i = 0; i < n; i++) {
		t[i]->closed = 0;
		if (t[i]->told && t[i]->status == 0)
			continue;
		hand_over(fx, t[i]);
	}
	for (size_t i = 0; i < n; i++) {
		while (!t[i]->told)
			(void)uv_run(&fx->loop, UV_RUN_ONCE);
		missing += t[i]->status != 0;
	}
	return missing;
}

static void assert_all(struct hfix *fx, bool with_fsck)
{
	struct history_question q = {.what = HISTORY_ONE, .history = HISTORY_A};
	cJSON *tree = ask_tree(fx, &q);
	assert_int_equal(cJSON_GetArraySize(cJSON_GetObjectItem(tree, "nodes")), 4);
	cJSON_Delete(tree);
	assert_git(fx, HISTORY_A, "log --format=%s --all", "m2\nm1\nm0\nBegin\n");
	if (with_fsck)
		assert_sound(fx, HISTORY_A);
}

/* False once no call failed. */
static bool live(unsigned nth)
{
	struct hfix *fx = hfix_make();
	struct tape *t[3];
	fx->hook = (struct record_hook){at_step, NULL};
	hfix_open(fx);
	for (unsigned i = 0; i < 3; i++)
		t[i] = make_cell(fx, i);
	calls = 0;
	fails_at = nth;
	(void)hand_over_missing(fx, t, 3); /* what fails is the question */
	bool met = calls >= nth;
	hfix_close(fx); /* so that the lane is done with what it counts */
	fails_at = 0;
	hfix_open(fx);
	for (int round = 0; hand_over_missing(fx, t, 3) > 0; round++)
		assert_true(round < 3);
	assert_all(fx, nth % 8 == 0 || !met);
	hfix_free(fx);
	return met;
}

TEST(disk, one_call_that_fails_loses_nothing)
{
	unsigned nth = 1;
	stays_full = false;
	while (live(nth))
		nth++;
	print_message("%u calls\n", nth - 1);
	assert_true(nth > 50);
}

TEST(disk, full_from_one_call_on_loses_nothing)
{
	unsigned nth = 1;
	stays_full = true;
	while (live(nth))
		nth++;
	assert_true(nth > 50);
}

TEST(disk, a_folder_that_is_pruned_under_a_write)
{
	struct hfix *fx = hfix_make();
	fx->hook = (struct record_hook){at_step, NULL};
	fails_at = 0;
	hfix_open(fx);
	for (unsigned i = 0; i < 3; i++) {
		struct tape *t = make_cell(fx, i);
		n_pruned = 2;
		hand_over(fx, t);
		await_fine(fx, t);
		assert_true(n_pruned < 2);
	}
	n_pruned = 0;
	assert_all(fx, true);
	hfix_free(fx);
}

RUN(TEST_ROW(disk, one_call_that_fails_loses_nothing),
	TEST_ROW(disk, full_from_one_call_on_loses_nothing),
	TEST_ROW(disk, a_folder_that_is_pruned_under_a_write))
