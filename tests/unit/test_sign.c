#include <string.h>

#include "kernel-bridge/sign.h"
#include "tests/lib/test.h"

/* HMAC-SHA256 of RFC 4231, test case 2: key "Jefe", the text cut in four. */
static const char known[] = "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843";

static struct bytes text(const char *s)
{
	return (struct bytes){(const uint8_t *)s, strlen(s)};
}

TEST(sign, matches_the_known_answer)
{
	const struct bytes part[JMSG_PARTS] = {
		text("what do ya"), text(" want for "), text(""), text("nothing?")};
	char hex[HMAC_HEX_SIZE];
	struct sign s;
	struct err err;

	assert_int_equal(crypto_init(&err), 0);
	assert_int_equal(sign_init(&s, "Jefe", &err), 0);
	assert_int_equal(sign_hex(&s, part, hex), 0);
	assert_string_equal(hex, known);
	assert_int_equal(sign_check(&s, part, text(known)), 0);
	sign_done(&s);
}

TEST(sign, refuses_what_is_not_it)
{
	const struct bytes part[JMSG_PARTS] = {
		text("what do ya"), text(" want for "), text(""), text("nothing?")};
	char wrong[HMAC_HEX_SIZE + 1] = {0};
	struct sign s;
	struct err err;

	assert_int_equal(sign_init(&s, "Jefe", &err), 0);
	for (size_t i = 0; i < HMAC_HEX_SIZE - 1; i++) {
		memcpy(wrong, known, HMAC_HEX_SIZE);
		wrong[i] = wrong[i] == '0' ? '1' : '0';
		assert_int_equal(sign_check(&s, part, text(wrong)), E_PROTOCOL);
	}
	memcpy(wrong, known, HMAC_HEX_SIZE);
	assert_int_equal(
		sign_check(&s, part, (struct bytes){(const uint8_t *)wrong, 63}), E_PROTOCOL);
	assert_int_equal(
		sign_check(&s, part, (struct bytes){(const uint8_t *)wrong, 65}), E_PROTOCOL);
	assert_int_equal(sign_check(&s, part, text("")), E_PROTOCOL);
	wrong[3] = 0;
	assert_int_equal(
		sign_check(&s, part, (struct bytes){(const uint8_t *)wrong, 64}), E_PROTOCOL);
	sign_done(&s);
}

TEST(sign, keys_are_fresh)
{
	char a[SIGN_KEY_SIZE], b[SIGN_KEY_SIZE];

	sign_fresh_key(a);
	sign_fresh_key(b);
	assert_int_equal(strlen(a), 64);
	assert_string_not_equal(a, b);
}

RUN(TEST_ROW(sign, matches_the_known_answer), TEST_ROW(sign, refuses_what_is_not_it),
	TEST_ROW(sign, keys_are_fresh))
