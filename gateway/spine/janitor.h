/* Ends kernels that nobody used for long (wire-contract 1.11). Loop thread. */
#ifndef COPPICE_SPINE_JANITOR_H
#define COPPICE_SPINE_JANITOR_H

struct kernels;

void janitor_open(struct kernels *ks);
void janitor_close(struct kernels *ks);

#endif
