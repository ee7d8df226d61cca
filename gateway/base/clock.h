/* Time is an input. One clock per loop: its "now" is constant within a loop turn; timers fire from
 * the loop. The real one stands on uv timers, the fake one (tests/lib/fake_clock.h) fires timers in
 * order without waiting. Loop thread only. */
#ifndef COPPICE_BASE_CLOCK_H
#define COPPICE_BASE_CLOCK_H

#include "list.h"

struct uv_loop_s;
struct clock;

struct timer {
	struct list link; /* in clock's list, in order of due time; own while stopped */
	uint64_t due_ms;
	void (*fire)(struct timer *t);
};

/* Opens on a loop; closing is asynchronous and calls back exactly once, from the loop. */
struct clock *clock_new(struct uv_loop_s *loop);
void clock_close(struct clock *c, void (*closed)(void *data), void *data);

uint64_t clock_now_ms(const struct clock *c); /* monotonic */
int64_t clock_wall_us(const struct clock *c); /* since 1970, UTC */

void timer_init(struct timer *t, void (*fire)(struct timer *t));
/* (Re)starts; fires once, from the loop, never inside this call. */
void timer_start(struct clock *c, struct timer *t, uint64_t delay_ms);
void timer_stop(struct clock *c, struct timer *t);
bool timer_running(const struct timer *t);

/* "2026-11-30T08:54:23.123456Z": six digits and Z, always (JS-proxy's fixed pattern). */
#define CLOCK_STAMP_SIZE 28
void clock_stamp(int64_t wall_us, char ret_text[CLOCK_STAMP_SIZE]);
/* "2026-11-30T08:54:23.123456Z", or with a zone like +01:00. False: it is none, or of an unknown
 * zone. */
bool clock_stamp_read(const char *text, int64_t *ret_wall_us);

#endif
