/* coppice diff: what changed from one node to another, for people. The gateway tells it as
 * operations on the notebook of the first node, so that one is asked for too. */
#include <stdio.h>
#include <string.h>

#include <cjson/cJSON.h>

#include "gateway/cli_history.h"
#include "gateway/cli_plain.h"

#define SHOWN_MAX (1u << 30)

static const cJSON *member(const cJSON *tree, const char *name)
{
	return cJSON_GetObjectItemCaseSensitive(tree, name);
}

static size_t number(const cJSON *op, const char *name)
{
	double value = cJSON_GetNumberValue(member(op, name));
	return value >= 0 && value < 1e9 ? (size_t)value : 0;
}

/* The operation that patches that key of an object, what it holds. */
static const cJSON *patch_of(const cJSON *ops, const char *key)
{
	const cJSON *op;
	cJSON_ArrayForEach (op, ops)
		if (strcmp(cli_text_of(op, "key"), key) == 0)
			return member(op, "diff");
	return NULL;
}

/* ---- texts ---- */

/* A text, or a list of its lines. */
static void join(const cJSON *value, struct buf *ret)
{
	const cJSON *line;
	if (cJSON_IsString(value))
		(void)buf_add_text(ret, value->valuestring); /* latched, as below */
	cJSON_ArrayForEach (line, value)
		if (cJSON_IsString(line))
			(void)buf_add_text(ret, line->valuestring);
}

/* Each line behind the mark. */
static void add_marked(struct buf *out, const char *mark, const char *text, size_t len)
{
	AUTO(buf_done) struct buf plain;
	buf_init(&plain, SHOWN_MAX);
	cli_plain_add(&plain, text, len); /* latched, as below */
	const char *at = (const char *)plain.data, *end = at ? at + plain.len : at;
	while (at < end) {
		const char *newline = memchr(at, '\n', (size_t)(end - at));
		const char *stop = newline ? newline : end;
		(void)buf_addf(out, "%s%.*s\n", mark, (int)(stop - at), at);
		at = stop + 1;
	}
}

static void add_value(struct buf *out, const char *mark, const cJSON *value)
{
	AUTO(buf_done) struct buf text;
	buf_init(&text, SHOWN_MAX);
	join(value, &text);
	add_marked(out, mark, text.data ? (const char *)text.data : "", text.len);
}

/* The operations of a text's lines over the text, all of its lines shown. */
static void add_lines(struct buf *out, const cJSON *old, const cJSON *ops)
{
	AUTO(buf_done) struct buf text;
	const cJSON *op, *line;
	size_t at = 0;
	buf_init(&text, SHOWN_MAX);
	join(old, &text);
	const char *rest = text.data ? (const char *)text.data : "";
	cJSON_ArrayForEach (op, ops) {
		size_t key = number(op, "key"), length = number(op, "length");
		for (; *rest && at < key + length; at++) {
			size_t n = strcspn(rest, "\n");
			n += rest[n] == '\n';
			add_marked(out, at < key ? "  " : "- ", rest, n);
			rest += n;
		}
		cJSON_ArrayForEach (line, member(op, "valuelist"))
			add_value(out, "+ ", line);
	}
	add_marked(out, "  ", rest, strlen(rest));
}

/* ---- cells ---- */

static void add_head(struct buf *out, const char *mark, const cJSON *cell, const char *what)
{
	const cJSON *count = member(cell, "execution_count");
	const char *kind = cli_text_of(cell, "cell_type");
	(void)buf_addf(out, "%s ", mark); /* latched, as below */
	if (cJSON_IsNumber(count))
		(void)buf_addf(out, "In[%.0f]", count->valuedouble);
	else
		cli_plain_line(out, strcmp(kind, "code") == 0 ? "In[ ]" : kind, 20);
	(void)buf_addf(out, "%s\n", what);
}

static void add_cell(struct buf *out, const char *mark, const cJSON *cell)
{
	char lines[4];
	(void)snprintf(lines, sizeof lines, "%.1s ", mark);
	add_head(out, mark, cell, "");
	add_value(out, lines, member(cell, "source"));
}

/* added: those before the place are shown first, as they were written there. */
static void add_code(struct buf *out, const cJSON *cells, const cJSON *ops)
{
	const cJSON *op, *cell;
	cJSON_ArrayForEach (op, ops) {
		size_t key = number(op, "key"), length = number(op, "length");
		const cJSON *source = patch_of(member(op, "diff"), "source");
		for (size_t i = key; i < key + length; i++)
			add_cell(out, "---", cJSON_GetArrayItem(cells, (int)i));
		cJSON_ArrayForEach (cell, member(op, "valuelist"))
			add_cell(out, "+++", cell);
		if (!source)
			continue;
		cell = cJSON_GetArrayItem(cells, (int)key);
		add_head(out, "***", cell, "");
		add_lines(out, member(cell, "source"), source);
	}
}

