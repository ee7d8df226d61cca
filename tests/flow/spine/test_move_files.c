/* A kernel goes back, and its working folder with it: what is there is recorded first, what was
 * there is laid down, and whatever fails leaves the folder as it was. */
#include "tests/lib/told_fixture.h"

#define ENTRIES(list)                                                                              \
	"{\"history\":\"h\",\"node\":\"" NODE                                                      \
	"\",\"recorded\":true,\"lost\":[],\"entries\":[" list "]}"
#define HELD	     ENTRIES(ENTRY("a.csv", BLOB_A))
#define NOT_RECORDED "{\"recorded\":false,\"entries\":[],\"lost\":[]}"
#define LOST_FILE                                                                                  \
	ENTRIES("{\"path\":\"big.bin\",\"mode\":\"100644\",\"bytes\":300000000,\"lost\":\"over "   \
		"the budget\"}")

/* Three cells ran; the first wrote a file, the third wrote over it. The second one is parked. */
static struct fixture *with_three(struct page **ret_page)
{
	struct fixture *fx = with_files();
	*ret_page = page_open(fx, "s1");
	runs(fx, *ret_page, "a", "changed");
	tells(fx, "a", A_CSV);
	runs(fx, *ret_page, "b", "same");
	runs(fx, *ret_page, "c", "changed");
	tells(fx, "c", CHANGE("false", ENTRY("a.csv", BLOB_B), ""));
	record_all(fx);
	assert_int_equal(n_runs(fx), 3);
	assert_int_equal(fx->desk->scribe.state_version, 3);
	fake_kernel_parks(fx->kernel, 5, "b", TEXT);
	advance(fx, 1); /* another microsecond, another epoch */
	return fx;
}

static void to_scan(struct fixture *fx, const struct move_order *order, struct outcome_of *o)
{
	go(fx, order, o);
	tell_way(fx, "b");
	assert_true(*fake_kernel_scans(fx->kernel));
	assert_int_equal(fake_kernel_revives(fx->kernel), 0);
}

static void to_fetch(struct fixture *fx, const struct move_order *order, struct outcome_of *o)
{
	to_scan(fx, order, o);
	tells(fx, fake_kernel_scans(fx->kernel), NOTHING);
	assert_int_equal(fake_histories_asked(fx->gw.histories)->what, HISTORY_FILES);
	assert_string_equal(fake_histories_asked(fx->gw.histories)->node, NODE);
}

static void to_lay(struct fixture *fx, const struct move_order *order, struct outcome_of *o)
{
	to_fetch(fx, order, o);
	assert_true(fake_histories_tell(fx->gw.histories, HELD));
	assert_non_null(fake_kernel_lays(fx->kernel));
}

static void to_revival(struct fixture *fx, const struct move_order *order, struct outcome_of *o)
{
	to_lay(fx, order, o);
	fake_kernel_laid(fx->kernel, NULL);
	assert_int_equal(fake_kernel_revives(fx->kernel), 5);
	assert_int_equal(o->n, 0);
}

static void assert_as_before(
	struct fixture *fx, struct page *p, struct outcome_of *o, int code, const char *id)
{
	settle(fx);
	assert_outcome(o, code);
	assert_null(fake_kernel_lays(fx->kernel));
	assert_string_not_equal(fake_kernel_lay_ended(fx->kernel), "kept");
	assert_int_equal(fake_kernel_revives(fx->kernel), 0);
	assert_state(fx, "idle");
	assert_string_equal(fx->desk->at.node, "");
	/* What is told goes on from the folder as it was. */
	runs(fx, p, id, "changed");
	tells(fx, id, B_CSV);
	record_all(fx);
	assert_string_equal(last_run(fx)->at, "");
	assert_facts(fx, BLOB_B);
}

