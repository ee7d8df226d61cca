#include "gateway/spine/blank.h"

#include <stdio.h>
#include <string.h>

#include "gateway/base/json.h"
#include "gateway/spine/scribe.h"

#define SLICES_BEFORE 1u /* the channel's name is the first */
#define TEXT_SIZE     512
#define WORD_SIZE     24

static uint64_t get_u64(const uint8_t *at)
{
	uint64_t value = 0;
	for (unsigned i = 8; i-- > 0;)
		value = value << 8 | at[i];
	return value;
}

/* How many slices the frame has; 0: it is none. */
static size_t count_slices(struct bytes frame)
{
	uint64_t n = frame.len < 8 ? 0 : get_u64(frame.data);
	bool fits = n >= SLICES_BEFORE + JMSG_PARTS + 1 && n <= JMSG_BUFFERS_MAX + 6 &&
		    8 * (n + 1) <= frame.len;
	return fits ? (size_t)n - 1 : 0;
}

static struct bytes slice(struct bytes frame, size_t i)
{
	uint64_t from = get_u64(frame.data + 8 * (i + 1)), to = get_u64(frame.data + 8 * (i + 2));
	if (from > to || to > frame.len)
		return (struct bytes){0};
	return (struct bytes){frame.data + from, (size_t)(to - from)};
}

static struct bytes part(struct bytes frame, unsigned i)
{
	return slice(frame, SLICES_BEFORE + i);
}

static bool names(struct bytes header, const char *msg_id)
{
	struct json_want want = {.key = "msg_id"};
	char id[JMSG_ID_MAX];
	return json_scan(header, &want, 1, NULL) == 0 && json_text(want.value, id, sizeof id) &&
	       strcmp(id, msg_id) == 0;
}

bool blank_concerns(struct bytes frame, const char *msg_id)
{
	return count_slices(frame) > 0 &&
	       (names(part(frame, PART_HEADER), msg_id) || names(part(frame, PART_PARENT), msg_id));
}

/* ---- what is left of a content ---- */

enum { KEPT_COUNT, KEPT_STATUS, KEPT_STATE, KEPT_NAME, KEPT_FIRST, KEPT_EPOCH, KEPTS };

struct kept {
	char word[KEPTS][WORD_SIZE]; /* "" where it was none */
};

static bool is_number(const char *word)
{
	size_t n = strspn(word, "0123456789");
	return n > 0 && word[n] == '\0';
}

/* Nothing that a guest could have chosen freely. */
static bool is_known(const char *word)
{
	static const char *const words[] = {"\"ok\"", "\"error\"", "\"aborted\"", "\"died\"",
		"\"busy\"", "\"idle\"", "\"starting\"", "\"stdout\"", "\"stderr\""};
	for (size_t i = 0; i < ARRAY_LEN(words); i++)
		if (strcmp(word, words[i]) == 0)
			return true;
	return is_number(word);
}

static void read_kept(struct bytes content, struct kept *ret)
{
	struct json_want wants[KEPTS] = {[KEPT_COUNT] = {.key = "execution_count"},
		[KEPT_STATUS] = {.key = "status"},
		[KEPT_STATE] = {.key = "execution_state"},
		[KEPT_NAME] = {.key = "name"},
		[KEPT_FIRST] = {.key = "first"},
		[KEPT_EPOCH] = {.key = "epoch"}};
	*ret = (struct kept){0};
	if (json_scan(content, wants, KEPTS, NULL) != 0)
		return;
	for (size_t i = 0; i < KEPTS; i++) {
		struct bytes value = wants[i].value;
		bool fits = value.len < WORD_SIZE &&
			    copy_text(ret->word[i], WORD_SIZE, (const char *)value.data, value.len);
		if (!fits || !is_known(ret->word[i]))
			ret->word[i][0] = '\0';
	}
}

static const char *word_or(const char *word, const char *other)
{
	return *word ? word : other;
}

