#include "frontend-adapter/model_stream.h"

#include <cjson/cJSON.h>
#include <string.h>

#include "gateway/base/json.h"
#include "gateway/base/json_tree.h"

#define LINE_MAX (4u << 20)

void model_stream_init(struct model_stream *s, size_t text_max,
	void (*on_text)(void *data, struct bytes text), void *data)
{
	*s = (struct model_stream){.text_max = text_max, .on_text = on_text, .data = data};
	buf_init(&s->line, LINE_MAX);
}

void model_stream_done(struct model_stream *s)
{
	buf_done(&s->line);
	free(s->tool);
	s->tool = NULL;
}

static bool fail(struct model_stream *s, int code, const char *text)
{
	if (!s->failed)
		err_set(&s->err, code, "%s", text);
	s->failed = true;
	return false;
}

static bool say(struct model_stream *s, const char *text)
{
	size_t len = text ? strlen(text) : 0;
	s->text_len += len;
	if (s->text_len > s->text_max)
		return fail(s, E_PROTOCOL, "the model's answer has no end");
	if (len > 0)
		s->on_text(s->data, (struct bytes){(const uint8_t *)text, len});
	return true;
}

/* A model that calls a function that we do not offer means code: what it calls it with is text, in
 * the form in which models write such calls, which the preparation knows. */
static bool say_tool(struct model_stream *s, const cJSON *call)
{
	const cJSON *function = cJSON_GetObjectItemCaseSensitive(call, "function");
	const char *name = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(function, "name"));
	const char *arguments =
		cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(function, "arguments"));
	if (!s->tool && !say(s, "\n```json\n"))
		return false;
	if (!s->tool)
		s->tool = xstrdup(name ? name : "");
	return say(s, arguments);
}

static const cJSON *first_choice(const cJSON *tree)
{
	return cJSON_GetArrayItem(cJSON_GetObjectItemCaseSensitive(tree, "choices"), 0);
}

static bool say_part(struct model_stream *s, const cJSON *choice, const char *key)
{
	const cJSON *part = cJSON_GetObjectItemCaseSensitive(choice, key), *call;
	const cJSON *calls = cJSON_GetObjectItemCaseSensitive(part, "tool_calls");
	if (!say(s, cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(part, "content"))))
		return false;
	cJSON_ArrayForEach (call, calls)
		if (!say_tool(s, call))
			return false;
	return true;
}

static uint64_t count_of(const cJSON *usage, const char *key)
{
	double n = cJSON_GetNumberValue(cJSON_GetObjectItemCaseSensitive(usage, key));
	return n >= 1 && n < 1e15 ? (uint64_t)n : 0;
}

/* Some servers say it with every piece: the last one counts. */
static void read_usage(struct model_stream *s, const cJSON *usage)
{
	if (!cJSON_IsObject(usage))
		return;
	s->prompt_tokens = count_of(usage, "prompt_tokens");
	s->completion_tokens = count_of(usage, "completion_tokens");
}

/* Servers pass on what a model made of bytes: clients get UTF-8 all the same. NULL: it is no JSON,
 * or memory is out. */
static struct cJSON *parse(struct bytes text, struct err *err)
{
	AUTO(buf_done) struct buf copy;
	buf_init(&copy, 6 * (size_t)LINE_MAX); /* nothing grows more */
	int status = json_scan(text, NULL, 0, err) == 0 ? buf_add(&copy, text.data, text.len)
							: json_mend(text, &copy, err);
	if (status != 0 || copy.failed) {
		(void)buf_check(&copy, "the model's answer", err);
		return NULL;
	}
	json_replace_nul(copy.data, copy.len);
	return json_parse((struct bytes){copy.data, copy.len}, NULL, err);
}

static bool take_object(struct model_stream *s, const char *text, size_t len)
{
	struct err err = {0};
	struct cJSON *tree = parse((struct bytes){(const uint8_t *)text, len}, &err);
	const cJSON *fault = cJSON_GetObjectItemCaseSensitive(tree, "error");
	const cJSON *choice = first_choice(tree);
	const char *said = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(fault, "message"));
	bool good = true;
	s->any = true;
	read_usage(s, cJSON_GetObjectItemCaseSensitive(tree, "usage"));
	if (!tree)
		good = err.code == E_NOMEM ? fail(s, E_NOMEM, err.text)
					   : fail(s, E_PROTOCOL, "the model's server sent no JSON");
	else if (fault && !cJSON_IsNull(fault))
		good = fail(s, E_UNAVAILABLE,
			said && *said ? said : "the model's server reports an error");
	else
		good = say_part(s, choice, "delta") && say_part(s, choice, "message");
	if (cJSON_IsString(cJSON_GetObjectItemCaseSensitive(choice, "finish_reason")))
		s->ended = true;
	cJSON_Delete(tree);
	return good;
}

static bool take_line(struct model_stream *s)
{
	const char *text = (const char *)s->line.data;
	size_t len = s->line.len;
	while (len > 0 && text[len - 1] == '\r')
		len--;
	if (len >= 5 && memcmp(text, "data:", 5) == 0) {
		text += 5, len -= 5;
		while (len > 0 && *text == ' ')
			text++, len--;
		if (len == 6 && memcmp(text, "[DONE]", 6) == 0)
			s->ended = true;
		else if (len > 0)
			return take_object(s, text, len);
	}
	return true; /* comments, other fields, the blank between events */
}

bool model_stream_add(struct model_stream *s, struct bytes piece)
{
	while (piece.len > 0 && !s->failed) {
		const uint8_t *end = memchr(piece.data, '\n', piece.len);
		size_t len = end ? (size_t)(end - piece.data) : piece.len;
		if (buf_add(&s->line, piece.data, len) != 0)
			return fail(s, E_PROTOCOL, "the model's server sent a line without end");
		piece.data += len + (end ? 1 : 0);
		piece.len -= len + (end ? 1 : 0);
		/* An object that is not an event may stand on several lines. */
		bool whole = end && !(s->line.len > 0 && s->line.data[0] == '{' && !s->any);
		if (end && !whole && buf_add(&s->line, "\n", 1) != 0)
			return fail(s, E_PROTOCOL, "the model's server sent a line without end");
		if (whole && s->line.len > 0 && !take_line(s))
			return false;
		if (whole)
			buf_reset(&s->line);
	}
	return !s->failed;
}

int model_stream_end(struct model_stream *s, struct err *err)
{
	if (!s->failed && s->line.len > 0 && s->line.data[0] == '{' && !s->any)
		s->ended = take_object(s, (const char *)s->line.data, s->line.len);
	else if (!s->failed && s->line.len > 0)
		(void)take_line(s); /* without its end; tells by failed */
	if (!s->failed && s->tool)
		(void)say(s, "\n```\n");
	if (s->failed) {
		*err = s->err;
		return err->code;
	}
	if (!s->any)
		return err_set(err, E_PROTOCOL, "the model's server sent no answer");
	if (!s->ended)
		return err_set(err, E_PROTOCOL, "the model's answer was cut off");
	return 0;
}