TEST(move_files, the_folder_goes_back_with_the_kernel)
{
	struct page *p;
	struct fixture *fx = with_three(&p);
	struct outcome_of o = {0};
	to_lay(fx, &fine, &o);
	assert_string_equal(
		fake_kernel_lays(fx->kernel), "{\"entries\":[" ENTRY("a.csv", BLOB_A) "]}");
	fake_kernel_needs(fx->kernel, "[\"" BLOB_A "\"]", false);
	assert_string_equal(fake_kernel_given(fx->kernel), "");
	fake_kernel_needs(fx->kernel, "[\"" BLOB_B "\"]", true);
	settle(fx);
	assert_string_equal(fake_kernel_given(fx->kernel), BLOB_A "=of_a " BLOB_B "=of_b ");
	fake_kernel_room(fx->kernel);
	execute(p, "d"); /* it waits */
	fake_kernel_laid(fx->kernel, NULL);
	assert_string_equal(fake_kernel_lay_ended(fx->kernel), ""); /* it can still be put back */
	fake_kernel_proves(fx->kernel, MOVED); /* no signature is as it was: they are new files */
	assert_outcome(&o, 0);
	assert_string_equal(fake_kernel_lay_ended(fx->kernel), "kept");
	const cJSON *report = cJSON_GetObjectItem(o.answer, "report");
	assert_string_equal(cJSON_GetStringValue(cJSON_GetObjectItem(report, "fidelity")), "exact");
	answers_with(fx, "d", "{\"coppice\":{\"files\":\"same\"}}");
	record_all(fx);
	assert_string_equal(last_run(fx)->at, NODE);
	assert_no_facts(fx); /* it has those of the node */
	runs(fx, p, "e", "changed");
	tells(fx, "e", B_CSV);
	record_all(fx);
	assert_facts(fx, "\"full\":false,\"changed\":[" ENTRY("b.csv", BLOB_B) "]");
	page_pull_all(fx, p);
	size_t said = page_find(p, 0, "stream", "", "Gone back");
	assert_true(holds(p->got[said], "The working folder holds the files that it held then"));
	done(fx, p, &o);
}

TEST(move_files, what_changed_while_no_cell_ran_is_a_node_before_anything_goes)
{
	static const struct move_order back = {.node = "HEAD~1", .state_version = 3};
	struct page *p;
	struct fixture *fx = with_three(&p);
	struct outcome_of o = {0};
	to_scan(fx, &back, &o);
	tells(fx, fake_kernel_scans(fx->kernel), CHANGE("false", ENTRY("up.csv", BLOB_C), ""));
	assert_string_equal(fake_kernel_wants(fx->kernel), BLOB_C " last");
	assert_int_equal(n_runs(fx), 4);
	assert_string_equal(last_run(fx)->end->msg_type, SCRIBE_FILES);
	assert_string_equal(last_run(fx)->request->msg_id, last_run(fx)->end->msg_id);
	assert_facts(fx, "\"files\":{\"full\":false,\"changed\":[" ENTRY("up.csv", BLOB_C) "]");
	assert_int_equal(o.n, 0);
	fake_histories_answer(fx->gw.histories, 0);
	/* HEAD has moved: the way is another one, to the same node. */
	const struct history_question *q = fake_histories_asked(fx->gw.histories);
	assert_int_equal(q->what, HISTORY_WAY);
	assert_string_equal(q->node, NODE);
	assert_true(fake_histories_tell(fx->gw.histories, way_to(fx, "b")));
	assert_int_equal(fake_histories_asked(fx->gw.histories)->what, HISTORY_FILES);
	assert_true(fake_histories_tell(fx->gw.histories, HELD));
	fake_kernel_laid(fx->kernel, NULL);
	fake_kernel_proves(fx->kernel, MOVED);
	assert_outcome(&o, 0);
	assert_int_equal(cJSON_GetObjectItem(o.answer, "state_version")->valueint, 5);
	done(fx, p, &o);
}

