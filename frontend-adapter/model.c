#include "frontend-adapter/model.h"

#include <cjson/cJSON.h>
#include <string.h>

#include "frontend-adapter/model_stream.h"
#include "frontend-adapter/plain.h"
#include "gateway/base/buf.h"
#include "gateway/base/http_client.h"
#include "gateway/base/json_tree.h"
#include "gateway/base/list.h"

#define TRIES	   3u
#define PAUSE_MS   1000u /* before the second try; three times as long before the third */
#define ANSWER_MAX (16u << 20)
#define FAULT_MAX  300u
#define PATH	   "/chat/completions"
#define WITH_USAGE ",\"stream_options\":{\"include_usage\":true}}"

struct model {
	struct model_setup setup;
	struct http_client *http;
	char *url, *name, *authorization;
	struct list calls;
};

struct model_call {
	struct list link;
	struct model *model;
	struct model_ask ask;
	char *body; /* the question, an object */
	bool plain; /* without stream_options, which the server does not know */
	struct http_request *request;
	struct model_stream stream;
	struct timer again;
	unsigned tries;
	uint64_t began_ms;
	struct model_usage usage;
	bool said; /* text came: asking again would say it twice */
};

static void on_again(struct timer *t);

static int join(const char *a, const char *b, const char *what, char **ret, struct err *err)
{
	AUTO(buf_done) struct buf text;
	buf_init(&text, 8192);
	(void)buf_addf(&text, "%s%s", a, b); /* looked at next */
	if (buf_check(&text, what, err) != 0)
		return text.code;
	*ret = (char *)buf_take(&text, NULL);
	return 0;
}

static void free_model(struct model *m)
{
	free(m->url);
	free(m->name);
	free(m->authorization);
	free(m);
}

int model_open(const struct model_setup *setup, struct model **ret, struct err *err)
{
	struct model *m = xcalloc(1, sizeof *m);
	m->setup = *setup;
	list_init(&m->calls);
	m->name = xstrdup(setup->name);
	int rc = join(setup->url, PATH, "model_url", &m->url, err);
	if (rc == 0 && setup->key)
		rc = join("Bearer ", setup->key, "the model's key", &m->authorization, err);
	if (rc == 0)
		rc = http_client_new(setup->loop, &m->http, err);
	if (rc == 0)
		*ret = m;
	else
		free_model(m);
	return rc;
}

struct closing {
	struct model *model;
	void (*cb)(void *data);
	void *data;
};

static void on_closed(void *data)
{
	struct closing c = *(struct closing *)data;
	free(data);
	free_model(c.model);
	c.cb(c.data);
}

static void call_free(struct model_call *c)
{
	timer_stop(c->model->setup.clock, &c->again);
	list_remove(&c->link);
	model_stream_done(&c->stream);
	free(c->body);
	free(c);
}

static uint64_t since(const struct model_call *c)
{
	return clock_now_ms(c->model->setup.clock) - c->began_ms;
}

static void end(struct model_call *c, const struct err *err)
{
	struct model_ask ask = c->ask;
	struct model_usage usage = c->usage;
	usage.prompt_tokens = c->stream.prompt_tokens;
	usage.completion_tokens = c->stream.completion_tokens;
	usage.whole_ms = since(c);
	call_free(c);
	ask.on_end(ask.data, &usage, err);
}

void model_close(struct model *m, void (*cb)(void *data), void *data)
{
	struct err err;
	struct closing *c = xcalloc(1, sizeof *c);
	*c = (struct closing){m, cb, data};
	err_set(&err, E_UNAVAILABLE, "the gateway is ending");
	LIST_EACH_SAFE (at, &m->calls) {
		struct model_call *call = CONTAINER_OF(at, struct model_call, link);
		if (call->request)
			http_client_cancel(call->request);
		end(call, &err);
	}
	http_client_close(m->http, on_closed, c);
}

/* ---- one call ---- */

static void on_delta(void *data, struct bytes text)
{
	struct model_call *c = data;
	if (!c->said)
		c->usage.first_ms = since(c);
	c->said = true;
	c->ask.on_text(c->ask.data, text);
}

static bool on_piece(void *data, struct bytes piece)
{
	struct model_call *c = data;
	return model_stream_add(&c->stream, piece);
}

/* Not after its time was up: whoever waits has waited long enough. */
static bool helps_to_ask_again(const struct model_call *c, int status, const struct err *err)
{
	bool passes = status == 0 ? err->code == E_UNAVAILABLE : status == 429 || status >= 500;
	return passes && !c->said && c->tries < TRIES;
}

