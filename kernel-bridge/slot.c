#include "kernel-bridge/slot.h"

/*   creating --on_warm--> warm --start--> taken     any --remove--> ending  */
static const struct sm_state slot_states[SLOT_STATES] = {
	[SLOT_CREATING] = {"creating", TO(SLOT_WARM) | TO(SLOT_ENDING)},
	[SLOT_WARM] = {"warm", TO(SLOT_TAKEN) | TO(SLOT_ENDING)},
	[SLOT_TAKEN] = {"taken", TO(SLOT_ENDING)},
	[SLOT_ENDING] = {"ending", 0},
};

void slot_init(struct slot *s, struct engine *e, const struct slot_watcher *watcher,
	const struct log *log, struct list *slots)
{
	s->engine = e;
	s->watcher = *watcher;
	sm_init(&s->sm, "slot", slot_states, SLOT_STATES, SLOT_CREATING, log);
	list_append(slots, &s->link);
}

void slot_move(struct slot *s, enum slot_state to)
{
	sm_move(&s->sm, to);
}

enum slot_state slot_state(const struct slot *s)
{
	return (enum slot_state)s->sm.state;
}

void slot_done(struct slot *s)
{
	list_remove(&s->link);
}
