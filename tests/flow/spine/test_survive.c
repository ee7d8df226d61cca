/* A gateway is killed and the next one takes its kernel up: what was asked has one outcome. */
#include "tests/lib/survive_fixture.h"

TEST(survive, a_long_notebook_runs_on)
{
	struct fixture *fx = mortal();
	struct page *p = page_open(fx, "s1");
	char id[16];
	for (int i = 0; i < 300; i++) {
		(void)snprintf(id, sizeof id, "n%d", i);
		execute(p, id);
	}
	advance(fx, 110);
	struct fixture *next = after_a_kill(fx);
	struct page *q = page_open(next, "s1");
	fake_kernel_ready(next->kernel);
	replay_is_over(next);
	for (int i = 0; i < 300; i++) {
		(void)snprintf(id, sizeof id, "n%d", i);
		kernel_answers(next, id, REPLY_OK);
	}
	page_pull_all(next, q);
	for (int i = 0; i < 300; i++) {
		(void)snprintf(id, sizeof id, "n%d", i);
		assert_true(page_has_end(q, id, "execute_reply"));
	}
	page_leave(q, 0);
	next_free(next);
	page_leave(p, 0);
	fixture_free(fx);
}

TEST(survive, what_found_no_room_is_said)
{
	struct fixture *fx = mortal();
	struct page *p = page_open(fx, "s1");
	char path[256], away[264], id[16];
	(void)snprintf(path, sizeof path, "%s/journals/%s/live", fx->folder, desk_id(fx->desk));
	(void)snprintf(away, sizeof away, "%s.away", path);
	assert_int_equal(rename(path, away), 0); /* it cannot grow */
	for (int i = 0; i < 67; i++) {
		(void)snprintf(id, sizeof id, "n%d", i);
		execute(p, id);
	}
	assert_int_equal(rename(away, path), 0);
	advance(fx, 110);
	struct fixture *next = after_a_kill(fx);
	struct page *q = page_open(next, "s1");
	fake_kernel_ready(next->kernel);
	replay_is_over(next);
	page_pull_all(next, q);
	assert_int_equal(page_count(q, "stream", NULL, "\"3 requests "), 1);
	page_leave(q, 0);
	next_free(next);
	page_leave(p, 0);
	fixture_free(fx);
}

/* A client that did not see its answer sends the message again once it is back. */
TEST(survive, what_was_answered_is_not_run_again)
{
	struct fixture *fx = mortal();
	struct page *p = page_open(fx, "s1"), *other = page_open(fx, "s2");
	execute(p, "a");
	kernel_answers(fx, "a", "{\"status\":\"ok\",\"execution_count\":7}");
	execute(p, "b");
	execute(p, "c");
	kernel_answers(fx, "b", REPLY_ERROR); /* c is aborted */
	page_pull(p);
	client_wrote(p->client, 0);
	advance(fx, 110);
	struct fixture *next = after_a_kill(fx);
	struct page *q = page_open(next, "s1");
	fake_kernel_ready(next->kernel);
	replay_is_over(next);
	execute(q, "a");
	execute(q, "b");
	execute(q, "c");
	assert_int_equal(fake_kernel_waiting(next->kernel), 0);
	page_pull_all(next, q);
	assert_int_equal(page_count(q, "execute_reply", "a", "\"execution_count\":7"), 1);
	assert_int_equal(page_count(q, "execute_reply", "b", "\"ename\":\"E\""), 1);
	assert_int_equal(page_count(q, "execute_reply", "c", "aborted"), 1);
	execute(q, "d");
	kernel_answers(next, "d", REPLY_OK);
	page_pull_all(next, q);
	assert_true(page_has_end(q, "d", "execute_reply"));
	page_leave(q, 0);
	next_free(next);
	page_leave(p, 0);
	page_leave(other, 0);
	fixture_free(fx);
}

