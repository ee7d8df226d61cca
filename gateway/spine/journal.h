/* One kernel's journal: everything the kernel sent (and what we synthesise for its clients),
 * append-only, numbered from 1. Recent entries are in memory counted by reference, older ones in a
 * file written behind (one uv_fs_write in flight). Clients are cursors over it. Loop thread. */
#ifndef COPPICE_SPINE_JOURNAL_H
#define COPPICE_SPINE_JOURNAL_H

#include "gateway/base/clock.h"
#include "gateway/base/jmsg.h"
#include "gateway/base/list.h"

struct uv_loop_s;
struct journal;
struct journal_reader;

#define JOURNAL_TO_ALL	  UINT64_C(0)
#define JOURNAL_TO_NOBODY UINT64_MAX /* kept for the record; no client gets it */

/* Immutable but for `legacy`, which the door makes once: entry_keep_legacy. */
struct entry {
	unsigned refs;
	bool legacy_binary;
	uint64_t number;
	uint64_t to; /* client number it is for; 0: every client */
	struct jmsg *msg;
	struct bytes
		legacy; /* encoded legacy frame with JMSG_HEADROOM before it; {0} until built */
	struct journal *journal; /* whose memory it counts towards; NULL: nobody's */
};

/* One reference, number and to as given; takes a reference on m. NULL: out of memory. */
struct entry *entry_new(struct jmsg *m, uint64_t number, uint64_t to);
struct entry *entry_ref(struct entry *e);
void entry_unref(struct entry *e);
/* legacy.data was allocated, with JMSG_HEADROOM bytes before it, and is the entry's from now on. It
 * counts towards the journal's memory as the message does. */
void entry_keep_legacy(struct entry *e, struct bytes legacy, bool binary);

struct journal_setup {
	struct uv_loop_s *loop;
	struct clock *clock;
	const char *folder; /* this kernel's own; made at the first write, removed at the close */
	bool goes_on;	    /* takes up what an earlier gateway left in folder; blocks */
	size_t memory_max;
	uint64_t disk_max;
	/* While it is opened: each entry for one client in the newest 32 MiB or more;
	 * the frame is borrowed. May be NULL. */
	void (*on_kept)(void *data, struct bytes frame, uint64_t number, uint64_t to);
	/* More waits for the disk than memory may hold: stop reading the kernel until over is
	 * false. */
	void (*on_pressure)(void *data, bool over);
	/* Everything up to this number is in the file. May be NULL. */
	void (*on_written)(void *data, uint64_t last);
	/* The disk failed: from now on only what memory holds is kept. Once. */
	void (*on_trouble)(void *data, const char *text);
	void *data;
};

int journal_open(const struct journal_setup *setup, struct journal **ret, struct err *err);
/* Takes a reference on m. E_NOMEM: nothing was appended. */
int journal_append(
	struct journal *j, struct jmsg *m, uint64_t to, uint64_t *ret_number, struct err *err);
/* What was appended in this wake-up is complete: the write begins now or within 20 ms. */
void journal_turn(struct journal *j);
/* Writes what is not written yet, then closes without removing; else as journal_close. */
void journal_leave(struct journal *j, void (*cb)(void *data), void *data);
/* No cursor may be left. Removes the files; cb from the loop; j is freed before cb. */
void journal_close(struct journal *j, void (*cb)(void *data), void *data);

uint64_t journal_next(const struct journal *j);	 /* number of the next entry to come */
uint64_t journal_first(const struct journal *j); /* oldest that can still be had */

uint64_t journal_written(const struct journal *j); /* the file has all up to this */
/* Its file, if everything up to that number is in it; else NULL. For journal_scan.c. */
struct journal_file;
const struct journal_file *journal_file_of(const struct journal *j, uint64_t last);

/* ---- for journal_forget.c ---- */

struct journal_wait {
	struct list link;
	uint64_t number;
	void (*cb)(void *data);
	void *data;
};
/* In the place of each entry in memory that is_one says, another of the same length. What is being
 * written goes to the file as it was. E_NOMEM: some are as they were. */
int journal_replace(struct journal *j, bool (*is_one)(void *data, const struct jmsg *m), void *data,
	struct jmsg *(*instead)(const struct jmsg *m), struct err *err);
/* cb, from the loop, once the file has all that was appended, or gets no more. False: it is so;
 * cb is not called. */
bool journal_await(struct journal *j, struct journal_wait *w);

struct journal_figures {
	uint64_t entries, memory_bytes, unwritten_bytes, disk_bytes;
	bool over, failed;
};
void journal_figures(const struct journal *j, struct journal_figures *ret);

/* A reader's place. Embedded in a client. */
struct cursor {
	struct journal *journal;
	uint64_t next;
	struct journal_reader *reader; /* only while behind what memory holds */
	void (*on_ready)(void *data);  /* a block came from the file; from the loop */
	void *data;
};

void cursor_init(struct cursor *c, struct journal *j, uint64_t next);
void cursor_done(struct cursor *c);
void cursor_seek(struct cursor *c, uint64_t next);
/* 1: *ret is the next entry (caller unrefs); 0: none now (on_ready tells if it must be read first:
 * then next is not yet the journal's).
 * *ret_missed is raised by the entries that were cut before they could be had. */
int cursor_next(struct cursor *c, uint64_t *ret_missed, struct entry **ret);

#endif
