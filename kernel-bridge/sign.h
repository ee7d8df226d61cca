/* The key of one line: signs what goes to the kernel, checks what comes from it. Owns the key's
 * state, which is wiped. Loop thread. */
#ifndef COPPICE_BRIDGE_SIGN_H
#define COPPICE_BRIDGE_SIGN_H

#include "gateway/base/crypto.h"
#include "gateway/base/hmac.h"
#include "gateway/base/jmsg.h"

#define SIGN_KEY_SIZE 65 /* 32 random bytes as hex and a NUL */

struct sign {
	struct hmac_key *key; /* NULL: the kernel has no key, signatures are empty */
};

void sign_fresh_key(char ret_key[SIGN_KEY_SIZE]);
/* E_NOMEM. An empty key signs nothing. */
int sign_init(struct sign *s, const char *key, struct err *err);
void sign_done(struct sign *s);
/* Lower-case hex over header, parent, metadata, content; "" without a key. E_NOMEM. */
int sign_hex(
	const struct sign *s, const struct bytes part[JMSG_PARTS], char ret_hex[HMAC_HEX_SIZE]);
/* In constant time. Without a key everything is right. E_PROTOCOL: it is wrong; E_NOMEM. */
int sign_check(const struct sign *s, const struct bytes part[JMSG_PARTS], struct bytes signature);

#endif
