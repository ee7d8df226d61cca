/* How many kernels are kept ready, who gets which, and who waits when there is no place. */
#include "gateway/spine/desk.h"
#include "tests/lib/spine_fixture.h"

static struct fixture *pool_fixture(int64_t floor)
{
	struct fixture *fx = fixture_new();
	struct config *c = &fx->gw.config;
	c->max_kernels = 100;
	c->pool_floor = floor;
	c->pool_max = 8;
	c->pool_starts = 2;
	c->pool_demand = 300000;
	c->pool_idle = 600000;
	c->pool_wait = 10000;
	kernels_begin(fx->gw.kernels);
	settle(fx);
	return fx;
}

static struct pool_figures figures(const struct fixture *fx)
{
	struct pool_figures f;
	pool_figures(fx->gw.kernels->pool, &f);
	return f;
}

/* The nth of those that nobody has and that are in that state. */
static struct kernel *unowned(struct fixture *fx, enum kernel_state state, size_t nth)
{
	for (size_t i = 0; i < fake_bridge_kernels(fx->gw.bridge); i++) {
		struct kernel *k = fake_kernel(fx->gw.bridge, i);
		if (!fake_kernel_id(k) && kernel_state(k) == state && nth-- == 0)
			return k;
	}
	return NULL;
}

/* All that start get ready, until there are as many as are wanted. */
static void fill(struct fixture *fx)
{
	for (struct kernel *k; (k = unowned(fx, KERNEL_STARTING, 0));) {
		fake_kernel_ready(k);
		advance(fx, 300);
	}
	assert_int_equal(figures(fx).ready, figures(fx).wanted);
}

static bool is_his(const struct fixture *fx)
{
	return strcmp(fake_kernel_id(fx->kernel), desk_id(fx->desk)) == 0;
}

/* A start; fx->kernel is what it got. */
static int start_with(struct fixture *fx, const char *env_text)
{
	cJSON *env = cJSON_Parse(env_text);
	struct kernels_start start = {.owner = &fx->owner, .env = env};
	int rc = kernels_start(fx->gw.kernels, &start, &fx->desk, NULL);
	cJSON_Delete(env);
	if (rc == 0)
		fx->kernel = fx->desk->kernel;
	return rc;
}

static void start(struct fixture *fx)
{
	assert_int_equal(start_with(fx, "{}"), 0);
	assert_true(is_his(fx));
}

static size_t count(const struct fixture *fx)
{
	return fake_bridge_kernels(fx->gw.bridge);
}

TEST(pool, keeps_its_floor)
{
	struct fixture *fx = pool_fixture(3);
	assert_int_equal(count(fx), 2); /* no more at the same time */
	fill(fx);
	assert_int_equal(count(fx), 3);
	assert_int_equal(kernels_count(fx->gw.kernels, NULL), 0);
	advance(fx, 86400000);
	assert_int_equal(figures(fx).ready, 3);
	fixture_free(fx);
}

TEST(pool, is_off_with_a_floor_of_0)
{
	struct fixture *fx = pool_fixture(0);
	start(fx);
	advance(fx, 1000);
	assert_int_equal(count(fx), 1);
	assert_int_equal(figures(fx).taken, 0);
	fixture_free(fx);
}

TEST(pool, hands_over_a_ready_one_and_makes_another)
{
	struct fixture *fx = pool_fixture(1);
	fill(fx);
	struct kernel *k = unowned(fx, KERNEL_IDLE, 0);
	start(fx);
	assert_ptr_equal(fx->kernel, k);
	assert_int_equal(count(fx), 1);
	assert_state(fx, "starting");
	fake_kernel_ready(k);
	assert_state(fx, "idle");
	advance(fx, 300);
	assert_int_equal(count(fx), 2);
	fixture_free(fx);
}

TEST(pool, two_starts_for_one_kernel)
{
	struct fixture *fx = pool_fixture(1);
	fill(fx);
	start(fx);
	struct kernel *first = fx->kernel;
	start(fx);
	assert_ptr_not_equal(fx->kernel, first);
	assert_int_equal(figures(fx).taken, 1);
	assert_int_equal(figures(fx).missed, 1);
	assert_int_equal(count(fx), 2);
	fixture_free(fx);
}

