/* What changed between two sequences: of lines, of outputs, of cells. The lines of a difference are
 * found by libgit2's xdiff. Any thread. */
#ifndef COPPICE_HISTORY_SEQUENCE_H
#define COPPICE_HISTORY_SEQUENCE_H

#include "gateway/base/base.h"
#include "gateway/base/buf.h"

/* Equal items have equal numbers. Owns the numbers, borrows what was added. */
struct sequence {
	struct buf numbers; /* uint32_t */
};

struct interned;

/* Numbers things by their bytes, which it borrows until interner_done(). */
struct interner {
	struct interned *table;
	uint32_t n;
};

void interner_done(struct interner *t);
void sequence_init(struct sequence *s);
void sequence_done(struct sequence *s);
void sequence_add(struct sequence *s, struct interner *t, struct bytes item);
size_t sequence_count(const struct sequence *s);

/* A stretch that went and the one that is in its place; one of them may be empty. */
struct hunk {
	size_t at, n;	      /* of the old one */
	size_t new_at, new_n; /* of the new one */
};

/* In order. What is not 0 ends it. */
int sequence_diff(const struct sequence *from, const struct sequence *to,
	int (*on_hunk)(void *data, const struct hunk *hunk), void *data, struct err *err);

/* The next line as Python's str.splitlines(True) has it, from *at on; false if there is none. */
bool text_line_next(struct bytes text, size_t *at, struct bytes *ret_line);

#endif
