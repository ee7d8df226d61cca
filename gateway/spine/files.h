/* Inside of the spine: the working folder of a kernel on its way into nodes (docs/decisions/0028).
 * An execution's record, and nothing else, waits for what its container tells of it. Owned by a
 * desk. Loop thread.
 *
 *   reply: changed --on_files--> telling: contents history lacks --> carried by the run's facts
 *
 * What was told is kept as a whole too (told_folder.h): where a run does not follow on what was
 * recorded last, because a Change was not told in time, the process or the history is another, it
 * carries all of the folder instead of what changed.
 */
#ifndef COPPICE_SPINE_FILES_H
#define COPPICE_SPINE_FILES_H

#include "gateway/base/clock.h"
#include "gateway/base/crypto.h"
#include "gateway/base/list.h"
#include "gateway/spine/told_folder.h"
#include "gateway/spine/telling.h"

struct carried;
struct request;

struct files {
	struct folder folder;  /* as it was told last */
	uint64_t place, epoch; /* whose it is, and whose it was recorded for last */
	uint64_t turn;	       /* grows when what follows is another process's or history's */
	bool known;	       /* else what it held before is not known: a full Change is to come */
	bool synced;	       /* a run that follows has that folder, but for what it changes */
	struct telling *now;   /* the Change that comes in, or waits for its execution's end */
	struct list carried;
	size_t carried_bytes;
	struct timer settling;
	void (*settle)(struct desk *d); /* the end that waits, or NULL */
	struct {
		char id[UUID_SIZE]; /* "": none is under way */
		struct timer patience;
		bool is_asked;
		/* NULL: it is for the folder alone. */
		void (*cb)(void *data, bool is_recorded, const struct err *err);
		void *data;
	} scan;
};

void files_init(struct desk *d);
/* No run carries anything any more. */
void files_done(struct desk *d);
/* kernel_watcher's. */
void files_on_files(void *desk, const char *msg_id, struct bytes change);
void files_on_content(void *desk, const char *name, struct bytes bytes);
/* It is whole, or err says why it never will be. */
void files_told(struct telling *t, const struct err *err);

/* An earlier gateway was told of it; then, once its kernel is heard: it is asked for anew. */
void files_adopted(struct desk *d);
void files_ask(struct desk *d);
/* The next run goes to another history. */
void files_turn(struct desk *d);
/* What a run carried is not recorded: what the later ones build on is missing. */
void files_lost(struct desk *d);
/* The kernel is to be ended. True: what it told of its last cells is on its way; cb from the loop,
 * once it is there, or not within a moment. */
bool files_settle(struct desk *d, void (*cb)(struct desk *d));
/* Nobody tells anything any more. */
void files_give_up(struct desk *d, const char *why);
bool files_are_on(const struct desk *d);
/* What changed while no cell ran becomes a node. cb from the loop, once; is_recorded: there is a
 * range for it, which is to be waited for. E_UNAVAILABLE, E_TIMEOUT: it is not known. */
void files_scan(struct desk *d, void (*cb)(void *data, bool is_recorded, const struct err *err),
	void *data);
/* The cb is not wanted any more. */
void files_scan_cancel(struct desk *d);
/* That is what the folder holds now, and so does the node where the process begins. */
void files_laid(struct desk *d, const struct cJSON *entries);

/* ---- what a run carries: of its own range ---- */
/* r is over. NULL: it has nothing to say of files. */
struct carried *files_carry(struct request *r);
bool carried_is_ready(const struct carried *c);
/* What is added to its facts, beginning with a comma; "": nothing. */
const char *carried_text(const struct carried *c);
/* NULL is none. */
void carried_free(struct carried *c);

#endif
