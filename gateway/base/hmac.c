#include "gateway/base/hmac.h"

#include <openssl/core_names.h>
#include <openssl/evp.h>
#include <openssl/params.h>

#include "gateway/base/crypto.h"
#include "gateway/base/err.h"

#define HMAC_BYTES 32

struct hmac_key {
	EVP_MAC_CTX *ctx;
};

static bool set_key(EVP_MAC_CTX *ctx, const void *key, size_t len)
{
	char digest[] = "SHA256";
	OSSL_PARAM params[] = {OSSL_PARAM_construct_utf8_string(OSSL_MAC_PARAM_DIGEST, digest, 0),
		OSSL_PARAM_construct_end()};
	return EVP_MAC_init(ctx, key, len, params) == 1;
}

struct hmac_key *hmac_key_new(const void *key, size_t len)
{
	struct hmac_key *k = xcalloc(1, sizeof *k);
	EVP_MAC *mac = EVP_MAC_fetch(NULL, "HMAC", NULL);
	k->ctx = mac ? EVP_MAC_CTX_new(mac) : NULL;
	EVP_MAC_free(mac); /* the context holds it */
	if (k->ctx && set_key(k->ctx, key, len))
		return k;
	hmac_key_free(k);
	return NULL;
}

void hmac_key_free(struct hmac_key *k)
{
	if (!k)
		return;
	EVP_MAC_CTX_free(k->ctx);
	free(k);
}

int hmac_hex(struct hmac_key *k, const struct bytes *parts, size_t n, char ret_hex[HMAC_HEX_SIZE])
{
	uint8_t mac[HMAC_BYTES];
	size_t len = 0;
	bool good = EVP_MAC_init(k->ctx, NULL, 0, NULL) == 1; /* the same key once more */
	for (size_t i = 0; good && i < n; i++)
		good = EVP_MAC_update(k->ctx, parts[i].data, parts[i].len) == 1;
	ret_hex[0] = '\0';
	if (!good || EVP_MAC_final(k->ctx, mac, &len, sizeof mac) != 1)
		return E_NOMEM;
	crypto_hex(mac, len, ret_hex);
	return 0;
}

int sha1_sum(struct bytes data, uint8_t ret_sum[SHA1_SIZE])
{
	return EVP_Digest(data.data, data.len, ret_sum, NULL, EVP_sha1(), NULL) == 1 ? 0 : E_NOMEM;
}
