/* A clock without waiting: gateway/base/clock.h's functions over a time that only tests move. */
#ifndef COPPICE_FAKE_CLOCK_H
#define COPPICE_FAKE_CLOCK_H

#include "gateway/base/clock.h"

/* Moves time on, firing what falls due in order of due time; callbacks may start timers. */
void fake_clock_advance(struct clock *c, uint64_t ms);
/* Milliseconds until the next timer, or UINT64_MAX. */
uint64_t fake_clock_next(const struct clock *c);

#endif
