/* Clients as cursors over the journal: who gets what, and what is not lost. */
#include "tests/lib/spine_fixture.h"

static void say_lines(struct fixture *fx, const struct jmsg *parent, int from, int to)
{
	char text[32];
	for (int i = from; i < to; i++) {
		(void)snprintf(text, sizeof text, "k%d.", i);
		say_stream(fx->kernel, parent, text);
	}
	fake_kernel_turn(fx->kernel);
}

static size_t count_line(const struct page *p, int i)
{
	char text[32];
	(void)snprintf(text, sizeof text, "k%d.", i);
	return page_count(p, "stream", NULL, text);
}

TEST(clients, outputs_reach_all_and_a_reply_its_asker)
{
	struct fixture *fx = fixture_with_kernel();
	struct page *p = page_open(fx, "s1"), *q = page_open(fx, "s2"), *r = page_open(fx, NULL);
	execute(p, "a");
	struct jmsg *m = kernel_takes(fx, "a");
	assert_true(!q->readable);
	say_status(fx->kernel, m, "busy");
	assert_true(q->readable && r->readable);
	say_stream(fx->kernel, m, "k0.");
	say_reply(fx->kernel, m, REPLY_OK);
	say_status(fx->kernel, m, "idle");
	page_pull(p);
	page_pull(q);
	page_pull(r);
	assert_true(page_has_end(p, "a", "execute_reply"));
	assert_int_equal(page_count(q, "execute_reply", NULL, ""), 0);
	assert_int_equal(count_line(q, 0) + count_line(r, 0), 2);
	jmsg_unref(m);
	page_leave(p, 0);
	page_leave(q, 0);
	page_leave(r, 0);
	fixture_free(fx);
}

TEST(clients, a_returning_one_reads_on)
{
	struct fixture *fx = fixture_with_kernel();
	struct page *p = page_open(fx, "s1");
	execute(p, "a");
	struct jmsg *m = kernel_takes(fx, "a");
	say_status(fx->kernel, m, "busy");
	say_lines(fx, m, 0, 6);
	page_pull(p);
	uint64_t lost = p->number[page_find(p, 0, "stream", "a", "k3.")];
	page_leave(p, lost);
	say_lines(fx, m, 6, 10);
	say_reply(fx->kernel, m, REPLY_OK);
	say_status(fx->kernel, m, "idle");
	p = page_open(fx, "s1");
	page_pull(p);
	for (int i = 0; i < 10; i++)
		assert_int_equal(count_line(p, i), i < 3 ? 0 : 1);
	assert_true(page_has_end(p, "a", "execute_reply"));
	jmsg_unref(m);
	page_leave(p, 0);
	fixture_free(fx);
}

/* Case 13 (b): a reloaded page has a new session and misses nothing of the running cell. */
TEST(clients, a_new_session_gets_the_running_cell_from_its_start)
{
	struct fixture *fx = fixture_with_kernel();
	struct page *p = page_open(fx, "s1");
	execute(p, "z");
	kernel_answers(fx, "z", REPLY_OK);
	execute(p, "a");
	struct jmsg *m = kernel_takes(fx, "a");
	say_status(fx->kernel, m, "busy");
	say_lines(fx, m, 0, 5);
	page_leave(p, 0);
	p = page_open(fx, "s2");
	page_pull(p);
	assert_string_equal(p->got[0]->msg_type, "status");
	assert_string_equal(p->got[0]->parent_id, "");
	assert_string_equal(p->got[0]->session, fake_kernel_session(fx->kernel));
	assert_true(holds(p->got[0], "busy"));
	say_lines(fx, m, 5, 8);
	say_reply(fx->kernel, m, REPLY_OK);
	say_status(fx->kernel, m, "idle");
	page_pull(p);
	for (int i = 0; i < 8; i++)
		assert_int_equal(count_line(p, i), 1);
	assert_int_equal(page_count(p, "status", "z", ""), 0);
	assert_int_equal(page_count(p, "status", "a", "idle"), 1);
	jmsg_unref(m);
	page_leave(p, 0);
	fixture_free(fx);
}

TEST(clients, a_new_session_of_an_idle_kernel_begins_at_the_end)
{
	struct fixture *fx = fixture_with_kernel();
	struct page *p = page_open(fx, "s1");
	execute(p, "a");
	kernel_answers(fx, "a", REPLY_OK);
	struct page *q = page_open(fx, "s2");
	page_pull(q);
	assert_int_equal(q->n, 0);
	page_leave(p, 0);
	page_leave(q, 0);
	fixture_free(fx);
}

