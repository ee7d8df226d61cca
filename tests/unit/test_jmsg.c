#include "tests/lib/test.h"

#include <stdio.h>
#include <string.h>

#include "gateway/base/buf.h"
#include "gateway/base/crypto.h"
#include "gateway/base/jmsg.h"
#include "gateway/base/json.h"

#define BYTES(text) ((struct bytes){(const uint8_t *)(text), sizeof(text) - 1})
#define HEADER	    "{\"msg_id\":\"m1\",\"msg_type\":\"stream\",\"session\":\"s1\"}"
#define PARENT	    "{\"msg_id\":\"p1\",\"msg_type\":\"execute_request\",\"session\":\"ps\"}"

static struct jmsg_source source_of(
	const char *header, const char *parent, const char *metadata, const char *content)
{
	const char *texts[JMSG_PARTS] = {header, parent, metadata, content};
	struct jmsg_source s = {.channel = CHANNEL_IOPUB};
	for (unsigned i = 0; i < JMSG_PARTS; i++)
		s.part[i] = (struct bytes){(const uint8_t *)texts[i], strlen(texts[i])};
	return s;
}

static uint64_t u64_at(struct bytes b, size_t at)
{
	uint64_t v = 0;
	for (size_t i = 8; i-- > 0;)
		v = v << 8 | b.data[at + i];
	return v;
}

TEST(jmsg, new_reads_headers_and_builds_the_frame)
{
	struct bytes buffers[] = {BYTES("buf\0fer"), BYTES(""), BYTES("third")};
	struct jmsg_source s = source_of(HEADER, PARENT, "{}", "{\"text\":\"x\"}");
	s.buffers = buffers;
	s.n_buffers = 3;
	AUTO(jmsg_unrefp) struct jmsg *m = NULL;
	struct err err;
	assert_int_equal(jmsg_new(&s, false, &m, &err), 0);
	assert_string_equal(m->msg_id, "m1");
	assert_string_equal(m->msg_type, "stream");
	assert_string_equal(m->session, "s1");
	assert_string_equal(m->subshell_id, "");
	assert_string_equal(m->parent_id, "p1");
	assert_string_equal(m->parent_type, "execute_request");
	assert_string_equal(m->parent_session, "ps");
	assert_true(bytes_equal(m->part[PART_CONTENT], "{\"text\":\"x\"}"));
	assert_int_equal(m->n_buffers, 3);
	assert_memory_equal(m->buffers[0].data, "buf\0fer", 7);
	assert_int_equal(m->buffers[1].len, 0);
	assert_true(bytes_equal(m->buffers[2], "third"));
	memset((uint8_t *)m->frame.data - JMSG_HEADROOM, 0xaa, JMSG_HEADROOM); /* writable */
	assert_string_equal(m->parent_session, "ps");
}

/* The example of the wire contract: 150, 150, 2 and 30 bytes give 56, 61, 211, 361, 363, 393. */
TEST(jmsg, frame_offsets_are_those_of_the_contract)
{
	char header[151], parent[151];
	(void)snprintf(header, sizeof header,
		"{\"msg_id\":\"a\",\"msg_type\":\"status\",\"x\":\"%*s\"}", 150 - 41, "");
	(void)snprintf(parent, sizeof parent, "{\"x\":\"%*s\"}", 150 - 8, "");
	assert_int_equal(strlen(header), 150);
	assert_int_equal(strlen(parent), 150);
	struct jmsg_source s =
		source_of(header, parent, "{}", "{\"execution_state\":\"idle\"    }");
	assert_int_equal(s.part[PART_CONTENT].len, 30);
	AUTO(jmsg_unrefp) struct jmsg *m = NULL;
	assert_int_equal(jmsg_new(&s, false, &m, NULL), 0);
	static const uint64_t offsets[] = {6, 56, 61, 211, 361, 363, 393};
	for (size_t i = 0; i < ARRAY_LEN(offsets); i++)
		assert_int_equal(u64_at(m->frame, 8 * i), offsets[i]);
	assert_int_equal(m->frame.len, 393);
	assert_memory_equal(m->frame.data + 56, "iopub{", 6);
}

