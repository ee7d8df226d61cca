/* An execution's record has what its container tells of the working folder; it waits for that, and
 * nothing else does. */
#include "tests/lib/told_fixture.h"

TEST(files, a_change_goes_with_the_run_that_made_it)
{
	struct fixture *fx = with_files();
	struct page *p = page_open(fx, "s1");
	runs(fx, p, "a", "changed");
	assert_int_equal(n_runs(fx), 0); /* its record waits */
	assert_execution(fx, "a", "done", "ok");
	page_pull_all(fx, p);
	assert_true(page_has_end(p, "a", "execute_reply"));
	fake_kernel_files(fx->kernel, "a", A_CSV);
	assert_string_equal(fake_kernel_wants(fx->kernel), "");
	settle(fx); /* history says what it lacks */
	assert_string_equal(fake_kernel_wants(fx->kernel), BLOB_A " last");
	assert_int_equal(n_runs(fx), 0);
	fake_kernel_content(fx->kernel, BLOB_A, "of_a");
	record_all(fx);
	assert_int_equal(n_runs(fx), 1);
	assert_string_equal(fake_histories_kept(fx->gw.histories), BLOB_A "=of_a ");
	/* The first one has all of the folder, there being nothing before it. */
	assert_facts(fx, ",\"files\":{\"full\":true,\"changed\":[" ENTRY("a.csv", BLOB_A) "]");
	runs(fx, p, "b", "later");
	tells(fx, "b", CHANGE("false", ENTRY("b.csv", BLOB_A), "\"a.csv\""));
	record_all(fx);
	/* What is there is not asked for. */
	assert_string_equal(fake_kernel_wants(fx->kernel), "last");
	assert_facts(fx, ",\"files\":{\"full\":false,\"changed\":[" ENTRY(
				 "b.csv", BLOB_A) "],\"removed\":[\"a.csv\"]");
	runs(fx, p, "c", "same");
	record_all(fx);
	assert_int_equal(n_runs(fx), 3);
	assert_no_facts(fx);
	runs(fx, p, "d", "later"); /* it looked the same after all */
	assert_int_equal(n_runs(fx), 3);
	tells(fx, "d", NOTHING);
	record_all(fx);
	assert_int_equal(n_runs(fx), 4);
	assert_no_facts(fx);
	files_done_with(fx, p);
}

TEST(files, the_first_run_says_that_its_folder_is_empty)
{
	struct fixture *fx = with_files();
	struct page *p = page_open(fx, "s1");
	runs(fx, p, "a", "same");
	assert_facts(fx, ",\"files\":{\"full\":true,\"changed\":[],\"removed\":[]");
	record_all(fx);
	runs(fx, p, "b", "same");
	record_all(fx);
	assert_no_facts(fx);
	files_done_with(fx, p);
}

TEST(files, it_may_come_before_the_end_of_its_cell)
{
	struct fixture *fx = with_files();
	struct page *p = page_open(fx, "s1");
	execute(p, "a");
	tells(fx, "a", A_CSV);
	answers_with(fx, "a", "{\"coppice\":{\"files\":\"changed\"}}");
	record_all(fx);
	assert_facts(fx, BLOB_A);
	execute(p, "b");
	fake_kernel_files(fx->kernel, "b", B_CSV); /* all but its content */
	answers_with(fx, "b", "{\"coppice\":{\"files\":\"changed\"}}");
	advance(fx, 110);
	assert_int_equal(n_runs(fx), 1);
	fake_kernel_content(fx->kernel, BLOB_B, "of_b");
	record_all(fx);
	assert_facts(fx, BLOB_B);
	files_done_with(fx, p);
}