/* Trap 7: Lab opens a second socket of the same session 50 ms after the first. */
TEST(clients, a_newer_socket_takes_over_at_once)
{
	struct fixture *fx = fixture_with_kernel();
	struct page *p = page_open(fx, "s1");
	execute(p, "a");
	struct jmsg *m = kernel_takes(fx, "a");
	say_status(fx->kernel, m, "busy");
	say_stream(fx->kernel, m, "k0.");
	page_pull(p);
	say_stream(fx->kernel, m, "k1.");
	p->undelivered = p->number[page_find(p, 0, "stream", "a", "k0.")];
	struct page *q = page_open(fx, "s1");
	assert_true(p->replaced);
	say_reply(fx->kernel, m, REPLY_OK);
	say_status(fx->kernel, m, "idle");
	page_pull(q);
	assert_int_equal(count_line(q, 0), 1);
	assert_int_equal(count_line(q, 1), 1);
	assert_true(page_has_end(q, "a", "execute_reply"));
	jmsg_unref(m);
	page_leave(p, 0);
	page_leave(q, 0);
	fixture_free(fx);
}

TEST(clients, an_input_request_waits_for_its_asker)
{
	struct fixture *fx = fixture_with_kernel();
	struct page *p = page_open(fx, "s1"), *q = page_open(fx, "s2");
	execute(p, "a");
	struct jmsg *m = kernel_takes(fx, "a");
	page_leave(p, 0);
	fake_kernel_say(fx->kernel, CHANNEL_STDIN, "input_request", m, "{\"prompt\":\"?\"}");
	page_pull(q);
	assert_int_equal(page_count(q, "input_request", NULL, ""), 0);
	p = page_open(fx, "s1");
	page_pull(p);
	assert_int_equal(page_count(p, "input_request", "a", "?"), 1);
	ask(p, CHANNEL_STDIN, "input_reply", "r", "{\"value\":\"v\"}");
	jmsg_unref(kernel_takes(fx, "r"));
	jmsg_unref(m);
	page_leave(p, 0);
	page_leave(q, 0);
	fixture_free(fx);
}

TEST(clients, a_reply_of_unknown_parent_goes_by_session)
{
	struct fixture *fx = fixture_with_kernel();
	struct page *p = page_open(fx, "s1"), *q = page_open(fx, "s2");
	struct jmsg *m = ask_with(p, CHANNEL_SHELL, "execute_request", "never-sent", "{}");
	say_reply(fx->kernel, m, REPLY_OK);
	page_pull(p);
	page_pull(q);
	assert_int_equal(page_count(p, "execute_reply", "never-sent", ""), 1);
	assert_int_equal(page_count(q, "execute_reply", NULL, ""), 0);
	jmsg_unref(m);
	page_leave(p, 0);
	page_leave(q, 0);
	fixture_free(fx);
}

static void say_error_line(struct fixture *fx, const struct jmsg *parent)
{
	fake_kernel_say(fx->kernel, CHANNEL_IOPUB, "stream", parent,
		"{\"name\":\"stderr\",\"text\":\"oops\"}");
}

/* Of a page that lags: texts are merged, their order and the other messages are not touched. */
TEST(clients, one_that_lags_gets_merged_texts)
{
	struct fixture *fx = fixture_with_kernel();
	struct page *p = page_open(fx, "s1");
	execute(p, "a");
	struct jmsg *m = kernel_takes(fx, "a");
	say_status(fx->kernel, m, "busy");
	say_lines(fx, m, 0, 60);
	fake_kernel_say(fx->kernel, CHANNEL_IOPUB, "display_data", m, "{\"data\":{}}");
	say_lines(fx, m, 60, 120);
	say_error_line(fx, m);
	say_lines(fx, m, 120, 300);
	page_pull(p);
	assert_int_equal(page_count(p, "stream", "a", "oops"), 1);
	assert_int_equal(page_count(p, "stream", "a", ""), 4);
	size_t at = page_find(p, 0, "stream", "a", ".k58.k59.\"");
	at = page_find(p, at, "display_data", "a", "");
	at = page_find(p, at, "stream", "a", "\"k60.k61.");
	at = page_find(p, at, "stream", "a", "\"oops\"");
	(void)page_find(p, at, "stream", "a", "\"k120.k121.");
	say_lines(fx, m, 300, 310); /* a page that is near gets what the kernel sent */
	page_pull(p);
	for (int i = 0; i < 310; i++)
		assert_int_equal(count_line(p, i), 1);
	assert_int_equal(page_count(p, "stream", "a", ""), 14);
	jmsg_unref(m);
	page_leave(p, 0);
	fixture_free(fx);
}

