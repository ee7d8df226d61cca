/* The text of an .ipynb: keys in order, an indent of one, texts as lists of their lines, as Jupyter
 * writes it, so that one that it saves again differs in nothing. */
#include "history/notebook.h"

#include <stdio.h>
#include <string.h>

#include "history/outputs_parts.h"
#include "history/spliced.h"

#define CELL_JSON_MAX (1u << 30)

/* ---- layout ---- */

static void add_line(struct buf *b, unsigned depth)
{
	static const char blanks[] = "                                ";
	(void)buf_add(b, "\n", 1); /* latched, as below */
	for (; depth > 0 && !b->failed; depth -= depth < 32 ? depth : 32)
		(void)buf_add(b, blanks, depth < 32 ? depth : 32);
}

static size_t past_blank(struct bytes in, size_t at)
{
	while (at < in.len && (in.data[at] == ' ' || in.data[at] == '\n' || in.data[at] == '\t' ||
				      in.data[at] == '\r'))
		at++;
	return at;
}

/* Past the end of the string that begins at `at`. */
static size_t past_string(struct bytes in, size_t at)
{
	for (at++; at < in.len && in.data[at] != '"'; at++)
		if (in.data[at] == '\\')
			at++;
	return at < in.len ? at + 1 : in.len;
}

/* The brackets, commas and colons between values; how far it has read. */
static size_t add_sign(struct bytes in, size_t at, unsigned *depth, struct buf *ret)
{
	char c = (char)in.data[at++];
	size_t next = past_blank(in, at);
	if (c == '{' || c == '[') {
		if (next < in.len && (in.data[next] == '}' || in.data[next] == ']')) {
			(void)buf_add_text(ret, c == '{' ? "{}" : "[]"); /* latched, as below */
			return next + 1;
		}
		(void)buf_add(ret, &c, 1);
		add_line(ret, ++*depth);
	} else if (c == '}' || c == ']') {
		add_line(ret, *depth > 0 ? --*depth : 0);
		(void)buf_add(ret, &c, 1);
	} else if (c == ',') {
		(void)buf_add(ret, ",", 1);
		add_line(ret, *depth);
	} else {
		(void)buf_add_text(ret, ": ");
	}
	return at;
}

void json_lay_out(struct bytes value, unsigned depth, struct buf *ret_json)
{
	for (size_t at = past_blank(value, 0); at < value.len && !ret_json->failed;
		at = past_blank(value, at)) {
		size_t from = at;
		if (strchr("{}[],:", value.data[at]) && value.data[at]) {
			at = add_sign(value, at, &depth, ret_json);
			continue;
		}
		if (value.data[at] == '"')
			at = past_string(value, at);
		else
			while (at < value.len && !strchr("{}[],: \n\r\t\"", value.data[at]))
				at++;
		at += at == from; /* a NUL, which no accepted text holds */
		(void)buf_add(ret_json, value.data + from, at - from); /* latched */
	}
}

/* ---- outputs ---- */

/* What nbformat writes as a list of lines. */
static bool is_lines_type(struct bytes type)
{
	return (type.len > 5 && memcmp(type.data, "text/", 5) == 0) ||
	       bytes_equal(type, "application/javascript") || bytes_equal(type, "image/svg+xml");
}

static void add_data_value(struct member m, struct buf *b)
{
	struct bytes type = string_inside(m.key);
	if (mime_is_json(type) || !is_string(m.value))
		(void)buf_add(b, m.value.data, m.value.len); /* latched, as below */

	else if (is_lines_type(type))
		(void)lines_add(string_inside(m.value), b);
	else
		(void)buf_add(b, m.value.data, m.value.len);
}

static void add_data(struct bytes data, struct buf *b)
{
	const char *before = "";
	struct member m;
	(void)buf_add_text(b, "{\"data\":{"); /* latched, as below */
	for (size_t at = 0; object_next(data, &at, &m); before = ",") {
		(void)buf_add_text(b, before);
		(void)buf_add(b, m.key.data, m.key.len);
		(void)buf_add(b, ":", 1);
		add_data_value(m, b);
	}
	(void)buf_add_text(b, "}");
}

static void add_raw(struct bytes output, const char *key, const char *otherwise, struct buf *b)
{
	struct bytes value = object_find(output, key);
	(void)buf_addf(b, "\"%s\":", key); /* latched, as below */
	if (value.len > 0)
		(void)buf_add(b, value.data, value.len);
	else
		(void)buf_add_text(b, otherwise);
}

static void add_bundle(struct bytes output, struct bytes type, const char *count, struct buf *b)
{
	add_data(object_find(output, "data"), b);
	if (bytes_equal(type, "\"execute_result\"")) {
		(void)buf_add_text(b, ","); /* latched, as below */
		if (count)
			(void)buf_addf(b, "\"execution_count\":%s", count);
		else
			add_raw(output, "execution_count", "null", b);
	}
	(void)buf_add_text(b, ",");
	add_raw(output, "metadata", "{}", b);
}

