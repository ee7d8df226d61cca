/* A POST that starts a kernel waits for a place if there is none. Loop thread. */
#ifndef COPPICE_DOOR_START_WAIT_H
#define COPPICE_DOOR_START_WAIT_H

#include "gateway/door/call.h"

/* Answers r with an error; for want of a place, with Retry-After. */
void start_refuse(struct call *r, const struct err *err);
/* True: r is kept, and again is called once there is a place; then again answers. False: err is not
 * about places, or nobody may wait. Takes body over if it is true. */
bool start_wait(struct call *r, struct cJSON *body, const struct err *err,
	void (*again)(struct call *r, struct cJSON *body));

#endif
