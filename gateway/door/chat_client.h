/* Runs the code of conversations: for each run a client of the spine, like a page's. Loop thread.
 */
#ifndef COPPICE_DOOR_CHAT_CLIENT_H
#define COPPICE_DOOR_CHAT_CLIENT_H

#include "frontend-adapter/adapter.h"

struct desk;
struct gateway;

/* Its data is the struct gateway. */
extern const struct chat_runner chat_client_runner;
/* The kernel of that id, of the owner of that name. */
int chat_client_find(struct gateway *gw, const char *owner, const char *kernel_id,
	struct desk **ret, struct err *err);

#endif
