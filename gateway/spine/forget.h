/* A node is forgotten in every room: history finds it and writes down what was asked; the journal
 * of its kernel, the conversations and what is remembered of its answers lose it; then history
 * rewrites itself. A process that ends on the way has its next one begin anew. Loop thread. */
#ifndef COPPICE_SPINE_FORGET_H
#define COPPICE_SPINE_FORGET_H

#include "gateway/base/base.h"
#include "gateway/base/err.h"

struct gateway;
struct history_question;

/* The question's what is HISTORY_NODE. cb from the loop, once: json is the answer, borrowed, or
 * status is as history_forget() says. */
void forget_node(struct gateway *gw, const struct history_question *question,
	void (*cb)(void *data, int status, struct bytes json, const struct err *err), void *data);
/* At the start, once everything is open: what an earlier gateway had not finished. */
void forget_resume(struct gateway *gw);

#endif