TEST(jmsg, optional_parts_and_members)
{
	const char *empties[] = {"", "null", " null\n", "{}"};
	for (unsigned i = 0; i < ARRAY_LEN(empties); i++) {
		AUTO(jmsg_unrefp) struct jmsg *m = NULL;
		struct jmsg_source s = source_of("{\"msg_id\":\"m\",\"msg_type\":\"t\",\"session\":"
						 "null,\"subshell_id\":null}",
			empties[i], empties[i], "{}");
		assert_int_equal(jmsg_new(&s, false, &m, NULL), 0);
		assert_true(bytes_equal(m->part[PART_PARENT], "{}"));
		assert_true(bytes_equal(m->part[PART_METADATA], "{}"));
		assert_string_equal(m->session, "");
		assert_string_equal(m->parent_id, "");
	}
	AUTO(jmsg_unrefp) struct jmsg *m = NULL;
	struct jmsg_source s = source_of("{\"msg_id\":\"m\",\"msg_type\":\"t\",\"session\":\"\","
					 "\"subshell_id\":\"sub\"}",
		"{\"msg_id\":5}", "{}", "{}");
	assert_int_equal(jmsg_new(&s, false, &m, NULL), 0);
	assert_string_equal(m->subshell_id, "sub");
	assert_string_equal(m->parent_id, "");
}

TEST(jmsg, long_ids)
{
	char header[600], parent[600];
	for (int n = JMSG_ID_MAX - 1; n <= JMSG_ID_MAX; n++) {
		struct jmsg *m = NULL;
		(void)snprintf(
			header, sizeof header, "{\"msg_type\":\"t\",\"msg_id\":\"%0*d\"}", n, 7);
		(void)snprintf(parent, sizeof parent, "{\"msg_id\":\"%0*d\"}", n, 7);
		struct jmsg_source s = source_of(header, "{}", "{}", "{}");
		assert_int_equal(jmsg_new(&s, true, &m, NULL), n < JMSG_ID_MAX ? 0 : E_INVALID);
		jmsg_unref(m);
		s = source_of(HEADER, parent, "{}", "{}");
		assert_int_equal(jmsg_new(&s, false, &m, NULL), 0);
		assert_int_equal(strlen(m->parent_id), n < JMSG_ID_MAX ? n : 0);
		jmsg_unref(m);
	}
}

TEST(jmsg, malformed_parts_are_refused)
{
	static const char *const rows[][JMSG_PARTS] = {
		{"", "{}", "{}", "{}"},
		{"null", "{}", "{}", "{}"},
		{"[]", "{}", "{}", "{}"},
		{"{\"msg_type\":\"t\"}", "{}", "{}", "{}"},
		{"{\"msg_id\":\"m\"}", "{}", "{}", "{}"},
		{"{\"msg_id\":5,\"msg_type\":\"t\"}", "{}", "{}", "{}"},
		{"{\"msg_id\":null,\"msg_type\":\"t\"}", "{}", "{}", "{}"},
		{"{\"msg_id\":\"\",\"msg_type\":\"t\"}", "{}", "{}", "{}"},
		{"{\"msg_id\":\"m\",\"msg_type\":\"\"}", "{}", "{}", "{}"},
		{"{\"msg_id\":\"a\\u0000\",\"msg_type\":\"t\"}", "{}", "{}", "{}"},
		{"{\"h\":{\"msg_id\":\"m\",\"msg_type\":\"t\"}}", "{}", "{}", "{}"},
		{HEADER "x", "{}", "{}", "{}"},
		{HEADER, "[]", "{}", "{}"},
		{HEADER, "\"p\"", "{}", "{}"},
		{HEADER, "{", "{}", "{}"},
		{HEADER, "{}", "7", "{}"},
		{HEADER, "{}", "{]", "{}"},
		{HEADER, "{}", "{}", ""},
		{HEADER, "{}", "{}", "null"},
		{HEADER, "{}", "{}", "[1]"},
		{HEADER, "{}", "{}", "{\"a\":}"},
	};
	for (unsigned i = 0; i < ARRAY_LEN(rows); i++) {
		for (int mend = 0; mend < 2; mend++) {
			struct jmsg_source s =
				source_of(rows[i][0], rows[i][1], rows[i][2], rows[i][3]);
			struct jmsg *m = NULL;
			struct err err = {0};
			if (jmsg_new(&s, mend, &m, &err) != E_INVALID)
				fail_msg("row %u", i);
			assert_null(m);
			assert_true(err.text[0]);
		}
	}
}

