/* coppice forget: what one execution said is taken out of everything. */
#include <stdio.h>
#include <string.h>

#include <cjson/cJSON.h>

#include "gateway/base/crypto.h"
#include "gateway/cli_history.h"

#define FORGET_TIMEOUT_MS (60u * 60u * 1000u) /* a long history is written again */
#define PATH_SIZE	  4096
#define BODY_SIZE	  8192
#define PAIRS_SHOWN	  20

struct forget_asked {
	const char *url, *token, *history, *node;
	bool json;
};

static int ask(const struct cli_server *server, const char *history, const char *node,
	struct cli_question *q, struct err *err)
{
	AUTO(buf_done) struct buf path, body;
	buf_init(&path, PATH_SIZE);
	buf_init(&body, BODY_SIZE);
	/* All latched. */
	(void)buf_add_text(&path, "/history/");
	(void)cli_add_name(&path, history);
	(void)buf_add_text(&path, "/forget");
	(void)buf_add_text(&body, "{\"node\":");
	(void)buf_add_json_string(&body, node, strlen(node));
	(void)buf_add_text(&body, "}");
	int status = buf_check(&path, "the name of the history", err);
	if (status == 0)
		status = buf_check(&body, "the name of the node", err);
	if (status != 0)
		return status;
	*q = (struct cli_question){
		.method = "POST", .body = (const char *)body.data, .timeout_ms = FORGET_TIMEOUT_MS};
	status = cli_answer(server, (const char *)path.data, q, err);
	q->body = NULL; /* it goes with this call */
	return status;
}

static void print_rewritten(const cJSON *list)
{
	const cJSON *pair;
	int n = 0;
	cJSON_ArrayForEach (pair, list) {
		if (n++ == PAIRS_SHOWN) {
			printf("  ... (all of them: --json; an old id leads to its node)\n");
			return;
		}
		printf("  %.12s -> %.12s\n", cli_text_of(pair, "old"), cli_text_of(pair, "new"));
	}
}

static void print_nodes(const char *what, const cJSON *list)
{
	const cJSON *id;
	if (cJSON_GetArraySize(list) == 0)
		return;
	printf("%s:", what);
	cJSON_ArrayForEach (id, list) {
		printf(" %.12s", cJSON_IsString(id) ? id->valuestring : "");
	}
	printf("\n");
}

static void print(const cJSON *tree)
{
	const cJSON *rewritten = cJSON_GetObjectItemCaseSensitive(tree, "rewritten");
	int n = cJSON_GetArraySize(rewritten);
	printf("forgotten: %.12s; %d node%s got a new id%s\n", cli_text_of(tree, "node"), n,
		n == 1 ? "" : "s", n > 0 ? ":" : "");
	print_rewritten(rewritten);
	print_nodes("The same code stands in other nodes, which were not forgotten",
		cJSON_GetObjectItemCaseSensitive(tree, "same_code"));
	print_nodes("%coppice log or show may have drawn it in these, which are to be forgotten as "
		    "well",
		cJSON_GetObjectItemCaseSensitive(tree, "shown_in"));
	printf("Clones, backups and open pages keep what they have, and the kernel its variables. "
	       "Change the secret.\n");
}

static int forget(const struct config *config, const struct forget_asked *a)
{
	struct err err;
	struct cli_server server;
	struct cli_question q = {0};
	char id[UUID_SIZE + 8] = "";
	int status = crypto_init(&err);
	if (status == 0)
		status = cli_server_find(config, a->url, a->token, &server, &err);
	if (status == 0 && !a->history)
		status = cli_newest(&server, "id", id, sizeof id, &err);
	if (status == 0 && !a->history && !*id)
		status = err_set(&err, E_NOT_FOUND, "there is no history yet: run a cell first");
	if (status == 0)
		status = ask(&server, a->history ? a->history : id, a->node, &q, &err);
	char *text = status == 0 && a->json ? cJSON_Print(q.tree) : NULL;
	if (text)
		puts(text);
	else if (status == 0)
		print(q.tree);
	cJSON_free(text);
	cli_questions_done(&q, 1);
	return status == 0 ? CLI_OK : cli_fail(&err);
}

static int run(int argc, char **argv)
{
	struct forget_asked a = {
		.json = cli_take_flag(&argc, argv, "--json"),
		.url = cli_take_value(&argc, argv, "--url"),
		.token = cli_take_value(&argc, argv, "--token"),
		.history = cli_take_value(&argc, argv, "--history"),
		.node = cli_take_word(&argc, argv),
	};
	struct config config;
	if (!a.node) {
		fprintf(stderr, "coppice forget: which node? `coppice log` lists them\n");
		return CLI_WRONG_USE;
	}
	int status = cli_config(&config, argc, argv);
	if (status != CLI_OK)
		return status;
	status = forget(&config, &a);
	config_done(&config);
	return status;
}

const struct command command_forget = {
	.name = "forget",
	.about = "take what one execution said out of everything: coppice forget NODE",
	.usage = "  NODE                    an id or its first digits, a branch, HEAD~k, In[7]\n"
		 "  --history H             its history, by id or name (default: the one that was "
		 "worked in last)\n"
		 "  --url URL               a gateway elsewhere (default: the one of the data "
		 "folder)\n"
		 "  --token SECRET          its token (default: the first of the token file)\n"
		 "  --json                  as JSON\n",
	.takes_options = true,
	.run = run,
};
