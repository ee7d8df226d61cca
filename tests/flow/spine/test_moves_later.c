/* A kernel that went back, through a kill of the gateway and a restart; and one whose own cell asks
 * for it. */
#include "tests/lib/moves_fixture.h"

/* ---- a gateway is killed ---- */

static void assert_next_run(struct fixture *next, const char *at, uint64_t epoch)
{
	struct page *q = page_open(next, "s1");
	fake_kernel_ready(next->kernel);
	replay_is_over(next);
	execute(q, "z");
	kernel_answers(next, "z", REPLY_OK);
	record_all(next);
	size_t n = fake_histories_n(next->gw.histories);
	const struct fake_run *run = fake_histories_run(next->gw.histories, n - 1);
	assert_string_equal(run->at, at);
	assert_int_equal(run->epoch, epoch);
	page_leave(q, 0);
	next_free(next);
}

TEST(moves_later, killed_before_the_switch_nothing_has_moved)
{
	struct page *p;
	struct fixture *fx = with_cells(&p);
	struct outcome_of o = {0};
	uint64_t epoch = fx->desk->epoch;
	go(fx, &fine, &o);
	assert_next_run(after_a_kill(fx), "", epoch);
	tell_way(fx, "b");
	assert_next_run(after_a_kill(fx), "", epoch);
	fake_kernel_not_revived(fx->kernel, E_GONE);
	done(fx, p, &o);
}

TEST(moves_later, killed_after_it_the_next_gateway_records_rightly)
{
	struct page *p;
	struct fixture *fx = with_cells(&p);
	struct outcome_of o = {0};
	uint64_t before = fx->desk->epoch;
	advance(fx, 1);
	go_to_revival(fx, &fine, &o);
	fake_kernel_proves(fx->kernel, TEXT);
	assert_true(fx->desk->epoch != before);
	struct fixture *next = after_a_kill(fx);
	assert_int_equal(next->desk->scribe.state_version, 4);
	/* Its model says where it stands before anything more is recorded. */
	assert_string_equal(fake_histories_asked(next->gw.histories)->node, "HEAD");
	assert_string_equal(fake_histories_asked(next->gw.histories)->at, NODE);
	tell_way(next, "b");
	assert_string_equal(next->desk->scribe.node, NODE);
	assert_string_equal(next->desk->scribe.branch, "main.2");
	assert_int_equal(next->desk->scribe.state_version, 4);
	assert_next_run(next, NODE, fx->desk->epoch);
	/* A run that is over and not recorded. */
	execute(p, "d");
	kernel_answers(fx, "d", REPLY_OK);
	advance(fx, 110);
	next = after_a_kill(fx);
	record_all(next);
	const struct fake_run *run = fake_histories_run(next->gw.histories, 0);
	assert_string_equal(run->at, NODE);
	assert_string_equal(run->branch, "main.2");
	assert_int_equal(run->after_version, 4);
	assert_int_equal(run->epoch, fx->desk->epoch);
	next_free(next);
	done(fx, p, &o);
}

TEST(moves_later, a_restart_begins_at_the_root_again)
{
	struct page *p;
	struct fixture *fx = with_cells(&p);
	struct outcome_of o = {0};
	go_to_revival(fx, &fine, &o);
	fake_kernel_proves(fx->kernel, TEXT);
	desk_restart(fx->desk, nothing, NULL);
	settle(fx);
	fake_kernel_ready(fx->kernel);
	execute(p, "d");
	kernel_answers(fx, "d", REPLY_OK);
	record_all(fx);
	const struct fake_run *run = fake_histories_run(fx->gw.histories, 3);
	assert_string_equal(run->at, "");
	assert_int_equal(run->after_version, 4); /* it never goes back */
	done(fx, p, &o);
}

/* ---- by a cell ---- */

static struct jmsg *ask_in_cell(struct fixture *fx, struct page *p, const char *what)
{
	execute(p, "m");
	struct jmsg *m = kernel_takes(fx, "m");
	say_status(fx->kernel, m, "busy");
	fake_kernel_ask(fx->kernel, 1, what, "In[2]");
	return m;
}

static void cell_ends(struct fixture *fx, struct jmsg *m, const char *reply)
{
	say_reply(fx->kernel, m, reply);
	say_status(fx->kernel, m, "idle");
	fake_kernel_turn(fx->kernel);
	jmsg_unref(m);
	record_all(fx);
}

TEST(moves_later, a_cell_asks_and_what_it_held_comes_after)
{
	struct page *p;
	struct fixture *fx = with_cells(&p);
	struct outcome_of o = {0};
	struct jmsg *m = ask_in_cell(fx, p, "checkout");
	execute(p, "d");
	assert_string_equal(fake_histories_asked(fx->gw.histories)->node, "In[2]");
	tell_way(fx, "b");
	const char *answer = fake_kernel_answer(fx->kernel, 1);
	assert_true(strncmp(answer, "ok {\"node\":{\"id\":\"" NODE, 50) == 0);
	assert_int_equal(fake_kernel_revives(fx->kernel), 0); /* once it has ended */
	cell_ends(fx, m, REPLY_OK);
	assert_int_equal(fake_kernel_waiting(fx->kernel), 0);
	assert_string_equal(fake_histories_asked(fx->gw.histories)->node, NODE);
	tell_way(fx, "b");
	assert_int_equal(fake_kernel_revives(fx->kernel), 5);
	fake_kernel_proves(fx->kernel, MOVED); /* who typed it is told what is lost */
	kernel_answers(fx, "d", REPLY_OK);
	page_pull_all(fx, p);
	size_t idle = page_find(p, 0, "status", "m", "idle");
	size_t said = page_find(p, idle, "stream", "m", "Gone back to In[2]");
	assert_true(page_find(p, said, "status", "d", "busy") > said);
	done(fx, p, &o);
}

