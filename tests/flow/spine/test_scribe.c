/* Each execution reaches the recorder once, in order, whole, whoever carries the gateway on. */
#include "gateway/spine/desk.h"
#include "tests/lib/survive_fixture.h"

static struct fixture *recorded(void)
{
	struct fixture *fx = fixture_new();
	fx->gw.histories = fake_histories_new();
	fake_bridge_survive(fx->gw.bridge);
	assert_int_equal(fixture_start(fx), 0);
	fake_kernel_ready(fx->kernel);
	return fx;
}

static void assert_run(const struct fixture *fx, size_t i, const char *id, const char *status)
{
	const struct fake_run *run = fake_histories_run(fx->gw.histories, i);
	char text[64];
	assert_string_equal(run->request->msg_id, id);
	assert_string_equal(run->end->parent_id, id);
	assert_string_equal(run->end->msg_type, SCRIBE_END);
	(void)snprintf(text, sizeof text, "\"status\":\"%s\"", status);
	assert_true(holds(run->end, text));
}

static size_t waiting(const struct fixture *fx)
{
	return fake_histories_waiting(fx->gw.histories);
}

static void say_yes(struct fixture *fx)
{
	fake_histories_answer(fx->gw.histories, 0);
}

TEST(scribe, an_execution_is_handed_over_once_it_is_in_the_file)
{
	struct fixture *fx = recorded();
	struct page *p = page_open(fx, "s1");
	execute(p, "a");
	kernel_answers(fx, "a", REPLY_OK);
	assert_int_equal(waiting(fx), 0);
	advance(fx, 110);
	assert_int_equal(waiting(fx), 1);
	assert_run(fx, 0, "a", "ok");
	assert_int_equal(fake_histories_run(fx->gw.histories, 0)->n_between, 3);
	say_yes(fx);
	assert_string_equal(fx->desk->scribe.branch, "main");
	page_pull_all(fx, p);
	assert_true(page_has_end(p, "a", "execute_reply"));
	assert_int_equal(page_count(p, SCRIBE_END, NULL, ""), 0);
	assert_int_equal(page_count(p, "execute_request", NULL, ""), 0);
	page_leave(p, 0);
	fixture_free(fx);
}

static void on_told(void *data, const char *msg_id, const char *node)
{
	char *told = data;
	assert_int_equal(strlen(node), HISTORY_NODE_SIZE - 1);
	strcat(told, msg_id);
}

TEST(scribe, who_watches_is_told_each_node)
{
	struct fixture *fx = recorded();
	char told[16] = "";
	kernels_watch(fx->gw.kernels, &(struct kernels_watch){.recorded = on_told, .data = told});
	struct page *p = page_open(fx, "s1");
	execute(p, "a");
	execute(p, "b");
	kernel_answers(fx, "a", REPLY_OK);
	kernel_answers(fx, "b", REPLY_OK);
	advance(fx, 110);
	assert_string_equal(told, "");
	say_yes(fx);
	assert_string_equal(told, "a");
	say_yes(fx);
	assert_string_equal(told, "ab");
	page_leave(p, 0);
	fixture_free(fx);
}

TEST(scribe, what_was_held_behind_an_error_too_and_in_order)
{
	struct fixture *fx = recorded();
	struct page *p = page_open(fx, "s1");
	execute(p, "a");
	execute(p, "b");
	execute(p, "c");
	kernel_answers(fx, "a", REPLY_ERROR);
	advance(fx, 110);
	for (size_t i = 3; i > 0; i--) {
		assert_int_equal(waiting(fx), i);
		say_yes(fx);
	}
	assert_run(fx, 0, "a", "error");
	assert_run(fx, 1, "b", "aborted");
	assert_run(fx, 2, "c", "aborted");
	page_leave(p, 0);
	fixture_free(fx);
}

TEST(scribe, a_request_that_comes_twice_is_one_execution)
{
	struct fixture *fx = recorded();
	struct page *p = page_open(fx, "s1");
	execute(p, "a");
	kernel_answers(fx, "a", REPLY_OK);
	execute(p, "a");
	advance(fx, 110);
	say_yes(fx);
	advance(fx, 110);
	assert_int_equal(waiting(fx), 0);
	assert_int_equal(fake_histories_n(fx->gw.histories), 1);
	page_leave(p, 0);
	fixture_free(fx);
}

