#include "tests/lib/test.h"

#include <string.h>

#include "gateway/base/crypto.h"

/* RFC 4231 cases 1, 2 and 6. */
TEST(crypto, hmac_vectors)
{
	uint8_t key1[20], key6[131];
	memset(key1, 0x0b, sizeof key1);
	memset(key6, 0xaa, sizeof key6);
	const struct {
		const void *key;
		size_t len;
		const char *text, *hex;
	} rows[] = {
		{key1, sizeof key1, "Hi There",
			"b0344c61d8db38535ca8afceaf0bf12b881dc200c9833da726e9376c2e32cff7"},
		{"Jefe", 4, "what do ya want for nothing?",
			"5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843"},
		{key6, sizeof key6, "Test Using Larger Than Block-Size Key - Hash Key First",
			"60e431591ee0b67f0d8a26aacbf5b77f8e0bc6213728c5140546040f0ee37f54"},
	};
	for (unsigned i = 0; i < ARRAY_LEN(rows); i++) {
		struct hmac_key *k = hmac_key_new(rows[i].key, rows[i].len);
		char hex[HMAC_HEX_SIZE];
		struct bytes whole = {(const uint8_t *)rows[i].text, strlen(rows[i].text)};
		hmac_hex(k, &whole, 1, hex);
		assert_string_equal(hex, rows[i].hex);
		struct bytes parts[] = {
			{whole.data, 3}, {NULL, 0}, {whole.data + 3, whole.len - 3}};
		hmac_hex(k, parts, 3, hex); /* the key's state is not used up */
		assert_string_equal(hex, rows[i].hex);
		hmac_key_free(k);
	}
}

TEST(crypto, uuids_are_of_version_4)
{
	char a[UUID_SIZE], b[UUID_SIZE];
	for (int i = 0; i < 100; i++) {
		crypto_uuid(a);
		crypto_uuid(b);
		assert_string_not_equal(a, b);
		assert_int_equal(strlen(a), 36);
		assert_int_equal(a[14], '4');
		assert_non_null(strchr("89ab", a[19]));
		for (int k = 0; k < 36; k++)
			assert_true(k == 8 || k == 13 || k == 18 || k == 23
					    ? a[k] == '-'
					    : strchr("0123456789abcdef", a[k]) != NULL);
	}
}

TEST(crypto, random_hex_and_equality)
{
	char a[65], b[65];
	crypto_random_hex(a, 32);
	crypto_random_hex(b, 32);
	assert_int_equal(strlen(a), 64);
	assert_int_equal(strspn(a, "0123456789abcdef"), 64);
	assert_string_not_equal(a, b);
	assert_true(crypto_equal(a, a));
	assert_false(crypto_equal(a, b));
	assert_false(crypto_equal("abc", "ab"));
	assert_true(crypto_equal("", ""));
}

static int prepare(void **state)
{
	(void)state;
	return crypto_init(NULL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {TEST_ROW(crypto, hmac_vectors),
		TEST_ROW(crypto, uuids_are_of_version_4),
		TEST_ROW(crypto, random_hex_and_equality)};
	return cmocka_run_group_tests(tests, prepare, NULL);
}
