/* Inside of the spine: one Change on its way into history. What of its contents history lacks is
 * fetched from the container, in portions, and handed on. Owned by struct files; loop thread. */
#ifndef COPPICE_SPINE_TELLING_H
#define COPPICE_SPINE_TELLING_H

#include "gateway/base/clock.h"
#include "gateway/base/err.h"

struct carried;
struct cJSON;
struct content_name;
struct desk;

/*
 *   lacks? --what history lacks--> wants --content, kept--> wants ... --> whole
 */
struct telling {
	struct desk *desk;	 /* NULL: it was let go of, and is freed by its last callback */
	char *msg_id;		 /* of an execution, or of a scan */
	char *history;		 /* as execution.history */
	struct cJSON *change;	 /* NULL: nothing has changed */
	struct carried *carried; /* whose record waits for it, or NULL */
	bool is_whole;
	struct content_name *names; /* first all, then those that are lacking */
	size_t n, asked, back;	    /* of them: asked for, come back */
	size_t n_keeping, n_gone;
	size_t portion_bytes;
	unsigned expects; /* callbacks of history */
	struct timer again;
};

/* Takes the tree. What comes of it is told by files_told(), also within the call. */
struct telling *telling_new(
	struct desk *d, const char *msg_id, const char *history, struct cJSON *change);
void telling_begin(struct telling *t);
/* on_content of the kernel's watcher. */
void telling_content(struct telling *t, const char *name, struct bytes bytes);
/* NULL is none. */
void telling_drop(struct telling *t);

#endif