TEST(moves_later, an_undo_is_of_what_ran_before_the_cell)
{
	struct page *p;
	struct fixture *fx = with_cells(&p);
	struct outcome_of o = {0};
	struct jmsg *m = ask_in_cell(fx, p, "undo");
	assert_string_equal(fake_histories_asked(fx->gw.histories)->node, HISTORY_BEFORE);
	tell_way(fx, "b");
	cell_ends(fx, m, REPLY_OK);
	tell_way(fx, "b");
	fake_kernel_not_revived(fx->kernel, E_GONE);
	page_pull_all(fx, p);
	assert_int_equal(page_count(p, "stream", "m", "Not gone back: it did not stand up"), 1);
	assert_not_moved(fx, p, fx->desk->epoch, "d");
	done(fx, p, &o);
}

TEST(moves_later, a_cell_is_refused_with_a_sentence)
{
	struct page *p;
	struct fixture *fx = with_cells(&p);
	struct outcome_of o = {0};
	fake_kernel_unparks(fx->kernel, 5);
	struct jmsg *m = ask_in_cell(fx, p, "checkout");
	tell_way(fx, "b");
	const char *answer = fake_kernel_answer(fx->kernel, 1);
	assert_true(strncmp(answer, "partial ", 8) == 0);
	assert_non_null(strstr(answer, "to be run again, in this order: In[1] to In[2]"));
	cell_ends(fx, m, REPLY_ERROR);
	assert_state(fx, "idle");
	assert_not_moved(fx, p, fx->desk->epoch, "d");
	fake_kernel_ask(fx->kernel, 2, "undo", ""); /* a thread, while no cell runs */
	tell_way(fx, "b");
	assert_true(strncmp(fake_kernel_answer(fx->kernel, 2), "invalid", 7) == 0);
	done(fx, p, &o);
}

TEST(moves_later, a_cell_that_kills_its_kernel_goes_nowhere)
{
	struct page *p;
	struct fixture *fx = with_cells(&p);
	struct outcome_of o = {0};
	struct jmsg *m = ask_in_cell(fx, p, "checkout");
	tell_way(fx, "b");
	fake_kernel_die(fx->kernel, DEATH_EXIT, 1, "ended");
	jmsg_unref(m);
	settle(fx);
	assert_int_equal(fake_kernel_restarts(fx->kernel), 1);
	fake_kernel_ready(fx->kernel);
	assert_state(fx, "idle");
	record_all(fx);
	done(fx, p, &o);
}

/* What is forgotten is no state to go back to. */
TEST(moves_later, a_park_is_released)
{
	struct page *p;
	struct fixture *fx = with_cells(&p);
	struct outcome_of o = {0};
	parks_forget(fx->desk, "a");
	assert_int_equal(fake_kernel_released(fx->kernel), -1);
	parks_forget(fx->desk, "b");
	assert_int_equal(fake_kernel_released(fx->kernel), 5);
	done(fx, p, &o);
}

/* None can be gone back to from then on, and it is said why. */
TEST(moves_later, all_parks_are_released)
{
	struct page *p;
	struct fixture *fx = with_cells(&p);
	struct outcome_of o = {0};
	unsigned n = 0;
	struct err err;
	assert_non_null(parks_find(&fx->desk->parks, "b"));
	assert_int_equal(parks_release_all(fx->desk, &n, &err), 0);
	assert_int_equal(n, 1);
	assert_int_equal(fake_kernel_released(fx->kernel), PARK_ALL);
	assert_null(parks_find(&fx->desk->parks, "b"));
	assert_string_equal(parks_refusal(&fx->desk->parks, "b"), "it was released");
	fake_kernel_unparks(fx->kernel, 5); /* said late: it is known */
	assert_int_equal(parks_release_all(fx->desk, &n, &err), 0);
	assert_int_equal(n, 0);
	done(fx, p, &o);
}

/* A cell asks for it; and not while the kernel is on its way to one of them. */
TEST(moves_later, a_cell_has_them_released)
{
	struct page *p;
	struct fixture *fx = with_cells(&p);
	struct outcome_of o = {0};
	unsigned n;
	struct err err;
	fake_kernel_ask(fx->kernel, 7, "release", "");
	assert_string_equal(fake_kernel_answer(fx->kernel, 7), "ok {\"released\":1}");
	assert_null(parks_find(&fx->desk->parks, "b"));
	fake_kernel_parks(fx->kernel, 6, "b", TEXT);
	go(fx, &fine, &o);
	assert_int_equal(parks_release_all(fx->desk, &n, &err), E_BUSY);
	assert_non_null(parks_find(&fx->desk->parks, "b"));
	done(fx, p, &o);
}

RUN(TEST_ROW(moves_later, killed_before_the_switch_nothing_has_moved),
	TEST_ROW(moves_later, killed_after_it_the_next_gateway_records_rightly),
	TEST_ROW(moves_later, a_restart_begins_at_the_root_again),
	TEST_ROW(moves_later, a_cell_asks_and_what_it_held_comes_after),
	TEST_ROW(moves_later, an_undo_is_of_what_ran_before_the_cell),
	TEST_ROW(moves_later, a_cell_is_refused_with_a_sentence),
	TEST_ROW(moves_later, a_cell_that_kills_its_kernel_goes_nowhere),
	TEST_ROW(moves_later, a_park_is_released), TEST_ROW(moves_later, all_parks_are_released),
	TEST_ROW(moves_later, a_cell_has_them_released))
