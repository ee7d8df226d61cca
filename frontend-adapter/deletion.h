/* A conversation goes: its kernels and histories, one after the other, then its files. Until then
 * it is there, so that a deletion that was broken off is asked for again. Loop thread. */
#ifndef COPPICE_ADAPTER_DELETION_H
#define COPPICE_ADAPTER_DELETION_H

#include "frontend-adapter/conversation.h"

/* cb from the loop, once. */
void deletion_begin(
	struct conversation *c, void (*cb)(void *data, const struct err *err), void *data);
/* The conversations are closed: deletions that are under way end without them. */
void deletions_leave(struct chats *cs);

#endif
