/* A notebook or a script as a history: a repository of its own, written beside the others bit by
 * bit and put in place at once. Its code cells are its executions, of which nobody saw one; all
 * else that the notebook holds lies beside them, so that an export has it again. The bulk lane's
 * thread only.
 */
#ifndef COPPICE_HISTORY_IMPORT_H
#define COPPICE_HISTORY_IMPORT_H

#include "history/ask.h"

#define IMPORT_NAME_MAX 200u /* bytes of a name */

struct importing;

/* A commit of it; the root is the first. */
struct imported_node {
	char node[HISTORY_NODE_SIZE], parent[HISTORY_NODE_SIZE];
	uint64_t n; /* of its run, 0 for the root */
};

/* HISTORY_IMPORT; texts and file of q are borrowed until the end. E_INVALID, E_TOO_BIG: the file.
 */
int import_begin(
	struct asker *a, const struct history_question *q, struct importing **ret, struct err *err);
/* Some more of it, so little that a question can wait for it. 1: there is more; 0: it is in place,
 * and the index does not have it yet; E_*. */
int import_go_on(struct importing *im, struct err *err);
const char *import_id(const struct importing *im);
/* The caller's from now on: struct imported_node, parents first. */
struct buf import_nodes(struct importing *im);
/* What is not in place is removed. */
void import_free(struct importing *im);

#endif
