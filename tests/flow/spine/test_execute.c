/* One execution and its neighbours in the queue. */
#include "tests/lib/spine_fixture.h"

TEST(execute, runs_once_and_in_order)
{
	struct fixture *fx = fixture_with_kernel();
	struct page *p = page_open(fx, "s1");
	execute(p, "a");
	struct jmsg *m = kernel_takes(fx, "a");
	assert_execution(fx, "a", "sent", "open");
	say_status(fx->kernel, m, "busy");
	assert_state(fx, "busy");
	say_stream(fx->kernel, m, "one");
	assert_execution(fx, "a", "running", "open");
	say_reply(fx->kernel, m, REPLY_OK);
	assert_execution(fx, "a", "running", "ok");
	say_status(fx->kernel, m, "idle");
	assert_execution(fx, "a", "done", "ok");
	assert_state(fx, "idle");
	page_pull(p);
	size_t at = page_find(p, 0, "status", "a", "busy");
	at = page_find(p, at, "stream", "a", "one");
	at = page_find(p, at, "execute_reply", "a", "ok");
	page_find(p, at, "status", "a", "idle");
	jmsg_unref(m);
	page_leave(p, 0);
	fixture_free(fx);
}

TEST(execute, idle_is_believed_before_the_reply_comes)
{
	struct fixture *fx = fixture_with_kernel();
	struct page *p = page_open(fx, "s1");
	execute(p, "a");
	ask(p, CHANNEL_SHELL, "comm_msg", "c", "{\"comm_id\":\"x\",\"data\":{}}");
	struct jmsg *a = kernel_takes(fx, "a"), *c = kernel_takes(fx, "c");
	say_status(fx->kernel, a, "busy");
	say_status(fx->kernel, a, "idle");
	say_status(fx->kernel, c, "busy");
	say_status(fx->kernel, c, "idle"); /* all of iopub is read before shell */
	say_reply(fx->kernel, a, REPLY_OK);
	assert_state(fx, "idle");
	jmsg_unref(a);
	jmsg_unref(c);
	page_leave(p, 0);
	fixture_free(fx);
}

TEST(execute, waits_for_a_starting_kernel)
{
	struct fixture *fx = fixture_new();
	assert_int_equal(fixture_start(fx), 0);
	struct page *p = page_open(fx, "s1");
	execute(p, "a");
	ask(p, CHANNEL_SHELL, "kernel_info_request", "i", "{}");
	assert_int_equal(fake_kernel_waiting(fx->kernel), 0);
	assert_state(fx, "starting");
	fake_kernel_ready(fx->kernel);
	kernel_answers(fx, "a", REPLY_OK);
	page_pull(p);
	assert_true(page_has_end(p, "a", "execute_reply"));
	assert_true(page_has_end(p, "i", "kernel_info_reply"));
	page_leave(p, 0);
	fixture_free(fx);
}

TEST(execute, sends_one_at_a_time_and_holds_what_comes_after)
{
	struct fixture *fx = fixture_with_kernel();
	struct page *p = page_open(fx, "s1");
	execute(p, "a");
	execute(p, "b");
	ask(p, CHANNEL_SHELL, "complete_request", "c", "{\"code\":\"x\",\"cursor_pos\":1}");
	struct jmsg *m = kernel_takes(fx, "a");
	assert_int_equal(fake_kernel_waiting(fx->kernel), 0);
	say_reply(fx->kernel, m, REPLY_OK);
	assert_int_equal(fake_kernel_waiting(fx->kernel), 0);
	say_status(fx->kernel, m, "idle");
	kernel_answers(fx, "b", REPLY_OK);
	kernel_answers(fx, "c", "{\"status\":\"ok\"}");
	jmsg_unref(m);
	page_leave(p, 0);
	fixture_free(fx);
}

TEST(execute, control_and_stdin_never_wait)
{
	struct fixture *fx = fixture_with_kernel();
	struct page *p = page_open(fx, "s1");
	execute(p, "a");
	execute(p, "b");
	jmsg_unref(kernel_takes(fx, "a"));
	ask(p, CHANNEL_CONTROL, "interrupt_request", "i", "{}");
	ask(p, CHANNEL_STDIN, "input_reply", "n", "{\"value\":\"v\"}");
	kernel_answers(fx, "i", "{\"status\":\"ok\"}");
	jmsg_unref(kernel_takes(fx, "n"));
	page_pull(p);
	assert_true(page_has_end(p, "i", "interrupt_reply"));
	page_leave(p, 0);
	fixture_free(fx);
}

