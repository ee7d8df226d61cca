/* A Jupyter message: reference counted, immutable after it is made, its parts the bytes that were
 * on the wire. The storage is the very frame of v1.kernel.websocket.jupyter.org (wire-contract 1.8)
 * with head room before it, so that one copy serves the journal, its file and every v1 client.
 * Loop thread. */
#ifndef COPPICE_BASE_JMSG_H
#define COPPICE_BASE_JMSG_H

#include "base.h"
#include "err.h"

enum channel {
	CHANNEL_SHELL,
	CHANNEL_IOPUB,
	CHANNEL_STDIN,
	CHANNEL_CONTROL,
	CHANNEL_HB,
	CHANNEL_COUNT
};

#define JMSG_HEADROOM	 32 /* free bytes before the frame, for the WebSocket header */
#define JMSG_BUFFERS_MAX 4096
#define JMSG_FRAME_MAX	 (1u << 30) /* one message, all parts */
#define JMSG_ID_MAX	 256 /* longest msg_id, session, msg_type that is taken, with its NUL */

enum { PART_HEADER, PART_PARENT, PART_METADATA, PART_CONTENT, JMSG_PARTS };

struct jmsg {
	unsigned refs;
	enum channel channel;
	struct bytes part[JMSG_PARTS]; /* JSON objects, validated */
	size_t n_buffers;
	struct bytes *buffers; /* point into the frame */
	struct bytes frame;    /* the v1 frame; JMSG_HEADROOM writable bytes lie before it */
	/* Read once from header and parent header, "" where absent. */
	const char *msg_id, *msg_type, *session, *subshell_id;
	const char *parent_id, *parent_type, *parent_session;
};

/* What a message is made from; everything borrowed for the call. */
struct jmsg_source {
	enum channel channel;
	struct bytes part[JMSG_PARTS]; /* an empty parent or metadata becomes {} */
	const struct bytes *buffers;
	size_t n_buffers;
};

/* Validates each part (json_scan; mended by json_mend if `mend`, for what a kernel made), reads the
 * headers, builds the frame. E_INVALID: a part is not a JSON object, or header lacks a string
 * msg_id or msg_type; E_TOO_BIG; E_NOMEM. */
int jmsg_new(const struct jmsg_source *source, bool mend, struct jmsg **ret_msg, struct err *err);
/* From a v1 frame (client or journal file): every offset is checked against its length before
 * anything is allocated. */
int jmsg_from_frame(struct bytes frame, struct jmsg **ret_msg, struct err *err);
struct jmsg *jmsg_ref(struct jmsg *m);
void jmsg_unref(struct jmsg *m);
void jmsg_unrefp(struct jmsg **m); /* for AUTO */

const char *channel_name(enum channel c);
/* CHANNEL_COUNT if there is none of that name. */
enum channel channel_parse(struct bytes name);

/* Synthesises a message. session is the header's session; parent borrowed, may be NULL (then {});
 * content is a JSON object text. username "coppice", version "5.3", msg_id a fresh uuid. */
int jmsg_make(enum channel channel, const char *msg_type, const char *session,
	const struct jmsg *parent, const char *content, struct jmsg **ret_msg, struct err *err);

#endif
