/* A cell whose time is up: interrupted, killed, looked for, and where the kernel stands then. */
#include "tests/lib/limits_fixture.h"

TEST(limits, in_time_nothing_happens)
{
	struct page *p;
	struct fixture *fx = with_limit("standard", &p);
	struct jmsg *m = runs(fx, p, "d");
	advance(fx, LIMIT_MS - 1);
	ends(fx, m, REPLY_OK);
	m = runs(fx, p, "e"); /* its time is its own */
	advance(fx, LIMIT_MS - 1);
	ends(fx, m, REPLY_OK);
	advance(fx, 4 * LIMIT_MS);
	assert_int_equal(fake_kernel_interrupts(fx->kernel), 0);
	assert_recorded(fx, "d", "ok");
	page_pull_all(fx, p);
	assert_int_equal(page_count(p, "stream", NULL, "Time limit"), 0);
	leave(fx, p);
}

TEST(limits, what_is_held_has_all_its_time)
{
	struct page *p;
	struct fixture *fx = with_limit("standard", &p);
	struct jmsg *m = runs(fx, p, "d");
	execute(p, "e");
	advance(fx, LIMIT_MS - 1);
	ends(fx, m, REPLY_OK);
	m = kernel_takes(fx, "e");
	advance(fx, LIMIT_MS - 1);
	assert_int_equal(fake_kernel_interrupts(fx->kernel), 0);
	advance(fx, 1);
	assert_int_equal(fake_kernel_interrupts(fx->kernel), 1);
	ends(fx, m, REPLY_ERROR);
	leave(fx, p);
}

static void tier_has(const char *tier, const char *metadata, uint64_t ms)
{
	struct page *p;
	struct fixture *fx = with_limit(tier, &p);
	struct jmsg *plain = ask_with(p, CHANNEL_SHELL, "execute_request", "d", "{\"code\":\"1\"}"),
		    *m;
	struct jmsg_source source = {.channel = CHANNEL_SHELL};
	memcpy(source.part, plain->part, sizeof source.part);
	source.part[PART_METADATA] = (struct bytes){(const uint8_t *)metadata, strlen(metadata)};
	assert_int_equal(jmsg_new(&source, false, &m, NULL), 0);
	assert_int_equal(client_receive(p->client, m, NULL), 0);
	jmsg_unref(plain);
	jmsg_unref(m);
	m = kernel_takes(fx, "d");
	advance(fx, ms > 0 ? ms - 1 : 100 * LIMIT_MS);
	assert_int_equal(fake_kernel_interrupts(fx->kernel), 0);
	advance(fx, 1);
	assert_int_equal(fake_kernel_interrupts(fx->kernel), ms > 0 ? 1 : 0);
	ends(fx, m, REPLY_OK);
	assert_recorded(fx, "d", ms > 0 ? "timed_out" : "ok");
	leave(fx, p);
}

TEST(limits, of_each_tier_and_less_if_it_is_asked_for)
{
	tier_has("standard", "{}", LIMIT_MS);
	tier_has("premium", "{}", 4 * LIMIT_MS);
	tier_has("none", "{}", 0);
	tier_has("standard", "{\"coppice\":{\"timeout\":1.5}}", 1500);
	tier_has("none", "{\"coppice\":{\"timeout\":2}}", 2000);
	tier_has("standard", "{\"coppice\":{\"timeout\":3000}}", LIMIT_MS);
	tier_has("standard", "{\"coppice\":{\"timeout\":-1}}", LIMIT_MS);
	tier_has("standard", "{\"coppice\":{\"timeout\":\"1\"}}", LIMIT_MS);
	tier_has("standard", "{\"coppice\":{\"timeout\":0}}", LIMIT_MS);
	tier_has("standard", "{\"coppice\":7}", LIMIT_MS);
}

