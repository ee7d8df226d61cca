/* From a client's WebSocket message to a Jupyter message: the three framings of wire-contract 1.6
 * to 1.8, told apart by what was negotiated and by the first byte. Bytes in, message out; no I/O.
 */
#ifndef COPPICE_DOOR_DECODE_H
#define COPPICE_DOOR_DECODE_H

#include "gateway/base/jmsg.h"

enum framing {
	FRAMING_LEGACY, /* no subprotocol: JSON text, or format B when there are buffers */
	FRAMING_V1,	/* v1.kernel.websocket.jupyter.org */
};

#define CLOSE_NORMAL  1000u
#define CLOSE_DATA    1007u /* not UTF-8, not JSON, not a frame */
#define CLOSE_POLICY  1008u
#define CLOSE_TOO_BIG 1009u
#define CLOSE_TROUBLE 1011u

/* One whole WebSocket message, fragments put together; borrowed. */
struct inbound {
	enum framing framing;
	bool binary;
	struct bytes data;
};

/* E_INVALID: malformed (close 1007); E_FORBIDDEN: a channel that clients may not use, or a kind of
 * frame that was not negotiated (1008); E_TOO_BIG, E_NOMEM. */
int decode_message(const struct inbound *in, struct jmsg **ret_msg, struct err *err);

unsigned decode_close_code(int code);

#endif
