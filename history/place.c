#include "history/recorder_parts.h"
#include "history/stand.h"

#include <stdio.h>
#include <string.h>

#include "gateway/base/clock.h"
#include "gateway/base/crypto.h"

#define PROMISES_MAX 64u

/* A history without a name is called by its id's first digits. */
static void history_name(const struct history_run *run, char ret_name[256])
{
	if (run->name && run->name[0])
		(void)copy_text(ret_name, 256, run->name, strlen(run->name)); /* cut is fine */
	else
		(void)snprintf(ret_name, 256, "%.8s", run->history_id);
}

/* ---- which history ---- */

/* An id that was told before its history is there: contents of a run's files come before the run.
 */
struct promise {
	struct list link;
	char *owner, *name, id[UUID_SIZE];
};

static void drop_promise(struct promise *p)
{
	list_remove(&p->link);
	free(p->owner);
	free(p->name);
	free(p);
}

void promises_free(struct recorder *r)
{
	LIST_EACH_SAFE (at, &r->promises)
		drop_promise(CONTAINER_OF(at, struct promise, link));
}

static void keep_promise(struct recorder *r, const char *id)
{
	LIST_EACH_SAFE (at, &r->promises) {
		struct promise *p = CONTAINER_OF(at, struct promise, link);
		if (strcmp(p->id, id) == 0)
			drop_promise(p);
	}
}

static const char *promise(struct recorder *r, const char *owner, const char *name)
{
	size_t n = 0;
	LIST_EACH (at, &r->promises) {
		struct promise *p = CONTAINER_OF(at, struct promise, link);
		if (strcmp(p->owner, owner) == 0 && strcmp(p->name, name) == 0)
			return p->id;
		n++;
	}
	if (n == PROMISES_MAX)
		drop_promise(CONTAINER_OF(r->promises.next, struct promise, link));
	struct promise *p = xcalloc(1, sizeof *p);
	p->owner = xstrdup(owner);
	p->name = xstrdup(name);
	crypto_uuid(p->id);
	list_append(&r->promises, &p->link);
	return p->id;
}

/* An id that another owner has is nobody else's: there the run goes by name, as one that is wanted.
 */
int place_whose(struct recorder *r, const struct history_whose *whose, char ret_id[64],
	const char **ret_name, struct err *err)
{
	const char *own = whose->history_id;
	const char *wanted = whose->wanted && whose->wanted[0] ? whose->wanted : own;
	*ret_name = NULL;
	int status = index_find_history(r->db, whose->owner, wanted, ret_id, err);
	if (status == 1)
		keep_promise(r, ret_id);
	if (status != 0)
		return status < 0 ? status : 0;
	if (strcmp(wanted, own) != 0)
		*ret_name = wanted;
	status = index_has_history(r->db, own, err);
	if (status < 0)
		return status;
	if (status == 1) {
		*ret_name = wanted;
		own = promise(r, whose->owner, wanted);
	}
	return copy_text(ret_id, 64, own, strlen(own))
		       ? 0
		       : err_set(err, E_INVALID, "'%.60s' is no id of a history", own);
}

int place_history(struct recorder *r, struct job *job, struct err *err)
{
	struct history_run *run = &job->run;
	const struct history_whose whose = {run->history_id, run->wanted, run->owner};
	const char *name;
	int status = place_whose(r, &whose, job->history, &name, err);
	if (status != 0)
		return status;
	if (name)
		run->name = name;
	run->history_id = job->history;
	return 0;
}

int recorder_place(
	struct recorder *r, const struct history_whose *whose, char ret_id[64], struct err *err)
{
	struct open_repo *repo = NULL;
	const char *name;
	int status = db_script(r->db, "BEGIN IMMEDIATE", err);
	if (status == 0)
		status = place_whose(r, whose, ret_id, &name, err);
	if (status == 0)
		status = recorder_repo(r, ret_id, &repo, err);
	if (status == 0)
		status = db_script(r->db, "COMMIT", err);
	if (status != 0)
		(void)db_script(r->db, "ROLLBACK", NULL); /* there may be none */
	return status;
}

/* ---- where in it ---- */