static void obeys(bool parked, const char *reply)
{
	struct page *p;
	struct fixture *fx = with_limit("standard", &p);
	uint64_t epoch = fx->desk->epoch;
	if (parked)
		fake_kernel_parks(fx->kernel, 6, "c", TEXT);
	struct jmsg *m = runs(fx, p, "d");
	execute(p, "e");
	advance(fx, LIMIT_MS);
	assert_int_equal(fake_kernel_interrupts(fx->kernel), 1);
	advance(fx, 1999);
	ends(fx, m, reply);
	bool failed = strcmp(reply, REPLY_ERROR) == 0;
	if (!failed)
		kernel_answers(fx, "e", REPLY_OK);
	advance(fx, 4 * LIMIT_MS);
	assert_int_equal(fake_kernel_kills(fx->kernel), 0);
	assert_int_equal(fake_kernel_interrupts(fx->kernel), 1);
	assert_int_equal(fx->desk->epoch, epoch); /* its own aftermath */
	assert_state(fx, "idle");
	assert_recorded(fx, "d", "timed_out");
	page_pull_all(fx, p);
	size_t said = page_find(p, 0, "stream", "d", "Time limit of 30 s (tier standard)");
	assert_true(said < page_find(p, 0, "status", "d", "idle"));
	assert_int_equal(holds(p->got[said], UNDO), parked);
	assert_int_equal(holds(p->got[said], "is not kept"), !parked);
	assert_int_equal(page_count(p, "execute_reply", "d", ""), 1);
	assert_int_equal(page_count(p, "execute_reply", "e", "aborted"), failed);
	leave(fx, p);
}

TEST(limits, a_cell_that_obeys_the_interrupt_keeps_what_it_did)
{
	obeys(true, REPLY_ERROR);
	obeys(false, REPLY_ERROR);
	obeys(true, REPLY_OK); /* it caught the interrupt */
}

TEST(limits, one_that_is_half_answered_has_ended)
{
	struct page *p;
	struct fixture *fx = with_limit("standard", &p);
	struct jmsg *m = runs(fx, p, "d");
	advance(fx, LIMIT_MS);
	say_reply(fx->kernel, m, REPLY_ERROR); /* its idle is lost */
	fake_kernel_turn(fx->kernel);
	jmsg_unref(m);
	advance(fx, 2000);
	advance(fx, 4000);
	assert_int_equal(fake_kernel_kills(fx->kernel), 0);
	assert_recorded(fx, "d", "timed_out");
	m = runs(fx, p, "e");
	ends(fx, m, REPLY_OK);
	leave(fx, p);
}

TEST(limits, one_that_does_not_is_killed_and_the_state_before_comes_back)
{
	struct page *p;
	struct fixture *fx = with_limit("standard", &p);
	struct jmsg *m = runs(fx, p, "d");
	say_stream(fx->kernel, m, "so far");
	execute(p, "e");
	killed(fx, m);
	execute(p, "f"); /* it waits for the state before */
	fake_kernel_looked(fx->kernel, NULL);
	record_all(fx);
	assert_string_equal(fake_histories_asked(fx->gw.histories)->node, HISTORY_BEFORE);
	tell_way(fx, "b");
	assert_int_equal(fake_kernel_revives(fx->kernel), 5);
	assert_state(fx, "busy");
	fake_kernel_proves(fx->kernel, TEXT);
	settle(fx);
	kernel_answers(fx, "f", REPLY_OK);
	assert_state(fx, "idle");
	assert_recorded(fx, "d", "timed_out");
	assert_true(holds(run_of(fx, "d")->end, "\"ename\":\"TimeLimitExceeded\""));
	assert_true(holds(run_of(fx, "d")->end, "\"signal\":9"));
	record_all(fx);
	assert_string_equal(run_of(fx, "f")->at, NODE);
	page_pull_all(fx, p);
	size_t said = page_find(p, 0, "stream", "d", "was killed, with everything");
	size_t idle = page_find(p, said, "status", "d", "idle");
	assert_int_equal(page_count(p, "execute_reply", "d", "TimeLimitExceeded"), 1);
	assert_int_equal(page_count(p, "execute_reply", "e", "aborted"), 1);
	assert_int_equal(page_count(p, "stream", "d", "so far"), 1);
	size_t back = page_find(p, idle, "stream", "d", "Gone back to In[2]");
	assert_true(holds(p->got[back], "All variables are as they were."));
	assert_int_equal(page_count(p, "stream", NULL, "The kernel died"), 0);
	assert_int_equal(page_count(p, "status", NULL, "restarting"), 0);
	assert_true(page_has_end(p, "f", "execute_reply"));
	leave(fx, p);
}

