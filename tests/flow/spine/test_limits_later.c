/* A deadline over a gateway that is killed: it holds, and nothing is lost, run twice or answered
 * twice. */
#include "tests/lib/limits_fixture.h"

static void assert_once(struct fixture *next, struct page *q, const char *id)
{
	page_pull_all(next, q);
	assert_int_equal(page_count(q, "execute_reply", id, ""), 1);
	assert_int_equal(page_count(q, "status", id, "idle"), 1);
}

TEST(limits_later, a_deadline_holds_over_a_killed_gateway)
{
	struct page *p;
	struct fixture *fx = with_limit("standard", &p);
	struct jmsg *m = runs(fx, p, "d");
	advance(fx, LIMIT_MS - 1000);
	struct fixture *next = after_a_kill(fx);
	struct page *q = page_open(next, "s1");
	fake_kernel_ready(next->kernel);
	replay_is_over(next);
	advance(next, 999);
	assert_int_equal(fake_kernel_interrupts(next->kernel), 0);
	advance(next, 1);
	assert_int_equal(fake_kernel_interrupts(next->kernel), 1);
	advance(next, 2000);
	assert_int_equal(fake_kernel_kills(next->kernel), 1);
	fake_kernel_parks(next->kernel, 5, "b", TEXT);
	fake_kernel_die(next->kernel, DEATH_SIGNAL, 9, "killed");
	fake_kernel_looked(next->kernel, NULL);
	assert_recorded(next, "d", "timed_out");
	tell_way(next, "b");
	fake_kernel_proves(next->kernel, TEXT);
	assert_state(next, "idle");
	assert_once(next, q, "d");
	page_leave(q, 0);
	next_free(next);
	ends(fx, m, REPLY_OK);
	leave(fx, p);
}

/* Of one that passed while nobody was there it is seen to at once, but not before all that the
 * kernel kept was read: it may have ended. */
TEST(limits_later, a_deadline_that_came_while_nobody_was_there)
{
	struct page *p;
	struct fixture *fx = with_limit("standard", &p);
	struct jmsg *m = runs(fx, p, "d");
	advance(fx, LIMIT_MS - 1000);
	struct fixture *next = after_a_kill(fx);
	advance(next, 5000);
	fake_kernel_ready(next->kernel);
	advance(next, 5000);
	assert_int_equal(fake_kernel_interrupts(next->kernel), 0);
	replay_is_over(next);
	assert_int_equal(fake_kernel_interrupts(next->kernel), 1);
	next_free(next);
	next = after_a_kill(fx);
	struct page *q = page_open(next, "s1");
	advance(next, 5000);
	fake_kernel_ready(next->kernel);
	say_reply(next->kernel, m, REPLY_OK);
	say_status(next->kernel, m, "idle");
	replay_is_over(next);
	assert_int_equal(fake_kernel_interrupts(next->kernel), 0);
	assert_recorded(next, "d", "ok");
	assert_once(next, q, "d");
	page_leave(q, 0);
	next_free(next);
	ends(fx, m, REPLY_OK);
	leave(fx, p);
}

TEST(limits_later, killed_after_the_interrupt)
{
	struct page *p;
	struct fixture *fx = with_limit("standard", &p);
	struct jmsg *m = runs(fx, p, "d");
	advance(fx, LIMIT_MS + 500);
	struct fixture *next = after_a_kill(fx);
	struct page *q = page_open(next, "s1");
	fake_kernel_ready(next->kernel); /* it obeyed meanwhile */
	say_reply(next->kernel, m, REPLY_ERROR);
	say_status(next->kernel, m, "idle");
	replay_is_over(next);
	assert_recorded(next, "d", "timed_out");
	assert_once(next, q, "d");
	assert_int_equal(page_count(q, "stream", "d", "Time limit of 30 s"), 1);
	advance(next, 4 * LIMIT_MS);
	assert_int_equal(fake_kernel_kills(next->kernel), 0);
	page_leave(q, 0);
	next_free(next);
	next = after_a_kill(fx); /* it did not */
	fake_kernel_ready(next->kernel);
	replay_is_over(next);
	assert_int_equal(fake_kernel_interrupts(next->kernel), 1);
	advance(next, 2000);
	assert_int_equal(fake_kernel_kills(next->kernel), 1);
	next_free(next);
	ends(fx, m, REPLY_OK);
	leave(fx, p);
}

