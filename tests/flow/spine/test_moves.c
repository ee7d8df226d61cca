/* A kernel goes back: what is asked for, what waits, what is told, and that a way that is none has
 * moved nothing. */
#include "tests/lib/moves_fixture.h"

TEST(moves, a_checkout)
{
	struct page *p;
	struct fixture *fx = with_cells(&p);
	struct outcome_of o = {0};
	uint64_t epoch = fx->desk->epoch;
	go_to_revival(fx, &fine, &o);
	const struct history_question *q = fake_histories_asked(fx->gw.histories);
	assert_string_equal(q->node, "In[2]");
	assert_string_equal(q->parked, "exact b\n");
	assert_int_equal(q->epoch, epoch);
	execute(p, "d"); /* it waits as behind a restart */
	assert_int_equal(fake_kernel_waiting(fx->kernel), 0);
	advance(fx, 1); /* another microsecond, another epoch */
	fake_kernel_proves(fx->kernel, TEXT);
	assert_outcome(&o, 0);
	assert_string_equal(member(&o, "node"), NODE);
	assert_string_equal(member(&o, "branch"), "main.2");
	assert_string_equal(member(&o, "restored_by"), "parked");
	assert_int_equal(cJSON_GetObjectItem(o.answer, "state_version")->valueint, 4);
	assert_string_equal(cJSON_GetStringValue(cJSON_GetObjectItem(
				    cJSON_GetObjectItem(o.answer, "report"), "fidelity")),
		"exact");
	assert_true(fx->desk->epoch != epoch);
	kernel_answers(fx, "d", REPLY_OK);
	record_all(fx);
	const struct fake_run *run = fake_histories_run(fx->gw.histories, 3);
	assert_string_equal(run->at, NODE);
	assert_string_equal(run->branch, "main.2");
	assert_int_equal(run->after_version, 4);
	assert_int_equal(run->epoch, fx->desk->epoch);
	assert_string_equal(fake_histories_run(fx->gw.histories, 2)->at, "");
	page_pull_all(fx, p);
	size_t busy = page_find(p, 0, "status", "", "busy");
	size_t said = page_find(p, busy, "stream", "", "Gone back to In[2]");
	assert_true(holds(p->got[said], "The next cell is In[3], on branch main.2"));
	assert_true(holds(p->got[said], "Left behind, on a line of their own: In[3] to In[5]."));
	assert_true(holds(p->got[said], "All variables are as they were."));
	size_t idle = page_find(p, said, "status", "", "idle");
	assert_true(page_find(p, idle, "status", "d", "busy") > idle);
	assert_true(page_has_end(p, "d", "execute_reply"));
	done(fx, p, &o);
}

static void assert_code_only(const struct outcome_of *o, const char *why)
{
	const cJSON *report = cJSON_GetObjectItem(o->answer, "report");
	const cJSON *lost = cJSON_GetArrayItem(cJSON_GetObjectItem(report, "lost"), 0);
	const cJSON *notes = cJSON_GetObjectItem(report, "notes");
	assert_string_equal(
		cJSON_GetStringValue(cJSON_GetObjectItem(report, "fidelity")), "code-only");
	assert_non_null(strstr(cJSON_GetStringValue(cJSON_GetObjectItem(lost, "reason")), why));
	assert_int_equal(cJSON_GetArraySize(cJSON_GetObjectItem(lost, "rebuild")), 2);
	assert_non_null(
		strstr(cJSON_GetStringValue(cJSON_GetArrayItem(notes, 1)), "In[1] to In[2]"));
}

TEST(moves, what_does_not_stand_up_has_moved_nothing)
{
	static const int codes[] = {E_GONE, E_CONFLICT, E_TIMEOUT, E_ENGINE};
	struct page *p;
	struct fixture *fx = with_cells(&p);
	struct outcome_of o = {0};
	uint64_t epoch = fx->desk->epoch;
	for (size_t i = 0; i < ARRAY_LEN(codes); i++) {
		char id[8];
		go_to_revival(fx, &fine, &o);
		fake_kernel_not_revived(fx->kernel, codes[i]);
		assert_outcome(&o, E_PARTIAL);
		assert_code_only(&o, "it did not stand up");
		(void)snprintf(id, sizeof id, "d%zu", i);
		assert_not_moved(fx, p, epoch, id);
	}
	assert_int_equal(fake_kernel_restarts(fx->kernel), 0);
	done(fx, p, &o);
}