/* Killed before the answer was in the file: it comes again from what the kernel kept. */
TEST(survive, what_comes_again_as_answered_is_not_run_again)
{
	struct fixture *fx = mortal();
	struct page *p = page_open(fx, "s1");
	advance(fx, 110);
	execute(p, "a");
	struct jmsg *a = kernel_takes(fx, "a"), *kept[3];
	kept[0] = fake_kernel_says(
		fx->kernel, CHANNEL_IOPUB, "status", a, "{\"execution_state\":\"busy\"}");
	kept[1] = fake_kernel_says(fx->kernel, CHANNEL_SHELL, "execute_reply", a, REPLY_OK);
	kept[2] = fake_kernel_says(
		fx->kernel, CHANNEL_IOPUB, "status", a, "{\"execution_state\":\"idle\"}");
	struct fixture *next = after_a_kill(fx);
	struct page *q = page_open(next, "s1");
	fake_kernel_ready(next->kernel);
	for (size_t i = 0; i < ARRAY_LEN(kept); i++)
		fake_kernel_says_again(next->kernel, kept[i]);
	replay_is_over(next);
	page_pull_all(next, q);
	assert_true(page_has_end(q, "a", "execute_reply"));
	execute(q, "a");
	assert_int_equal(fake_kernel_waiting(next->kernel), 0);
	page_pull_all(next, q);
	assert_int_equal(page_count(q, "execute_reply", "a", "ok"), 2);
	for (size_t i = 0; i < ARRAY_LEN(kept); i++)
		jmsg_unref(kept[i]);
	jmsg_unref(a);
	page_leave(q, 0);
	next_free(next);
	page_leave(p, 0);
	fixture_free(fx);
}

/* The client is back before the kernel has said what it kept. */
TEST(survive, what_is_sent_again_too_early_is_not_run_again)
{
	sent_again_too_early(mortal());
}

/* The gap of a page that is behind holds what the earlier gateway's kernel answered. */
TEST(survive, a_gap_of_the_earlier_gateway_is_made_good)
{
	struct fixture *fx = mortal();
	struct page *p = page_open(fx, "s1");
	page_pull(p);
	client_wrote(p->client, 0);
	execute(p, "a");
	kernel_answers(fx, "a", REPLY_OK);
	advance(fx, 110);
	fx->gw.config.journal_disk = 1 << 20; /* the next one's */
	fx->gw.config.journal_memory = 64 << 10;
	struct fixture *next = after_a_kill(fx);
	fake_kernel_ready(next->kernel);
	replay_is_over(next);
	flood_1mib(next);
	struct page *q = page_open(next, "s1");
	page_pull_all(next, q);
	assert_int_equal(page_count(q, "stream", "", "missing here"), 1);
	assert_true(page_has_end(q, "a", "execute_reply"));
	page_leave(q, 0);
	next_free(next);
	page_leave(p, 0);
	fixture_free(fx);
}

/* Its reply came before the kill, its idle after the gap. */
TEST(survive, a_half_of_the_earlier_gateway_is_made_good)
{
	struct fixture *fx = mortal();
	struct page *p = page_open(fx, "s1");
	page_pull(p);
	client_wrote(p->client, 0);
	execute(p, "a");
	struct jmsg *a = kernel_takes(fx, "a");
	say_status(fx->kernel, a, "busy");
	say_reply(fx->kernel, a, REPLY_OK);
	advance(fx, 110);
	fx->gw.config.journal_disk = 1 << 20; /* the next one's */
	fx->gw.config.journal_memory = 64 << 10;
	struct fixture *next = after_a_kill(fx);
	fake_kernel_ready(next->kernel);
	replay_is_over(next);
	flood_1mib(next);
	struct page *q = page_open(next, "s1");
	page_pull_all(next, q);
	assert_int_equal(page_count(q, "execute_reply", "a", "ok"), 1);
	assert_int_equal(page_count(q, "status", "a", "idle"), 0);
	say_status(next->kernel, a, "idle");
	fake_kernel_turn(next->kernel);
	page_pull_all(next, q);
	assert_true(page_has_end(q, "a", "execute_reply"));
	assert_state(next, "idle");
	jmsg_unref(a);
	page_leave(q, 0);
	next_free(next);
	page_leave(p, 0);
	fixture_free(fx);
}

/* Its pages were told that what they asked is aborted: the old process must not answer after all.
 */
TEST(survive, a_restart_that_was_begun_is_carried_out)
{
	struct fixture *fx = mortal();
	struct page *p = page_open(fx, "s1");
	execute(p, "a");
	desk_restart(fx->desk, nothing, NULL);
	page_pull(p);
	assert_true(page_has_end(p, "a", "execute_reply"));
	advance(fx, 110);
	struct fixture *next = after_a_kill(fx);
	assert_int_equal(fake_kernel_restarts(next->kernel), 1);
	struct page *q = page_open(next, "s1");
	execute(q, "b");
	fake_kernel_ready(next->kernel);
	kernel_answers(next, "b", REPLY_OK);
	page_pull_all(next, q);
	assert_true(page_has_end(q, "b", "execute_reply"));
	/* Once. */
	advance(next, 110);
	struct fixture *last = after_a_kill(next);
	assert_int_equal(fake_kernel_restarts(last->kernel), 0);
	next_free(last);
	page_leave(q, 0);
	next_free(next);
	page_leave(p, 0);
	fixture_free(fx);
}

