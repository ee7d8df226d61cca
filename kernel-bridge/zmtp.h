/* ZMTP 3.0 with the NULL mechanism, the connecting side: what lies on a connection to a ZeroMQ
 * socket, to it and from it. A decoder with a cursor; no input or output. Any thread that owns it.
 */
#ifndef COPPICE_BRIDGE_ZMTP_H
#define COPPICE_BRIDGE_ZMTP_H

#include "gateway/base/base.h"
#include "gateway/base/err.h"

#define ZMTP_HELLO_MAX 256
#define ZMTP_HEAD_MAX  9

/* What a client says first: its greeting and its READY. routing_id: at most 64 bytes, or NULL.
 * Returns the length. Messages may follow once the peer is ZMTP_UP. */
size_t zmtp_hello(const char *socket_type, const char *routing_id, uint8_t ret[ZMTP_HELLO_MAX]);
/* What stands before a frame of len bytes. Returns the length. */
size_t zmtp_frame_head(size_t len, bool more, uint8_t ret[ZMTP_HEAD_MAX]);

struct zmtp {
	enum { ZMTP_GREETING, ZMTP_HANDSHAKE, ZMTP_TRAFFIC } state;
	uint64_t frame_max; /* bytes; 0: no limit */
	bool dropping, last;
	uint64_t skip; /* bytes of the frame that is being dropped */
};

enum zmtp_what {
	ZMTP_WAIT,    /* call again with more bytes */
	ZMTP_UP,      /* the peer is ready for messages */
	ZMTP_MESSAGE, /* one message, whole */
	ZMTP_DROPPED, /* one that had too many parts or bytes was gone over */
};

struct zmtp_step {
	enum zmtp_what what;
	size_t used; /* bytes that are done with, for a message once its frames are */
	size_t need; /* for ZMTP_WAIT: bytes beyond used that can tell more, at least */
	size_t n;
	struct bytes *frames; /* the caller's; they point into data */
	size_t frames_max;
	size_t total_max; /* bytes of a message */
};

/* Looks at what came and was not used yet. E_TOO_BIG: a frame over frame_max; E_PROTOCOL: this is
 * no ZMTP, or not with a peer that takes us. After an error the connection is of no use. */
int zmtp_next(struct zmtp *z, struct bytes data, struct zmtp_step *step, struct err *err);

#endif
