/* Which origins' pages may read our answers (CORS). Tokens let people in; origins only decide what
 * a browser hands to its page. */
#ifndef COPPICE_DOOR_ORIGIN_H
#define COPPICE_DOOR_ORIGIN_H

#include <regex.h>

#include "gateway/base/buf.h"
#include "gateway/base/config.h"

struct origins {
	const char *list; /* borrowed from config: comma separated, * for any */
	regex_t pattern;  /* the whole origin must match */
	bool has_pattern;
};

/* E_INVALID: the pattern is no extended regular expression. */
int origins_init(struct origins *o, const struct config *config, struct err *err);
void origins_done(struct origins *o);
bool origins_configured(const struct origins *o);
bool origins_allow(const struct origins *o, const char *origin);

#endif
