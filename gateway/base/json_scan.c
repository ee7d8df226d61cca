/* The validating scan: no tree, no recursion, one pass. A container costs one bit. */
#include "gateway/base/json.h"

#include <string.h>

#include "gateway/base/json_chars.h"

struct scan {
	const uint8_t *start, *at, *end;
	unsigned depth;
	uint64_t is_object[JSON_DEPTH_MAX / 64]; /* a bit for each open container */
	struct json_want *wants;
	size_t n;
	struct json_want *want; /* whose value is being scanned; NULL mostly */
	const uint8_t *value;	/* where it begins */
	struct err *err;
};

enum step { STEP_VALUE, STEP_KEY, STEP_AFTER, STEP_DONE, STEP_FAILED };

static bool refuse(struct scan *s, const char *what)
{
	err_set(s->err, E_INVALID, "JSON: %s at byte %zu", what, (size_t)(s->at - s->start));
	return false;
}

static enum step fail(struct scan *s, const char *what)
{
	(void)refuse(s, what); /* always false */
	return STEP_FAILED;
}

static void skip_blank(struct scan *s)
{
	while (s->at < s->end && json_is_blank(*s->at))
		s->at++;
}

static bool in_object(const struct scan *s)
{
	unsigned top = s->depth - 1;
	return (s->is_object[top / 64] >> (top % 64)) & 1;
}

/* at: the opening quote; past the closing one afterwards. */
static bool scan_string(struct scan *s)
{
	s->at++;
	while (true) {
		s->at = json_skip_plain(s->at, s->end);
		if (s->at == s->end)
			return refuse(s, "a string does not end");
		uint8_t c = *s->at;
		if (c == '"') {
			s->at++;
			return true;
		}
		if (c < 0x20)
			return refuse(s, "a control character in a string");
		uint32_t code = 0;
		size_t len = c == '\\' ? json_escape_len(s->at, s->end, &code)
				       : json_utf8_len(s->at, s->end);
		if (len == 0)
			return refuse(
				s, c == '\\' ? "a malformed escape" : "bytes that are not UTF-8");
		if (json_is_surrogate(code))
			return refuse(s, "half a surrogate pair");
		s->at += len;
	}
}

static bool scan_digits(struct scan *s)
{
	const uint8_t *from = s->at;
	while (s->at < s->end && *s->at >= '0' && *s->at <= '9')
		s->at++;
	return s->at > from;
}

static bool scan_number(struct scan *s)
{
	if (*s->at == '-')
		s->at++;
	if (s->at < s->end && *s->at == '0')
		s->at++;
	else if (!scan_digits(s))
		return false;
	if (s->at < s->end && *s->at == '.') {
		s->at++;
		if (!scan_digits(s))
			return false;
	}
	if (s->at < s->end && (*s->at | 0x20) == 'e') {
		s->at++;
		if (s->at < s->end && (*s->at == '+' || *s->at == '-'))
			s->at++;
		return scan_digits(s);
	}
	return true;
}

static bool scan_word(struct scan *s, const char *word)
{
	size_t len = strlen(word);
	if ((size_t)(s->end - s->at) < len || memcmp(s->at, word, len) != 0)
		return false;
	s->at += len;
	return true;
}

static enum step open_container(struct scan *s, bool object)
{
	if (s->depth == JSON_DEPTH_MAX)
		return fail(s, "nested too deeply");
	uint64_t bit = UINT64_C(1) << (s->depth % 64);
	uint64_t *bits = &s->is_object[s->depth / 64];
	*bits = object ? *bits | bit : *bits & ~bit;
	s->depth++;
	s->at++;
	skip_blank(s);
	if (s->at < s->end && *s->at == (object ? '}' : ']')) {
		s->depth--;
		s->at++;
		return STEP_AFTER;
	}
	return object ? STEP_KEY : STEP_VALUE;
}

