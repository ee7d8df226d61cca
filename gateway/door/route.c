#include "gateway/door/route.h"

#include <cjson/cJSON.h>
#include <stdio.h>
#include <string.h>

#include "gateway/door/auth.h"

static const struct route *const tables[] = {rest_kernels_routes, rest_sessions_routes,
	rest_moves_routes, rest_branches_routes, rest_channels_routes, rest_kernelspecs_routes,
	rest_api_routes, rest_page_routes, rest_admin_routes, rest_history_routes, rest_git_routes,
	rest_conversations_routes, rest_chat_routes, rest_render_routes, rest_store_routes,
	rest_forget_routes, rest_log_routes, rest_openapi_routes, rest_interchange_routes};

static void drop_params(char *params[PARAMS_MAX])
{
	for (unsigned i = 0; i < PARAMS_MAX; i++) {
		free(params[i]);
		params[i] = NULL;
	}
}

static char *copy_segment(const char *at, size_t len)
{
	char *copy = xcalloc(1, len + 1);
	return memcpy(copy, at, len);
}

static size_t segment_len(const char *at)
{
	return strcspn(at, "/");
}

static bool ended(const char *path)
{
	return path[0] == '\0' || strcmp(path, "/") == 0;
}

bool route_match(const char *pattern, const char *path, char *ret_params[PARAMS_MAX])
{
	unsigned n = 0;
	drop_params(ret_params);
	while (*pattern == '/' && *path == '/') {
		size_t want = segment_len(++pattern), have = segment_len(++path);
		if (want == 0 && have == 0)
			return true; /* both "/" */
		if (pattern[0] == '{' && have > 0 && n < PARAMS_MAX)
			ret_params[n++] = copy_segment(path, have);
		else if (want != have || strncmp(pattern, path, want) != 0)
			break;
		pattern += want;
		path += have;
		if (*pattern == '\0' && ended(path))
			return true;
	}
	drop_params(ret_params);
	return false;
}

/* The row, or NULL with the methods that the path knows. HEAD came as GET. */
static const struct route *find(struct call *r, const char *path, unsigned *ret_methods)
{
	for (unsigned t = 0; t < ARRAY_LEN(tables); t++) {
		for (const struct route *row = tables[t]; row->path; row++) {
			if (!route_match(row->path, path, r->param))
				continue;
			if (row->method == r->method)
				return row;
			*ret_methods |= 1u << row->method;
			drop_params(r->param);
		}
	}
	return NULL;
}

size_t route_body_max(const struct call *r)
{
	char *params[PARAMS_MAX] = {0};
	const char *path = call_path(r);
	size_t max = BODY_MAX;
	for (unsigned t = 0; path && t < ARRAY_LEN(tables); t++)
		for (const struct route *row = tables[t]; row->path; row++)
			if (row->scopes & ROUTE_LARGE && row->method == r->method &&
				route_match(row->path, path, params))
				max = BODY_LARGE_MAX;
	drop_params(params);
	return max;
}

static void refuse_method(struct call *r, unsigned methods)
{
	char allow[64] = "OPTIONS";
	struct err err;
	for (unsigned m = 0; m < METHODS; m++) {
		size_t len = strlen(allow);
		if (methods & 1u << m)
			(void)snprintf(allow + len, sizeof allow - len, ", %s", method_name(m));
	}
	answer_header(r, "Allow", allow);
	err_set(&err, E_METHOD, "%s is not possible here", method_name(r->method));
	answer_error(r, &err);
}

static void refuse_path(struct call *r)
{
	struct err err;
	if (r->path && strcmp(r->path, "/") == 0 && r->door->base[0] != '\0') {
		AUTO(buf_done) struct buf home;
		buf_init(&home, 4096);
		(void)buf_addf(&home, "%s/", r->door->base); /* base_url was bounded */
		answer_header(r, "Location", home.data ? (const char *)home.data : "/");
		answer_empty(r, 302);
		return;
	}
	err_set(&err, E_NOT_FOUND, "nothing is here");
	answer_error(r, &err);
}

static void show_row(const struct route *row, struct cJSON *rows)
{
	static const char *const names[] = {"read", "run", "admin"}; /* of enum scope, in order */
	struct cJSON *tree = cJSON_CreateObject();
	(void)cJSON_AddStringToObject(tree, "method", method_name(row->method)); /* or less */
	(void)cJSON_AddStringToObject(tree, "path", row->path);
	struct cJSON *scopes = cJSON_AddArrayToObject(tree, "scopes");
	for (unsigned i = 0; i < ARRAY_LEN(names); i++)
		if (row->scopes & 1u << i)
			(void)cJSON_AddItemToArray(scopes, cJSON_CreateString(names[i]));
	(void)cJSON_AddItemToArray(rows, tree);
}

struct cJSON *route_show(void)
{
	struct cJSON *rows = cJSON_CreateArray();
	for (unsigned t = 0; t < ARRAY_LEN(tables); t++)
		for (const struct route *row = tables[t]; row->path; row++)
			show_row(row, rows);
	return rows;
}

void route_dispatch(struct call *r)
{
	struct err err = {0};
	unsigned methods = 0;
	r->dispatched = true;
	if (r->method == METHOD_OPTIONS) {
		auth_preflight(r);
		answer_empty(r, 204);
		return;
	}
	const char *path = call_path(r);
	const struct route *row = path ? find(r, path, &methods) : NULL;
	r->basic = row && row->scopes & ROUTE_BASIC;
	if (row && row->scopes != 0 && auth_check(r, row->scopes, &err) != 0)
		answer_error(r, &err);
	else if (row)
		row->handle(r);
	else if (methods != 0)
		refuse_method(r, methods);
	else
		refuse_path(r);
}
