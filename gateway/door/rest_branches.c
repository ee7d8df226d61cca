/* POST /history/{h}/branches: a branch begins at a node, with a kernel of its own or as a name. */
#include <cjson/cJSON.h>

#include "gateway/door/rest.h"
#include "gateway/door/route.h"
#include "gateway/spine/branches.h"

static void on_begun(void *data, const struct cJSON *answer, const struct err *failure)
{
	struct call *r = data;
	cJSON *tree = answer ? cJSON_Duplicate(answer, true) : cJSON_CreateObject();
	if (!failure) {
		answer_json(r, 201, tree);
		return;
	}
	(void)cJSON_AddStringToObject(tree, "message", failure->text); /* or it says less */
	(void)cJSON_AddStringToObject(tree, "reason", err_name(failure->code));
	answer_json(r, err_http_status(failure->code), tree);
}

static int read_flag(
	const struct cJSON *body, const char *name, bool otherwise, bool *ret, struct err *err)
{
	const cJSON *flag = cJSON_GetObjectItemCaseSensitive(body, name);
	if (flag && !cJSON_IsNull(flag) && !cJSON_IsBool(flag))
		return err_set(err, E_INVALID, "%s must be true or false", name);
	*ret = cJSON_IsBool(flag) ? cJSON_IsTrue(flag) : otherwise;
	return 0;
}

static int read_order(const struct cJSON *body, struct branch_order *ret, struct err *err)
{
	static const struct rest_member members[] = {
		{"at", REST_TEXT}, {"name", REST_TEXT}, {"accept", REST_TEXT}};
	const char *accept = rest_text(body, "accept");
	bool kernel = true;
	int status = rest_check(body, "", members, ARRAY_LEN(members), err);
	*ret = (struct branch_order){.at = rest_text(body, "at"),
		.name = rest_text(body, "name"),
		.accept = FIDELITY_EXACT};
	if (status == 0)
		status = read_flag(body, "kernel", true, &kernel, err);
	if (status == 0)
		status = read_flag(body, "own_container", false, &ret->own_container, err);
	ret->without_kernel = !kernel;
	if (status == 0 && (!ret->at || !*ret->at))
		status = err_set(err, E_INVALID,
			"at: a text is needed, such as an id, a branch, HEAD~2 or In[7]");
	if (status == 0 && accept && !fidelity_read(accept, &ret->accept))
		status = err_set(
			err, E_INVALID, "accept must be \"exact\", \"partial\" or \"code-only\"");
	return status;
}

static void branches_post(struct call *r)
{
	struct cJSON *body = NULL;
	struct branch_order order;
	struct err err;
	int status = call_json(r, &body, &err);
	if (status == 0)
		status = read_order(body, &order, &err);
	if (status == 0) {
		order.history = r->param[0];
		branch_begin(r->door->gw->kernels, r->owner, &order, on_begun, r);
	} else {
		answer_error(r, &err);
	}
	cJSON_Delete(body);
}

const struct route rest_branches_routes[] = {
	{METHOD_POST, "/history/{h}/branches", SCOPE_RUN, branches_post},
	{0},
};
