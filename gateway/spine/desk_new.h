/* Inside of the spine: a desk that begins beside another (branches.c), and what desk_new.c needs of
 * desk.c. Loop thread. */
#ifndef COPPICE_SPINE_DESK_NEW_H
#define COPPICE_SPINE_DESK_NEW_H

#include "gateway/spine/desk.h"

/* Its kernel is to begin beside that of `of`, in its container, and works in folder; n_alive is
 * raised already. Then it is listed, on that branch, or was in vain. */
int desk_beside(struct desk *of, const struct kernels_start *start, const char *id,
	const char *folder, struct desk **ret, struct err *err);
void desk_is_born(struct desk *d, const char *branch);
void desk_end_unborn(struct desk *d);

/* ---- desk.c ---- */

int desk_open_journal(struct desk *d, bool goes_on, struct err *err);
void desk_timers_init(struct desk *d);
void desk_free(void *desk);
void desk_on_ended(void *desk);

#endif
