/* What a run's Change makes of the folder `files/` of its node, and the files.json that tells it.
 * The recorder's thread. */
#ifndef COPPICE_HISTORY_FILES_H
#define COPPICE_HISTORY_FILES_H

#include "history/change.h"
#include "history/recorder_parts.h"

#define FILES_JSON     "files.json" /* in the folder of the run */
#define FILES_JSON_MAX (2 * CHANGE_MAX)

struct files_made {
	char tree[HISTORY_NODE_SIZE]; /* the folder */
	uint64_t changed;	      /* paths that differ from the parent's */
	char summary[SUMMARY_SIZE];   /* "files: a.csv, b.csv" */
	struct buf json;	      /* files.json */
};

/* ret is made by this call, files_made_done() by the caller whatever it returns. E_INVALID,
 * E_TOO_BIG: it is no Change; nothing was written. */
int files_make(struct recorder *r, struct open_repo *repo, const char *parent, struct bytes change,
	struct files_made *ret, struct err *err);
void files_made_done(struct files_made *made);

#endif
