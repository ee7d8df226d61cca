/* Contents of a history that no node of it names any more. Under the lock of pack.h. Blocks. */
#ifndef COPPICE_HISTORY_SWEEP_H
#define COPPICE_HISTORY_SWEEP_H

#include "gateway/base/err.h"
#include "history/pins.h"

/* Removes chunks that no branch leads to and that are older than that; pins, if there are any, are
 * kept. It costs a walk over all nodes, where there are chunks at all. */
int sweep_chunks(const char *repository, struct pins *pins, const char *history, int64_t older_s,
	struct err *err);

#endif
