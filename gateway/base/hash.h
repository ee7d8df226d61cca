/* uthash. Its tables are xcalloc's kind of memory: without it the process ends by abort(), and not,
 * as uthash would have it, by an exit() that nobody is told of. */
#ifndef COPPICE_BASE_HASH_H
#define COPPICE_BASE_HASH_H

#include "base.h"

#define uthash_malloc(size) xcalloc(1, size)
#include <uthash.h>

#endif
