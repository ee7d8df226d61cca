/* What the two rest_*.c about history share. */
#ifndef COPPICE_DOOR_REST_HISTORY_H
#define COPPICE_DOOR_REST_HISTORY_H

#include "gateway/door/call.h"
#include "history/history.h"

/* What r asks about that history (NULL: none), as its owner; borrowed from r. E_INVALID: its query
 * is malformed; E_NOT_FOUND: nothing is recorded. */
int question_read(const struct call *r, enum history_what what, const char *history,
	struct history_question *ret, struct err *err);

#endif