TEST(jmsg, mending_is_for_kernels_only)
{
	struct jmsg_source s = source_of("{\"msg_id\":\"m\\ud800\",\"msg_type\":\"t\"}",
		"{\"msg_id\":\"p\xff\"}", "{\"w\":NaN}", "{\"a\":[Infinity,\"\xed\xa0\x80\"]}");
	AUTO(jmsg_unrefp) struct jmsg *m = NULL;
	assert_int_equal(jmsg_new(&s, false, &m, NULL), E_INVALID);
	assert_int_equal(jmsg_new(&s, true, &m, NULL), 0);
	assert_string_equal(m->msg_id, "m\xef\xbf\xbd");
	assert_string_equal(m->parent_id, "p\xef\xbf\xbd");
	assert_true(bytes_equal(m->part[PART_METADATA], "{\"w\":null}"));
	assert_true(bytes_equal(
		m->part[PART_CONTENT], "{\"a\":[null,\"\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd\"]}"));
}

TEST(jmsg, too_many_buffers)
{
	static struct bytes buffers[JMSG_BUFFERS_MAX + 1];
	struct jmsg_source s = source_of(HEADER, "{}", "{}", "{}");
	struct jmsg *m = NULL;
	s.buffers = buffers;
	s.n_buffers = JMSG_BUFFERS_MAX + 1;
	assert_int_equal(jmsg_new(&s, true, &m, NULL), E_TOO_BIG);
	s.n_buffers = JMSG_BUFFERS_MAX;
	assert_int_equal(jmsg_new(&s, true, &m, NULL), 0);
	struct jmsg *again = NULL;
	assert_int_equal(jmsg_from_frame(m->frame, &again, NULL), 0);
	assert_int_equal(again->n_buffers, JMSG_BUFFERS_MAX);
	jmsg_unref(again);
	jmsg_unref(m);
}

/* The lengths lie, so nothing of that size may be read or allocated. */
TEST(jmsg, too_many_bytes)
{
	struct bytes buffers[2] = {
		{(const uint8_t *)"", SIZE_MAX - 100}, {(const uint8_t *)"", 200}};
	struct jmsg_source s = source_of(HEADER, "{}", "{}", "{}");
	struct jmsg *m = NULL;
	s.buffers = buffers;
	s.n_buffers = 2;
	assert_int_equal(jmsg_new(&s, true, &m, NULL), E_TOO_BIG);
	buffers[0].len = buffers[1].len = JMSG_FRAME_MAX / 2;
	assert_int_equal(jmsg_new(&s, true, &m, NULL), E_TOO_BIG);
}

/* ---- frames from outside ---- */

struct frame {
	uint8_t data[4096];
	size_t len;
};

static void put_u64(struct frame *f, size_t at, uint64_t v)
{
	for (size_t i = 0; i < 8; i++)
		f->data[at + i] = (uint8_t)(v >> (8 * i));
}

/* A good frame with two buffers. */
static struct frame good_frame(void)
{
	struct bytes buffers[] = {BYTES("abc"), BYTES("defg")};
	struct jmsg_source s = source_of(HEADER, PARENT, "{}", "{\"text\":\"x\"}");
	AUTO(jmsg_unrefp) struct jmsg *m = NULL;
	struct frame f = {.len = 0};
	s.buffers = buffers;
	s.n_buffers = 2;
	assert_int_equal(jmsg_new(&s, false, &m, NULL), 0);
	memcpy(f.data, m->frame.data, m->frame.len);
	f.len = m->frame.len;
	return f;
}