TEST(pool, takes_one_that_starts_when_none_is_ready)
{
	struct fixture *fx = pool_fixture(2);
	struct kernel *oldest = unowned(fx, KERNEL_STARTING, 0);
	start(fx);
	assert_ptr_equal(fx->kernel, oldest);
	start(fx);
	assert_int_equal(figures(fx).taken, 2);
	assert_int_equal(count(fx), 2);
	fixture_free(fx);
}

TEST(pool, leaves_out_what_does_not_fit)
{
	struct fixture *fx = pool_fixture(1);
	fill(fx);
	assert_int_equal(start_with(fx, "{\"LD_PRELOAD\":\"x\"}"), 0);
	assert_int_equal(figures(fx).taken, 0);
	assert_int_equal(figures(fx).missed, 0);
	assert_int_equal(count(fx), 2);
	fixture_free(fx);
}

/* Ten at once: next time they are there, as far as pool_max. */
TEST(pool, grows_with_demand)
{
	struct fixture *fx = pool_fixture(1);
	fill(fx);
	for (int i = 0; i < 10; i++)
		start(fx);
	advance(fx, 300);
	fill(fx);
	assert_int_equal(figures(fx).ready, 8);
	fixture_free(fx);
}

/* One a minute is no burst. */
TEST(pool, does_not_grow_with_few)
{
	struct fixture *fx = pool_fixture(1);
	for (int i = 0; i < 10; i++) {
		fill(fx);
		start(fx);
		advance(fx, 60000);
	}
	fill(fx);
	assert_int_equal(figures(fx).ready, 1);
	fixture_free(fx);
}

TEST(pool, ends_the_idle_above_the_floor)
{
	struct fixture *fx = pool_fixture(1);
	fill(fx);
	for (int i = 0; i < 4; i++)
		start(fx);
	advance(fx, 300);
	fill(fx);
	assert_int_equal(figures(fx).ready, 4);
	advance(fx, 301000); /* the demand is forgotten */
	assert_int_equal(figures(fx).wanted, 1);
	assert_int_equal(figures(fx).ready, 4);
	advance(fx, 310000);
	assert_int_equal(figures(fx).ready, 1);
	assert_int_equal(figures(fx).idled, 3);
	assert_int_equal(count(fx), 5);
	fixture_free(fx);
}

TEST(pool, counts_for_the_ceiling)
{
	struct fixture *fx = pool_fixture(3);
	fx->gw.config.pool_ceiling = 4;
	fill(fx);
	for (int i = 0; i < 2; i++)
		assert_int_equal(start_with(fx, "{\"LD_PRELOAD\":\"x\"}"), 0);
	advance(fx, 300);
	assert_int_equal(figures(fx).ready, 2);
	assert_int_equal(count(fx), 4);
	desk_end(fx->desk, "", NULL, NULL);
	advance(fx, 300);
	fill(fx);
	assert_int_equal(figures(fx).ready, 3);
	fixture_free(fx);
}

TEST(pool, replaces_one_that_dies_before_anybody_comes)
{
	struct fixture *fx = pool_fixture(1);
	fill(fx);
	fake_kernel_die(unowned(fx, KERNEL_IDLE, 0), DEATH_GONE, 0, "the engine took it");
	settle(fx);
	assert_int_equal(count(fx), 0);
	advance(fx, 600);
	assert_int_equal(count(fx), 1);
	fill(fx);
	fixture_free(fx);
}

/* Its watcher has not heard of it yet when the request comes. */
TEST(pool, passes_over_one_that_is_dying)
{
	struct fixture *fx = pool_fixture(2);
	fill(fx);
	struct kernel *newest = unowned(fx, KERNEL_IDLE, 1);
	fake_kernel_doom(newest);
	start(fx);
	assert_ptr_not_equal(fx->kernel, newest);
	assert_int_equal(figures(fx).taken, 1);
	start(fx);
	assert_ptr_not_equal(fx->kernel, newest);
	assert_int_equal(figures(fx).missed, 1);
	fake_kernel_die(newest, DEATH_GONE, 0, "gone");
	settle(fx);
	fixture_free(fx);
}