/* Another process is begun, and all is told. */
static void assert_fresh(struct fixture *fx, struct page *p, const char *why)
{
	settle(fx);
	assert_int_equal(fake_kernel_restarts(fx->kernel), 1);
	fake_kernel_ready(fx->kernel);
	kernel_answers(fx, "f", REPLY_OK);
	assert_state(fx, "idle");
	assert_recorded(fx, "d", "timed_out");
	page_pull_all(fx, p);
	size_t killed = page_find(p, 0, "stream", "d", "was killed, with everything");
	size_t not = page_find(p, killed, "stream", "d", "Not gone back: ");
	assert_true(holds(p->got[not ], why));
	size_t fresh = page_find(p, not, "stream", "d", "A fresh kernel takes its place");
	assert_true(page_find(p, fresh, "status", NULL, "restarting") > fresh);
	assert_int_equal(page_count(p, "execute_reply", "d", "TimeLimitExceeded"), 1);
}

TEST(limits, where_the_state_before_is_not_parked_a_fresh_kernel_says_so)
{
	struct page *p;
	struct fixture *fx = with_limit("standard", &p);
	fx->gw.config.auto_restart = false; /* it did not die by itself */
	killed(fx, runs(fx, p, "d"));
	fake_kernel_looked(fx->kernel, NULL);
	record_all(fx);
	tell_way(fx, "c");
	execute(p, "f");
	assert_fresh(fx, p, "to be run again, in this order: In[1] to In[2]");
	leave(fx, p);
}

TEST(limits, what_does_not_stand_up_is_a_fresh_kernel_too)
{
	struct page *p;
	struct fixture *fx = with_limit("standard", &p);
	killed(fx, runs(fx, p, "d"));
	fake_kernel_looked(fx->kernel, NULL);
	record_all(fx);
	tell_way(fx, "b");
	fake_kernel_not_revived(fx->kernel, E_CONFLICT);
	execute(p, "f");
	assert_fresh(fx, p, "it did not stand up");
	leave(fx, p);
}

TEST(limits, what_is_not_recorded_in_time_is_a_fresh_kernel_too)
{
	struct page *p;
	struct fixture *fx = with_limit("standard", &p);
	killed(fx, runs(fx, p, "d"));
	fake_kernel_looked(fx->kernel, NULL);
	advance(fx, 3001);
	execute(p, "f");
	assert_fresh(fx, p, "is not recorded yet");
	leave(fx, p);
}

TEST(limits, something_is_left_the_container_goes)
{
	struct page *p;
	struct fixture *fx = with_limit("standard", &p);
	killed(fx, runs(fx, p, "d"));
	fake_kernel_unparks(fx->kernel, 5);
	fake_kernel_looked(fx->kernel, "1 process is of it still there");
	record_all(fx);
	tell_way(fx, "b");
	execute(p, "f");
	assert_fresh(fx, p, "thinned");
	size_t said = page_find(p, 0, "stream", "d", "1 process is of it still there");
	assert_true(holds(p->got[said], "The container was destroyed"));
	leave(fx, p);
}

TEST(limits, its_container_went_too)
{
	struct page *p;
	struct fixture *fx = with_limit("standard", &p);
	killed(fx, runs(fx, p, "d"));
	fake_kernel_unparks(fx->kernel, 5);
	fake_kernel_lose(fx->kernel);
	fake_kernel_looked(fx->kernel, "its container is gone");
	record_all(fx);
	tell_way(fx, "b");
	execute(p, "f");
	assert_fresh(fx, p, "thinned");
	(void)page_find(p, 0, "stream", "d", "Its container went too (killed)");
	leave(fx, p);
}

