#include <string.h>

#include "kernel-bridge/wire.h"
#include "tests/lib/test.h"

static const char key[] = "a0436f6c-1916-498b-8eb9-e81ab9368e84";

static struct bytes text(const char *s)
{
	return (struct bytes){(const uint8_t *)s, strlen(s)};
}

/* ident, delimiter, signature (replaced by the right one), four parts, one buffer */
static const char *const good[] = {"kernel.1.stream", "<IDS|MSG>", "",
	"{\"msg_id\":\"m1\",\"msg_type\":\"stream\",\"session\":\"s\"}",
	"{\"msg_id\":\"p1\",\"msg_type\":\"execute_request\",\"session\":\"c\"}", "{}",
	"{\"name\":\"stdout\",\"text\":\"hi\"}", "buffer"};
#define GOOD ARRAY_LEN(good)

struct wire_case {
	struct sign sign;
	struct bytes frames[GOOD + 2];
	char signature[HMAC_HEX_SIZE];
	struct err err;
	struct jmsg *m;
};

static void given(struct wire_case *c)
{
	memset(c, 0, sizeof(*c));
	assert_int_equal(crypto_init(&c->err), 0);
	assert_int_equal(sign_init(&c->sign, key, &c->err), 0);
	for (size_t i = 0; i < GOOD; i++)
		c->frames[i] = text(good[i]);
	sign_hex(&c->sign, c->frames + 3, c->signature);
	c->frames[2] = text(c->signature);
}

static int decode(struct wire_case *c, const struct bytes *frames, size_t n)
{
	return wire_decode(&c->sign, CHANNEL_IOPUB, frames, n, &c->m, &c->err);
}

static void done(struct wire_case *c)
{
	jmsg_unref(c->m);
	sign_done(&c->sign);
}

TEST(wire, decodes)
{
	struct wire_case c;

	given(&c);
	assert_int_equal(decode(&c, c.frames, GOOD), 0);
	assert_string_equal(c.m->msg_type, "stream");
	assert_string_equal(c.m->parent_session, "c");
	assert_int_equal(c.m->n_buffers, 1);
	assert_true(bytes_equal(c.m->buffers[0], "buffer"));
	assert_true(bytes_equal(c.m->part[PART_CONTENT], good[6]));
	done(&c);
}

TEST(wire, needs_no_ident)
{
	struct wire_case c;

	given(&c);
	assert_int_equal(decode(&c, c.frames + 1, GOOD - 1), 0);
	done(&c);
}

TEST(wire, refuses_every_truncation)
{
	struct wire_case c;

	given(&c);
	for (size_t n = 0; n < GOOD - 1; n++)
		assert_int_equal(decode(&c, c.frames, n), E_PROTOCOL);
	assert_null(c.m);
	done(&c);
}

TEST(wire, refuses_every_changed_part)
{
	struct wire_case c;

	given(&c);
	for (size_t i = 2; i < 7; i++) {
		struct bytes was = c.frames[i];

		c.frames[i] = text("{\"msg_id\":\"x\",\"msg_type\":\"y\"}");
		assert_int_equal(decode(&c, c.frames, GOOD), E_PROTOCOL);
		assert_non_null(strstr(c.err.text, "signature"));
		c.frames[i] = was;
	}
	c.signature[63] = c.signature[63] == 'a' ? 'b' : 'a';
	assert_int_equal(decode(&c, c.frames, GOOD), E_PROTOCOL);
	c.frames[2].len = 0;
	assert_int_equal(decode(&c, c.frames, GOOD), E_PROTOCOL);
	done(&c);
}

TEST(wire, looks_for_the_delimiter_no_further_than_allowed)
{
	struct bytes frames[WIRE_IDENTS_MAX + GOOD + 1];
	struct wire_case c;

	given(&c);
	for (size_t i = 0; i < WIRE_IDENTS_MAX + 1; i++)
		frames[i] = text("ident");
	memcpy(frames + WIRE_IDENTS_MAX, c.frames + 1, (GOOD - 1) * sizeof(*frames));
	assert_int_equal(decode(&c, frames, WIRE_IDENTS_MAX + GOOD - 1), 0);
	frames[WIRE_IDENTS_MAX] = text("ident");
	memcpy(frames + WIRE_IDENTS_MAX + 1, c.frames + 1, (GOOD - 1) * sizeof(*frames));
	assert_int_equal(decode(&c, frames, WIRE_IDENTS_MAX + GOOD), E_PROTOCOL);
	done(&c);
}

TEST(wire, encodes_what_it_decodes)
{
	struct wire_case c;
	struct wire_head head;

	given(&c);
	assert_int_equal(decode(&c, c.frames, GOOD), 0);
	wire_encode(&c.sign, c.m, &head);
	assert_string_equal(head.signature, c.signature);
	for (size_t i = 0; i < WIRE_HEAD; i++) {
		assert_int_equal(head.frames[i].len, c.frames[i + 1].len);
		assert_memory_equal(head.frames[i].data, c.frames[i + 1].data, head.frames[i].len);
	}
	done(&c);
}

TEST(wire, without_a_key_signs_nothing)
{
	struct wire_case c;
	struct wire_head head;

	given(&c);
	sign_done(&c.sign);
	assert_int_equal(sign_init(&c.sign, "", &c.err), 0);
	c.frames[2] = text("");
	assert_int_equal(decode(&c, c.frames, GOOD), 0);
	wire_encode(&c.sign, c.m, &head);
	assert_string_equal(head.signature, "");
	done(&c);
}

RUN(TEST_ROW(wire, decodes), TEST_ROW(wire, needs_no_ident),
	TEST_ROW(wire, refuses_every_truncation), TEST_ROW(wire, refuses_every_changed_part),
	TEST_ROW(wire, looks_for_the_delimiter_no_further_than_allowed),
	TEST_ROW(wire, encodes_what_it_decodes), TEST_ROW(wire, without_a_key_signs_nothing))
