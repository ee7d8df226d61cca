#include "gateway/base/sm.h"

#include <assert.h>

#include "gateway/base/log.h"

void sm_init(struct sm *sm, const char *machine, const struct sm_state *states, unsigned count,
	unsigned first, const struct log *log)
{
	assert(count <= 32 && first < count);
	*sm = (struct sm){machine, states, count, first, log};
}

void sm_move(struct sm *sm, unsigned to)
{
	assert(to < sm->count);
	assert(sm->states[sm->state].to & TO(to));
	if (sm->log)
		log_debug(sm->log, "moved machine=%s from=%s to=%s", sm->machine, sm_name(sm),
			sm->states[to].name);
	sm->state = to;
}

const char *sm_name(const struct sm *sm)
{
	return sm->states[sm->state].name;
}
