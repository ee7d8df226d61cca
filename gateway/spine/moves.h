/* Inside of the spine: a kernel goes back to another node of its history (docs/decisions/0025).
 * Requests of clients wait meanwhile; what does not succeed has moved nothing. Loop thread. */
#ifndef COPPICE_SPINE_MOVES_H
#define COPPICE_SPINE_MOVES_H

#include "gateway/spine/parks.h"

struct err;
struct kernel_death;
struct request;

struct move_order {
	const char *node;      /* as http-api.md names nodes; NULL: the one before (undo) */
	const char *branch;    /* of the line that begins; NULL: main.2, main.3 ... */
	int64_t state_version; /* that the caller knows; negative: any */
	enum fidelity accept;  /* the least that will do */
	bool interrupt;	       /* a cell that runs is ended */
	struct jmsg *asker;    /* on whose page it is told, refusals too; NULL: on all of them */
};

/* cb from the loop, once. answer, borrowed: {node, branch, state_version, restored_by, report,
 * duration_ms}; of a failure {state_version} (E_STALE), {report} (E_PARTIAL) or NULL. Besides:
 * E_BUSY a cell runs or another move is under way; E_NOT_FOUND, E_AMBIGUOUS the node;
 * E_INVALID; E_GONE the kernel was ended or restarted. */
void desk_checkout(struct desk *d, const struct move_order *order,
	void (*cb)(void *data, const struct cJSON *answer, const struct err *err), void *data);

/* E_INVALID: no branch can be called so. NULL and "" are none. */
int move_check_branch(const char *name, struct err *err);
/* A cell asked for it, by %coppice: carried out once that cell has ended. way: history's answer to
 * HISTORY_WAY. E_PARTIAL, E_BUSY, E_INVALID: refused, with a sentence for the cell. */
int move_file(struct desk *d, const struct cJSON *way, struct err *err);
/* r, which has an execution, leaves the queue. */
void move_cell_over(struct desk *d, const struct request *r);
/* Something was recorded, or ended: a move may go on. */
void move_look(struct desk *d);
/* The kernel died. True: what follows from that waits for the move's end. */
bool move_takes_death(struct desk *d);
/* It is ended, or restarted by somebody. */
void move_cancel(struct desk *d, const char *why);

#endif
