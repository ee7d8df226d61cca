/* What of a reply is code, and which part of it is to be run.
 *
 *   the whole text is a program          -> run it
 *   it is a tool's call or a notebook    -> its code (reply_json)
 *   else Markdown: reasoning is dropped, code tagged as Python is run; without any, code without a
 *   tag that looks like Python; without any, a call amid the prose
 */
#include <cjson/cJSON.h>
#include <string.h>

#include "frontend-adapter/adapter.h"
#include "frontend-adapter/language.h"
#include "frontend-adapter/mend.h"
#include "frontend-adapter/prepare.h"
#include "frontend-adapter/prepare_parts.h"
#include "frontend-adapter/reply_json.h"
#include "frontend-adapter/reply_text.h"

/* What the code looks like once it is mended. */
int prepare_look(struct prepare *p, struct bytes code, enum py_look *ret)
{
	AUTO(buf_done) struct buf mended;
	buf_init(&mended, 2 * code.len + 64);
	cJSON *changes = cJSON_CreateArray();
	int status = changes ? mend_python(code, &mended, changes, p->err)
			     : err_set(p->err, E_NOMEM, "code: out of memory");
	cJSON_Delete(changes);
	if (status == 0)
		*ret = py_look(buf_view(&mended));
	return status;
}

int prepare_take_python(struct prepare *p, struct bytes code, bool cut)
{
	p->runs.incomplete |= cut;
	return runs_python(&p->runs, code, p->err);
}

/* A closing fence without its opening one, which was in the request. */
static struct bytes without_last_fence(struct bytes text)
{
	text = bytes_trim(text);
	struct bytes rest = text;
	while (rest.len > 0 && rest.data[rest.len - 1] == '`')
		rest.len--;
	bool fence = text.len - rest.len >= 3 && rest.len > 0 && rest.data[rest.len - 1] == '\n';
	return fence ? rest : (struct bytes){0};
}

/* True in *ret_taken if all of the text is a program. */
static int read_program(struct prepare *p, struct bytes code, bool *ret_taken)
{
	enum py_look is = PY_PROSE;
	int status = bytes_trim(code).len > 0 ? prepare_look(p, code, &is) : 0;
	*ret_taken = is != PY_PROSE;
	if (status == 0 && *ret_taken)
		status = prepare_take_python(p, code, is == PY_CUT);
	return status;
}

static int read_json(struct prepare *p, bool *ret_taken)
{
	enum reply_json is = REPLY_JSON_NONE;
	size_t used;
	struct bytes text = bytes_trim(p->text);
	int status = reply_json(text, &p->runs, &p->prose, &is, &used, p->err);
	*ret_taken = is != REPLY_JSON_NONE;
	p->runs.incomplete |= is == REPLY_JSON_CUT;
	if (status == 0 && is == REPLY_JSON_TAKEN)
		(void)buf_add(&p->prose, text.data + used, text.len - used); /* latched */
	return status;
}

static int restart(struct prepare *p, bool guess)
{
	p->guess = guess;
	p->at = 0;
	buf_reset(&p->prose);
	return runs_drop(&p->runs, p->err);
}

/* Where a line of text has words before a fence that names Python and ends the line; text.len if
 * none has. */
static size_t find_fence_amid(struct bytes text, size_t from)
{
	for (size_t at = from; at + 3 < text.len; at++) {
		if (memcmp(text.data + at, "```", 3) != 0 || at == 0 || text.data[at - 1] == '\n' ||
			text.data[at - 1] == '`')
			continue;
		char info[LANGUAGE_SIZE], name[LANGUAGE_SIZE];
		const uint8_t *word = text.data + at + 3;
		const uint8_t *end = memchr(word, '\n', text.len - at - 3);
		if (end && copy_text(info, sizeof info, (const char *)word, (size_t)(end - word))) {
			language_name(info, name);
			if (language_is_python(name))
				return at;
		}
	}
	return text.len;
}

