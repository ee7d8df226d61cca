/* A stream message taken apart and put together as bytes: what merge.c and split.c share. Nothing
 * is decoded: an escape stays the escape that the kernel wrote. No I/O. Loop thread. */
#ifndef COPPICE_SPINE_STREAM_TEXT_H
#define COPPICE_SPINE_STREAM_TEXT_H

#include "gateway/base/jmsg.h"

struct stream_text {
	struct bytes name; /* as JSON, with its quotes */
	struct bytes text; /* as JSON, without its quotes */
};

/* Points into m. False: m is no stream message, or holds anything beside name and text. */
bool stream_text_read(const struct jmsg *m, struct stream_text *ret);
/* A message with that text; header, parent and metadata are like's. */
int stream_text_make(const struct jmsg *like, const struct stream_text *what, struct jmsg **ret,
	struct err *err);

#endif
