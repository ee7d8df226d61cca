/* A branch that somebody asked for: its ref is there from then on, at a node that other branches
 * may lead to as well, and the first run of who continues it moves it (docs/decisions/0029). A name
 * that two ask for at once is the first one's, since the recorder alone gives it. */
#include <cjson/cJSON.h>
#include <stdio.h>
#include <string.h>

#include "gateway/base/json_tree.h"
#include "history/lanes.h"
#include "history/recorder_parts.h"

/* ---- the recorder's thread ---- */

struct branching {
	char history[64], node[HISTORY_NODE_SIZE], name[HISTORY_BRANCH_SIZE];
	struct open_repo *repo;
};

static int find(
	struct recorder *r, const struct history_question *q, struct branching *b, struct err *err)
{
	struct history_found found;
	int status = find_history(r->db, q, &found, err);
	if (status == 0)
		status = find_node(r->db, found.id, q, b->node, err);
	if (status == 0)
		status = recorder_repo(r, found.id, &b->repo, err);
	if (status == 0)
		(void)snprintf(b->history, sizeof b->history, "%s", found.id); /* as long */
	return status;
}

static int find_name(struct recorder *r, const char *wanted, struct branching *b, struct err *err)
{
	char tip[HISTORY_NODE_SIZE];
	if (!wanted || !*wanted)
		return place_new_branch(r->db, b->history, NULL, b->name, err);
	if (!copy_text(b->name, sizeof b->name, wanted, strlen(wanted)))
		return err_set(err, E_INVALID, "name: at most %d bytes", HISTORY_BRANCH_SIZE - 1);
	int status = index_find_tip(r->db, b->history, b->name, tip, err);
	if (status == 1)
		return err_set(err, E_CONFLICT,
			"there is a branch '%s' already, at %.8s: give this one another name",
			b->name, tip);
	return status;
}

static int write_ref(struct recorder *r, const struct branching *b, struct err *err)
{
	int status = recorder_step(r, STEP_REF, err);
	if (status == 0)
		status = repo_move_branch(&b->repo->repo, b->name, "", b->node, err);
	if (status == 0)
		status = index_set_branch(r->db, b->history, b->name, b->node, err);
	if (status == 0)
		status = recorder_step(r, STEP_INDEX, err);
	return status;
}

/* In the transaction: its rows agree with its refs, among which the name is looked for. */
static int catch_up(struct recorder *r, struct branching *b, struct err *err)
{
	return b->repo->behind ? recorder_index(r, b->repo, err) : 0;
}

static int branch(
	struct recorder *r, const struct history_question *q, struct branching *b, struct err *err)
{
	int status = db_script(r->db, "BEGIN IMMEDIATE", err);
	if (status == 0)
		status = find(r, q, b, err);
	if (status == 0)
		status = catch_up(r, b, err);
	if (status == 0)
		status = find_name(r, q->name, b, err);
	if (status == 0)
		status = write_ref(r, b, err);
	if (status == 0)
		status = db_script(r->db, "COMMIT", err);
	if (status == 0)
		return 0;
	(void)db_script(r->db, "ROLLBACK", NULL); /* the cause counts */
	if (b->repo)
		b->repo->behind = b->repo->owed = true;
	return status;
}

static void tell(const struct branching *b, struct asking *asking)
{
	cJSON *answer = cJSON_CreateObject();
	cJSON_AddStringToObject(answer, "history", b->history);
	cJSON_AddStringToObject(answer, "name", b->name);
	cJSON_AddStringToObject(answer, "node", b->node);
	AUTO(freep) char *text = json_print(answer, &asking->err);
	cJSON_Delete(answer);
	(void)buf_add_text(&asking->json, text ? text : ""); /* latched */
	asking->status = text ? buf_check(&asking->json, "an answer", &asking->err) : E_NOMEM;
}

static void obey(struct histories *h, struct asking *asking)
{
	struct branching b = {0};
	asking->status = branch(h->recorder, &asking->question, &b, &asking->err);
	if (asking->status == 0)
		tell(&b, asking);
}

/* ---- between the lanes ---- */

/* Under the lock. */
static void give_back(struct histories *h, struct asking *asking)
{
	list_append(&h->askings_done, &asking->link);
	(void)uv_async_send(&h->async); /* cannot fail: not both lanes have ended */
}

void branching_add(struct histories *h, struct asking *asking)
{
	pthread_mutex_lock(&h->lock);
	if (h->record_ended) {
		asking->status = err_set(&asking->err, E_UNAVAILABLE, "everything ends");
		give_back(h, asking);
	} else {
		list_append(&h->branchings, &asking->link);
		pthread_cond_signal(&h->record_wake);
	}
	pthread_mutex_unlock(&h->lock);
}

bool branchings_wait(const struct histories *h)
{
	return !list_empty(&h->branchings);
}

void branchings_turn(struct histories *h)
{
	pthread_mutex_lock(&h->lock);
	while (branchings_wait(h)) {
		struct asking *asking = CONTAINER_OF(h->branchings.next, struct asking, link);
		list_remove(&asking->link);
		pthread_mutex_unlock(&h->lock);
		obey(h, asking);
		pthread_mutex_lock(&h->lock);
		give_back(h, asking);
	}
	pthread_mutex_unlock(&h->lock);
}
