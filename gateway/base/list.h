/* Intrusive doubly linked list with a head; a node not in a list points to itself. Header only. */
#ifndef COPPICE_BASE_LIST_H
#define COPPICE_BASE_LIST_H

#include "base.h"

struct list {
	struct list *next, *prev;
};

static inline void list_init(struct list *l)
{
	l->next = l->prev = l;
}

static inline bool list_empty(const struct list *l)
{
	return l->next == l;
}

static inline void list_append(struct list *head, struct list *node)
{
	node->prev = head->prev;
	node->next = head;
	head->prev->next = node;
	head->prev = node;
}

static inline void list_remove(struct list *node)
{
	node->prev->next = node->next;
	node->next->prev = node->prev;
	list_init(node);
}

#define LIST_EACH(at, head) for (struct list *at = (head)->next; at != (head); at = at->next)
/* The body may remove `at`. */
#define LIST_EACH_SAFE(at, head)                                                                   \
	for (struct list *at = (head)->next, *at##_next = at->next; at != (head);                  \
		at = at##_next, at##_next = at->next)

#endif
