/* What is left of a conversation in the spine and in history goes. Loop thread. */
#ifndef COPPICE_DOOR_CHAT_DROP_H
#define COPPICE_DOOR_CHAT_DROP_H

struct err;

/* chat_runner.drop; data is the struct gateway. */
void chat_drop(void *data, const char *owner, const char *kernel_id,
	void (*cb)(void *data, const struct err *err), void *cb_data);

#endif
