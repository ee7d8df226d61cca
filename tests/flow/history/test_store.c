/* Copies of all histories while they are recorded and packed; the index made anew by hand. */
#include "tests/lib/pack_fixture.h"

static unsigned count_in(const char *folder)
{
	char line[512];
	unsigned n = 0;
	(void)snprintf(
		line, sizeof line, "git -C '%s/" HISTORY_A ".git' rev-list --count --all", folder);
	FILE *pipe = popen(line, "re");
	assert_non_null(pipe);
	assert_int_equal(fscanf(pipe, "%u", &n), 1);
	assert_int_equal(pclose(pipe), 0);
	return n - 1;
}

static void assert_whole(const char *folder)
{
	char line[512];
	(void)snprintf(line, sizeof line,
		"test -z \"$(git -C '%s/" HISTORY_A ".git' fsck --strict --no-dangling 2>&1)\" &&"
		" test -z \"$(find '%s' -name '*.lock' -o -name 'tmp_*')\"",
		folder, folder);
	shell(line);
}

TEST(store, a_copy_of_what_is_recorded_meanwhile_is_whole)
{
	struct hfix *fx = hfix_make();
	char into[128], line[256];
	fx->keeping = (struct history_keeping){20, 3600000, 1};
	hfix_open(fx);
	record_some(fx, 0, 30);
	for (unsigned round = 0; round < 8; round++) {
		struct err err;
		size_t n = 0;
		struct tape *last = NULL;
		unsigned first = 30 + 40 * round;
		for (unsigned i = first; i < first + 40; i++) {
			char id[16];
			(void)snprintf(id, sizeof id, "m%u", i);
			last = record_cell(fx, id, id, "text\n");
		}
		(void)snprintf(into, sizeof into, "%s-copy", fx->folder);
		if (histories_snapshot(fx->folder, into, &n, &err) != 0)
			fail_msg("%s", err.text);
		assert_int_equal(n, 1);
		assert_whole(into);
		assert_true(count_in(into) >= first);
		await_fine(fx, last);
		struct history_counts counts;
		assert_int_equal(histories_reindex(into, NULL, &counts, &err), 0);
		assert_int_equal(counts.histories, 1);
		assert_true(counts.nodes >= first && counts.nodes <= first + 40);
		(void)snprintf(line, sizeof line, "rm -rf '%s'", into);
		shell(line);
	}
	assert_sound(fx, HISTORY_A);
	hfix_free(fx);
}

TEST(store, the_index_is_made_anew_only_without_a_gateway)
{
	struct hfix *fx = hfix_new();
	struct history_counts counts;
	struct err err;
	record_some(fx, 0, 7);
	struct history_question q = {.what = HISTORY_ONE, .history = HISTORY_A};
	assert_int_equal(ask(fx, &q), 0);
	char *before = strdup(fx->json);
	assert_int_equal(histories_reindex(fx->folder, NULL, &counts, &err), E_UNAVAILABLE);
	hfix_close(fx);
	assert_int_equal(histories_reindex(fx->folder, NULL, &counts, &err), 0);
	assert_int_equal(counts.histories, 1);
	assert_int_equal(counts.nodes, 7);
	hfix_open(fx);
	assert_int_equal(ask(fx, &q), 0);
	assert_string_equal(fx->json, before);
	free(before);
	assert_int_equal(histories_reindex("/nonexistent", NULL, &counts, &err), E_NOT_FOUND);
	hfix_free(fx);
}

RUN(TEST_ROW(store, a_copy_of_what_is_recorded_meanwhile_is_whole),
	TEST_ROW(store, the_index_is_made_anew_only_without_a_gateway))
