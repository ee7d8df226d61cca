/* What the next gateway makes of a kernel that it takes up: its state, and halves that are missing.
 */
#include "tests/lib/survive_fixture.h"

/* The gateway is killed when the idle of `a` is in the file and its reply has not come: iopub and
 * shell are two sockets. Caller unrefs ret_asked. */
static struct fixture *killed_between_the_halves(struct fixture *fx, struct jmsg **ret_asked)
{
	struct page *p = page_open(fx, "s1");
	execute(p, "a");
	*ret_asked = kernel_takes(fx, "a");
	say_status(fx->kernel, *ret_asked, "busy");
	say_status(fx->kernel, *ret_asked, "idle");
	fake_kernel_turn(fx->kernel);
	advance(fx, 110);
	page_leave(p, 0);
	struct fixture *next = after_a_kill(fx);
	fake_kernel_ready(next->kernel);
	return next;
}

TEST(adopt, idle_that_was_heard_is_not_forgotten)
{
	struct fixture *fx = mortal();
	struct jmsg *asked;
	struct fixture *next = killed_between_the_halves(fx, &asked);
	say_reply(next->kernel, asked, REPLY_OK);
	replay_is_over(next);
	assert_state(next, "idle");
	jmsg_unref(asked);
	next_free(next);
	fixture_free(fx);
}

TEST(adopt, a_half_that_never_comes_is_said)
{
	struct fixture *fx = mortal();
	struct jmsg *asked;
	struct fixture *next = killed_between_the_halves(fx, &asked);
	replay_is_over(next);
	struct page *q = page_open(next, "s1");
	advance(next, 5100);
	page_pull_all(next, q);
	assert_int_equal(page_count(q, "execute_reply", "a", "NoReply"), 1);
	assert_execution(next, "a", "done", "error");
	page_leave(q, 0);
	jmsg_unref(asked);
	next_free(next);
	fixture_free(fx);
}

TEST(adopt, a_page_learns_what_the_kernel_is_amid_a_cell)
{
	struct fixture *fx = mortal();
	struct page *p = page_open(fx, "s1");
	execute(p, "a");
	struct jmsg *asked = kernel_takes(fx, "a");
	say_status(fx->kernel, asked, "busy");
	execute(p, "b");
	fake_kernel_turn(fx->kernel);
	advance(fx, 110);
	page_leave(p, 0);
	struct fixture *next = after_a_kill(fx);
	struct page *q = page_open(next, "s1");
	ask(q, CHANNEL_SHELL, "kernel_info_request", "i", "{}");
	fake_kernel_ready(next->kernel);
	replay_is_over(next);
	page_pull_all(next, q);
	assert_true(page_has_end(q, "i", "kernel_info_reply"));
	assert_execution(next, "a", "running", "open");
	assert_execution(next, "b", "queued", "open");
	page_leave(q, 0);
	jmsg_unref(asked);
	next_free(next);
	fixture_free(fx);
}

static void remove_files(const struct fixture *fx, const char *of)
{
	char folder[256], path[600];
	(void)snprintf(folder, sizeof folder, "%s/%s", fx->folder, of);
	DIR *dir = opendir(folder);
	assert_non_null(dir);
	for (struct dirent *e; (e = readdir(dir));) {
		(void)snprintf(path, sizeof path, "%s/%s", folder, e->d_name);
		if (e->d_name[0] != '.')
			assert_int_equal(remove(path), 0);
	}
	closedir(dir);
}

