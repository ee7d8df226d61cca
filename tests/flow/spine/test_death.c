/* Deaths, restarts and ends: every open request ends, every page is told. */
#include "tests/lib/spine_fixture.h"

static struct jmsg *running_cell(struct fixture *fx, struct page *p)
{
	execute(p, "a");
	execute(p, "b");
	ask(p, CHANNEL_SHELL, "comm_info_request", "i", "{}");
	ask(p, CHANNEL_CONTROL, "debug_request", "d", "{}");
	struct jmsg *m = kernel_takes(fx, "a");
	say_status(fx->kernel, m, "busy");
	say_stream(fx->kernel, m, "begin");
	return m;
}

static void all_have_ended(struct page *p)
{
	assert_true(page_has_end(p, "a", "execute_reply"));
	assert_true(page_has_end(p, "b", "execute_reply"));
	assert_true(page_has_end(p, "i", "comm_info_reply"));
	assert_true(page_has_end(p, "d", "debug_reply"));
}

/* Case 19, with automatic restart. */
TEST(death, is_told_and_restarted)
{
	struct fixture *fx = fixture_with_kernel();
	struct page *p = page_open(fx, "s1");
	struct jmsg *m = running_cell(fx, p);
	fake_kernel_die(fx->kernel, DEATH_OOM, 9, "the kernel ran out of memory");
	page_pull(p);
	all_have_ended(p);
	size_t at = page_find(p, 0, "stream", "a", "out of memory");
	at = page_find(p, at, "execute_reply", "a", "aborted");
	at = page_find(p, at, "status", "", "restarting");
	assert_string_not_equal(p->got[at]->session, "kernel-1");
	assert_execution(fx, "a", "done", "died");
	assert_execution(fx, "b", "done", "aborted");
	assert_int_equal(fake_kernel_restarts(fx->kernel), 1);
	assert_state(fx, "starting");
	settle(fx);
	execute(p, "c");
	fake_kernel_ready(fx->kernel);
	kernel_answers(fx, "c", REPLY_OK);
	page_pull(p);
	page_find(p, at, "status", "", "idle");
	assert_true(page_has_end(p, "c", "execute_reply"));
	assert_int_equal(p->closed, 0);
	jmsg_unref(m);
	page_leave(p, 0);
	fixture_free(fx);
}

TEST(death, without_restart_leaves_it_dead_and_listed)
{
	struct fixture *fx = fixture_with_kernel();
	fx->gw.config.auto_restart = false;
	struct page *p = page_open(fx, "s1"), *q;
	struct jmsg *m = running_cell(fx, p);
	fake_kernel_die(fx->kernel, DEATH_SIGNAL, 9, "the kernel was killed by signal 9");
	page_pull(p);
	all_have_ended(p);
	page_find(p, 0, "status", "", "dead");
	assert_int_equal(p->closed, 1000);
	assert_state(fx, "dead");
	cJSON *list = kernels_list(fx->gw.kernels, &fx->owner);
	cJSON *reason = cJSON_GetObjectItem(cJSON_GetArrayItem(list, 0), "reason");
	assert_non_null(strstr(cJSON_GetStringValue(reason), "signal 9"));
	cJSON_Delete(list);
	assert_int_equal(page_try(fx, &q, "s1"), E_DEAD);
	free(q);
	jmsg_unref(m);
	page_leave(p, 0);
	fixture_free(fx);
}

TEST(death, again_and_again_is_the_end)
{
	struct fixture *fx = fixture_with_kernel();
	for (int i = 0; i < 2; i++) {
		fake_kernel_die(fx->kernel, DEATH_SIGNAL, 11, "the kernel crashed");
		settle(fx);
		fake_kernel_ready(fx->kernel);
	}
	fake_kernel_die(fx->kernel, DEATH_SIGNAL, 11, "the kernel crashed");
	assert_state(fx, "dead");
	assert_int_equal(fake_kernel_restarts(fx->kernel), 2);
	fixture_free(fx);
}

TEST(death, is_forgotten_after_a_stable_minute)
{
	struct fixture *fx = fixture_with_kernel();
	for (int i = 0; i < 5; i++) {
		advance(fx, 60000);
		fake_kernel_die(fx->kernel, DEATH_SIGNAL, 11, "the kernel crashed");
		settle(fx);
		fake_kernel_ready(fx->kernel);
	}
	assert_state(fx, "idle");
	fixture_free(fx);
}

