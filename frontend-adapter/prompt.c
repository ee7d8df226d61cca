#include "frontend-adapter/prompt.h"

#include <cjson/cJSON.h>
#include <string.h>

#include "frontend-adapter/plain.h"

#define TRACEBACK_TAIL 2000u
#define RESULT_MAX     8000u
#define PROMPT_MAX     (4u << 20) /* code of an answer, what came out */

static const char purpose[] =
	"You help somebody with data and Python. When code is needed, answer with one Python block "
	"in ``` fences, complete and ready to run; its state is kept from answer to answer, as in "
	"a "
	"notebook. The last expression of the block is shown; figures of matplotlib are shown. "
	"There "
	"is no network. Files that were uploaded are in the working folder. When no code is "
	"needed, "
	"answer in plain words without a block.";

#define CUT_MARK 64u /* bytes of what stands where something was cut */

void prompt_add(struct cJSON *messages, const char *role, const char *content)
{
	struct cJSON *message = cJSON_CreateObject();
	(void)cJSON_AddStringToObject(
		message, "role", role); /* cannot fail (json_tree.h), as all below */
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

/* Escapes of a terminal are left out: they cost a model's attention (field-cases 46). Without
 * memory b is as if it had none. */
static void add_traceback(struct buf *b, const struct cJSON *error)
{
	AUTO(buf_done) struct buf all;
	const struct cJSON *line;
	buf_init(&all, PROMPT_MAX);
	cJSON_ArrayForEach (line, cJSON_GetObjectItemCaseSensitive(error, "traceback")) {
		add_plain(&all, cJSON_GetStringValue(line));
		(void)buf_add_text(&all, "\n"); /* latched; what fits counts */
	}
	if (all.failed && all.code == E_NOMEM) {
		b->failed = true;
		b->code = E_NOMEM;
	}
	const char *text = all.data ? (const char *)all.data : "";
	size_t skip = all.len > TRACEBACK_TAIL ? all.len - TRACEBACK_TAIL : 0;
	(void)buf_add_text(b, text + plain_boundary(text, skip));
}

static char *take_text(struct buf *b, struct err *err)
{
	char *text = buf_check(b, "a question to the model", err) == 0 ? (char *)buf_take(b, NULL)
								       : NULL;
	buf_done(b);
	return text;
}

static char *no_memory(struct err *err)
{
	err_set(err, E_NOMEM, "a question to the model: out of memory");
	return NULL;
}

char *prompt_repair(const char *code, const struct collect *result, struct err *err)
{
	struct buf b;
	AUTO(freep) char *out = collect_text(result, TRACEBACK_TAIL);
	AUTO(freep) char *value = plain_cut(text_of(result->error, "evalue"), RESULT_MAX);
	if (!out || !value)
		return no_memory(err);
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
	return take_text(&b, err);
}

char *prompt_explain(const struct collect *result, struct err *err)
{
	struct buf b;
	AUTO(freep) char *out = collect_text(result, RESULT_MAX);
	if (!out)
		return no_memory(err);
	buf_init(&b, PROMPT_MAX);
	(void)buf_addf(&b,
		"The code ran. What came out:\n%s\nSay in a few plain sentences what this means "
		"for "
		"the question. No code.",
		*out ? out : "(nothing)"); /* latched */
	return take_text(&b, err);
}

/* ---- not more than so much ---- */

static size_t size_of(const struct cJSON *messages)
{
	const struct cJSON *message;
	size_t size = 0;
	cJSON_ArrayForEach (message, messages)
		size += strlen(text_of(message, "content"));
	return size;
}

static void leave_out(
	struct cJSON *messages, struct cJSON *message, struct prompt_left_out *left_out)
{
	left_out->messages++;
	left_out->bytes += strlen(text_of(message, "content"));
	cJSON_Delete(cJSON_DetachItemViaPointer(messages, message));
}

static bool is_answer(const struct cJSON *message)
{
	return strcmp(text_of(message, "role"), "assistant") == 0;
}

/* The oldest question with its answers. */
static void leave_out_turn(
	struct cJSON *messages, const struct cJSON *question, struct prompt_left_out *left_out)
{
	do
		leave_out(messages, messages->child->next, left_out);
	while (messages->child->next != question && is_answer(messages->child->next));
}

static int cut_last(
	struct cJSON *messages, size_t too_much, struct prompt_left_out *left_out, struct err *err)
{
	struct cJSON *last = messages->child->prev; /* cJSON: the first one's is the last */
	const char *text = text_of(last, "content");
	size_t len = strlen(text), max = len > too_much + CUT_MARK ? len - too_much - CUT_MARK : 0;
	size_t head = plain_boundary(text, max / 2), tail = len - max / 2;
	AUTO(buf_done) struct buf cut;
	buf_init(&cut, len + CUT_MARK);
	while (tail < len && ((unsigned char)text[tail] & 0xc0) == 0x80)
		tail++;
	(void)buf_add(&cut, text, head); /* latched */
	(void)buf_addf(&cut, "\n[... %zu bytes left out ...]\n", tail - head);
	(void)buf_add(&cut, text + tail, len - tail);
	if (buf_check(&cut, "a question to the model", err) != 0)
		return cut.code;
	left_out->bytes += tail - head;
	(void)cJSON_ReplaceItemInObjectCaseSensitive(
		last, "content", cJSON_CreateString((const char *)cut.data)); /* it is there */
	return 0;
}

int prompt_fits(const char *question, size_t max, struct err *err)
{
	if (sizeof purpose - 1 + strlen(question) + CUT_MARK <= max)
		return 0;
	return err_set(err, E_TOO_BIG,
		"content: %zu bytes; the model is told at most %zu at once (model_history, "
		"docs/CHAT.md)",
		strlen(question), max);
}

int prompt_bound(struct cJSON *messages, const struct cJSON *question, size_t max,
	struct prompt_left_out *left_out, struct err *err)
{
	while (size_of(messages) > max && messages->child->next != question)
		leave_out_turn(messages, question, left_out);
	while (size_of(messages) > max && question->next && question->next->next)
		leave_out(messages, question->next, left_out);
	size_t size = size_of(messages);
	return size > max ? cut_last(messages, size - max, left_out, err) : 0;
}
