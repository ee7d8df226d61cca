/* A page so far behind that the journal's bound cut entries away: each of its requests that was
 * answered there has its outcome all the same, once, and the page ends with the kernel's state. */
#include "gateway/door/encode.h"
#include "tests/lib/spine_fixture.h"

static struct fixture *small_fixture(void)
{
	struct fixture *fx = fixture_new();
	fx->gw.config.journal_memory = 64 << 10;
	fx->gw.config.journal_disk = 1 << 20;
	assert_int_equal(fixture_start(fx), 0);
	fake_kernel_ready(fx->kernel);
	return fx;
}

static void run(struct fixture *fx, struct page *p, const char *id, const char *reply)
{
	execute(p, id);
	kernel_answers(fx, id, reply);
}

/* Its reply, then its idle, each once; the place after them. */
static size_t assert_end(const struct page *p, size_t from, const char *id, const char *text)
{
	assert_int_equal(page_count(p, "execute_reply", id, ""), 1);
	assert_int_equal(page_count(p, "status", id, "idle"), 1);
	size_t at = page_find(p, from, "execute_reply", id, text);
	return page_find(p, at, "status", id, "idle") + 1;
}

static void assert_last_status(const struct page *p, const char *state)
{
	size_t at = p->n;
	while (at-- > 0 && strcmp(p->got[at]->msg_type, "status") != 0)
		;
	assert_true(at < p->n && holds(p->got[at], state));
}

TEST(gap, what_was_answered_there_is_told_once_and_in_order)
{
	struct fixture *fx = small_fixture();
	struct page *p = page_open(fx, "s1"), *q = page_open(fx, "s2");
	page_pull(p);
	run(fx, p, "a", "{\"status\":\"ok\",\"execution_count\":1,\"payload\":[7]}");
	run(fx, q, "other", REPLY_OK);
	run(fx, p, "b", REPLY_ERROR);
	flood_1mib(fx);
	run(fx, p, "c", REPLY_OK);
	page_pull_all(fx, p);
	size_t at = page_find(p, 0, "stream", "", "missing here");
	assert_int_equal(at, 0);
	at = assert_end(p, at, "a", "\"payload\":[7]");
	at = assert_end(p, at, "b", "\"ename\":\"E\"");
	assert_int_equal(at, 5);
	assert_string_equal(p->got[at]->msg_type, "status");
	assert_string_equal(p->got[at]->parent_id, "");
	at = page_find(p, at, "stream", NULL, "line ");
	(void)assert_end(p, at, "c", "ok");
	assert_int_equal(page_count(p, "execute_reply", "other", ""), 0);
	assert_int_equal(page_count(p, "status", "other", ""), 0);
	assert_last_status(p, "idle");
	page_pull_all(fx, q);
	assert_end(q, 0, "other", "ok");
	assert_int_equal(page_count(q, "execute_reply", "a", ""), 0);
	page_leave(p, 0);
	page_leave(q, 0);
	fixture_free(fx);
}

TEST(gap, what_was_delivered_before_it_is_not_told_again)
{
	struct fixture *fx = small_fixture();
	struct page *p = page_open(fx, "s1");
	run(fx, p, "a", REPLY_OK);
	page_pull(p);
	run(fx, p, "b", REPLY_OK);
	flood_1mib(fx);
	page_pull_all(fx, p);
	assert_end(p, 0, "a", "ok");
	assert_end(p, 0, "b", "ok");
	flood_1mib(fx);
	page_pull_all(fx, p);
	assert_end(p, 0, "a", "ok");
	assert_end(p, 0, "b", "ok");
	assert_int_equal(page_count(p, "stream", "", "missing here"), 2);
	page_leave(p, 0);
	fixture_free(fx);
}

TEST(gap, half_of_an_end_may_be_there)
{
	struct fixture *fx = small_fixture();
	struct page *p = page_open(fx, "s1");
	page_pull(p);
	execute(p, "a");
	struct jmsg *a = kernel_takes(fx, "a");
	say_status(fx->kernel, a, "busy");
	say_reply(fx->kernel, a, REPLY_OK);
	ask(p, CHANNEL_CONTROL, "debug_request", "d", "{}");
	struct jmsg *d = kernel_takes(fx, "d");
	say_status(fx->kernel, d, "idle");
	flood_1mib(fx);
	page_pull_all(fx, p);
	assert_int_equal(page_count(p, "execute_reply", "a", "ok"), 1);
	assert_int_equal(page_count(p, "status", "d", "idle"), 1);
	assert_last_status(p, "busy");
	say_status(fx->kernel, a, "idle");
	say_reply(fx->kernel, d, "{\"status\":\"ok\"}");
	fake_kernel_turn(fx->kernel);
	flood_1mib(fx);
	page_pull_all(fx, p);
	assert_end(p, 0, "a", "ok");
	assert_true(page_has_end(p, "d", "debug_reply"));
	assert_last_status(p, "idle");
	jmsg_unref(a);
	jmsg_unref(d);
	page_leave(p, 0);
	fixture_free(fx);
}

