#include "gateway/base/crypto.h"

#include <sodium.h>
#include <string.h>

int crypto_init(struct err *err)
{
	if (sodium_init() < 0)
		return err_set(err, E_IO, "libsodium could not be initialised");
	return 0;
}

void crypto_uuid(char ret_text[UUID_SIZE])
{
	uint8_t raw[16];
	char hex[33];
	randombytes_buf(raw, sizeof raw);
	raw[6] = (uint8_t)((raw[6] & 0x0f) | 0x40);
	raw[8] = (uint8_t)((raw[8] & 0x3f) | 0x80);
	sodium_bin2hex(hex, sizeof hex, raw, sizeof raw);
	char *to = ret_text;
	for (size_t i = 0; i < 32; i++) {
		if (i == 8 || i == 12 || i == 16 || i == 20)
			*to++ = '-';
		*to++ = hex[i];
	}
	*to = '\0';
}

void crypto_random_hex(char *ret_text, size_t n_bytes)
{
	for (size_t i = 0; i < n_bytes; i++) {
		uint8_t byte;
		randombytes_buf(&byte, 1);
		sodium_bin2hex(ret_text + 2 * i, 3, &byte, 1);
	}
	ret_text[2 * n_bytes] = '\0';
}

void crypto_hex(const uint8_t *raw, size_t n, char *ret_text)
{
	sodium_bin2hex(ret_text, 2 * n + 1, raw, n);
}

bool crypto_equal(const char *a, const char *b)
{
	size_t len = strlen(a);
	return len == strlen(b) && sodium_memcmp(a, b, len) == 0;
}

bool crypto_base64_decode(const char *text, uint8_t *to, size_t size, size_t *ret_len)
{
	return sodium_base642bin(to, size, text, strlen(text), NULL, ret_len, NULL,
		       sodium_base64_VARIANT_ORIGINAL) == 0;
}

void crypto_digest_hex(const struct bytes *parts, size_t n, char ret_hex[DIGEST_HEX_SIZE])
{
	uint8_t raw[crypto_generichash_BYTES];
	crypto_generichash_state state;
	(void)crypto_generichash_init(&state, NULL, 0, sizeof raw); /* these cannot fail */
	for (size_t i = 0; i < n; i++)
		(void)crypto_generichash_update(&state, parts[i].data, parts[i].len);
	(void)crypto_generichash_final(&state, raw, sizeof raw);
	sodium_bin2hex(ret_hex, DIGEST_HEX_SIZE, raw, sizeof raw);
}

static int base64_add(struct bytes text, const char *ignore, int variant, struct buf *ret)
{
	size_t len = 0, room = text.len / 4 * 3 + 3;
	int status = buf_reserve(ret, room);
	if (status != 0)
		return status;
	if (sodium_base642bin(ret->data + ret->len, room, (const char *)text.data, text.len, ignore,
		    &len, NULL, variant) != 0)
		return E_INVALID;
	ret->len += len;
	ret->data[ret->len] = '\0';
	return 0;
}

int base64_decode(struct bytes text, struct buf *ret)
{
	return base64_add(text, NULL, sodium_base64_VARIANT_ORIGINAL, ret);
}

int base64_decode_loose(struct bytes text, struct buf *ret)
{
	static const char blank[] = " \t\r\n\f";
	for (unsigned pads = 0; text.len > 0; text.len--) {
		uint8_t last = text.data[text.len - 1];
		if (last == '=' ? ++pads > 2 : !last || !strchr(blank, last))
			break;
	}
	return base64_add(text, blank, sodium_base64_VARIANT_ORIGINAL_NO_PADDING, ret);
}

int base64_encode(struct bytes data, struct buf *ret_text)
{
	size_t len = (data.len + 2) / 3 * 4;
	int status = buf_reserve(ret_text, len); /* and the NUL that is always there */
	if (status != 0)
		return status;
	(void)sodium_bin2base64((char *)ret_text->data + ret_text->len, len + 1, data.data,
		data.len, sodium_base64_VARIANT_ORIGINAL); /* the text */
	ret_text->len += len;
	return 0;
}
