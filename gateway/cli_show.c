/* coppice show: one node for people: what ran, what came of it, when, and what there was then. */
#include <stdio.h>
#include <string.h>

#include <cjson/cJSON.h>

#include "gateway/cli_history.h"
#include "gateway/cli_plain.h"

#define SHOWN_MAX   (1u << 30)
#define FILES_SHOWN 100

static void add_line_of(struct buf *b, const cJSON *tree, const char *name, size_t width)
{
	cli_plain_line(b, cli_text_of(tree, name), width);
}

/* Ends with a newline, whatever the text does. */
static void add_block(struct buf *b, const char *text)
{
	cli_plain_add(b, text, strlen(text));
	if (b->len > 0 && b->data[b->len - 1] != '\n')
		(void)buf_add(b, "\n", 1); /* latched */
}

static const cJSON *member(const cJSON *tree, const char *name)
{
	return cJSON_GetObjectItemCaseSensitive(tree, name);
}

/* ---- what it was ---- */

static void add_names(struct buf *b, const cJSON *node)
{
	const cJSON *branch;
	const char *before = " (";
	cJSON_ArrayForEach (branch, member(node, "branches")) {
		(void)buf_add_text(b, before); /* latched */
		cli_plain_line(b, cJSON_IsString(branch) ? branch->valuestring : "", 60);
		before = ", ";
	}
	(void)buf_add_text(b, *before == ',' ? ")\n" : "\n"); /* latched */
}

static void add_times(struct buf *b, const cJSON *node)
{
	const char *started = cli_text_of(node, "started");
	const cJSON *ms = member(node, "duration_ms");
	if (!*started)
		return;
	(void)buf_add_text(b, "started "); /* latched, as below */
	cli_plain_line(b, started, 40);
	if (cJSON_IsNumber(ms))
		(void)buf_addf(b, ", took %.3f ms", ms->valuedouble);
	(void)buf_add_text(b, "\n");
}

static void add_status(struct buf *b, const cJSON *node)
{
	const cJSON *count = member(node, "execution_count"), *error = member(node, "error");
	const char *kind = cli_text_of(node, "kind");
	if (strcmp(kind, "execution") != 0) {
		cli_plain_line(b, kind, 40);
		(void)buf_add_text(b, "\n"); /* latched, as below */
		return;
	}
	add_line_of(b, node, "status", 20);
	if (cJSON_IsNumber(count))
		(void)buf_addf(b, ", In[%.0f]", count->valuedouble);
	if (cJSON_IsTrue(member(node, "silent")))
		(void)buf_add_text(b, ", silent");
	if (cJSON_IsObject(error)) {
		(void)buf_add_text(b, ": ");
		add_line_of(b, error, "ename", 100);
		(void)buf_add_text(b, ": ");
		add_line_of(b, error, "evalue", 200);
	}
	(void)buf_add_text(b, "\n");
}

/* "x  int", "frame  DataFrame  1000 x 3  24000 bytes". */
static void add_variable(struct buf *b, const cJSON *variable)
{
	const cJSON *bytes = member(variable, "bytes"), *length;
	const char *before = "  ";
	(void)buf_add_text(b, "  "); /* latched, as below */
	add_line_of(b, variable, "name", 60);
	(void)buf_add_text(b, "  ");
	add_line_of(b, variable, "type", 60);
	cJSON_ArrayForEach (length, member(variable, "shape")) {
		if (cJSON_IsNumber(length))
			(void)buf_addf(b, "%s%.0f", before, length->valuedouble);
		before = " x ";
	}
	if (cJSON_IsNumber(bytes))
		(void)buf_addf(b, "  %.0f bytes", bytes->valuedouble);
	(void)buf_add_text(b, "\n");
}

static void add_variables(struct buf *b, const cJSON *node)
{
	const cJSON *list = member(node, "variables"), *variable;
	if (cJSON_GetArraySize(list) == 0)
		return;
	(void)buf_add_text(b, "--- variables\n"); /* latched, as below */
	cJSON_ArrayForEach (variable, list)
		add_variable(b, variable);
	if (cJSON_IsFalse(member(node, "variables_complete")))
		(void)buf_add_text(b, "  ... and more\n");
}

/* "modified a.csv, 120 bytes". */
static void add_file(struct buf *b, const cJSON *file)
{
	const cJSON *bytes = member(file, "bytes");
	const char *change = cli_text_of(file, "change"), *lost = cli_text_of(file, "lost");
	(void)buf_add_text(b, "  "); /* latched, as below */
	cli_plain_line(b, change, 20);
	(void)buf_add_text(b, " ");
	add_line_of(b, file, "path", 200);
	if (cJSON_IsNumber(bytes) && strcmp(change, "deleted") != 0)
		(void)buf_addf(b, ", %.0f bytes", bytes->valuedouble);
	if (*lost) {
		(void)buf_add_text(b, ": ");
		cli_plain_line(b, lost, 200);
	}
	(void)buf_add_text(b, "\n");
}