static void put_execution(const char *type, const struct kept *k, char ret[TEXT_SIZE])
{
	const char *count = word_or(k->word[KEPT_COUNT], "0"), *status = k->word[KEPT_STATUS];
	bool failed = strcmp(status, "\"error\"") == 0;
	if (strcmp(type, "execute_input") == 0)
		(void)snprintf(ret, TEXT_SIZE, "{\"code\":\"\",\"execution_count\":%s}", count);
	else if (strcmp(type, "execute_result") == 0)
		(void)snprintf(ret, TEXT_SIZE,
			"{\"data\":{},\"metadata\":{},\"execution_count\":%s}", count);
	else if (strcmp(type, SCRIBE_END) == 0)
		(void)snprintf(ret, TEXT_SIZE,
			"{\"first\":%s,\"epoch\":%s,\"status\":%s,\"execution_count\":%s}",
			word_or(k->word[KEPT_FIRST], "0"), word_or(k->word[KEPT_EPOCH], "0"),
			word_or(status, "\"ok\""), count);
	else if (strcmp(type, "execute_reply") == 0)
		(void)snprintf(ret, TEXT_SIZE, "{\"status\":%s,\"execution_count\":%s%s}",
			word_or(status, "\"ok\""), count,
			failed ? ",\"ename\":\"\",\"evalue\":\"\",\"traceback\":[]" : "");
}

/* The least that its readers expect. */
static void put_least(const char *type, struct bytes content, char ret[TEXT_SIZE])
{
	static const struct {
		const char *type, *text;
	} rows[] = {{"execute_request", "{\"code\":\"\"}"},
		{"display_data", "{\"data\":{},\"metadata\":{}}"},
		{"update_display_data", "{\"data\":{},\"metadata\":{}}"},
		{"error", "{\"ename\":\"\",\"evalue\":\"\",\"traceback\":[]}"},
		{"comm_open", "{\"comm_id\":\"\",\"target_name\":\"\",\"data\":{}}"},
		{"comm_msg", "{\"comm_id\":\"\",\"data\":{}}"},
		{"comm_close", "{\"comm_id\":\"\",\"data\":{}}"},
		{"clear_output", "{\"wait\":false}"},
		{"input_request", "{\"prompt\":\"\",\"password\":false}"}};
	struct kept k;
	read_kept(content, &k);
	(void)snprintf(ret, TEXT_SIZE, "{}");
	put_execution(type, &k, ret);
	if (strcmp(type, "stream") == 0 && *k.word[KEPT_NAME])
		(void)snprintf(ret, TEXT_SIZE, "{\"name\":%s,\"text\":\"\"}", k.word[KEPT_NAME]);
	if (strcmp(type, "status") == 0 && *k.word[KEPT_STATE])
		(void)snprintf(ret, TEXT_SIZE, "{\"execution_state\":%s}", k.word[KEPT_STATE]);
	for (size_t i = 0; i < ARRAY_LEN(rows); i++)
		if (strcmp(type, rows[i].type) == 0)
			(void)snprintf(ret, TEXT_SIZE, "%s", rows[i].text);
}

/* Blanks behind the text are blanks behind the JSON. */
static void put(struct bytes place, const char *text)
{
	uint8_t *at = (uint8_t *)(uintptr_t)place.data; /* of the frame that is the caller's */
	size_t len = strlen(text);
	if (len > place.len)
		len = strlen(text = place.len >= 2 ? "{}" : "");
	if (place.len == 0)
		return;
	memcpy(at, text, len);
	memset(at + len, ' ', place.len - len);
}

void blank_frame(uint8_t *frame, size_t len)
{
	struct bytes all = {frame, len};
	size_t n = count_slices(all);
	struct json_want want = {.key = "msg_type"};
	char type[JMSG_ID_MAX] = "", text[TEXT_SIZE];
	if (n == 0)
		return;
	if (json_scan(part(all, PART_HEADER), &want, 1, NULL) == 0)
		(void)json_text(want.value, type, sizeof type); /* "" then: {} will do */
	put_least(type, part(all, PART_CONTENT), text);
	put(part(all, PART_METADATA), "{}");
	put(part(all, PART_CONTENT), text);
	for (size_t i = SLICES_BEFORE + JMSG_PARTS; i < n; i++) {
		struct bytes buffer = slice(all, i);
		if (buffer.len > 0)
			memset((uint8_t *)(uintptr_t)buffer.data, 0, buffer.len);
	}
}

struct jmsg *blank_message(const struct jmsg *m)
{
	struct jmsg *blank = NULL;
	uint8_t *copy = malloc(m->frame.len);
	if (!copy)
		return NULL;
	memcpy(copy, m->frame.data, m->frame.len);
	blank_frame(copy, m->frame.len);
	int rc = jmsg_from_frame((struct bytes){copy, m->frame.len}, &blank, NULL);
	free(copy);
	return rc == 0 ? blank : NULL;
}