TEST(clients, a_merged_text_that_was_lost_comes_again_whole)
{
	struct fixture *fx = fixture_with_kernel();
	struct page *p = page_open(fx, "s1");
	execute(p, "a");
	struct jmsg *m = kernel_takes(fx, "a");
	say_status(fx->kernel, m, "busy");
	say_lines(fx, m, 0, 100);
	say_error_line(fx, m);
	page_pull(p);
	uint64_t lost = p->number[page_find(p, 0, "stream", "a", "k99.")];
	page_leave(p, lost);
	p = page_open(fx, "s1");
	page_pull(p);
	for (int i = 0; i < 100; i++)
		assert_int_equal(count_line(p, i), 1);
	assert_int_equal(page_count(p, "stream", "a", "oops"), 1);
	assert_int_equal(page_count(p, "status", "a", ""), 0);
	jmsg_unref(m);
	page_leave(p, 0);
	fixture_free(fx);
}

/* What was pulled to see whether it fits, and did not, is not lost when the page goes then. */
TEST(clients, one_that_goes_between_two_texts_reads_on)
{
	struct fixture *fx = fixture_with_kernel();
	struct page *p = page_open(fx, "s1");
	execute(p, "a");
	struct jmsg *m = kernel_takes(fx, "a");
	say_lines(fx, m, 0, 100);
	say_error_line(fx, m);
	say_lines(fx, m, 100, 101);
	page_pull_one(p);
	assert_true(page_find(p, 0, "stream", "a", "k99.") + 1 == p->n);
	page_leave(p, 0);
	p = page_open(fx, "s1");
	page_pull(p);
	assert_int_equal(page_count(p, "stream", "a", "oops"), 1);
	assert_int_equal(count_line(p, 99), 0);
	assert_int_equal(count_line(p, 100), 1);
	jmsg_unref(m);
	page_leave(p, 0);
	fixture_free(fx);
}

static size_t count_clients(struct fixture *fx)
{
	cJSON *rows = view(fx, "clients");
	size_t n = (size_t)cJSON_GetArraySize(rows);
	cJSON_Delete(rows);
	return n;
}

TEST(clients, the_gone_are_kept_up_to_a_bound)
{
	struct fixture *fx = fixture_with_kernel();
	char session[16];
	for (int i = 0; i < 80; i++) {
		(void)snprintf(session, sizeof session, "s%d", i);
		page_leave(page_open(fx, session), 0);
	}
	assert_int_equal(count_clients(fx), 64);
	page_leave(page_open(fx, NULL), 0);
	assert_int_equal(count_clients(fx), 64);
	fixture_free(fx);
}

TEST(clients, what_they_send_on_iopub_is_ignored)
{
	struct fixture *fx = fixture_with_kernel();
	struct page *p = page_open(fx, "s1");
	ask(p, CHANNEL_IOPUB, "stream", "x", "{}");
	ask(p, CHANNEL_HB, "ping", "y", "{}");
	assert_int_equal(fake_kernel_waiting(fx->kernel), 0);
	page_leave(p, 0);
	fixture_free(fx);
}

RUN(TEST_ROW(clients, outputs_reach_all_and_a_reply_its_asker),
	TEST_ROW(clients, a_returning_one_reads_on),
	TEST_ROW(clients, a_new_session_gets_the_running_cell_from_its_start),
	TEST_ROW(clients, a_new_session_of_an_idle_kernel_begins_at_the_end),
	TEST_ROW(clients, a_newer_socket_takes_over_at_once),
	TEST_ROW(clients, an_input_request_waits_for_its_asker),
	TEST_ROW(clients, a_reply_of_unknown_parent_goes_by_session),
	TEST_ROW(clients, one_that_lags_gets_merged_texts),
	TEST_ROW(clients, a_merged_text_that_was_lost_comes_again_whole),
	TEST_ROW(clients, one_that_goes_between_two_texts_reads_on),
	TEST_ROW(clients, the_gone_are_kept_up_to_a_bound),
	TEST_ROW(clients, what_they_send_on_iopub_is_ignored))
