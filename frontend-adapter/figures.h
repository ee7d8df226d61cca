/* Part of adapter.h: what conversations cost, since the start, for /metrics. */
#ifndef COPPICE_ADAPTER_FIGURES_H
#define COPPICE_ADAPTER_FIGURES_H

#include "gateway/base/base.h"

struct chats;

/* How an answer ended. */
enum chat_status { CHAT_OK, CHAT_NOT_FIXED, CHAT_FAILED, CHAT_STOPPED, CHAT_STATUSES };

struct chats_figures {
	uint64_t answers[CHAT_STATUSES];
	uint64_t runs, repairs, pictures_scaled;
	uint64_t model_calls, prompt_tokens, completion_tokens, model_ms;
	uint64_t stdout_bytes, stderr_bytes, outputs_bytes;
};

const char *chat_status_name(enum chat_status status);
const struct chats_figures *chats_figures(const struct chats *cs);

#endif
