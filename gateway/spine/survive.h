/* Kernels that outlive the gateway: a row each in DATA_DIR/kernels/ID.json (docs/decisions/0009),
 * what is mapped beside the journal (live.h), and how the next gateway makes desks of them. Loop
 * thread. */
#ifndef COPPICE_SPINE_SURVIVE_H
#define COPPICE_SPINE_SURVIVE_H

#include "gateway/spine/kernels.h"

/* Writes the row anew, with rename. A kernel that cannot outlive us has none while it lives. */
void survive_record(struct desk *d);
/* Nor is the row left that it had while it was dead. */
void survive_ready(const struct desk *d);
void survive_forget(const struct desk *d);
/* Opens what is mapped; without it the kernel works, only less outlives us. */
void survive_open(struct desk *d, bool goes_on);
void survive_remove(const struct desk *d);
/* After the replay of an adopted kernel. */
void survive_settled(struct desk *d);
/* Lets the kernel live on, or ends it if it cannot. A dead one loses its place and stays dead. */
void survive_leave(struct desk *d);

#endif
