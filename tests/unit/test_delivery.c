#include "tests/lib/test.h"

#include "gateway/door/delivery.h"

/* Entries 1..n of 10 bytes each. */
static void write_entries(struct delivery *d, unsigned n)
{
	for (unsigned i = 1; i <= n; i++) {
		delivery_ended(d, i, d->total + 10);
		d->total += 10;
	}
}

TEST(delivery, all_acknowledged_leaves_nothing)
{
	struct delivery d;
	delivery_init(&d);
	write_entries(&d, 100);
	assert_int_equal(delivery_first(&d, 0), 0);
	assert_null(d.ring);
	delivery_done(&d);
}

TEST(delivery, a_partly_acknowledged_entry_was_not_had)
{
	struct delivery d;
	delivery_init(&d);
	write_entries(&d, 100);
	assert_int_equal(delivery_first(&d, 11), 99);
	assert_int_equal(delivery_first(&d, 10), 100);
	delivery_done(&d);
}

TEST(delivery, more_unacknowledged_than_written_is_all)
{
	struct delivery d;
	delivery_init(&d);
	write_entries(&d, 5);
	assert_int_equal(delivery_first(&d, 1000), 1);
	delivery_done(&d);
}

TEST(delivery, an_entry_that_waits_in_the_block_is_kept)
{
	struct delivery d;
	delivery_init(&d);
	delivery_ended(&d, 7, 10); /* total is still 0 */
	assert_int_equal(delivery_first(&d, 0), 7);
	d.total = 10;
	assert_int_equal(delivery_first(&d, 0), 0);
	delivery_done(&d);
}

TEST(delivery, trimming_keeps_it_small)
{
	struct delivery d;
	delivery_init(&d);
	for (unsigned i = 1; i <= 100000; i++) {
		if (delivery_full(&d))
			delivery_trim(&d, 50);
		delivery_ended(&d, i, d.total + 10);
		d.total += 10;
	}
	assert_true(d.size <= 64);
	assert_int_equal(delivery_first(&d, 50), 99996);
	delivery_done(&d);
}

RUN(TEST_ROW(delivery, all_acknowledged_leaves_nothing),
	TEST_ROW(delivery, a_partly_acknowledged_entry_was_not_had),
	TEST_ROW(delivery, more_unacknowledged_than_written_is_all),
	TEST_ROW(delivery, an_entry_that_waits_in_the_block_is_kept),
	TEST_ROW(delivery, trimming_keeps_it_small))
