#include "kernel-bridge/docker_api.h"

#include <assert.h>
#include <cjson/cJSON.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "gateway/base/buf.h"
#include "gateway/base/http_client.h"
#include "gateway/base/json_tree.h"
#include "gateway/base/list.h"
#include "gateway/base/log.h"

#define VERSION_MS  5000
#define ANSWER_MAX  (8u << 20)
#define MAJOR	    1
#define MINOR_LEAST 41 /* Docker 20.10 */
#define MINOR_KNOWN 44 /* the least that Docker 29 speaks */

struct docker_api {
	struct http_client *http;
	const struct log *log;
	char *socket;
	struct docker_version version;
	struct http_request *asking; /* the version, while it is asked for */
	bool away;
	struct err why_away;
	struct list calls;
	unsigned round; /* of asking for the version: those that wait go with the round they came in
			 */
	void (*on_version)(void *data);
	void *data;
	void (*closed)(void *data);
	void *closed_data;
};

struct call {
	struct docker_api *api;
	char method[8];
	char path[DOCKER_PATH_MAX];
	char *body;
	uint64_t timeout_ms;
	void (*done)(void *data, int status, const struct cJSON *json, const struct err *err);
	void *data;
	unsigned round;
	struct http_request *request; /* NULL while it waits for the version */
	struct list link;
};

static int ask_version(struct docker_api *a, struct err *err);

static void delete_tree(cJSON **tree)
{
	cJSON_Delete(*tree);
}

static void call_free(struct call *c)
{
	list_remove(&c->link);
	free(c->body);
	free(c);
}

static void call_end(struct call *c, int status, const cJSON *json, const struct err *err)
{
	void (*done)(void *, int, const struct cJSON *, const struct err *) = c->done;
	void *data = c->data;
	call_free(c);
	done(data, status, json, err);
}

/* Curl does not say why a unix socket cannot be reached. */
static int away_error(const struct docker_api *a, const struct err *cause, struct err *err)
{
	if (cause->code != E_UNAVAILABLE)
		return err_set(
			err, cause->code, "the container engine at %s: %s", a->socket, cause->text);
	if (access(a->socket, F_OK) < 0)
		return err_set(err, E_ENGINE_DOWN,
			"no container engine listens at %s: is it running?", a->socket);
	if (access(a->socket, R_OK | W_OK) < 0 && errno == EACCES)
		return err_set(err, E_ENGINE_DOWN,
			"the container engine's socket %s is not ours to use: is this user in its "
			"group?",
			a->socket);
	return err_set(err, E_ENGINE_DOWN,
		"the container engine does not answer at %s: is it "
		"running? (%s)",
		a->socket, cause->text);
}

static void went_away(struct docker_api *a, const struct err *cause, struct err *ret_err)
{
	(void)away_error(a, cause, ret_err); /* the code is in it */
	if (cause->code != E_UNAVAILABLE)
		return; /* slow or talkative is not away */
	if (!a->away)
		log_warn(a->log, "engine_away reason=%s", ret_err->text);
	a->away = true;
	a->why_away = *ret_err;
	a->version.api[0] = '\0';
}

static int engine_error(int status, const cJSON *json, struct err *err)
{
	const cJSON *m = cJSON_GetObjectItemCaseSensitive(json, "message");
	char text[400];
	if (cJSON_IsString(m)) {
		/* Cut is good enough for people. */
		(void)copy_text(text, sizeof(text), m->valuestring, strlen(m->valuestring));
		for (char *c = text; *c; c++)
			if (*c < ' ' || *c > '~')
				*c = ' ';
		return err_set(err, E_ENGINE, "container engine: %s", text);
	}
	return err_set(err, E_ENGINE, "the container engine answered with status %d", status);
}

static void on_answer(void *data, int status, const char *body, size_t len, const struct err *err)
{
	struct call *c = data;
	struct err why = {0};
	c->request = NULL;
	if (status == 0) {
		went_away(c->api, err, &why);
		call_end(c, 0, NULL, &why);
		return;
	}
	struct bytes text = {(const uint8_t *)body, len};
	AUTO(delete_tree) cJSON *json = len > 0 ? json_parse(text, NULL, &why) : NULL;
	if (why.code == E_NOMEM) {
		call_end(c, 0, NULL, &why);
		return;
	}
	if (status < 400) {
		call_end(c, status, json, NULL);
		return;
	}
	(void)engine_error(status, json, &why); /* the code is in it */
	call_end(c, status, json, &why);
}

static int call_send(struct call *c, struct err *err)
{
	char url[DOCKER_PATH_MAX + 64];
	int n = snprintf(url, sizeof(url), "http://engine/v%s%s", c->api->version.api, c->path);
	if (n < 0 || (size_t)n >= sizeof(url))
		return err_set(err, E_INVALID, "the name of a container is too long");
	const struct http_call http = {
		.method = c->method,
		.unix_socket = c->api->socket,
		.url = url,
		.body = c->body,
		.timeout_ms = c->timeout_ms,
		.max_bytes = ANSWER_MAX,
		.done = on_answer,
		.data = c,
	};
	return http_client_send(c->api->http, &http, &c->request, err);
}

static int parse_minor(const cJSON *version, const char *name)
{
	const cJSON *v = cJSON_GetObjectItemCaseSensitive(version, name);
	int major = 0, minor = 0;
	if (!cJSON_IsString(v) || sscanf(v->valuestring, "%d.%d", &major, &minor) != 2)
		return -1;
	return major == MAJOR ? minor : -1;
}

