#include "frontend-adapter/reply_json.h"

#include <cjson/cJSON.h>
#include <string.h>
#include <strings.h>

#include "frontend-adapter/language.h"
#include "frontend-adapter/python.h"
#include "frontend-adapter/reply_text.h"
#include "gateway/base/json_tree.h"

#define CALLS_MAX 100

struct reader {
	struct runs *runs;
	struct buf *prose;
	struct err *err;
	size_t found;
	unsigned depth;
};

static const cJSON *member(const cJSON *object, const char *key)
{
	return cJSON_GetObjectItemCaseSensitive(object, key);
}

static const char *text_of(const cJSON *object, const char *key)
{
	return cJSON_GetStringValue(member(object, key));
}

static struct bytes as_bytes(const char *text)
{
	return (struct bytes){(const uint8_t *)text, strlen(text)};
}

static int take_code(struct reader *rd, const char *language, struct bytes code)
{
	char name[LANGUAGE_SIZE];
	AUTO(buf_done) struct buf clean;
	bool crs;
	buf_init(&clean, 2 * code.len + 8);
	int status = reply_clean(code, &clean, &crs, rd->err);
	struct bytes cleaned = {clean.data, clean.len};
	if (status != 0)
		return status;
	rd->found++;
	rd->runs->crs |= crs;
	language_name(language && *language ? language : "python", name);
	return language_is_python(name) ? runs_python(rd->runs, cleaned, rd->err)
					: runs_listed(rd->runs, name, cleaned, rd->err);
}

/* nbformat: a string, or a list of them. */
static int join_source(const cJSON *source, struct buf *ret, struct err *err)
{
	const cJSON *line;
	if (cJSON_IsString(source))
		(void)buf_add_text(ret, source->valuestring); /* latched */
	cJSON_ArrayForEach (line, source)
		if (cJSON_IsString(line))
			(void)buf_add_text(ret, line->valuestring); /* latched */
	return buf_check(ret, "notebook", err) == 0 ? 0 : ret->code;
}

static const char *notebook_language(const cJSON *notebook)
{
	const cJSON *metadata = member(notebook, "metadata");
	const char *name = text_of(member(metadata, "language_info"), "name");
	return name ? name : text_of(member(metadata, "kernelspec"), "language");
}

static int take_cell(struct reader *rd, const cJSON *cell, const char *language)
{
	const char *type = text_of(cell, "cell_type");
	AUTO(buf_done) struct buf source;
	buf_init(&source, 1u << 21);
	int status = join_source(member(cell, "source"), &source, rd->err);
	struct bytes text = {source.data, source.len};
	if (status != 0 || !type || bytes_trim(text).len == 0)
		return status;
	if (strcmp(type, "code") == 0)
		return take_code(rd, language, text);
	if (strcmp(type, "markdown") == 0) {
		(void)buf_add(rd->prose, text.data, text.len); /* latched */
		(void)buf_add_text(rd->prose, "\n\n");	       /* latched */
	}
	return 0;
}

static int take_notebook(struct reader *rd, const cJSON *notebook)
{
	const cJSON *cell;
	int status = 0;
	rd->found++;
	rd->runs->apart = true;
	cJSON_ArrayForEach (cell, member(notebook, "cells"))
		if (status == 0)
			status = take_cell(rd, cell, notebook_language(notebook));
	rd->runs->apart = false;
	return status;
}

static const char *code_of(const cJSON *arguments)
{
	static const char *const keys[] = {
		"code", "python_code", "python", "source", "cell", "script"};
	for (size_t i = 0; i < ARRAY_LEN(keys); i++)
		if (text_of(arguments, keys[i]))
			return text_of(arguments, keys[i]);
	return NULL;
}

static bool runs_code(const char *tool)
{
	static const char *const parts[] = {
		"python", "jupyter", "exec", "interpreter", "repl", "run_"};
	for (size_t i = 0; tool && i < ARRAY_LEN(parts); i++)
		if (strcasestr(tool, parts[i]))
			return true;
	return false;
}

/* What is called code may be that of an airport. */
static bool is_code(const char *tool, const cJSON *arguments, const char *code)
{
	return text_of(arguments, "language") || runs_code(tool) ||
	       py_look(as_bytes(code)) != PY_PROSE;
}

/* cJSON would end a string there, and half of the code would be run. */
static bool holds_nul(struct bytes json)
{
	for (size_t i = 0; i + 6 <= json.len; i++) {
		if (json.data[i] != '\\')
			continue;
		if (memcmp(json.data + i, "\\u0000", 6) == 0)
			return true;
		i++;
	}
	return false;
}

