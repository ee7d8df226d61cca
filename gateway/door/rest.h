/* Small things that the rest_*.c share. */
#ifndef COPPICE_DOOR_REST_H
#define COPPICE_DOOR_REST_H

#include "gateway/door/call.h"

/* A member of a body, NULL if absent or of another kind; borrowed. body may be NULL. */
const char *rest_text(const struct cJSON *body, const char *key);
const struct cJSON *rest_object(const struct cJSON *body, const char *key);

/* What a body's member must be, if it is there at all and not null. */
enum rest_kind { REST_TEXT, REST_TEXTS, REST_OBJECT }; /* TEXTS: an object of texts */
struct rest_member {
	const char *key;
	enum rest_kind kind;
};

/* E_INVALID names the first of n members that is of another kind. body may be NULL. */
int rest_check(const struct cJSON *body, const char *where, const struct rest_member *members,
	size_t n, struct err *err);

/* ?limit=, from 1 to 1000, else 100. E_INVALID. */
int rest_limit(const struct call *r, unsigned *ret, struct err *err);

/* Location: base_url, path, id. */
void rest_location(struct call *r, const char *path, const char *id);

#endif
