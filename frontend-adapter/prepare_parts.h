/* What the files of prepare share: one reply that is being read. */
#ifndef COPPICE_FRONTEND_ADAPTER_PREPARE_PARTS_H
#define COPPICE_FRONTEND_ADAPTER_PREPARE_PARTS_H

#include "frontend-adapter/python.h"
#include "frontend-adapter/runs.h"

struct prepare {
	struct bytes text; /* clean; borrowed */
	size_t at;	   /* read so far */
	struct runs runs;
	struct buf prose;
	bool tagged; /* Python that says so, or a call: nothing else is guessed at */
	bool guess;  /* the pass that takes code without a tag */
	unsigned nested;
	unsigned scans; /* for the end of a block that found none up to the text's end */
	struct err *err;
};

/* The blocks of Markdown from p->at on, and the prose between; reasoning is dropped. */
int prepare_read_markdown(struct prepare *p);
/* Calls of tools that stand in the prose. */
int prepare_read_calls(struct prepare *p);

/* What the code looks like once it is mended. */
int prepare_look(struct prepare *p, struct bytes code, enum py_look *ret);
int prepare_take_python(struct prepare *p, struct bytes code, bool cut);

static inline struct bytes buf_view(const struct buf *b)
{
	return (struct bytes){b->data, b->len};
}

#endif
