#include "gateway/spine/admin.h"

#include <cjson/cJSON.h>

#include "gateway/door/route.h"

#define METRICS_MAX (8u << 20)

static void healthz_get(struct call *r)
{
	struct cJSON *tree = cJSON_CreateObject();
	(void)cJSON_AddStringToObject(tree, "status", "ok"); /* {} without memory */
	answer_json(r, 200, tree);
}

static void metrics_get(struct call *r)
{
	AUTO(buf_done) struct buf text;
	buf_init(&text, METRICS_MAX);
	admin_metrics(r->door->gw, &text);
	answer_bytes(r, 200, "text/plain; version=0.0.4; charset=utf-8",
		(struct bytes){text.data, text.len});
}

static void show_get(struct call *r)
{
	struct err err;
	struct cJSON *tree = admin_show(r->door->gw, r->param[0]);
	if (tree) {
		answer_json(r, 200, tree);
		return;
	}
	err_set(&err, E_NOT_FOUND, "there is no view `%s`", r->param[0]);
	answer_error(r, &err);
}

const struct route rest_admin_routes[] = {
	{METHOD_GET, "/healthz", 0, healthz_get},
	{METHOD_GET, "/metrics", SCOPE_ADMIN, metrics_get},
	{METHOD_GET, "/admin/show/{what}", SCOPE_ADMIN, show_get},
	{0},
};
