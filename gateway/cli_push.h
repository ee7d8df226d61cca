/* Where a history may be pushed to. Any thread. */
#ifndef COPPICE_CLI_PUSH_H
#define COPPICE_CLI_PUSH_H

#include "gateway/base/err.h"

/* E_INVALID: it is no address of a repository, or one by which git would run a program of its
 * writer's choice: an option, `ext::`, a host that is an option. */
int push_url_check(const char *url, struct err *err);

#endif
