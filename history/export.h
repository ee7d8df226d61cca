/* A node as a notebook: what was run on the line from the root to it, with the outputs as they are
 * seen from there. The bulk lane's thread only. */
#ifndef COPPICE_HISTORY_EXPORT_H
#define COPPICE_HISTORY_EXPORT_H

#include "history/ask.h"
#include "history/notebook.h"

struct exported {
	char node[HISTORY_NODE_SIZE];
	struct history_found history;
	struct notebook nb;
};

/* The node that a question names, as its notebook. e->nb is made by this call, notebook_done() by
 * the caller whatever it returns. */
int export_node(
	struct asker *a, const struct history_question *q, struct exported *ret, struct err *err);
/* HISTORY_EXPORT: the file's name, a newline, the file. */
int answer_export(
	struct asker *a, const struct history_question *q, struct buf *ret_file, struct err *err);

/* Where a run's file lies that only an import has: what a notebook holds beside code and outputs.
 */
#define NOTEBOOK_FILE "notebook.json"

#endif
