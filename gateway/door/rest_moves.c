/* POST /api/kernels/{id}/checkout and /undo: a kernel goes back to another node. DELETE .../parked:
 * it keeps no state of before. */
#include <cjson/cJSON.h>
#include <math.h>
#include <string.h>

#include "gateway/door/rest.h"
#include "gateway/door/route.h"
#include "gateway/spine/moves.h"

#define VERSION_MAX 9007199254740991.0 /* beyond it a double skips numbers */

static cJSON *details_of(const struct cJSON *answer, const struct err *err)
{
	cJSON *tree = answer ? cJSON_Duplicate(answer, true) : cJSON_CreateObject();
	(void)cJSON_AddStringToObject(tree, "message", err->text);
	(void)cJSON_AddStringToObject(tree, "reason", err_name(err->code));
	return tree;
}

static void on_moved(void *data, const struct cJSON *answer, const struct err *failure)
{
	struct call *r = data;
	struct desk *desk = NULL;
	struct err err;
	if (failure) {
		answer_json(r, err_http_status(failure->code), details_of(answer, failure));
		return;
	}
	/* Looked for again: it may have been deleted by the time that this is told. */
	if (kernels_find(r->door->gw->kernels, r->owner, r->param[0], &desk, &err) != 0) {
		answer_error(r, &err);
		return;
	}
	cJSON *tree = cJSON_Duplicate(answer, true);
	cJSON_AddItemToObject(tree, "kernel", desk_model(desk));
	answer_json(r, 200, tree);
}

static int read_version(const struct cJSON *body, struct move_order *ret, struct err *err)
{
	const cJSON *version = cJSON_GetObjectItemCaseSensitive(body, "state_version");
	ret->state_version = -1;
	if (!version || cJSON_IsNull(version))
		return 0;
	if (!cJSON_IsNumber(version) || version->valuedouble < 0 ||
		version->valuedouble > VERSION_MAX || fmod(version->valuedouble, 1) > 0)
		return err_set(err, E_INVALID, "state_version must be a whole number");
	ret->state_version = (int64_t)version->valuedouble;
	return 0;
}

static int read_order(const struct cJSON *body, struct move_order *ret, struct err *err)
{
	static const struct rest_member members[] = {
		{"node", REST_TEXT}, {"accept", REST_TEXT}, {"branch", REST_TEXT}};
	const cJSON *interrupt = cJSON_GetObjectItemCaseSensitive(body, "interrupt");
	const char *accept = rest_text(body, "accept");
	int status = rest_check(body, "", members, ARRAY_LEN(members), err);
	*ret = (struct move_order){.branch = rest_text(body, "branch"),
		.accept = FIDELITY_EXACT,
		.interrupt = cJSON_IsTrue(interrupt)};
	if (status == 0)
		status = read_version(body, ret, err);
	if (status == 0 && accept && !fidelity_read(accept, &ret->accept))
		status = err_set(
			err, E_INVALID, "accept must be \"exact\", \"partial\" or \"code-only\"");
	if (status == 0 && interrupt && !cJSON_IsNull(interrupt) && !cJSON_IsBool(interrupt))
		status = err_set(err, E_INVALID, "interrupt must be true or false");
	return status;
}

static void move(struct call *r, bool is_undo)
{
	struct cJSON *body = NULL;
	struct desk *desk = NULL;
	struct move_order order;
	struct err err;
	int status = call_json(r, &body, &err);
	if (status == 0)
		status = read_order(body, &order, &err);
	if (status == 0)
		status = kernels_find(r->door->gw->kernels, r->owner, r->param[0], &desk, &err);
	const char *node = rest_text(body, "node");
	if (status == 0 && !is_undo && (!node || !*node))
		status = err_set(&err, E_INVALID,
			"node: a text is needed, such as an id, a branch, HEAD~2 or In[7]");
	if (status == 0) {
		order.node = is_undo ? NULL : node;
		desk_checkout(desk, &order, on_moved, r);
	} else {
		answer_error(r, &err);
	}
	cJSON_Delete(body);
}

static void checkout_post(struct call *r)
{
	move(r, false);
}

static void undo_post(struct call *r)
{
	move(r, true);
}

static void parked_delete(struct call *r)
{
	struct desk *desk = NULL;
	struct err err;
	unsigned n;
	if (kernels_find(r->door->gw->kernels, r->owner, r->param[0], &desk, &err) != 0 ||
		parks_release_all(desk, &n, &err) != 0) {
		answer_error(r, &err);
		return;
	}
	cJSON *tree = cJSON_CreateObject();
	(void)cJSON_AddNumberToObject(tree, "released", n);
	answer_json(r, 200, tree);
}

const struct route rest_moves_routes[] = {
	{METHOD_POST, "/api/kernels/{id}/checkout", SCOPE_RUN, checkout_post},
	{METHOD_POST, "/api/kernels/{id}/undo", SCOPE_RUN, undo_post},
	{METHOD_DELETE, "/api/kernels/{id}/parked", SCOPE_RUN, parked_delete},
	{0},
};
