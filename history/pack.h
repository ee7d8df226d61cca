/* The packs of one bare repository, made by git's own programs while others write objects and packs
 * and move branches in it. One at a time, whoever started it: the lock is one on
 * objects/pack that git's processes inherit, so that those of a gateway that was killed keep it
 * until they end. Blocks. */
#ifndef COPPICE_HISTORY_PACK_H
#define COPPICE_HISTORY_PACK_H

#include "gateway/base/base.h"
#include "gateway/base/err.h"
#include "gateway/base/child.h"

/* The recorder's packs are called pack-burst-SUM: they are without deltas. */
#define PACK_OF_BURST "burst-"

/* *ret_fd keeps the lock until it is closed. waits: until nobody has it any more; else
 * E_UNAVAILABLE: somebody has it. E_NOT_FOUND: no such repository. */
int pack_lock(const char *repository, bool waits, int *ret_fd, struct err *err);

/* ---- under the lock ---- */

/* Removes what a git that was killed left half-made. */
int pack_clean(const char *repository, struct err *err);
/* What is loose becomes a pack; then as pack_join(). */
int pack_recent(struct child *child, const char *repository, int lock, struct err *err);
/* join.c: what bursts left becomes a pack with deltas; whoever packs all of it does that first. */
int pack_bursts(struct child *child, const char *repository, int lock, struct err *err);
/* And small packs become one: how many there are grows with the logarithm of what they hold. What
 * nothing leads to stays. */
int pack_join(struct child *child, const char *repository, int lock, struct err *err);
/* All that branches lead to becomes one pack; what nothing leads to goes, if it is older than an
 * hour: what is being recorded is not led to yet. */
int pack_whole(struct child *child, const char *repository, int lock, struct err *err);

/* ---- without it ---- */

/* About how many executions lie there loose; 0 if none does, nor a pack of a burst. */
unsigned pack_loose_nodes(const char *repository);

#endif