static void add_files(struct buf *b, const cJSON *node)
{
	const cJSON *list = member(node, "files"), *file;
	const char *reason = cli_text_of(node, "files_reason");
	int left = FILES_SHOWN;
	if (cJSON_GetArraySize(list) == 0 && !*reason)
		return;
	(void)buf_add_text(b, "--- files\n"); /* latched, as below */
	if (*reason) {
		(void)buf_add_text(b, "  not recorded: ");
		cli_plain_line(b, reason, 200);
		(void)buf_add_text(b, "\n");
	}
	cJSON_ArrayForEach (file, list) {
		if (left-- == 0)
			break;
		add_file(b, file);
	}
	if (left < 0)
		(void)buf_addf(b, "  ... and %d more\n", cJSON_GetArraySize(list) - FILES_SHOWN);
}

/* ---- outputs ---- */

static void add_bundle(struct buf *b, const cJSON *output)
{
	const cJSON *data = member(output, "data"), *count = member(output, "execution_count"), *m;
	const char *text = cli_text_of(data, "text/plain");
	if (cJSON_IsNumber(count))
		(void)buf_addf(b, "--- Out[%.0f]\n", count->valuedouble); /* latched, as below */
	else
		(void)buf_add_text(b, "--- display\n");
	add_block(b, text);
	cJSON_ArrayForEach (m, data) {
		if (strcmp(m->string, "text/plain") == 0)
			continue;
		(void)buf_add_text(b, "[");
		cli_plain_line(b, m->string, 100);
		if (cJSON_IsString(m))
			(void)buf_addf(b, ", %zu bytes", strlen(m->valuestring));
		(void)buf_add_text(b, "]\n");
	}
}

static void add_error(struct buf *b, const cJSON *output)
{
	const cJSON *traceback = member(output, "traceback"), *line;
	(void)buf_add_text(b, "--- error\n"); /* latched */
	cJSON_ArrayForEach (line, traceback)
		add_block(b, cJSON_IsString(line) ? line->valuestring : "");
	if (cJSON_GetArraySize(traceback) > 0)
		return;
	add_line_of(b, output, "ename", 100);
	(void)buf_add_text(b, ": "); /* latched, as below */
	add_line_of(b, output, "evalue", 1000);
	(void)buf_add_text(b, "\n");
}

static void add_output(struct buf *b, const cJSON *output)
{
	const char *type = cli_text_of(output, "output_type");
	if (strcmp(type, "stream") == 0) {
		(void)buf_add_text(b, "--- "); /* latched, as below */
		add_line_of(b, output, "name", 20);
		(void)buf_add_text(b, "\n");
		add_block(b, cli_text_of(output, "text"));
	} else if (strcmp(type, "error") == 0) {
		add_error(b, output);
	} else {
		add_bundle(b, output);
	}
}

static void add_node(struct buf *b, const cJSON *node)
{
	const cJSON *output;
	(void)buf_add_text(b, "node "); /* latched, as below */
	add_line_of(b, node, "id", 40);
	add_names(b, node);
	add_status(b, node);
	add_times(b, node);
	add_variables(b, node);
	add_files(b, node);
	if (*cli_text_of(node, "code")) {
		(void)buf_add_text(b, "--- code\n");
		add_block(b, cli_text_of(node, "code"));
	}
	cJSON_ArrayForEach (output, member(node, "outputs"))
		add_output(b, output);
}

/* ---- the command ---- */

static int print_node(const struct cli_asked *a, struct cli_fetch *f, struct err *err)
{
	AUTO(buf_done) struct buf out;
	cJSON *tree = cli_fetch_tree(f);
	char *text = a->json ? cJSON_Print(tree) : NULL;
	buf_init(&out, SHOWN_MAX);
	if (!a->json)
		add_node(&out, tree);
	int status = buf_check(&out, "the node", err);
	if (status == 0 && !tree)
		status = err_set(err, E_PROTOCOL, "the server's answer is no JSON");
	if (status == 0 && text)
		puts(text);
	else if (status == 0)
		(void)fwrite(out.data, 1, out.len, stdout); /* a closed pipe is its reader's wish */
	cJSON_free(text);
	cJSON_Delete(tree);
	return status;
}

static int show(struct cli_asked *a, struct err *err)
{
	AUTO(buf_done) struct buf path;
	struct cli_server server;
	buf_init(&path, 8192);
	int status = cli_history_path(a, &server, &path, err);
	(void)buf_add_text(&path, "/nodes/"); /* latched, as below */
	(void)cli_add_name(&path, a->n_words > 0 ? a->words[0] : "HEAD");
	if (status == 0)
		status = buf_check(&path, "the node's name", err);
	if (status != 0)
		return status;
	struct cli_fetch f = {.path = (const char *)path.data};
	status = cli_fetch(&server, &f, err);
	if (status == 0)
		status = print_node(a, &f, err);
	cli_fetch_done(&f);
	return status;
}

static int run(int argc, char **argv)
{
	struct cli_asked a;
	struct err err;
	int status = cli_asked_read(&a, argc, argv, 1);
	if (status != CLI_OK)
		return status;
	status = show(&a, &err);
	config_done(&a.config);
	return status == 0 ? CLI_OK : cli_fail(&err);
}

const struct command command_show = {
	.name = "show",
	.about = "one node: coppice show [NODE]",
	.usage = "  NODE                    its id, or a prefix, a branch, HEAD~2, In[7] (default: "
		 "HEAD)\n"
		 "  --json                  as JSON\n" CLI_HISTORY_USAGE,
	.takes_options = true,
	.run = run,
};
