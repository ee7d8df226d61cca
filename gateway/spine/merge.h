/* For a client that is behind: adjacent stream texts of one execution become one message. The
 * journal keeps its entries as they are; what comes out is that client's alone. No I/O. Loop
 * thread. */
#ifndef COPPICE_SPINE_MERGE_H
#define COPPICE_SPINE_MERGE_H

#include "gateway/base/buf.h"
#include "gateway/spine/journal.h"
#include "gateway/spine/stream_text.h"

#define MERGE_BEHIND	64u	     /* entries; one that is nearer gets what the kernel sent */
#define MERGE_TEXT_MAX	(256u << 10) /* of one merged message */
#define MERGE_PARTS_MAX 4096u

struct merge {
	struct entry *first, *last; /* referenced */
	struct stream_text like;    /* points into first */
	struct buf text;	    /* empty while there is one part */
	unsigned parts;
};

/* False: nothing can be merged with it, and merge_end is not to be called. */
bool merge_begin(struct merge *g, struct entry *first);
/* The next one that this client would see. True: it is in. */
bool merge_add(struct merge *g, struct entry *e);
/* The entry itself if it stayed alone; else one that has the last one's header and the first one's
 * number, so that a client that did not get it gets all of it again. NULL: out of memory, the
 * parts are to be had from the journal. Caller unrefs. */
struct entry *merge_end(struct merge *g);

#endif