TEST(death, of_a_kernel_that_never_came_up_is_final)
{
	struct fixture *fx = fixture_new();
	assert_int_equal(fixture_start(fx), 0);
	struct page *p = page_open(fx, "s1");
	execute(p, "a");
	fake_kernel_die(fx->kernel, DEATH_START, 0, "no such image: coppice-kernel");
	page_pull(p);
	assert_true(page_has_end(p, "a", "execute_reply"));
	page_find(p, 0, "stream", NULL, "no such image");
	assert_int_equal(p->closed, 1000);
	assert_state(fx, "dead");
	page_leave(p, 0);
	fixture_free(fx);
}

/* Case 20: exit() replies ok with ask_exit, and the process is gone soon after. */
TEST(death, by_user_code_is_named_so)
{
	struct fixture *fx = fixture_with_kernel();
	struct page *p = page_open(fx, "s1");
	execute(p, "a");
	kernel_answers(fx, "a",
		"{\"status\":\"ok\",\"payload\":[{\"source\":\"ask_exit\",\"keepkernel\":false}]}");
	execute(p, "b");
	assert_int_equal(fake_kernel_waiting(fx->kernel), 0);
	advance(fx, 300);
	fake_kernel_die(fx->kernel, DEATH_EXIT, 0, "the kernel ended with exit code 0");
	settle(fx);
	fake_kernel_ready(fx->kernel);
	kernel_answers(fx, "b", REPLY_ERROR);
	page_pull(p);
	page_find(p, 0, "stream", NULL, "User code ended the kernel");
	assert_true(page_has_end(p, "b", "execute_reply"));
	assert_state(fx, "idle");
	assert_execution(fx, "a", "done", "ok");
	assert_execution(fx, "b", "done", "error");
	page_leave(p, 0);
	fixture_free(fx);
}

TEST(death, that_was_announced_and_does_not_come_holds_nobody)
{
	struct fixture *fx = fixture_with_kernel();
	struct page *p = page_open(fx, "s1");
	execute(p, "a");
	kernel_answers(fx, "a", "{\"status\":\"ok\",\"payload\":[{\"source\":\"ask_exit\"}]}");
	execute(p, "b");
	advance(fx, 1900);
	assert_int_equal(fake_kernel_waiting(fx->kernel), 0);
	advance(fx, 200);
	kernel_answers(fx, "b", REPLY_OK);
	page_leave(p, 0);
	fixture_free(fx);
}

TEST(death, that_was_announced_without_a_restart_ends_all)
{
	struct fixture *fx = fixture_with_kernel();
	fx->gw.config.auto_restart = false;
	struct page *p = page_open(fx, "s1");
	execute(p, "a");
	kernel_answers(fx, "a", "{\"status\":\"ok\",\"payload\":[{\"source\":\"ask_exit\"}]}");
	execute(p, "b");
	fake_kernel_die(fx->kernel, DEATH_EXIT, 0, "the kernel ended with exit code 0");
	page_pull(p);
	assert_true(page_has_end(p, "b", "execute_reply"));
	assert_int_equal(p->closed, 1000);
	page_leave(p, 0);
	fixture_free(fx);
}

TEST(death, that_was_announced_and_whose_restart_fails_ends_all)
{
	struct fixture *fx = fixture_with_kernel();
	struct page *p = page_open(fx, "s1");
	execute(p, "a");
	kernel_answers(fx, "a", "{\"status\":\"ok\",\"payload\":[{\"source\":\"ask_exit\"}]}");
	execute(p, "b");
	(void)fault_arm(fake_bridge_fault(fx->gw.bridge), 1);
	fake_kernel_die(fx->kernel, DEATH_EXIT, 0, "the kernel ended with exit code 0");
	settle(fx);
	page_pull(p);
	assert_true(page_has_end(p, "b", "execute_reply"));
	assert_state(fx, "dead");
	page_leave(p, 0);
	fixture_free(fx);
}

struct outcome {
	int calls, code;
};

static void on_outcome(void *data, const struct err *err)
{
	struct outcome *o = data;
	o->calls++;
	o->code = err ? err->code : 0;
}

TEST(restart, is_told_to_every_page)
{
	struct fixture *fx = fixture_with_kernel();
	struct outcome o = {0}, o2 = {0};
	struct page *p = page_open(fx, "s1"), *q = page_open(fx, "s2");
	struct jmsg *m = running_cell(fx, p);
	desk_restart(fx->desk, on_outcome, &o);
	desk_restart(fx->desk, on_outcome, &o2);
	assert_int_equal(o.calls, 0);
	page_pull(p);
	page_pull(q);
	all_have_ended(p);
	size_t at = page_find(q, 0, "shutdown_reply", "", "true");
	at = page_find(q, at, "status", "", "starting");
	execute(p, "c");
	settle(fx);
	assert_int_equal(o.calls + o2.calls, 2);
	assert_int_equal(fake_kernel_restarts(fx->kernel), 1);
	fake_kernel_ready(fx->kernel);
	kernel_answers(fx, "c", REPLY_OK);
	page_pull(q);
	at = page_find(q, at, "status", "", "idle");
	assert_string_equal(q->got[at]->session, "kernel-2");
	page_find(q, at, "status", "c", "busy");
	jmsg_unref(m);
	page_leave(p, 0);
	page_leave(q, 0);
	fixture_free(fx);
}

