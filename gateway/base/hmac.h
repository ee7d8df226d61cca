/* HMAC-SHA256, and the SHA-1 that git's packs end with: the door to libcrypto
 * (docs/decisions/0026). A key is one thread's at a time. */
#ifndef COPPICE_BASE_HMAC_H
#define COPPICE_BASE_HMAC_H

#include "base.h"

#define HMAC_HEX_SIZE 65 /* lower-case hex and a NUL */
struct hmac_key;	 /* the state after the key; opaque */

/* NULL: no memory. */
struct hmac_key *hmac_key_new(const void *key, size_t len);
void hmac_key_free(struct hmac_key *k); /* wipes */
/* Of the parts, one after the other. E_NOMEM: ret_hex is then empty. */
int hmac_hex(struct hmac_key *k, const struct bytes *parts, size_t n, char ret_hex[HMAC_HEX_SIZE]);

#define SHA1_SIZE 20
/* E_NOMEM. */
int sha1_sum(struct bytes data, uint8_t ret_sum[SHA1_SIZE]);

#endif
