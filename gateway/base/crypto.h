/* The door to libsodium: random ids, digests, constant-time comparison, base64. Any thread. */
#ifndef COPPICE_BASE_CRYPTO_H
#define COPPICE_BASE_CRYPTO_H

#include "base.h"
#include "buf.h"
#include "err.h"

int crypto_init(struct err *err);

#define UUID_SIZE 37 /* uuid4 text with its NUL */
void crypto_uuid(char ret_text[UUID_SIZE]);
/* n random bytes as 2n hex digits and a NUL. */
void crypto_random_hex(char *ret_text, size_t n_bytes);
/* n bytes as 2n lower-case digits and a NUL. */
void crypto_hex(const uint8_t *raw, size_t n, char *ret_text);
/* True if equal; time depends on the lengths only. */
bool crypto_equal(const char *a, const char *b);

/* Writes what the text stands for; false if it is no base64 or needs more than size bytes. */
bool crypto_base64_decode(const char *text, uint8_t *to, size_t size, size_t *ret_len);
/* Adds what the text stands for. E_INVALID: it is not the one text that those bytes have (white
 * space, wrong padding, bits left over); E_TOO_BIG, E_NOMEM. */
int base64_decode(struct bytes text, struct buf *ret);
/* Likewise, as browsers read it: white space is passed over, the padding may be absent. */
int base64_decode_loose(struct bytes text, struct buf *ret);
int base64_encode(struct bytes data, struct buf *ret_text);

#define DIGEST_HEX_SIZE 65
/* BLAKE2b-256 of the parts, one after the other. */
void crypto_digest_hex(const struct bytes *parts, size_t n, char ret_hex[DIGEST_HEX_SIZE]);

#endif
