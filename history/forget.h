/* Forgetting a node, the part of git and index, in two halves: it is found and what was asked is
 * written down; then, once the other rooms have forgotten its run, it and all that came after it
 * are written again without it, and what was is removed for good. Each step may be the last of a
 * process: taken again from the beginning they come to the same. Recorder's thread. */
#ifndef COPPICE_HISTORY_FORGET_H
#define COPPICE_HISTORY_FORGET_H

#include "gateway/base/buf.h"
#include "gateway/base/jmsg.h"
#include "gateway/base/list.h"
#include "history/history.h"
#include "history/recorder.h"

#define FORGETS_MAX	  16u /* at once */
#define FORGET_SAME_MAX	  64u
#define FORGOTTEN_CODE	  "# forgotten\n"
#define FORGOTTEN_SUBJECT "(forgotten)"
#define TRAILER_WAS	  "Was" /* Coppice-Was: the id that the node had before */

struct forgetting {
	struct list link;
	struct histories *h;
	struct history_question question; /* texts point into text */
	char *text;
	struct history_forget_watcher watcher;
	bool found; /* the first half is done */
	int status;
	struct err err;
	/* Found. */
	char history[64], node[HISTORY_NODE_SIZE];
	char noted[HISTORY_NODE_SIZE]; /* the id by which it is written down */
	char kernel_id[128], msg_id[JMSG_ID_MAX];
	uint64_t n;
	bool is_forgotten; /* already; what may be left of it is removed */
	struct buf code;
	/* Come of it. */
	struct buf rewritten;			       /* struct history_rewritten, parents first */
	char same[FORGET_SAME_MAX][HISTORY_NODE_SIZE]; /* other nodes with the same code */
	size_t n_same;
	char shown[FORGET_SAME_MAX][HISTORY_NODE_SIZE]; /* later nodes that may show what it said */
	size_t n_shown;
	struct buf json;
};

void forgetting_init(struct forgetting *f);
void forgetting_free(struct forgetting *f);

void forget_find(struct recorder *r, struct forgetting *f);
void forget_rest(struct recorder *r, struct forgetting *f);

/* Of the trailers of a commit's message: each id that the node had before. */
int forget_each_was(const char *message,
	int (*on_was)(void *data, const char *node, struct err *err), void *data, struct err *err);

/* What was asked of an earlier process and is not done, by the files that say so. Blocks. */
int forgets_unfinished(const char *folder,
	void (*on_one)(void *data, const char *history, const char *node), void *data,
	struct err *err);

/* ---- forget_text.c: what stands in the place of what was ---- */

/* The message of the forgotten node, or (forgotten false) of one that came after it. */
int forget_message(const char *message, const char *node, bool forgotten, struct buf *ret_text,
	struct err *err);
/* meta.json of the forgotten run: what it was, not what it said. */
int forget_meta(struct bytes meta, struct buf *ret_json, struct err *err);
bool forget_is_forgotten(struct bytes meta);
/* meta.json of a later run, without its amending of that one; *ret_changed: it had some. */
int forget_amending(struct bytes meta, const char *msg_id, struct buf *ret_json, bool *ret_changed,
	struct err *err);

#endif