TEST(moves, what_is_not_parked_is_told_with_its_reason)
{
	struct page *p;
	struct fixture *fx = with_cells(&p);
	struct outcome_of o = {0};
	uint64_t epoch = fx->desk->epoch;
	go(fx, &fine, &o);
	tell_way(fx, "a");
	assert_outcome(&o, E_PARTIAL);
	assert_code_only(&o, "no process that stood there is parked");
	fake_kernel_unparks(fx->kernel, 5);
	go(fx, &fine, &o);
	tell_way(fx, "b");
	assert_outcome(&o, E_PARTIAL);
	assert_code_only(&o, "thinned");
	assert_not_moved(fx, p, epoch, "d");
	fake_kernel_not_parked(fx->kernel, "b", "a thread runs: worker");
	go(fx, &fine, &o);
	tell_way(fx, "b");
	assert_outcome(&o, E_PARTIAL);
	assert_code_only(&o, "a thread runs: worker");
	/* Another kernel's node of the same msg_id is another one. */
	fake_kernel_parks(fx->kernel, 6, "b", TEXT);
	go(fx, &fine, &o);
	char other[2048], *at;
	(void)snprintf(other, sizeof other, "%s", way_to(fx, "b"));
	at = strstr(other, fx->desk->id);
	at[0] = at[0] == '0' ? '1' : '0';
	assert_true(fake_histories_tell(fx->gw.histories, other));
	assert_outcome(&o, E_PARTIAL);
	assert_code_only(&o, "another kernel ran it");
	go(fx, &fine, &o);
	assert_true(fake_histories_tell(fx->gw.histories, NULL));
	assert_outcome(&o, E_NOT_FOUND);
	assert_not_moved(fx, p, epoch, "e");
	done(fx, p, &o);
}

TEST(moves, less_than_is_wanted_is_refused_with_the_report)
{
	static const struct move_order lax = {
		.node = "In[2]", .state_version = -1, .accept = FIDELITY_PARTIAL};
	struct page *p;
	struct fixture *fx = with_cells(&p);
	struct outcome_of o = {0};
	uint64_t epoch = fx->desk->epoch;
	fake_kernel_parks(fx->kernel, 5, "b", LOST);
	go(fx, &fine, &o); /* known beforehand */
	assert_string_equal(fake_histories_asked(fx->gw.histories)->parked, "partial b\n");
	tell_way(fx, "b");
	assert_outcome(&o, E_PARTIAL);
	const cJSON *report = cJSON_GetObjectItem(o.answer, "report");
	const cJSON *lost = cJSON_GetArrayItem(cJSON_GetObjectItem(report, "lost"), 0);
	assert_string_equal(cJSON_GetStringValue(cJSON_GetObjectItem(lost, "reason")), "cut off");
	assert_int_equal(fake_kernel_revives(fx->kernel), 0);
	fake_kernel_parks(fx->kernel, 5, "b", TEXT);
	go_to_revival(fx, &fine, &o); /* the folder is seen by the new line alone */
	fake_kernel_proves(fx->kernel, MOVED);
	assert_outcome(&o, E_PARTIAL);
	assert_not_moved(fx, p, epoch, "d");
	fake_kernel_parks(fx->kernel, 5, "b", LOST);
	go_to_revival(fx, &lax, &o);
	fake_kernel_proves(fx->kernel, MOVED);
	assert_outcome(&o, 0);
	report = cJSON_GetObjectItem(o.answer, "report");
	assert_string_equal(
		cJSON_GetStringValue(cJSON_GetObjectItem(report, "fidelity")), "partial");
	assert_int_equal(cJSON_GetArraySize(cJSON_GetObjectItem(report, "lost")), 1);
	page_pull_all(fx, p);
	size_t said = page_find(p, 0, "stream", "", "Gone back");
	assert_true(holds(p->got[said], "s (socket): cut off"));
	assert_true(holds(p->got[said], "Files of the working folder are not as they were"));
	done(fx, p, &o);
}

TEST(moves, of_two_that_race_one_goes)
{
	struct page *p;
	struct fixture *fx = with_cells(&p);
	struct outcome_of o = {0}, second = {0};
	struct move_order known = fine;
	known.state_version = 3;
	go_to_revival(fx, &known, &o);
	go(fx, &known, &second);
	assert_outcome(&second, E_BUSY);
	fake_kernel_proves(fx->kernel, TEXT);
	assert_outcome(&o, 0);
	go(fx, &known, &second);
	tell_way(fx, "b");
	assert_outcome(&second, E_STALE);
	assert_int_equal(cJSON_GetObjectItem(second.answer, "state_version")->valueint, 4);
	assert_state(fx, "idle");
	cJSON_Delete(second.answer);
	done(fx, p, &o);
}

