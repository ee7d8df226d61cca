/* What is learnt of a node only after its execution: variables, peak memory. It lies in the node's
 * folder of the tree that refs/coppice/state points at, by way of one parentless commit, so that
 * what was taken out of it is gone. Owns nothing. Recorder's thread, but for the first two. */
#ifndef COPPICE_HISTORY_LEARNT_H
#define COPPICE_HISTORY_LEARNT_H

#include "gateway/base/base.h"
#include "gateway/base/buf.h"
#include "history/history.h"

#define LEARNT_PATH_SIZE     64
#define LEARNT_MAX	     (256u << 10)
#define LEARNT_VARIABLES_MAX 500u

struct recorder;
struct open_repo;
struct record;
struct job;

/* "ab/cd/NODE/learnt.json" */
void learnt_path(const char *node, char ret_path[LEARNT_PATH_SIZE]);
/* A report of a guest, JSON, as a file of ours: known members of the right kind, in bounds; a
 * variable a line. What was left out makes it incomplete. */
int learnt_clean(struct bytes report, struct buf *ret_json, struct err *err);

/* Into a tree that becomes the state's at the batch's end. A node that is not there: nothing. */
int learnt_add(struct recorder *r, struct open_repo *repo, const struct record *rec,
	const struct job *job, struct err *err);
bool learnt_any(const struct recorder *r);
/* Commits of the trees, before all objects are made durable. */
int learnt_commit(struct recorder *r, struct err *err);
/* The refs, after it. */
int learnt_publish(struct recorder *r, struct err *err);
/* The batch is over, whatever came of it. */
void learnt_forget(struct recorder *r);

#endif
