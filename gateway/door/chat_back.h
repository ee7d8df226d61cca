/* chat_runner.back: the kernel of a conversation goes back to before one of its runs. Loop thread.
 */
#ifndef COPPICE_DOOR_CHAT_BACK_H
#define COPPICE_DOOR_CHAT_BACK_H

#include "frontend-adapter/adapter.h"

void chat_back(void *gateway, const struct chat_back *back);

#endif
