/* State machines: a table is the only truth, one mover per machine asserts the edge and logs it.
 * Any thread that owns the struct. */
#ifndef COPPICE_BASE_SM_H
#define COPPICE_BASE_SM_H

#include "base.h"

struct log;

#define TO(state) (1u << (state))

struct sm_state {
	const char *name;
	unsigned to; /* TO(a) | TO(b) */
};

struct sm {
	const char *machine; /* "kernel" */
	const struct sm_state *states;
	unsigned count;
	unsigned state;
	const struct log *log; /* borrowed; may be NULL */
};

void sm_init(struct sm *sm, const char *machine, const struct sm_state *states, unsigned count,
	unsigned first, const struct log *log);
/* Wrong edge: assert. */
void sm_move(struct sm *sm, unsigned to);
const char *sm_name(const struct sm *sm);

#endif