TEST(files, what_is_not_told_in_time_is_told_with_the_next_one)
{
	struct fixture *fx = with_files();
	struct page *p = page_open(fx, "s1");
	runs(fx, p, "z", "same");
	record_all(fx);
	runs(fx, p, "a", "changed");
	runs(fx, p, "b", "same"); /* later records wait behind it, executions do not */
	assert_int_equal(n_runs(fx), 1);
	advance(fx, 10000);
	record_all(fx);
	assert_int_equal(n_runs(fx), 3);
	assert_true(holds(fake_histories_run(fx->gw.histories, 1)->end,
		",\"files_reason\":\"not told in time\""));
	assert_no_facts(fx);
	tells(fx, "a", A_CSV); /* late: of nobody any more */
	runs(fx, p, "c", "changed");
	tells(fx, "c", B_CSV);
	record_all(fx);
	assert_facts(fx, "\"full\":true");
	assert_facts(fx, BLOB_A);
	assert_facts(fx, BLOB_B);
	runs(fx, p, "d", "changed");
	advance(fx, 10000);
	record_all(fx);
	tells(fx, "d", CHANGE("false", ENTRY("c.csv", BLOB_C), ""));
	runs(fx, p, "e", "same"); /* which has nothing of its own to say */
	record_all(fx);
	assert_facts(fx, "\"full\":true");
	assert_facts(fx, BLOB_C);
	files_done_with(fx, p);
}

TEST(files, a_content_that_never_comes_holds_up_no_record_for_long)
{
	struct fixture *fx = with_files();
	struct page *p = page_open(fx, "s1");
	runs(fx, p, "a", "changed");
	fake_kernel_files(fx->kernel, "a", A_CSV);
	advance(fx, 10000);
	record_all(fx);
	assert_facts(fx, "\"files_reason\":\"not told in time\"");
	/* It comes at last: nobody waits, but it is kept. */
	fake_kernel_content(fx->kernel, BLOB_B, "of another");
	fake_kernel_content(fx->kernel, BLOB_A, "of_a");
	settle(fx);
	assert_string_equal(fake_histories_kept(fx->gw.histories), BLOB_A "=of_a ");
	runs(fx, p, "b", "changed");
	tells(fx, "b", B_CSV);
	record_all(fx);
	assert_facts(fx, BLOB_A);
	files_done_with(fx, p);
}

/* History makes such an entry `lost` as it records it. */
TEST(files, what_is_not_to_be_had_or_not_what_it_says_is_left_out)
{
	struct fixture *fx = with_files();
	struct page *p = page_open(fx, "s1");
	runs(fx, p, "a", "changed");
	fake_kernel_files(fx->kernel, "a",
		CHANGE("false",
			ENTRY("a", BLOB_A) "," ENTRY("b", BLOB_B) "," ENTRY(
				"c", BLOB_C) ","
					     "{\"path\":\"d\",\"mode\":\"100755\",\"bytes\":"
					     "2000000,\"chunks\":["
					     "\"" CHUNK "\"]},"
					     "{\"path\":\"e\",\"mode\":\"100644\",\"bytes\":9,"
					     "\"lost\":\"why\"},"
					     "{\"path\":\"f\",\"mode\":\"40000\"}",
			""));
	settle(fx);
	fake_kernel_content(fx->kernel, BLOB_A, NULL);
	fake_kernel_content(fx->kernel, BLOB_B, "bad hash"); /* as history finds */
	fake_kernel_content(fx->kernel, BLOB_C, "longer than nine bytes");
	fake_kernel_content(fx->kernel, CHUNK, "of_d");
	record_all(fx);
	assert_int_equal(n_runs(fx), 1);
	assert_string_equal(fake_histories_kept(fx->gw.histories), CHUNK "=of_d ");
	assert_facts(fx, "\"lost\":\"why\"");
	files_done_with(fx, p);
}

TEST(files, contents_are_asked_for_in_portions)
{
	struct fixture *fx = with_files();
	struct page *p = page_open(fx, "s1");
	char change[4096], wants[2048];
	int n = snprintf(change, sizeof change,
		"{\"full\":false,\"changed\":[{\"path\":\"big\",\"mode\":\"100644\",\"bytes\":"
		"9437184,\"chunks\":[");
	for (int i = 0; i < 9; i++)
		n += snprintf(
			change + n, sizeof change - (size_t)n, "%s\"%064x\"", i ? "," : "", i);
	(void)snprintf(change + n, sizeof change - (size_t)n, "]}],\"removed\":[],\"lost\":[]}");
	runs(fx, p, "a", "changed");
	fake_kernel_files(fx->kernel, "a", change);
	settle(fx);
	for (int i = 0; i < 9; i++) {
		if (i % 4 == 0) {
			(void)snprintf(wants, sizeof wants, "%064x", i);
			assert_memory_equal(fake_kernel_wants(fx->kernel), wants, 64);
			bool is_last = strstr(fake_kernel_wants(fx->kernel), "last");
			assert_int_equal(is_last, i == 8);
			assert_true(fx->gw.kernels->files_bytes <= 4u << 20);
		}
		(void)snprintf(wants, sizeof wants, "%064x", i);
		fake_kernel_content(fx->kernel, wants, "x");
		settle(fx);
	}
	assert_int_equal(fx->gw.kernels->files_bytes, 0);
	record_all(fx);
	assert_facts(fx, "\"big\"");
	files_done_with(fx, p);
}

