/* POST /history/{h}/forget {node}: what one execution said is taken out of everything. */
#include <cjson/cJSON.h>
#include <string.h>

#include "gateway/door/rest_history.h"
#include "gateway/door/route.h"
#include "gateway/gateway.h"
#include "gateway/spine/forget.h"

static void on_forgotten(void *data, int status, struct bytes json, const struct err *err)
{
	struct call *r = data;
	if (status == 0)
		answer_bytes(r, 200, "application/json", json);
	else
		answer_error(r, err);
}

/* The node is the body's, and HEAD is not taken for one that was left out. */
static void forget_post(struct call *r)
{
	struct cJSON *body = NULL;
	struct history_question q;
	struct err err;
	int status = call_json(r, &body, &err);
	const char *node = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(body, "node"));
	if (status == 0)
		status = question_read(r, HISTORY_NODE, r->param[0], &q, &err);
	if (status == 0 && (!node || !*node))
		status = err_set(&err, E_INVALID, "node: a text is needed, such as an id or In[7]");
	if (status == 0) {
		q.node = node;
		forget_node(r->door->gw, &q, on_forgotten, r);
	} else {
		answer_error(r, &err);
	}
	cJSON_Delete(body);
}

const struct route rest_forget_routes[] = {
	{METHOD_POST, "/history/{h}/forget", SCOPE_RUN, forget_post},
	{0},
};