/* Its restart was under way, say: then it cannot be left. */
TEST(adopt, a_kernel_that_cannot_be_left_is_started_anew)
{
	struct fixture *fx = mortal();
	struct page *p = page_open(fx, "s1");
	char id[UUID_SIZE], journal[64];
	(void)copy_text(id, sizeof id, desk_id(fx->desk), strlen(desk_id(fx->desk)));
	execute(p, "a");
	jmsg_unref(kernel_takes(fx, "a"));
	execute(p, "b");
	page_leave(p, 0);
	kernels_leave_all(fx->gw.kernels, fixture_all_ended, fx);
	for (int i = 0; i < 10 && !fx->all_ended; i++)
		settle(fx);
	assert_true(fx->all_ended);
	struct fixture *next = next_gateway(fx, id, true);
	struct page *q = page_open(next, "s1");
	page_pull_all(next, q);
	assert_true(page_has_end(q, "a", "execute_reply"));
	assert_true(page_has_end(q, "b", "execute_reply"));
	assert_int_equal(page_count(q, "status", "", "restarting"), 1);
	fake_kernel_ready(next->kernel);
	execute(q, "c");
	kernel_answers(next, "c", REPLY_OK);
	page_leave(q, 0);
	next_free(next);
	(void)snprintf(journal, sizeof journal, "journals/%s", id);
	remove_files(fx, journal);
	remove_files(fx, "journals");
	remove_files(fx, "kernels");
	fixture_free(fx);
}

/* The gateway had the answer to the cell's question when it was killed; whether the kernel has it
 * nobody knows. Caller unrefs both. */
static struct fixture *killed_behind_an_answer(
	struct fixture *fx, struct jmsg **ret_asked, struct jmsg **ret_question)
{
	struct page *p = page_open(fx, "s1");
	execute(p, "a");
	*ret_asked = kernel_takes(fx, "a");
	say_status(fx->kernel, *ret_asked, "busy");
	*ret_question = fake_kernel_says(
		fx->kernel, CHANNEL_STDIN, "input_request", *ret_asked, "{\"prompt\":\"?\"}");
	fake_kernel_turn(fx->kernel);
	ask(p, CHANNEL_STDIN, "input_reply", "answer", "{\"value\":\"x\"}");
	jmsg_unref(kernel_takes(fx, "answer"));
	page_leave(p, 0);
	struct fixture *next = after_a_kill(fx);
	fake_kernel_ready(next->kernel);
	fake_kernel_says_again(next->kernel, *ret_question); /* it was in no file */
	return next;
}

TEST(adopt, an_answer_that_may_not_have_arrived_is_sent_again)
{
	struct fixture *fx = mortal();
	struct jmsg *asked, *question;
	struct fixture *next = killed_behind_an_answer(fx, &asked, &question);
	replay_is_over(next);
	struct jmsg *m = kernel_takes(next, "answer");
	assert_int_equal(m->channel, CHANNEL_STDIN);
	assert_true(holds(m, "\"value\":\"x\""));
	jmsg_unref(m);
	assert_int_equal(fake_kernel_waiting(next->kernel), 0);
	/* And by the one after that. */
	struct fixture *last = after_a_kill(next);
	fake_kernel_ready(last->kernel);
	replay_is_over(last);
	jmsg_unref(kernel_takes(last, "answer"));
	next_free(last);
	jmsg_unref(question);
	jmsg_unref(asked);
	next_free(next);
	fixture_free(fx);
}

TEST(adopt, an_answer_has_arrived_when_the_cell_asks_on)
{
	struct fixture *fx = mortal();
	struct jmsg *asked, *question;
	struct fixture *next = killed_behind_an_answer(fx, &asked, &question);
	fake_kernel_say(next->kernel, CHANNEL_STDIN, "input_request", asked, "{\"prompt\":\"2\"}");
	replay_is_over(next);
	assert_int_equal(fake_kernel_waiting(next->kernel), 0);
	jmsg_unref(question);
	jmsg_unref(asked);
	next_free(next);
	fixture_free(fx);
}

