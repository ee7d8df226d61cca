/* Where a kernel stands in a history: the node that its next run follows. The recorder and the bulk
 * lane ask the same here, each over its own connection. Blocks. */
#ifndef COPPICE_HISTORY_STAND_H
#define COPPICE_HISTORY_STAND_H

#include "history/index.h"

struct stand {
	const char *history, *kernel_id;
	uint64_t epoch; /* of its process */
	const char *at; /* where that began; NULL or "": the root */
};

struct stands {
	struct index_place place;
	bool begins;		/* that process has run nothing here yet: place is `at` */
	uint64_t state_version; /* the last that the kernel had */
};

/* 1: ret->place is it. 0: at the root. E_* */
int stand_find(struct db *db, const struct stand *of, struct stands *ret, struct err *err);

#endif
