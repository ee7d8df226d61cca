/* What the model is told: pure functions from a conversation to messages. Any thread. */
#ifndef COPPICE_ADAPTER_PROMPT_H
#define COPPICE_ADAPTER_PROMPT_H

#include "frontend-adapter/collect.h"

struct cJSON;

/* [{role, content}] for the model: what it is for, then what was said. Caller owns. */
struct cJSON *prompt_messages(const struct cJSON *said);
/* Adds one; content is copied. */
void prompt_add(struct cJSON *messages, const char *role, const char *content);
/* What the model wrote failed: error name, value, the last of the traceback. Caller frees; NULL:
 * out of memory. */
char *prompt_repair(const char *code, const struct collect *result, struct err *err);
/* It ran: what came out, to be explained. Caller frees; NULL: out of memory. */
char *prompt_explain(const struct collect *result, struct err *err);

/* What goes, the oldest first, until all that the model is told has at most so many bytes: earlier
 * questions with their answers; then, of the question that is being answered, earlier tries. What
 * the model is for, the question and the last message stay, the last message cut in its middle if
 * it must be. */
struct prompt_left_out {
	unsigned messages;
	size_t bytes;
};
/* E_TOO_BIG: it cannot be told at all. */
int prompt_fits(const char *question, size_t max, struct err *err);
/* question: the one that is being answered, among messages; it fits. Adds to *left_out. E_NOMEM. */
int prompt_bound(struct cJSON *messages, const struct cJSON *question, size_t max,
	struct prompt_left_out *left_out, struct err *err);

#endif
