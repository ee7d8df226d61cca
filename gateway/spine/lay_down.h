/* Inside of the spine: what a node's folder held is laid down in that of a kernel, with the
 * contents that history has (docs/decisions/0028). Loop thread. */
#ifndef COPPICE_SPINE_LAY_DOWN_H
#define COPPICE_SPINE_LAY_DOWN_H

#include "gateway/base/clock.h"

struct cJSON;
struct desk;
struct err;

struct lay_down {
	struct desk *desk;   /* NULL: it was let go of; freed once nobody calls back any more */
	struct cJSON *needs; /* contents that the container lacks */
	unsigned expects;    /* calls back that history owes */
	bool is_over;	     /* cb was called */
	struct timer timer;
	void (*cb)(void *data, const struct err *err);
	void *data;
};

/* In the folder that d's kernel works in. cb once, not within the call: NULL: it holds that and
 * nothing else, else it is as it was; then lay_down_end is due. On failure there is nothing. */
int lay_down_begin(struct desk *d, const struct cJSON *entries,
	void (*cb)(void *data, const struct err *err), void *data, struct lay_down **ret,
	struct err *err);
/* keep: what was there before is given up; else it is put back. cb is not called any more. NULL is
 * none. */
void lay_down_end(struct lay_down *l, bool keep);

#endif
