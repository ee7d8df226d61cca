/* One stream of a run as its record has it: lines as a terminal would leave them (what follows a
 * carriage return takes the line's place), head and tail of what is too long. Text in, text out;
 * UTF-8 stays whole. Owns its memory. Loop thread. */
#ifndef COPPICE_ADAPTER_STREAM_H
#define COPPICE_ADAPTER_STREAM_H

#include "gateway/base/buf.h"

#define STREAM_HALF (192u << 10) /* of head, and of tail, as JSON has them */

struct stream {
	struct buf head, tail, line;
	size_t head_cost;
	bool returned;	   /* a carriage return came: what follows begins the line anew */
	bool full;	   /* the head takes no more */
	uint64_t bytes;	   /* as they came */
	uint64_t left_out; /* of tail's beginning, so far */
	size_t told;	   /* what was told while it came, as JSON has it */
	bool untold;	   /* not all of it was: */
	size_t head_at;	   /* from there on in head, and all of tail and line */
	bool lost;	   /* memory was out: not all that came is in it */
};

void stream_init(struct stream *s);
void stream_done(struct stream *s);
/* Returns how much of text is to be told as it is, the rest is told by stream_rest(). */
size_t stream_add(struct stream *s, struct bytes text);
/* Bytes that stream_text() leaves out. */
uint64_t stream_left_out(const struct stream *s);
/* All of it that is kept, with a mark where something is left out. Caller frees; NULL: out of
 * memory. */
char *stream_text(const struct stream *s);
/* After the end: what was not told while it came; NULL in *ret: nothing. Caller frees. E_NOMEM. */
int stream_rest(const struct stream *s, char **ret);

#endif