TEST(scribe, what_failed_is_tried_again)
{
	struct fixture *fx = recorded();
	struct page *p = page_open(fx, "s1");
	execute(p, "a");
	execute(p, "b");
	kernel_answers(fx, "a", REPLY_OK);
	kernel_answers(fx, "b", REPLY_OK);
	advance(fx, 110);
	fake_histories_answer(fx->gw.histories, E_IO);
	assert_int_equal(waiting(fx), 1);
	fake_histories_answer(fx->gw.histories, E_UNAVAILABLE); /* as the recorder does */
	assert_int_equal(waiting(fx), 0);
	assert_string_equal(fx->desk->scribe.trouble, "as the test says");
	advance(fx, 5000);
	assert_int_equal(waiting(fx), 2);
	say_yes(fx);
	say_yes(fx);
	assert_run(fx, 0, "a", "ok");
	assert_run(fx, 1, "b", "ok");
	assert_string_equal(fx->desk->scribe.trouble, "");
	page_leave(p, 0);
	fixture_free(fx);
}

TEST(scribe, a_kernel_that_dies_tells_how)
{
	struct fixture *fx = recorded();
	struct page *p = page_open(fx, "s1");
	execute(p, "a");
	jmsg_unref(kernel_takes(fx, "a"));
	uint64_t before = fx->desk->epoch;
	advance(fx, 10);
	fake_kernel_die(fx->kernel, DEATH_EXIT, 3, "exit code 3");
	fake_kernel_ready(fx->kernel);
	execute(p, "b");
	kernel_answers(fx, "b", REPLY_OK);
	advance(fx, 110);
	say_yes(fx);
	say_yes(fx);
	assert_run(fx, 0, "a", "died");
	assert_true(holds(fake_histories_run(fx->gw.histories, 0)->end, "\"code\":3"));
	assert_int_equal(fake_histories_run(fx->gw.histories, 0)->epoch, before);
	assert_true(fake_histories_run(fx->gw.histories, 1)->epoch > before);
	page_leave(p, 0);
	fixture_free(fx);
}

TEST(scribe, a_kernel_that_is_ended_leaves_its_journal_until_all_is_recorded)
{
	struct fixture *fx = recorded();
	struct page *p = page_open(fx, "s1");
	execute(p, "a");
	jmsg_unref(kernel_takes(fx, "a"));
	char id[UUID_SIZE];
	(void)snprintf(id, sizeof id, "%s", fx->desk->id);
	assert_true(kernels_hold_history(fx->gw.kernels, &fx->owner, id, NULL));
	assert_false(kernels_hold_history(fx->gw.kernels, &fx->owner, "another", NULL));
	desk_end(fx->desk, "", NULL, NULL);
	page_leave(p, 0);
	advance(fx, 110);
	assert_int_equal(files_left(fx), 1);
	assert_true(kernels_hold_history(fx->gw.kernels, &fx->owner, id, NULL));
	say_yes(fx);
	settle(fx);
	assert_int_equal(files_left(fx), 0);
	assert_false(kernels_hold_history(fx->gw.kernels, &fx->owner, id, NULL));
	assert_run(fx, 0, "a", "died");
	fixture_free(fx);
}

TEST(scribe, the_next_gateway_hands_over_what_was_not_recorded)
{
	struct fixture *fx = recorded();
	struct page *p = page_open(fx, "s1");
	execute(p, "a");
	kernel_answers(fx, "a", REPLY_OK);
	advance(fx, 110);
	say_yes(fx);
	execute(p, "b");
	kernel_answers(fx, "b", REPLY_OK);
	execute(p, "c");
	kernel_answers(fx, "c", REPLY_ERROR);
	advance(fx, 110);
	struct fixture *next = after_a_kill(fx);
	assert_int_equal(waiting(next), 2);
	say_yes(next);
	say_yes(next);
	assert_run(next, 0, "b", "ok");
	assert_run(next, 1, "c", "error");
	assert_int_equal(fake_histories_run(next->gw.histories, 0)->epoch, fx->desk->epoch);
	next_free(next);
	page_leave(p, 0);
	fixture_free(fx);
}

