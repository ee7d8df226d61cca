/* Takes `Transfer-Encoding: chunked` apart: libwebsockets hands over the raw framing. A cursor with
 * no memory of its own. */
#ifndef COPPICE_DOOR_CHUNKED_H
#define COPPICE_DOOR_CHUNKED_H

#include "gateway/base/base.h"

struct chunked {
	enum {
		CHUNK_SIZE, /* in the line with the size */
		CHUNK_EXT,  /* what follows the size on its line */
		CHUNK_DATA,
		CHUNK_END,   /* the line end after the data */
		CHUNK_TRAIL, /* lines after the last chunk, up to an empty one */
		CHUNK_DONE,
		CHUNK_BROKEN,
	} at;
	uint64_t left;	       /* of the size, or of the data */
	unsigned digits, line; /* bytes of the line so far */
};

/* Steps over data; the next piece of body in *ret_piece (len 0: none yet). Returns how many bytes
 * were used; call again until all are, or at is CHUNK_DONE or CHUNK_BROKEN. */
size_t chunked_next(struct chunked *c, struct bytes data, struct bytes *ret_piece);

#endif
