/* What the spine keeps of a run is forgotten: memory, files, what a page that comes back is given,
 * what the next gateway reads. */
#include "gateway/spine/desk.h"
#include "gateway/spine/forget_run.h"
#include "tests/lib/survive_fixture.h"

#define SECRET "sk-4f1d9c77e0"

static struct fixture *recorded(int64_t memory)
{
	struct fixture *fx = fixture_new();
	fx->gw.histories = fake_histories_new();
	fx->gw.config.journal_memory = memory;
	fake_bridge_survive(fx->gw.bridge);
	assert_int_equal(fixture_start(fx), 0);
	fake_kernel_ready(fx->kernel);
	return fx;
}

/* Runs a cell that says it in each way. */
static void run_secret(struct fixture *fx, struct page *p, const char *id)
{
	ask(p, CHANNEL_SHELL, "execute_request", id,
		"{\"code\":\"key = '" SECRET "'\",\"silent\":false}");
	struct jmsg *m = kernel_takes(fx, id);
	say_status(fx->kernel, m, "busy");
	fake_kernel_say(fx->kernel, CHANNEL_IOPUB, "execute_input", m,
		"{\"code\":\"key = '" SECRET "'\",\"execution_count\":1}");
	say_stream(fx->kernel, m, SECRET);
	fake_kernel_say(fx->kernel, CHANNEL_IOPUB, "display_data", m,
		"{\"data\":{\"text/plain\":\"" SECRET "\"},\"metadata\":{}}");
	fake_kernel_say(fx->kernel, CHANNEL_IOPUB, "error", m,
		"{\"ename\":\"E\",\"evalue\":\"" SECRET "\",\"traceback\":[\"" SECRET "\"]}");
	say_reply(fx->kernel, m,
		"{\"status\":\"error\",\"execution_count\":1,\"ename\":\"E\",\"evalue\":\"" SECRET
		"\",\"traceback\":[\"" SECRET "\"]}");
	say_status(fx->kernel, m, "idle");
	fake_kernel_turn(fx->kernel);
	jmsg_unref(m);
}

static bool is_found(const struct fixture *fx)
{
	char command[256];
	(void)snprintf(command, sizeof command, "grep -rqaF '" SECRET "' '%s'", fx->folder);
	int status = system(command);
	assert_true(WIFEXITED(status) && WEXITSTATUS(status) <= 1);
	return WEXITSTATUS(status) == 0;
}

static void on_forgotten(void *data, const struct err *err)
{
	assert_null(err);
	*(bool *)data = true;
}

static void forget(struct fixture *fx, const char *id)
{
	bool done = false;
	assert_int_equal(forget_run(&fx->gw, desk_id(fx->desk), id, on_forgotten, &done, NULL), 0);
	assert_false(done);
	for (int i = 0; i < 20 && !done; i++)
		advance(fx, 10);
	assert_true(done);
}

static void before_and_after(struct fixture *fx, struct page *p)
{
	execute(p, "a");
	kernel_answers(fx, "a", REPLY_OK);
	run_secret(fx, p, "s");
	execute(p, "b");
	struct jmsg *b = kernel_takes(fx, "b");
	say_status(fx->kernel, b, "busy");
	say_stream(fx->kernel, b, "of b");
	say_reply(fx->kernel, b, REPLY_OK);
	say_status(fx->kernel, b, "idle");
	fake_kernel_turn(fx->kernel);
	jmsg_unref(b);
	advance(fx, 110);
	for (int i = 0; i < 3; i++)
		fake_histories_answer(fx->gw.histories, 0);
	assert_true(is_found(fx));
}

/* All of it is there as messages, and says nothing. */
static void assert_blank(const struct page *p)
{
	for (size_t i = 0; i < p->n; i++)
		assert_false(holds(p->got[i], SECRET));
	(void)page_find(p, 0, "execute_input", "s", "{\"code\":\"\",\"execution_count\":1}");
	(void)page_find(p, 0, "stream", "s", "{\"name\":\"stdout\",\"text\":\"\"}");
	(void)page_find(p, 0, "error", "s", "{\"ename\":\"\",\"evalue\":\"\",\"traceback\":[]}");
	(void)page_find(p, 0, "execute_reply", "s", "{\"status\":\"error\"");
	assert_true(page_has_end(p, "s", "execute_reply"));
	assert_true(page_has_end(p, "a", "execute_reply"));
	assert_true(page_has_end(p, "b", "execute_reply"));
	(void)page_find(p, 0, "stream", "b", "of b");
}

static void comes_back(int64_t memory)
{
	struct fixture *fx = recorded(memory);
	struct page *p = page_open(fx, "s1");
	before_and_after(fx, p);
	forget(fx, "s");
	assert_false(is_found(fx));
	page_leave(p, 1); /* it had read nothing */
	p = page_open(fx, "s1");
	page_pull_all(fx, p);
	assert_blank(p);
	page_leave(p, 0);
	fixture_free(fx);
}

TEST(forget_run, a_page_that_comes_back_gets_it_blank_from_memory)
{
	comes_back(8 << 20);
}

TEST(forget_run, and_from_the_file)
{
	comes_back(1);
}

