#include "gateway/spine/admin.h"

#include <cjson/cJSON.h>
#include <string.h>

#include "gateway/door/route.h"

#define METRICS_MAX (8u << 20)

static void healthz_get(struct call *r)
{
	struct cJSON *tree = cJSON_CreateObject();
	(void)cJSON_AddStringToObject(tree, "status", "ok"); /* {} without memory */
	answer_json(r, 200, tree);
}

/* The spine knows nothing of the door, so the door's own figures are put beside the spine's here.
 */
static void add_door_metrics(const struct door *d, struct buf *b)
{
	struct cJSON *counters = door_counters(d);
	const struct cJSON *item;
	cJSON_ArrayForEach (item, counters) {
		bool gauge = strcmp(item->string, "sockets") == 0;
		const char *end = gauge ? "" : "_total";
		(void)buf_addf(b, "# TYPE coppice_door_%s%s %s\ncoppice_door_%s%s %.0f\n",
			item->string, end, gauge ? "gauge" : "counter", item->string, end,
			item->valuedouble); /* latched */
	}
	cJSON_Delete(counters);
}

static void metrics_get(struct call *r)
{
	AUTO(buf_done) struct buf text;
	struct err err;
	buf_init(&text, METRICS_MAX);
	admin_metrics(r->door->gw, &text);
	add_door_metrics(r->door, &text);
	if (buf_check(&text, "the figures", &err) != 0) {
		answer_error(r, &err);
		return;
	}
	answer_bytes(r, 200, "text/plain; version=0.0.4; charset=utf-8",
		(struct bytes){text.data, text.len});
}

static void show_get(struct call *r)
{
	struct err err;
	bool routes = strcmp(r->param[0], "routes") == 0; /* the door's own */
	struct cJSON *tree = routes ? route_show() : admin_show(r->door->gw, r->param[0]);
	if (tree && strcmp(r->param[0], "counters") == 0)
		(void)cJSON_AddItemToObject(tree, "door", door_counters(r->door)); /* or not */
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
