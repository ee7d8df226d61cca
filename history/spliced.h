/* Walks JSON text that json_scan() has accepted, without a tree and without copies: what is cut out
 * is spliced elsewhere as it stood. Behaviour over text that was not accepted is bounded but
 * meaningless. Any thread. */
#ifndef COPPICE_HISTORY_SPLICED_H
#define COPPICE_HISTORY_SPLICED_H

#include "gateway/base/base.h"
#include "gateway/base/buf.h"

struct member {
	struct bytes key; /* quotes included */
	struct bytes value;
};

/* The next member of an object or element of an array from *at on (0 at first); false: no more, or
 * it is none. */
bool object_next(struct bytes object, size_t *at, struct member *ret_member);
bool array_next(struct bytes array, size_t *at, struct bytes *ret_value);
/* The last member of that key, as Python takes it; {0} if there is none. */
struct bytes object_find(struct bytes object, const char *key);

bool is_string(struct bytes raw);
bool is_object(struct bytes raw);
bool is_array(struct bytes raw);
/* Between the quotes; {0} if it is no string. */
struct bytes string_inside(struct bytes raw);
/* Adds what the string stands for, as UTF-8 with NULs as they come. Nothing if it is none. */
int string_unescape(struct bytes raw, struct buf *ret_text);
/* How many bytes of UTF-8 the inside of a string stands for. */
uint64_t string_length(struct bytes inside);
/* A whole number without sign that fits, else false. */
bool number_u64(struct bytes raw, uint64_t *ret_number);

#endif