TEST(limits_later, killed_after_the_kill)
{
	struct page *p;
	struct fixture *fx = with_limit("standard", &p);
	struct jmsg *m = runs(fx, p, "d");
	advance(fx, LIMIT_MS);
	advance(fx, 2000);
	assert_int_equal(fake_kernel_kills(fx->kernel), 1);
	struct fixture *next = after_a_kill(fx);
	struct page *q = page_open(next, "s1");
	fake_kernel_parks(next->kernel, 5, "b", TEXT);
	fake_kernel_die(next->kernel, DEATH_SIGNAL, 9, "killed");
	assert_true(fake_kernel_is_looked_for(next->kernel));
	fake_kernel_looked(next->kernel, NULL);
	assert_recorded(next, "d", "timed_out");
	tell_way(next, "b");
	fake_kernel_proves(next->kernel, TEXT);
	assert_state(next, "idle");
	assert_once(next, q, "d");
	assert_int_equal(page_count(q, "execute_reply", "d", "TimeLimitExceeded"), 1);
	(void)page_find(q, 0, "stream", "d", "Gone back to In[2]");
	page_leave(q, 0);
	next_free(next);
	/* The packet was lost with the gateway: the cell lives, and its time is up. */
	next = after_a_kill(fx);
	fake_kernel_ready(next->kernel);
	replay_is_over(next);
	assert_int_equal(fake_kernel_interrupts(next->kernel), 1);
	advance(next, 2000);
	assert_int_equal(fake_kernel_kills(next->kernel), 1);
	next_free(next);
	jmsg_unref(m);
	fake_kernel_die(fx->kernel, DEATH_SIGNAL, 9, "killed");
	leave(fx, p);
}

/* It is dead and answered; the way back was not found yet. */
TEST(limits_later, killed_on_the_way_back)
{
	struct page *p;
	struct fixture *fx = with_limit("standard", &p);
	killed(fx, runs(fx, p, "d"));
	fake_kernel_looked(fx->kernel, NULL);
	record_all(fx);
	struct fixture *next = after_a_kill(fx);
	fake_kernel_parks(next->kernel, 5, "b", TEXT);
	fake_kernel_die(next->kernel, DEATH_SIGNAL, 9, "killed");
	fake_kernel_looked(next->kernel, NULL);
	record_all(next);
	assert_string_equal(fake_histories_asked(next->gw.histories)->node, HISTORY_BEFORE);
	tell_way(next, "b");
	fake_kernel_proves(next->kernel, TEXT);
	assert_state(next, "idle");
	assert_int_equal(fake_histories_n(next->gw.histories), 0); /* nothing was run twice */
	next_free(next);
	tell_way(fx, "b");
	fake_kernel_proves(fx->kernel, TEXT);
	next = after_a_kill(fx); /* another death is one like any other */
	fake_kernel_die(next->kernel, DEATH_SIGNAL, 9, "killed");
	assert_false(fake_kernel_is_looked_for(next->kernel));
	next_free(next);
	leave(fx, p);
}

RUN(TEST_ROW(limits_later, a_deadline_holds_over_a_killed_gateway),
	TEST_ROW(limits_later, a_deadline_that_came_while_nobody_was_there),
	TEST_ROW(limits_later, killed_after_the_interrupt),
	TEST_ROW(limits_later, killed_after_the_kill),
	TEST_ROW(limits_later, killed_on_the_way_back))
