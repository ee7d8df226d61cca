/* The door to libsodium: random ids, HMAC-SHA256, constant-time comparison. Any thread. */
#ifndef COPPICE_BASE_CRYPTO_H
#define COPPICE_BASE_CRYPTO_H

#include "base.h"
#include "err.h"

int crypto_init(struct err *err);

#define UUID_SIZE 37 /* uuid4 text with its NUL */
void crypto_uuid(char ret_text[UUID_SIZE]);
/* n random bytes as 2n hex digits and a NUL. */
void crypto_random_hex(char *ret_text, size_t n_bytes);
/* True if equal; time depends on the lengths only. */
bool crypto_equal(const char *a, const char *b);

/* Writes what the text stands for; false if it is no base64 or needs more than size bytes. */
bool crypto_base64_decode(const char *text, uint8_t *to, size_t size, size_t *ret_len);

#define HMAC_HEX_SIZE 65
struct hmac_key; /* the state after the key; opaque */
struct hmac_key *hmac_key_new(const void *key, size_t len);
void hmac_key_free(struct hmac_key *k); /* wipes */
void hmac_hex(
	const struct hmac_key *k, const struct bytes *parts, size_t n, char ret_hex[HMAC_HEX_SIZE]);

#endif