static int make_root(struct recorder *r, struct open_repo *repo, const struct job *job,
	char ret_root[HISTORY_NODE_SIZE], struct err *err)
{
	AUTO(buf_done) struct buf message;
	char name[256];
	buf_init(&message, 1 << 16);
	history_name(&job->run, name);
	struct commit_draft draft = {.parent = "",
		.author = job->run.owner,
		.author_us = job->came_us,
		.committer_us = job->came_us};
	int status = root_message(&job->run, name, job->came_us, &message, err);
	draft.message = (const char *)message.data;
	if (status == 0)
		status = repo_commit(&repo->repo, &draft, ret_root, err);
	if (status == 0)
		status = index_add_history(r->db, repo->id, ret_root, draft.message, err);
	return status;
}

/* The one that is wanted, if there is none of that name; else main, main.2, main.3 ... */
int place_new_branch(struct db *db, const char *history, const char *wanted,
	char ret_name[HISTORY_BRANCH_SIZE], struct err *err)
{
	char node[HISTORY_NODE_SIZE];
	bool is_name = wanted && *wanted &&
		       copy_text(ret_name, HISTORY_BRANCH_SIZE, wanted, strlen(wanted));
	if (!is_name)
		(void)snprintf(ret_name, HISTORY_BRANCH_SIZE, "main");
	for (unsigned k = is_name ? 1 : 2;; k++) {
		int status = index_find_tip(db, history, ret_name, node, err);
		if (status != 1)
			return status;
		if (k == 1)
			(void)snprintf(ret_name, HISTORY_BRANCH_SIZE, "main");
		else
			(void)snprintf(ret_name, HISTORY_BRANCH_SIZE, "main.%u", k);
	}
}

static int at_root(struct recorder *r, struct open_repo *repo, const struct job *job,
	struct place *place, struct err *err)
{
	int status = index_find_root(r->db, repo->id, place->parent, err);
	if (status == 0)
		status = make_root(r, repo, job, place->parent, err);
	if (status >= 0)
		status = place_new_branch(r->db, repo->id, NULL, place->branch, err);
	place->at.n = 1;
	return status;
}

/* A branch that was begun at that node on purpose: `found` is of the one it was made on. 1: it is;
 * 0: it is not there, or elsewhere. */
static int on_begun(struct recorder *r, struct open_repo *repo, const struct index_place *found,
	struct place *place, struct err *err)
{
	const char *wanted = place->at.run->branch;
	char tip[HISTORY_NODE_SIZE];
	if (!wanted || !*wanted || strcmp(wanted, found->branch) == 0 ||
		!copy_text(place->branch, sizeof place->branch, wanted, strlen(wanted)))
		return 0;
	int status = index_find_tip(r->db, repo->id, wanted, tip, err);
	if (status != 1 || strcmp(tip, found->node) != 0)
		return status < 0 ? status : 0;
	memcpy(place->tip, tip, sizeof place->tip);
	return 1;
}

static int at_node(struct recorder *r, struct open_repo *repo, const struct stands *stands,
	struct place *place, struct err *err)
{
	const struct index_place *found = &stands->place;
	memcpy(place->parent, found->node, sizeof place->parent);
	place->at.n = found->n + 1;
	int status = stands->begins ? on_begun(r, repo, found, place, err) : 0;
	if (status != 0)
		return status < 0 ? status : 0;
	if (strcmp(found->node, found->tip) != 0)
		return place_new_branch(r->db, repo->id, place->at.run->branch, place->branch, err);
	memcpy(place->branch, found->branch, sizeof place->branch);
	memcpy(place->tip, found->tip, sizeof place->tip);
	return 0;
}

int place_find(struct recorder *r, struct open_repo *repo, const struct job *job,
	struct place *ret_place, struct err *err)
{
	const struct history_run *run = &job->run;
	const struct stand of = {repo->id, run->kernel_id, run->epoch, run->at};
	struct stands stands;
	*ret_place = (struct place){.at = {.run = run}};
	int status = stand_find(r->db, &of, &stands, err);
	if (status < 0)
		return status;
	uint64_t version = stands.state_version;
	if (version < run->after_version)
		version = run->after_version;
	ret_place->at.state_version = version + 1;
	return status == 1 ? at_node(r, repo, &stands, ret_place, err)
			   : at_root(r, repo, job, ret_place, err);
}