static void burst(struct fixture *fx, struct page *p, const char *first)
{
	ask(p, CHANNEL_SHELL, "execute_request", "a", first);
	execute(p, "b");
	execute(p, "c");
	ask(p, CHANNEL_SHELL, "comm_info_request", "i", "{}");
	(void)fx;
}

TEST(execute, an_error_aborts_what_is_held)
{
	struct fixture *fx = fixture_with_kernel();
	struct page *p = page_open(fx, "s1");
	burst(fx, p, "{\"code\":\"1/0\"}");
	kernel_answers(fx, "a", REPLY_ERROR);
	kernel_answers(fx, "i", "{\"status\":\"ok\"}");
	assert_execution(fx, "a", "done", "error");
	assert_execution(fx, "b", "done", "aborted");
	assert_execution(fx, "c", "done", "aborted");
	execute(p, "d");
	kernel_answers(fx, "d", REPLY_OK);
	page_pull(p);
	size_t at = page_find(p, 0, "status", "a", "idle");
	at = page_find(p, at, "status", "b", "busy");
	at = page_find(p, at, "execute_reply", "b", "aborted");
	at = page_find(p, at, "status", "b", "idle");
	at = page_find(p, at, "execute_reply", "c", "aborted");
	page_find(p, at, "status", "c", "idle");
	assert_true(page_has_end(p, "i", "comm_info_reply"));
	assert_true(page_has_end(p, "d", "execute_reply"));
	page_leave(p, 0);
	fixture_free(fx);
}

TEST(execute, an_error_that_need_not_stop_does_not)
{
	struct fixture *fx = fixture_with_kernel();
	struct page *p = page_open(fx, "s1");
	burst(fx, p, "{\"code\":\"1/0\",\"stop_on_error\":false}");
	kernel_answers(fx, "a", REPLY_ERROR);
	kernel_answers(fx, "b", REPLY_OK);
	kernel_answers(fx, "c", REPLY_OK);
	kernel_answers(fx, "i", "{\"status\":\"ok\"}");
	assert_execution(fx, "c", "done", "ok");
	page_leave(p, 0);
	fixture_free(fx);
}

/* Case 17: no error message, only the reply knows. */
TEST(execute, a_failure_that_only_the_reply_knows_is_an_error)
{
	struct fixture *fx = fixture_with_kernel();
	struct page *p = page_open(fx, "s1");
	execute(p, "a");
	struct jmsg *m = kernel_takes(fx, "a");
	say_status(fx->kernel, m, "busy");
	say_reply(fx->kernel, m, "{\"status\":\"error\",\"ename\":\"UsageError\"}");
	say_status(fx->kernel, m, "idle");
	assert_execution(fx, "a", "done", "error");
	jmsg_unref(m);
	page_leave(p, 0);
	fixture_free(fx);
}

static void execute_in(struct page *p, const char *id, const char *subshell)
{
	char header[256];
	struct jmsg *m;
	int len = snprintf(header, sizeof header,
		"{\"msg_id\":\"%s\",\"msg_type\":\"execute_request\",\"session\":\"s\","
		"\"subshell_id\":\"%s\",\"username\":\"u\",\"version\":\"5.5\"}",
		id, subshell);
	struct jmsg_source source = {.channel = CHANNEL_SHELL};
	source.part[PART_HEADER] = (struct bytes){(const uint8_t *)header, (size_t)len};
	source.part[PART_CONTENT] = (struct bytes){(const uint8_t *)"{}", 2};
	assert_int_equal(jmsg_new(&source, false, &m, NULL), 0);
	assert_int_equal(client_receive(p->client, m, NULL), 0);
	jmsg_unref(m);
}

