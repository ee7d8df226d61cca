/* What stands in a node's tree in the place of a file: a list of chunks where it is large, a
 * sentence where its content is not kept. Text of a form of our own; a file that happens to have
 * that form is not kept (history_keep()), so that one is never taken for the other. */
#ifndef COPPICE_HISTORY_POINTER_H
#define COPPICE_HISTORY_POINTER_H

#include "gateway/base/base.h"
#include "gateway/base/buf.h"

#define CHUNK_BYTES	(1u << 20)
#define CHUNK_NAME_LEN	64u
#define POINTER_CHUNKS	256u /* of one file */
#define POINTER_MAX	(64u + POINTER_CHUNKS * (CHUNK_NAME_LEN + 1))
#define POINTER_LOST	512u /* bytes of a pointer that says why, whatever it says */
#define POINTER_REASON	400u /* of them for the sentence, with its NUL */
#define EMPTY_FOLDER	".coppice-folder"
#define MODE_FILE	0100644u
#define MODE_EXECUTABLE 0100755u
#define MODE_LINK	0120000u
#define MODE_FOLDER	0040000u

struct pointer {
	bool is_lost;
	unsigned mode; /* of what was lost */
	uint64_t bytes;
	struct bytes chunks; /* n names, a newline behind each; in the text that was read */
	size_t n;
	char reason[POINTER_REASON];
};

/* How many chunks a file of that size has. */
size_t pointer_chunks(uint64_t bytes);
/* names: n of 64 digits, one behind the other. */
void pointer_add(struct buf *b, uint64_t bytes, const char *names, size_t n);
void pointer_add_lost(struct buf *b, unsigned mode, uint64_t bytes, const char *reason);
/* A blob of that size may be one: others need not be read. */
bool pointer_may_be(uint64_t size);
/* False: it is a file. */
bool pointer_read(struct bytes text, struct pointer *ret);

/* Lower-case digits alone. */
bool is_hex_name(const char *text, size_t len);

#endif
