/* Reads a stretch of a journal's file from beside, while the file may go on being written: for who
 * makes a record of it. Owns a descriptor and one buffer. Blocks; any thread, one at a time. */
#ifndef COPPICE_SPINE_JOURNAL_SCAN_H
#define COPPICE_SPINE_JOURNAL_SCAN_H

#include <limits.h>

#include "gateway/base/base.h"
#include "gateway/base/err.h"

struct journal;
struct journal_scan;

struct journal_stretch {
	char folder[PATH_MAX];
	unsigned segment; /* in which `offset` is the beginning of a record at or before `first` */
	uint64_t offset;
	uint64_t first, last;
};

/* Loop thread. False: not all of it is in the file (any more, or yet). */
bool journal_stretch(
	const struct journal *j, uint64_t first, uint64_t last, struct journal_stretch *ret);

struct journal_scan *journal_scan_new(const struct journal_stretch *stretch);
void journal_scan_free(struct journal_scan *s);

struct scanned {
	uint64_t number, to;
	struct bytes frame; /* borrowed until the next call */
};

/* 1: *ret is the next record; 0: that was all; E_GONE: it was cut meanwhile; E_IO; E_NOMEM. */
int journal_scan_next(struct journal_scan *s, struct scanned *ret, struct err *err);

#endif
