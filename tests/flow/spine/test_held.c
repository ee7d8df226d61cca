/* Which histories are not to be removed. */
#include "gateway/spine/desk.h"
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

#define WANTED_ID "44444444-4444-4444-8444-444444444444" /* where the fake records it */

static bool held(const struct fixture *fx, const struct owner *owner, const char *but)
{
	return kernels_hold_history(fx->gw.kernels, owner, WANTED_ID, but);
}

TEST(held, a_history_that_a_kernel_went_on_in_is_held)
{
	struct fixture *fx = recorded();
	const struct owner other = {.name = "bob"};
	struct page *p = page_open(fx, "s1");
	assert_false(held(fx, &fx->owner, NULL));
	scribe_continue(fx->desk, WANTED_ID);
	assert_true(held(fx, &fx->owner, NULL));
	assert_false(held(fx, &fx->owner, fx->desk->id));
	assert_false(held(fx, &other, NULL)); /* to whom that is but a name */
	/* By name at first: the recorder tells the id. */
	scribe_continue(fx->desk, "walk");
	assert_false(held(fx, &fx->owner, NULL));
	execute(p, "a");
	kernel_answers(fx, "a", REPLY_OK);
	advance(fx, 110);
	fake_histories_answer(fx->gw.histories, 0);
	assert_true(held(fx, &fx->owner, NULL));
	page_leave(p, 0);
	fixture_free(fx);
}

RUN(TEST_ROW(held, a_history_that_a_kernel_went_on_in_is_held))
