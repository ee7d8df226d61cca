/* The third lane of history/: packs histories after so many executions and when they rest, and
 * carries out what takes long: gc, removal. One thing at a time, git's own programs do it. Owns its
 * thread; the recorder never waits for it. */
#ifndef COPPICE_HISTORY_KEEPER_H
#define COPPICE_HISTORY_KEEPER_H

#include "gateway/base/list.h"
#include "history/history.h"

struct keeper;

enum order_what { ORDER_GC, ORDER_REMOVE };

/* What somebody asked for; owned by the keeper until it is given back. */
struct order {
	struct list link;
	enum order_what what;
	char history[64];
	void (*cb)(void *data, int status, struct bytes json, const struct err *err);
	void *data;
	/* What came of it. */
	int status;
	struct err err;
	uint64_t freed_bytes, bytes;
};

struct keeper_setup {
	const char *folder; /* borrowed, as log */
	const struct log *log;
	struct history_keeping keeping;
	/* All from the keeper's thread. */
	void (*on_packed)(void *data, const char *history); /* its packs are others now */
	/* Nobody writes in it any more, it is called ID.git.gone and has no rows. E_NOT_FOUND,
	 * E_BUSY, E_UNAVAILABLE (the end), E_IO. May wait. */
	int (*drop)(void *data, const char *history, struct err *err);
	void (*on_done)(void *data, struct order *order); /* takes it */
	void (*on_ended)(void *data); /* last: keeper_join() does not wait long */
	void *data;
};

/* NULL: its thread cannot start. */
struct keeper *keeper_start(const struct keeper_setup *setup);
/* Any thread: what runs is stopped, what waits is given back (E_UNAVAILABLE). */
void keeper_stop(struct keeper *k);
/* After on_ended: frees it. */
void keeper_join(struct keeper *k);

/* Any thread: an execution of that history was recorded. */
void keeper_note(struct keeper *k, const char *history);
/* Any thread. */
void keeper_order(struct keeper *k, struct order *order);

#endif
