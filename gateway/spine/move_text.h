/* What is told of a move: reports, and the sentences that people read. No state. Loop thread. */
#ifndef COPPICE_SPINE_MOVE_TEXT_H
#define COPPICE_SPINE_MOVE_TEXT_H

#include "gateway/base/buf.h"
#include "gateway/base/err.h"

struct cJSON;

/* Both name the working folder's digest alike. Texts of a guest: JSON with `folder`. */
bool move_same_folder(struct bytes parked, struct bytes revived);
/* The report where nothing but code is kept: what would have to be run again. Caller owns. */
struct cJSON *move_code_only(const struct cJSON *way, const char *why);
/* The same as words behind err's sentence. */
void move_add_rebuild(struct err *err, const struct cJSON *way);
/* What the report says to do, behind it. */
void move_add_last_note(struct err *err, const struct cJSON *report);
/* That it is done: told is the answer of desk_checkout(). Inits ret_text, which latches. */
void move_notice(struct buf *ret_text, const struct cJSON *way, const struct cJSON *told);

#endif