TEST(files, what_makes_no_sense_harms_what_builds_on_it_alone)
{
	static const char *const bad[] = {"", "[]", "{}", "{\"full\":1}",
		"{\"full\":false,\"changed\":{},\"removed\":[],\"lost\":[]}",
		CHANGE("false", "7", ""), CHANGE("false", "", "7"),
		CHANGE("false", ENTRY("", BLOB_A), ""), CHANGE("false", ENTRY("/a", BLOB_A), ""),
		CHANGE("false", ENTRY("a/../b", BLOB_A), ""),
		CHANGE("false", ENTRY("a//b", BLOB_A), ""),
		CHANGE("false", ENTRY("./a", BLOB_A), ""),
		CHANGE("false", ENTRY("a\\nb", BLOB_A), ""), CHANGE("false", ENTRY("a", "12"), ""),
		CHANGE("false", ENTRY("a", "../../../../../../../../../../etc/passwd"), ""),
		CHANGE("false", "{\"path\":\"a\",\"mode\":\"100644\",\"bytes\":1}", ""),
		CHANGE("false", "{\"path\":\"a\",\"mode\":\"777\",\"bytes\":1,\"lost\":\"\"}", ""),
		CHANGE("false", "{\"path\":\"a\",\"mode\":\"40000\",\"blob\":\"" BLOB_A "\"}", ""),
		CHANGE("false", "", "\"../a\"")};
	struct fixture *fx = with_files();
	struct page *p = page_open(fx, "s1");
	for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
		char id[8];
		(void)snprintf(id, sizeof id, "a%zu", i);
		runs(fx, p, id, "changed");
		fake_kernel_files(fx->kernel, id, bad[i]);
		assert_string_equal(fake_kernel_wants(fx->kernel), "last");
		record_all(fx);
		assert_facts(fx, "\"files_reason\":\"");
		assert_int_equal(n_runs(fx), i + 1);
	}
	/* What follows on what is not known is not recorded either, until all is told, which is
	 * asked for. */
	assert_true(*fake_kernel_scans(fx->kernel) && fake_kernel_scans_all(fx->kernel));
	runs(fx, p, "b", "changed");
	tells(fx, "b", A_CSV);
	record_all(fx);
	assert_facts(fx, "\"files_reason\":\"it follows on what was not told\"");
	runs(fx, p, "c", "same");
	record_all(fx);
	assert_no_facts(fx);
	runs(fx, p, "d", "changed");
	tells(fx, "d", CHANGE("true", ENTRY("b.csv", BLOB_B), ""));
	record_all(fx);
	assert_facts(fx, "\"full\":true,\"changed\":[" ENTRY("b.csv", BLOB_B) "]");
	files_done_with(fx, p);
}

TEST(files, another_process_or_history_begins_with_all_of_it)
{
	struct fixture *fx = with_files();
	struct page *p = page_open(fx, "s1");
	runs(fx, p, "a", "changed");
	tells(fx, "a", A_CSV);
	record_all(fx);
	advance(fx, 1);
	desk_restart(fx->desk, nothing, NULL);
	settle(fx);
	fake_kernel_ready(fx->kernel);
	runs(fx, p, "b", "same");
	record_all(fx);
	assert_facts(fx, "\"full\":true,\"changed\":[" ENTRY("a.csv", BLOB_A) "]");
	scribe_continue(fx->desk, "walk");
	runs(fx, p, "c", "same");
	record_all(fx);
	assert_facts(fx, "\"full\":true,\"changed\":[" ENTRY("a.csv", BLOB_A) "]");
	/* Another container: its folder is another one. */
	fake_kernel_moves_house(fx->kernel);
	runs(fx, p, "d", "same");
	record_all(fx);
	assert_facts(fx, "\"full\":true,\"changed\":[]");
	files_done_with(fx, p);
}