static enum step scan_value(struct scan *s)
{
	skip_blank(s);
	if (s->at == s->end)
		return fail(s, "it ends where a value is expected");
	if (s->depth == 1)
		s->value = s->at;
	switch (*s->at) {
	case '{':
		return open_container(s, true);
	case '[':
		return open_container(s, false);
	case '"':
		return scan_string(s) ? STEP_AFTER : STEP_FAILED;
	case 't':
		return scan_word(s, "true") ? STEP_AFTER : fail(s, "no such word");
	case 'f':
		return scan_word(s, "false") ? STEP_AFTER : fail(s, "no such word");
	case 'n':
		return scan_word(s, "null") ? STEP_AFTER : fail(s, "no such word");
	default:
		if (*s->at != '-' && (*s->at < '0' || *s->at > '9'))
			return fail(s, "no value begins like this");
		return scan_number(s) ? STEP_AFTER : fail(s, "a malformed number");
	}
}

/* A key may be spelled with escapes; then it is compared as the text that it stands for. */
static bool key_is(struct bytes raw, const char *key)
{
	size_t len = strlen(key);
	if (raw.len == len + 2 && memcmp(raw.data + 1, key, len) == 0)
		return true;
	if (raw.len < len + 2 || !memchr(raw.data, '\\', raw.len))
		return false;
	char text[256];
	return json_text(raw, text, sizeof text) && strcmp(text, key) == 0;
}

static struct json_want *find_want(const struct scan *s, struct bytes raw)
{
	for (size_t i = 0; i < s->n; i++)
		if (key_is(raw, s->wants[i].key))
			return &s->wants[i];
	return NULL;
}

static enum step scan_key(struct scan *s)
{
	skip_blank(s);
	if (s->at == s->end || *s->at != '"')
		return fail(s, "a key in quotes is expected");
	const uint8_t *from = s->at;
	if (!scan_string(s))
		return STEP_FAILED;
	if (s->depth == 1)
		s->want = find_want(s, (struct bytes){from, (size_t)(s->at - from)});
	skip_blank(s);
	if (s->at == s->end || *s->at != ':')
		return fail(s, "a colon is expected");
	s->at++;
	return STEP_VALUE;
}

static enum step scan_after(struct scan *s)
{
	if (s->depth == 1 && s->want) {
		s->want->value = (struct bytes){s->value, (size_t)(s->at - s->value)};
		s->want = NULL;
	}
	skip_blank(s);
	if (s->depth == 0)
		return s->at == s->end ? STEP_DONE : fail(s, "something follows the value");
	if (s->at == s->end)
		return fail(s, "it ends inside a container");
	bool object = in_object(s);
	if (*s->at == ',') {
		s->at++;
		return object ? STEP_KEY : STEP_VALUE;
	}
	if (*s->at != (object ? '}' : ']'))
		return fail(s, "a comma or the end of a container is expected");
	s->at++;
	s->depth--;
	return STEP_AFTER;
}

static void forget_wants(struct json_want *wants, size_t n)
{
	for (size_t i = 0; i < n; i++)
		wants[i].value = (struct bytes){0};
}

int json_scan(struct bytes data, struct json_want *wants, size_t n, struct err *err)
{
	static const uint8_t nothing[1];
	const uint8_t *start = data.data ? data.data : nothing;
	struct scan s = {.start = start,
		.at = start,
		.end = start + (data.data ? data.len : 0),
		.wants = wants,
		.n = n,
		.err = err};
	forget_wants(wants, n);
	enum step step = STEP_VALUE;
	while (step < STEP_DONE) {
		if (step == STEP_VALUE)
			step = scan_value(&s);
		else if (step == STEP_KEY)
			step = scan_key(&s);
		else
			step = scan_after(&s);
	}
	if (step == STEP_DONE)
		return 0;
	forget_wants(wants, n);
	return E_INVALID;
}

bool json_is_object(struct bytes data)
{
	size_t i = 0;
	while (i < data.len && json_is_blank(data.data[i]))
		i++;
	return i < data.len && data.data[i] == '{';
}
