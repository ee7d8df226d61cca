#include "frontend-adapter/prompt.h"

#include <cjson/cJSON.h>
#include <string.h>

#include "frontend-adapter/plain.h"

#define TRACEBACK_TAIL 2000u
#define RESULT_MAX     8000u
#define PROMPT_MAX     (1u << 20)

static const char purpose[] =
	"You help somebody with data and Python. When code is needed, answer with one Python block "
	"in ``` fences, complete and ready to run; its state is kept from answer to answer, as in "
	"a "
	"notebook. The last expression of the block is shown; figures of matplotlib are shown. "
	"There "
	"is no network. Files that were uploaded are in the working folder. When no code is "
	"needed, "
	"answer in plain words without a block.";

void prompt_add(struct cJSON *messages, const char *role, const char *content)
{
	struct cJSON *message = cJSON_CreateObject();
	(void)cJSON_AddStringToObject(
		message, "role", role); /* without memory the question fails */
	(void)cJSON_AddStringToObject(message, "content", content);
	(void)cJSON_AddItemToArray(messages, message);
}

static const char *text_of(const struct cJSON *tree, const char *key)
{
	const char *text = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(tree, key));
	return text ? text : "";
}

struct cJSON *prompt_messages(const struct cJSON *said)
{
	struct cJSON *messages = cJSON_CreateArray();
	const struct cJSON *message;
	prompt_add(messages, "system", purpose);
	cJSON_ArrayForEach (message, said)
		if (*text_of(message, "content")) /* code that was run without a model has none */
			prompt_add(messages, text_of(message, "role"), text_of(message, "content"));
	return messages;
}

static void add_plain(struct buf *b, const char *text)
{
	plain_add(b, (struct bytes){(const uint8_t *)text, text ? strlen(text) : 0}); /* latched */
}

/* Escapes of a terminal are left out: they cost a model's attention (field-cases 46). */
static void add_traceback(struct buf *b, const struct cJSON *error)
{
	AUTO(buf_done) struct buf all;
	const struct cJSON *line;
	buf_init(&all, PROMPT_MAX);
	cJSON_ArrayForEach (line, cJSON_GetObjectItemCaseSensitive(error, "traceback")) {
		add_plain(&all, cJSON_GetStringValue(line));
		(void)buf_add_text(&all, "\n"); /* latched; what fits counts */
	}
	const char *text = all.data ? (const char *)all.data : "";
	size_t skip = all.len > TRACEBACK_TAIL ? all.len - TRACEBACK_TAIL : 0;
	(void)buf_add_text(b, text + plain_boundary(text, skip));
}

static char *take_text(struct buf *b)
{
	char *text = xstrdup(b->data ? (const char *)b->data : "");
	buf_done(b);
	return text;
}

char *prompt_repair(const char *code, const struct collect *result)
{
	struct buf b;
	AUTO(freep) char *out = collect_text(result, TRACEBACK_TAIL);
	AUTO(freep) char *value = plain_cut(text_of(result->error, "evalue"), RESULT_MAX);
	buf_init(&b, PROMPT_MAX);
	(void)buf_addf(&b, "This code failed:\n```python\n%s\n```\nError: ", code); /* latched */
	add_plain(&b, text_of(result->error, "ename"));
	(void)buf_add_text(&b, ": ");
	(void)buf_add_text(&b, value);
	(void)buf_add_text(&b, "\nThe end of its traceback:\n");
	add_traceback(&b, result->error);
	if (*out)
		(void)buf_addf(&b, "\nOutput before it:\n%s", out);
	(void)buf_add_text(&b, "\nAnswer with the whole corrected code in one Python block.");
	return take_text(&b);
}

char *prompt_explain(const struct collect *result)
{
	struct buf b;
	AUTO(freep) char *out = collect_text(result, RESULT_MAX);
	buf_init(&b, PROMPT_MAX);
	(void)buf_addf(&b,
		"The code ran. What came out:\n%s\nSay in a few plain sentences what this means "
		"for "
		"the question. No code.",
		*out ? out : "(nothing)"); /* fits */
	return take_text(&b);
}
