/* What of a model's answer is to be run, for a turn of a conversation. Pure, any thread. */
#ifndef COPPICE_FRONTEND_ADAPTER_PREPARE_H
#define COPPICE_FRONTEND_ADAPTER_PREPARE_H

#include "gateway/base/base.h"
#include "gateway/base/err.h"

struct cJSON;

/* As prepare_text(); a block that is a run has one member more, `written`. */
int prepare_read(struct bytes text, struct cJSON **ret_tree, struct err *err);

struct prepared {
	char *code;	       /* all of the answer's code as one cell */
	char *written;	       /* the same as the model wrote it */
	struct cJSON *changes; /* [{rule, before, after}] */
};

enum prepared_is { PREPARED_CODE, PREPARED_NONE, PREPARED_CUT };

/* PREPARED_CODE: *ret, for prepared_done(). Else there is none, or not all of it, and nothing is to
 * be freed. An error: what of it is code cannot be said. */
int prepare_code(const char *text, enum prepared_is *ret_is, struct prepared *ret, struct err *err);
void prepared_done(struct prepared *p);

#endif
