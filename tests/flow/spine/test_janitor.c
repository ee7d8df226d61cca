/* Culling by wire-contract 1.11. */
#include "tests/lib/spine_fixture.h"

static struct fixture *culling_fixture(void)
{
	struct fixture *fx = fixture_with_kernel();
	fx->gw.config.cull_idle_timeout = 600000;
	return fx;
}

static size_t kernels_left(struct fixture *fx)
{
	return kernels_count(fx->gw.kernels, NULL);
}

TEST(janitor, is_off_by_default)
{
	struct fixture *fx = fixture_with_kernel();
	advance(fx, 100000000);
	assert_int_equal(kernels_left(fx), 1);
	fixture_free(fx);
}

TEST(janitor, ends_the_idle)
{
	struct fixture *fx = culling_fixture();
	advance(fx, 540000);
	assert_int_equal(kernels_left(fx), 1);
	advance(fx, 121000);
	assert_int_equal(kernels_left(fx), 0);
	fixture_free(fx);
}

TEST(janitor, spares_those_with_clients_unless_told_and_tells_them)
{
	struct fixture *fx = culling_fixture();
	struct page *p = page_open(fx, "s1");
	advance(fx, 1000000);
	assert_int_equal(kernels_left(fx), 1);
	fx->gw.config.cull_connected = true;
	advance(fx, 60000);
	assert_int_equal(kernels_left(fx), 0);
	page_pull(p);
	size_t at = page_find(p, 0, "stream", NULL, "idle for long");
	page_find(p, at, "status", "", "dead");
	assert_int_equal(p->closed, 1000);
	page_leave(p, 0);
	fixture_free(fx);
}

/* notebook#3896: a cell longer than the timeout is not culled the moment it ends. */
TEST(janitor, counts_from_the_end_of_the_cell)
{
	struct fixture *fx = culling_fixture();
	struct page *p = page_open(fx, "s1");
	execute(p, "a");
	struct jmsg *m = kernel_takes(fx, "a");
	say_status(fx->kernel, m, "busy");
	page_leave(p, 0);
	advance(fx, 3000000);
	assert_int_equal(kernels_left(fx), 1);
	say_reply(fx->kernel, m, REPLY_OK);
	say_status(fx->kernel, m, "idle");
	advance(fx, 540000);
	assert_int_equal(kernels_left(fx), 1);
	advance(fx, 180000);
	assert_int_equal(kernels_left(fx), 0);
	jmsg_unref(m);
	fixture_free(fx);
}

TEST(janitor, ends_the_busy_only_when_told)
{
	struct fixture *fx = culling_fixture();
	struct page *p = page_open(fx, "s1");
	execute(p, "a");
	struct jmsg *m = kernel_takes(fx, "a");
	say_status(fx->kernel, m, "busy");
	page_leave(p, 0);
	fx->gw.config.cull_busy = true;
	advance(fx, 700000);
	assert_int_equal(kernels_left(fx), 0);
	jmsg_unref(m);
	fixture_free(fx);
}

TEST(janitor, obeys_the_kernelspec)
{
	struct fixture *fx = fixture_with_kernel();
	fake_bridge_spec(fx->gw.bridge)->cull_idle_ms = 100000;
	advance(fx, 200000);
	assert_int_equal(kernels_left(fx), 0);
	fixture_free(fx);
}

TEST(janitor, removes_the_dead)
{
	struct fixture *fx = culling_fixture();
	fx->gw.config.auto_restart = false;
	fake_kernel_die(fx->kernel, DEATH_SIGNAL, 9, "killed");
	assert_int_equal(kernels_left(fx), 1);
	advance(fx, 60000);
	assert_int_equal(kernels_left(fx), 0);
	fixture_free(fx);
}

RUN(TEST_ROW(janitor, is_off_by_default), TEST_ROW(janitor, ends_the_idle),
	TEST_ROW(janitor, spares_those_with_clients_unless_told_and_tells_them),
	TEST_ROW(janitor, counts_from_the_end_of_the_cell),
	TEST_ROW(janitor, ends_the_busy_only_when_told), TEST_ROW(janitor, obeys_the_kernelspec),
	TEST_ROW(janitor, removes_the_dead))
