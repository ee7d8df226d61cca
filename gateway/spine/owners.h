/* Token rows: who may come in. Read from the token file (INI, 0600: `[token NAME]` with secret,
 * tier, scopes of read run admin), made with one row `owner` (all scopes, tier none) if absent.
 * Owns its rows; loop thread. */
#ifndef COPPICE_SPINE_OWNERS_H
#define COPPICE_SPINE_OWNERS_H

#include "gateway/base/base.h"
#include "gateway/base/err.h"

enum scope { SCOPE_READ = 1, SCOPE_RUN = 2, SCOPE_ADMIN = 4 };

struct owner {
	char name[64];
	char tier[16];	 /* none, standard, premium */
	unsigned scopes; /* of enum scope */
	char secret[256];
};

struct owners;

/* E_INVALID: file malformed, an empty or doubled secret, a file that others may read is refused. */
int owners_open(const char *path, struct owners **ret, struct err *err);
void owners_free(struct owners *o);
/* Compares with every row in constant time; NULL if none is equal. Borrowed for owners' life. */
const struct owner *owners_find(const struct owners *o, const char *secret);
/* The first row with scope run; its token is in the URL that is printed. NULL if none. */
const struct owner *owners_first(const struct owners *o);
/* The first row with that scope, or NULL. */
const struct owner *owners_first_with(const struct owners *o, enum scope scope);
/* The row after that one (NULL: the first), or NULL. */
const struct owner *owners_next(const struct owners *o, const struct owner *after);
size_t owners_count(const struct owners *o);

#endif