/* "Here it is: ```python": to Markdown no fence at all, so each gets a line of its own. */
static int read_fences_amid(struct prepare *p)
{
	AUTO(buf_done) struct buf text;
	struct bytes before = p->text;
	buf_init(&text, 2 * before.len);
	size_t done = 0, at = find_fence_amid(before, 0);
	if (at == before.len)
		return 0;
	for (; at < before.len; done = at, at = find_fence_amid(before, at + 3)) {
		(void)buf_add(&text, before.data + done, at - done); /* latched */
		(void)buf_add(&text, "\n", 1);			     /* latched */
	}
	(void)buf_add(&text, before.data + done, before.len - done); /* latched */
	int status = restart(p, false);
	if (status != 0 || buf_check(&text, "text", p->err) != 0)
		return status != 0 ? status : text.code;
	p->text = buf_view(&text);
	status = prepare_read_markdown(p);
	p->text = before;
	return status;
}

static bool found_none(const struct prepare *p)
{
	return p->runs.pythons == 0 && !p->runs.incomplete;
}

/* What is left of a text whose reasoning was dropped may be a program as a whole. */
static int read_rest(struct prepare *p)
{
	bool taken = false;
	if (!found_none(p) || p->runs.listed > 0 || p->prose.len == p->text.len)
		return 0;
	int status = read_program(p, buf_view(&p->prose), &taken);
	if (taken)
		buf_reset(&p->prose);
	return status;
}

static int read_reply(struct prepare *p)
{
	bool taken = false;
	int status = read_program(p, p->text, &taken);
	if (status == 0 && !taken)
		status = read_program(p, without_last_fence(p->text), &taken);
	if (status == 0 && !taken)
		status = read_json(p, &taken);
	if (status != 0 || taken)
		return status;
	status = prepare_read_markdown(p);
	if (status == 0 && !p->tagged && (status = restart(p, true)) == 0)
		status = prepare_read_markdown(p);
	if (status == 0)
		status = read_rest(p);
	if (status == 0 && found_none(p))
		status = prepare_read_calls(p);
	if (status == 0 && found_none(p))
		status = read_fences_amid(p);
	return status;
}

static const char *verdict(const struct prepare *p)
{
	if (p->runs.incomplete)
		return "incomplete";
	return p->runs.pythons > 0 ? "code" : "no-code";
}

static bool add_trimmed(cJSON *to, const char *key, struct buf *text)
{
	struct bytes trimmed = bytes_trim(buf_view(text));
	AUTO(buf_done) struct buf copy;
	buf_init(&copy, text->max);
	(void)buf_add(&copy, trimmed.data, trimmed.len); /* looked at next */
	return !copy.failed && cJSON_AddStringToObject(to, key, copy.data ? (char *)copy.data : "");
}

static int tree_of(struct prepare *p, struct cJSON **ret)
{
	cJSON *blocks = NULL, *tree;
	int status = runs_take(&p->runs, &blocks, p->err);
	if (status != 0)
		return status;
	tree = cJSON_CreateObject();
	if (tree && cJSON_AddStringToObject(tree, "verdict", verdict(p)) &&
		cJSON_AddItemToObject(tree, "blocks", blocks)) {
		blocks = NULL;
		if (add_trimmed(tree, "prose", &p->prose)) {
			*ret = tree;
			return 0;
		}
	}
	cJSON_Delete(blocks);
	cJSON_Delete(tree);
	return err_set(p->err, E_NOMEM, "prepare: out of memory");
}

int prepare_read(struct bytes text, struct cJSON **ret_tree, struct err *err)
{
	struct prepare p = {.err = err};
	AUTO(buf_done) struct buf clean;
	bool crs = false;
	buf_init(&clean, 3 * PREPARE_TEXT_MAX);
	buf_init(&p.prose, 3 * PREPARE_TEXT_MAX + 64);
	if (text.len > PREPARE_TEXT_MAX)
		return err_set(err, E_TOO_BIG, "text: longer than %u bytes", PREPARE_TEXT_MAX);
	int status = reply_clean(text, &clean, &crs, err);
	if (status != 0 || (status = runs_init(&p.runs, err)) != 0)
		return status;
	p.text = buf_view(&clean);
	p.runs.crs = crs;
	status = read_reply(&p);
	if (status == 0)
		status = tree_of(&p, ret_tree);
	runs_done(&p.runs);
	buf_done(&p.prose);
	return status;
}

int prepare_text(struct bytes text, struct cJSON **ret_tree, struct err *err)
{
	cJSON *block;
	int status = prepare_read(text, ret_tree, err);
	if (status != 0)
		return status;
	cJSON_ArrayForEach (block, cJSON_GetObjectItemCaseSensitive(*ret_tree, "blocks"))
		cJSON_DeleteItemFromObjectCaseSensitive(block, "written");
	return 0;
}
