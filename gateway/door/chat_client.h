/* Runs the code of conversations: for each run a client of the spine, like a page's. Loop thread.
 */
#ifndef COPPICE_DOOR_CHAT_CLIENT_H
#define COPPICE_DOOR_CHAT_CLIENT_H

#include "frontend-adapter/adapter.h"

/* Its data is the struct gateway. */
extern const struct chat_runner chat_client_runner;

#endif