TEST(move_files, where_none_were_recorded_it_is_as_without_them)
{
	static const struct move_order lax = {
		.node = "In[2]", .state_version = -1, .accept = FIDELITY_PARTIAL};
	struct page *p;
	struct fixture *fx = with_three(&p);
	struct outcome_of o = {0};
	to_fetch(fx, &lax, &o);
	assert_true(fake_histories_tell(fx->gw.histories, NOT_RECORDED));
	assert_null(fake_kernel_lays(fx->kernel));
	assert_int_equal(fake_kernel_revives(fx->kernel), 5);
	fake_kernel_proves(fx->kernel, MOVED);
	assert_outcome(&o, 0);
	page_pull_all(fx, p);
	size_t said = page_find(p, 0, "stream", "", "Gone back");
	assert_true(holds(p->got[said], "Files of the working folder are not as they were"));
	/* Whose files the next run has, it says itself. */
	runs(fx, p, "d", "same");
	record_all(fx);
	assert_facts(fx, "\"full\":true,\"changed\":[" ENTRY("a.csv", BLOB_B) "]");
	done(fx, p, &o);
}

TEST(move_files, a_file_that_was_not_kept_is_in_the_report)
{
	static const struct move_order lax = {
		.node = "In[2]", .state_version = -1, .accept = FIDELITY_PARTIAL};
	struct page *p;
	struct fixture *fx = with_three(&p);
	struct outcome_of o = {0};
	to_fetch(fx, &fine, &o);
	assert_true(fake_histories_tell(fx->gw.histories, LOST_FILE));
	assert_as_before(fx, p, &o, E_PARTIAL, "d");
	to_fetch(fx, &lax, &o);
	assert_true(fake_histories_tell(fx->gw.histories, LOST_FILE));
	fake_kernel_laid(fx->kernel, NULL);
	fake_kernel_proves(fx->kernel, TEXT);
	assert_outcome(&o, 0);
	const cJSON *lost = cJSON_GetArrayItem(
		cJSON_GetObjectItem(cJSON_GetObjectItem(o.answer, "report"), "lost"), 0);
	assert_string_equal(cJSON_GetStringValue(cJSON_GetObjectItem(lost, "name")), "big.bin");
	assert_string_equal(cJSON_GetStringValue(cJSON_GetObjectItem(lost, "kind")), "file");
	done(fx, p, &o);
}

TEST(move_files, what_is_not_answered_leaves_the_folder_as_it_was)
{
	struct page *p;
	struct fixture *fx = with_three(&p);
	struct outcome_of o = {0};
	to_scan(fx, &fine, &o);
	advance(fx, 9999);
	assert_int_equal(o.n, 0);
	advance(fx, 1);
	assert_as_before(fx, p, &o, E_TIMEOUT, "d");
	to_lay(fx, &fine, &o);
	advance(fx, 29999);
	fake_kernel_needs(fx->kernel, "[\"" BLOB_A "\"]", true); /* a sign of it */
	settle(fx);
	advance(fx, 29999);
	assert_int_equal(o.n, 0);
	advance(fx, 1);
	assert_string_equal(fake_kernel_lay_ended(fx->kernel), "put back");
	assert_as_before(fx, p, &o, E_TIMEOUT, "e");
	done(fx, p, &o);
}

TEST(move_files, what_fails_on_the_way_leaves_the_folder_as_it_was)
{
	struct page *p;
	struct fixture *fx = with_three(&p);
	struct outcome_of o = {0};
	to_fetch(fx, &fine, &o);
	assert_true(fake_histories_tell(fx->gw.histories, NULL));
	assert_as_before(fx, p, &o, E_NOT_FOUND, "d");
	to_lay(fx, &fine, &o);
	fake_kernel_laid(fx->kernel, "no space left");
	assert_non_null(strstr(o.text, "no space left"));
	assert_as_before(fx, p, &o, E_UNAVAILABLE, "e");
	to_lay(fx, &fine, &o); /* a content that history has not */
	fake_kernel_needs(fx->kernel, "[\"" CHUNK "\"]", true);
	settle(fx);
	assert_string_equal(fake_kernel_given(fx->kernel), CHUNK "=none ");
	fake_kernel_laid(fx->kernel, "a content is missing");
	assert_as_before(fx, p, &o, E_UNAVAILABLE, "f");
	to_revival(fx, &fine, &o);
	fake_kernel_not_revived(fx->kernel, E_TIMEOUT);
	assert_string_equal(fake_kernel_lay_ended(fx->kernel), "put back");
	assert_as_before(fx, p, &o, E_PARTIAL, "g");
	to_scan(fx, &fine, &o); /* what it says makes no sense: it is not recorded, so it stays */
	tells(fx, fake_kernel_scans(fx->kernel), "[]");
	settle(fx);
	assert_outcome(&o, E_INVALID);
	assert_null(fake_kernel_lays(fx->kernel));
	done(fx, p, &o);
}

