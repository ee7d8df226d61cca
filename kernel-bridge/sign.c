#include "kernel-bridge/sign.h"

#include <string.h>

void sign_fresh_key(char ret_key[SIGN_KEY_SIZE])
{
	crypto_random_hex(ret_key, (SIGN_KEY_SIZE - 1) / 2);
}

int sign_init(struct sign *s, const char *key, struct err *err)
{
	s->key = NULL;
	if (!*key)
		return 0;
	s->key = hmac_key_new(key, strlen(key));
	if (!s->key)
		return err_set(err, E_NOMEM, "signature key: out of memory");
	return 0;
}

void sign_done(struct sign *s)
{
	hmac_key_free(s->key);
	s->key = NULL;
}

int sign_hex(const struct sign *s, const struct bytes part[JMSG_PARTS], char ret_hex[HMAC_HEX_SIZE])
{
	ret_hex[0] = '\0';
	return s->key ? hmac_hex(s->key, part, JMSG_PARTS, ret_hex) : 0;
}

int sign_check(const struct sign *s, const struct bytes part[JMSG_PARTS], struct bytes signature)
{
	char want[HMAC_HEX_SIZE];
	char got[HMAC_HEX_SIZE];

	if (!s->key)
		return 0;
	if (signature.len != HMAC_HEX_SIZE - 1)
		return E_PROTOCOL;
	memcpy(got, signature.data, signature.len);
	got[signature.len] = '\0';
	int rc = sign_hex(s, part, want);
	return rc < 0 ? rc : crypto_equal(want, got) ? 0 : E_PROTOCOL;
}
