#include "history/percent.h"

#include <stdio.h>
#include <string.h>

#include "gateway/base/json.h"
#include "gateway/base/json_chars.h"
#include "history/spliced.h"

/* ---- writing ---- */

/* The next line from *at on, without its end; false if there is none. All carriage returns before
 * it belong to it, or a file would lose one each time that it is read. */
static bool line_next(struct bytes text, size_t *at, struct bytes *ret_line)
{
	if (*at >= text.len)
		return false;
	const uint8_t *begin = text.data + *at;
	const uint8_t *newline = memchr(begin, '\n', text.len - *at);
	size_t len = newline ? (size_t)(newline - begin) : text.len - *at;
	*at += len + 1;
	while (len > 0 && begin[len - 1] == '\r')
		len--;
	*ret_line = (struct bytes){begin, len};
	return true;
}

/* Without the blank lines at its end. */
static struct bytes trimmed(struct bytes text)
{
	while (text.len > 0 && (text.data[text.len - 1] == '\n' || text.data[text.len - 1] == '\r'))
		text.len--;
	return text;
}

static void add_code(struct bytes source, struct buf *b)
{
	struct percent_state state = {0};
	struct bytes line;
	for (size_t at = 0; line_next(source, &at, &line);) {
		percent_escape(&state, line, b);
		(void)buf_add(b, "\n", 1); /* latched */
	}
}

static void add_comment(struct bytes source, struct buf *b)
{
	struct bytes line;
	for (size_t at = 0; line_next(source, &at, &line);) {
		percent_comment(line, b);
		(void)buf_add(b, "\n", 1); /* latched */
	}
}

/* In YAML a text in double quotes is JSON's. */
static void add_scalar(struct buf *b, const char *key, const char *text)
{
	static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
				    "._-";
	(void)buf_addf(b, "#     %s: ", key); /* latched, as below */
	if (text[0] && strspn(text, plain) == strlen(text) && (text[0] | 0x20) >= 'a')
		(void)buf_add_text(b, text);
	else
		(void)buf_add_json_string(b, text, strlen(text));
	(void)buf_add(b, "\n", 1);
}

static void text_of(
	struct bytes object, const char *key, const char *otherwise, char *ret, size_t size)
{
	if (!json_text(object_find(object, key), ret, size) || !ret[0])
		(void)snprintf(ret, size, "%s", otherwise);
}

static void add_header(const struct notebook *nb, struct buf *b)
{
	AUTO(buf_done) struct buf metadata;
	char name[KERNELSPEC_SIZE], shown[KERNELSPEC_SIZE], language[KERNELSPEC_SIZE];
	buf_init(&metadata, NOTEBOOK_MAX);
	notebook_metadata(nb, &metadata);
	struct bytes spec = object_find((struct bytes){metadata.data, metadata.len}, "kernelspec");
	text_of(spec, "name", "python3", name, sizeof name);
	text_of(spec, "display_name", name, shown, sizeof shown);
	text_of(spec, "language", "python", language, sizeof language);
	(void)buf_add_text(b, "# ---\n# jupyter:\n#   jupytext:\n#     text_representation:\n"
			      "#       extension: .py\n#       format_name: percent\n"
			      "#   kernelspec:\n"); /* latched, as below */
	add_scalar(b, "display_name", shown);
	add_scalar(b, "language", language);
	add_scalar(b, "name", name);
	(void)buf_add_text(b, "# ---\n");
}

int percent_write(const struct notebook *nb, struct buf *ret_text, struct err *err)
{
	static const char *const marks[] = {"# %%\n", "# %% [markdown]\n", "# %% [raw]\n"};
	add_header(nb, ret_text);
	for (size_t i = 0; i < nb->n && !ret_text->failed; i++) {
		const struct cell *c = &nb->cells[i];
		struct bytes source = trimmed((struct bytes){c->source.data, c->source.len});
		(void)buf_addf(ret_text, "\n%s", marks[c->kind]); /* latched */
		if (c->kind == CELL_CODE)
			add_code(source, ret_text);
		else
			add_comment(source, ret_text);
	}
	return buf_check(ret_text, "a script", err);
}

/* ---- reading ---- */

static int check_text(struct bytes file, struct err *err)
{
	size_t line = 1;
	for (size_t at = 0; at < file.len;) {
		const uint8_t *c = file.data + at;
		size_t len = *c < 0x80 ? 1 : json_utf8_len(c, file.data + file.len);
		if (*c == '\0' || len == 0)
			return err_set(err, E_INVALID, "line %zu of the script %s", line,
				*c ? "is no UTF-8" : "holds a NUL");
		line += *c == '\n';
		at += len;
	}
	return 0;
}