/* count: in the place of an execute_result's own, or NULL. */
static void add_output(struct bytes output, const char *count, struct buf *b)
{
	struct bytes type = object_find(output, "output_type");
	if (bytes_equal(type, "\"stream\"")) {
		(void)buf_add_text(b, "{"); /* latched, as below */
		add_raw(output, "name", "\"stdout\"", b);
	} else if (bytes_equal(type, "\"error\"")) {
		(void)buf_add_text(b, "{");
		add_raw(output, "ename", "\"\"", b);
		(void)buf_add_text(b, ",");
		add_raw(output, "evalue", "\"\"", b);
	} else {
		add_bundle(output, type, count, b);
	}
	(void)buf_add_text(b, ",\"output_type\":");
	(void)buf_add(b, type.data, type.len);
	if (bytes_equal(type, "\"stream\"")) {
		(void)buf_add_text(b, ",\"text\":");
		(void)lines_add(string_inside(object_find(output, "text")), b);
	} else if (bytes_equal(type, "\"error\"")) {
		(void)buf_add_text(b, ",");
		add_raw(output, "traceback", "[]", b);
	}
	(void)buf_add_text(b, "}");
}

static void add_outputs(const struct cell *c, const char *count, struct buf *b)
{
	struct bytes list = {c->outputs.data, c->outputs.len}, output;
	const char *before = "";
	(void)buf_add_text(b, ",\"outputs\":["); /* latched, as below */
	for (size_t at = 0; array_next(list, &at, &output) && !b->failed; before = ",") {
		(void)buf_add_text(b, before);
		add_output(output, count, b);
	}
	(void)buf_add_text(b, "]");
}

/* ---- cells ---- */

static void add_source(const struct cell *c, struct buf *b)
{
	const char *at = (const char *)c->source.data, *end = at ? at + c->source.len : at;
	const char *before = "";
	(void)buf_add_text(b, ",\"source\":["); /* latched, as below */
	while (at < end && !b->failed) {
		const char *newline = memchr(at, '\n', (size_t)(end - at));
		const char *stop = newline ? newline + 1 : end;
		(void)buf_add_text(b, before);
		(void)buf_add_json_string(b, at, (size_t)(stop - at));
		before = ",";
		at = stop;
	}
	(void)buf_add_text(b, "]}");
}

static void add_buf(const struct buf *value, struct buf *b)
{
	if (value->len > 0)
		(void)buf_add(b, value->data, value->len); /* latched, as below */
	else
		(void)buf_add_text(b, "{}");
}

/* count: NULL for the cell's own. */
static void write_as(const struct cell *c, const char *count, struct buf *b)
{
	static const char *const kinds[] = {"code", "markdown", "raw"};
	(void)buf_add_text(b, "{"); /* latched, as below */
	if (c->attachments.len > 0) {
		(void)buf_add_text(b, "\"attachments\":");
		add_buf(&c->attachments, b);
		(void)buf_add_text(b, ",");
	}
	(void)buf_addf(b, "\"cell_type\":\"%s\"", kinds[c->kind]);
	if (c->kind == CELL_CODE)
		(void)buf_addf(b, ",\"execution_count\":%s", count ? count : c->count);
	(void)buf_addf(b, ",\"id\":\"%s\",\"metadata\":", c->id);
	add_buf(&c->metadata, b);
	if (c->kind == CELL_CODE)
		add_outputs(c, count, b);
	add_source(c, b);
}

void cell_write(const struct cell *c, struct buf *ret_json)
{
	write_as(c, NULL, ret_json);
}

int notebook_write(const struct notebook *nb, const struct notebook_style *style,
	struct buf *ret_json, struct err *err)
{
	AUTO(buf_done) struct buf flat;
	const char *before = "\n  ";
	unsigned counter = 0;
	buf_init(&flat, CELL_JSON_MAX);
	(void)buf_add_text(ret_json, "{\n \"cells\": ["); /* latched, as below */
	for (size_t i = 0; i < nb->n && !ret_json->failed; i++) {
		const struct cell *c = &nb->cells[i];
		char count[24];
		bool counted = style->renumber && c->kind == CELL_CODE && c->count[0] != 'n';
		(void)snprintf(count, sizeof count, "%u", counted ? ++counter : 0);
		buf_reset(&flat);
		write_as(c, counted ? count : NULL, &flat);
		int status = buf_check(&flat, "a cell", err);
		if (status != 0)
			return status;
		(void)buf_add_text(ret_json, before);
		json_lay_out((struct bytes){flat.data, flat.len}, 2, ret_json);
		before = ",\n  ";
	}
	(void)buf_add_text(ret_json, nb->n > 0 ? "\n ],\n \"metadata\": " : "],\n \"metadata\": ");
	buf_reset(&flat);
	notebook_metadata(nb, &flat);
	json_lay_out((struct bytes){flat.data, flat.len}, 1, ret_json);
	(void)buf_add_text(ret_json, ",\n \"nbformat\": 4,\n \"nbformat_minor\": 5\n}\n");
	return buf_check(ret_json, "a notebook", err);
}
