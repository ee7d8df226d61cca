/* The way from where a kernel stands to another node: what is left behind, what would have to be
 * run again if nothing of the node's state is kept.
 * {history, head, state_version, branch, goes_on, fresh, node: {id, kind, kernel_id, msg_id,
 * execution_count, summary}, left: [NODE...], rebuild: [NODE...]}, left from the newest on, rebuild
 * in the order in which they ran: what follows the nearest node that is parked, or the root.
 * Changes of files are neither: their msg_id is that of the run whose memory they have. */
#include "history/ask.h"

#include <cjson/cJSON.h>
#include <string.h>

#include "gateway/base/json_tree.h"
#include "history/recorder_parts.h"
#include "history/stand.h"

#define WAY_MAX 1000 /* nodes of each list; what is farther is not named */

#define LINE                                                                                       \
	"WITH RECURSIVE line(node, parent, kind, kernel_id, msg_id, execution_count, summary,"     \
	" silent, k) AS (SELECT node, parent, kind, kernel_id, coalesce(memory_of, msg_id),"       \
	" execution_count, summary, silent, 0 FROM execution_records"                              \
	" WHERE history = ?1 AND node = ?2"                                                        \
	" UNION ALL SELECT r.node, r.parent, r.kind, r.kernel_id,"                                 \
	" coalesce(r.memory_of, r.msg_id), r.execution_count,"                                     \
	" r.summary, r.silent, line.k + 1 FROM line JOIN execution_records r"                      \
	" ON r.history = ?1 AND r.node = line.parent WHERE line.k < ?3)"
#define COLUMNS "node, kind, kernel_id, msg_id, execution_count, summary"

static void tree_freep(cJSON **tree)
{
	cJSON_Delete(*tree);
}

static cJSON *node_of(struct db_rows *rows)
{
	cJSON *o = cJSON_CreateObject();
	cJSON_AddStringToObject(o, "id", db_text(rows, 0));
	cJSON_AddStringToObject(o, "kind", db_text(rows, 1));
	cJSON_AddStringToObject(o, "kernel_id", db_text(rows, 2));
	cJSON_AddStringToObject(o, "msg_id", db_text(rows, 3));
	if (db_is_null(rows, 4))
		cJSON_AddNullToObject(o, "execution_count");
	else
		cJSON_AddNumberToObject(o, "execution_count", (double)db_number(rows, 4));
	cJSON_AddStringToObject(o, "summary", db_text(rows, 5));
	return o;
}

/* What is on the line that ends at head and not on that which ends at node. */
static int add_left(struct asker *a, const char *history, const char *head, const char *node,
	cJSON *answer, struct err *err)
{
	AUTO(db_endp) struct db_rows *rows = NULL;
	cJSON *list = cJSON_AddArrayToObject(answer, "left");
	int status = db_ask(a->db,
		LINE ", kept(node, parent, n) AS (SELECT node, parent, n FROM execution_records"
		     " WHERE history = ?1 AND node = ?4"
		     " UNION ALL SELECT r.node, r.parent, r.n FROM kept JOIN execution_records r"
		     " ON r.history = ?1 AND r.node = kept.parent WHERE kept.n + ?3 >"
		     " (SELECT n FROM execution_records WHERE history = ?1 AND node = ?2))"
		     " SELECT " COLUMNS " FROM line WHERE kind = 'execution' AND silent = 0"
		     " AND node NOT IN (SELECT node FROM kept) ORDER BY k",
		DB_VALUES(DB_T(history), DB_T(head), DB_N(WAY_MAX), DB_T(node)), &rows, err);
	while (status == 0 && (status = db_next(rows, err)) == 1) {
		cJSON_AddItemToArray(list, node_of(rows));
		status = 0;
	}
	return status;
}

/* The node itself is always the first of its line, and named for itself. */
static int add_rebuild(
	struct asker *a, const char *history, const char *node, cJSON *answer, struct err *err)
{
	AUTO(db_endp) struct db_rows *rows = NULL;
	cJSON *list = cJSON_AddArrayToObject(answer, "rebuild");
	int status = db_ask(a->db, LINE " SELECT " COLUMNS " FROM line ORDER BY k",
		DB_VALUES(DB_T(history), DB_T(node), DB_N(WAY_MAX)), &rows, err);
	while (status == 0 && (status = db_next(rows, err)) == 1) {
		status = 0;
		if (!cJSON_HasObjectItem(answer, "node"))
			cJSON_AddItemToObject(answer, "node", node_of(rows));
		if (strcmp(db_text(rows, 1), "root") == 0 || asker_parked(a, db_text(rows, 3)))
			break;
		if (strcmp(db_text(rows, 1), "execution") == 0)
			cJSON_InsertItemInArray(list, 0, node_of(rows));
	}
	return status;
}

