/* coppice branch: a branch begins at a node of a history, beside the kernels that run. */
#include <stdio.h>
#include <string.h>

#include <cjson/cJSON.h>

#include "gateway/cli_history.h"

#define PATH_SIZE 4096
#define BODY_SIZE 8192

struct branch_asked {
	struct cli_asked asked;
	const char *accept;
	bool no_kernel;
};

static void add_member(struct buf *b, const char *name, const char *value)
{
	if (!value)
		return;
	(void)buf_addf(b, "%s\"%s\":", b->len > 1 ? "," : "", name); /* latched, as below */
	(void)buf_add_json_string(b, value, strlen(value));
}

static int make_body(const struct branch_asked *a, struct buf *body, struct err *err)
{
	(void)buf_add_text(body, "{"); /* latched, as below */
	add_member(body, "at", a->asked.n_words > 0 ? a->asked.words[0] : "HEAD");
	add_member(body, "name", a->asked.n_words > 1 ? a->asked.words[1] : NULL);
	add_member(body, "accept", a->accept);
	(void)buf_add_text(body, a->no_kernel ? ",\"kernel\":false}" : "}");
	return buf_check(body, "the name of the branch", err);
}

static void print_things(FILE *to, const cJSON *things)
{
	const cJSON *one;
	cJSON_ArrayForEach (one, things) {
		fprintf(to, "  %s (%s): %s\n", cli_text_of(one, "name"), cli_text_of(one, "kind"),
			cli_text_of(one, "reason"));
	}
}

static void print_report(FILE *to, const cJSON *report)
{
	const cJSON *one;
	print_things(to, cJSON_GetObjectItemCaseSensitive(report, "lost"));
	print_things(to, cJSON_GetObjectItemCaseSensitive(report, "approximate"));
	cJSON_ArrayForEach (one, cJSON_GetObjectItemCaseSensitive(report, "notes")) {
		fprintf(to, "  %s\n", cJSON_IsString(one) ? one->valuestring : "");
	}
}

static void print(const cJSON *tree)
{
	const cJSON *kernel = cJSON_GetObjectItemCaseSensitive(tree, "kernel");
	const cJSON *report = cJSON_GetObjectItemCaseSensitive(tree, "report");
	if (cJSON_IsObject(kernel))
		printf("branch %s begins at node %.12s, as kernel %s (%s)\n",
			cli_text_of(tree, "name"), cli_text_of(tree, "node"),
			cli_text_of(kernel, "id"), cli_text_of(report, "fidelity"));
	else
		printf("branch %s begins at node %.12s, without a kernel\n",
			cli_text_of(tree, "name"), cli_text_of(tree, "node"));
	print_report(stdout, report);
}

static int branch(struct branch_asked *a)
{
	struct err err;
	struct cli_server server;
	AUTO(buf_done) struct buf path, body;
	buf_init(&path, PATH_SIZE);
	buf_init(&body, BODY_SIZE);
	int status = cli_history_path(&a->asked, &server, &path, &err);
	(void)buf_add_text(&path, "/branches"); /* latched */
	if (status == 0)
		status = buf_check(&path, "the history's name", &err);
	if (status == 0)
		status = make_body(a, &body, &err);
	struct cli_fetch fetch = {
		.method = "POST", .path = (const char *)path.data, .body = (const char *)body.data};
	if (status == 0)
		status = cli_fetch(&server, &fetch, &err);
	cJSON *tree = cli_fetch_tree(&fetch);
	char *text = status == 0 && a->asked.json ? cJSON_Print(tree) : NULL;
	if (text)
		puts(text);
	else if (status == 0)
		print(tree);
	int code = status == 0 ? CLI_OK : cli_fail(&err);
	if (status != 0)
		print_report(stderr, cJSON_GetObjectItemCaseSensitive(tree, "report"));
	cJSON_free(text);
	cJSON_Delete(tree);
	cli_fetch_done(&fetch);
	return code;
}

static int run(int argc, char **argv)
{
	struct branch_asked a = {
		.accept = cli_take_value(&argc, argv, "--accept"),
		.no_kernel = cli_take_flag(&argc, argv, "--no-kernel"),
	};
	int code = cli_asked_read(&a.asked, argc, argv, 2);
	if (code != CLI_OK)
		return code;
	code = branch(&a);
	config_done(&a.asked.config);
	return code;
}

const struct command command_branch = {
	.name = "branch",
	.about = "a branch begins at a node, with a kernel of its own: coppice branch [NODE] "
		 "[NAME]",
	.usage =
		"  NODE                    where it begins: an id or its first digits, a branch, "
		"HEAD~k,\n"
		"                          In[7] (default: HEAD)\n"
		"  NAME                    of the branch (default: main.2, main.3 ...)\n"
		"  --accept FIDELITY       exact (default), partial: what must come back at least\n"
		"  --no-kernel             only the name, for a kernel that is to go on there "
		"later\n" CLI_HISTORY_USAGE "  --json                  as JSON\n",
	.takes_options = true,
	.run = run,
};