TEST(execute, subshells_have_lanes_of_their_own)
{
	struct fixture *fx = fixture_with_kernel();
	struct page *p = page_open(fx, "s1");
	execute(p, "a");
	execute_in(p, "b", "sub");
	execute_in(p, "c", "sub");
	struct jmsg *a = kernel_takes(fx, "a"), *b = kernel_takes(fx, "b");
	assert_int_equal(fake_kernel_waiting(fx->kernel), 0);
	say_status(fx->kernel, a, "busy");
	say_status(fx->kernel, b, "busy");
	say_reply(fx->kernel, b, REPLY_ERROR);
	say_status(fx->kernel, b, "idle");
	assert_state(fx, "busy");
	assert_execution(fx, "c", "done", "aborted");
	assert_execution(fx, "a", "running", "open");
	say_reply(fx->kernel, a, REPLY_OK);
	say_status(fx->kernel, a, "idle");
	assert_state(fx, "idle");
	jmsg_unref(a);
	jmsg_unref(b);
	page_leave(p, 0);
	fixture_free(fx);
}

TEST(execute, a_lost_idle_is_made_up_for)
{
	struct fixture *fx = fixture_with_kernel();
	struct page *p = page_open(fx, "s1");
	execute(p, "a");
	execute(p, "b");
	struct jmsg *m = kernel_takes(fx, "a");
	say_status(fx->kernel, m, "busy");
	say_reply(fx->kernel, m, REPLY_OK);
	advance(fx, 4900);
	assert_execution(fx, "a", "running", "ok");
	advance(fx, 700);
	assert_execution(fx, "a", "done", "ok");
	kernel_answers(fx, "b", REPLY_OK);
	say_status(fx->kernel, m, "idle"); /* late: said already */
	page_pull(p);
	assert_true(page_has_end(p, "a", "execute_reply"));
	jmsg_unref(m);
	page_leave(p, 0);
	fixture_free(fx);
}

/* Case 23, FK: the reply of the first comes after the second was sent; each to its own. */
/* A kernel that still says what it has to is not silent, however long that takes. */
TEST(execute, a_late_idle_is_waited_for_while_output_comes)
{
	struct fixture *fx = fixture_with_kernel();
	struct page *p = page_open(fx, "s1");
	execute(p, "a");
	struct jmsg *asked = kernel_takes(fx, "a");
	say_status(fx->kernel, asked, "busy");
	say_reply(fx->kernel, asked, REPLY_OK);
	for (int i = 0; i < 5; i++) {
		advance(fx, 3000);
		say_stream(fx->kernel, asked, "on");
	}
	page_pull_all(fx, p);
	assert_int_equal(page_count(p, "status", "a", "idle"), 0);
	assert_execution(fx, "a", "running", "ok");
	advance(fx, 5500);
	page_pull_all(fx, p);
	assert_int_equal(page_count(p, "status", "a", "idle"), 1);
	page_leave(p, 0);
	jmsg_unref(asked);
	fixture_free(fx);
}

TEST(execute, a_lost_reply_is_made_up_for_and_a_late_one_is_nobodys)
{
	struct fixture *fx = fixture_with_kernel();
	struct page *p = page_open(fx, "s1");
	execute(p, "a");
	execute(p, "b");
	struct jmsg *a = kernel_takes(fx, "a");
	say_status(fx->kernel, a, "busy");
	say_status(fx->kernel, a, "idle");
	advance(fx, 5500);
	assert_execution(fx, "a", "done", "error");
	struct jmsg *b = kernel_takes(fx, "b");
	say_status(fx->kernel, b, "busy");
	say_reply(fx->kernel, a, REPLY_OK);
	assert_execution(fx, "b", "running", "open");
	say_reply(fx->kernel, b, REPLY_OK);
	say_status(fx->kernel, b, "idle");
	assert_execution(fx, "b", "done", "ok");
	page_pull(p);
	assert_int_equal(page_count(p, "execute_reply", "a", "NoReply"), 1);
	assert_true(page_has_end(p, "a", "execute_reply"));
	assert_true(page_has_end(p, "b", "execute_reply"));
	jmsg_unref(a);
	jmsg_unref(b);
	page_leave(p, 0);
	fixture_free(fx);
}

