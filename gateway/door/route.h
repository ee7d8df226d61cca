/* The table of what can be asked over HTTP: one row a call, each resource's rows in its rest_*.c.
 */
#ifndef COPPICE_DOOR_ROUTE_H
#define COPPICE_DOOR_ROUTE_H

#include "gateway/door/call.h"

/* Beside the scopes: the token may come as the password of Basic too, which is all that git sends.
 * Nowhere else, since browsers send that by themselves. */
#define ROUTE_BASIC (1u << 31)
/* Likewise: its body is a file of a person, up to BODY_LARGE_MAX. */
#define ROUTE_LARGE (1u << 30)

struct route {
	enum method method;
	const char *path; /* "/api/kernels/{id}/interrupt"; {x} is one segment; NULL ends a table */
	unsigned scopes;  /* of enum scope, one of them is needed; 0: open to everybody */
	void (*handle)(struct call *r);
};

/* Finds the row, lets the owner in, calls its handler; else answers. */
void route_dispatch(struct call *r);
/* How long the body of r may be, by its row. */
size_t route_body_max(const struct call *r);
/* True if path matches pattern; ret_params: what stood at {...}, in the place of (freed) earlier
 * ones; the caller owns them. */
bool route_match(const char *pattern, const char *path, char *ret_params[PARAMS_MAX]);

/* [{method, path, scopes}] of all rows; the caller owns it. */
struct cJSON *route_show(void);

extern const struct route rest_admin_routes[];
extern const struct route rest_api_routes[];
extern const struct route rest_channels_routes[];
extern const struct route rest_chat_routes[];
extern const struct route rest_conversations_routes[];
extern const struct route rest_forget_routes[];
extern const struct route rest_git_routes[];
extern const struct route rest_history_routes[];
extern const struct route rest_interchange_routes[];
extern const struct route rest_kernels_routes[];
extern const struct route rest_kernelspecs_routes[];
extern const struct route rest_log_routes[];
extern const struct route rest_moves_routes[];
extern const struct route rest_branches_routes[];
extern const struct route rest_openapi_routes[];
extern const struct route rest_page_routes[];
extern const struct route rest_render_routes[];
extern const struct route rest_sessions_routes[];
extern const struct route rest_store_routes[];

#endif
