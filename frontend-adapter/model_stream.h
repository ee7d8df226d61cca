/* The body of a streamed chat completion: server-sent events with a JSON object each, cut anywhere.
 * A server that does not stream sends one JSON object; that is taken too. Bytes in, text out; no
 * I/O. */
#ifndef COPPICE_ADAPTER_MODEL_STREAM_H
#define COPPICE_ADAPTER_MODEL_STREAM_H

#include "gateway/base/buf.h"

struct model_stream {
	struct buf line; /* that has not ended yet */
	size_t text_max, text_len;
	bool ended; /* it said that it is whole */
	bool any;   /* an event came */
	bool failed;
	uint64_t prompt_tokens, completion_tokens; /* 0: not said */
	struct err err;
	char *tool; /* name of the function that is being called, or NULL */
	void (*on_text)(void *data, struct bytes text);
	void *data;
};

void model_stream_init(struct model_stream *s, size_t text_max,
	void (*on_text)(void *data, struct bytes text), void *data);
void model_stream_done(struct model_stream *s);
/* False: it is malformed or too long; the end says how. */
bool model_stream_add(struct model_stream *s, struct bytes piece);
/* 0: all is there. E_PROTOCOL, E_UNAVAILABLE (the server's own error). */
int model_stream_end(struct model_stream *s, struct err *err);

#endif
