/* Looks for the header of a message that is too long to be kept, so that an answer can name it:
 * bytes in, as they come; nothing is kept but what is looked for. Clients write the members of a
 * message in any order, so all of it is looked through. A cursor; no I/O. */
#ifndef COPPICE_DOOR_HEAD_H
#define COPPICE_DOOR_HEAD_H

#include "gateway/base/buf.h"
#include "gateway/door/decode.h"

#define HEAD_MAX 65536 /* a longer header is not found */

struct head {
	enum framing framing;
	uint64_t at;   /* of the message's bytes */
	struct buf v1; /* its beginning: in this framing the header stands there */
	/* The legacy framing: JSON from..to; in format B more follows. */
	uint8_t prefix[12];
	uint64_t from, to;
	uint64_t depth; /* of containers */
	bool in_string, escaped, wants_key;
	char key[16]; /* the member that comes or is looked at */
	size_t key_len;
	struct buf *into; /* that member's value is kept here; NULL mostly */
	struct buf header, channel;
};

void head_init(struct head *h, enum framing framing);
void head_done(struct head *h);
void head_add(struct head *h, struct bytes data);
/* When all was added: a message with its header and channel and nothing else. E_INVALID: there was
 * none. */
int head_message(const struct head *h, struct jmsg **ret_msg, struct err *err);

#endif
