/* A block of WebSocket frames on their way to one socket in one write: small messages share it, a
 * large one crosses it in fragments, so that nothing large is ever buffered a second time. One
 * block serves all sockets in turn. No I/O. */
#ifndef COPPICE_DOOR_OUTBOX_H
#define COPPICE_DOOR_OUTBOX_H

#include "gateway/base/base.h"

#define OUTBOX_HEADROOM 32 /* writable bytes before data, for libwebsockets */
#define OUTBOX_SIZE	(128 * 1024)
#define FRAME_HEAD_MAX	10

enum opcode { OPCODE_CONTINUE = 0, OPCODE_TEXT = 1, OPCODE_BINARY = 2, OPCODE_PING = 9 };

struct outbox {
	uint8_t *block;
	size_t len;
};

void outbox_init(struct outbox *o);
void outbox_done(struct outbox *o);
uint8_t *outbox_data(const struct outbox *o);

/* Adds the next frame of a message of which `from` bytes were added before (opcode counts for the
 * first one). Returns how much of it was taken, the last byte with FIN; 0: no room, write the block
 * out first. message.len > from. */
size_t outbox_add(struct outbox *o, enum opcode opcode, struct bytes message, size_t from);
/* False: no room. The payload is one byte: libwebsockets tells nobody of a pong without any. */
bool outbox_add_ping(struct outbox *o);

#endif