/* The content comes when nobody lays anything any more. */
TEST(move_files, a_lay_that_ends_while_contents_are_read)
{
	struct page *p;
	struct fixture *fx = with_three(&p);
	struct outcome_of o = {0};
	to_lay(fx, &fine, &o);
	fake_histories_hold(fx->gw.histories, true);
	fake_kernel_needs(fx->kernel, "[\"" BLOB_A "\",\"" BLOB_B "\"]", true);
	fake_kernel_laid(fx->kernel, "no space left");
	assert_outcome(&o, E_UNAVAILABLE);
	fake_histories_hold(fx->gw.histories, false);
	assert_as_before(fx, p, &o, E_UNAVAILABLE, "d");
	assert_string_equal(fake_kernel_given(fx->kernel), "");
	done(fx, p, &o);
}

static void restart(struct fixture *fx)
{
	desk_restart(fx->desk, nothing, NULL);
	settle(fx);
	fake_kernel_ready(fx->kernel);
	settle(fx);
}

TEST(move_files, a_restart_on_the_way_puts_it_back)
{
	static void (*const ways[])(struct fixture *, const struct move_order *,
		struct outcome_of *) = {to_scan, to_fetch, to_lay, to_revival};
	for (size_t i = 0; i < ARRAY_LEN(ways); i++) {
		struct page *p;
		struct fixture *fx = with_three(&p);
		struct outcome_of o = {0};
		ways[i](fx, &fine, &o);
		restart(fx);
		assert_string_equal(fake_kernel_lay_ended(fx->kernel), i < 2 ? "" : "put back");
		assert_as_before(fx, p, &o, E_GONE, "d");
		done(fx, p, &o);
	}
}

TEST(move_files, the_end_of_the_kernel_on_the_way)
{
	static void (*const ways[])(struct fixture *, const struct move_order *,
		struct outcome_of *) = {to_scan, to_fetch, to_lay, to_revival};
	for (size_t i = 0; i < ARRAY_LEN(ways); i++) {
		struct page *p;
		struct fixture *fx = with_three(&p);
		struct outcome_of o = {0};
		ways[i](fx, &fine, &o);
		desk_end(fx->desk, NULL, NULL, NULL);
		settle(fx);
		assert_outcome(&o, E_GONE);
		done(fx, p, &o);
	}
}

TEST(move_files, a_kill_on_the_way_has_moved_nothing)
{
	static void (*const ways[])(struct fixture *, const struct move_order *,
		struct outcome_of *) = {to_scan, to_fetch, to_lay, to_revival};
	for (size_t i = 0; i < ARRAY_LEN(ways); i++) {
		struct page *p;
		struct fixture *fx = with_three(&p);
		struct outcome_of o = {0};
		uint64_t epoch = fx->desk->epoch;
		ways[i](fx, &fine, &o);
		struct fixture *next = after_a_kill(fx);
		struct page *q = page_open(next, "s1");
		fake_kernel_files_on(next->kernel);
		fake_kernel_ready(next->kernel);
		replay_is_over(next);
		/* The container has put everything back, and tells what there is. */
		tells(next, fake_kernel_scans(next->kernel),
			CHANGE("true", ENTRY("a.csv", BLOB_B), ""));
		runs(next, q, "d", "same");
		record_all(next);
		assert_string_equal(last_run(next)->at, "");
		assert_int_equal(last_run(next)->epoch, epoch);
		assert_facts(next, "\"full\":true,\"changed\":[" ENTRY("a.csv", BLOB_B) "]");
		page_leave(q, 0);
		next_free(next);
		done(fx, p, &o);
	}
}