TEST(scribe, one_that_runs_through_a_kill_is_whole)
{
	struct fixture *fx = recorded();
	struct page *p = page_open(fx, "s1");
	execute(p, "a");
	struct jmsg *m = kernel_takes(fx, "a");
	say_status(fx->kernel, m, "busy");
	fake_kernel_turn(fx->kernel);
	advance(fx, 110);
	struct fixture *next = after_a_kill(fx);
	fake_kernel_ready(next->kernel);
	replay_is_over(next);
	say_stream(next->kernel, m, "late");
	say_reply(next->kernel, m, REPLY_OK);
	say_status(next->kernel, m, "idle");
	fake_kernel_turn(next->kernel);
	advance(next, 110);
	say_yes(next);
	assert_run(next, 0, "a", "ok");
	assert_int_equal(fake_histories_run(next->gw.histories, 0)->n_between, 4);
	jmsg_unref(m);
	next_free(next);
	page_leave(p, 0);
	fixture_free(fx);
}

#define REPORT "{\"variables\":[],\"complete\":true}"

static void assert_report(const struct fixture *fx, size_t i, const char *id)
{
	const struct fake_run *run = fake_histories_run(fx->gw.histories, i);
	assert_string_equal(run->request->msg_type, SCRIBE_REPORT);
	assert_int_equal(run->n_between, 0);
	assert_string_equal(run->end->parent_id, id);
	assert_true(holds(run->end, "\"report\":" REPORT));
}

TEST(scribe, what_is_learnt_of_a_cell_follows_it)
{
	struct fixture *fx = recorded();
	struct page *p = page_open(fx, "s1");
	execute(p, "a");
	kernel_answers(fx, "a", REPLY_OK);
	fake_kernel_report(fx->kernel, "a", REPORT);
	advance(fx, 110);
	assert_int_equal(waiting(fx), 2);
	assert_run(fx, 0, "a", "ok");
	assert_report(fx, 1, "a");
	say_yes(fx);
	uint64_t version = fx->desk->scribe.state_version;
	say_yes(fx);
	assert_int_equal(fx->desk->scribe.state_version, version);
	assert_int_equal(fx->gw.kernels->count.recorded, 1);
	page_pull_all(fx, p);
	assert_int_equal(page_count(p, SCRIBE_REPORT, NULL, ""), 0);
	page_leave(p, 0);
	fixture_free(fx);
}

static bool metrics_say(const struct fixture *fx, const char *line)
{
	AUTO(buf_done) struct buf b;
	buf_init(&b, 1 << 20);
	admin_metrics(&fx->gw, &b);
	assert_false(b.failed);
	return strstr((const char *)b.data, line) != NULL;
}

TEST(scribe, what_executions_waited_and_ran_is_in_the_metrics)
{
	struct fixture *fx = recorded();
	struct page *p = page_open(fx, "s1");
	execute(p, "a");
	execute(p, "b");
	execute(p, "c");
	advance(fx, 2000);
	kernel_answers(fx, "a", REPLY_OK);
	kernel_answers(fx, "b", REPLY_ERROR); /* c is aborted: it neither waited nor ran */
	assert_true(metrics_say(fx, "coppice_execution_queue_position_count 2\n"));
	assert_true(metrics_say(fx, "coppice_execution_queue_position_sum 1\n"));
	assert_true(metrics_say(fx, "coppice_execution_queue_position_bucket{le=\"0\"} 1\n"));
	assert_true(metrics_say(fx, "coppice_execution_wait_seconds_bucket{le=\"1\"} 0\n"));
	assert_true(metrics_say(fx, "coppice_execution_wait_seconds_bucket{le=\"5\"} 2\n"));
	assert_true(metrics_say(fx, "coppice_execution_run_seconds_count 2\n"));
	assert_true(metrics_say(fx, "coppice_executions_total{status=\"aborted\"} 1\n"));
	assert_true(metrics_say(fx, "coppice_execution_record_seconds_count 0\n"));
	advance(fx, 110);
	say_yes(fx);
	assert_true(metrics_say(fx, "coppice_execution_record_seconds_count 1\n"));
	page_leave(p, 0);
	fixture_free(fx);
}

