/* Objects that nothing names any more leave a repository for good: loose, packed, half-written.
 * Blocks: git does it, as a child. */
#ifndef COPPICE_HISTORY_PURGE_H
#define COPPICE_HISTORY_PURGE_H

#include "gateway/base/err.h"
#include "history/pins.h"

/* All that a branch or another ref leads to is packed anew, all else goes, however new: git would
 * keep what a new object leads to. So in the recorder's thread between two batches, when nobody has
 * objects whose branch has not moved yet. So do chunks that no node names, but for pins of that
 * history. E_UNAVAILABLE: it is being packed or copied just now. */
int repo_purge(const char *repository, struct pins *pins, const char *history, struct err *err);

#endif
