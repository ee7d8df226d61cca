#include <cjson/cJSON.h>
#include <ctype.h>

#include "gateway/door/route.h"

/* Open, as in Jupyter Server: probes ask it before they have a token. */
static void api_get(struct call *r)
{
	struct cJSON *tree = cJSON_CreateObject();
	(void)cJSON_AddStringToObject(tree, "version", COPPICE_VERSION); /* {} without memory */
	answer_json(r, 200, tree);
}

static void add_stamp(struct cJSON *tree, const char *key, int64_t wall_us)
{
	char stamp[CLOCK_STAMP_SIZE];
	clock_stamp(wall_us, stamp);
	(void)cJSON_AddStringToObject(tree, key, stamp); /* left out without memory */
}

static void status_get(struct call *r)
{
	const struct gateway *gw = r->door->gw;
	int64_t last_us = kernels_last_activity_us(gw->kernels, r->owner);
	struct cJSON *tree = cJSON_CreateObject();
	add_stamp(tree, "started", gw->started_us);
	add_stamp(tree, "last_activity", last_us > 0 ? last_us : gw->started_us);
	/* Numbers of kernels are far below what a double holds. */
	(void)cJSON_AddNumberToObject(
		tree, "kernels", (double)kernels_count(gw->kernels, r->owner));
	(void)cJSON_AddNumberToObject(
		tree, "connections", (double)kernels_connections(gw->kernels, r->owner));
	(void)cJSON_AddItemToObject(tree, "engines", bridge_report(gw->bridge));
	answer_json(r, 200, tree);
}

static void me_get(struct call *r)
{
	const char *name = r->owner->name;
	char initials[2] = {(char)toupper((unsigned char)name[0]), '\0'};
	struct cJSON *tree = cJSON_CreateObject();
	struct cJSON *identity = cJSON_AddObjectToObject(tree, "identity");
	(void)cJSON_AddStringToObject(identity, "username", name); /* a hole without memory */
	(void)cJSON_AddStringToObject(identity, "name", name);
	(void)cJSON_AddStringToObject(identity, "display_name", name);
	(void)cJSON_AddStringToObject(identity, "initials", initials);
	(void)cJSON_AddNullToObject(identity, "avatar_url");
	(void)cJSON_AddNullToObject(identity, "color");
	(void)cJSON_AddObjectToObject(tree, "permissions");
	answer_json(r, 200, tree);
}

const struct route rest_api_routes[] = {
	{METHOD_GET, "/api", 0, api_get},
	{METHOD_GET, "/api/status", SCOPE_READ, status_get},
	{METHOD_GET, "/api/me", SCOPE_READ, me_get},
	{0},
};