TEST(adopt, an_answer_has_arrived_when_the_cell_ends)
{
	struct fixture *fx = mortal();
	struct jmsg *asked, *question;
	struct fixture *next = killed_behind_an_answer(fx, &asked, &question);
	say_reply(next->kernel, asked, REPLY_OK);
	say_status(next->kernel, asked, "idle");
	replay_is_over(next);
	assert_int_equal(fake_kernel_waiting(next->kernel), 0);
	struct fixture *last = after_a_kill(next);
	fake_kernel_ready(last->kernel);
	replay_is_over(last);
	assert_int_equal(fake_kernel_waiting(last->kernel), 0);
	next_free(last);
	jmsg_unref(question);
	jmsg_unref(asked);
	next_free(next);
	fixture_free(fx);
}

/* As often as it may, and once more. */
static void die_for_good(struct fixture *fx)
{
	for (int i = 0; i < 3; i++) {
		if (i > 0)
			fake_kernel_ready(fx->kernel);
		fake_kernel_die(fx->kernel, DEATH_SIGNAL, 11, "it was a bug in an extension");
		settle(fx);
	}
	assert_state(fx, "dead");
}

static void leave_all(struct fixture *fx)
{
	kernels_leave_all(fx->gw.kernels, fixture_all_ended, fx);
	for (int i = 0; i < 10 && !fx->all_ended; i++)
		settle(fx);
	assert_true(fx->all_ended);
}

static void assert_reason(struct fixture *fx, const char *reason)
{
	cJSON *model = desk_model(fx->desk);
	const cJSON *found = cJSON_GetObjectItem(model, "reason");
	assert_non_null(found);
	assert_string_equal(cJSON_GetStringValue(found), reason);
	cJSON_Delete(model);
}

/* It stays so until somebody restarts it. */
TEST(adopt, a_dead_kernel_is_listed_with_its_reason)
{
	struct fixture *fx = mortal();
	struct page *p = page_open(fx, "s1");
	char id[UUID_SIZE], journal[64];
	(void)copy_text(id, sizeof id, desk_id(fx->desk), strlen(desk_id(fx->desk)));
	die_for_good(fx);
	page_leave(p, 0);
	struct fixture *next = next_gateway(fx, id, false);
	assert_state(next, "dead");
	assert_reason(next, "it was a bug in an extension");
	leave_all(next);
	struct fixture *last = next_gateway(next, id, false);
	assert_state(last, "dead");
	desk_restart(last->desk, nothing, NULL);
	settle(last);
	fake_kernel_ready(last->kernel);
	struct page *q = page_open(last, "s1");
	execute(q, "a");
	kernel_answers(last, "a", REPLY_OK);
	page_pull_all(last, q);
	assert_true(page_has_end(q, "a", "execute_reply"));
	assert_state(last, "idle");
	page_leave(q, 0);
	next_free(last);
	(void)snprintf(journal, sizeof journal, "journals/%s", id);
	remove_files(next, journal);
	remove_files(next, "journals");
	remove_files(next, "kernels");
	next_free(next);
	fixture_free(fx);
}

TEST(adopt, a_dead_kernel_that_is_ended_is_gone_for_good)
{
	struct fixture *fx = mortal();
	char row[256];
	(void)snprintf(row, sizeof row, "%s/kernels/%s.json", fx->folder, desk_id(fx->desk));
	die_for_good(fx);
	assert_int_equal(access(row, F_OK), 0);
	desk_end(fx->desk, NULL, NULL, NULL);
	assert_int_equal(access(row, F_OK), -1);
	settle(fx);
	fixture_free(fx);
}

/* It died while no gateway was there, and nothing is to be started by itself. */
TEST(adopt, a_kernel_that_is_gone_is_listed_dead)
{
	struct fixture *fx = mortal();
	struct page *p = page_open(fx, "s1");
	fx->gw.config.auto_restart = false;
	execute(p, "a");
	advance(fx, 110);
	struct fixture *next = next_gateway(fx, desk_id(fx->desk), true);
	assert_state(next, "dead");
	assert_int_equal(fake_kernel_restarts(next->kernel), 0);
	desk_restart(next->desk, nothing, NULL);
	settle(next);
	struct page *q = page_open(next, "s1");
	page_pull_all(next, q);
	assert_true(page_has_end(q, "a", "execute_reply"));
	assert_int_equal(page_count(q, "status", "", "dead"), 1);
	assert_int_equal(page_count(q, "stream", "a", "gone by then"), 1);
	page_leave(q, 0);
	next_free(next);
	page_leave(p, 0);
	fixture_free(fx);
}

