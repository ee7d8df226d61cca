/* The door to a language model: OpenAI-compatible chat completions, streamed. Owns its connection
 * pool. Loop thread; callbacks from the loop. */
#ifndef COPPICE_ADAPTER_MODEL_H
#define COPPICE_ADAPTER_MODEL_H

#include "gateway/base/base.h"
#include "gateway/base/clock.h"
#include "gateway/base/err.h"

struct cJSON;
struct uv_loop_s;
struct model;
struct model_call;

#define MODEL_TEXT_MAX (1u << 20) /* of one answer */

struct model_setup {
	struct uv_loop_s *loop;
	struct clock *clock;
	const char *url;  /* up to and without /chat/completions */
	const char *name; /* of the model */
	const char *key;  /* NULL: none; never logged */
	uint64_t timeout_ms;
};

int model_open(const struct model_setup *setup, struct model **ret, struct err *err);
/* Calls under way end with an error before cb. */
void model_close(struct model *m, void (*cb)(void *data), void *data);

/* What an answer cost. */
struct model_usage {
	uint64_t prompt_tokens, completion_tokens; /* 0: the server does not say */
	uint64_t first_ms, whole_ms; /* until text came (0: none did), until the end */
	unsigned asked;		     /* how often */
};

struct model_ask {
	const struct cJSON *messages; /* [{role, content}], borrowed for the call */
	/* A piece of the answer's text, in order. */
	void (*on_text)(void *data, struct bytes text);
	/* Once, last. err NULL: the answer is whole. E_UNAVAILABLE, E_TIMEOUT, E_PROTOCOL:
	 * it is not, and was asked for again where that could help. */
	void (*on_end)(void *data, const struct model_usage *usage, const struct err *err);
	void *data;
};

int model_ask(
	struct model *m, const struct model_ask *ask, struct model_call **ret, struct err *err);
/* No callback follows. Not from within on_text. */
void model_cancel(struct model_call *c);

#endif
