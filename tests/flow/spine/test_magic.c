/* What a cell may ask about its own history, and what comes of questions that nobody waits for. */
#include "gateway/spine/desk.h"
#include "gateway/spine/magic.h"
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

static void assert_answer(const struct fixture *fx, int64_t id, const char *begin)
{
	const char *answer = fake_kernel_answer(fx->kernel, id);
	if (strncmp(answer, begin, strlen(begin)) != 0)
		fail_msg("'%s', not '%s...'", answer, begin);
}

TEST(magic, a_log_is_of_its_own_history_and_owner)
{
	struct fixture *fx = recorded();
	fake_kernel_ask(fx->kernel, 7, "log", "ignored");
	const struct history_question *q = fake_histories_asked(fx->gw.histories);
	assert_int_equal(q->what, HISTORY_ONE);
	assert_string_equal(q->owner, "ada");
	assert_string_equal(q->history, fx->desk->id);
	assert_true(fake_histories_tell(fx->gw.histories, "{\"nodes\":[]}"));
	assert_answer(fx, 7, "ok {\"nodes\":[]}");
	fake_kernel_ask(fx->kernel, 8, "show", "HEAD");
	q = fake_histories_asked(fx->gw.histories);
	assert_int_equal(q->what, HISTORY_NODE);
	assert_string_equal(q->node, "HEAD");
	assert_true(fake_histories_tell(fx->gw.histories, NULL));
	assert_int_equal(fake_histories_asked(fx->gw.histories)->what, HISTORY_ONE);
	assert_true(fake_histories_tell(fx->gw.histories, "{}"));
	assert_answer(fx, 8, "not_found there is none");
	fake_kernel_ask(fx->kernel, 9, "show", "HEAD");
	assert_true(fake_histories_tell(fx->gw.histories, NULL));
	assert_true(fake_histories_tell(fx->gw.histories, NULL));
	assert_answer(fx, 9, "not_found nothing is recorded in this history yet: run a cell first");
	fixture_free(fx);
}

TEST(magic, what_ran_before_is_recorded_first)
{
	struct fixture *fx = recorded();
	struct page *p = page_open(fx, "s1");
	execute(p, "a");
	kernel_answers(fx, "a", REPLY_OK);
	fake_kernel_ask(fx->kernel, 1, "log", "");
	advance(fx, 110);
	assert_false(fake_histories_tell(fx->gw.histories, "{}"));
	fake_histories_answer(fx->gw.histories, 0);
	assert_true(fake_histories_tell(fx->gw.histories, "{}"));
	assert_answer(fx, 1, "ok {}");
	/* A disk that is full holds nobody up. */
	execute(p, "b");
	kernel_answers(fx, "b", REPLY_OK);
	fake_kernel_ask(fx->kernel, 2, "log", "");
	advance(fx, 2990);
	assert_false(fake_histories_tell(fx->gw.histories, "{}"));
	advance(fx, 20);
	assert_true(fake_histories_tell(fx->gw.histories, "{}"));
	assert_answer(fx, 2, "ok {}");
	page_leave(p, 0);
	fixture_free(fx);
}

TEST(magic, one_question_at_a_time)
{
	struct fixture *fx = recorded();
	fake_kernel_ask(fx->kernel, 1, "log", "");
	fake_kernel_ask(fx->kernel, 2, "log", "");
	assert_answer(fx, 2, "busy");
	assert_true(fake_histories_tell(fx->gw.histories, "{}"));
	assert_answer(fx, 1, "ok {}");
	assert_false(fake_histories_tell(fx->gw.histories, "{}"));
	fixture_free(fx);
}

TEST(magic, what_is_too_large_comes_without_outputs)
{
	struct fixture *fx = recorded();
	char *large = malloc(600 << 10);
	memset(large, ' ', 600 << 10);
	memcpy(large, "{}", 2);
	large[(600 << 10) - 1] = '\0';
	fake_kernel_ask(fx->kernel, 1, "show", "HEAD");
	assert_false(fake_histories_asked(fx->gw.histories)->brief);
	assert_true(fake_histories_tell(fx->gw.histories, large));
	assert_true(fake_histories_asked(fx->gw.histories)->brief);
	assert_true(fake_histories_tell(fx->gw.histories, "{\"outputs\":null}"));
	assert_answer(fx, 1, "ok {\"outputs\":null}");
	free(large);
	fixture_free(fx);
}

