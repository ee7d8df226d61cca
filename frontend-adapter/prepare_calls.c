/* Calls of tools as models write them that were trained to: tags, or JSON in a line of its own. */
#include <string.h>

#include "frontend-adapter/adapter.h"
#include "frontend-adapter/prepare_parts.h"
#include "frontend-adapter/reply_json.h"
#include "frontend-adapter/reply_text.h"

#define CALLS_MAX 100u

static bool find(struct bytes text, const char *word, size_t from, size_t *ret)
{
	const uint8_t *at = from < text.len
				    ? memmem(text.data + from, text.len - from, word, strlen(word))
				    : NULL;
	if (at)
		*ret = (size_t)(at - text.data);
	return at != NULL;
}

/* What models put code into that were trained to call tools by tags. */
static const struct {
	const char *open, *close;
	bool json;
	bool endless; /* the closing one is seldom there */
	bool vague;   /* it may hold something else */
} tags[] = {
	{"<tool_call>", "</tool_call>", true, false, false},
	{"<function_call>", "</function_call>", true, false, false},
	{"[TOOL_CALLS]", "\n", true, true, false},
	{"<|python_tag|>", "<|eom_id|>", false, true, false},
	{"<execute_ipython>", "</execute_ipython>", false, false, false},
	{"<execute_python>", "</execute_python>", false, false, false},
	{"<execute>", "</execute>", false, false, false},
	{"<code>", "</code>", false, false, true},
	{"<python>", "</python>", false, false, true},
};

/* Replaces the prose by what stands before and after [from, to) of it. */
static void cut_prose(struct prepare *p, size_t from, size_t to)
{
	memmove(p->prose.data + from, p->prose.data + to, p->prose.len - to);
	p->prose.len -= to - from;
	p->prose.data[p->prose.len] = '\0';
}

/* ret_used: 0 if there is none. */
static int take_call(struct prepare *p, struct bytes text, size_t *ret_used)
{
	enum reply_json is;
	AUTO(buf_done) struct buf prose;
	buf_init(&prose, PREPARE_TEXT_MAX);
	int status = reply_json(text, &p->runs, &prose, &is, ret_used, p->err);
	p->runs.incomplete |= is == REPLY_JSON_CUT;
	if (is == REPLY_JSON_CUT)
		*ret_used = text.len;
	return status;
}

/* [open, after) of the prose is a tag and what it holds; taken: it is no prose. */
static int take_tag(struct prepare *p, size_t tag, size_t open, size_t *ret_after, bool *ret_taken)
{
	size_t code = open + strlen(tags[tag].open), close = p->prose.len, used;
	bool closed = find(buf_view(&p->prose), tags[tag].close, code, &close);
	struct bytes body = bytes_trim(bytes_cut(buf_view(&p->prose), code, close));
	enum py_look is = PY_CODE;
	*ret_after = closed ? close + strlen(tags[tag].close) : close;
	*ret_taken = true;
	if (tags[tag].json || (body.len > 0 && *body.data == '{'))
		return take_call(p, body, &used);
	int status = tags[tag].vague ? prepare_look(p, body, &is) : 0;
	if (status == 0 && is != PY_PROSE)
		return prepare_take_python(p, body, !closed && !tags[tag].endless);
	*ret_taken = false;
	return status;
}

static int take_tags(struct prepare *p, size_t tag)
{
	size_t open, after, from = 0;
	int status = 0;
	for (unsigned n = 0; n < CALLS_MAX && status == 0;) {
		if (!find(buf_view(&p->prose), tags[tag].open, from, &open))
			break;
		from = open + 1;
		if (open > 0 && p->prose.data[open - 1] != '\n')
			continue;
		n++;
		bool taken;
		status = take_tag(p, tag, open, &after, &taken);
		if (taken)
			cut_prose(p, open, after);
		from = taken ? open : after;
	}
	return status;
}

/* A line of prose that begins a call. */
static int take_bare_call(struct prepare *p)
{
	struct bytes prose = buf_view(&p->prose);
	size_t used = 0;
	for (size_t at = 0; at < prose.len; at++) {
		if ((at > 0 && prose.data[at - 1] != '\n') ||
			(prose.data[at] != '{' && prose.data[at] != '['))
			continue;
		int status = take_call(p, bytes_cut(prose, at, prose.len), &used);
		if (status == 0 && used > 0)
			cut_prose(p, at, at + used);
		return status;
	}
	return 0;
}

int prepare_read_calls(struct prepare *p)
{
	int status = 0;
	for (size_t i = 0; i < ARRAY_LEN(tags) && status == 0; i++)
		status = take_tags(p, i);
	if (status == 0 && p->runs.pythons == 0 && !p->runs.incomplete)
		status = take_bare_call(p);
	return status;
}
