/* The blocks of a reply and what stands between them. */
#include <string.h>

#include "frontend-adapter/fence.h"
#include "frontend-adapter/language.h"
#include "frontend-adapter/prepare_parts.h"
#include "frontend-adapter/reply_json.h"
#include "frontend-adapter/reply_text.h"

/* Times that Markdown is read again from a later place; each costs the length of the rest. */
#define PARTS_MAX 24

static int add_prose(struct prepare *p, size_t from, size_t to)
{
	(void)buf_add(&p->prose, p->text.data + from, to - from); /* latched, looked at next */
	return buf_check(&p->prose, "prose", p->err) == 0 ? 0 : p->prose.code;
}

/* Prose up to `to`, without reasoning. ret_next: where to go on, past `to` if reasoning reaches
 * beyond it. */
static int take_between(struct prepare *p, size_t from, size_t to, size_t *ret_next)
{
	struct thought t;
	int status = 0;
	while (status == 0 && from < to && thought_find(p->text, from, to, &t)) {
		if (!t.headless) {
			status = add_prose(p, from, t.start);
		} else {
			buf_reset(&p->prose);
			p->tagged = false;
			status = runs_drop(&p->runs, p->err);
		}
		from = t.end;
	}
	if (status == 0 && from < to)
		status = add_prose(p, from, to);
	*ret_next = from > to ? from : to;
	return status;
}

static bool is_nested(const char *language)
{
	return strcmp(language, "markdown") == 0 || strcmp(language, "md") == 0;
}

/* The answer as a whole is sometimes put into one more fence. */
static int take_nested(struct prepare *p, struct bytes body)
{
	struct prepare inner = *p;
	inner.text = body;
	inner.at = 0;
	inner.nested++;
	int status = prepare_read_markdown(&inner);
	inner.text = p->text;
	inner.at = p->at;
	inner.nested--;
	*p = inner;
	return status;
}

static bool holds_fence(struct bytes body)
{
	return memmem(body.data, body.len, "```", 3) || memmem(body.data, body.len, "~~~", 3);
}

static int take_untagged(struct prepare *p, struct bytes code, bool closed, bool list)
{
	enum py_look is = PY_PROSE;
	int status = p->guess ? prepare_look(p, code, &is) : 0;
	if (status != 0)
		return status;
	if (is != PY_PROSE)
		return prepare_take_python(p, code, is == PY_CUT || !closed);
	return list && bytes_trim(code).len > 0 ? runs_listed(&p->runs, "", code, p->err) : 0;
}

static int take_json(struct prepare *p, const char *language, struct bytes code)
{
	enum reply_json is;
	size_t used;
	int status = reply_json(bytes_trim(code), &p->runs, &p->prose, &is, &used, p->err);
	if (status != 0)
		return status;
	p->tagged |= is == REPLY_JSON_TAKEN;
	p->runs.incomplete |= is == REPLY_JSON_CUT;
	return is == REPLY_JSON_TAKEN ? 0 : runs_listed(&p->runs, language, code, p->err);
}

static bool is_json(const char *language)
{
	return strncmp(language, "json", 4) == 0 || strcmp(language, "ipynb") == 0 ||
	       strcmp(language, "tool_call") == 0;
}

static int take_fenced(struct prepare *p, const char *language, struct bytes code, bool closed)
{
	if (language_is_python(language)) {
		p->tagged = true;
		return prepare_take_python(p, code, !closed);
	}
	if (*language == '\0')
		return take_untagged(p, code, closed, true);
	if (is_nested(language) && p->nested == 0 && holds_fence(code))
		return take_nested(p, code);
	if (is_json(language) && p->guess)
		return take_json(p, language, code);
	return runs_listed(&p->runs, language, code, p->err);
}

