/* The codec between ZeroMQ frames and messages: [idents...] <IDS|MSG> signature header parent
 * metadata content buffers... No input or output, no state. Any thread that owns the message. */
#ifndef COPPICE_BRIDGE_WIRE_H
#define COPPICE_BRIDGE_WIRE_H

#include "kernel-bridge/sign.h"

#define WIRE_IDENTS_MAX 16 /* frames before the delimiter */
#define WIRE_HEAD	6  /* delimiter, signature and the four parts; buffers follow */
#define WIRE_FRAMES_MAX (WIRE_IDENTS_MAX + WIRE_HEAD + JMSG_BUFFERS_MAX)

/* One message of a kernel. Frames are borrowed for the call, the message owns copies. The signature
 * is checked over the parts as they came, before anything in them is looked at; mending follows.
 * E_PROTOCOL: delimiter missing, parts missing, signature wrong, a part that cannot be mended. */
int wire_decode(const struct sign *sign, enum channel channel, const struct bytes *frames, size_t n,
	struct jmsg **ret_msg, struct err *err);

/* The frames before the buffers; they point into m and into signature here: keep both. */
struct wire_head {
	struct bytes frames[WIRE_HEAD];
	char signature[HMAC_HEX_SIZE];
};

/* E_NOMEM: it is not signed. */
int wire_encode(const struct sign *sign, const struct jmsg *m, struct wire_head *ret_head);

#endif