/* Else the next gateway would begin that restart again. */
TEST(adopt, a_restart_that_failed_is_over)
{
	struct fixture *fx = mortal();
	struct fault *fault = fake_bridge_fault(fx->gw.bridge);
	assert_true(fault_arm(fault, 1));
	desk_restart(fx->desk, nothing, NULL);
	settle(fx);
	assert_state(fx, "dead");
	struct fixture *next = next_gateway(fx, desk_id(fx->desk), false);
	assert_state(next, "dead");
	assert_int_equal(fake_kernel_restarts(next->kernel), 0);
	next_free(next);
	fixture_free(fx);
}

/* What its row says holds no more once it lives and cannot outlive the gateway. */
TEST(adopt, a_kernel_that_came_back_is_not_listed_dead)
{
	struct fixture *fx = fixture_with_kernel();
	char row[256];
	(void)snprintf(row, sizeof row, "%s/kernels/%s.json", fx->folder, desk_id(fx->desk));
	die_for_good(fx);
	assert_int_equal(access(row, F_OK), 0);
	desk_restart(fx->desk, nothing, NULL);
	settle(fx);
	fake_kernel_ready(fx->kernel);
	assert_int_equal(access(row, F_OK), -1);
	fixture_free(fx);
}

/* What it had was more than the file has: the numbers begin anew there, and it must not count as
 * had what came under them meanwhile. */
TEST(adopt, who_stays_away_through_two_kills_misses_nothing)
{
	struct fixture *fx = mortal();
	struct page *p = page_open(fx, "s1");
	for (int i = 0; i < 10; i++)
		say_stream(fx->kernel, NULL, "old");
	fake_kernel_turn(fx->kernel);
	page_pull(p);
	client_wrote(p->client, 0);
	struct fixture *next = after_a_kill(fx);
	fake_kernel_ready(next->kernel);
	replay_is_over(next);
	say_stream(next->kernel, NULL, "new");
	fake_kernel_turn(next->kernel);
	advance(next, 110);
	struct fixture *last = after_a_kill(next);
	struct page *q = page_open(last, "s1");
	fake_kernel_ready(last->kernel);
	replay_is_over(last);
	page_pull_all(last, q);
	assert_int_equal(page_count(q, "stream", NULL, "new"), 1);
	page_leave(q, 0);
	next_free(last);
	next_free(next);
	page_leave(p, 0);
	fixture_free(fx);
}

RUN(TEST_ROW(adopt, idle_that_was_heard_is_not_forgotten),
	TEST_ROW(adopt, a_half_that_never_comes_is_said),
	TEST_ROW(adopt, a_page_learns_what_the_kernel_is_amid_a_cell),
	TEST_ROW(adopt, a_kernel_that_cannot_be_left_is_started_anew),
	TEST_ROW(adopt, an_answer_that_may_not_have_arrived_is_sent_again),
	TEST_ROW(adopt, an_answer_has_arrived_when_the_cell_asks_on),
	TEST_ROW(adopt, an_answer_has_arrived_when_the_cell_ends),
	TEST_ROW(adopt, a_dead_kernel_is_listed_with_its_reason),
	TEST_ROW(adopt, a_dead_kernel_that_is_ended_is_gone_for_good),
	TEST_ROW(adopt, a_kernel_that_is_gone_is_listed_dead),
	TEST_ROW(adopt, a_restart_that_failed_is_over),
	TEST_ROW(adopt, a_kernel_that_came_back_is_not_listed_dead),
	TEST_ROW(adopt, who_stays_away_through_two_kills_misses_nothing))