/* From memory of exactly that size, so that a sanitizer sees every overrun. */
static int from_frame(const struct frame *f, struct jmsg **ret)
{
	uint8_t *copy = malloc(f->len ? f->len : 1);
	assert_non_null(copy);
	memcpy(copy, f->data, f->len);
	struct err err = {0};
	int status = jmsg_from_frame((struct bytes){copy, f->len}, ret, &err);
	assert_true(status == 0 || err.text[0]);
	free(copy);
	return status;
}

TEST(jmsg, from_frame_round_trip)
{
	struct frame f = good_frame();
	AUTO(jmsg_unrefp) struct jmsg *m = NULL;
	assert_int_equal(from_frame(&f, &m), 0);
	assert_int_equal(m->channel, CHANNEL_IOPUB);
	assert_int_equal(m->frame.len, f.len);
	assert_memory_equal(m->frame.data, f.data, f.len);
	assert_true(bytes_equal(m->buffers[1], "defg"));
	assert_string_equal(m->parent_id, "p1");
}

TEST(jmsg, from_frame_with_bytes_behind_is_made_canonical)
{
	struct frame f = good_frame();
	struct jmsg *m = NULL;
	f.len += 100;
	assert_int_equal(from_frame(&f, &m), 0);
	assert_int_equal(m->frame.len, f.len - 100);
	jmsg_unref(m);
}

TEST(jmsg, every_truncation_is_refused)
{
	struct frame f = good_frame();
	size_t whole = f.len;
	for (f.len = 0; f.len < whole; f.len++) {
		struct jmsg *m = NULL;
		assert_int_equal(from_frame(&f, &m), E_INVALID);
		assert_null(m);
	}
}

TEST(jmsg, lying_offsets_are_refused)
{
	struct frame good = good_frame();
	const size_t n = 8;
	static const uint64_t counts[] = {0, 1, 5, 9, 7000, UINT64_C(1) << 32,
		UINT64_C(0x1fffffffffffffff), UINT64_C(0x2000000000000000), UINT64_MAX - 1,
		UINT64_MAX};
	for (unsigned i = 0; i < ARRAY_LEN(counts); i++) {
		struct frame f = good;
		struct jmsg *m = NULL;
		put_u64(&f, 0, counts[i]);
		if (from_frame(&f, &m) == 0)
			fail_msg("count %llu", (unsigned long long)counts[i]);
	}
	const uint64_t offsets[] = {0, 1, 8 * (n + 1) - 1, good.len + 1, UINT64_C(1) << 31,
		UINT64_C(1) << 32, UINT64_C(1) << 63, UINT64_MAX - 7, UINT64_MAX};
	for (size_t at = 1; at <= n; at++) {
		for (unsigned i = 0; i < ARRAY_LEN(offsets); i++) {
			struct frame f = good;
			struct jmsg *m = NULL;
			put_u64(&f, 8 * at, offsets[i]);
			if (from_frame(&f, &m) == 0)
				fail_msg("offset %zu is %llu", at, (unsigned long long)offsets[i]);
		}
	}
}

TEST(jmsg, falling_offsets_are_refused)
{
	struct frame f = good_frame();
	struct jmsg *m = NULL;
	uint64_t metadata = u64_at((struct bytes){f.data, f.len}, 8 * 4);
	put_u64(&f, 8 * 5, metadata - 1);
	assert_int_equal(from_frame(&f, &m), E_INVALID);
}

TEST(jmsg, unknown_channels_are_refused)
{
	struct frame f = good_frame();
	struct jmsg *m = NULL;
	memcpy(f.data + 72, "iopux", 5);
	assert_int_equal(from_frame(&f, &m), E_INVALID);
}

/* Any single byte changed: refused or read, never out of bounds. */
TEST(jmsg, every_changed_byte_is_survived)
{
	struct frame good = good_frame();
	unsigned refused = 0;
	for (size_t i = 0; i < good.len; i++) {
		for (unsigned bit = 0; bit < 8; bit++) {
			struct frame f = good;
			struct jmsg *m = NULL;
			f.data[i] ^= (uint8_t)(1u << bit);
			refused += from_frame(&f, &m) != 0;
			jmsg_unref(m);
		}
	}
	assert_true(refused > good.len);
}

