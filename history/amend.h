/* Earlier runs of a line whose outputs a later run changes: text of a thread that came after its
 * run, updates of a display. They are loaded from the later run's parent and written into its own
 * tree. Owns what it loaded. Recorder's thread. */
#ifndef COPPICE_HISTORY_AMEND_H
#define COPPICE_HISTORY_AMEND_H

#include "gateway/base/db.h"
#include "history/record.h"
#include "history/repo.h"

#define AMENDS_MAX 16u /* earlier runs that one run may change; of the others it is counted */

struct amended {
	char msg_id[JMSG_ID_MAX];
	char folder[RUN_FOLDER_SIZE];
	uint64_t n;
	struct buf meta;
	struct outputs *outputs; /* NULL: that run is not on this line */
};

struct amends {
	struct db *db;
	struct repo *repo;
	const char *history, *parent; /* the node whose tree is amended */
	struct amended list[AMENDS_MAX];
	size_t n;
	uint64_t dropped; /* messages to runs beyond AMENDS_MAX */
};

void amends_init(struct amends *a, struct db *db, struct repo *repo, const char *history,
	const char *parent);
void amends_done(struct amends *a);

/* As struct record_others wants them; data is the amends. */
int amends_outputs(void *data, const char *msg_id, struct outputs **ret_outputs, struct err *err);
int amends_update(void *data, const char *display_id, struct bytes content, struct err *err);

/* Adds to changes (struct tree_change) what makes the folder of a run hold these outputs; meta is
 * its meta.json. parent "" or one that has no such folder: it is new. */
int run_write_outputs(struct repo *repo, const char *folder, struct outputs *outputs,
	struct outputs_counts *ret_counts, struct buf *ret_changes, struct err *err);
int run_write_file(struct repo *repo, const char *folder, const char *name, struct bytes data,
	struct buf *ret_changes, struct err *err);
/* The changed ones; ret_told gets the elements of meta.json's `amends`. */
int amends_write(struct amends *a, struct buf *ret_changes, struct buf *ret_told, struct err *err);

#endif
