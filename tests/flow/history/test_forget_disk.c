/* A disk that fails while a node is forgotten: what was asked is done once it is there again. */
#include "tests/lib/failing_disk.h"
#include "tests/lib/forget_fixture.h"

/* *ret_met: a call has failed. */
static void forget_on(unsigned nth, bool *ret_met)
{
	struct hfix *fx = hfix_make();
	struct story s;
	struct forgot g = {0};
	fx->hook = (struct record_hook){at_step, NULL};
	hfix_open(fx);
	record_story(fx, &s);
	calls = 0;
	fails_at = nth;
	int status = forget(fx, &g, s.secret->node);
	*ret_met = calls >= nth;
	fails_at = 0;
	if (status != 0 && nth % 2 == 0)
		hfix_reopen(fx);
	if (status != 0)
		forget_fine(fx, &g, s.secret->node);
	assert_forgotten(fx);
	free(g.json);
	hfix_free(fx);
}

/* All of the first calls, then fewer and fewer: each takes a quarter of a second. */
static void sweep(void)
{
	bool met = true;
	unsigned nth = 1;
	for (; met; nth += 1 + nth / 6)
		forget_on(nth, &met);
	print_message("%u calls\n", nth);
	assert_true(nth > 50);
}

TEST(forget_disk, one_call_that_fails)
{
	stays_full = false;
	sweep();
}

TEST(forget_disk, full_from_one_call_on)
{
	stays_full = true;
	sweep();
}

RUN(TEST_ROW(forget_disk, one_call_that_fails), TEST_ROW(forget_disk, full_from_one_call_on))
