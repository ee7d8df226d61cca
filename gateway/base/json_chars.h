/* What json_scan.c, json_mend.c and json_text.c share: runs of plain bytes, UTF-8, hex. Inside base
 * only. */
#ifndef COPPICE_BASE_JSON_CHARS_H
#define COPPICE_BASE_JSON_CHARS_H

#include <string.h>

#include "gateway/base/base.h"

#define JSON_ONES  UINT64_C(0x0101010101010101)
#define JSON_HIGHS UINT64_C(0x8080808080808080)

static inline bool json_is_blank(uint8_t c)
{
	return c == ' ' || c == '\n' || c == '\r' || c == '\t';
}

/* Plain in a string: printable ASCII but for quote and backslash. */
static inline bool json_is_plain(uint8_t c)
{
	return c >= 0x20 && c < 0x80 && c != '"' && c != '\\';
}

/* The high bit of each byte that is not plain; bytes above the first of them may be marked wrongly
 * (borrows run upwards), so only "is there one, and where is the first" can be read from it. */
static inline uint64_t json_marks(uint64_t word)
{
	uint64_t quote = word ^ (JSON_ONES * '"'), slash = word ^ (JSON_ONES * '\\');
	uint64_t below = word - JSON_ONES * 0x20;
	return ((quote - JSON_ONES) | (slash - JSON_ONES) | below | word) & JSON_HIGHS;
}

/* The first byte from at on that is not plain, or end. Eight bytes at a time: this is where a
 * message spends its bytes. */
static inline const uint8_t *json_skip_plain(const uint8_t *at, const uint8_t *end)
{
	while (end - at >= 8) {
		uint64_t word;
		memcpy(&word, at, sizeof word);
		if (json_marks(word) != 0)
			break;
		at += 8;
	}
	while (at < end && json_is_plain(*at))
		at++;
	return at;
}

/* Length of the UTF-8 character of two to four bytes at at, or 0 if there is none: overlong forms,
 * encoded surrogates and what lies above U+10FFFF are none. at < end. */
static inline size_t json_utf8_len(const uint8_t *at, const uint8_t *end)
{
	uint8_t lead = at[0], low = 0x80, high = 0xbf;
	size_t len = lead >= 0xf0 ? 4 : lead >= 0xe0 ? 3 : 2;
	if (lead < 0xc2 || lead > 0xf4 || (size_t)(end - at) < len)
		return 0;
	if (lead == 0xe0)
		low = 0xa0;
	else if (lead == 0xed)
		high = 0x9f;
	else if (lead == 0xf0)
		low = 0x90;
	else if (lead == 0xf4)
		high = 0x8f;
	if (at[1] < low || at[1] > high)
		return 0;
	for (size_t i = 2; i < len; i++)
		if ((at[i] & 0xc0) != 0x80)
			return 0;
	return len;
}

/* The value of four hex digits, or -1. */
static inline int json_hex4(const uint8_t *at, const uint8_t *end)
{
	int value = 0;
	if (end - at < 4)
		return -1;
	for (int i = 0; i < 4; i++) {
		uint8_t c = at[i], letter = c | 0x20;
		if (c >= '0' && c <= '9')
			value = value * 16 + (c - '0');
		else if (letter >= 'a' && letter <= 'f')
			value = value * 16 + (letter - 'a' + 10);
		else
			return -1;
	}
	return value;
}

/* Length of the escape at at (a backslash), or 0 if it is malformed; a surrogate pair is one
 * escape. ret_code: the character, or the lone surrogate (then 6 is returned). */
static inline size_t json_escape_len(const uint8_t *at, const uint8_t *end, uint32_t *ret_code)
{
	static const char names[] = "\"\"\\\\//b\bf\fn\nr\rt\t";
	if (end - at < 2)
		return 0;
	if (at[1] != 'u') {
		for (const char *name = names; *name; name += 2) {
			if ((uint8_t)name[0] == at[1]) {
				*ret_code = (uint8_t)name[1];
				return 2;
			}
		}
		return 0;
	}
	int first = json_hex4(at + 2, end);
	if (first < 0)
		return 0;
	*ret_code = (uint32_t)first;
	if (first < 0xd800 || first > 0xdbff || end - at < 12 || at[6] != '\\' || at[7] != 'u')
		return 6;
	int second = json_hex4(at + 8, end);
	if (second < 0xdc00 || second > 0xdfff)
		return 6;
	*ret_code = 0x10000 + (((uint32_t)first - 0xd800) << 10) + ((uint32_t)second - 0xdc00);
	return 12;
}

static inline bool json_is_surrogate(uint32_t code)
{
	return code >= 0xd800 && code <= 0xdfff;
}

#endif