static bool was_told(const struct page *p)
{
	for (size_t i = 0; i < p->n; i++) {
		struct bytes content = p->got[i]->part[PART_CONTENT];
		if (memmem(content.data, content.len, "\"restarting\"", 12))
			return true;
	}
	return false;
}

/* On `restarting` a page says that the kernel appears to have died: not to who asked for it, who
 * comes back with a new socket, and not where there is nobody else. */
TEST(restart, of_another_page_is_told_once_it_did_not_come_back)
{
	struct fixture *fx = fixture_with_kernel();
	struct outcome o = {0};
	struct page *asker = page_open(fx, "s1"), *other = page_open(fx, "s2");
	desk_restart(fx->desk, on_outcome, &o);
	settle(fx);
	fake_kernel_ready(fx->kernel);
	struct page *again = page_open(fx, "s1");
	advance(fx, 2000);
	page_pull(again);
	page_pull(other);
	assert_true(was_told(other));
	assert_false(was_told(asker));
	assert_false(was_told(again));
	page_find(other, page_find(other, 0, "status", "", "restarting"), "status", "", "idle");
	page_leave(asker, 0); /* replaced: it has no client */
	page_leave(again, 0);
	page_leave(other, 0);
	fixture_free(fx);
}

TEST(restart, of_the_only_page_looks_like_no_death)
{
	struct fixture *fx = fixture_with_kernel();
	struct outcome o = {0};
	struct page *p = page_open(fx, "s1");
	desk_restart(fx->desk, on_outcome, &o);
	settle(fx);
	fake_kernel_ready(fx->kernel);
	advance(fx, 2000);
	page_pull(p);
	assert_false(was_told(p));
	page_find(p, 0, "status", "", "starting");
	page_leave(p, 0);
	fixture_free(fx);
}

TEST(restart, that_fails_leaves_it_dead)
{
	struct fixture *fx = fixture_with_kernel();
	struct outcome o = {0};
	struct page *p = page_open(fx, "s1");
	(void)fault_arm(fake_bridge_fault(fx->gw.bridge), 1);
	desk_restart(fx->desk, on_outcome, &o);
	settle(fx);
	assert_int_equal(o.code, E_ENGINE);
	assert_state(fx, "dead");
	assert_int_equal(p->closed, 1000);
	page_leave(p, 0);
	desk_restart(fx->desk, on_outcome, &o);
	settle(fx);
	fake_kernel_ready(fx->kernel);
	assert_state(fx, "idle");
	fixture_free(fx);
}

TEST(restart, asked_for_by_a_client_on_control_comes)
{
	struct fixture *fx = fixture_with_kernel();
	struct page *p = page_open(fx, "s1");
	ask(p, CHANNEL_CONTROL, "shutdown_request", "x", "{\"restart\":true}");
	kernel_answers(fx, "x", "{\"status\":\"ok\",\"restart\":true}");
	fake_kernel_die(fx->kernel, DEATH_EXIT, 0, "the kernel ended with exit code 0");
	settle(fx);
	assert_int_equal(fake_kernel_restarts(fx->kernel), 1);
	page_pull(p);
	assert_int_equal(page_count(p, "stream", NULL, ""), 0);
	page_leave(p, 0);
	fixture_free(fx);
}

TEST(end, asked_for_by_a_client_on_control_comes)
{
	struct fixture *fx = fixture_with_kernel();
	struct page *p = page_open(fx, "s1");
	ask(p, CHANNEL_CONTROL, "shutdown_request", "x", "{\"restart\":false}");
	kernel_answers(fx, "x", "{\"status\":\"ok\",\"restart\":false}");
	fake_kernel_die(fx->kernel, DEATH_EXIT, 0, "the kernel ended with exit code 0");
	assert_int_equal(kernels_count(fx->gw.kernels, NULL), 0);
	page_pull(p);
	page_find(p, 0, "status", "", "dead");
	assert_int_equal(p->closed, 1000);
	page_leave(p, 0);
	fixture_free(fx);
}

static void on_plain(void *data)
{
	++*(int *)data;
}

