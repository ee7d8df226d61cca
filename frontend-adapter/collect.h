/* What one run put out, as nbformat has it, while it comes: for the events of a conversation and
 * its record. Bounded by the result budget; what is cut is named. Owns its trees. Loop thread. */
#ifndef COPPICE_ADAPTER_COLLECT_H
#define COPPICE_ADAPTER_COLLECT_H

#include "frontend-adapter/shown.h"
#include "frontend-adapter/stream.h"

struct cJSON;

#define COLLECT_BUDGET	(3u << 20) /* of one result, streams and outputs together */
#define COLLECT_OUTPUTS (COLLECT_BUDGET - 4 * STREAM_HALF)

struct collect_sink {
	/* What is new: an event `output` or `clear`; takes the tree. */
	void (*tell)(void *data, const char *name, struct cJSON *tree);
	/* All text of both streams, in order. */
	void (*print)(void *data, struct bytes text);
	/* Text waits to be told together with what follows soon: collect_flush() is owed. */
	void (*waits)(void *data);
	void *data;
	struct renderer *renderer; /* as in shown.h */
	struct clock *clock;
};

struct collect {
	struct stream out, err;
	struct shown shown;
	struct cJSON *error;   /* {ename, evalue, traceback} or NULL */
	uint64_t output_bytes; /* of all that came */
	unsigned n_lost;       /* messages: memory was out */
	bool clears;	       /* before the next output */
	struct buf text;       /* of a stream, that is not told yet */
	bool text_is_err;
	struct collect_sink to;
};

/* Not to be moved. */
void collect_init(struct collect *c, const struct collect_sink *to);
void collect_done(struct collect *c);
void collect_add(struct collect *c, const char *msg_type, struct bytes content);
void collect_flush(struct collect *c);
/* Nothing more is to come at present: pictures are being scaled. */
bool collect_scales(const struct collect *c);
/* Nothing more comes: tells the ends of streams that were cut, and what was withheld. False: all is
 * there. True: pictures are being scaled, cb from the loop, once; before that nothing else but
 * collect_text() is to be called. */
bool collect_end(struct collect *c, void (*cb)(void *data), void *data);
/* Adds stdout, stderr, outputs, error, truncated; bytes. What memory was out for is named in
 * truncated. */
void collect_record(const struct collect *c, struct cJSON *record);
void collect_bytes(const struct collect *c, struct cJSON *record);
/* For a model: streams, results as text, pictures named; cut to max bytes, head and tail. Caller
 * frees; NULL: out of memory. */
char *collect_text(const struct collect *c, size_t max);

#endif