/* Arguments are an object, its JSON as a string, or the code itself as a string. */
static int take_arguments(struct reader *rd, const char *tool, const cJSON *arguments)
{
	const char *text = cJSON_GetStringValue(arguments);
	struct err why = {0};
	cJSON *parsed = NULL;
	if (text && !holds_nul(as_bytes(text)))
		parsed = json_parse(as_bytes(text), NULL, &why);
	if (why.code == E_NOMEM)
		return err_set(rd->err, E_NOMEM, "%s", why.text);
	const cJSON *object = text ? parsed : arguments;
	const char *code = code_of(object);
	int status = 0;
	if (code && is_code(tool, object, code))
		status = take_code(rd, text_of(object, "language"), as_bytes(code));
	else if (text && !parsed && runs_code(tool))
		status = take_code(rd, NULL, as_bytes(text));
	cJSON_Delete(parsed);
	return status;
}

static const cJSON *arguments_of(const cJSON *call)
{
	static const char *const keys[] = {
		"arguments", "parameters", "input", "args", "action_input", "tool_input"};
	for (size_t i = 0; i < ARRAY_LEN(keys); i++)
		if (member(call, keys[i]))
			return member(call, keys[i]);
	return NULL;
}

static const char *tool_of(const cJSON *call)
{
	static const char *const keys[] = {"name", "tool", "action", "tool_name", "function"};
	for (size_t i = 0; i < ARRAY_LEN(keys); i++)
		if (text_of(call, keys[i]))
			return text_of(call, keys[i]);
	return NULL;
}

static int take_value(struct reader *rd, const cJSON *value);

static int take_each(struct reader *rd, const cJSON *list)
{
	const cJSON *item;
	int status = 0, n = 0;
	cJSON_ArrayForEach (item, list)
		if (status == 0 && n++ < CALLS_MAX)
			status = take_value(rd, item);
	return status;
}

/* Where chat completions put calls, one inside the other. */
static const cJSON *wrapped(const cJSON *object)
{
	static const char *const keys[] = {"choices", "message", "tool_calls", "function_call",
		"function", "content", "tool_call"};
	for (size_t i = 0; i < ARRAY_LEN(keys); i++) {
		const cJSON *inner = member(object, keys[i]);
		if (cJSON_IsObject(inner) || cJSON_IsArray(inner))
			return inner;
	}
	return NULL;
}

static int take_object(struct reader *rd, const cJSON *object)
{
	const cJSON *inner = wrapped(object);
	if (cJSON_IsArray(member(object, "cells")))
		return take_notebook(rd, object);
	if (arguments_of(object) && tool_of(object))
		return take_arguments(rd, tool_of(object), arguments_of(object));
	if (inner)
		return take_value(rd, inner);
	return text_of(object, "code") ? take_arguments(rd, NULL, object) : 0;
}

static int take_value(struct reader *rd, const cJSON *value)
{
	int status = 0;
	if (++rd->depth <= 8)
		status = cJSON_IsArray(value) ? take_each(rd, value) : take_object(rd, value);
	rd->depth--;
	return status;
}

/* JSON that ends before its last bracket does. */
static bool is_cut(struct bytes text)
{
	unsigned depth = 0;
	bool string = false;
	for (size_t i = 0; i < text.len; i++) {
		uint8_t c = text.data[i];
		if (string && c == '\\')
			i++;
		else if (c == '"')
			string = !string;
		else if (!string && (c == '{' || c == '['))
			depth++;
		else if (!string && (c == '}' || c == ']') && --depth == 0)
			return false;
	}
	return true;
}

static bool holds(struct bytes text, const char *word)
{
	return memmem(text.data, text.len, word, strlen(word)) != NULL;
}

static bool may_hold_code(struct bytes text)
{
	return holds(text, "\"code\"") || holds(text, "\"arguments\"") ||
	       holds(text, "\"cells\"") || holds(text, "\"parameters\"") ||
	       holds(text, "\"input\"") || holds(text, "\"action_input\"") ||
	       holds(text, "\"args\"") || holds(text, "\"tool_input\"");
}

int reply_json(struct bytes text, struct runs *runs, struct buf *prose, enum reply_json *ret,
	size_t *ret_used, struct err *err)
{
	struct reader rd = {.runs = runs, .prose = prose, .err = err};
	size_t used = 0;
	*ret = REPLY_JSON_NONE;
	*ret_used = 0;
	if (text.len == 0 || (*text.data != '{' && *text.data != '[') || !may_hold_code(text))
		return 0;
	if (holds_nul(text))
		return 0;
	struct err why = {0};
	cJSON *tree = json_parse(text, &used, &why);
	if (why.code == E_NOMEM)
		return err_set(err, E_NOMEM, "%s", why.text);
	if (!tree) {
		*ret = is_cut(text) ? REPLY_JSON_CUT : REPLY_JSON_NONE;
		return 0;
	}
	int status = take_value(&rd, tree);
	cJSON_Delete(tree);
	if (status == 0 && rd.found > 0) {
		*ret = REPLY_JSON_TAKEN;
		*ret_used = used;
	}
	return status;
}