TEST(gap, what_the_gateway_answered_is_told_too)
{
	struct fixture *fx = small_fixture();
	struct page *p = page_open(fx, "s1");
	page_pull(p);
	execute(p, "a");
	execute(p, "b");
	kernel_answers(fx, "a", REPLY_ERROR);
	flood_1mib(fx);
	page_pull_all(fx, p);
	size_t at = assert_end(p, 0, "a", "\"ename\":\"E\"");
	assert_end(p, at, "b", "aborted");
	page_leave(p, 0);
	fixture_free(fx);
}

/* Of those whose reply is not kept any more the outcome is, of an execution. */
TEST(gap, the_outcome_is_true_where_the_reply_is_gone)
{
	struct fixture *fx = small_fixture();
	struct page *p = page_open(fx, "s1");
	char id[16];
	page_pull(p);
	run(fx, p, "ok", "{\"status\":\"ok\",\"execution_count\":41}");
	run(fx, p, "error", REPLY_ERROR);
	run(fx, p, "aborted", "{\"status\":\"aborted\"}");
	ask(p, CHANNEL_SHELL, "complete_request", "c", "{\"code\":\"\",\"cursor_pos\":0}");
	kernel_answers(fx, "c", "{\"status\":\"ok\",\"matches\":[]}");
	for (int i = 0; i < 64; i++) {
		(void)snprintf(id, sizeof id, "n%d", i);
		run(fx, p, id, REPLY_OK);
	}
	flood_1mib(fx);
	page_pull_all(fx, p);
	size_t at = assert_end(p, 0, "ok", "\"execution_count\":41");
	at = assert_end(p, at, "error", "ReplyLost");
	at = assert_end(p, at, "aborted", "\"aborted\"");
	at = page_find(p, at, "complete_reply", "c", "ReplyLost");
	at = page_find(p, at, "status", "c", "idle");
	assert_string_equal(p->got[at]->parent_type, "complete_request");
	assert_string_equal(p->got[at]->parent_session, "s1");
	for (int i = 0; i < 64; i++) {
		(void)snprintf(id, sizeof id, "n%d", i);
		at = assert_end(p, at, id, "ok");
	}
	page_leave(p, 0);
	fixture_free(fx);
}

TEST(gap, beyond_the_bound_there_is_the_count)
{
	struct fixture *fx = small_fixture();
	struct page *p = page_open(fx, "s1");
	char id[16];
	page_pull(p);
	for (int i = 0; i < 1025; i++) {
		(void)snprintf(id, sizeof id, "n%d", i);
		run(fx, p, id, REPLY_OK);
	}
	flood_1mib(fx);
	page_pull_all(fx, p);
	assert_int_equal(page_count(p, "stream", "", "missing here"), 1);
	assert_int_equal(page_count(p, "execute_reply", "n0", ""), 0);
	size_t at = assert_end(p, 0, "n1", "ok");
	assert_end(p, at, "n1024", "ok");
	page_leave(p, 0);
	fixture_free(fx);
}

/* A socket that broke while it was told: a part of it may not have arrived. */
TEST(gap, what_was_lost_on_the_way_is_told_again)
{
	struct fixture *fx = small_fixture();
	struct page *p = page_open(fx, "s1");
	page_pull(p);
	run(fx, p, "a", REPLY_OK);
	run(fx, p, "b", REPLY_OK);
	flood_1mib(fx);
	for (settle(fx); page_count(p, "status", "a", "idle") == 0; settle(fx))
		assert_true(page_pull_one(p) || p->readable);
	page_leave(p, p->number[p->n - 1]);
	p = page_open(fx, "s1");
	page_pull_all(fx, p);
	assert_end(p, assert_end(p, 0, "a", "ok"), "b", "ok");
	assert_int_equal(page_count(p, "stream", "", "missing here"), 1);
	size_t after = page_find(p, 0, "stream", NULL, "line ");
	page_leave(p, p->number[after]); /* the gap had arrived */
	p = page_open(fx, "s1");
	page_pull_all(fx, p);
	assert_int_equal(page_count(p, "execute_reply", NULL, ""), 0);
	assert_int_equal(page_count(p, "stream", "", "missing here"), 0);
	assert_string_equal(p->got[0]->msg_type, "stream");
	page_leave(p, 0);
	fixture_free(fx);
}

