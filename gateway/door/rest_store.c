/* Histories as things that take room: packed anew, removed. */
#include <cjson/cJSON.h>
#include <stdio.h>
#include <string.h>

#include "gateway/base/json_tree.h"
#include "gateway/door/rest_history.h"
#include "gateway/door/route.h"
#include "gateway/gateway.h"

static void on_answer(void *data, int status, struct bytes json, const struct err *err)
{
	struct call *r = data;
	if (status == 0)
		answer_bytes(r, 200, "application/json", json);
	else
		answer_error(r, err);
}

/* The history that r names, its owner's. False: it was answered. */
static bool id_of(
	struct call *r, int status, struct bytes json, const struct err *err, char ret_id[64])
{
	struct err odd;
	if (status != 0) {
		answer_error(r, err);
		return false;
	}
	struct cJSON *tree = json_parse(json, NULL, NULL);
	const char *id = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(tree, "id"));
	bool fits = id && copy_text(ret_id, 64, id, strlen(id));
	cJSON_Delete(tree);
	if (!fits) {
		err_set(&odd, E_IO, "the history is not known");
		answer_error(r, &odd);
	}
	return fits;
}

static void collect(void *data, int status, struct bytes json, const struct err *err)
{
	struct call *r = data;
	char id[64];
	if (id_of(r, status, json, err, id))
		history_gc(r->door->gw->histories, id, on_answer, r);
}

static void remove_it(void *data, int status, struct bytes json, const struct err *err)
{
	struct call *r = data;
	struct err busy;
	char id[64];
	if (!id_of(r, status, json, err, id))
		return;
	if (!kernels_hold_history(r->door->gw->kernels, r->owner, id, NULL)) {
		history_remove(r->door->gw->histories, id, on_answer, r);
		return;
	}
	err_set(&busy, E_BUSY, "a kernel is on this history: end it first");
	answer_error(r, &busy);
}

static void find(struct call *r,
	void (*then)(void *data, int status, struct bytes json, const struct err *err))
{
	struct history_question q;
	struct err err;
	if (question_read(r, HISTORY_REPOSITORY, r->param[0], &q, &err) != 0) {
		answer_error(r, &err);
	} else {
		q.exact = true; /* what goes is what was named */
		history_ask(r->door->gw->histories, &q, then, r);
	}
}

/* What can be asked for beside packing is about states, of which none are kept. */
static int check_gc(const struct cJSON *body, struct err *err)
{
	static const char *const later[] = {"drop_state_before", "keep_bytes"};
	for (size_t i = 0; i < ARRAY_LEN(later); i++) {
		const struct cJSON *item = cJSON_GetObjectItemCaseSensitive(body, later[i]);
		if (item && !cJSON_IsNull(item))
			return err_set(err, E_INVALID,
				"%s: no states are kept that could be dropped", later[i]);
	}
	return 0;
}

static void gc_post(struct call *r)
{
	struct cJSON *body = NULL;
	struct err err;
	int status = call_json(r, &body, &err);
	if (status == 0)
		status = check_gc(body, &err);
	cJSON_Delete(body);
	if (status != 0)
		answer_error(r, &err);
	else
		find(r, collect);
}

static void one_delete(struct call *r)
{
	find(r, remove_it);
}

const struct route rest_store_routes[] = {
	{METHOD_POST, "/history/{h}/gc", SCOPE_RUN, gc_post},
	{METHOD_DELETE, "/history/{h}", SCOPE_RUN, one_delete},
	{0},
};