/* The newest that both sides know. An engine that has given up ours is taken at its least. */
static int choose_version(struct docker_api *a, const cJSON *answer, struct err *err)
{
	int newest = parse_minor(answer, "ApiVersion");
	int least = parse_minor(answer, "MinAPIVersion");
	int minor = newest < MINOR_KNOWN ? newest : MINOR_KNOWN;
	const cJSON *v = cJSON_GetObjectItemCaseSensitive(answer, "Version");
	if (newest < 0)
		return err_set(err, E_ENGINE,
			"what listens at %s is no container engine: its "
			"version is not told",
			a->socket);
	if (newest < MINOR_LEAST)
		return err_set(err, E_ENGINE,
			"the container engine speaks version %d.%d at most, %d.%d is needed: "
			"update it",
			MAJOR, newest, MAJOR, MINOR_LEAST);
	if (minor < least)
		minor = least;
	(void)snprintf(a->version.api, sizeof(a->version.api), "%d.%d", MAJOR, minor);
	if (cJSON_IsString(v))
		(void)copy_text(a->version.engine, sizeof(a->version.engine), v->valuestring,
			strlen(v->valuestring)); /* cut is good enough for people */
	return 0;
}

static struct call *first_waiting(struct docker_api *a, unsigned round)
{
	LIST_EACH (at, &a->calls) {
		struct call *c = CONTAINER_OF(at, struct call, link);
		if (!c->request && c->round == round)
			return c;
	}
	return NULL;
}

/* Those that waited for the version, in order. A done may send or cancel calls, so each is looked
 * for anew. */
static void release_calls(struct docker_api *a, const struct err *failed)
{
	unsigned round = a->round++;
	struct call *c;
	while ((c = first_waiting(a, round))) {
		struct err err;
		if (failed)
			call_end(c, 0, NULL, failed);
		else if (call_send(c, &err) < 0)
			call_end(c, 0, NULL, &err);
	}
}

static void on_version_answer(
	void *data, int status, const char *body, size_t len, const struct err *err)
{
	struct docker_api *a = data;
	struct err why;
	a->asking = NULL;
	if (status == 0) {
		went_away(a, err, &why);
		release_calls(a, &why);
		return;
	}
	struct bytes text = {(const uint8_t *)body, len};
	AUTO(delete_tree) cJSON *answer = json_parse(text, NULL, NULL);
	if (choose_version(a, answer, &why) < 0) {
		a->why_away = why;
		a->away = true;
		release_calls(a, &why);
		return;
	}
	a->away = false;
	log_info(a->log, "engine_found version=%s api=%s", a->version.engine, a->version.api);
	release_calls(a, NULL);
	a->on_version(a->data);
}

static int ask_version(struct docker_api *a, struct err *err)
{
	if (a->asking)
		return 0;
	const struct http_call http = {
		.method = "GET",
		.unix_socket = a->socket,
		.url = "http://engine/version",
		.timeout_ms = VERSION_MS,
		.max_bytes = ANSWER_MAX,
		.done = on_version_answer,
		.data = a,
	};
	return http_client_send(a->http, &http, &a->asking, err);
}

int docker_api_open(struct uv_loop_s *loop, const char *socket, const struct log *log,
	void (*on_version)(void *data), void *data, struct docker_api **ret, struct err *err)
{
	struct docker_api *a = xcalloc(1, sizeof(*a));
	a->socket = xstrdup(socket);
	a->log = log;
	a->on_version = on_version;
	a->data = data;
	list_init(&a->calls);
	int rc = http_client_new(loop, &a->http, err);
	if (rc < 0) {
		free(a->socket);
		free(a);
		return rc;
	}
	/* What fails here fails again, with its error, at the first call. */
	(void)ask_version(a, NULL);
	*ret = a;
	return 0;
}

static void on_http_closed(void *data)
{
	struct docker_api *a = data;
	void (*closed)(void *data) = a->closed;
	void *closed_data = a->closed_data;
	free(a->socket);
	free(a);
	closed(closed_data);
}

static void call_cancel(struct call *c)
{
	if (c->request)
		http_client_cancel(c->request);
	call_free(c);
}

void docker_api_close(struct docker_api *a, void (*closed)(void *data), void *data)
{
	a->closed = closed;
	a->closed_data = data;
	LIST_EACH_SAFE (at, &a->calls)
		call_cancel(CONTAINER_OF(at, struct call, link));
	if (a->asking)
		http_client_cancel(TAKE(a->asking));
	http_client_close(a->http, on_http_closed, a);
}

int docker_api_send(struct docker_api *a, const struct docker_call *call, struct err *err)
{
	struct call *c = xcalloc(1, sizeof(*c));
	c->api = a;
	c->timeout_ms = call->timeout_ms ? call->timeout_ms : DOCKER_CALL_MS;
	c->done = call->done;
	c->data = call->data;
	c->round = a->round;
	list_append(&a->calls, &c->link);
	bool fits = copy_text(c->method, sizeof(c->method), call->method, strlen(call->method)) &&
		    copy_text(c->path, sizeof(c->path), call->path, strlen(call->path));
	c->body = call->body ? json_print(call->body, err) : NULL;
	int rc = 0;
	if (call->body && !c->body)
		rc = err_wrap(err, "a call to the container engine");
	else if (!fits)
		rc = err_set(err, E_INVALID, "a call to the container engine cannot be written");
	else
		rc = a->version.api[0] ? call_send(c, err) : ask_version(a, err);
	if (rc < 0)
		call_free(c);
	return rc;
}

void docker_api_cancel(struct docker_api *a, const void *data)
{
	LIST_EACH_SAFE (at, &a->calls) {
		struct call *c = CONTAINER_OF(at, struct call, link);
		if (c->data == data)
			call_cancel(c);
	}
}

const struct docker_version *docker_api_version(const struct docker_api *a)
{
	return &a->version;
}

const struct err *docker_api_away(const struct docker_api *a)
{
	return a->away ? &a->why_away : NULL;
}
