/* coppice log: a history as a drawn tree. */
#include <stdio.h>
#include <string.h>

#include <cjson/cJSON.h>

#include "gateway/cli_graph.h"
#include "gateway/cli_history.h"
#include "gateway/cli_plain.h"

#define DRAWN_MAX (64u << 20)
#define TEXT_MAX  512

static void add_branches(struct buf *b, const cJSON *node)
{
	const cJSON *branch;
	const char *before = " (";
	cJSON_ArrayForEach (branch, cJSON_GetObjectItemCaseSensitive(node, "branches")) {
		if (!cJSON_IsString(branch))
			continue;
		(void)buf_addf(b, "%s", before);
		cli_plain_line(b, branch->valuestring, 60);
		before = ", ";
	}
	(void)buf_addf(b, "%s", *before == ',' ? ")" : "");
}

/* "3f2a91c  [4]  error  x = 1  (main)". */
static char *line_of(const cJSON *node)
{
	struct buf b;
	const cJSON *count = cJSON_GetObjectItemCaseSensitive(node, "execution_count");
	buf_init(&b, TEXT_MAX * 4);
	cli_plain_line(&b, cli_text_of(node, "id"), 8);
	if (cJSON_IsNumber(count))
		(void)buf_addf(&b, " [%.0f]", count->valuedouble);
	if (strcmp(cli_text_of(node, "kind"), "execution") != 0)
		(void)buf_addf(&b, " %s", cli_text_of(node, "kind"));
	else if (strcmp(cli_text_of(node, "status"), "ok") != 0)
		(void)buf_addf(&b, " %s:", cli_text_of(node, "status"));
	(void)buf_addf(&b, " ");
	cli_plain_line(&b, cli_text_of(node, "summary"), 72);
	add_branches(&b, node);
	(void)buf_add(&b, "", 1);
	char *text = b.failed ? NULL : strdup((const char *)b.data);
	buf_done(&b);
	return text;
}

static void draw(const cJSON *tree)
{
	const cJSON *list = cJSON_GetObjectItemCaseSensitive(tree, "nodes"), *node;
	size_t n = 0, size = (size_t)cJSON_GetArraySize(list);
	struct graph_node *nodes = xcalloc(size + 1, sizeof *nodes);
	struct buf out;
	buf_init(&out, DRAWN_MAX);
	cJSON_ArrayForEach (node, list) {
		char *text = line_of(node);
		nodes[n++] = (struct graph_node){.id = cli_text_of(node, "id"),
			.parent = cli_text_of(node, "parent"),
			.text = text ? text : ""};
	}
	(void)buf_add_text(&out, "history "); /* latched, as below */
	cli_plain_line(&out, cli_text_of(tree, "id"), 40);
	(void)buf_add_text(&out, " (");
	cli_plain_line(&out, cli_text_of(tree, "name"), 200);
	(void)buf_add_text(&out, ")\n");
	graph_draw(nodes, n, &out);
	(void)fwrite(out.data, 1, out.len, stdout); /* a closed pipe is its reader's wish */
	if (*cli_text_of(tree, "next"))
		printf("(older ones: --limit N)\n");
	for (size_t i = 0; i < n; i++)
		free((char *)(uintptr_t)nodes[i].text);
	free(nodes);
	buf_done(&out);
}

static int show(struct cli_asked *a, const char *limit, bool silent, struct err *err)
{
	AUTO(buf_done) struct buf path;
	struct cli_server server;
	buf_init(&path, 4096);
	int status = cli_history_path(a, &server, &path, err);
	(void)buf_addf(&path, "?limit=%s%s", limit ? limit : "100", silent ? "&silent=true" : "");
	if (status == 0)
		status = buf_check(&path, "the history's name", err);
	if (status != 0)
		return status;
	struct cli_fetch f = {.path = (const char *)path.data};
	status = cli_fetch(&server, &f, err);
	cJSON *tree = status == 0 ? cli_fetch_tree(&f) : NULL;
	char *text = a->json ? cJSON_Print(tree) : NULL;
	if (text)
		puts(text);
	else if (status == 0)
		draw(tree);
	cJSON_free(text);
	cJSON_Delete(tree);
	cli_fetch_done(&f);
	return status;
}

static int run(int argc, char **argv)
{
	struct cli_asked a;
	struct err err;
	bool silent = cli_take_flag(&argc, argv, "--silent");
	const char *limit = cli_take_value(&argc, argv, "--limit");
	int status = cli_asked_read(&a, argc, argv, 1);
	if (status != CLI_OK)
		return status;
	if (a.n_words > 0)
		a.history = a.words[0];
	status = show(&a, limit, silent, &err);
	config_done(&a.config);
	return status == 0 ? CLI_OK : cli_fail(&err);
}

const struct command command_log = {
	.name = "log",
	.about = "a history as a drawn tree: coppice log [HISTORY]",
	.usage = "  HISTORY                 its id or name (default: the one that was worked in "
		 "last)\n"
		 "  --limit N               so many nodes, newest first (default: 100)\n"
		 "  --silent                silent executions too\n"
		 "  --json                  as JSON\n" CLI_SERVER_USAGE,
	.takes_options = true,
	.run = run,
};
