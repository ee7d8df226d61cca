#include <stdio.h>
#include <string.h>

#include <cjson/cJSON.h>

#include "gateway/base/crypto.h"
#include "gateway/cli.h"

enum { ASK_STATUS, ASK_KERNELS, ASK_ENGINE, ASK_POOL, ASKS };

static const char *const paths[ASKS] = {
	"/api/status", "/api/kernels", "/admin/show/engine", "/admin/show/pool"};
static const char *const names[ASKS] = {"status", "kernels", "engine", "pool"};

static const char *text_of(const cJSON *tree, const char *name)
{
	const char *text = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(tree, name));
	return text ? text : "-";
}

/* What a server says goes to a terminal: nothing that could steer it. */
static void print_cell(const char *text, int width)
{
	int n = 0;
	for (; *text && n < 60; text++, n++)
		putchar((unsigned char)*text < ' ' || *text == 0x7f ? '?' : *text);
	for (; n < width; n++)
		putchar(' ');
	putchar(' ');
}

static void print_number(const cJSON *tree, const char *name)
{
	const cJSON *item = cJSON_GetObjectItemCaseSensitive(tree, name);
	char text[32] = "-";
	if (cJSON_IsNumber(item))
		(void)snprintf(
			text, sizeof text, "%.0f", item->valuedouble); /* 32 are enough or cut */
	print_cell(text, 7);
}

static void print_kernels(const cJSON *kernels)
{
	const cJSON *kernel;
	if (cJSON_GetArraySize(kernels) == 0) {
		printf("no kernels\n");
		return;
	}
	printf("%-36s %-16s %-9s %-7s %s\n", "KERNEL", "NAME", "STATE", "CLIENTS", "LAST ACTIVITY");
	cJSON_ArrayForEach (kernel, kernels) {
		print_cell(text_of(kernel, "id"), 36);
		print_cell(text_of(kernel, "name"), 16);
		print_cell(text_of(kernel, "execution_state"), 9);
		print_number(kernel, "connections");
		print_cell(text_of(kernel, "last_activity"), 0);
		putchar('\n');
	}
}

static void print_engines(const cJSON *engines)
{
	const cJSON *engine, *warning;
	cJSON_ArrayForEach (engine, engines) {
		if (!cJSON_IsObject(engine))
			continue;
		bool isolates =
			!cJSON_IsFalse(cJSON_GetObjectItemCaseSensitive(engine, "isolates"));
		printf("engine ");
		print_cell(engine->string ? engine->string : "-", 0);
		print_cell(text_of(engine, "version"), 0);
		printf("%s\n", isolates ? "" : "(isolates nothing)");
		cJSON_ArrayForEach (warning, cJSON_GetObjectItemCaseSensitive(engine, "warnings")) {
			if (cJSON_IsString(warning))
				printf("  note: %s\n", warning->valuestring);
		}
	}
}

static void print_pool(const cJSON *pool)
{
	const char *trouble = text_of(pool, "trouble");
	if (!cJSON_IsTrue(cJSON_GetObjectItemCaseSensitive(pool, "on")))
		return;
	printf("pool ready ");
	print_number(pool, "ready");
	printf("starting ");
	print_number(pool, "starting");
	printf("wanted ");
	print_number(pool, "wanted");
	printf("taken ");
	print_number(pool, "taken");
	printf("waiting ");
	print_number(pool, "waiting");
	putchar('\n');
	if (*trouble) {
		printf("  note: ");
		print_cell(trouble, 0);
		putchar('\n');
	}
}

static void print_table(const struct cli_server *server, const struct cli_question *q)
{
	printf("Coppice at %s", server->url);
	if (server->pid > 0)
		printf(" (pid %ld)", server->pid);
	printf("\nstarted ");
	print_cell(text_of(q[ASK_STATUS].tree, "started"), 0);
	printf(" last activity ");
	print_cell(text_of(q[ASK_STATUS].tree, "last_activity"), 0);
	printf("\nkernels ");
	print_number(q[ASK_STATUS].tree, "kernels");
	printf("connections ");
	print_number(q[ASK_STATUS].tree, "connections");
	putchar('\n');
	print_engines(q[ASK_ENGINE].tree);
	print_pool(q[ASK_POOL].tree);
	print_kernels(q[ASK_KERNELS].tree);
}

static void print_json(struct cli_question *q)
{
	cJSON *tree = cJSON_CreateObject();
	for (unsigned i = 0; i < ASKS; i++)
		cJSON_AddItemReferenceToObject(tree, names[i], q[i].tree);
	char *text = cJSON_Print(tree);
	if (text)
		puts(text);
	cJSON_free(text);
	cJSON_Delete(tree);
}

/* These views need a token with the scope admin: without it the rest is shown. */
static int check_answers(
	const struct cli_server *server, const struct cli_question *q, struct err *err)
{
	for (unsigned i = 0; i < ASKS; i++) {
		if (q[i].status == 200 && q[i].tree)
			continue;
		if (q[i].status == 0)
			return err_set(err, E_UNAVAILABLE, "%s does not answer: %s", server->url,
				q[i].err.text);
		if (q[i].status == 401)
			return err_set(
				err, E_UNAUTHORIZED, "%s does not know the token", server->url);
		if (i != ASK_ENGINE && i != ASK_POOL)
			return err_set(err, E_PROTOCOL, "%s%s answered with HTTP %d", server->url,
				paths[i], q[i].status);
	}
	return 0;
}

static int show(const struct config *config, const char *url, const char *token, bool json)
{
	struct err err;
	struct cli_server server;
	struct cli_question q[ASKS] = {0};
	int status = crypto_init(&err);
	if (status == 0)
		status = cli_server_find(config, url, token, &server, &err);
	if (status == 0)
		status = cli_ask_server(&server, paths, ASKS, q, &err);
	if (status == 0)
		status = check_answers(&server, q, &err);
	if (status == 0 && json)
		print_json(q);
	else if (status == 0)
		print_table(&server, q);
	cli_questions_done(q, ASKS);
	return status == 0 ? CLI_OK : cli_fail(&err);
}

static int run(int argc, char **argv)
{
	bool json = cli_take_flag(&argc, argv, "--json");
	const char *url = cli_take_value(&argc, argv, "--url");
	const char *token = cli_take_value(&argc, argv, "--token");
	struct config config;
	int status = cli_config(&config, argc, argv);
	if (status != CLI_OK)
		return status;
	status = show(&config, url, token, json);
	config_done(&config);
	return status;
}

const struct command command_status = {
	.name = "status",
	.about = "what the running gateway does",
	.usage = "  --url URL               a gateway elsewhere (default: the one of the data "
		 "folder)\n"
		 "  --token SECRET          its token (default: the first of the token file)\n"
		 "  --json                  as JSON\n",
	.takes_options = true,
	.run = run,
};
