/* A pack and its index out of objects in memory, as gitformat-pack describes them, without deltas:
 * git's own repack finds those later. libgit2's packbuilder looks for deltas at once and compresses
 * as well as it can, and its indexer reads all of it again and (1.5) writes through shared maps,
 * where a full disk is a SIGBUS. The door to zlib. Blocks. */
#ifndef COPPICE_HISTORY_PACKFILE_H
#define COPPICE_HISTORY_PACKFILE_H

#include "gateway/base/base.h"
#include "gateway/base/err.h"

#define PACK_ID_SIZE	   20u
#define PACKFILE_BYTES_MAX (64u << 20) /* of a pack: its offsets are those of a small one */

struct pack_object {
	const uint8_t *id; /* PACK_ID_SIZE bytes */
	unsigned type;	   /* 1 a commit, 2 a tree, 3 a blob */
	struct bytes data;
};

/* Each object once. The files are synced and appear in objects/pack whole, or neither does; that
 * their names are durable is the caller's to see to. E_IO, E_NOMEM, E_TOO_BIG. */
int packfile_write(
	const char *objects_folder, const struct pack_object *objects, size_t n, struct err *err);

#endif
