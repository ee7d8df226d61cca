/* What is no execution: kept answers, doubles, bounds, cursors, statuses. */
#include "gateway/spine/desk.h"
#include "tests/lib/spine_fixture.h"

TEST(relay, a_busy_kernels_info_is_answered_from_what_is_kept)
{
	struct fixture *fx = fixture_with_kernel();
	struct page *p = page_open(fx, "s1"), *q = page_open(fx, "s2");
	execute(p, "a");
	struct jmsg *m = kernel_takes(fx, "a");
	say_status(fx->kernel, m, "busy");
	page_pull(q);
	ask(q, CHANNEL_SHELL, "kernel_info_request", "i", "{}");
	assert_int_equal(fake_kernel_waiting(fx->kernel), 0);
	page_pull(q);
	size_t at = page_find(q, 0, "status", "i", "busy");
	at = page_find(q, at, "kernel_info_reply", "i", "fake");
	at = page_find(q, at, "status", "i", "idle");
	assert_int_equal(page_find(q, at, "status", "", "busy"), q->n - 1);
	page_pull(p);
	assert_int_equal(page_count(p, "status", "i", ""), 0);
	jmsg_unref(m);
	page_leave(p, 0);
	page_leave(q, 0);
	fixture_free(fx);
}

TEST(relay, a_kernel_out_of_the_pool_answers_from_what_it_said_as_it_became_ready)
{
	struct fixture *fx = fixture_new();
	assert_int_equal(fixture_start(fx), 0);
	fx->desk->from_pool = true;
	struct page *p = page_open(fx, "s1"), *q = page_open(fx, "s2");
	ask(p, CHANNEL_SHELL, "kernel_info_request", "held", "{}");
	fake_kernel_ready(fx->kernel);
	ask(q, CHANNEL_SHELL, "kernel_info_request", "late", "{}");
	assert_int_equal(fake_kernel_waiting(fx->kernel), 0);
	page_pull(p);
	page_pull(q);
	assert_true(page_has_end(p, "held", "kernel_info_reply"));
	assert_true(page_has_end(q, "late", "kernel_info_reply"));
	assert_int_equal(page_count(q, "status", "held", ""), 0);
	page_leave(p, 0);
	page_leave(q, 0);
	fixture_free(fx);
}

/* Who asks learns that it takes requests: ipykernel 7 refuses subshells a moment before it does. */
TEST(relay, a_kernel_that_was_started_for_somebody_answers_its_info_itself)
{
	struct fixture *fx = fixture_with_kernel();
	struct page *p = page_open(fx, "s1");
	ask(p, CHANNEL_SHELL, "kernel_info_request", "first", "{}");
	assert_int_equal(fake_kernel_waiting(fx->kernel), 1);
	page_leave(p, 0);
	fixture_free(fx);
}

TEST(relay, a_kernel_that_was_used_answers_its_info_itself)
{
	struct fixture *fx = fixture_with_kernel();
	struct page *p = page_open(fx, "s1");
	execute(p, "a");
	kernel_answers(fx, "a", REPLY_OK);
	ask(p, CHANNEL_SHELL, "kernel_info_request", "i", "{}");
	assert_int_equal(fake_kernel_waiting(fx->kernel), 1);
	page_leave(p, 0);
	fixture_free(fx);
}

TEST(relay, an_idle_kernel_answers_its_info_itself)
{
	struct fixture *fx = fixture_with_kernel();
	struct page *p = page_open(fx, "s1");
	fake_clock_advance(fx->gw.clock, 1000);
	ask(p, CHANNEL_SHELL, "kernel_info_request", "i", "{}");
	struct jmsg *m = kernel_takes(fx, "i");
	cJSON *before = desk_model(fx->desk), *after;
	fake_clock_advance(fx->gw.clock, 1000);
	say_status(fx->kernel, m, "busy");
	assert_state(fx, "idle"); /* untracked: a reload of a page is no use of the kernel */
	say_reply(fx->kernel, m, "{\"status\":\"ok\"}");
	say_status(fx->kernel, m, "idle");
	after = desk_model(fx->desk);
	assert_true(cJSON_Compare(before, after, true));
	cJSON_Delete(before);
	cJSON_Delete(after);
	jmsg_unref(m);
	page_leave(p, 0);
	fixture_free(fx);
}