TEST(moves, a_cell_that_runs_is_not_cut_off_unasked)
{
	struct page *p;
	struct fixture *fx = with_cells(&p);
	struct outcome_of o = {0};
	struct move_order order = fine;
	execute(p, "d");
	struct jmsg *m = kernel_takes(fx, "d");
	say_status(fx->kernel, m, "busy");
	go(fx, &order, &o);
	assert_outcome(&o, E_BUSY);
	assert_int_equal(fake_kernel_interrupts(fx->kernel), 0);
	/* It waits for input: so it runs. */
	fake_kernel_say(fx->kernel, CHANNEL_STDIN, "input_request", m, "{\"prompt\":\"\"}");
	go(fx, &order, &o);
	assert_outcome(&o, E_BUSY);
	order.interrupt = true;
	go(fx, &order, &o);
	assert_int_equal(fake_kernel_interrupts(fx->kernel), 1);
	assert_int_equal(o.n, 0);
	execute(p, "e");
	say_reply(fx->kernel, m, REPLY_ERROR);
	say_status(fx->kernel, m, "idle");
	fake_kernel_turn(fx->kernel);
	jmsg_unref(m);
	settle(fx);
	assert_int_equal(fake_kernel_waiting(fx->kernel), 0);
	record_all(fx);
	tell_way(fx, "b");
	fake_kernel_proves(fx->kernel, TEXT);
	assert_outcome(&o, 0);
	done(fx, p, &o);
}

TEST(moves, a_cell_that_does_not_obey_stays)
{
	struct page *p;
	struct fixture *fx = with_cells(&p);
	struct outcome_of o = {0};
	struct move_order order = fine;
	order.interrupt = true;
	execute(p, "d");
	struct jmsg *m = kernel_takes(fx, "d");
	say_status(fx->kernel, m, "busy");
	go(fx, &order, &o);
	advance(fx, 10001);
	assert_outcome(&o, E_BUSY);
	say_reply(fx->kernel, m, REPLY_OK);
	say_status(fx->kernel, m, "idle");
	fake_kernel_turn(fx->kernel);
	jmsg_unref(m);
	assert_not_moved(fx, p, fx->desk->epoch, "e");
	done(fx, p, &o);
}

TEST(moves, what_is_not_recorded_is_not_left)
{
	struct page *p;
	struct fixture *fx = with_cells(&p);
	struct outcome_of o = {0};
	execute(p, "d");
	kernel_answers(fx, "d", REPLY_OK);
	advance(fx, 110);
	go(fx, &fine, &o);
	assert_int_equal(o.n, 0);
	assert_false(fake_histories_tell(fx->gw.histories, "{}")); /* nothing is asked yet */
	advance(fx, 3001);
	assert_outcome(&o, E_UNAVAILABLE);
	assert_state(fx, "idle");
	go(fx, &fine, &o);
	record_all(fx);
	char way[2048];
	(void)snprintf(way, sizeof way, "%s", way_to(fx, "b"));
	assert_true(fake_histories_tell(fx->gw.histories, way));
	fake_kernel_proves(fx->kernel, TEXT);
	assert_outcome(&o, 0);
	assert_int_equal(cJSON_GetObjectItem(o.answer, "state_version")->valueint, 5);
	done(fx, p, &o);
}

TEST(moves, a_kernel_that_dies_on_the_way)
{
	struct page *p;
	struct fixture *fx = with_cells(&p);
	struct outcome_of o = {0};
	go_to_revival(fx, &fine, &o);
	fake_kernel_die(fx->kernel, DEATH_SIGNAL, 9, "killed");
	assert_int_equal(fake_kernel_restarts(fx->kernel), 0);
	execute(p, "d");
	fake_kernel_proves(fx->kernel, TEXT); /* it counts as a restart of the fake */
	assert_outcome(&o, 0);
	kernel_answers(fx, "d", REPLY_OK);
	settle(fx);
	assert_int_equal(fake_kernel_restarts(fx->kernel), 1);
	record_all(fx);
	go_to_revival(fx, &fine, &o);
	fake_kernel_die(fx->kernel, DEATH_SIGNAL, 9, "killed");
	fake_kernel_not_revived(fx->kernel, E_GONE);
	assert_outcome(&o, E_PARTIAL);
	settle(fx);
	assert_int_equal(fake_kernel_restarts(fx->kernel), 2); /* as after any death */
	fake_kernel_ready(fx->kernel);
	assert_state(fx, "idle");
	assert_string_equal(fx->desk->at.node, "");
	done(fx, p, &o);
}