/* It comes by another way than the idle. */
TEST(scribe, a_report_that_overtakes_the_end_waits_for_it)
{
	struct fixture *fx = recorded();
	struct page *p = page_open(fx, "s1");
	execute(p, "a");
	fake_kernel_report(fx->kernel, "a", REPORT);
	advance(fx, 110);
	assert_int_equal(waiting(fx), 0);
	kernel_answers(fx, "a", REPLY_OK);
	advance(fx, 110);
	assert_int_equal(waiting(fx), 2);
	assert_report(fx, 1, "a");
	page_leave(p, 0);
	fixture_free(fx);
}

TEST(scribe, a_guest_s_report_is_one_a_cell_and_of_a_cell)
{
	struct fixture *fx = recorded();
	struct page *p = page_open(fx, "s1");
	execute(p, "a");
	kernel_answers(fx, "a", REPLY_OK);
	static const char *const wrong[] = {"", "[]", "{", "{} {}", "{\"a\":NaN}", "7"};
	for (size_t i = 0; i < ARRAY_LEN(wrong); i++)
		fake_kernel_report(fx->kernel, "a", wrong[i]);
	fake_kernel_report(fx->kernel, "never", REPORT);
	fake_kernel_report(fx->kernel, "a", REPORT);
	fake_kernel_report(fx->kernel, "a", REPORT);
	advance(fx, 110);
	assert_int_equal(waiting(fx), 2);
	assert_report(fx, 1, "a");
	page_leave(p, 0);
	fixture_free(fx);
}

TEST(scribe, the_next_gateway_hands_over_what_was_learnt)
{
	struct fixture *fx = recorded();
	struct page *p = page_open(fx, "s1");
	execute(p, "a");
	kernel_answers(fx, "a", REPLY_OK);
	advance(fx, 110);
	say_yes(fx);
	fake_kernel_report(fx->kernel, "a", REPORT);
	advance(fx, 110);
	struct fixture *next = after_a_kill(fx);
	assert_int_equal(waiting(next), 1);
	assert_report(next, 0, "a");
	say_yes(next);
	next_free(next);
	page_leave(p, 0);
	fixture_free(fx);
}

/* The cell ended in the last moment of a gateway; the pause after it is the next one's. */
TEST(scribe, the_next_gateway_hears_what_was_learnt_of_a_cell_that_was_over)
{
	struct fixture *fx = recorded();
	struct page *p = page_open(fx, "s1");
	execute(p, "a");
	kernel_answers(fx, "a", REPLY_OK);
	advance(fx, 110);
	say_yes(fx);
	struct fixture *next = after_a_kill(fx);
	assert_int_equal(waiting(next), 0);
	fake_kernel_report(next->kernel, "never", REPORT);
	fake_kernel_report(next->kernel, "a", REPORT);
	fake_kernel_report(next->kernel, "a", REPORT);
	advance(next, 110);
	assert_int_equal(waiting(next), 1);
	assert_report(next, 0, "a");
	say_yes(next);
	next_free(next);
	page_leave(p, 0);
	fixture_free(fx);
}

TEST(scribe, the_end_says_what_it_ran_in_and_what_it_waited_for)
{
	struct fixture *fx = recorded();
	struct page *p = page_open(fx, "s1");
	execute(p, "a");
	execute(p, "b");
	execute(p, "c");
	kernel_answers(fx, "a", REPLY_OK);
	kernel_answers(fx, "b", REPLY_OK);
	execute(p, "d");
	kernel_answers(fx, "c", REPLY_OK);
	kernel_answers(fx, "d", REPLY_OK);
	advance(fx, 110);
	static const char *const position[] = {"0", "1", "2", "1"};
	for (size_t i = 0; i < ARRAY_LEN(position); i++) {
		const struct fake_run *run = fake_histories_run(fx->gw.histories, i);
		char text[64];
		(void)snprintf(text, sizeof text, "\"queue_position\":%s,", position[i]);
		assert_true(holds(run->end, text));
		assert_true(holds(run->end, "\"environment\":\"sha256:fake\""));
	}
	page_leave(p, 0);
	fixture_free(fx);
}