/* The kernel's error is in its own store, what it made of the rest was in the gateway alone. */
TEST(survive, what_we_answered_just_before_comes_again)
{
	struct fixture *fx = mortal();
	struct page *p = page_open(fx, "s1"), *q;
	advance(fx, 110);
	execute(p, "a");
	execute(p, "b");
	execute(p, "c");
	struct jmsg *a = kernel_takes(fx, "a"), *kept[2];
	kept[0] = fake_kernel_says(fx->kernel, CHANNEL_SHELL, "execute_reply", a, REPLY_ERROR);
	kept[1] = fake_kernel_says(
		fx->kernel, CHANNEL_IOPUB, "status", a, "{\"execution_state\":\"idle\"}");
	fake_kernel_turn(fx->kernel);
	struct fixture *next = after_a_kill(fx);
	q = page_open(next, "s1");
	execute(q, "b"); /* it did not see the answer */
	fake_kernel_ready(next->kernel);
	for (size_t i = 0; i < ARRAY_LEN(kept); i++)
		fake_kernel_says_again(next->kernel, kept[i]);
	replay_is_over(next);
	execute(q, "c");
	page_pull_all(next, q);
	assert_int_equal(fake_kernel_waiting(next->kernel), 0);
	assert_int_equal(page_count(q, "execute_reply", "a", "\"ename\":\"E\""), 1);
	assert_int_equal(page_count(q, "status", "a", "idle"), 1);
	assert_int_equal(page_count(q, "execute_reply", "b", "aborted"), 1);
	assert_int_equal(page_count(q, "status", "b", "idle"), 1);
	assert_true(page_find(q, 0, "execute_reply", "a", "") <
		    page_find(q, 0, "execute_reply", "b", ""));
	assert_int_equal(page_count(q, "execute_reply", "c", "aborted"), 2); /* it asked again */
	for (size_t i = 0; i < ARRAY_LEN(kept); i++)
		jmsg_unref(kept[i]);
	jmsg_unref(a);
	page_leave(q, 0);
	next_free(next);
	page_leave(p, 0);
	fixture_free(fx);
}

/* Nor does it once more, whichever gateway said it, when it has been written. */
TEST(survive, what_we_answered_is_not_said_to_whom_it_had_reached)
{
	struct fixture *fx = mortal();
	struct page *p = page_open(fx, "s1"), *other = page_open(fx, "s2");
	advance(fx, 110);
	page_pull(other);
	client_wrote(other->client, 0);
	execute(p, "a");
	kernel_answers(fx, "a", REPLY_OK);
	advance(fx, 110);
	execute(p, "b");
	execute(p, "c");
	jmsg_unref(kernel_takes(fx, "b"));
	fake_kernel_die(fx->kernel, DEATH_SIGNAL, 9, "killed");
	page_pull(p);
	client_wrote(p->client, 0);
	struct fixture *next = after_a_kill(fx);
	fake_kernel_ready(next->kernel);
	replay_is_over(next);
	struct page *q = page_open(next, "s1"), *r = page_open(next, "s2");
	page_pull_all(next, q);
	page_pull_all(next, r);
	assert_int_equal(page_count(q, "execute_reply", NULL, ""), 0);
	assert_int_equal(page_count(q, "status", "b", "") + page_count(q, "status", "c", ""), 0);
	assert_int_equal(page_count(r, "status", "b", "idle"), 1);
	assert_int_equal(page_count(r, "status", "c", "idle"), 1);
	client_wrote(q->client, 0);
	advance(next, 110);
	struct fixture *last = after_a_kill(next);
	fake_kernel_ready(last->kernel);
	replay_is_over(last);
	struct page *t = page_open(last, "s1");
	page_pull_all(last, t);
	assert_int_equal(page_count(t, "status", "b", "") + page_count(t, "status", "c", ""), 0);
	page_leave(t, 0);
	next_free(last);
	page_leave(q, 0);
	page_leave(r, 0);
	next_free(next);
	page_leave(p, 0);
	page_leave(other, 0);
	fixture_free(fx);
}

/* The reply was in no file and in no kernel; the late one that the kernel finds after all is
 * nobody's, as it was for the gateway that had answered. */
