/* Inside of the spine: a branch begins at a node beside the kernels that run, as a kernel of its
 * own in the container of the one that was parked there, or as a name alone (docs/decisions/0029).
 * What does not succeed leaves nothing. Loop thread. */
#ifndef COPPICE_SPINE_BRANCHES_H
#define COPPICE_SPINE_BRANCHES_H

#include "gateway/spine/parks.h"

struct err;
struct kernels;

struct branch_order {
	const char *history;	/* id, name, or the kernel that is in it */
	const char *at;		/* as http-api.md names nodes; NULL: HEAD */
	const char *name;	/* NULL or "": main.2, main.3 ... */
	bool without_kernel;	/* the name alone */
	bool own_container;	/* refused: that needs snapshots */
	enum fidelity accept;	/* the least that will do */
	const struct desk *who; /* whose HEAD and In[] are meant, or NULL: the one that ran last */
};

/* cb from the loop, once. answer, borrowed: {name, node, kernel, restored_by, report}; of a failure
 * {report} (E_PARTIAL) or NULL. Besides: E_CONFLICT the name is taken; E_CAPACITY as many live
 * there as may, or no kernel has a place; E_NOT_FOUND, E_AMBIGUOUS the history or node; E_INVALID;
 * E_UNAVAILABLE. One at a time of an owner. */
void branch_begin(struct kernels *ks, const struct owner *owner, const struct branch_order *order,
	void (*cb)(void *data, const struct cJSON *answer, const struct err *err), void *data);
/* Something was recorded: they may go on. */
void branches_look(struct kernels *ks);
/* The gateway ends: those on their way are given up. */
void branches_end(struct kernels *ks);
/* For history_question.stands: kernels that have run nothing since they came to where they are. */
void branches_standing(const struct kernels *ks, const struct owner *owner, struct buf *ret_text);

#endif
