/* Trees (cJSON's) from text and back: what clients, kernels, models and engines sized, and can
 * therefore fail. What a tree is built of in between (nodes, keys, texts that are there already)
 * is xcalloc's kind of memory: without it the process ends rather than answer with half a tree.
 * Any thread. */
#ifndef COPPICE_BASE_JSON_TREE_H
#define COPPICE_BASE_JSON_TREE_H

#include "base.h"
#include "err.h"

struct cJSON;

/* Before the first tree and the first thread. Without it cJSON's own allocation is in use. */
void json_tree_init(void);
/* The caller owns the tree, cJSON_Delete(). NULL: E_INVALID, text is no JSON; E_NOMEM. What follows
 * the value is not looked at; ret_used may be NULL. */
struct cJSON *json_parse(struct bytes text, size_t *ret_used, struct err *err);
/* On one line; the caller frees it, free(). NULL: E_NOMEM; a tree of NULL counts as such. */
char *json_print(const struct cJSON *tree, struct err *err);

#endif