TEST(end, tells_pages_and_frees_when_they_left)
{
	struct fixture *fx = fixture_with_kernel();
	int calls = 0;
	struct page *p = page_open(fx, "s1");
	struct jmsg *m = running_cell(fx, p);
	desk_end(fx->desk, "", on_plain, &calls);
	assert_int_equal(calls, 0);
	assert_int_equal(kernels_count(fx->gw.kernels, NULL), 0);
	settle(fx);
	assert_int_equal(calls, 1);
	page_pull(p);
	all_have_ended(p);
	page_find(p, 0, "status", "", "dead");
	assert_int_equal(p->closed, 1000);
	jmsg_unref(m);
	page_leave(p, 0);
	fixture_free(fx);
}

TEST(end, within_a_restart_answers_both)
{
	struct fixture *fx = fixture_with_kernel();
	struct outcome o = {0};
	int calls = 0;
	desk_restart(fx->desk, on_outcome, &o);
	desk_end(fx->desk, "", on_plain, &calls);
	settle(fx);
	assert_int_equal(o.calls, 1);
	assert_int_equal(calls, 1);
	fixture_free(fx);
}

TEST(start, checks_what_it_is_given)
{
	struct fixture *fx = fixture_new();
	struct desk *d;
	struct owner other = {.name = "bob"};
	static const char id[] = "0e6f6a0c-77a4-4d35-9a54-6c8b6b1f0a11";
	struct kernels_start start = {.owner = &fx->owner, .spec_name = "cobol"};
	assert_int_equal(kernels_start(fx->gw.kernels, &start, &d, NULL), E_NOT_FOUND);
	start = (struct kernels_start){.owner = &fx->owner, .kernel_id = "../../etc"};
	assert_int_equal(kernels_start(fx->gw.kernels, &start, &d, NULL), E_INVALID);
	cJSON *env = cJSON_Parse("{\"KERNEL_ID\":\"0e6f6a0c-77a4-4d35-9a54-6c8b6b1f0a11\"}");
	start = (struct kernels_start){.owner = &fx->owner, .env = env};
	assert_int_equal(kernels_start(fx->gw.kernels, &start, &d, NULL), 0);
	assert_string_equal(desk_id(d), id);
	assert_int_equal(kernels_start(fx->gw.kernels, &start, &d, NULL), E_CONFLICT);
	assert_int_equal(kernels_find(fx->gw.kernels, &fx->owner, id, &d, NULL), 0);
	assert_int_equal(kernels_find(fx->gw.kernels, &other, id, &d, NULL), E_NOT_FOUND);
	start.env = NULL;
	assert_int_equal(kernels_start(fx->gw.kernels, &start, &d, NULL), 0);
	assert_int_equal(kernels_start(fx->gw.kernels, &start, &d, NULL), 0);
	assert_int_equal(kernels_start(fx->gw.kernels, &start, &d, NULL), E_CAPACITY);
	assert_int_equal(kernels_count(fx->gw.kernels, &other), 0);
	cJSON_Delete(env);
	fixture_free(fx);
}

TEST(notice, of_the_bridge_comes_as_stderr_in_the_kernels_session)
{
	struct fixture *fx = fixture_with_kernel();
	struct page *p = page_open(fx, "s1");
	execute(p, "a");
	fake_kernel_notice(fx->kernel, "the interrupt was not obeyed \xff\x01");
	page_pull(p);
	size_t at = page_find(p, 0, "stream", "a", "stderr");
	assert_string_equal(p->got[at]->session, "kernel-1");
	assert_true(holds(p->got[at], "not obeyed"));
	page_leave(p, 0);
	fixture_free(fx);
}

RUN(TEST_ROW(death, is_told_and_restarted),
	TEST_ROW(death, without_restart_leaves_it_dead_and_listed),
	TEST_ROW(death, again_and_again_is_the_end),
	TEST_ROW(death, is_forgotten_after_a_stable_minute),
	TEST_ROW(death, of_a_kernel_that_never_came_up_is_final),
	TEST_ROW(death, by_user_code_is_named_so),
	TEST_ROW(death, that_was_announced_and_does_not_come_holds_nobody),
	TEST_ROW(death, that_was_announced_without_a_restart_ends_all),
	TEST_ROW(death, that_was_announced_and_whose_restart_fails_ends_all),
	TEST_ROW(restart, is_told_to_every_page),
	TEST_ROW(restart, of_another_page_is_told_once_it_did_not_come_back),
	TEST_ROW(restart, of_the_only_page_looks_like_no_death),
	TEST_ROW(restart, that_fails_leaves_it_dead),
	TEST_ROW(restart, asked_for_by_a_client_on_control_comes),
	TEST_ROW(end, asked_for_by_a_client_on_control_comes),
	TEST_ROW(end, tells_pages_and_frees_when_they_left),
	TEST_ROW(end, within_a_restart_answers_both), TEST_ROW(start, checks_what_it_is_given),
	TEST_ROW(notice, of_the_bridge_comes_as_stderr_in_the_kernels_session))
