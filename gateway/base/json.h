/* JSON text as bytes: a validating scan without a tree, and the mending of what a kernel got wrong.
 * Trees are cJSON's (include <cjson/cJSON.h> directly). No number passes through a double here.
 * Any thread. Bounded depth (JSON_DEPTH_MAX). */
#ifndef COPPICE_BASE_JSON_H
#define COPPICE_BASE_JSON_H

#include "base.h"
#include "buf.h"
#include "err.h"

#define JSON_DEPTH_MAX 512

/* A member of the outermost object that the caller wants to see. */
struct json_want {
	const char *key;
	struct bytes value; /* set by the scan: raw bytes of the value, quotes included; {0} if
			     * absent. With a key twice the last one counts, as in Python. */
};

/* 0: data is one JSON value, strictly (RFC 8259, UTF-8, no lone surrogate escape, no NaN);
 * E_INVALID: not, err says where. Wants are found only if the outermost value is an object. */
int json_scan(struct bytes data, struct json_want *wants, size_t n, struct err *err);
bool json_is_utf8(const char *text); /* and so may stand in JSON */
bool json_is_object(
	struct bytes data); /* first non-blank byte is '{'; meaningful after json_scan */

/* What a failed part becomes: bare NaN, Infinity and -Infinity become null; a lone surrogate escape
 * becomes \ufffd; bytes that are not UTF-8 (encoded surrogates included) become U+FFFD, one per
 * byte; raw control characters inside strings are escaped. 0 if the result then scans, else
 * E_INVALID. ret is initialised by the caller. */
int json_mend(struct bytes data, struct buf *ret, struct err *err);

/* \u0000 in strings becomes \ufffd, in place: cJSON would end a text there. Of JSON that scans. */
void json_replace_nul(uint8_t *data, size_t len);

/* Unescapes a raw string value (quotes included) into ret_text; false if it is not a string or does
 * not fit or holds NUL. */
bool json_text(struct bytes raw, char *ret_text, size_t size);

#endif
