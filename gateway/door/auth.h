/* Who may come in: token and scope of a request, and the headers by which a browser lets pages of
 * other origins read the answer. */
#ifndef COPPICE_DOOR_AUTH_H
#define COPPICE_DOOR_AUTH_H

#include "gateway/door/call.h"

/* Finds the owner by `?token=` or `Authorization: token|Bearer T` and sets r->owner.
 * E_UNAUTHORIZED: none or none of ours; E_FORBIDDEN: without one of the scopes (0: any will do). */
int auth_check(struct call *r, unsigned scopes, struct err *err);

/* Adds the CORS headers that this request's origin gets, if any. */
void auth_cors(struct call *r);
/* Adds those of a preflight's answer. */
void auth_preflight(struct call *r);

/* True if a token of this length may guard an address that others can reach. */
#define AUTH_SECRET_MIN 16

#endif
