/* Large contents of a history: chunks of at most 1 MiB, each a file REPOSITORY/chunks/ab/cdef...
 * called by its BLAKE2b-256, raw or compressed by zstd. No name is there before its bytes are on
 * the disk. Blocks; any thread. */
#ifndef COPPICE_HISTORY_CHUNK_H
#define COPPICE_HISTORY_CHUNK_H

#include "gateway/base/base.h"
#include "gateway/base/buf.h"
#include "gateway/base/err.h"

#define CHUNK_FOLDER "chunks"
#define CHUNK_HALF   "tmp_" /* how one begins that is being written */
#define CHUNK_GRACE  3600   /* seconds that one is kept that nothing names (yet) */

/* It is there, and young from now on. */
bool chunk_touch(const char *repository, const char *name);
/* Written beside, under another name: to be synced by the caller, then put in place. The caller has
 * checked the name. One at a time of a name. */
int chunk_write(const char *repository, const char *name, struct bytes data, struct err *err);
int chunk_place(const char *repository, const char *name, struct err *err);
/* Adds its bytes, whose hash is right. E_NOT_FOUND, E_IO. */
int chunk_read(const char *repository, const char *name, struct buf *ret, struct err *err);

/* Removes those that are older and not kept by anybody. There may be no folder of them. */
struct chunk_sweep {
	bool (*keeps)(void *data, const char *name);
	void *data;
	int64_t older_s; /* only what is older than that */
};
int chunks_sweep(const char *repository, const struct chunk_sweep *sweep, struct err *err);
/* What a process left half written, who is dead. */
int chunks_clean(const char *repository, struct err *err);
/* There is something to sweep. */
bool chunks_any(const char *repository);

#endif
