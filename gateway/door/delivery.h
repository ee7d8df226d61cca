/* What was written to one socket and where in its stream each journal entry ended: so that at the
 * close, what TCP had not acknowledged can be named. Grows while much is under way, small when
 * idle. No I/O. */
#ifndef COPPICE_DOOR_DELIVERY_H
#define COPPICE_DOOR_DELIVERY_H

#include "gateway/base/base.h"

struct delivered {
	uint64_t number; /* of the journal entry */
	uint64_t end;	 /* stream position after its last byte */
};

struct delivery {
	uint64_t total; /* bytes written so far */
	struct delivered *ring;
	size_t size, head, count;
};

void delivery_init(struct delivery *d);
void delivery_done(struct delivery *d);
/* The entry's last byte is the last of `end` bytes (which may lie ahead of total). */
void delivery_ended(struct delivery *d, uint64_t number, uint64_t end);
/* True if delivery_trim() should be called before the next delivery_ended(). */
bool delivery_full(const struct delivery *d);
/* Forgets what the peer has: all but the last `unacked` bytes. */
void delivery_trim(struct delivery *d, uint64_t unacked);
/* The oldest entry that is not wholly had; 0 if there is none. */
uint64_t delivery_first(struct delivery *d, uint64_t unacked);

#endif