TEST(magic, status_and_use)
{
	struct fixture *fx = recorded();
	fake_kernel_ask(fx->kernel, 1, "status", "");
	assert_answer(fx, 1, "ok {\"id\":");
	fake_kernel_ask(fx->kernel, 2, "use", "walk");
	assert_answer(fx, 2, "ok {}");
	assert_string_equal(fx->desk->scribe.history, "walk");
	fake_kernel_ask(fx->kernel, 3, "use", "a\nb");
	assert_answer(fx, 3, "invalid");
	fake_kernel_ask(fx->kernel, 4, "use", "");
	assert_answer(fx, 4, "invalid");
	assert_string_equal(fx->desk->scribe.history, "walk");
	fake_kernel_ask(fx->kernel, 5, "use", fx->desk->id);
	assert_string_equal(fx->desk->scribe.history, ""); /* its own again */
	fixture_free(fx);
}

TEST(magic, what_is_none)
{
	struct fixture *fx = recorded();
	char longest[1000];
	memset(longest, 'x', sizeof longest);
	longest[sizeof longest - 1] = '\0';
	fake_kernel_ask(fx->kernel, 1, "rebase", "HEAD");
	assert_answer(fx, 1, "invalid");
	fake_kernel_ask(fx->kernel, 7, "checkout", ""); /* likewise */
	assert_answer(fx, 7, "invalid");
	fake_kernel_ask(
		fx->kernel, 6, "forget", ""); /* HEAD is not taken for one that was left out */
	assert_answer(fx, 6, "invalid");
	fake_kernel_ask(fx->kernel, 2, "show", longest);
	assert_answer(fx, 2, "invalid");
	fixture_free(fx);
	fx = fixture_with_kernel();
	fake_kernel_ask(fx->kernel, 3, "log", "");
	assert_answer(fx, 3, "not_recorded");
	fixture_free(fx);
}

#define NODE "0123456789012345678901234567890123456789"

static void ask_to_forget(struct fixture *fx, int64_t id)
{
	fake_kernel_ask(fx->kernel, id, "forget", "In[4]");
	const struct history_question *q = fake_histories_asked(fx->gw.histories);
	assert_int_equal(q->what, HISTORY_NODE);
	assert_string_equal(q->node, "In[4]");
	assert_string_equal(q->kernel_id, fx->desk->id);
	assert_string_equal(q->owner, "ada");
	assert_true(fake_histories_tell(
		fx->gw.histories, "{\"id\":\"" NODE "\",\"code\":\"x\",\"outputs\":null}"));
}

TEST(magic, a_node_is_forgotten_while_the_cell_runs)
{
	struct fixture *fx = recorded();
	ask_to_forget(fx, 7);
	assert_string_equal(fake_histories_forgets(fx->gw.histories), NODE);
	fake_kernel_ask(fx->kernel, 8, "log", "");
	assert_answer(fx, 8, "busy");
	fake_histories_found(fx->gw.histories, fx->desk->id, "m-4");
	for (int i = 0; i < 20 && !fake_histories_forgets_rest(fx->gw.histories); i++)
		advance(fx, 10);
	assert_true(fake_histories_forgets_rest(fx->gw.histories)); /* the journal is done */
	assert_true(forgotten_has(&fx->desk->scribe.forgotten, "m-4"));
	fake_histories_forgot(fx->gw.histories, "{\"node\":\"" NODE "\",\"rewritten\":[]}");
	assert_answer(fx, 7, "ok {\"node\":\"" NODE "\",\"rewritten\":[]}");
	fake_kernel_ask(fx->kernel, 9, "log", "");
	assert_true(fake_histories_tell(fx->gw.histories, "{}"));
	assert_answer(fx, 9, "ok {}");
	fixture_free(fx);
}