TEST(limits, without_histories_nothing_leads_back)
{
	struct fixture *fx = fixture_with_kernel();
	struct page *p = page_open(fx, "s1");
	fx->gw.config.time_limit_standard = LIMIT_MS;
	(void)snprintf(fx->owner.tier, sizeof fx->owner.tier, "standard");
	killed(fx, runs(fx, p, "d"));
	fake_kernel_looked(fx->kernel, NULL);
	settle(fx);
	assert_int_equal(fake_kernel_restarts(fx->kernel), 1);
	page_pull_all(fx, p);
	(void)page_find(p, 0, "stream", "d", "nothing is recorded here");
	(void)page_find(p, 0, "stream", "d", "A fresh kernel takes its place");
	leave(fx, p);
}

TEST(limits, a_kernel_that_dies_of_the_interrupt_goes_back_as_well)
{
	struct page *p;
	struct fixture *fx = with_limit("standard", &p);
	struct jmsg *m = runs(fx, p, "d");
	advance(fx, LIMIT_MS);
	fake_kernel_die(fx->kernel, DEATH_SIGNAL, 2, "SIGINT");
	jmsg_unref(m);
	fake_kernel_looked(fx->kernel, NULL);
	record_all(fx);
	tell_way(fx, "b");
	fake_kernel_proves(fx->kernel, TEXT);
	assert_state(fx, "idle");
	advance(fx, 4 * LIMIT_MS);
	assert_int_equal(fake_kernel_kills(fx->kernel), 0);
	assert_recorded(fx, "d", "timed_out");
	leave(fx, p);
}

/* ---- others come in between ---- */

TEST(limits, a_restart_or_an_end_comes_first)
{
	struct page *p;
	struct fixture *fx = with_limit("standard", &p);
	killed(fx, runs(fx, p, "d")); /* it is looked for */
	desk_restart(fx->desk, nothing, NULL);
	settle(fx);
	fake_kernel_ready(fx->kernel);
	assert_state(fx, "idle");
	assert_int_equal(fake_kernel_restarts(fx->kernel), 1);
	struct jmsg *m = runs(fx, p, "e"); /* it is to be interrupted */
	advance(fx, LIMIT_MS);
	desk_restart(fx->desk, nothing, NULL);
	jmsg_unref(m);
	settle(fx);
	fake_kernel_ready(fx->kernel);
	advance(fx, 4 * LIMIT_MS);
	assert_int_equal(fake_kernel_kills(fx->kernel), 1);
	m = runs(fx, p, "f"); /* it goes back */
	advance(fx, LIMIT_MS + 2000);
	fake_kernel_die(fx->kernel, DEATH_SIGNAL, 9, "killed");
	jmsg_unref(m);
	fake_kernel_looked(fx->kernel, NULL);
	desk_restart(fx->desk, nothing, NULL);
	settle(fx);
	fake_kernel_ready(fx->kernel);
	assert_state(fx, "idle");
	m = runs(fx, p, "g");
	advance(fx, LIMIT_MS + 2000);
	fake_kernel_die(fx->kernel, DEATH_SIGNAL, 9, "killed");
	jmsg_unref(m);
	desk_end(fx->desk, "", NULL, NULL);
	leave(fx, p);
}

TEST(limits, nobody_else_goes_elsewhere_meanwhile)
{
	struct page *p;
	struct fixture *fx = with_limit("standard", &p);
	struct outcome_of o = {0};
	killed(fx, runs(fx, p, "d"));
	go(fx, &fine, &o);
	assert_outcome(&o, E_BUSY);
	fake_kernel_looked(fx->kernel, NULL);
	go(fx, &fine, &o);
	assert_outcome(&o, E_BUSY);
	record_all(fx);
	tell_way(fx, "b");
	fake_kernel_proves(fx->kernel, TEXT);
	assert_state(fx, "idle");
	assert_string_equal(fx->desk->stands, "b");
	done(fx, p, &o);
}