/* Of a guest's making: a number, or nothing. */
TEST(scribe, the_end_says_what_memory_its_reply_told)
{
	static const struct {
		const char *metadata, *fact;
	} rows[] = {{"{\"coppice\":{\"peak_bytes\":73000000}}", ",\"peak_memory_bytes\":73000000"},
		{"{\"coppice\":{\"peak_bytes\":1234567890123456}}", NULL},
		{"{\"coppice\":{\"peak_bytes\":-7}}", NULL},
		{"{\"coppice\":{\"peak_bytes\":1.5}}", NULL},
		{"{\"coppice\":{\"peak_bytes\":\"7\"}}", NULL},
		{"{\"coppice\":{\"peak_bytes\":[7]}}", NULL}, {"{\"coppice\":[7]}", NULL},
		{"{\"peak_bytes\":7}", NULL}, {"{}", NULL}};
	struct fixture *fx = recorded();
	struct page *p = page_open(fx, "s1");
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		char id[8];
		(void)snprintf(id, sizeof id, "m%zu", i);
		execute(p, id);
		answers_with(fx, id, rows[i].metadata);
	}
	advance(fx, 110);
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		const struct fake_run *run = fake_histories_run(fx->gw.histories, i);
		assert_run(fx, i, run->request->msg_id, "ok");
		assert_int_equal(holds(run->end, "peak_memory_bytes"), rows[i].fact != NULL);
		assert_true(!rows[i].fact || holds(run->end, rows[i].fact));
	}
	page_leave(p, 0);
	fixture_free(fx);
}

#define WANTED_ID "44444444-4444-4444-8444-444444444444"

static void assert_wanted(const struct fixture *fx, size_t i, const char *history)
{
	assert_string_equal(fake_histories_run(fx->gw.histories, i)->wanted, history);
}

TEST(scribe, a_history_that_goes_on_is_named_until_its_id_is_known)
{
	struct fixture *fx = recorded();
	struct page *p = page_open(fx, "s1");
	scribe_continue(fx->desk, "walk");
	execute(p, "a");
	kernel_answers(fx, "a", REPLY_OK);
	fake_kernel_report(fx->kernel, "a", REPORT);
	advance(fx, 110);
	cJSON *model = desk_model(fx->desk);
	assert_true(cJSON_IsNull(cJSON_GetObjectItem(model, "history_id")));
	cJSON_Delete(model);
	say_yes(fx);
	say_yes(fx);
	assert_wanted(fx, 0, "walk");
	assert_wanted(fx, 1, "walk");
	assert_string_equal(fx->desk->scribe.history, WANTED_ID);
	execute(p, "b");
	kernel_answers(fx, "b", REPLY_OK);
	advance(fx, 110);
	assert_wanted(fx, 2, WANTED_ID);
	model = desk_model(fx->desk);
	assert_string_equal(
		cJSON_GetStringValue(cJSON_GetObjectItem(model, "history_id")), WANTED_ID);
	cJSON_Delete(model);
	struct fixture *next = after_a_kill(fx);
	assert_string_equal(next->desk->scribe.history, WANTED_ID);
	assert_wanted(next, 0, WANTED_ID);
	say_yes(next);
	next_free(next);
	page_leave(p, 0);
	fixture_free(fx);
}

TEST(scribe, a_cell_that_names_another_history_is_in_the_old_one)
{
	struct fixture *fx = recorded();
	struct page *p = page_open(fx, "s1");
	execute(p, "a");
	execute(p, "b");
	scribe_continue(fx->desk, "other");
	fake_kernel_report(fx->kernel, "a", REPORT);
	kernel_answers(fx, "a", REPLY_OK);
	kernel_answers(fx, "b", REPLY_OK);
	advance(fx, 110);
	assert_wanted(fx, 0, "");
	assert_wanted(fx, 1, ""); /* its report */
	assert_wanted(fx, 2, "other");
	page_leave(p, 0);
	fixture_free(fx);
}