/* The code of a cell is kept beside the journal until it ends, in a row that the next cell takes:
 * what it does not write over would stay. */
TEST(forget_run, the_row_of_its_request_is_wiped)
{
	struct fixture *fx = recorded(8 << 20);
	struct page *p = page_open(fx, "s1");
	before_and_after(fx, p);
	struct live_request *row = live_request_at(fx->desk->live, 0);
	execute(p, "c"); /* it has the row now */
	assert_true(row->order > 0);
	assert_non_null(memmem(row->frame, sizeof row->frame, "{\"code\"", 7));
	forget(fx, "s");
	assert_false(is_found(fx));
	kernel_answers(fx, "c", REPLY_OK);
	advance(fx, 110);
	page_leave(p, 0);
	fixture_free(fx);
}

TEST(forget_run, what_is_said_while_the_file_is_written_too)
{
	struct fixture *fx = recorded(8 << 20);
	struct page *p = page_open(fx, "s1");
	before_and_after(fx, p);
	struct jmsg *s = ask_with(p, CHANNEL_SHELL, "execute_request", "s", "{}");
	say_stream(fx->kernel, s, "late " SECRET);
	fake_kernel_turn(fx->kernel);
	fake_clock_advance(fx->gw.clock, 110); /* the write has begun */
	forget(fx, "s");
	assert_false(is_found(fx));
	jmsg_unref(s);
	page_leave(p, 0);
	fixture_free(fx);
}

TEST(forget_run, the_next_gateway_takes_the_journal_up_as_it_is)
{
	struct fixture *fx = recorded(8 << 20);
	struct page *p = page_open(fx, "s1");
	before_and_after(fx, p);
	forget(fx, "s");
	struct fixture *next = after_a_kill(fx);
	assert_false(is_found(next));
	assert_int_equal(fake_histories_waiting(next->gw.histories), 0);
	struct page *q = page_open(next, "s1");
	fake_kernel_ready(next->kernel);
	replay_is_over(next);
	page_pull_all(next, q);
	assert_blank(q);
	page_leave(q, 0);
	next_free(next);
	page_leave(p, 0);
	fixture_free(fx);
}

TEST(forget_run, one_that_is_not_noted_as_recorded_is_handed_over_by_its_id)
{
	struct fixture *fx = recorded(8 << 20);
	struct page *p = page_open(fx, "s1");
	run_secret(fx, p, "s");
	advance(fx, 110);
	forget(fx, "s"); /* history has it, its answer did not come any more */
	struct fixture *next = after_a_kill(fx);
	assert_int_equal(fake_histories_waiting(next->gw.histories), 1);
	const struct fake_run *run = fake_histories_run(next->gw.histories, 0);
	assert_string_equal(run->request->msg_id, "s");
	assert_string_equal(run->request->msg_type, "execute_request");
	assert_true(holds(run->end, "\"status\":\"error\""));
	fake_histories_answer(next->gw.histories, 0);
	next_free(next);
	page_leave(p, 0);
	fixture_free(fx);
}

/* A request of a cell that is over, as a parent. */
static struct jmsg *parent_of(struct page *p, const char *id)
{
	return ask_with(p, CHANNEL_SHELL, "execute_request", id, "{}");
}

/* A thread of the cell, and the pause after it: both say something once it is forgotten. */
static void say_late(struct fixture *fx, struct page *p, const char *id)
{
	struct jmsg *s = parent_of(p, id);
	say_stream(fx->kernel, s, "late " SECRET);
	fake_kernel_say(fx->kernel, CHANNEL_IOPUB, "update_display_data", s,
		"{\"data\":{\"text/plain\":\"" SECRET "\"},\"metadata\":{},\"transient\":{}}");
	fake_kernel_say(fx->kernel, CHANNEL_STDIN, "input_request", s,
		"{\"prompt\":\"" SECRET "?\",\"password\":false}");
	fake_kernel_report(fx->kernel, id,
		"{\"variables\":[{\"name\":\"" SECRET "\",\"type\":\"int\"}],\"complete\":true}");
	fake_kernel_turn(fx->kernel);
	jmsg_unref(s);
	advance(fx, 110);
}

TEST(forget_run, what_it_says_afterwards_is_not_kept)
{
	struct fixture *fx = recorded(8 << 20);
	struct page *p = page_open(fx, "s1");
	before_and_after(fx, p);
	page_pull_all(fx, p);
	size_t before = p->n;
	forget(fx, "s");
	say_late(fx, p, "s");
	assert_false(is_found(fx));
	assert_int_equal(fake_histories_waiting(fx->gw.histories), 0); /* no report of it */
	page_pull_all(fx, p);
	for (size_t i = before; i < p->n; i++)
		assert_false(holds(p->got[i], SECRET));
	/* The kernel need not keep it either. */
	struct jmsg *s = parent_of(p, "s");
	struct jmsg *last = fake_kernel_says(fx->kernel, CHANNEL_IOPUB, "stream", s,
		"{\"name\":\"stdout\",\"text\":\"" SECRET "\"}");
	fake_kernel_turn(fx->kernel);
	advance(fx, 1100);
	assert_string_equal(fake_kernel_written(fx->kernel, CHANNEL_IOPUB), last->msg_id);
	jmsg_unref(last);
	jmsg_unref(s);
	/* Its thread waits for an answer. */
	(void)page_find(p, before, "input_request", "s", "{\"prompt\":\"\",\"password\":false}");
	/* Another's is kept as ever. */
	say_late(fx, p, "b");
	assert_true(is_found(fx));
	assert_int_equal(fake_histories_waiting(fx->gw.histories), 1);
	page_leave(p, 0);
	fixture_free(fx);
}

