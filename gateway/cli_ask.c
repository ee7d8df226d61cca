#include <assert.h>
#include <stdio.h>
#include <string.h>
#include <uv.h>

#include <cjson/cJSON.h>

#include "gateway/base/http_client.h"
#include "gateway/cli.h"

#define ASK_TIMEOUT_MS 10000
#define ASK_BYTES_MAX  (16u << 20)

struct asking {
	struct http_client *client;
	size_t open; /* questions without an answer */
};

struct question_link {
	struct asking *asking;
	struct cli_question *question;
};

static void on_closed(void *data)
{
	(void)data; /* the loop ends by itself */
}

static void on_answer(void *data, int status, const char *body, size_t len, const struct err *err)
{
	struct question_link *link = data;
	struct cli_question *q = link->question;
	q->status = status;
	if (status == 0)
		q->err = *err;
	else
		q->tree = cJSON_ParseWithLength(body, len);
	if (--link->asking->open == 0)
		http_client_close(link->asking->client, on_closed, NULL);
}

/* A question that cannot be sent is answered here. */
static void send_question(struct asking *a, struct question_link *link)
{
	struct cli_question *q = link->question;
	char authorization[300];
	if (q->token)
		(void)snprintf(
			authorization, sizeof authorization, "token %s", q->token); /* < 263 */
	struct http_call call = {.method = q->method ? q->method : "GET",
		.body = q->body,
		.unix_socket = q->unix_socket,
		.url = q->url,
		.authorization = q->token ? authorization : NULL,
		.ca_file = q->ca_file,
		.any_name = q->any_name,
		.timeout_ms = q->timeout_ms ? q->timeout_ms : ASK_TIMEOUT_MS,
		.max_bytes = ASK_BYTES_MAX,
		.done = on_answer,
		.data = link};
	struct http_request *request;
	if (http_client_send(a->client, &call, &request, &q->err) == 0)
		a->open++;
}

int cli_ask(struct cli_question *questions, size_t n, struct err *err)
{
	uv_loop_t loop;
	struct asking a = {0};
	int uv = uv_loop_init(&loop);
	if (uv != 0)
		return err_set(err, E_IO, "the loop: %s", uv_strerror(uv));
	int status = http_client_new(&loop, &a.client, err);
	AUTO(freep) struct question_link *links = xcalloc(n, sizeof *links);
	if (status == 0) {
		for (size_t i = 0; i < n; i++) {
			links[i] = (struct question_link){&a, &questions[i]};
			send_question(&a, &links[i]);
		}
		if (a.open == 0)
			http_client_close(a.client, on_closed, NULL);
		uv_run(&loop, UV_RUN_DEFAULT);
	}
	uv = uv_loop_close(&loop);
	assert(uv == 0);
	(void)uv; /* only read by the assert */
	return status;
}

void cli_questions_done(struct cli_question *questions, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		cJSON_Delete(questions[i].tree);
		questions[i].tree = NULL;
	}
}

int cli_ask_server(const struct cli_server *server, const char *const *paths, size_t n,
	struct cli_question *questions, struct err *err)
{
	size_t size = 1;
	for (size_t i = 0; i < n; i++)
		size = strlen(paths[i]) >= size ? strlen(paths[i]) + 1 : size;
	size += sizeof server->url;
	AUTO(freep) char *urls = xcalloc(n, size);
	for (size_t i = 0; i < n; i++) {
		char *url = urls + i * size;
		(void)snprintf(url, size, "%s%s", server->url, paths[i]); /* fits */
		questions[i] = (struct cli_question){.url = url,
			.token = server->token,
			.method = questions[i].method,
			.timeout_ms = questions[i].timeout_ms,
			.body = questions[i].body,
			.ca_file = *server->ca_file ? server->ca_file : NULL,
			.any_name = server->any_name};
	}
	int status = cli_ask(questions, n, err);
	for (size_t i = 0; i < n; i++)
		questions[i].url = questions[i].ca_file = NULL; /* freed with urls; the server's */
	return status;
}

int cli_answer(
	const struct cli_server *server, const char *path, struct cli_question *q, struct err *err)
{
	int status = cli_ask_server(server, &path, 1, q, err);
	if (status != 0)
		return status;
	if (q->status == 200 && q->tree)
		return 0;
	if (q->status == 0)
		return err_set(
			err, E_UNAVAILABLE, "%s does not answer: %s", server->url, q->err.text);
	const char *said =
		cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(q->tree, "message"));
	return err_set(err, q->status == 404 ? E_NOT_FOUND : E_PROTOCOL, "%s",
		said && *said ? said : "the server did not say why it refused");
}
