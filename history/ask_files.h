/* Answers about the working files of nodes. The bulk lane's thread only. */
#ifndef COPPICE_HISTORY_ASK_FILES_H
#define COPPICE_HISTORY_ASK_FILES_H

#include "history/ask.h"
#include "history/repo.h"

/* HISTORY_FILES, see working_files.h. */
int answer_files(
	struct asker *a, const struct history_question *q, struct buf *ret_json, struct err *err);

/* `files` of a node: what it changed of its parent's, `[{path, bytes, digest, change}]`; of what is
 * not kept, `lost` says why. */
int files_put_node(struct repo *repo, const char *parent, const char *node, struct buf *ret_json,
	struct err *err);
/* `files` of a difference: `[{path, change, from, to}]`, each of the two {mode, bytes, digest} or
 * null. */
int files_put_diff(
	struct repo *repo, const char *from, const char *to, struct buf *ret_json, struct err *err);
/* Its folder is known. */
int files_known(struct repo *repo, const char *node, bool *ret_known, struct err *err);
/* What a person is told of a node that is parked or not, whose folder is known or not. */
const char *files_note(bool parked, bool has_files);

#endif
