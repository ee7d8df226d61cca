/* Inside of the spine: how long a cell may take (docs/decisions/0031). One absolute deadline for
 * each execution, from the moment it is sent; it counts while the cell waits for input too. Then it
 * is interrupted; if it does not end in its grace it is killed with all that it started, and the
 * kernel goes back to where it stood before. Loop thread. */
#ifndef COPPICE_SPINE_LIMITS_H
#define COPPICE_SPINE_LIMITS_H

#include "gateway/base/base.h"

#define LIMIT_GRACE_MS 2000u

struct desk;
struct execution;

void limit_init(struct desk *d);
/* It is with the kernel, or was sent by an earlier gateway: its time runs. */
void limit_sent(struct execution *x);
/* Before its idle is passed on: what came of a deadline or an interrupt is told on its page. */
void limit_tells(struct execution *x);
void limit_done(struct execution *x);
/* Deadlines that came while the kernel was not to be spoken to are seen to now. */
void limit_look(struct desk *d);
/* Somebody else interrupts what runs. */
void limit_interrupted(struct desk *d);
/* The kernel stands where that execution left it; only if it is not known better. */
void limit_stands(struct desk *d, const char *msg_id);
/* The kernel died. True: of this, and what follows is under way. */
bool limit_takes_death(struct desk *d);
/* A kernel that was killed, and is not yet what comes after. */
bool limit_holds(const struct desk *d);
/* Of these: it is not known yet what is left of it, so nothing may begin there. */
bool limit_ends_line(const struct desk *d);
/* It is ready, whichever process that is. */
void limit_ready(struct desk *d);
/* An earlier gateway had killed it. */
void limit_restore(struct desk *d);
/* It is ended, or restarted by somebody. */
void limit_cancel(struct desk *d);
/* The same, where the next gateway goes on with it. */
void limit_leave(struct desk *d);

#endif