/* ---- outputs ---- */

static void add_output(struct buf *out, const char *mark, const cJSON *output)
{
	const cJSON *data = member(output, "data"), *m;
	if (member(output, "text"))
		add_value(out, mark, member(output, "text"));
	if (*cli_text_of(output, "ename")) {
		(void)buf_add_text(out, mark); /* latched, as below */
		cli_plain_line(out, cli_text_of(output, "ename"), 100);
		(void)buf_add_text(out, ": ");
		cli_plain_line(out, cli_text_of(output, "evalue"), 300);
		(void)buf_add_text(out, "\n");
	}
	add_value(out, mark, member(data, "text/plain"));
	cJSON_ArrayForEach (m, data) {
		if (strcmp(m->string, "text/plain") == 0)
			continue;
		(void)buf_addf(out, "%s[", mark);
		cli_plain_line(out, m->string, 100);
		(void)buf_add_text(out, "]\n");
	}
}

/* Of one output, member by member. */
static void add_changed(struct buf *out, const cJSON *output, const cJSON *ops)
{
	const cJSON *op;
	cJSON_ArrayForEach (op, ops) {
		const char *key = cli_text_of(op, "key");
		const cJSON *old = member(output, key), *diff = member(op, "diff");
		if (strcmp(key, "data") == 0) {
			add_changed(out, old, diff);
		} else if (diff) {
			add_lines(out, old, diff);
		} else {
			(void)buf_add_text(out, "! "); /* latched, as below */
			cli_plain_line(out, key, 100);
			(void)buf_addf(out, ": %s\n", cli_text_of(op, "op"));
		}
	}
}

static void add_outputs(struct buf *out, const cJSON *cells, const cJSON *ops)
{
	const cJSON *op, *inner, *output;
	cJSON_ArrayForEach (op, ops) {
		const cJSON *cell = cJSON_GetArrayItem(cells, (int)number(op, "key"));
		const cJSON *old = member(cell, "outputs");
		add_head(out, "***", cell, ", outputs");
		cJSON_ArrayForEach (inner, patch_of(member(op, "diff"), "outputs")) {
			size_t key = number(inner, "key"), length = number(inner, "length");
			for (size_t i = key; i < key + length; i++)
				add_output(out, "- ", cJSON_GetArrayItem(old, (int)i));
			cJSON_ArrayForEach (output, member(inner, "valuelist"))
				add_output(out, "+ ", output);
			add_changed(out, cJSON_GetArrayItem(old, (int)key), member(inner, "diff"));
		}
	}
}

/* ---- variables ---- */

static void add_variables(struct buf *out, const cJSON *variables)
{
	static const char *const keys[] = {"removed", "added", "changed"};
	static const char *const marks[] = {"- ", "+ ", "! "};
	const cJSON *variable;
	bool any = false;
	for (size_t i = 0; i < ARRAY_LEN(keys); i++) {
		cJSON_ArrayForEach (variable, member(variables, keys[i])) {
			if (!any)
				(void)buf_add_text(out, "*** variables\n"); /* latched, as below */
			any = true;
			(void)buf_add_text(out, marks[i]);
			cli_plain_line(out, cli_text_of(variable, "name"), 60);
			(void)buf_add_text(out, "  ");
			cli_plain_line(out, cli_text_of(variable, "type"), 60);
			(void)buf_add_text(out, "\n");
		}
	}
}

/* ---- files ---- */

static void add_files(struct buf *out, const cJSON *files)
{
	static const char *const words[] = {"deleted", "created", "modified"};
	static const char *const marks[] = {"- ", "+ ", "! "};
	const cJSON *file;
	if (cJSON_GetArraySize(files) > 0)
		(void)buf_add_text(out, "*** files\n"); /* latched, as below */
	cJSON_ArrayForEach (file, files) {
		const char *change = cli_text_of(file, "change");
		for (size_t i = 0; i < ARRAY_LEN(words); i++)
			if (strcmp(change, words[i]) == 0)
				(void)buf_add_text(out, marks[i]);
		cli_plain_line(out, cli_text_of(file, "path"), 200);
		(void)buf_add_text(out, "\n");
	}
}

/* ---- the command ---- */

