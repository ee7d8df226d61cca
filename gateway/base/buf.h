/* A growing byte buffer with a ceiling: unbounded is unspellable. Owns its memory. One thread. */
#ifndef COPPICE_BASE_BUF_H
#define COPPICE_BASE_BUF_H

#include "base.h"
#include "err.h"

struct buf {
	uint8_t *data; /* always followed by a NUL that len does not count; NULL while empty */
	size_t len;
	size_t size;
	size_t max;  /* len never passes it */
	bool failed; /* an earlier add did not fit or memory was out: nothing is added any more */
	int code;    /* why it failed */
};

void buf_init(struct buf *b, size_t max);
void buf_done(struct buf *b);
void buf_reset(struct buf *b);

/* Each returns 0, or E_TOO_BIG or E_NOMEM, and sets b->failed: a chain of adds may be checked once
 * at its end through buf_check(). */
int buf_add(struct buf *b, const void *data, size_t len);
int buf_add_text(struct buf *b, const char *text);
int buf_addf(struct buf *b, const char *format, ...) PRINTF(2, 3);
/* Adds text as a JSON string with its quotes. text must be valid UTF-8. */
int buf_add_json_string(struct buf *b, const char *text, size_t len);
int buf_reserve(struct buf *b, size_t more);
/* 0, or the code of the first add that failed with a sentence that names what. */
int buf_check(const struct buf *b, const char *what, struct err *err);
/* The memory (free() it); the buffer is empty after it. */
uint8_t *buf_take(struct buf *b, size_t *ret_len);

#endif
