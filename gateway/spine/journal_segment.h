/* Inside of the journal's file: its struct and its segments, shared by the writing half
 * (journal_file.c) and the reading half (journal_reader.c). Loop thread. */
#ifndef COPPICE_SPINE_JOURNAL_SEGMENT_H
#define COPPICE_SPINE_JOURNAL_SEGMENT_H

#include <limits.h>
#include <uv.h>

#include "gateway/base/list.h"
#include "gateway/spine/journal_file.h"

/* A place where a record begins, one about every 64 KiB, so that a reader need not begin at 0. */
struct mark {
	uint64_t number, offset;
};

struct segment {
	struct list link;
	unsigned index;
	uint64_t first, last, bytes; /* last 0: nothing is in it yet */
	struct mark *marks;
	size_t n_marks, marks_size;
};

struct batch;

struct journal_file {
	struct journal_file_setup setup;
	char *folder;
	uint64_t segment_max, bytes;
	struct list segments;
	unsigned n_made, n_readers, n_unlinks;
	int fd; /* of the last segment, or -1 */
	uv_fs_t op;
	unsigned kind; /* enum op */
	bool op_active, made, failed, keeps;
	struct batch *batch;
	void (*closed)(void *data);
	void *closed_data;
};

struct segment *segment_new(unsigned index);
void segment_free(struct segment *s); /* leaves its list too */
void segment_grew(struct segment *s, uint64_t first, uint64_t last, uint64_t bytes);
/* Offset of a record at or before number. */
uint64_t segment_offset(const struct segment *s, uint64_t number);
void segment_path(const struct journal_file *f, unsigned index, char ret_path[PATH_MAX]);
void journal_file_reader_left(struct journal_file *f);

#endif
