#include "gateway/spine/journal_segment.h"
#include "tests/lib/test.h"

TEST(segment, knows_where_to_begin)
{
	struct segment *s = segment_new(3);
	for (uint64_t i = 0; i < 1000; i++)
		segment_grew(s, 5 + i * 2, 6 + i * 2, 1000);
	assert_int_equal(s->first, 5);
	assert_int_equal(s->last, 2004);
	assert_int_equal(s->bytes, 1000000);
	for (uint64_t number = 5; number <= 2004; number++) {
		uint64_t offset = segment_offset(s, number), real = (number - 5) / 2 * 1000;
		assert_true(offset <= real && real - offset < 70000);
		assert_int_equal(offset % 1000, 0);
	}
	segment_free(s);
}

RUN(TEST_ROW(segment, knows_where_to_begin))