/* Case 5. */
TEST(relay, a_message_sent_twice_runs_once_and_is_answered_again)
{
	struct fixture *fx = fixture_with_kernel();
	struct page *p = page_open(fx, "s1"), *q = page_open(fx, "s2");
	execute(p, "a");
	execute(p, "a");
	struct jmsg *again = ask_with(p, CHANNEL_SHELL, "execute_request", "a", "{}");
	assert_int_equal(client_receive(q->client, again, NULL), 0);
	jmsg_unref(again);
	kernel_answers(fx, "a", REPLY_OK);
	assert_int_equal(fake_kernel_waiting(fx->kernel), 0);
	page_pull(p);
	page_pull(q);
	assert_true(page_has_end(p, "a", "execute_reply"));
	assert_int_equal(page_count(q, "execute_reply", "a", "DuplicateMessage"), 1);
	execute(p, "a");
	assert_int_equal(fake_kernel_waiting(fx->kernel), 0);
	page_pull(p);
	assert_int_equal(page_count(p, "execute_reply", "a", "ok"), 2);
	assert_int_equal(page_count(p, "status", "a", "idle"), 2);
	execute(p, "b");
	kernel_answers(fx, "b", REPLY_OK);
	page_leave(p, 0);
	page_leave(q, 0);
	fixture_free(fx);
}

/* Programs that count their messages from 1: the header's session tells them apart. */
TEST(relay, equal_ids_of_two_sessions_are_two_requests)
{
	struct fixture *fx = fixture_with_kernel();
	struct page *p = page_open(fx, "s1"), *q = page_open(fx, "s2");
	execute(p, "1");
	execute(q, "1");
	struct jmsg *first = kernel_takes(fx, "1");
	assert_string_equal(first->session, "s1");
	say_reply(fx->kernel, first, "{\"status\":\"ok\",\"execution_count\":1}");
	say_status(fx->kernel, first, "idle");
	struct jmsg *second = kernel_takes(fx, "1");
	assert_string_equal(second->session, "s2");
	say_reply(fx->kernel, second, "{\"status\":\"ok\",\"execution_count\":2}");
	say_status(fx->kernel, second, "idle");
	page_pull(p);
	page_pull(q);
	assert_int_equal(page_count(p, "execute_reply", "1", "\"execution_count\":1"), 1);
	assert_int_equal(page_count(q, "execute_reply", "1", "\"execution_count\":2"), 1);
	assert_int_equal(page_count(p, "execute_reply", NULL, ""), 1);
	assert_int_equal(page_count(q, "execute_reply", NULL, ""), 1);
	execute(q, "1"); /* answered: the second of that name is its own */
	page_pull(q);
	assert_int_equal(page_count(q, "execute_reply", "1", "\"execution_count\":2"), 2);
	jmsg_unref(first);
	jmsg_unref(second);
	page_leave(p, 0);
	page_leave(q, 0);
	fixture_free(fx);
}

TEST(relay, a_double_whose_reply_is_not_kept_gets_an_error)
{
	struct fixture *fx = fixture_with_kernel();
	struct page *p = page_open(fx, "s1");
	char id[16];
	for (int i = 0; i < 100; i++) {
		(void)snprintf(id, sizeof id, "m%d", i);
		execute(p, id);
		kernel_answers(fx, id, REPLY_OK);
	}
	page_pull(p);
	execute(p, "m3");
	execute(p, "m99");
	page_pull(p);
	assert_int_equal(page_count(p, "execute_reply", "m3", "m3"), 1);
	assert_int_equal(page_count(p, "execute_reply", "m99", "\"ok\""), 2);
	page_leave(p, 0);
	fixture_free(fx);
}

TEST(relay, beyond_its_bound_the_queue_refuses_with_a_reply)
{
	struct fixture *fx = fixture_new();
	assert_int_equal(fixture_start(fx), 0);
	struct page *p = page_open(fx, "s1");
	char id[16];
	for (int i = 0; i < 10010; i++) {
		(void)snprintf(id, sizeof id, "m%d", i);
		execute(p, id);
	}
	page_pull(p);
	assert_int_equal(page_count(p, "execute_reply", NULL, "Unavailable"), 10);
	assert_int_equal(page_count(p, "status", NULL, "idle"), 10);
	fake_kernel_ready(fx->kernel);
	kernel_answers(fx, "m0", REPLY_ERROR);
	page_forget(p);
	page_pull(p);
	assert_int_equal(page_count(p, "execute_reply", NULL, "aborted"), 9999);
	page_leave(p, 0);
	fixture_free(fx);
}

