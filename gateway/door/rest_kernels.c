#include <cjson/cJSON.h>
#include <stdio.h>

#include "gateway/door/rest.h"
#include "gateway/door/route.h"
#include "gateway/door/start_wait.h"

static int find(struct call *r, struct desk **ret, struct err *err)
{
	return kernels_find(r->door->gw->kernels, r->owner, r->param[0], ret, err);
}

static void list_get(struct call *r)
{
	answer_json(r, 200, kernels_list(r->door->gw->kernels, r->owner));
}

static int check_start(const struct cJSON *body, struct err *err)
{
	static const struct rest_member members[] = {{"name", REST_TEXT}, {"kernel_id", REST_TEXT},
		{"path", REST_TEXT}, {"env", REST_TEXTS}};
	return rest_check(body, "", members, ARRAY_LEN(members), err);
}

/* `env` belongs to this request alone: it travels in it and is kept nowhere else. */
static void start(struct call *r, struct cJSON *body)
{
	struct err err = {0};
	struct desk *desk = NULL;
	const struct kernels_start what = {
		.owner = r->owner,
		.spec_name = rest_text(body, "name"),
		.kernel_id = rest_text(body, "kernel_id"),
		.env = rest_object(body, "env"),
		.path = rest_text(body, "path"),
	};
	int status = kernels_start(r->door->gw->kernels, &what, &desk, &err);
	if (status != 0 && start_wait(r, body, &err, start))
		return;
	cJSON_Delete(body);
	if (status != 0) {
		start_refuse(r, &err);
		return;
	}
	rest_location(r, "/api/kernels/", desk_id(desk));
	answer_json(r, 201, desk_model(desk));
}

static void list_post(struct call *r)
{
	struct err err = {0};
	struct cJSON *body = NULL;
	int status = call_json(r, &body, &err);
	if (status == 0)
		status = check_start(body, &err);
	if (status == 0) {
		start(r, body);
		return;
	}
	cJSON_Delete(body);
	answer_error(r, &err);
}

static void kernel_get(struct call *r)
{
	struct err err = {0};
	struct desk *desk = NULL;
	if (find(r, &desk, &err) != 0)
		answer_error(r, &err);
	else
		answer_json(r, 200, desk_model(desk));
}

static void on_deleted(void *data)
{
	answer_empty(data, 204);
}

static void kernel_delete(struct call *r)
{
	struct err err = {0};
	struct desk *desk = NULL;
	if (find(r, &desk, &err) != 0)
		answer_error(r, &err);
	else
		desk_end(desk, "the kernel was shut down", on_deleted, r);
}

static void on_interrupted(void *data, const struct err *err)
{
	if (err)
		answer_error(data, err);
	else
		answer_empty(data, 204);
}

static void interrupt_post(struct call *r)
{
	struct err err = {0};
	struct desk *desk = NULL;
	if (find(r, &desk, &err) != 0)
		answer_error(r, &err);
	else
		desk_interrupt(desk, on_interrupted, r);
}

/* Looked for again: it may have been deleted while it restarted. */
static void on_restarted(void *data, const struct err *failure)
{
	struct call *r = data;
	struct err err = {0};
	struct desk *desk = NULL;
	if (failure)
		answer_error(r, failure);
	else if (find(r, &desk, &err) != 0)
		answer_error(r, &err);
	else
		answer_json(r, 200, desk_model(desk));
}

static void restart_post(struct call *r)
{
	struct err err = {0};
	struct desk *desk = NULL;
	if (find(r, &desk, &err) != 0)
		answer_error(r, &err);
	else
		desk_restart(desk, on_restarted, r);
}

const struct route rest_kernels_routes[] = {
	{METHOD_GET, "/api/kernels", SCOPE_READ, list_get},
	{METHOD_POST, "/api/kernels", SCOPE_RUN, list_post},
	{METHOD_GET, "/api/kernels/{id}", SCOPE_READ, kernel_get},
	{METHOD_DELETE, "/api/kernels/{id}", SCOPE_RUN, kernel_delete},
	{METHOD_POST, "/api/kernels/{id}/interrupt", SCOPE_RUN, interrupt_post},
	{METHOD_POST, "/api/kernels/{id}/restart", SCOPE_RUN, restart_post},
	{0},
};