struct reading {
	struct notebook *nb;
	struct cell *cell; /* NULL before the first */
	struct percent_state state;
};

static void trim_cell(struct cell *c)
{
	c->source.len = trimmed((struct bytes){c->source.data, c->source.len}).len;
	if (c->source.data)
		c->source.data[c->source.len] = '\0';
}

static int begin_cell(struct reading *r, enum cell_kind kind, struct err *err)
{
	if (r->nb->n == NOTEBOOK_CELLS_MAX)
		return err_set(
			err, E_TOO_BIG, "a script of more than %u cells", NOTEBOOK_CELLS_MAX);
	if (r->cell)
		trim_cell(r->cell);
	r->cell = notebook_add(r->nb, kind);
	r->state = (struct percent_state){0};
	return 0;
}

static bool holds(struct bytes text, const char *word)
{
	return text.len > 0 && memmem(text.data, text.len, word, strlen(word)) != NULL;
}

static enum cell_kind kind_of(struct bytes rest)
{
	if (holds(rest, "[markdown]") || holds(rest, "[md]"))
		return CELL_MARKDOWN;
	return holds(rest, "[raw]") ? CELL_RAW : CELL_CODE;
}

static void add_line(struct reading *r, struct bytes line)
{
	struct buf *source = &r->cell->source;
	if (r->cell->kind == CELL_CODE)
		percent_unescape(&r->state, line, source);
	else
		percent_uncomment(line, source);
	(void)buf_add(source, "\n", 1); /* latched */
}

static int take_line(struct reading *r, struct bytes line, struct err *err)
{
	struct bytes rest;
	int status = 0;
	if (percent_marker(line, &rest))
		return begin_cell(r, kind_of(rest), err);
	if (!r->cell && line.len == 0)
		return 0;
	if (!r->cell)
		status = begin_cell(r, CELL_CODE, err);
	if (status == 0)
		add_line(r, line);
	return status;
}

/* The value of `#     KEY: VALUE`, if the line is that. */
static void take_scalar(struct bytes line, const char *key, char ret[KERNELSPEC_SIZE])
{
	char head[64];
	int n = snprintf(head, sizeof head, "#     %s: ", key);
	if (line.len <= (size_t)n || memcmp(line.data, head, (size_t)n) != 0)
		return;
	struct bytes value = {line.data + n, line.len - (size_t)n};
	if (is_string(value) && json_scan(value, NULL, 0, NULL) == 0 &&
		json_text(value, ret, KERNELSPEC_SIZE))
		return;
	/* Cut in the middle of a character it would be no text. */
	if (!copy_text(ret, KERNELSPEC_SIZE, (const char *)value.data, value.len))
		ret[0] = '\0';
}

/* The lines between two `# ---` at the top; 0 if there is no such header. */
static size_t read_header(struct bytes file, struct notebook *nb)
{
	char shown[KERNELSPEC_SIZE] = "", language[KERNELSPEC_SIZE] = "python";
	char name[KERNELSPEC_SIZE] = "";
	const char *texts[] = {"{\"kernelspec\":{\"display_name\":", shown,
		",\"language\":", language, ",\"name\":", name,
		"},\"language_info\":{\"name\":", language};
	struct bytes line;
	size_t at = 0;
	if (!line_next(file, &at, &line) || !bytes_equal(line, "# ---"))
		return 0;
	while (line_next(file, &at, &line) && line.len > 0 && line.data[0] == '#') {
		take_scalar(line, "display_name", shown);
		take_scalar(line, "language", language);
		take_scalar(line, "name", name);
		if (!bytes_equal(line, "# ---"))
			continue;
		memcpy(nb->kernelspec, name, sizeof name);
		for (size_t i = 0; name[0] && i < ARRAY_LEN(texts); i += 2) {
			(void)buf_add_text(&nb->metadata, texts[i]); /* latched, as below */
			(void)buf_add_json_string(
				&nb->metadata, texts[i + 1], strlen(texts[i + 1]));
		}
		(void)buf_add_text(&nb->metadata, name[0] ? "}}" : "");
		return at < file.len ? at : file.len;
	}
	return 0;
}

int percent_read(struct bytes file, struct notebook *ret_nb, struct err *err)
{
	struct reading r = {.nb = ret_nb};
	struct bytes line;
	int status = check_text(file, err);
	if (file.len >= 3 && memcmp(file.data, "\xef\xbb\xbf", 3) == 0)
		file = (struct bytes){file.data + 3, file.len - 3};
	size_t at = status == 0 ? read_header(file, ret_nb) : 0;
	while (status == 0 && line_next(file, &at, &line))
		status = take_line(&r, line, err);
	if (r.cell)
		trim_cell(r.cell);
	return status == 0 ? notebook_check(ret_nb, err) : status;
}
