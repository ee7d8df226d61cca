/* The commits of a history without what one node said: it and all that came after it. For
 * forget.c. */
#ifndef COPPICE_HISTORY_FORGET_REWRITE_H
#define COPPICE_HISTORY_FORGET_REWRITE_H

#include "history/forget.h"
#include "history/recorder_parts.h"

/* Writes them, makes them durable, then moves what is kept beside the branches, then the branches:
 * with the last of them it is done. The index must agree with the refs, and does not afterwards.
 * Fills f->rewritten and f->same. */
int forget_rewrite(
	struct recorder *r, struct open_repo *repo, struct forgetting *f, struct err *err);

#endif