TEST(jmsg, references_are_counted)
{
	struct jmsg_source s = source_of(HEADER, "{}", "{}", "{}");
	struct jmsg *m = NULL;
	assert_int_equal(jmsg_new(&s, false, &m, NULL), 0);
	assert_ptr_equal(jmsg_ref(m), m);
	jmsg_unref(m);
	assert_string_equal(m->msg_id, "m1");
	jmsg_unrefp(&m);
	assert_null(m);
	jmsg_unref(NULL);
}

TEST(jmsg, channels)
{
	for (int i = 0; i < CHANNEL_COUNT; i++) {
		const char *name = channel_name((enum channel)i);
		assert_int_equal(
			channel_parse((struct bytes){(const uint8_t *)name, strlen(name)}), i);
	}
	assert_int_equal(channel_parse(BYTES("shell\0")), CHANNEL_COUNT);
	assert_int_equal(channel_parse(BYTES("")), CHANNEL_COUNT);
}

TEST(jmsg, make_is_complete)
{
	struct jmsg_source s = source_of(HEADER, "{}", "{}", "{}");
	AUTO(jmsg_unrefp) struct jmsg *parent = NULL, *m = NULL, *alone = NULL;
	struct err err;
	assert_int_equal(jmsg_new(&s, false, &parent, &err), 0);
	assert_int_equal(jmsg_make(CHANNEL_IOPUB, "status", "se\"ss\nion", parent,
				 "{\"execution_state\":\"idle\"}", &m, &err),
		0);
	assert_string_equal(m->msg_type, "status");
	assert_string_equal(m->session, "se\"ss\nion");
	assert_string_equal(m->parent_id, "m1");
	assert_int_equal(strlen(m->msg_id), 36);
	struct json_want wants[] = {
		{.key = "username"}, {.key = "version"}, {.key = "date"}, {.key = "msg_id"}};
	assert_int_equal(json_scan(m->part[PART_HEADER], wants, 4, &err), 0);
	assert_true(bytes_equal(wants[0].value, "\"coppice\""));
	assert_true(bytes_equal(wants[1].value, "\"5.3\""));
	assert_int_equal(wants[2].value.len, 29);
	assert_int_equal(jmsg_make(CHANNEL_IOPUB, "status", "", NULL, "{}", &alone, &err), 0);
	assert_true(bytes_equal(alone->part[PART_PARENT], "{}"));
	assert_string_not_equal(alone->msg_id, m->msg_id);
	jmsg_unrefp(&alone);
	assert_int_equal(
		jmsg_make(CHANNEL_IOPUB, "status", "", NULL, "no", &alone, &err), E_INVALID);
}

static int prepare(void **state)
{
	(void)state;
	return crypto_init(NULL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST_ROW(jmsg, new_reads_headers_and_builds_the_frame),
		TEST_ROW(jmsg, frame_offsets_are_those_of_the_contract),
		TEST_ROW(jmsg, optional_parts_and_members),
		TEST_ROW(jmsg, long_ids),
		TEST_ROW(jmsg, malformed_parts_are_refused),
		TEST_ROW(jmsg, mending_is_for_kernels_only),
		TEST_ROW(jmsg, too_many_buffers),
		TEST_ROW(jmsg, too_many_bytes),
		TEST_ROW(jmsg, from_frame_round_trip),
		TEST_ROW(jmsg, from_frame_with_bytes_behind_is_made_canonical),
		TEST_ROW(jmsg, every_truncation_is_refused),
		TEST_ROW(jmsg, lying_offsets_are_refused),
		TEST_ROW(jmsg, falling_offsets_are_refused),
		TEST_ROW(jmsg, unknown_channels_are_refused),
		TEST_ROW(jmsg, every_changed_byte_is_survived),
		TEST_ROW(jmsg, references_are_counted),
		TEST_ROW(jmsg, channels),
		TEST_ROW(jmsg, make_is_complete),
	};
	return cmocka_run_group_tests(tests, prepare, NULL);
}