/* "```python print(1)```": the first word is the language if it is one of ours. */
static int take_span(struct prepare *p, const struct md_block *b, bool *ret_taken)
{
	char name[LANGUAGE_SIZE], info[LANGUAGE_SIZE];
	size_t len = 0;
	while (len < b->code.len && len + 1 < sizeof info && !strchr(" \t\n(", b->code.data[len]))
		len++;
	(void)copy_text(info, sizeof info, (const char *)b->code.data, len); /* it fits */
	language_name(info, name);
	*ret_taken = true;
	bool said = len < b->code.len && strchr(" \t\n", b->code.data[len]);
	if (b->mark_len >= 3 && said && language_is_python(name)) {
		p->tagged = true;
		return prepare_take_python(
			p, bytes_trim(bytes_cut(b->code, len, b->code.len)), false);
	}
	*ret_taken = b->mark_len >= 3 || bytes_trim(p->text).len <= b->end - b->start;
	if (!*ret_taken)
		return 0; /* an example amid the explanation */
	size_t before = p->runs.pythons;
	int status = take_untagged(p, b->code, true, false);
	*ret_taken = p->runs.pythons > before;
	return status;
}

/* The end that Markdown sees, or a better one. */
static bool find_end(
	struct prepare *p, const struct md_block *b, const char *language, struct fence_end *ret)
{
	bool python = *language == '\0' || language_is_python(language), found;
	if (b->quoted || p->scans >= PARTS_MAX)
		return false;
	if (python && !py_is_cell_magic(b->code))
		found = fence_end_python(p->text, b, ret);
	else if (is_nested(language))
		found = fence_end_markdown(p->text, b, ret);
	else
		return false;
	p->scans += !found;
	return found && (ret->next != b->end || !b->closed);
}

/* ret_next: where the text goes on. */
static int take_fence(struct prepare *p, struct md_block *b, size_t *ret_next)
{
	char language[LANGUAGE_SIZE];
	struct fence_end end;
	AUTO(buf_done) struct buf code;
	buf_init(&code, p->text.len + 1);
	language_name(b->info, language);
	*ret_next = b->end;
	if (!find_end(p, b, language, &end))
		return take_fenced(p, language, b->code, b->closed || b->end < p->text.len);
	fence_code(p->text, b, end.code_end, &code);
	if (buf_check(&code, "code", p->err) != 0)
		return code.code;
	*ret_next = end.next;
	return take_fenced(p, language, buf_view(&code), end.closed);
}

static int take_block(struct prepare *p, struct md_block *b, size_t *ret_next)
{
	bool taken = true;
	int status;
	*ret_next = b->end;
	if (b->kind == MD_FENCED)
		return take_fence(p, b, ret_next);
	if (b->kind == MD_SPAN) {
		status = take_span(p, b, &taken);
	} else {
		size_t before = p->runs.pythons;
		status = take_untagged(p, b->code, true, false);
		taken = p->runs.pythons > before;
	}
	return status != 0 || taken ? status : add_prose(p, b->start, b->end);
}

static void shift(struct md_block *b, size_t by)
{
	b->start += by;
	b->end += by;
	b->body += by;
}

/* From p->at on, as far as Markdown's own reading of the text holds. */
static int read_part(struct prepare *p)
{
	struct md_block b;
	AUTO(markdown_freep) struct markdown *m = NULL;
	size_t base = p->at, next;
	int status = markdown_new(bytes_cut(p->text, base, p->text.len), &m, p->err);
	while (status == 0 && markdown_next(m, &b)) {
		shift(&b, base);
		if (b.start < p->at)
			continue; /* inside of what was taken */
		status = take_between(p, p->at, b.start, &next);
		p->at = next;
		if (status != 0 || next > b.start)
			return status; /* reasoning goes over it */
		status = take_block(p, &b, &next);
		p->at = next;
		if (next != b.end)
			return status;
	}
	if (status == 0 && p->at < p->text.len) {
		status = take_between(p, p->at, p->text.len, &next);
		p->at = p->text.len;
	}
	return status;
}

int prepare_read_markdown(struct prepare *p)
{
	int status = 0;
	for (unsigned n = 0; status == 0 && p->at < p->text.len; n++)
		status = n < PARTS_MAX ? read_part(p)
				       : err_set(p->err, E_TOO_BIG,
						 "text: more than %u parts inside of each other",
						 PARTS_MAX);
	return status;
}
