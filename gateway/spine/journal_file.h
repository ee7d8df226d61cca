/* The journal's older part on disk: a folder of segments NNNNNN.seg, appended to by one write at a
 * time, cut from its oldest end, read in blocks. Owns its files. Loop thread.
 *
 * A segment is a row of records; integers are little-endian:
 *   u32 length of the frame | u64 number | u64 to | frame (jmsg.h: the v1 WebSocket frame)
 * Numbers rise by one from record to record, across segments too. */
#ifndef COPPICE_SPINE_JOURNAL_FILE_H
#define COPPICE_SPINE_JOURNAL_FILE_H

#include "gateway/spine/journal.h"

#define RECORD_HEAD	    20u
#define JOURNAL_BATCH_MAX   512u
#define JOURNAL_SEGMENT_MAX (32u << 20)
#define JOURNAL_TOLD_BYTES  (32u << 20) /* so that a full journal does not hold up the start */

struct journal_file;

struct journal_file_setup {
	struct uv_loop_s *loop;
	const char *folder; /* copied; its parent must be there (journal_file_sweep) */
	uint64_t disk_max;
	/* Everything up to this number is in the file. From the loop. */
	void (*on_written)(void *data, uint64_t last);
	/* The write failed: no more is ever written. From the loop. */
	void (*on_failed)(void *data, const struct err *err);
	/* From journal_file_restore: each record of the newest segments that hold
	 * JOURNAL_TOLD_BYTES together, borrowed. May be NULL. */
	void (*on_kept)(void *data, struct bytes frame, uint64_t number, uint64_t to);
	void *data;
};

int journal_file_open(
	const struct journal_file_setup *setup, struct journal_file **ret, struct err *err);
/* Begins to append n entries (references are taken). Not while busy or failed. E_NOMEM: nothing was
 * begun. */
int journal_file_write(struct journal_file *f, struct entry *const *entries, size_t n);
bool journal_file_busy(const struct journal_file *f);
/* Number of the oldest record kept; 0 if nothing was written. */
uint64_t journal_file_first(const struct journal_file *f);
uint64_t journal_file_bytes(const struct journal_file *f);
/* Blocking, right after the opening: takes up what an earlier gateway left; its last number, or 0.
 */
uint64_t journal_file_restore(struct journal_file *f);
/* From now on the close removes nothing. */
void journal_file_keep(struct journal_file *f);
/* Waits for what is in flight, removes segments and folder, frees f, then cb from the loop. */
void journal_file_close(struct journal_file *f, void (*cb)(void *data), void *data);
/* Blocking, at start only: makes the folder of all journals, or empties it of what an earlier
 * gateway left, but for the folders that keep (NULL: none) wants. */
void journal_file_sweep(
	const char *journals, bool (*keep)(void *data, const char *name), void *data);

/* on_ready: a block is there, or could not be read. From the loop. */
struct journal_reader *journal_reader_new(
	struct journal_file *f, void (*on_ready)(void *data), void *data);
/* 1: *ret is the record `number` (caller unrefs); 0: being read; E_IO, E_NOMEM: cannot be had. */
int journal_reader_next(
	struct journal_reader *r, uint64_t number, struct entry **ret, struct err *err);
void journal_reader_free(struct journal_reader *r);

#endif