static unsigned tries_in(struct fixture *fx, uint64_t ms)
{
	unsigned before = (unsigned)figures(fx).started;
	for (uint64_t at = 0; at < ms; at += 100) {
		struct kernel *k = unowned(fx, KERNEL_STARTING, 0);
		if (k)
			fake_kernel_die(k, DEATH_START, 0, "the engine is down");
		advance(fx, 100);
	}
	return (unsigned)figures(fx).started - before;
}

TEST(pool, tries_ever_less_often_while_the_engine_is_down)
{
	struct fixture *fx = pool_fixture(1);
	unsigned first = tries_in(fx, 60000), later = tries_in(fx, 600000);
	assert_in_range(first, 4, 8);
	assert_in_range(later, 10, 20);
	cJSON *row = pool_show(fx->gw.kernels->pool);
	assert_string_equal(
		cJSON_GetStringValue(cJSON_GetObjectItem(row, "trouble")), "the engine is down");
	cJSON_Delete(row);
	advance(fx, 33000); /* it is back */
	fill(fx);
	assert_int_equal(figures(fx).ready, 1);
	start(fx);
	fixture_free(fx);
}

TEST(pool, a_start_that_fails_at_once_is_tried_later)
{
	struct fixture *fx = pool_fixture(1);
	fill(fx);
	start(fx);
	assert_true(fault_arm(fake_bridge_fault(fx->gw.bridge), 1));
	advance(fx, 300);
	assert_int_equal(figures(fx).failed, 1);
	assert_int_equal(count(fx), 1);
	advance(fx, 600);
	assert_int_equal(count(fx), 2);
	fixture_free(fx);
}

TEST(pool, a_kernel_whose_container_is_gone_restarts_out_of_it)
{
	struct fixture *fx = pool_fixture(1);
	start(fx);
	struct kernel *lost = fx->kernel;
	fake_kernel_ready(lost);
	advance(fx, 300);
	fill(fx);
	struct kernel *spare = unowned(fx, KERNEL_IDLE, 0);
	fake_kernel_lose(lost);
	fake_kernel_die(lost, DEATH_GONE, 0, "its place is gone");
	assert_ptr_equal(fx->desk->kernel, spare);
	assert_string_equal(fake_kernel_id(spare), desk_id(fx->desk));
	settle(fx);
	fake_kernel_ready(spare);
	assert_state(fx, "idle");
	advance(fx, 300);
	/* It and the spare ones: the lost one is ended. */
	assert_int_equal(count(fx), 1 + figures(fx).wanted);
	fixture_free(fx);
}

TEST(pool, is_not_culled)
{
	struct fixture *fx = pool_fixture(1);
	fx->gw.config.cull_idle_timeout = 1000;
	fill(fx);
	advance(fx, 10000000);
	assert_int_equal(figures(fx).ready, 1);
	assert_int_equal(figures(fx).idled, 0);
	fixture_free(fx);
}

/* ---- waiting ---- */

struct comer {
	struct fixture *fx;
	unsigned *order, nth; /* its turn was the nth */
	bool served, refused, gone;
	char text[sizeof(((struct err *)0)->text)];
};

static void on_place(void *data, const struct err *err)
{
	struct comer *c = data;
	assert_false(c->served || c->refused);
	c->served = !err;
	c->refused = err != NULL;
	if (err)
		(void)snprintf(c->text, sizeof c->text, "%s", err->text);
	if (!err && !c->gone) {
		c->nth = ++*c->order;
		start(c->fx);
	}
}

static void come(struct fixture *fx, struct comer *c, size_t n, unsigned *order)
{
	for (size_t i = 0; i < n; i++) {
		c[i] = (struct comer){.fx = fx, .order = order};
		assert_true(kernels_may_wait(fx->gw.kernels));
		kernels_await_place(fx->gw.kernels, on_place, &c[i]);
	}
}

static struct fixture *full_fixture(size_t places)
{
	struct fixture *fx = pool_fixture(1);
	fx->gw.config.pool_ceiling = (int64_t)places;
	while (places-- > 0)
		start(fx);
	settle(fx);
	assert_int_equal(start_with(fx, "{}"), E_CAPACITY);
	return fx;
}

