/* A part of history's public header: what keeps histories small, and what is done without a
 * gateway. Loop thread. */
#ifndef COPPICE_HISTORY_UPKEEP_H
#define COPPICE_HISTORY_UPKEEP_H

#include "history/history.h"

/* cb as in history_ask(); id is a history's, whose owner the caller has looked at. What is asked
 * for waits for what is under way, a packing above all. E_NOT_FOUND, E_BUSY (it is being copied),
 * E_UNAVAILABLE, E_IO. */

/* Packs all of it and drops what nothing leads to: {"freed_bytes": ..., "bytes": ...}. */
void history_gc(struct histories *h, const char *id,
	void (*cb)(void *data, int status, struct bytes json, const struct err *err), void *data);
/* Repository and rows go: {"freed_bytes": ...}. The caller sees to it that no kernel runs in it;
 * E_BUSY: what one ran waits to be recorded. */
void history_remove(struct histories *h, const char *id,
	void (*cb)(void *data, int status, struct bytes json, const struct err *err), void *data);

/* ---- without a gateway: each blocks ---- */

struct history_counts {
	uint64_t histories, nodes;
};

/* Makes the index anew from the repositories. E_NOT_FOUND: there is no such folder; E_UNAVAILABLE:
 * a gateway has it. What cannot be read is left out and logged. */
int histories_reindex(const char *folder, const struct log *log, struct history_counts *ret_counts,
	struct err *err);
/* Also beside a gateway: fills the new folder `into`, of the same disk, with all repositories, each
 * as it was at one moment, without the index. Objects are second names of the same files. */
int histories_snapshot(const char *folder, const char *into, size_t *ret_n, struct err *err);

#endif
