/* A Change of a working folder (docs/decisions/0028), read from its JSON. It comes from a guest:
 * what of it cannot be kept is left out and told in notes; nothing in it makes reading fail but
 * that it is no Change. Owns copies. One thread. */
#ifndef COPPICE_HISTORY_CHANGE_H
#define COPPICE_HISTORY_CHANGE_H

#include "gateway/base/base.h"
#include "gateway/base/buf.h"
#include "gateway/base/err.h"
#include "history/pointer.h"
#include "history/working_files.h"

#define CHANGE_MAX	   (64u << 20) /* bytes of its JSON */
#define CHANGE_ENTRIES_MAX HISTORY_FILES_MAX
#define CHANGE_NOTES_MAX   64u
#define CHANGE_PATH_MAX	   4096u
#define CHANGE_DEPTH_MAX   100u
#define CHANGE_NAME_MAX	   255u

struct change_entry {
	const char *path;
	unsigned mode;
	uint64_t bytes;
	const char *blob;   /* 40 digits, or NULL */
	const char *chunks; /* n_chunks times 64 digits, or NULL */
	size_t n_chunks;
	const char *lost; /* why there is neither; NULL of a folder */
};

struct change_note {
	const char *path, *reason;
};

struct change {
	bool full;
	struct change_entry *changed;
	size_t n_changed;
	const char **removed;
	size_t n_removed;
	struct change_note notes[CHANGE_NOTES_MAX]; /* what is no entry, or was refused */
	size_t n_notes;
	uint64_t more;	   /* notes that are not told */
	struct buf memory; /* the texts; never grows, so that they stay where they are */
};

/* E_INVALID: it is no Change. ret is made by this call, change_done() by the caller whatever it
 * returns. */
int change_read(struct bytes json, struct change *ret, struct err *err);
void change_done(struct change *c);
/* reason is a constant, or as long there as the change is; path likewise. */
void change_note(struct change *c, const char *path, const char *reason);
/* NULL: it can stand in a tree, as far as that can be said without git. Else why not. */
const char *change_path_fault(const char *path, size_t len);
/* As files.json has it. */
int change_write(const struct change *c, struct buf *ret_json, struct err *err);

#endif
