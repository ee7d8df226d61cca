/* A repair begins where the run that failed began: the kernel goes back, whoever waits for that may
 * have gone by then. Loop thread. */
#ifndef COPPICE_ADAPTER_BACK_H
#define COPPICE_ADAPTER_BACK_H

#include "frontend-adapter/conversation.h"

struct back_wait;

/* To before the run of that msg_id. cb from the loop, once, unless it is left: told, borrowed, is
 * {restored_by, report}, or NULL: it was there already; with err the kernel is as that run left it.
 */
struct back_wait *back_ask(const struct conversation *c, const char *msg_id,
	void (*cb)(void *data, const struct cJSON *told, const struct err *err), void *data);
/* cb is not called any more. */
void back_leave(struct back_wait *w);

#endif