/* nbdime puts what came before what went in its place; people read it the other way round. */
static void removals_first(cJSON *ops)
{
	int at = 0;
	for (cJSON *op = ops ? ops->child : NULL; op; op = op->next, at++) {
		cJSON *next = op->next;
		removals_first(cJSON_GetObjectItemCaseSensitive(op, "diff"));
		if (next && strcmp(cli_text_of(op, "op"), "addrange") == 0 &&
			strcmp(cli_text_of(next, "op"), "removerange") == 0 &&
			number(op, "key") == number(next, "key")) {
			(void)cJSON_DetachItemViaPointer(ops, next); /* it is in there */
			(void)cJSON_InsertItemInArray(ops, at++, next);
		}
	}
}

static void add_all(struct buf *out, const cJSON *notebook, cJSON *diff)
{
	const cJSON *cells = member(notebook, "cells");
	removals_first(cJSON_GetObjectItemCaseSensitive(diff, "code"));
	removals_first(cJSON_GetObjectItemCaseSensitive(diff, "outputs"));
	add_code(out, cells, patch_of(member(diff, "code"), "cells"));
	add_outputs(out, cells, patch_of(member(diff, "outputs"), "cells"));
	add_variables(out, member(diff, "variables"));
	add_files(out, member(diff, "files"));
	if (out->len == 0)
		(void)buf_add_text(out, "no difference\n"); /* latched */
}

static int ask(const struct cli_server *server, const char *path, cJSON **ret, struct err *err)
{
	struct cli_fetch f = {.path = path};
	int status = cli_fetch(server, &f, err);
	if (status == 0)
		*ret = cli_fetch_tree(&f);
	cli_fetch_done(&f);
	if (status == 0 && !*ret)
		status = err_set(err, E_PROTOCOL, "the server's answer is no JSON");
	return status;
}

static int print_diff(const struct cli_asked *a, const struct cli_server *server, const char *path,
	cJSON *diff, struct err *err)
{
	AUTO(buf_done) struct buf out, question;
	cJSON *notebook = NULL;
	buf_init(&out, SHOWN_MAX);
	buf_init(&question, 8192);
	char *text = a->json ? cJSON_Print(diff) : NULL;
	if (text) {
		puts(text);
		cJSON_free(text);
		return 0;
	}
	(void)buf_addf(&question, "%s/export?node=", path); /* latched */
	(void)cli_add_name(&question, cli_text_of(diff, "from"));
	int status = buf_check(&question, "the node's name", err);
	if (status == 0)
		status = ask(server, (const char *)question.data, &notebook, err);
	if (status == 0)
		add_all(&out, notebook, diff);
	cJSON_Delete(notebook);
	if (status == 0)
		status = buf_check(&out, "the difference", err);
	if (status == 0)
		(void)fwrite(out.data, 1, out.len, stdout); /* a closed pipe is its reader's wish */
	return status;
}

static int compare(struct cli_asked *a, struct err *err)
{
	AUTO(buf_done) struct buf path, question;
	struct cli_server server;
	cJSON *diff = NULL;
	buf_init(&path, 4096);
	buf_init(&question, 16384);
	int status = cli_history_path(a, &server, &path, err);
	if (status != 0)
		return status;
	(void)buf_addf(&question, "%s/diff?from=", (const char *)path.data); /* latched, as below */
	(void)cli_add_name(&question, a->words[0]);
	(void)buf_add_text(&question, "&to=");
	(void)cli_add_name(&question, a->n_words > 1 ? a->words[1] : "HEAD");
	status = buf_check(&question, "the node's name", err);
	if (status == 0)
		status = ask(&server, (const char *)question.data, &diff, err);
	if (status == 0)
		status = print_diff(a, &server, (const char *)path.data, diff, err);
	cJSON_Delete(diff);
	return status;
}

static int run(int argc, char **argv)
{
	struct cli_asked a;
	struct err err;
	int status = cli_asked_read(&a, argc, argv, 2);
	if (status != CLI_OK)
		return status;
	if (a.n_words == 0) {
		fprintf(stderr, "coppice diff: from which node? coppice diff A [B]\n");
		config_done(&a.config);
		return CLI_WRONG_USE;
	}
	status = compare(&a, &err);
	config_done(&a.config);
	return status == 0 ? CLI_OK : cli_fail(&err);
}

const struct command command_diff = {
	.name = "diff",
	.about = "what changed between two nodes: coppice diff A [B]",
	.usage = "  A, B                    nodes of one history (B: HEAD if it is left out)\n"
		 "  --json                  as nbdime's operations\n" CLI_HISTORY_USAGE,
	.takes_options = true,
	.run = run,
};
