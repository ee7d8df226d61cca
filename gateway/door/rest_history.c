/* What was recorded, to be looked at: lists, histories, nodes. */
#include <cjson/cJSON.h>
#include <string.h>

#include "gateway/door/rest.h"
#include "gateway/door/rest_history.h"
#include "gateway/door/route.h"
#include "gateway/gateway.h"
#include "gateway/spine/branches.h"

static void on_answer(void *data, int status, struct bytes json, const struct err *err)
{
	struct call *r = data;
	if (status == 0)
		answer_bytes(r, 200, "application/json", json);
	else
		answer_error(r, err);
}

int question_read(const struct call *r, enum history_what what, const char *history,
	struct history_question *ret, struct err *err)
{
	const char *silent = call_query(r, "silent");
	*ret = (struct history_question){
		.what = what,
		.owner = r->owner->name,
		.history = history,
		.node = what == HISTORY_NODE ? r->param[1] : NULL,
		.cursor = call_query(r, "cursor"),
		.silent = silent && strcmp(silent, "true") == 0,
	};
	if (!r->door->gw->histories)
		return err_set(err, E_NOT_FOUND, "nothing is recorded here: `record` is off");
	return rest_limit(r, &ret->limit, err);
}

/* A kernel that has run nothing yet has a history, of nothing. */
static void on_one(void *data, int status, struct bytes json, const struct err *err)
{
	struct call *r = data;
	struct desk *d;
	if (status != E_NOT_FOUND ||
		kernels_find(r->door->gw->kernels, r->owner, r->param[0], &d, NULL) != 0) {
		on_answer(r, status, json, err);
		return;
	}
	struct cJSON *tree = cJSON_CreateObject();
	(void)cJSON_AddStringToObject(tree, "id", desk_id(d)); /* without memory it is incomplete */
	(void)cJSON_AddStringToObject(tree, "name", desk_id(d));
	(void)cJSON_AddArrayToObject(tree, "branches");
	(void)cJSON_AddArrayToObject(tree, "nodes");
	(void)cJSON_AddNullToObject(tree, "next");
	answer_json(r, 200, tree);
}

static void ask(struct call *r, enum history_what what)
{
	struct history_question q;
	struct err err;
	AUTO(buf_done) struct buf parked, stands;
	parks_list_all(r->door->gw->kernels, r->owner, &parked);
	branches_standing(r->door->gw->kernels, r->owner, &stands);
	if (question_read(r, what, r->param[0], &q, &err) != 0)
		answer_error(r, &err);
	else {
		q.parked = parked.data ? (const char *)parked.data : "";
		q.stands = stands.data ? (const char *)stands.data : "";
		history_ask(
			r->door->gw->histories, &q, what == HISTORY_ONE ? on_one : on_answer, r);
	}
}

static void list_get(struct call *r)
{
	ask(r, HISTORY_LIST);
}

static void one_get(struct call *r)
{
	ask(r, HISTORY_ONE);
}

static void node_get(struct call *r)
{
	ask(r, HISTORY_NODE);
}

const struct route rest_history_routes[] = {
	{METHOD_GET, "/history", SCOPE_READ | SCOPE_RUN, list_get},
	{METHOD_GET, "/history/{h}", SCOPE_READ | SCOPE_RUN, one_get},
	{METHOD_GET, "/history/{h}/nodes/{n}", SCOPE_READ | SCOPE_RUN, node_get},
	{0},
};