TEST(relay, bytes_that_wait_are_bounded_too)
{
	struct fixture *fx = fixture_new();
	assert_int_equal(fixture_start(fx), 0);
	struct page *p = page_open(fx, "s1");
	size_t size = 40u << 20;
	char *content = malloc(size), id[16];
	(void)snprintf(content, size, "{\"code\":\"");
	memset(content + 9, 'x', size - 12);
	memcpy(content + size - 3, "\"}", 3);
	for (int i = 0; i < 3; i++) {
		(void)snprintf(id, sizeof id, "m%d", i);
		ask(p, CHANNEL_SHELL, "execute_request", id, content);
	}
	page_pull(p);
	assert_int_equal(page_count(p, "execute_reply", NULL, "Unavailable"), 2);
	free(content);
	page_leave(p, 0);
	fixture_free(fx);
}

TEST(relay, requests_that_no_kernel_answers_do_not_fill_it)
{
	struct fixture *fx = fixture_with_kernel();
	struct page *p = page_open(fx, "s1");
	char id[16];
	for (int i = 0; i < 10001; i++) {
		(void)snprintf(id, sizeof id, "m%d", i);
		ask(p, CHANNEL_CONTROL, "odd_request", id, "{}");
	}
	page_pull(p);
	assert_true(page_has_end(p, "m0", "odd_reply"));
	assert_int_equal(page_count(p, "odd_reply", NULL, "NoReply"), 1);
	page_leave(p, 0);
	fixture_free(fx);
}

TEST(relay, a_comm_message_ends_with_its_idle)
{
	struct fixture *fx = fixture_with_kernel();
	struct page *p = page_open(fx, "s1");
	ask(p, CHANNEL_SHELL, "comm_msg", "c", "{\"comm_id\":\"1\",\"data\":{}}");
	struct jmsg *m = kernel_takes(fx, "c");
	say_status(fx->kernel, m, "busy");
	say_status(fx->kernel, m, "idle");
	cJSON *rows = view(fx, "kernels");
	cJSON *n = cJSON_GetObjectItem(cJSON_GetArrayItem(rows, 0), "requests");
	assert_int_equal((int)cJSON_GetNumberValue(n), 0);
	cJSON_Delete(rows);
	jmsg_unref(m);
	page_leave(p, 0);
	fixture_free(fx);
}

TEST(relay, a_status_that_is_none_reaches_no_page)
{
	struct fixture *fx = fixture_with_kernel();
	struct page *p = page_open(fx, "s1");
	fake_kernel_say(fx->kernel, CHANNEL_IOPUB, "status", NULL, "{\"execution_state\":\"odd\"}");
	fake_kernel_say(fx->kernel, CHANNEL_IOPUB, "status", NULL, "{}");
	fake_kernel_say(fx->kernel, CHANNEL_IOPUB, "iopub_welcome", NULL, "{}");
	page_pull(p);
	assert_int_equal(p->n, 1);
	assert_state(fx, "idle");
	page_leave(p, 0);
	fixture_free(fx);
}

/* Case 11: code points, not UTF-16 units or bytes. */
TEST(relay, a_cursor_past_the_code_is_clamped)
{
	static const struct {
		const char *given, *sent;
	} rows[] = {
		{"{\"code\":\"w=\\\"\U0001F9EA\U0001F9EA\\\"; prin\",\"cursor_pos\":12}", ":12}"},
		{"{\"code\":\"w=\\\"\U0001F9EA\U0001F9EA\\\"; prin\",\"cursor_pos\":14}", ":12}"},
		{"{\"cursor_pos\":18 ,\"code\":\"w=\\\"\\ud83e\\uddea\\ud83e\\uddea\\\"; prin\"}",
			":12 ,"},
		{"{\"code\":\"\",\"cursor_pos\":1e9}", ":0}"},
		{"{\"code\":\"ab\\n\\u00e9\",\"cursor_pos\":99999999999999999999999999}", ":4}"},
		{"{\"code\":\"ab\",\"cursor_pos\":-1,\"detail_level\":0}", ":0,\"detail"},
		{"{\"code\":\"ab\",\"cursor_pos\":null}", ":null}"},
		{"{\"code\":3,\"cursor_pos\":9}", ":9}"},
		{"{}", "{}"},
	};
	struct fixture *fx = fixture_with_kernel();
	struct page *p = page_open(fx, "s1");
	char id[16];
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		(void)snprintf(id, sizeof id, "m%zu", i);
		ask(p, CHANNEL_SHELL, i % 2 ? "complete_request" : "inspect_request", id,
			rows[i].given);
		struct jmsg *m = kernel_takes(fx, id);
		if (!holds(m, rows[i].sent))
			fail_msg("row %zu: %.*s", i, (int)m->part[PART_CONTENT].len,
				(const char *)m->part[PART_CONTENT].data);
		jmsg_unref(m);
	}
	page_leave(p, 0);
	fixture_free(fx);
}

