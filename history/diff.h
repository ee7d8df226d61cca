/* What changed from one node to another, as nbdime tells it: operations on the notebook that the
 * first node is. docs/HISTORY.md says how they are read. The bulk lane's thread only. */
#ifndef COPPICE_HISTORY_DIFF_H
#define COPPICE_HISTORY_DIFF_H

#include "history/ask.h"
#include "history/notebook.h"

/* HISTORY_DIFF: {"from", "to", "code": [...], "outputs": [...], "variables": {...}, "files": [...]}
 */
int answer_diff(
	struct asker *a, const struct history_question *q, struct buf *ret_json, struct err *err);

/* Two notebooks, all of whose cells have ids: both lists are operations on `from`, the second on
 * outputs alone; the second may be applied before the first. */
int diff_notebooks(const struct notebook *from, const struct notebook *to, struct buf *ret_code,
	struct buf *ret_outputs, struct err *err);

/* ---- diff_cell.c ---- */

/* A list of operations that is being written. */
struct ops {
	struct buf *b;
	size_t n;
};

/* Begins the next operation: `{"op":OP,"key":KEY`; ops_end() closes it. A key of an object comes
 * with its quotes. */
void ops_begin(struct ops *ops, const char *op, const char *key);
void ops_begin_at(struct ops *ops, const char *op, size_t key);
void ops_end(struct ops *ops);

/* A patch whose operations come, in inner, between the two; without any it is taken back. */
struct patch {
	struct ops *outer;
	struct ops inner;
	size_t at, n;
};
struct patch patch_begin(struct ops *ops, const char *key);
void patch_end(struct patch *p);

/* As nbformat has it in memory: texts joined. */
void cell_join(const struct cell *c, struct buf *ret_json);
/* What changed in a cell but its outputs and counts; nothing if nothing did. */
int cell_ops(const struct cell *from, const struct cell *to, struct ops *ops, struct err *err);
/* The operations on the list of its outputs. */
int outputs_ops(const struct cell *from, const struct cell *to, struct ops *ops, struct err *err);

#endif
