/* coppice checkout, coppice undo: a running kernel goes back to another node of its history;
 * coppice release: it keeps no state of before. */
#include <stdio.h>
#include <string.h>

#include <cjson/cJSON.h>

#include "gateway/base/crypto.h"
#include "gateway/cli_history.h"

#define MOVE_TIMEOUT_MS (60u * 1000u)
#define PATH_SIZE	4096
#define BODY_SIZE	8192

struct move_asked {
	const char *url, *token, *kernel, *node, *accept, *branch;
	bool interrupt, json, release;
};

static void add_member(struct buf *b, const char *name, const char *value)
{
	if (!value)
		return;
	(void)buf_addf(b, "%s\"%s\":", b->len > 1 ? "," : "", name); /* latched, as below */
	(void)buf_add_json_string(b, value, strlen(value));
}

static int ask(const struct cli_server *server, const struct move_asked *a, const char *kernel,
	struct cli_question *q, struct err *err)
{
	AUTO(buf_done) struct buf path, body;
	buf_init(&path, PATH_SIZE);
	buf_init(&body, BODY_SIZE);
	/* All latched. */
	(void)buf_add_text(&path, "/api/kernels/");
	(void)cli_add_name(&path, kernel);
	(void)buf_add_text(&path, a->release ? "/parked" : a->node ? "/checkout" : "/undo");
	(void)buf_add_text(&body, "{");
	add_member(&body, "node", a->node);
	add_member(&body, "accept", a->accept);
	add_member(&body, "branch", a->branch);
	if (a->interrupt)
		(void)buf_addf(&body, "%s\"interrupt\":true", body.len > 1 ? "," : "");
	(void)buf_add_text(&body, "}");
	int status = buf_check(&path, "the kernel's id", err);
	if (status == 0)
		status = buf_check(&body, "the name of the node", err);
	if (status != 0)
		return status;
	*q = (struct cli_question){.method = a->release ? "DELETE" : "POST",
		.body = a->release ? NULL : (const char *)body.data,
		.timeout_ms = MOVE_TIMEOUT_MS};
	status = cli_answer(server, (const char *)path.data, q, err);
	q->body = NULL; /* it goes with this call */
	return status;
}

static void print_report(FILE *to, const cJSON *report)
{
	const cJSON *one;
	cJSON_ArrayForEach (one, cJSON_GetObjectItemCaseSensitive(report, "lost")) {
		fprintf(to, "  %s (%s): %s\n", cli_text_of(one, "name"), cli_text_of(one, "kind"),
			cli_text_of(one, "reason"));
	}
	cJSON_ArrayForEach (one, cJSON_GetObjectItemCaseSensitive(report, "notes")) {
		fprintf(to, "  %s\n", cJSON_IsString(one) ? one->valuestring : "");
	}
}

static void print(const cJSON *tree)
{
	const cJSON *released = cJSON_GetObjectItemCaseSensitive(tree, "released");
	if (cJSON_IsNumber(released)) {
		printf("parked states released: %d\n", released->valueint);
		return;
	}
	const cJSON *report = cJSON_GetObjectItemCaseSensitive(tree, "report");
	printf("kernel %s is at node %.12s; the next cell is on branch %s (%s)\n",
		cli_text_of(cJSON_GetObjectItemCaseSensitive(tree, "kernel"), "id"),
		cli_text_of(tree, "node"), cli_text_of(tree, "branch"),
		cli_text_of(report, "fidelity"));
	print_report(stdout, report);
}

static int move(const struct config *config, const struct move_asked *a)
{
	struct err err;
	struct cli_server server;
	struct cli_question q = {0};
	char id[128] = "";
	int status = crypto_init(&err);
	if (status == 0)
		status = cli_server_find(config, a->url, a->token, &server, &err);
	if (status == 0 && !a->kernel)
		status = cli_newest(&server, "kernel_id", id, sizeof id, &err);
	if (status == 0 && !a->kernel && !*id)
		status = err_set(
			&err, E_NOT_FOUND, "no kernel has run anything: name one with --kernel");
	if (status == 0)
		status = ask(&server, a, a->kernel ? a->kernel : id, &q, &err);
	char *text = status == 0 && a->json ? cJSON_Print(q.tree) : NULL;
	if (text)
		puts(text);
	else if (status == 0)
		print(q.tree);
	int code = status == 0 ? CLI_OK : cli_fail(&err);
	if (status != 0)
		print_report(stderr, cJSON_GetObjectItemCaseSensitive(q.tree, "report"));
	cJSON_free(text);
	cli_questions_done(&q, 1);
	return code;
}

static struct move_asked read_options(int *argc, char **argv)
{
	return (struct move_asked){
		.json = cli_take_flag(argc, argv, "--json"),
		.interrupt = cli_take_flag(argc, argv, "--interrupt"),
		.url = cli_take_value(argc, argv, "--url"),
		.token = cli_take_value(argc, argv, "--token"),
		.kernel = cli_take_value(argc, argv, "--kernel"),
		.accept = cli_take_value(argc, argv, "--accept"),
		.branch = cli_take_value(argc, argv, "--branch"),
	};
}

static int run_asked(const struct move_asked *a, int argc, char **argv)
{
	struct config config;
	int status = cli_config(&config, argc, argv);
	if (status != CLI_OK)
		return status;
	status = move(&config, a);
	config_done(&config);
	return status;
}

static int run_checkout(int argc, char **argv)
{
	struct move_asked a = read_options(&argc, argv);
	a.node = cli_take_word(&argc, argv);
	if (!a.node) {
		fprintf(stderr, "coppice checkout: which node? `coppice log` lists them\n");
		return CLI_WRONG_USE;
	}
	return run_asked(&a, argc, argv);
}

static int run_undo(int argc, char **argv)
{
	const struct move_asked a = read_options(&argc, argv);
	return run_asked(&a, argc, argv);
}

static int run_release(int argc, char **argv)
{
	struct move_asked a = read_options(&argc, argv);
	a.release = true;
	return run_asked(&a, argc, argv);
}

#define OPTIONS                                                                                    \
	"  --kernel ID             which kernel (default: the one that ran last)\n"                \
	"  --accept FIDELITY       exact (default), partial: what must come back at least\n"       \
	"  --branch NAME           of the line that begins (default: main.2, main.3 ...)\n"        \
	"  --interrupt             a cell that runs is ended\n"                                    \
	"  --url URL               a gateway elsewhere (default: the one of the data folder)\n"    \
	"  --token SECRET          its token (default: the first of the token file)\n"             \
	"  --json                  as JSON\n"

const struct command command_checkout = {
	.name = "checkout",
	.about = "a kernel goes back to a node, memory and all: coppice checkout NODE",
	.usage = "  NODE                    an id or its first digits, a branch, HEAD~k, "
		 "In[7]\n" OPTIONS,
	.takes_options = true,
	.run = run_checkout,
};

const struct command command_release = {
	.name = "release",
	.about = "a kernel keeps no state of before: nothing parked can be gone back to",
	.usage = "  --kernel ID             which kernel (default: the one that ran last)\n"
		 "  --url URL               a gateway elsewhere (default: the one of the data "
		 "folder)\n"
		 "  --token SECRET          its token (default: the first of the token file)\n"
		 "  --json                  as JSON\n",
	.takes_options = true,
	.run = run_release,
};

const struct command command_undo = {
	.name = "undo",
	.about = "a kernel goes back to the node before the one where it stands",
	.usage = OPTIONS,
	.takes_options = true,
	.run = run_undo,
};