TEST(relay, a_large_request_is_answered_by_its_header_alone)
{
	struct fixture *fx = fixture_with_kernel();
	struct page *p = page_open(fx, "s1");
	char *content = malloc(100000);
	(void)snprintf(content, 100000, "{\"data\":\"%099000d\"}", 1);
	ask(p, CHANNEL_SHELL, "odd_request", "o", content);
	struct jmsg *m = kernel_takes(fx, "o");
	assert_true(m->frame.len > 99000);
	jmsg_unref(m);
	fake_kernel_die(fx->kernel, DEATH_EXIT, 1, "gone");
	settle(fx);
	page_pull(p);
	assert_true(page_has_end(p, "o", "odd_reply"));
	free(content);
	page_leave(p, 0);
	fixture_free(fx);
}

TEST(relay, a_huge_stream_comes_in_several)
{
	struct fixture *fx = fixture_with_kernel();
	struct page *p = page_open(fx, "s1");
	size_t size = 5u << 20;
	char *content = malloc(size);
	execute(p, "a");
	struct jmsg *m = kernel_takes(fx, "a");
	say_status(fx->kernel, m, "busy");
	(void)snprintf(content, size, "{\"name\":\"stdout\",\"text\":\"%0*d\"}", (int)size - 64, 7);
	fake_kernel_say(fx->kernel, CHANNEL_IOPUB, "stream", m, content);
	say_reply(fx->kernel, m, REPLY_OK);
	say_status(fx->kernel, m, "idle");
	page_pull_all(fx, p);
	size_t text = 0;
	assert_int_equal(page_count(p, "stream", "a", ""), 5);
	for (size_t i = 0; i < p->n; i++) {
		assert_true(p->got[i]->frame.len < (1u << 20) + 4096);
		if (strcmp(p->got[i]->msg_type, "stream") == 0)
			text += p->got[i]->part[PART_CONTENT].len;
	}
	assert_int_equal(text - 5 * strlen("{\"name\":\"stdout\",\"text\":\"\"}"), size - 64);
	assert_true(page_has_end(p, "a", "execute_reply"));
	assert_execution(fx, "a", "done", "ok");
	free(content);
	jmsg_unref(m);
	page_leave(p, 0);
	fixture_free(fx);
}

RUN(TEST_ROW(relay, a_busy_kernels_info_is_answered_from_what_is_kept),
	TEST_ROW(relay, a_kernel_out_of_the_pool_answers_from_what_it_said_as_it_became_ready),
	TEST_ROW(relay, a_kernel_that_was_used_answers_its_info_itself),
	TEST_ROW(relay, an_idle_kernel_answers_its_info_itself),
	TEST_ROW(relay, a_message_sent_twice_runs_once_and_is_answered_again),
	TEST_ROW(relay, equal_ids_of_two_sessions_are_two_requests),
	TEST_ROW(relay, a_double_whose_reply_is_not_kept_gets_an_error),
	TEST_ROW(relay, beyond_its_bound_the_queue_refuses_with_a_reply),
	TEST_ROW(relay, bytes_that_wait_are_bounded_too),
	TEST_ROW(relay, requests_that_no_kernel_answers_do_not_fill_it),
	TEST_ROW(relay, a_comm_message_ends_with_its_idle),
	TEST_ROW(relay, a_status_that_is_none_reaches_no_page),
	TEST_ROW(relay, a_cursor_past_the_code_is_clamped),
	TEST_ROW(relay, a_large_request_is_answered_by_its_header_alone),
	TEST_ROW(relay, a_huge_stream_comes_in_several),
	TEST_ROW(relay, a_kernel_that_was_started_for_somebody_answers_its_info_itself))