/* The node was named by a branch that was begun there on purpose. 1, 0, E_* */
static int is_named(
	struct asker *a, const char *history, const char *node, const char *called, struct err *err)
{
	char tip[HISTORY_NODE_SIZE];
	int status = called ? index_find_tip(a->db, history, called, tip, err) : 0;
	return status == 1 ? strcmp(tip, node) == 0 : status;
}

/* On which branch a run goes on that follows that node. */
static int add_branch(struct asker *a, const char *history, const char *node, const char *called,
	cJSON *answer, struct err *err)
{
	struct index_place place;
	char name[HISTORY_BRANCH_SIZE];
	int named = is_named(a, history, node, called, err);
	if (named < 0)
		return named;
	if (named == 1) {
		cJSON_AddStringToObject(answer, "branch", called);
		cJSON_AddBoolToObject(answer, "goes_on", true);
		return 0;
	}
	int status = index_find_node(a->db, history, node, &place, err);
	if (status != 1)
		return status < 0 ? status : err_set(err, E_NOT_FOUND, "the node is gone");
	bool goes_on = strcmp(place.tip, node) == 0;
	status = goes_on ? 0 : place_new_branch(a->db, history, NULL, name, err);
	if (status == 0)
		cJSON_AddStringToObject(answer, "branch", goes_on ? place.branch : name);
	cJSON_AddBoolToObject(answer, "goes_on", goes_on);
	return status;
}

static int add_stand(struct asker *a, const struct history_question *q, const char *history,
	cJSON *answer, struct err *err)
{
	const struct stand of = {history, q->kernel_id ? q->kernel_id : "", q->epoch, q->at};
	struct stands stands;
	int status = stand_find(a->db, &of, &stands, err);
	if (status < 0)
		return status;
	cJSON_AddNumberToObject(answer, "state_version", (double)stands.state_version);
	return 0;
}

/* The name that one would get that begins there, or E_CONFLICT: the one that is wanted is taken. */
static int add_fresh(struct asker *a, const struct history_question *q, const char *history,
	cJSON *answer, struct err *err)
{
	char name[HISTORY_BRANCH_SIZE], tip[HISTORY_NODE_SIZE];
	bool wanted = q->name && *q->name;
	int status = wanted ? index_find_tip(a->db, history, q->name, tip, err) : 0;
	if (status == 1)
		return err_set(err, E_CONFLICT,
			"there is a branch '%s' already, at %.8s: give this one another name",
			q->name, tip);
	if (status == 0)
		status = place_new_branch(a->db, history, NULL, name, err);
	if (status == 0)
		cJSON_AddStringToObject(answer, "fresh", wanted ? q->name : name);
	return status;
}

int answer_way(
	struct asker *a, const struct history_question *q, struct buf *ret_json, struct err *err)
{
	AUTO(tree_freep) cJSON *answer = cJSON_CreateObject();
	struct history_found found;
	char node[HISTORY_NODE_SIZE], head[HISTORY_NODE_SIZE];
	int status = find_history(a->db, q, &found, err);
	if (status == 0)
		status = find_node(a->db, found.id, q, node, err);
	if (status == 0)
		status = find_head(a->db, found.id, q, head, err);
	if (status < 0)
		return status;
	if (status == 0)
		return err_set(err, E_NOT_FOUND, "nothing is recorded in this history yet");
	cJSON_AddStringToObject(answer, "history", found.id);
	cJSON_AddStringToObject(answer, "head", head);
	status = add_stand(a, q, found.id, answer, err);
	if (status == 0)
		status = add_left(a, found.id, head, node, answer, err);
	if (status == 0)
		status = add_rebuild(a, found.id, node, answer, err);
	if (status == 0)
		status = add_branch(a, found.id, node, q->node, answer, err);
	if (status == 0)
		status = add_fresh(a, q, found.id, answer, err);
	AUTO(freep) char *text = status == 0 ? json_print(answer, err) : NULL;
	if (status == 0 && !text)
		return E_NOMEM;
	if (text)
		(void)buf_add_text(ret_json, text); /* latched */
	return status == 0 ? buf_check(ret_json, "an answer", err) : status;
}