TEST(moves, a_dead_kernel_comes_back)
{
	struct page *p;
	struct fixture *fx = with_cells(&p);
	struct outcome_of o = {0};
	fx->gw.config.auto_restart = false;
	fake_kernel_die(fx->kernel, DEATH_OOM, 9, "it ran out of memory");
	assert_state(fx, "dead");
	page_leave(p, 0);
	go_to_revival(fx, &fine, &o);
	fake_kernel_proves(fx->kernel, TEXT);
	assert_outcome(&o, 0);
	assert_state(fx, "idle");
	p = page_open(fx, "s2");
	execute(p, "d");
	kernel_answers(fx, "d", REPLY_OK);
	done(fx, p, &o);
}

TEST(moves, a_restart_or_an_end_comes_first)
{
	struct page *p;
	struct fixture *fx = with_cells(&p);
	struct outcome_of o = {0};
	go(fx, &fine, &o); /* history is asked */
	desk_restart(fx->desk, nothing, NULL);
	assert_outcome(&o, E_GONE);
	settle(fx);
	assert_true(fake_histories_tell(fx->gw.histories, way_to(fx, "b")));
	assert_int_equal(fake_kernel_revives(fx->kernel), 0);
	fake_kernel_ready(fx->kernel);
	assert_state(fx, "idle");
	go_to_revival(fx, &fine, &o);
	desk_restart(fx->desk, nothing, NULL);
	assert_outcome(&o, E_GONE);
	settle(fx);
	fake_kernel_ready(fx->kernel);
	go_to_revival(fx, &fine, &o);
	desk_end(fx->desk, "", NULL, NULL);
	assert_outcome(&o, E_GONE);
	done(fx, p, &o);
}

TEST(moves, what_cannot_begin)
{
	static const char *const names[] = {"a/b", "a b", "..", ".a", "-a", "a.", "x.lock", "HEAD"};
	struct page *p;
	struct fixture *fx = with_cells(&p);
	struct outcome_of o = {0};
	struct move_order order = fine;
	for (size_t i = 0; i < ARRAY_LEN(names); i++) {
		order.branch = names[i];
		go(fx, &order, &o);
		assert_outcome(&o, E_INVALID);
	}
	order.branch = "try";
	go_to_revival(fx, &order, &o);
	fake_kernel_proves(fx->kernel, TEXT);
	assert_outcome(&o, 0);
	assert_string_equal(member(&o, "branch"), "try");
	desk_restart(fx->desk, nothing, NULL);
	go(fx, &fine, &o);
	assert_outcome(&o, E_BUSY);
	settle(fx);
	done(fx, p, &o);
}

TEST(moves, a_bridge_that_refuses)
{
	struct page *p;
	struct fixture *fx = with_cells(&p);
	struct outcome_of o = {0};
	uint64_t epoch = fx->desk->epoch;
	go(fx, &fine, &o);
	assert_true(fault_arm(fake_bridge_fault(fx->gw.bridge), 1));
	tell_way(fx, "b");
	assert_int_equal(o.n, 0);
	settle(fx);
	assert_outcome(&o, E_UNAVAILABLE);
	assert_not_moved(fx, p, epoch, "d");
	done(fx, p, &o);
}

RUN(TEST_ROW(moves, a_checkout), TEST_ROW(moves, what_does_not_stand_up_has_moved_nothing),
	TEST_ROW(moves, what_is_not_parked_is_told_with_its_reason),
	TEST_ROW(moves, less_than_is_wanted_is_refused_with_the_report),
	TEST_ROW(moves, of_two_that_race_one_goes),
	TEST_ROW(moves, a_cell_that_runs_is_not_cut_off_unasked),
	TEST_ROW(moves, a_cell_that_does_not_obey_stays),
	TEST_ROW(moves, what_is_not_recorded_is_not_left),
	TEST_ROW(moves, a_kernel_that_dies_on_the_way), TEST_ROW(moves, a_dead_kernel_comes_back),
	TEST_ROW(moves, a_restart_or_an_end_comes_first), TEST_ROW(moves, what_cannot_begin),
	TEST_ROW(moves, a_bridge_that_refuses))
