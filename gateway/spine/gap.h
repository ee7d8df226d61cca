/* What a client is told in the place of entries that the journal's bound cut before it read them:
 * how many, then of each of its own requests the reply and the idle that were among them, then
 * whether the kernel is busy. Embedded in a client. Loop thread. */
#ifndef COPPICE_SPINE_GAP_H
#define COPPICE_SPINE_GAP_H

#include "gateway/spine/journal.h"

struct desk;

/* All of one kernel's gaps together hold two messages for each answered request at most: each
 * request is one client's. */
struct gap {
	uint64_t from, to;	/* numbers; from == to: there was none */
	struct entry **entries; /* at..n are untold; they bear the gap's last number */
	size_t at, n, size;
	bool failed;
};

/* Begins to tell client of what it misses, from..to-1; an earlier gap must have been told. False:
 * out of memory, nothing is told. */
bool gap_open(struct gap *g, struct desk *d, uint64_t client, uint64_t from, uint64_t to);
/* NULL when all is told. Caller unrefs. */
struct entry *gap_take(struct gap *g);
bool gap_is_told(const struct gap *g);
/* The rest is not told. The gap is remembered: gap_resume. */
void gap_drop(struct gap *g);
/* Where a client goes on that has everything before `at`: before the gap, if not all of it was
 * told. */
uint64_t gap_resume(const struct gap *g, uint64_t at);

#endif
