#include "tests/lib/test.h"

#include <string.h>

#include "gateway/base/crypto.h"
#include "gateway/base/hmac.h"

/* RFC 4231 cases 1, 2 and 6. */
TEST(crypto, hmac_vectors)
{
	uint8_t key1[20], key6[131]; /* and of exactly a block, and of one byte more */
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
		{key6, 64, "Hi There",
			"ebef34e13d0a0fe04593d043bc7a865106db0604211d404c18206d862e5d7852"},
		{key6, 65, "Hi There",
			"00af6c42340b99e2e1d9a1cdf1547be431fe2e9bab3215c68d013ba858891927"},
		{key6, sizeof key6, "Test Using Larger Than Block-Size Key - Hash Key First",
			"60e431591ee0b67f0d8a26aacbf5b77f8e0bc6213728c5140546040f0ee37f54"},
	};
	for (unsigned i = 0; i < ARRAY_LEN(rows); i++) {
		struct hmac_key *k = hmac_key_new(rows[i].key, rows[i].len);
		char hex[HMAC_HEX_SIZE];
		struct bytes whole = {(const uint8_t *)rows[i].text, strlen(rows[i].text)};
		assert_int_equal(hmac_hex(k, &whole, 1, hex), 0);
		assert_string_equal(hex, rows[i].hex);
		struct bytes parts[] = {
			{whole.data, 3}, {NULL, 0}, {whole.data + 3, whole.len - 3}};
		assert_int_equal(
			hmac_hex(k, parts, 3, hex), 0); /* the key's state is not used up */
		assert_string_equal(hex, rows[i].hex);
		hmac_key_free(k);
	}
}

TEST(crypto, digest_of_parts)
{
	char hex[DIGEST_HEX_SIZE];
	const struct bytes parts[] = {{(const uint8_t *)"a", 1}, {(const uint8_t *)"bc", 2}};
	crypto_digest_hex(parts, ARRAY_LEN(parts), hex);
	assert_string_equal(
		hex, "bddd813c634239723171ef3fee98579b94964e3bb1cb3e427262c8c068d52319");
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

static void assert_decoded(
	int (*decode)(struct bytes, struct buf *), const char *text, const char *expected)
{
	AUTO(buf_done) struct buf b;
	buf_init(&b, 1000);
	int status = decode((struct bytes){(const uint8_t *)text, strlen(text)}, &b);
	assert_int_equal(status, expected ? 0 : E_INVALID);
	assert_true(!expected || bytes_equal((struct bytes){b.data, b.len}, expected));
}

TEST(base64, each_length_comes_back)
{
	uint8_t data[64];
	for (uint8_t i = 0; i < sizeof data; i++)
		data[i] = (uint8_t)(i * 37);
	for (size_t len = 0; len < sizeof data; len++) {
		AUTO(buf_done) struct buf text, back;
		buf_init(&text, 1000);
		buf_init(&back, 1000);
		(void)buf_add_text(&text, "x"); /* both add to what is there */
		(void)buf_add_text(&back, "y");
		assert_int_equal(base64_encode((struct bytes){data, len}, &text), 0);
		assert_int_equal(text.len, 1 + (len + 2) / 3 * 4);
		assert_int_equal(strlen((char *)text.data), text.len);
		assert_int_equal(
			base64_decode((struct bytes){text.data + 1, text.len - 1}, &back), 0);
		assert_int_equal(back.len, 1 + len);
		assert_memory_equal(back.data + 1, data, len);
	}
}

TEST(base64, what_would_not_come_back_the_same_is_refused)
{
	assert_decoded(base64_decode, "YWJj", "abc");
	assert_decoded(base64_decode, "YWI=", "ab");
	assert_decoded(base64_decode, "YWI", NULL);
	assert_decoded(base64_decode, "YWI==", NULL);
	assert_decoded(base64_decode, "YWJ=", NULL); /* bits left over */
	assert_decoded(base64_decode, "YWJj\n", NULL);
	assert_decoded(base64_decode, "YW Jj", NULL);
	assert_decoded(base64_decode, "YW-_", NULL);
	assert_decoded(base64_decode, "YWJjZ", NULL);
}

TEST(base64, a_browser_s_reading_passes_over_white_space)
{
	assert_decoded(base64_decode_loose, " YW\r\nJj\t", "abc");
	assert_decoded(base64_decode_loose, "YWI", "ab");
	assert_decoded(base64_decode_loose, "YWI= \n", "ab");
	assert_decoded(base64_decode_loose, "YQ= =", "a");
	assert_decoded(base64_decode_loose, "", "");
	assert_decoded(base64_decode_loose, "YWJj===", NULL);
	assert_decoded(base64_decode_loose, "YW=Jj", NULL);
	assert_decoded(base64_decode_loose, "YWJjZ", NULL);
	assert_decoded(base64_decode_loose, "YW-_", NULL);
}

static int prepare(void **state)
{
	(void)state;
	return crypto_init(NULL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {TEST_ROW(crypto, hmac_vectors),
		TEST_ROW(crypto, digest_of_parts), TEST_ROW(crypto, uuids_are_of_version_4),
		TEST_ROW(crypto, random_hex_and_equality), TEST_ROW(base64, each_length_comes_back),
		TEST_ROW(base64, what_would_not_come_back_the_same_is_refused),
		TEST_ROW(base64, a_browser_s_reading_passes_over_white_space)};
	return cmocka_run_group_tests(tests, prepare, NULL);
}
