/* Waiting for a place for a kernel: its end comes though whoever waits may have gone. Loop thread.
 */
#ifndef COPPICE_ADAPTER_PLACE_H
#define COPPICE_ADAPTER_PLACE_H

#include "frontend-adapter/adapter.h"

struct place_wait;

/* After a start that found no place. NULL: nobody may wait. cb from the loop, once, unless it is
 * left. */
struct place_wait *place_await(
	const struct chats_setup *setup, void (*cb)(void *data, const struct err *err), void *data);
/* cb is not called any more. */
void place_leave(struct place_wait *w);

#endif
