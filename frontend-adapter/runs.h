/* The blocks of a reply as they are found: the Python ones joined to runs, the others listed.
 * Owns what it has found. Pure, any thread. */
#ifndef COPPICE_FRONTEND_ADAPTER_RUNS_H
#define COPPICE_FRONTEND_ADAPTER_RUNS_H

#include "gateway/base/buf.h"

struct cJSON;

struct runs {
	struct cJSON *blocks;
	struct cJSON *run;  /* borrowed from blocks; the last run; NULL: none */
	struct buf code;    /* of run so far */
	struct buf written; /* the same as the model wrote it */
	unsigned joined;    /* blocks in run */
	bool alone;	    /* run begins with a cell magic: nothing can be joined to it */
	bool apart;	    /* each block is a run: the cells of a notebook show a result each */
	bool crs;	    /* the text had \r */
	bool incomplete;    /* some run is cut off */
	size_t pythons, listed;
};

int runs_init(struct runs *r, struct err *err);
void runs_done(struct runs *r);
/* Forgets what was found. */
int runs_drop(struct runs *r, struct err *err);
/* Code is mended on the way; blank code is no run. */
int runs_python(struct runs *r, struct bytes code, struct err *err);
int runs_listed(struct runs *r, const char *language, struct bytes code, struct err *err);
/* After the last block; the caller owns the array. Runs have one member more, `written`: their code
 * before it was mended. */
int runs_take(struct runs *r, struct cJSON **ret_blocks, struct err *err);

#endif
