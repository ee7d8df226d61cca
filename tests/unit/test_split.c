#include "tests/lib/test.h"

#include <string.h>

#include "gateway/base/buf.h"
#include "gateway/spine/split.h"

#define TEXT_MAX (4u * SPLIT_TEXT_MAX)

/* A stream message whose text is `lead`, then `unit` as often as it takes to reach len bytes. */
static struct jmsg *stream(const char *lead, const char *unit, size_t len)
{
	AUTO(buf_done) struct buf b;
	struct jmsg *parent, *m;
	buf_init(&b, TEXT_MAX + 64);
	assert_int_equal(buf_add_text(&b, "{\"name\":\"stderr\",\"text\":\""), 0);
	assert_int_equal(buf_add_text(&b, lead), 0);
	for (size_t n = strlen(lead); n < len; n += strlen(unit))
		assert_int_equal(buf_add_text(&b, unit), 0);
	assert_int_equal(buf_add_text(&b, "\"}"), 0);
	assert_int_equal(
		jmsg_make(CHANNEL_SHELL, "execute_request", "s", NULL, "{}", &parent, NULL), 0);
	assert_int_equal(
		jmsg_make(CHANNEL_IOPUB, "stream", "k", parent, (const char *)b.data, &m, NULL), 0);
	jmsg_unref(parent);
	return m;
}

static bool same(struct bytes a, struct bytes b)
{
	return a.len == b.len && memcmp(a.data, b.data, a.len) == 0;
}

/* Every piece is a message by itself (jmsg_new scanned it), and all together say the same. Returns
 * how many there were. */
static size_t assert_pieces(const struct jmsg *m, const char *ends_with)
{
	struct split s;
	struct stream_text whole, part;
	struct jmsg *piece;
	size_t n = 0, at = 0, tail = strlen(ends_with);
	assert_true(stream_text_read(m, &whole));
	assert_true(split_begin(&s, m));
	for (int rc; (rc = split_next(&s, &piece, NULL)) != 0; n++) {
		assert_int_equal(rc, 1);
		assert_true(stream_text_read(piece, &part));
		assert_true(part.text.len > 0 && part.text.len <= SPLIT_TEXT_MAX);
		assert_true(same(part.name, whole.name));
		for (unsigned i = PART_HEADER; i < PART_CONTENT; i++)
			assert_true(same(piece->part[i], m->part[i]));
		assert_true(at + part.text.len <= whole.text.len);
		assert_memory_equal(whole.text.data + at, part.text.data, part.text.len);
		at += part.text.len;
		if (tail > 0)
			assert_memory_equal(part.text.data + part.text.len - tail, ends_with, tail);
		jmsg_unref(piece);
	}
	assert_int_equal(at, whole.text.len);
	return n;
}

TEST(split, at_the_end_of_lines)
{
	struct jmsg *m = stream("", "a line of i\\r\\n", 3 * SPLIT_TEXT_MAX);
	assert_int_equal(assert_pieces(m, "\\r\\n"), 4);
	jmsg_unref(m);
}

/* Whatever stands where a piece would end by its length. */
TEST(split, never_inside_a_character)
{
	static const char *const units[] = {"x", "\\\\", "\\\"", "\303\251", "\342\202\254",
		"\360\237\247\252", "\\u00e9", "\\ud83e\\uddea"};
	static const char *const leads[] = {"", "1", "12", "123", "1234", "12345", "123456",
		"1234567", "12345678", "123456789", "1234567890", "12345678901"};
	for (size_t i = 0; i < ARRAY_LEN(units); i++) {
		for (size_t k = 0; k < ARRAY_LEN(leads); k++) {
			struct jmsg *m = stream(leads[k], units[i], SPLIT_TEXT_MAX + 40);
			assert_int_equal(assert_pieces(m, ""), 2);
			jmsg_unref(m);
		}
	}
}

TEST(split, what_fits_is_left_alone)
{
	struct split s;
	struct jmsg *m = stream("", "x", SPLIT_TEXT_MAX);
	assert_false(split_begin(&s, m));
	jmsg_unref(m);
	m = stream("", "x", SPLIT_TEXT_MAX + 1);
	assert_true(split_begin(&s, m));
	jmsg_unref(m);
}

TEST(split, other_messages_are_left_alone)
{
	struct split s;
	struct jmsg *text = stream("", "x", SPLIT_TEXT_MAX + 1), *m;
	struct jmsg_source source = {.channel = CHANNEL_IOPUB};
	static const char header[] = "{\"msg_id\":\"1\",\"msg_type\":\"display_data\"}";
	memcpy(source.part, text->part, sizeof source.part);
	source.part[PART_HEADER] = (struct bytes){(const uint8_t *)header, sizeof header - 1};
	assert_int_equal(jmsg_new(&source, false, &m, NULL), 0);
	assert_false(split_begin(&s, m));
	jmsg_unref(m);
	jmsg_unref(text);
}

RUN(TEST_ROW(split, at_the_end_of_lines), TEST_ROW(split, never_inside_a_character),
	TEST_ROW(split, what_fits_is_left_alone), TEST_ROW(split, other_messages_are_left_alone))