TEST(files, one_that_ends_before_it_is_told_does_not_pass_for_the_next_process)
{
	struct fixture *fx = with_files();
	struct page *p = page_open(fx, "s1");
	runs(fx, p, "a", "changed");
	advance(fx, 1);
	desk_restart(fx->desk, nothing, NULL);
	settle(fx);
	fake_kernel_ready(fx->kernel);
	tells(fx, "a", A_CSV);
	record_all(fx);
	assert_facts(fx, BLOB_A);
	runs(fx, p, "b", "same");
	record_all(fx);
	assert_facts(fx, "\"full\":true,\"changed\":[" ENTRY("a.csv", BLOB_A) "]");
	files_done_with(fx, p);
}

TEST(files, nobody_waits_for_a_container_that_tells_nothing)
{
	struct fixture *fx = with_histories();
	struct page *p = page_open(fx, "s1");
	runs(fx, p, "a", "changed"); /* a guest's word */
	assert_int_equal(n_runs(fx), 1);
	assert_no_facts(fx);
	files_done_with(fx, p);
}

/* History fails for long: what waits for it in memory is bounded. */
TEST(files, what_waits_to_be_recorded_is_bounded)
{
	static char change[3 << 20];
	struct fixture *fx = with_files();
	struct page *p = page_open(fx, "s1");
	size_t n = 0;
	char id[8];
	for (unsigned i = 0; i < 16; i++) {
		int len = snprintf(change, sizeof change,
			"{\"full\":true,\"removed\":[],\"lost\":[],\"changed\":[");
		for (unsigned k = 0; k < 19000; k++)
			len += snprintf(change + len, sizeof change - (size_t)len,
				"%s{\"path\":\"%u-%090u\",\"mode\":\"40000\"}", k ? "," : "", i, k);
		(void)snprintf(change + len, sizeof change - (size_t)len, "]}");
		(void)snprintf(id, sizeof id, "a%u", i);
		runs(fx, p, id, "changed");
		tells(fx, id, change);
		assert_true(fx->desk->files.carried_bytes <= 32u << 20);
	}
	for (; n < 16; n++) {
		if (holds(fake_histories_run(fx->gw.histories, n)->end, "too much waits"))
			break;
	}
	assert_true(n > 5 && n < 16);
	record_all(fx);
	assert_int_equal(fx->desk->files.carried_bytes, 0);
	files_done_with(fx, p);
}

/* As of a notebook that is run by a program, which ends the kernel with the last reply. */
TEST(files, an_end_waits_a_moment_for_the_last_cell)
{
	struct fixture *fx = with_files();
	struct page *p = page_open(fx, "s1");
	runs(fx, p, "a", "changed");
	page_leave(p, 0);
	desk_end(fx->desk, NULL, NULL, NULL);
	settle(fx);
	assert_int_equal(fake_bridge_kernels(fx->gw.bridge), 1);
	tells(fx, "a", A_CSV);
	record_all(fx);
	assert_int_equal(n_runs(fx), 1);
	assert_facts(fx, BLOB_A);
	assert_int_equal(fake_bridge_kernels(fx->gw.bridge), 0);
	fixture_free(fx);
}

TEST(files, an_end_waits_a_moment_only)
{
	struct fixture *fx = with_files();
	struct page *p = page_open(fx, "s1");
	runs(fx, p, "a", "changed");
	page_leave(p, 0);
	desk_end(fx->desk, NULL, NULL, NULL);
	advance(fx, 1999);
	assert_int_equal(fake_bridge_kernels(fx->gw.bridge), 1);
	advance(fx, 1);
	record_all(fx);
	assert_int_equal(n_runs(fx), 1);
	assert_facts(fx, "\"files_reason\":\"the kernel was ended meanwhile\"");
	fixture_free(fx);
}

TEST(files, an_end_while_contents_travel_leaves_nothing)
{
	struct fixture *fx = with_files();
	struct page *p = page_open(fx, "s1");
	runs(fx, p, "a", "changed");
	fake_kernel_files(fx->kernel, "a", A_CSV);
	settle(fx);
	fake_histories_hold(fx->gw.histories, true);
	fake_kernel_content(fx->kernel, BLOB_A, "of_a");
	page_leave(p, 0);
	desk_end(fx->desk, NULL, NULL, NULL);
	advance(fx, 2000);
	record_all(fx);
	assert_int_equal(fx->gw.kernels->files_bytes, 0);
	assert_facts(fx, "\"files_reason\"");
	fixture_free(fx);
}

