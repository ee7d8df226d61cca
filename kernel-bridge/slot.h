/* The slot machine: a place for one kernel at a time, whichever engine runs it. Owned by its
 * engine. Loop thread.
 *
 *   creating --on_warm--> warm --start--> taken
 *       \__________________ \______________ \___ remove --> ending
 */
#ifndef COPPICE_BRIDGE_SLOT_H
#define COPPICE_BRIDGE_SLOT_H

#include "kernel-bridge/engine.h"

enum slot_state { SLOT_CREATING, SLOT_WARM, SLOT_TAKEN, SLOT_ENDING, SLOT_STATES };

/* Sets engine, watcher and machine (state creating) and appends to the engine's list of slots. */
void slot_init(struct slot *s, struct engine *e, const struct slot_watcher *watcher,
	const struct log *log, struct list *slots);
/* The one mover; a wrong edge is an assert. */
void slot_move(struct slot *s, enum slot_state to);
enum slot_state slot_state(const struct slot *s);
/* Leaves the list; the engine frees the memory. */
void slot_done(struct slot *s);

#endif
