#include "tests/lib/test.h"

#include <string.h>

#include "gateway/door/outbox.h"

static uint8_t big[3 * OUTBOX_SIZE];

static struct bytes part(size_t len)
{
	return (struct bytes){big, len};
}

TEST(outbox, small_messages_share_a_block)
{
	struct outbox o;
	outbox_init(&o);
	assert_int_equal(outbox_add(&o, OPCODE_TEXT, part(5), 0), 5);
	assert_int_equal(outbox_add(&o, OPCODE_BINARY, part(300), 0), 300);
	assert_true(outbox_add_ping(&o));
	const uint8_t *at = outbox_data(&o);
	assert_int_equal(o.len, 2 + 5 + 4 + 300 + 3);
	assert_memory_equal(at, "\x81\x05", 2);
	assert_memory_equal(at + 7, "\x82\x7e\x01\x2c", 4);
	assert_memory_equal(at + 311, "\x89\x01", 2);
	outbox_done(&o);
}

TEST(outbox, what_fits_a_block_of_its_own_waits_for_it_whole)
{
	struct outbox o;
	outbox_init(&o);
	assert_int_equal(outbox_add(&o, OPCODE_TEXT, part(100), 0), 100);
	assert_int_equal(outbox_add(&o, OPCODE_TEXT, part(OUTBOX_SIZE - 50), 0), 0);
	o.len = 0;
	size_t len = OUTBOX_SIZE - FRAME_HEAD_MAX;
	assert_int_equal(outbox_add(&o, OPCODE_TEXT, part(len), 0), len);
	assert_int_equal(outbox_data(&o)[0], 0x81);
	assert_true(o.len <= OUTBOX_SIZE);
	outbox_done(&o);
}

TEST(outbox, a_large_message_goes_in_fragments)
{
	struct outbox o;
	outbox_init(&o);
	size_t at = 0, frames = 0, len = 2 * OUTBOX_SIZE + 7;
	while (at < len) {
		o.len = 0;
		size_t took = outbox_add(&o, OPCODE_BINARY, part(len), at);
		assert_true(took > 0 && o.len <= OUTBOX_SIZE);
		bool last = at + took == len;
		uint8_t want = (uint8_t)((frames == 0 ? 2 : 0) | (last ? 0x80 : 0));
		assert_int_equal(outbox_data(&o)[0], want);
		at += took;
		frames++;
	}
	assert_int_equal(frames, 3);
	outbox_done(&o);
}

TEST(outbox, a_full_block_takes_no_ping)
{
	struct outbox o;
	outbox_init(&o);
	o.len = OUTBOX_SIZE - 2;
	assert_false(outbox_add_ping(&o));
	outbox_done(&o);
}

RUN(TEST_ROW(outbox, small_messages_share_a_block),
	TEST_ROW(outbox, what_fits_a_block_of_its_own_waits_for_it_whole),
	TEST_ROW(outbox, a_large_message_goes_in_fragments),
	TEST_ROW(outbox, a_full_block_takes_no_ping))
