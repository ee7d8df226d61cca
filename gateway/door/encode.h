/* From a journal entry to what one client's socket carries: the frame of v1 as it is, or the legacy
 * form, built once per entry and kept in it. No I/O. */
#ifndef COPPICE_DOOR_ENCODE_H
#define COPPICE_DOOR_ENCODE_H

#include "gateway/base/buf.h"
#include "gateway/door/decode.h"
#include "gateway/spine/journal.h"

/* One WebSocket message: payload borrowed from the entry. */
struct outbound {
	bool binary;
	struct bytes data;
};

int encode_entry(struct entry *e, enum framing framing, struct outbound *ret, struct err *err);

/* Format A, with "buffers": [] whatever the message holds. */
int encode_text(const struct jmsg *m, struct buf *ret, struct err *err);

#endif
