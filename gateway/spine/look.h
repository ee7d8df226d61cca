/* Where a kernel stands that an earlier gateway had: history is asked once, so that its model says
 * so before anything more is recorded. Loop thread. */
#ifndef COPPICE_SPINE_LOOK_H
#define COPPICE_SPINE_LOOK_H

struct desk;

void look_ask(struct desk *d);
/* The desk goes: the answer is nobody's. */
void look_drop(struct desk *d);

#endif
