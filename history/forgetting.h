/* Part of history.h, which includes it: what one execution said is taken out of its history
 * (docs/decisions/0022). Loop thread. */
#ifndef COPPICE_HISTORY_FORGETTING_H
#define COPPICE_HISTORY_FORGETTING_H

#include "history/history.h"

struct forgetting;

struct history_run_found {
	const char *kernel_id, *msg_id; /* of its execute_request */
	struct bytes code;		/* empty: it was forgotten already */
};

struct history_rewritten {
	char was[HISTORY_NODE_SIZE], now[HISTORY_NODE_SIZE];
};

struct history_forgotten {
	int status; /* E_NOT_FOUND, E_CONFLICT, E_INVALID (the root): nothing was begun; else it is
		     * gone on with by the next process, or when it is asked for again */
	const struct err *err;
	struct bytes json; /* {history, node, rewritten: [{old, new}], same_code: [node],
			    * shown_in: [node]} */
	const struct history_rewritten *rewritten; /* its nodes have these ids now, also if status
						    * is not 0 */
	size_t n_rewritten;
};

/* Both from the loop; what they are given is borrowed for the call. */
struct history_forget_watcher {
	/* It was found, and what was asked is written down. What else holds of its run is to be
	 * forgotten now; then history_forget_rest() or history_forget_leave(). */
	void (*on_found)(void *data, struct forgetting *f, const struct history_run_found *what);
	/* Once, last, unless it was left. */
	void (*on_done)(void *data, const struct history_forgotten *told);
	void *data;
};

/* The question's what is HISTORY_NODE. Copies the texts. Runs go on being recorded; those that
 * come meanwhile wait for it. */
void history_forget(struct histories *h, const struct history_question *question,
	const struct history_forget_watcher *watcher);
/* E_UNAVAILABLE: everything ends, it is left. */
int history_forget_rest(struct forgetting *f, struct err *err);
void history_forget_leave(struct forgetting *f);
/* What an earlier process was asked and had not finished: each is to be asked for again. Right
 * after the opening; blocks. */
int histories_unfinished(struct histories *h,
	void (*on_one)(void *data, const char *history, const char *node), void *data,
	struct err *err);

#endif
