/* Small things that every file needs: cleanup attributes, sizes, printf checks, xcalloc. */
#ifndef COPPICE_BASE_BASE_H
#define COPPICE_BASE_BASE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#define ARRAY_LEN(a)	      (sizeof(a) / sizeof((a)[0]))
#define CONTAINER_OF(p, t, m) ((t *)((char *)(p)-offsetof(t, m)))
#define PRINTF(f, a)	      __attribute__((format(printf, f, a)))

/* A local that frees itself: AUTO(buf_done) struct buf b; the function takes a pointer to it. */
#define AUTO(fn) __attribute__((cleanup(fn)))
/* Moves a pointer out of an AUTO local. */
#define TAKE(p)                                                                                    \
	__extension__({                                                                            \
		__typeof__(p) take_ = (p);                                                         \
		(p) = NULL;                                                                        \
		take_;                                                                             \
	})

/* Borrowed bytes; data is not NUL-ended. */
struct bytes {
	const uint8_t *data;
	size_t len;
};

/* For small fixed structs only: aborts when memory is out. Client-sized memory goes through buf. */
void *xcalloc(size_t n, size_t size);
char *xstrdup(const char *s);
/* AUTO(freep) char *s. */
void freep(void *pointer_to_pointer);

bool bytes_equal(struct bytes b, const char *text);
/* Copies with an end mark, cut to size; returns false if it was cut. */
bool copy_text(char *to, size_t size, const char *from, size_t from_len);

#endif