TEST(limits, a_move_that_waits_for_the_cell_is_the_way_back)
{
	static const struct move_order order = {
		.node = "In[2]", .state_version = -1, .interrupt = true};
	struct page *p;
	struct fixture *fx = with_limit("standard", &p);
	struct outcome_of o = {0};
	struct jmsg *m = runs(fx, p, "d");
	advance(fx, LIMIT_MS - 1);
	go(fx, &order, &o);
	advance(fx, 1);
	advance(fx, 2000);
	assert_int_equal(fake_kernel_kills(fx->kernel), 1);
	fake_kernel_die(fx->kernel, DEATH_SIGNAL, 9, "killed");
	jmsg_unref(m);
	record_all(fx);
	assert_string_equal(fake_histories_asked(fx->gw.histories)->node, "In[2]");
	tell_way(fx, "b");
	fake_kernel_proves(fx->kernel, TEXT);
	assert_outcome(&o, 0);
	assert_state(fx, "idle");
	done(fx, p, &o);
}

static void by_hand(struct fixture *fx, struct page *p, const char *id, const char *reply)
{
	struct jmsg *m = runs(fx, p, id);
	desk_interrupt(fx->desk, nothing, NULL);
	settle(fx);
	ends(fx, m, reply);
	page_pull_all(fx, p);
}

TEST(limits, after_an_interrupt_by_hand_undo_is_offered_where_it_leads_somewhere)
{
	struct page *p;
	struct fixture *fx = with_limit("none", &p);
	by_hand(fx, p, "d", REPLY_ERROR); /* c is not parked */
	fake_kernel_parks(fx->kernel, 6, "d", TEXT);
	by_hand(fx, p, "e", REPLY_ERROR);
	fake_kernel_parks(fx->kernel, 7, "e", TEXT);
	by_hand(fx, p, "f", REPLY_OK); /* it came too late */
	fake_kernel_parks(fx->kernel, 8, "f", TEXT);
	struct jmsg *m = runs(fx, p, "g"); /* nobody interrupts */
	ends(fx, m, REPLY_ERROR);
	fake_kernel_parks(fx->kernel, 9, "g", TEXT);
	m = runs(fx, p, "h"); /* by a message */
	ask(p, CHANNEL_CONTROL, "interrupt_request", "i", "{}");
	ends(fx, m, REPLY_ERROR);
	page_pull_all(fx, p);
	assert_int_equal(page_count(p, "stream", NULL, UNDO), 2);
	size_t said = page_find(p, 0, "stream", "e", UNDO);
	assert_true(said < page_find(p, 0, "status", "e", "idle"));
	(void)page_find(p, 0, "stream", "h", UNDO);
	record_all(fx);
	assert_recorded(fx, "e", "error");
	leave(fx, p);
}

RUN(TEST_ROW(limits, in_time_nothing_happens), TEST_ROW(limits, what_is_held_has_all_its_time),
	TEST_ROW(limits, of_each_tier_and_less_if_it_is_asked_for),
	TEST_ROW(limits, a_cell_that_obeys_the_interrupt_keeps_what_it_did),
	TEST_ROW(limits, one_that_is_half_answered_has_ended),
	TEST_ROW(limits, one_that_does_not_is_killed_and_the_state_before_comes_back),
	TEST_ROW(limits, where_the_state_before_is_not_parked_a_fresh_kernel_says_so),
	TEST_ROW(limits, what_does_not_stand_up_is_a_fresh_kernel_too),
	TEST_ROW(limits, what_is_not_recorded_in_time_is_a_fresh_kernel_too),
	TEST_ROW(limits, something_is_left_the_container_goes),
	TEST_ROW(limits, its_container_went_too),
	TEST_ROW(limits, without_histories_nothing_leads_back),
	TEST_ROW(limits, a_kernel_that_dies_of_the_interrupt_goes_back_as_well),
	TEST_ROW(limits, a_restart_or_an_end_comes_first),
	TEST_ROW(limits, nobody_else_goes_elsewhere_meanwhile),
	TEST_ROW(limits, a_move_that_waits_for_the_cell_is_the_way_back),
	TEST_ROW(limits, after_an_interrupt_by_hand_undo_is_offered_where_it_leads_somewhere))
