/* A tree of nodes as lines for a terminal, like `git log --graph`: newest first, one column a line
 * of executions. Main thread. */
#ifndef COPPICE_CLI_GRAPH_H
#define COPPICE_CLI_GRAPH_H

#include "gateway/base/buf.h"

#define GRAPH_COLUMNS 32u /* lines that are open at once; more are drawn in the last */

struct graph_node {
	const char *id, *parent; /* parent NULL or "": the root */
	const char *text;	 /* stands behind the drawing */
};

/* nodes: each before its parent. */
void graph_draw(const struct graph_node *nodes, size_t n, struct buf *out);

#endif