TEST(gap, a_page_that_leaves_untold_is_told_when_it_returns)
{
	struct fixture *fx = small_fixture();
	struct page *p = page_open(fx, "s1");
	page_pull(p);
	run(fx, p, "a", REPLY_OK);
	flood_1mib(fx);
	for (settle(fx); p->n == 0; settle(fx)) /* the count alone */
		assert_true(page_pull_one(p) || p->readable);
	page_leave(p, 0);
	p = page_open(fx, "s1");
	page_pull_all(fx, p);
	assert_end(p, 0, "a", "ok");
	page_leave(p, 0);
	fixture_free(fx);
}

TEST(gap, the_state_is_told_if_nothing_else_follows)
{
	struct fixture *fx = small_fixture();
	struct page *p = page_open(fx, "s1"), *q = page_open(fx, "s2");
	page_pull(p);
	execute(q, "a");
	struct jmsg *m = kernel_takes(fx, "a");
	say_status(fx->kernel, m, "busy");
	flood_1mib(fx);
	page_pull_all(fx, p);
	assert_last_status(p, "busy");
	say_reply(fx->kernel, m, REPLY_OK);
	say_status(fx->kernel, m, "idle");
	fake_kernel_turn(fx->kernel);
	flood_1mib(fx);
	page_pull_all(fx, p);
	assert_last_status(p, "idle");
	assert_int_equal(page_count(p, "execute_reply", NULL, ""), 0);
	jmsg_unref(m);
	page_leave(p, 0);
	page_leave(q, 0);
	fixture_free(fx);
}

static void assert_framings(struct entry *e)
{
	struct outbound v1, legacy;
	struct jmsg *again;
	assert_int_equal(encode_entry(e, FRAMING_V1, &v1, NULL), 0);
	assert_int_equal(jmsg_from_frame(v1.data, &again, NULL), 0);
	assert_int_equal(encode_entry(e, FRAMING_LEGACY, &legacy, NULL), 0);
	cJSON *tree = cJSON_ParseWithLength((const char *)legacy.data.data, legacy.data.len);
	cJSON *parent = cJSON_GetObjectItem(tree, "parent_header");
	const char *id = cJSON_GetStringValue(cJSON_GetObjectItem(parent, "msg_id"));
	assert_string_equal(cJSON_GetStringValue(cJSON_GetObjectItem(tree, "channel")),
		channel_name(e->msg->channel));
	assert_string_equal(again->parent_id, id ? id : "");
	assert_string_equal(e->msg->parent_id, again->parent_id);
	cJSON_Delete(tree);
	jmsg_unref(again);
}

TEST(gap, is_told_alike_in_both_framings)
{
	struct fixture *fx = small_fixture();
	struct page *p = page_open(fx, "s1");
	struct entry *e = NULL;
	size_t n = 0;
	page_pull(p);
	execute(p, "a \\\"\\u00e4\\\"");
	kernel_answers(fx, "a \"\xc3\xa4\"", REPLY_OK);
	flood_1mib(fx);
	for (settle(fx); n < 4; settle(fx)) {
		while (n < 4 && client_next(p->client, &e) == 1) {
			assert_framings(e);
			entry_unref(e);
			n++;
		}
	}
	page_leave(p, 0);
	fixture_free(fx);
}

RUN(TEST_ROW(gap, what_was_answered_there_is_told_once_and_in_order),
	TEST_ROW(gap, what_was_delivered_before_it_is_not_told_again),
	TEST_ROW(gap, half_of_an_end_may_be_there),
	TEST_ROW(gap, what_the_gateway_answered_is_told_too),
	TEST_ROW(gap, the_outcome_is_true_where_the_reply_is_gone),
	TEST_ROW(gap, beyond_the_bound_there_is_the_count),
	TEST_ROW(gap, what_was_lost_on_the_way_is_told_again),
	TEST_ROW(gap, a_page_that_leaves_untold_is_told_when_it_returns),
	TEST_ROW(gap, the_state_is_told_if_nothing_else_follows),
	TEST_ROW(gap, is_told_alike_in_both_framings))