/* Case 28: a forked child answers too. */
TEST(execute, a_second_reply_and_idle_reach_nobody)
{
	struct fixture *fx = fixture_with_kernel();
	struct page *p = page_open(fx, "s1");
	execute(p, "a");
	struct jmsg *m = kernel_takes(fx, "a");
	for (int i = 0; i < 2; i++) {
		say_status(fx->kernel, m, "idle");
		say_status(fx->kernel, m, "idle");
		say_reply(fx->kernel, m, REPLY_OK);
		say_reply(fx->kernel, m, REPLY_OK);
		say_status(fx->kernel, m, "idle");
	}
	say_stream(fx->kernel, m, "late output stays");
	page_pull(p);
	assert_true(page_has_end(p, "a", "execute_reply"));
	assert_int_equal(page_count(p, "stream", "a", "late"), 1);
	jmsg_unref(m);
	page_leave(p, 0);
	fixture_free(fx);
}

TEST(execute, a_reply_to_what_was_not_sent_counts_for_nothing)
{
	struct fixture *fx = fixture_with_kernel();
	struct page *p = page_open(fx, "s1");
	execute(p, "a");
	execute(p, "b");
	struct jmsg *forged = ask_with(p, CHANNEL_SHELL, "execute_request", "b", "{}");
	say_reply(fx->kernel, forged, REPLY_OK);
	say_status(fx->kernel, forged, "idle");
	assert_execution(fx, "b", "queued", "open");
	jmsg_unref(forged);
	kernel_answers(fx, "a", REPLY_OK);
	kernel_answers(fx, "b", REPLY_OK);
	assert_execution(fx, "b", "done", "ok");
	page_leave(p, 0);
	fixture_free(fx);
}

TEST(execute, what_cannot_be_sent_ends_with_an_error)
{
	struct fixture *fx = fixture_with_kernel();
	struct page *p = page_open(fx, "s1");
	(void)fault_arm(fake_bridge_fault(fx->gw.bridge), 1);
	execute(p, "a");
	execute(p, "b");
	kernel_answers(fx, "b", REPLY_OK);
	page_pull(p);
	assert_int_equal(page_count(p, "execute_reply", "a", "OutOfMemory"), 1);
	assert_true(page_has_end(p, "a", "execute_reply"));
	assert_true(page_has_end(p, "b", "execute_reply"));
	page_leave(p, 0);
	fixture_free(fx);
}

TEST(execute, its_range_is_in_the_view)
{
	struct fixture *fx = fixture_with_kernel();
	struct page *p = page_open(fx, "s1");
	execute(p, "a");
	kernel_answers(fx, "a", "{\"status\":\"ok\",\"execution_count\":7}");
	cJSON *rows = view(fx, "executions"), *row = cJSON_GetArrayItem(rows, 0);
	double first = cJSON_GetNumberValue(cJSON_GetObjectItem(row, "first"));
	double last = cJSON_GetNumberValue(cJSON_GetObjectItem(row, "last"));
	assert_int_equal((int)(last - first), 2);
	assert_int_equal((int)cJSON_GetNumberValue(cJSON_GetObjectItem(row, "execution_count")), 7);
	cJSON_Delete(rows);
	page_leave(p, 0);
	fixture_free(fx);
}

RUN(TEST_ROW(execute, runs_once_and_in_order),
	TEST_ROW(execute, idle_is_believed_before_the_reply_comes),
	TEST_ROW(execute, waits_for_a_starting_kernel),
	TEST_ROW(execute, sends_one_at_a_time_and_holds_what_comes_after),
	TEST_ROW(execute, control_and_stdin_never_wait),
	TEST_ROW(execute, an_error_aborts_what_is_held),
	TEST_ROW(execute, an_error_that_need_not_stop_does_not),
	TEST_ROW(execute, a_failure_that_only_the_reply_knows_is_an_error),
	TEST_ROW(execute, subshells_have_lanes_of_their_own),
	TEST_ROW(execute, a_lost_idle_is_made_up_for),
	TEST_ROW(execute, a_late_idle_is_waited_for_while_output_comes),
	TEST_ROW(execute, a_lost_reply_is_made_up_for_and_a_late_one_is_nobodys),
	TEST_ROW(execute, a_second_reply_and_idle_reach_nobody),
	TEST_ROW(execute, a_reply_to_what_was_not_sent_counts_for_nothing),
	TEST_ROW(execute, what_cannot_be_sent_ends_with_an_error),
	TEST_ROW(execute, its_range_is_in_the_view))
