/* coppice gc: histories packed anew by the running gateway. */
#include <stdio.h>
#include <string.h>

#include <cjson/cJSON.h>

#include "gateway/base/crypto.h"
#include "gateway/cli.h"

#define GC_TIMEOUT_MS 600000 /* one history */

struct gc {
	struct cli_server server;
	bool json;
	cJSON *freed; /* rows, for --json */
	double bytes;
};

static double number_of(const cJSON *tree, const char *name)
{
	const cJSON *item = cJSON_GetObjectItemCaseSensitive(tree, name);
	return cJSON_IsNumber(item) ? item->valuedouble : 0;
}

static int collect(struct gc *gc, const char *name, struct err *err)
{
	struct cli_question q = {.method = "POST", .timeout_ms = GC_TIMEOUT_MS};
	AUTO(buf_done) struct buf path;
	buf_init(&path, 4096);
	(void)buf_add_text(&path, "/history/"); /* latched, as below */
	(void)cli_add_name(&path, name);
	(void)buf_add_text(&path, "/gc");
	int status = buf_check(&path, "the name of a history", err);
	if (status == 0)
		status = cli_answer(&gc->server, (const char *)path.data, &q, err);
	if (status == 0) {
		(void)cJSON_AddStringToObject(q.tree, "history", name); /* or not */
		gc->bytes += number_of(q.tree, "freed_bytes");
		if (!gc->json)
			printf("%s: %.0f bytes freed, %.0f left\n", name,
				number_of(q.tree, "freed_bytes"), number_of(q.tree, "bytes"));
		(void)cJSON_AddItemToArray(gc->freed, TAKE(q.tree)); /* as above */
	}
	cli_questions_done(&q, 1);
	return status;
}

/* One page of the list; *ret_next is the cursor of the next, "" after the last. */
static int collect_page(struct gc *gc, char *cursor, size_t size, struct err *err)
{
	struct cli_question q = {0};
	char path[256];
	const cJSON *row;
	(void)snprintf(
		path, sizeof path, "/history?limit=100%s%s", *cursor ? "&cursor=" : "", cursor);
	int status = cli_answer(&gc->server, path, &q, err);
	cJSON_ArrayForEach (row, cJSON_GetObjectItemCaseSensitive(q.tree, "histories")) {
		const char *id = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(row, "id"));
		if (status == 0 && id)
			status = collect(gc, id, err);
	}
	const char *next = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(q.tree, "next"));
	(void)copy_text(cursor, size, next ? next : "", next ? strlen(next) : 0); /* it fits */
	cli_questions_done(&q, 1);
	return status;
}

static int collect_all(struct gc *gc, struct err *err)
{
	char cursor[128] = "";
	int status;
	do
		status = collect_page(gc, cursor, sizeof cursor, err);
	while (status == 0 && *cursor);
	return status;
}

static int gc_run(const struct config *config, const char *url, const char *token,
	const char *history, bool json)
{
	struct err err;
	struct gc gc = {.json = json, .freed = cJSON_CreateArray()};
	int status = crypto_init(&err);
	if (status == 0)
		status = cli_server_find(config, url, token, &gc.server, &err);
	if (status == 0)
		status = history ? collect(&gc, history, &err) : collect_all(&gc, &err);
	char *text = status == 0 && json ? cJSON_Print(gc.freed) : NULL;
	if (text)
		puts(text);
	else if (status == 0 && !history)
		printf("%.0f bytes freed\n", gc.bytes);
	cJSON_free(text);
	cJSON_Delete(gc.freed);
	return status == 0 ? CLI_OK : cli_fail(&err);
}

static int run(int argc, char **argv)
{
	bool json = cli_take_flag(&argc, argv, "--json");
	const char *url = cli_take_value(&argc, argv, "--url");
	const char *token = cli_take_value(&argc, argv, "--token");
	const char *history = cli_take_word(&argc, argv);
	struct config config;
	int status = cli_config(&config, argc, argv);
	if (status != CLI_OK)
		return status;
	status = gc_run(&config, url, token, history, json);
	config_done(&config);
	return status;
}

const struct command command_gc = {
	.name = "gc",
	.about = "pack histories anew and drop what nothing leads to: coppice gc [HISTORY]",
	.usage = "  HISTORY                 its id or name (default: all of the token's owner)\n"
		 "  --url URL               a gateway elsewhere (default: the one of the data "
		 "folder)\n"
		 "  --token SECRET          its token (default: the first of the token file)\n"
		 "  --json                  as JSON\n",
	.takes_options = true,
	.run = run,
};
