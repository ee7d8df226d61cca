#include "gateway/cli_history.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>
#include <uv.h>

#include <cjson/cJSON.h>

#include "gateway/base/crypto.h"
#include "gateway/base/http_client.h"

#define FETCH_TIMEOUT_MS (10u * 60 * 1000)
#define FETCH_MAX	 ((size_t)1 << 30)
#define ID_SIZE		 64 /* a uuid fits */

/* ---- what was typed ---- */

int cli_asked_read(struct cli_asked *a, int argc, char **argv, int max_words)
{
	*a = (struct cli_asked){.json = cli_take_flag(&argc, argv, "--json"),
		.url = cli_take_value(&argc, argv, "--url"),
		.token = cli_take_value(&argc, argv, "--token"),
		.history = cli_take_value(&argc, argv, "--history")};
	while (argc > 1 && argv[1][0] != '-' && a->n_words < max_words) {
		a->words[a->n_words++] = argv[1];
		memmove(&argv[1], &argv[2], (size_t)(argc - 1) * sizeof *argv);
		argc--;
	}
	return cli_config(&a->config, argc, argv);
}

/* ---- one request ---- */

struct fetching {
	struct cli_fetch *fetch;
	struct http_client *client;
	struct err *err;
	int code;
};

static void on_closed(void *data)
{
	(void)data; /* the loop ends by itself */
}

static void on_answer(void *data, int status, const char *body, size_t len, const struct err *err)
{
	struct fetching *f = data;
	f->fetch->status = status;
	if (status == 0) {
		f->code = err_set(
			f->err, E_UNAVAILABLE, "the gateway does not answer: %s", err->text);
	} else {
		f->fetch->text = xcalloc(1, len + 1);
		memcpy(f->fetch->text, body, len);
		f->fetch->len = len;
	}
	http_client_close(f->client, on_closed, NULL);
}

static int send_it(struct fetching *f, const struct cli_server *server, const char *url)
{
	char authorization[300];
	struct cli_fetch *fetch = f->fetch;
	(void)snprintf(authorization, sizeof authorization, "token %s", server->token); /* < 263 */
	struct http_call call = {.method = fetch->method ? fetch->method : "GET",
		.url = url,
		.body = fetch->body,
		.authorization = authorization,
		.ca_file = *server->ca_file ? server->ca_file : NULL,
		.any_name = server->any_name,
		.timeout_ms = FETCH_TIMEOUT_MS,
		.max_bytes = FETCH_MAX,
		.done = on_answer,
		.data = f};
	return http_client_send(f->client, &call, NULL, f->err);
}

static int run_request(struct fetching *f, const struct cli_server *server, const char *url)
{
	uv_loop_t loop;
	int uv = uv_loop_init(&loop);
	if (uv != 0)
		return err_set(f->err, E_IO, "the loop: %s", uv_strerror(uv));
	int status = http_client_new(&loop, &f->client, f->err);
	if (status == 0) {
		status = send_it(f, server, url);
		if (status != 0)
			http_client_close(f->client, on_closed, NULL);
		uv_run(&loop, UV_RUN_DEFAULT);
	}
	uv = uv_loop_close(&loop);
	assert(uv == 0);
	(void)uv; /* only read by the assert */
	return status != 0 ? status : f->code;
}

/* What the server says of its refusal, as an error of ours. */
static int refused(const struct cli_fetch *fetch, struct err *err)
{
	cJSON *tree = cJSON_ParseWithLength(fetch->text, fetch->len);
	const char *said = cli_text_of(tree, "message");
	int code = fetch->status == 404 ? E_NOT_FOUND : E_PROTOCOL;
	err_set(err, code, "%s", *said ? said : "the server did not say why it refused");
	cJSON_Delete(tree);
	return code;
}

int cli_fetch(const struct cli_server *server, struct cli_fetch *fetch, struct err *err)
{
	AUTO(buf_done) struct buf url;
	struct fetching f = {.fetch = fetch, .err = err};
	buf_init(&url, 16384);
	(void)buf_addf(&url, "%s%s", server->url, fetch->path); /* latched */
	int status = buf_check(&url, "the URL", err);
	if (status == 0)
		status = run_request(&f, server, (const char *)url.data);
	if (status != 0)
		return status;
	return fetch->status >= 200 && fetch->status < 300 ? 0 : refused(fetch, err);
}

cJSON *cli_fetch_tree(struct cli_fetch *fetch)
{
	for (char *at = fetch->text; at && (at = strchr(at, '\\')); at += 2) {
		if (strncmp(at, "\\u0000", 6) == 0)
			memcpy(at, "\\ufffd", 6);
		if (!at[1])
			break;
	}
	return cJSON_ParseWithLength(fetch->text, fetch->len);
}

void cli_fetch_done(struct cli_fetch *fetch)
{
	free(fetch->text);
	fetch->text = NULL;
}

/* ---- names ---- */

const char *cli_text_of(const cJSON *tree, const char *name)
{
	const char *text = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(tree, name));
	return text ? text : "";
}

int cli_newest(const struct cli_server *server, const char *member, char *ret, size_t size,
	struct err *err)
{
	struct cli_fetch fetch = {.path = "/history?limit=1"};
	int status = cli_fetch(server, &fetch, err);
	cJSON *tree = status == 0 ? cli_fetch_tree(&fetch) : NULL;
	const cJSON *first =
		cJSON_GetArrayItem(cJSON_GetObjectItemCaseSensitive(tree, "histories"), 0);
	const char *text = cli_text_of(first, member);
	if (!copy_text(ret, size, text, strlen(text)))
		ret[0] = '\0';
	cJSON_Delete(tree);
	cli_fetch_done(&fetch);
	return status;
}

static int add_newest(const struct cli_server *server, struct buf *ret_path, struct err *err)
{
	char id[ID_SIZE];
	int status = cli_newest(server, "id", id, sizeof id, err);
	if (status == 0 && !*id)
		status = err_set(err, E_NOT_FOUND, "there is no history yet: run a cell first");
	(void)cli_add_name(ret_path, id);
	return status;
}

int cli_history_path(
	struct cli_asked *a, struct cli_server *ret_server, struct buf *ret_path, struct err *err)
{
	int status = crypto_init(err);
	if (status == 0)
		status = cli_server_find(&a->config, a->url, a->token, ret_server, err);
	(void)buf_add_text(ret_path, "/history/"); /* latched */
	if (status == 0 && a->history)
		(void)cli_add_name(ret_path, a->history);
	else if (status == 0)
		status = add_newest(ret_server, ret_path, err);
	return status == 0 ? buf_check(ret_path, "the history's name", err) : status;
}
