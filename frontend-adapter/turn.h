/* One turn of a conversation: from what a person said to the end of the answer. Loop thread. */
#ifndef COPPICE_ADAPTER_TURN_H
#define COPPICE_ADAPTER_TURN_H

#include "frontend-adapter/conversation.h"

/* model: the model is asked; else content is code. c->turn is set until the end, which comes from
 * the loop. */
int turn_begin(struct conversation *c, const struct chat_message *message, struct err *err);
/* The person wants it to stop: what runs is interrupted, the model is not asked again. */
void turn_stop(struct conversation *c);
/* What runs in it, or ran last, became that node, so long after its end. */
void turn_recorded(
	struct conversation *c, const char *msg_id, const char *node, uint64_t record_ms);
/* As chats_renamed(): the node of what runs, or ran last. */
void turn_renamed(struct conversation *c, const char *(*now_of)(const void *data, const char *node),
	const void *data);
/* The conversation goes: nothing is told any more. */
void turn_drop(struct conversation *c);

#endif