TEST(magic, what_cannot_be_forgotten_is_said)
{
	struct fixture *fx = recorded();
	fake_kernel_ask(fx->kernel, 1, "forget", "In[9]");
	assert_true(fake_histories_tell(fx->gw.histories, NULL));
	assert_true(fake_histories_tell(fx->gw.histories, "{}"));
	assert_answer(fx, 1, "not_found there is none");
	assert_null(fake_histories_forgets(fx->gw.histories));
	/* A guest that asks again and again would hold up all recording. */
	fake_kernel_ask(fx->kernel, 2, "forget", "In[4]");
	assert_true(
		fake_histories_tell(fx->gw.histories, "{\"id\":\"" NODE "\",\"forgotten\":true}"));
	assert_answer(fx, 2, "gone");
	assert_null(fake_histories_forgets(fx->gw.histories));
	ask_to_forget(fx, 3);
	fake_histories_forgot(fx->gw.histories, NULL);
	assert_answer(fx, 3, "io the disk failed");
	fixture_free(fx);
}

TEST(magic, many_new_ids_are_not_listed)
{
	struct fixture *fx = recorded();
	AUTO(buf_done) struct buf large;
	buf_init(&large, 1 << 21);
	(void)buf_add_text(&large, "{\"node\":\"" NODE "\",\"rewritten\":[");
	for (int i = 0; i < 20000; i++)
		(void)buf_addf(&large, "%s{\"old\":\"" NODE "\"}", i ? "," : "");
	(void)buf_add_text(&large, "],\"same_code\":[\"" NODE "\"],\"shown_in\":[]}");
	ask_to_forget(fx, 1);
	fake_histories_forgot(fx->gw.histories, (const char *)large.data);
	assert_answer(fx, 1,
		"ok {\"node\":\"" NODE "\",\"rewritten\":null,\"same_code\":[\"" NODE "\"],"
		"\"shown_in\":[]}");
	fixture_free(fx);
}

TEST(magic, a_kernel_that_goes_while_it_forgets_is_not_answered)
{
	struct fixture *fx = recorded();
	ask_to_forget(fx, 1);
	desk_end(fx->desk, "", NULL, NULL);
	advance(fx, 10);
	fake_histories_forgot(fx->gw.histories, "{}");
	fixture_free(fx);
}

TEST(magic, a_kernel_that_goes_is_not_answered)
{
	struct fixture *fx = recorded();
	fake_kernel_ask(fx->kernel, 1, "log", "");
	desk_end(fx->desk, "", NULL, NULL);
	advance(fx, 10);
	assert_true(fake_histories_tell(fx->gw.histories, "{}"));
	fixture_free(fx);
}

TEST(magic, nor_one_that_waits_when_it_goes)
{
	struct fixture *fx = recorded();
	struct page *p = page_open(fx, "s1");
	execute(p, "a");
	kernel_answers(fx, "a", REPLY_OK);
	fake_kernel_ask(fx->kernel, 1, "log", "");
	page_leave(p, 0);
	desk_end(fx->desk, "", NULL, NULL);
	fixture_free(fx);
}

RUN(TEST_ROW(magic, a_log_is_of_its_own_history_and_owner),
	TEST_ROW(magic, what_ran_before_is_recorded_first), TEST_ROW(magic, one_question_at_a_time),
	TEST_ROW(magic, what_is_too_large_comes_without_outputs), TEST_ROW(magic, status_and_use),
	TEST_ROW(magic, what_is_none), TEST_ROW(magic, a_node_is_forgotten_while_the_cell_runs),
	TEST_ROW(magic, what_cannot_be_forgotten_is_said),
	TEST_ROW(magic, many_new_ids_are_not_listed),
	TEST_ROW(magic, a_kernel_that_goes_while_it_forgets_is_not_answered),
	TEST_ROW(magic, a_kernel_that_goes_is_not_answered),
	TEST_ROW(magic, nor_one_that_waits_when_it_goes))
