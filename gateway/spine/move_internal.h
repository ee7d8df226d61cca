/* What the files of one move share: moves.c has its life, move_way.c what history says of the way,
 * move_files.c the working folder. Loop thread. */
#ifndef COPPICE_SPINE_MOVE_INTERNAL_H
#define COPPICE_SPINE_MOVE_INTERNAL_H

#include "gateway/base/sm.h"
#include "gateway/spine/desk.h"
#include "gateway/spine/lay_down.h"
#include "gateway/spine/moves.h"

/*
 *   waits --no cell runs--> records --all is recorded--> asks --the way--+--> scans --+
 *                              ^                                         |      |     |
 *                              +---- the folder had changed: a node -----|------+     |
 *                                                                        |            v
 *   over <--switched-- revives <--in place-- lays <--what it holds-- (as before) <- fetches
 *                         ^---- nothing of files is known ----------------+
 *
 *   any --too late, refused, partial, stale, the kernel is ended: nothing moved--> over
 *
 * scans, fetches and lays: only where the container tells of files.
 */
enum move_state {
	MOVE_WAITS,
	MOVE_RECORDS,
	MOVE_ASKS,
	MOVE_SCANS,
	MOVE_FETCHES,
	MOVE_LAYS,
	MOVE_REVIVES,
	MOVE_OVER,
	MOVE_STATES
};

struct move {
	struct sm sm;
	struct desk *desk; /* NULL: it was let go of; freed once nobody calls back any more */
	struct timer timer;
	char *node, *branch;
	int64_t known_version;
	enum fidelity accept;
	struct jmsg *asker; /* the cell that asked for it, or NULL */
	uint64_t began_ms;
	unsigned expects; /* calls back that history or the bridge owe */
	bool died;	  /* the kernel, on the way; what follows from it waits */
	struct cJSON *way, *report;
	struct parked *park; /* a copy: it may be gone meanwhile */
	struct stand_at to;
	bool scanned, laid;
	struct cJSON *entries; /* what the folder is to hold */
	struct lay_down *laying;
	void (*cb)(void *data, const struct cJSON *answer, const struct err *err);
	void *data;
};

/* moves.c */
/* Nothing has moved; m is gone. */
void move_fail(struct move *m, const struct err *err);
/* A callback that was owed after m was let go of. */
void move_free(struct move *m);
/* What the folder was is being recorded: then the way is asked for again. */
void move_record(struct move *m);
void move_revive(struct move *m);

/* move_way.c */
/* Of m->way: whether it can be gone; sets park, report and to. */
int way_look(struct move *m, struct err *err);
/* Those three, and the way, are forgotten. */
void way_drop(struct move *m);

/* move_files.c */
/* From `asks` on: ends in move_record(), move_revive() or move_fail(). */
void move_files(struct move *m);
/* The folder stays as it is now (keep), or is as it was before. */
void move_files_end(struct move *m, bool keep);

#endif
