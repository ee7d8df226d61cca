#include "gateway/spine/sessions.h"

#include <cjson/cJSON.h>

#include "gateway/door/rest.h"
#include "gateway/door/route.h"
#include "gateway/door/start_wait.h"

static void list_get(struct call *r)
{
	answer_json(r, 200, sessions_list(r->door->gw->sessions, r->owner));
}

static void answer_model(struct call *r, int status, struct cJSON *model, const struct err *err)
{
	if (err->code != 0)
		answer_error(r, err);
	else
		answer_json(r, status, model);
}

static int check_body(const struct cJSON *body, struct err *err)
{
	static const struct rest_member members[] = {{"path", REST_TEXT}, {"name", REST_TEXT},
		{"type", REST_TEXT}, {"kernel", REST_OBJECT}, {"notebook", REST_OBJECT}};
	static const struct rest_member of_kernel[] = {{"id", REST_TEXT}, {"name", REST_TEXT}};
	int status = rest_check(body, "", members, ARRAY_LEN(members), err);
	if (status != 0)
		return status;
	return rest_check(
		rest_object(body, "kernel"), "kernel.", of_kernel, ARRAY_LEN(of_kernel), err);
}

/* The body, or {} for none; the caller frees it on failure too. */
static int read_body(struct call *r, struct cJSON **ret, struct err *err)
{
	int status = call_json(r, ret, err);
	if (status == 0 && !*ret)
		*ret = cJSON_CreateObject();
	if (status == 0 && !*ret)
		return err_set(err, E_NOMEM, "out of memory");
	return status == 0 ? check_body(*ret, err) : status;
}

static void create(struct call *r, struct cJSON *body)
{
	struct err err = {0};
	struct cJSON *model = NULL;
	int status = sessions_create(r->door->gw->sessions, r->owner, body, &model, &err);
	if (status != 0 && start_wait(r, body, &err, create))
		return;
	cJSON_Delete(body);
	if (status != 0) {
		start_refuse(r, &err);
		return;
	}
	const char *id = rest_text(model, "id");
	if (id)
		rest_location(r, "/api/sessions/", id);
	answer_json(r, 201, model);
}

static void list_post(struct call *r)
{
	struct err err = {0};
	struct cJSON *body = NULL;
	if (read_body(r, &body, &err) == 0) {
		create(r, body);
		return;
	}
	cJSON_Delete(body);
	answer_error(r, &err);
}

static void session_get(struct call *r)
{
	struct err err = {0};
	struct cJSON *model = NULL;
	(void)sessions_get(r->door->gw->sessions, r->owner, r->param[0], &model, &err);
	answer_model(r, 200, model, &err); /* err has the code */
}

static void patch(struct call *r, struct cJSON *body)
{
	struct err err = {0};
	struct cJSON *model = NULL;
	int status =
		sessions_patch(r->door->gw->sessions, r->owner, r->param[0], body, &model, &err);
	if (status != 0 && start_wait(r, body, &err, patch))
		return;
	cJSON_Delete(body);
	if (status != 0)
		start_refuse(r, &err);
	else
		answer_json(r, 200, model);
}

static void session_patch(struct call *r)
{
	struct err err = {0};
	struct cJSON *body = NULL;
	if (read_body(r, &body, &err) == 0) {
		patch(r, body);
		return;
	}
	cJSON_Delete(body);
	answer_error(r, &err);
}

static void on_deleted(void *data)
{
	answer_empty(data, 204);
}

static void session_delete(struct call *r)
{
	struct err err = {0};
	if (sessions_delete(r->door->gw->sessions, r->owner, r->param[0], on_deleted, r, &err) != 0)
		answer_error(r, &err);
}

const struct route rest_sessions_routes[] = {
	{METHOD_GET, "/api/sessions", SCOPE_READ, list_get},
	{METHOD_POST, "/api/sessions", SCOPE_RUN, list_post},
	{METHOD_GET, "/api/sessions/{id}", SCOPE_READ, session_get},
	{METHOD_PATCH, "/api/sessions/{id}", SCOPE_RUN, session_patch},
	{METHOD_DELETE, "/api/sessions/{id}", SCOPE_RUN, session_delete},
	{0},
};