TEST(forget_run, and_the_next_gateway_does_not_keep_it_either)
{
	struct fixture *fx = recorded(8 << 20);
	struct page *p = page_open(fx, "s1");
	before_and_after(fx, p);
	forget(fx, "s");
	struct fixture *next = after_a_kill(fx);
	struct page *q = page_open(next, "s1");
	fake_kernel_ready(next->kernel);
	replay_is_over(next);
	say_late(next, q, "s");
	assert_false(is_found(next));
	assert_int_equal(fake_histories_waiting(next->gw.histories), 0);
	page_leave(q, 0);
	next_free(next);
	page_leave(p, 0);
	fixture_free(fx);
}

/* A client that gives a new request the id of a cell that was forgotten gets its answer. */
TEST(forget_run, a_request_of_the_same_id_is_another)
{
	struct fixture *fx = recorded(8 << 20);
	struct page *p = page_open(fx, "s1"), *q = page_open(fx, "s2");
	before_and_after(fx, p);
	forget(fx, "s");
	page_pull_all(fx, q);
	size_t before = q->n;
	execute(q, "s");
	kernel_answers(fx, "s", REPLY_OK);
	advance(fx, 110);
	page_pull_all(fx, q);
	(void)page_find(q, before, "status", "s", "\"idle\"");
	(void)page_find(q, before, "execute_reply", "s", REPLY_OK);
	fake_histories_answer(fx->gw.histories, 0);
	page_leave(p, 0);
	page_leave(q, 0);
	fixture_free(fx);
}

TEST(forget_run, a_disk_that_cannot_note_it_is_told)
{
	struct fixture *fx = recorded(8 << 20);
	struct page *p = page_open(fx, "s1");
	char path[256], away[300];
	struct err err;
	bool done = false;
	before_and_after(fx, p);
	(void)snprintf(path, sizeof path, "%s/journals", fx->folder);
	(void)snprintf(away, sizeof away, "%s/away", fx->folder);
	assert_int_equal(rename(path, away), 0);
	int fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
	assert_int_equal(close(fd), 0);
	assert_int_equal(
		forget_run(&fx->gw, desk_id(fx->desk), "s", on_forgotten, &done, &err), E_IO);
	assert_int_equal(unlink(path), 0);
	assert_int_equal(rename(away, path), 0);
	advance(fx, 10);
	assert_false(done);
	forget(fx, "s");
	assert_false(is_found(fx));
	page_leave(p, 0);
	fixture_free(fx);
}

TEST(forget_run, where_the_kernel_stands_is_told_anew)
{
	struct fixture *fx = recorded(8 << 20);
	struct page *p = page_open(fx, "s1");
	before_and_after(fx, p);
	struct history_rewritten pairs[2] = {{"1111", "2222"}, {"", "3333"}};
	(void)snprintf(pairs[1].was, sizeof pairs[1].was, "%s", fx->desk->scribe.node);
	scribe_renamed(fx->desk, pairs, 2);
	assert_string_equal(fx->desk->scribe.node, "3333");
	page_leave(p, 0);
	fixture_free(fx);
}

TEST(forget_run, a_kernel_that_is_not_there_has_nothing)
{
	struct fixture *fx = recorded(8 << 20);
	bool done = false;
	assert_int_equal(forget_run(&fx->gw, "22222222-2222-4222-8222-222222222222", "s",
				 on_forgotten, &done, NULL),
		0);
	settle(fx);
	assert_true(done);
	fixture_free(fx);
}

RUN(TEST_ROW(forget_run, a_page_that_comes_back_gets_it_blank_from_memory),
	TEST_ROW(forget_run, and_from_the_file),
	TEST_ROW(forget_run, the_row_of_its_request_is_wiped),
	TEST_ROW(forget_run, what_is_said_while_the_file_is_written_too),
	TEST_ROW(forget_run, the_next_gateway_takes_the_journal_up_as_it_is),
	TEST_ROW(forget_run, one_that_is_not_noted_as_recorded_is_handed_over_by_its_id),
	TEST_ROW(forget_run, what_it_says_afterwards_is_not_kept),
	TEST_ROW(forget_run, and_the_next_gateway_does_not_keep_it_either),
	TEST_ROW(forget_run, a_request_of_the_same_id_is_another),
	TEST_ROW(forget_run, a_disk_that_cannot_note_it_is_told),
	TEST_ROW(forget_run, where_the_kernel_stands_is_told_anew),
	TEST_ROW(forget_run, a_kernel_that_is_not_there_has_nothing))