TEST(waiting, in_order_as_places_become_free)
{
	struct fixture *fx = full_fixture(3);
	struct comer c[3];
	unsigned order = 0;
	come(fx, c, 3, &order);
	desk_end(fx->desk, "", NULL, NULL);
	/* It is not the one who comes just then who gets it. */
	assert_int_equal(start_with(fx, "{}"), E_CAPACITY);
	settle(fx);
	assert_int_equal(start_with(fx, "{}"), E_CAPACITY);
	assert_true(c[0].served && !c[1].served && !c[2].served);
	desk_end(fx->desk, "", NULL, NULL);
	settle(fx);
	desk_end(fx->desk, "", NULL, NULL);
	settle(fx);
	assert_int_equal(c[1].nth, 2);
	assert_int_equal(c[2].nth, 3);
	assert_int_equal(kernels_count(fx->gw.kernels, NULL), 3);
	fixture_free(fx);
}

TEST(waiting, until_the_deadline_with_its_position)
{
	struct fixture *fx = full_fixture(1);
	struct comer c[3];
	unsigned order = 0;
	come(fx, c, 2, &order);
	advance(fx, 5000);
	come(fx, &c[2], 1, &order);
	advance(fx, 4999);
	assert_false(c[0].refused);
	advance(fx, 1);
	assert_true(c[0].refused && c[1].refused && !c[2].refused);
	assert_non_null(strstr(c[1].text, "number 2 "));
	assert_non_null(strstr(c[1].text, "within 10 s"));
	desk_end(fx->desk, "", NULL, NULL);
	settle(fx);
	assert_true(c[2].served);
	fixture_free(fx);
}

TEST(waiting, passes_over_one_who_is_gone)
{
	struct fixture *fx = full_fixture(1);
	struct comer c[2];
	unsigned order = 0;
	come(fx, c, 2, &order);
	c[0].gone = true;
	desk_end(fx->desk, "", NULL, NULL);
	settle(fx);
	assert_int_equal(c[1].nth, 1);
	fixture_free(fx);
}

TEST(waiting, is_refused_when_the_gateway_ends)
{
	struct fixture *fx = full_fixture(1);
	struct comer c;
	unsigned order = 0;
	come(fx, &c, 1, &order);
	fixture_free(fx);
	assert_true(c.refused);
}

TEST(waiting, thirty_at_once_on_ten_places)
{
	struct fixture *fx = full_fixture(10);
	struct comer c[20];
	unsigned order = 0;
	come(fx, c, 20, &order);
	for (int i = 0; i < 5; i++) {
		desk_end(fx->desk, "", NULL, NULL);
		settle(fx);
	}
	advance(fx, 10000);
	for (unsigned i = 0; i < 20; i++) {
		assert_int_equal(c[i].nth, i < 5 ? i + 1 : 0);
		assert_int_equal(c[i].refused, i >= 5);
	}
	assert_int_equal(kernels_count(fx->gw.kernels, NULL), 10);
	fixture_free(fx);
}

RUN(TEST_ROW(pool, keeps_its_floor), TEST_ROW(pool, is_off_with_a_floor_of_0),
	TEST_ROW(pool, hands_over_a_ready_one_and_makes_another),
	TEST_ROW(pool, two_starts_for_one_kernel),
	TEST_ROW(pool, takes_one_that_starts_when_none_is_ready),
	TEST_ROW(pool, leaves_out_what_does_not_fit), TEST_ROW(pool, grows_with_demand),
	TEST_ROW(pool, does_not_grow_with_few), TEST_ROW(pool, ends_the_idle_above_the_floor),
	TEST_ROW(pool, counts_for_the_ceiling),
	TEST_ROW(pool, replaces_one_that_dies_before_anybody_comes),
	TEST_ROW(pool, passes_over_one_that_is_dying),
	TEST_ROW(pool, tries_ever_less_often_while_the_engine_is_down),
	TEST_ROW(pool, a_start_that_fails_at_once_is_tried_later),
	TEST_ROW(pool, a_kernel_whose_container_is_gone_restarts_out_of_it),
	TEST_ROW(pool, is_not_culled), TEST_ROW(waiting, in_order_as_places_become_free),
	TEST_ROW(waiting, until_the_deadline_with_its_position),
	TEST_ROW(waiting, passes_over_one_who_is_gone),
	TEST_ROW(waiting, is_refused_when_the_gateway_ends),
	TEST_ROW(waiting, thirty_at_once_on_ten_places))
