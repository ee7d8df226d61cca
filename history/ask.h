/* Answers about histories: the shapes of http-api.md, from the index, with code and outputs from
 * git. Owns its connection. The bulk lane's thread only. */
#ifndef COPPICE_HISTORY_ASK_H
#define COPPICE_HISTORY_ASK_H

#include "gateway/base/buf.h"
#include "gateway/base/db.h"
#include "history/history.h"

struct cJSON;

struct asker {
	struct db *db;
	const char *folder;
	const char *parked; /* the present question's */
	const char *stands;
};

int asker_open(struct asker *a, const char *folder, struct err *err);
void asker_close(struct asker *a);
/* E_* as history_ask() says them. */
int asker_answer(struct asker *a, const struct history_question *question, struct buf *ret_json,
	struct err *err);

/* "exact" or "partial" if that run is among the question's parked ones, else NULL. */
const char *asker_parked(const struct asker *a, const char *msg_id);

/* Into the object: how much of the state after that run comes back, and how. */
void asker_add_fidelity(const struct asker *a, const char *msg_id, struct cJSON *object);

/* ---- ask_branches.c ---- */

/* The member `branches`. */
int answer_branches(struct asker *a, const char *history, struct cJSON *answer, struct err *err);

/* ---- way.c ---- */

int answer_way(struct asker *a, const struct history_question *question, struct buf *ret_json,
	struct err *err);

/* ---- names.c ---- */

struct history_found {
	char id[64], name[1024];
};

/* By id, by a name that one history of the owner has, or by the id of a kernel that goes on in it.
 */
int find_history(struct db *db, const struct history_question *question,
	struct history_found *ret_found, struct err *err);
/* Where the kernel in question stands. 1: it is that; 0: nothing is recorded. */
int find_head(struct db *db, const char *history, const struct history_question *question,
	char ret_node[HISTORY_NODE_SIZE], struct err *err);
/* As http-api.md names nodes. */
int find_node(struct db *db, const char *history, const struct history_question *question,
	char ret_node[HISTORY_NODE_SIZE], struct err *err);

#endif
