/* Makes the index of one history agree with its refs, which are the truth. Blocks. */
#ifndef COPPICE_HISTORY_REINDEX_H
#define COPPICE_HISTORY_REINDEX_H

#include "gateway/base/db.h"
#include "history/repo.h"

/* In the caller's transaction. Adds the rows of nodes that the refs have and the index lacks; if
 * the index has what no ref has, makes all rows of the history anew. *ret_added counts rows. */
int reindex_history(
	struct db *db, struct repo *repo, const char *history, size_t *ret_added, struct err *err);

#endif
