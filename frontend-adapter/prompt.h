/* What the model is told: pure functions from a conversation to messages. Any thread. */
#ifndef COPPICE_ADAPTER_PROMPT_H
#define COPPICE_ADAPTER_PROMPT_H

#include "frontend-adapter/collect.h"

struct cJSON;

/* [{role, content}] for the model: what it is for, then what was said. Caller owns. */
struct cJSON *prompt_messages(const struct cJSON *said);
/* Adds one; content is copied. */
void prompt_add(struct cJSON *messages, const char *role, const char *content);
/* What the model wrote failed: error name, value, the last of the traceback. Caller frees. */
char *prompt_repair(const char *code, const struct collect *result);
/* It ran: what came out, to be explained. Caller frees. */
char *prompt_explain(const struct collect *result);

#endif