/* ---- a gateway is killed ---- */

static struct fixture *next_with_files(const struct fixture *fx)
{
	struct fixture *next = after_a_kill(fx);
	fake_kernel_files_on(next->kernel);
	fake_kernel_ready(next->kernel);
	replay_is_over(next);
	return next;
}

TEST(files, a_kill_loses_no_run_and_the_next_one_has_all_of_the_folder)
{
	struct fixture *fx = with_files();
	struct page *p = page_open(fx, "s1");
	runs(fx, p, "a", "changed");
	fake_kernel_files(fx->kernel, "a", A_CSV); /* its content is on its way */
	settle(fx);
	struct fixture *next = next_with_files(fx);
	struct page *q = page_open(next, "s1");
	record_all(next);
	assert_int_equal(n_runs(next), 1);
	assert_no_facts(next);
	assert_true(*fake_kernel_scans(next->kernel) && fake_kernel_scans_all(next->kernel));
	tells(next, fake_kernel_scans(next->kernel), CHANGE("true", ENTRY("a.csv", BLOB_A), ""));
	assert_string_equal(fake_histories_kept(next->gw.histories), BLOB_A "=of_a ");
	assert_int_equal(n_runs(next), 1); /* no node for it alone */
	runs(next, q, "b", "same");
	record_all(next);
	assert_facts(next, "\"full\":true,\"changed\":[" ENTRY("a.csv", BLOB_A) "]");
	page_leave(q, 0);
	next_free(next);
	files_done_with(fx, p);
}

TEST(files, after_a_kill_nothing_is_said_of_a_folder_that_is_not_known)
{
	struct fixture *fx = with_files();
	struct page *p = page_open(fx, "s1");
	runs(fx, p, "a", "changed");
	tells(fx, "a", A_CSV);
	record_all(fx);
	struct fixture *next = next_with_files(fx);
	struct page *q = page_open(next, "s1");
	record_all(next);
	runs(next, q, "b", "changed");
	tells(next, "b", B_CSV); /* of what the earlier gateway was told */
	record_all(next);
	assert_facts(next, "\"files_reason\":\"it follows on what was not told\"");
	tells(next, fake_kernel_scans(next->kernel),
		CHANGE("true", ENTRY("a.csv", BLOB_A) "," ENTRY("b.csv", BLOB_B), ""));
	runs(next, q, "c", "same");
	record_all(next);
	assert_facts(next, "\"full\":true");
	assert_facts(next, BLOB_B);
	page_leave(q, 0);
	next_free(next);
	files_done_with(fx, p);
}

RUN(TEST_ROW(files, a_change_goes_with_the_run_that_made_it),
	TEST_ROW(files, the_first_run_says_that_its_folder_is_empty),
	TEST_ROW(files, it_may_come_before_the_end_of_its_cell),
	TEST_ROW(files, what_is_not_told_in_time_is_told_with_the_next_one),
	TEST_ROW(files, a_content_that_never_comes_holds_up_no_record_for_long),
	TEST_ROW(files, what_is_not_to_be_had_or_not_what_it_says_is_left_out),
	TEST_ROW(files, contents_are_asked_for_in_portions),
	TEST_ROW(files, what_makes_no_sense_harms_what_builds_on_it_alone),
	TEST_ROW(files, another_process_or_history_begins_with_all_of_it),
	TEST_ROW(files, one_that_ends_before_it_is_told_does_not_pass_for_the_next_process),
	TEST_ROW(files, nobody_waits_for_a_container_that_tells_nothing),
	TEST_ROW(files, what_waits_to_be_recorded_is_bounded),
	TEST_ROW(files, an_end_waits_a_moment_for_the_last_cell),
	TEST_ROW(files, an_end_waits_a_moment_only),
	TEST_ROW(files, an_end_while_contents_travel_leaves_nothing),
	TEST_ROW(files, a_kill_loses_no_run_and_the_next_one_has_all_of_the_folder),
	TEST_ROW(files, after_a_kill_nothing_is_said_of_a_folder_that_is_not_known))