/* What a server says of a fault: {"error": {"message": ...}}, or anything. */
static void read_fault(int status, const char *body, struct err *err)
{
	struct cJSON *tree =
		json_parse((struct bytes){(const uint8_t *)body, strlen(body)}, NULL, NULL);
	const cJSON *fault = cJSON_GetObjectItemCaseSensitive(tree, "error");
	const char *said = cJSON_GetStringValue(
		cJSON_IsString(fault) ? fault : cJSON_GetObjectItemCaseSensitive(fault, "message"));
	AUTO(freep) char *plain = plain_cut(said ? said : "", FAULT_MAX);
	bool key = status == 401 || status == 403;
	err_set(err, E_UNAVAILABLE, "the model's server %s HTTP %d%s%s",
		key ? "refuses our key:" : "answered with", status, plain && *plain ? ": " : "",
		plain ? plain : "");
	cJSON_Delete(tree);
}

static int send_now(struct model_call *c, struct err *err);

/* Older servers refuse what they do not know. True: it is asked without. */
static bool ask_plainly(struct model_call *c, int status, struct err *err)
{
	if (c->plain || (status != 400 && status != 422))
		return false;
	c->plain = true;
	c->tries--;
	if (send_now(c, err) != 0)
		end(c, err);
	return true;
}

static void on_done(void *data, int status, const char *body, size_t len, const struct err *failure)
{
	struct model_call *c = data;
	struct err err = {0};
	(void)len;
	c->request = NULL;
	if (ask_plainly(c, status, &err))
		return;
	if (status == 200)
		(void)model_stream_end(&c->stream, &err); /* tells by err */
	else if (c->stream.failed)
		(void)model_stream_end(&c->stream, &err);
	else if (status != 0)
		read_fault(status, body, &err);
	else /* E_TOO_BIG would be about what we were asked */
		err_set(&err, failure->code == E_TOO_BIG ? E_PROTOCOL : failure->code,
			"the model's server: %s", failure->text);
	if (err.code != 0 && helps_to_ask_again(c, status, &err)) {
		timer_start(c->model->setup.clock, &c->again, PAUSE_MS * (c->tries == 1 ? 1 : 3));
		return;
	}
	end(c, err.code != 0 ? &err : NULL);
}

static int send_now(struct model_call *c, struct err *err)
{
	AUTO(buf_done) struct buf body;
	size_t len = strlen(c->body);
	buf_init(&body, len + sizeof WITH_USAGE);
	(void)buf_add(&body, c->body, c->plain ? len : len - 1); /* latched */
	if (!c->plain)
		(void)buf_add_text(&body, WITH_USAGE);
	if (buf_check(&body, "a question to the model", err) != 0)
		return body.code;
	const struct http_call call = {
		.method = "POST",
		.url = c->model->url,
		.body = (const char *)body.data,
		.authorization = c->model->authorization,
		.timeout_ms = c->model->setup.timeout_ms,
		.max_bytes = ANSWER_MAX,
		.piece = on_piece,
		.done = on_done,
		.data = c,
	};
	model_stream_done(&c->stream);
	model_stream_init(&c->stream, MODEL_TEXT_MAX, on_delta, c);
	c->tries++;
	c->usage.asked++;
	return http_client_send(c->model->http, &call, &c->request, err);
}

static void on_again(struct timer *t)
{
	struct model_call *c = CONTAINER_OF(t, struct model_call, again);
	struct err err;
	if (send_now(c, &err) != 0)
		end(c, &err);
}

static char *body_of(const struct model *m, const struct cJSON *messages, struct err *err)
{
	struct cJSON *tree = cJSON_CreateObject();
	(void)cJSON_AddStringToObject(tree, "model", m->name);
	(void)cJSON_AddItemReferenceToObject(tree, "messages", (cJSON *)(uintptr_t)messages);
	(void)cJSON_AddBoolToObject(tree, "stream", true);
	char *text = json_print(tree, err);
	cJSON_Delete(tree);
	return text;
}

int model_ask(
	struct model *m, const struct model_ask *ask, struct model_call **ret, struct err *err)
{
	struct err why;
	char *body = body_of(m, ask->messages, &why);
	if (!body)
		return err_set(err, why.code, "a question to the model: %s", why.text);
	struct model_call *c = xcalloc(1, sizeof *c);
	c->model = m;
	c->ask = *ask;
	c->body = body;
	c->began_ms = clock_now_ms(m->setup.clock);
	list_append(&m->calls, &c->link);
	timer_init(&c->again, on_again);
	int rc = send_now(c, err);
	if (rc != 0) {
		call_free(c);
		return rc;
	}
	*ret = c;
	return 0;
}

void model_cancel(struct model_call *c)
{
	if (c->request)
		http_client_cancel(c->request);
	call_free(c);
}