TEST(scribe, names_that_no_history_can_have)
{
	struct err err;
	char longest[HISTORY_NAME_SIZE + 1];
	memset(longest, 'x', sizeof longest);
	longest[HISTORY_NAME_SIZE] = '\0';
	assert_int_equal(scribe_check_name(longest, &err), E_INVALID);
	longest[HISTORY_NAME_SIZE - 1] = '\0';
	assert_int_equal(scribe_check_name(longest, &err), 0);
	assert_int_equal(scribe_check_name("a\nb", &err), E_INVALID);
	assert_int_equal(scribe_check_name("Käse 7", &err), 0);
	assert_int_equal(scribe_check_name("", &err), 0);
	assert_int_equal(scribe_check_name(NULL, &err), 0);
}

/* Kept for nobody, like ours: but no kernel has the channel. */
TEST(scribe, an_end_that_a_guest_made_up_is_none)
{
	struct fixture *fx = recorded();
	struct page *p = page_open(fx, "s1");
	struct jmsg *asked = ask_with(p, CHANNEL_SHELL, "execute_request", "gone", "{}");
	fake_kernel_say(fx->kernel, CHANNEL_SHELL, SCRIBE_END, NULL, "{\"first\":1,\"epoch\":1}");
	fake_kernel_say(fx->kernel, CHANNEL_SHELL, "odd_reply", NULL, "{\"first\":1,\"epoch\":1}");
	fake_kernel_turn(fx->kernel);
	advance(fx, 110);
	struct fixture *next = after_a_kill(fx);
	assert_int_equal(waiting(next), 0);
	jmsg_unref(asked);
	next_free(next);
	page_leave(p, 0);
	fixture_free(fx);
}

/* Its row is still there, for the entry that ends its stretch is not in the file. */
TEST(scribe, what_is_sent_again_too_early_is_answered)
{
	sent_again_too_early(recorded());
}

RUN(TEST_ROW(scribe, an_execution_is_handed_over_once_it_is_in_the_file),
	TEST_ROW(scribe, who_watches_is_told_each_node),
	TEST_ROW(scribe, what_was_held_behind_an_error_too_and_in_order),
	TEST_ROW(scribe, a_request_that_comes_twice_is_one_execution),
	TEST_ROW(scribe, what_failed_is_tried_again),
	TEST_ROW(scribe, a_kernel_that_dies_tells_how),
	TEST_ROW(scribe, a_kernel_that_is_ended_leaves_its_journal_until_all_is_recorded),
	TEST_ROW(scribe, the_next_gateway_hands_over_what_was_not_recorded),
	TEST_ROW(scribe, one_that_runs_through_a_kill_is_whole),
	TEST_ROW(scribe, what_is_learnt_of_a_cell_follows_it),
	TEST_ROW(scribe, what_executions_waited_and_ran_is_in_the_metrics),
	TEST_ROW(scribe, a_report_that_overtakes_the_end_waits_for_it),
	TEST_ROW(scribe, a_guest_s_report_is_one_a_cell_and_of_a_cell),
	TEST_ROW(scribe, the_next_gateway_hands_over_what_was_learnt),
	TEST_ROW(scribe, the_next_gateway_hears_what_was_learnt_of_a_cell_that_was_over),
	TEST_ROW(scribe, the_end_says_what_it_ran_in_and_what_it_waited_for),
	TEST_ROW(scribe, the_end_says_what_memory_its_reply_told),
	TEST_ROW(scribe, a_history_that_goes_on_is_named_until_its_id_is_known),
	TEST_ROW(scribe, a_cell_that_names_another_history_is_in_the_old_one),
	TEST_ROW(scribe, names_that_no_history_can_have),
	TEST_ROW(scribe, an_end_that_a_guest_made_up_is_none),
	TEST_ROW(scribe, what_is_sent_again_too_early_is_answered))