TEST(move_files, the_next_gateway_stands_at_a_node_of_files_too)
{
	struct page *p;
	struct fixture *fx = with_three(&p);
	struct outcome_of o = {0};
	struct fixture *next = after_a_kill(fx);
	char way[2048], *at;
	(void)snprintf(way, sizeof way, "%s", way_to(next, "b"));
	at = strstr(way, "\"kind\":\"execution\"");
	memcpy(at, "\"kind\":    \"files\" ", strlen("\"kind\":\"execution\""));
	assert_true(fake_histories_tell(next->gw.histories, way));
	assert_string_equal(next->desk->scribe.node, NODE);
	next_free(next);
	done(fx, p, &o);
}

/* ---- each call fails in turn ---- */

static void move_whole(struct fixture *fx, struct outcome_of *o)
{
	struct histories *h = fx->gw.histories;
	go(fx, &fine, o);
	if (o->n == 0)
		(void)fake_histories_tell(h, way_to(fx, "b"));
	settle(fx);
	if (o->n == 0 && *fake_kernel_scans(fx->kernel))
		tells(fx, fake_kernel_scans(fx->kernel), NOTHING);
	if (o->n == 0 && fake_histories_asked(h)->what == HISTORY_FILES)
		(void)fake_histories_tell(h, HELD);
	if (o->n == 0 && fake_kernel_lays(fx->kernel)) {
		fake_kernel_needs(fx->kernel, "[\"" BLOB_A "\"]", true);
		settle(fx);
	}
	if (o->n == 0 && fake_kernel_lays(fx->kernel))
		fake_kernel_laid(fx->kernel, NULL);
	if (o->n == 0 && fake_kernel_revives(fx->kernel))
		fake_kernel_proves(fx->kernel, MOVED);
	settle(fx);
}

TEST(move_files, whichever_call_fails_all_of_it_is_there_or_nothing)
{
	struct fault fault = {0};
	unsigned nth = 1;
	for (; fault_arm(&fault, nth); nth++) {
		struct page *p;
		struct fixture *fx = with_three(&p);
		struct outcome_of o = {0};
		*fake_bridge_fault(fx->gw.bridge) = fault;
		move_whole(fx, &o);
		fault = *fake_bridge_fault(fx->gw.bridge);
		*fake_bridge_fault(fx->gw.bridge) = (struct fault){0};
		assert_int_equal(o.n, 1);
		assert_null(fake_kernel_lays(fx->kernel));
		if (o.code == 0)
			assert_string_equal(fake_kernel_lay_ended(fx->kernel), "kept");
		else
			assert_as_before(fx, p, &o, o.code, "d");
		done(fx, p, &o);
	}
	assert_true(nth > 5);
}

RUN(TEST_ROW(move_files, the_folder_goes_back_with_the_kernel),
	TEST_ROW(move_files, what_changed_while_no_cell_ran_is_a_node_before_anything_goes),
	TEST_ROW(move_files, where_none_were_recorded_it_is_as_without_them),
	TEST_ROW(move_files, a_file_that_was_not_kept_is_in_the_report),
	TEST_ROW(move_files, what_is_not_answered_leaves_the_folder_as_it_was),
	TEST_ROW(move_files, what_fails_on_the_way_leaves_the_folder_as_it_was),
	TEST_ROW(move_files, a_lay_that_ends_while_contents_are_read),
	TEST_ROW(move_files, a_restart_on_the_way_puts_it_back),
	TEST_ROW(move_files, the_end_of_the_kernel_on_the_way),
	TEST_ROW(move_files, a_kill_on_the_way_has_moved_nothing),
	TEST_ROW(move_files, the_next_gateway_stands_at_a_node_of_files_too),
	TEST_ROW(move_files, whichever_call_fails_all_of_it_is_there_or_nothing))
