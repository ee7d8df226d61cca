/* The table of what can be asked over HTTP: one row a call, each resource's rows in its rest_*.c.
 */
#ifndef COPPICE_DOOR_ROUTE_H
#define COPPICE_DOOR_ROUTE_H

#include "gateway/door/call.h"

struct route {
	enum method method;
	const char *path; /* "/api/kernels/{id}/interrupt"; {x} is one segment; NULL ends a table */
	unsigned scopes;  /* of enum scope, one of them is needed; 0: open to everybody */
	void (*handle)(struct call *r);
};

/* Finds the row, lets the owner in, calls its handler; else answers. */
void route_dispatch(struct call *r);
/* True if path matches pattern; ret_params: what stood at {...}, in the place of (freed) earlier
 * ones; the caller owns them. */
bool route_match(const char *pattern, const char *path, char *ret_params[PARAMS_MAX]);

extern const struct route rest_admin_routes[];
extern const struct route rest_api_routes[];
extern const struct route rest_channels_routes[];
extern const struct route rest_kernels_routes[];
extern const struct route rest_kernelspecs_routes[];
extern const struct route rest_page_routes[];
extern const struct route rest_sessions_routes[];

#endif
