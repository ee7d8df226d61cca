#include "gateway/door/auth.h"

#include <string.h>
#include <strings.h>

#include "gateway/base/crypto.h"

#define PASSWORD_MAX 512

/* The token of an Authorization value, or NULL. Clients without a token send the bare word. */
static const char *header_token(const char *value)
{
	static const char *const schemes[] = {"token ", "bearer "};
	while (*value == ' ')
		value++;
	for (unsigned i = 0; i < ARRAY_LEN(schemes); i++) {
		size_t len = strlen(schemes[i]);
		if (strncasecmp(value, schemes[i], len) != 0)
			continue;
		value += len;
		while (*value == ' ')
			value++;
		return value;
	}
	return NULL;
}

/* The password of Basic, or NULL. room holds it. */
static const char *header_password(const char *value, char room[PASSWORD_MAX])
{
	static const char scheme[] = "basic ";
	size_t len = 0;
	while (*value == ' ')
		value++;
	if (strncasecmp(value, scheme, sizeof scheme - 1) != 0)
		return NULL;
	value += sizeof scheme - 1;
	value += strspn(value, " ");
	if (!crypto_base64_decode(value, (uint8_t *)room, PASSWORD_MAX - 1, &len))
		return NULL;
	room[len] = '\0';
	char *colon = memchr(room, ':', len);
	return colon ? colon + 1 : NULL;
}

/* The query wins over the header, as in Jupyter Server. */
static const char *find_token(const struct call *r, char room[PASSWORD_MAX])
{
	const char *token = call_query(r, "token");
	if (token && *token)
		return token;
	if (!r->header[HEADER_AUTHORIZATION])
		return NULL;
	token = header_token(r->header[HEADER_AUTHORIZATION]);
	if (!token && r->basic)
		token = header_password(r->header[HEADER_AUTHORIZATION], room);
	return token && *token ? token : NULL;
}

int auth_check(struct call *r, unsigned scopes, struct err *err)
{
	char room[PASSWORD_MAX];
	const char *token = find_token(r, room);
	if (!token)
		return err_set(err, E_UNAUTHORIZED,
			"a token is needed: header `Authorization: token ...` or `?token=...`");
	const struct owner *owner = owners_find(r->door->gw->owners, token);
	if (!owner)
		return err_set(err, E_UNAUTHORIZED, "this token is not known here");
	r->owner = owner;
	if (scopes != 0 && (owner->scopes & scopes) == 0)
		return err_set(
			err, E_FORBIDDEN, "the token `%s` lacks the scope for this", owner->name);
	return 0;
}

/* Where no origin was configured, an answer that a token opened may be read by the page that knew
 * the token, as in Jupyter Server; a preflight shows no token and is not answered so. */
void auth_cors(struct call *r)
{
	const char *origin = r->header[HEADER_ORIGIN];
	const struct origins *origins = &r->door->origins;
	if (!origin || !*origin)
		return;
	bool by_token = r->owner && !origins_configured(origins);
	if (!by_token && !origins_allow(origins, origin))
		return;
	answer_header(r, "Access-Control-Allow-Origin", origin);
	answer_header(r, "Access-Control-Expose-Headers", "Location");
	answer_header(r, "Vary", "Origin");
}

void auth_preflight(struct call *r)
{
	const char *origin = r->header[HEADER_ORIGIN];
	if (!origin || !origins_allow(&r->door->origins, origin))
		return;
	answer_header(r, "Access-Control-Allow-Methods", "GET, PUT, POST, PATCH, DELETE, OPTIONS");
	answer_header(r, "Access-Control-Allow-Headers",
		"accept, content-type, authorization, x-xsrftoken");
	answer_header(r, "Access-Control-Allow-Private-Network", "true");
	answer_header(r, "Access-Control-Max-Age", "600");
}