TEST(survive, a_half_that_we_said_just_before_comes_again)
{
	struct fixture *fx = mortal();
	struct page *p = page_open(fx, "s1");
	execute(p, "a");
	struct jmsg *a = kernel_takes(fx, "a");
	say_status(fx->kernel, a, "busy");
	say_status(fx->kernel, a, "idle");
	fake_kernel_turn(fx->kernel);
	advance(fx, 4000);
	advance(fx, 1000);
	assert_execution(fx, "a", "done", "error");
	struct fixture *next = after_a_kill(fx);
	struct page *q = page_open(next, "s1");
	fake_kernel_ready(next->kernel);
	say_reply(next->kernel, a, REPLY_OK);
	replay_is_over(next);
	page_pull_all(next, q);
	assert_int_equal(page_count(q, "execute_reply", "a", "NoReply"), 1);
	assert_true(page_has_end(q, "a", "execute_reply"));
	assert_state(next, "idle");
	jmsg_unref(a);
	page_leave(q, 0);
	next_free(next);
	page_leave(p, 0);
	fixture_free(fx);
}

/* The next gateway has the restart to carry out, and the kernel gives back nothing. */
TEST(survive, what_a_restart_aborted_just_before_comes_again)
{
	struct fixture *fx = mortal();
	struct page *p = page_open(fx, "s1");
	advance(fx, 110);
	execute(p, "a");
	struct jmsg *a = kernel_takes(fx, "a");
	say_status(fx->kernel, a, "busy");
	execute(p, "b");
	desk_restart(fx->desk, nothing, NULL);
	struct fixture *next = after_a_kill(fx), *lost = next_gateway(fx, desk_id(fx->desk), true);
	struct page *q = page_open(next, "s1"), *r = page_open(lost, "s1");
	page_pull_all(next, q);
	page_pull_all(lost, r);
	assert_true(page_has_end(q, "a", "execute_reply"));
	assert_true(page_has_end(q, "b", "execute_reply"));
	assert_true(page_has_end(r, "a", "execute_reply"));
	assert_true(page_has_end(r, "b", "execute_reply"));
	jmsg_unref(a);
	page_leave(q, 0);
	page_leave(r, 0);
	next_free(next);
	next_free(lost);
	page_leave(p, 0);
	fixture_free(fx);
}

static off_t live_bytes(const struct fixture *fx)
{
	char path[256];
	struct stat st;
	(void)snprintf(path, sizeof path, "%s/journals/%s/live", fx->folder, desk_id(fx->desk));
	assert_int_equal(stat(path, &st), 0);
	return st.st_size;
}

/* Each is answered at once, and its answer waits for the file. */
TEST(survive, questions_without_end_do_not_grow_the_file)
{
	struct fixture *fx = mortal();
	struct page *p = page_open(fx, "s1");
	char id[16];
	execute(p, "a");
	struct jmsg *a = kernel_takes(fx, "a");
	say_status(fx->kernel, a, "busy");
	off_t before = live_bytes(fx);
	for (int i = 0; i < 3000; i++) {
		(void)snprintf(id, sizeof id, "i%d", i);
		ask(p, CHANNEL_SHELL, "kernel_info_request", id, "{}");
	}
	assert_true(live_bytes(fx) <= before + (2 << 20));
	struct fixture *next = after_a_kill(fx);
	struct page *q = page_open(next, "s1");
	fake_kernel_ready(next->kernel);
	replay_is_over(next);
	page_pull_all(next, q);
	assert_int_equal(page_count(q, "kernel_info_reply", "i2999", "\"implementation\""), 1);
	assert_true(page_has_end(q, "i2999", "kernel_info_reply"));
	page_leave(q, 0);
	next_free(next);
	jmsg_unref(a);
	page_leave(p, 0);
	fixture_free(fx);
}

RUN(TEST_ROW(survive, a_long_notebook_runs_on), TEST_ROW(survive, what_found_no_room_is_said),
	TEST_ROW(survive, what_was_answered_is_not_run_again),
	TEST_ROW(survive, what_comes_again_as_answered_is_not_run_again),
	TEST_ROW(survive, what_is_sent_again_too_early_is_not_run_again),
	TEST_ROW(survive, a_half_of_the_earlier_gateway_is_made_good),
	TEST_ROW(survive, a_gap_of_the_earlier_gateway_is_made_good),
	TEST_ROW(survive, a_restart_that_was_begun_is_carried_out),
	TEST_ROW(survive, what_we_answered_just_before_comes_again),
	TEST_ROW(survive, what_we_answered_is_not_said_to_whom_it_had_reached),
	TEST_ROW(survive, a_half_that_we_said_just_before_comes_again),
	TEST_ROW(survive, what_a_restart_aborted_just_before_comes_again),
	TEST_ROW(survive, questions_without_end_do_not_grow_the_file))
