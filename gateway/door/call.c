#include "gateway/door/call.h"

#include <cjson/cJSON.h>
#include <string.h>

#include "gateway/base/json.h"
#include "gateway/base/json_tree.h"
#include "gateway/door/auth.h"

#define EXTRA_MAX  (16u << 10)
#define ANSWER_MAX (64u << 20)

static const char *const method_names[METHODS] = {
	"GET", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"};

const char *method_name(enum method m)
{
	return m < METHODS ? method_names[m] : "?";
}

struct call *call_new(struct door *d)
{
	struct call *r = xcalloc(1, sizeof *r);
	r->door = d;
	r->started_ms = clock_now_ms(d->gw->clock);
	buf_init(&r->body, BODY_MAX);
	buf_init(&r->extra, EXTRA_MAX);
	buf_init(&r->answer, ANSWER_MAX);
	return r;
}

void call_free(struct call *r)
{
	if (!r)
		return;
	for (unsigned i = 0; i < QUERY_MAX; i++)
		free(r->query[i]);
	for (unsigned i = 0; i < HEADERS; i++)
		free(r->header[i]);
	for (unsigned i = 0; i < PARAMS_MAX; i++)
		free(r->param[i]);
	free(r->path);
	buf_done(&r->body);
	buf_done(&r->extra);
	buf_done(&r->answer);
	free(r);
}

const char *call_path(const struct call *r)
{
	size_t base = strlen(r->door->base);
	if (!r->path || strncmp(r->path, r->door->base, base) != 0)
		return NULL;
	const char *path = r->path + base;
	if (path[0] == '\0')
		return "/";
	return path[0] == '/' ? path : NULL;
}

const char *call_query(const struct call *r, const char *key)
{
	size_t len = strlen(key);
	for (unsigned i = 0; i < QUERY_MAX && r->query[i]; i++) {
		if (strncmp(r->query[i], key, len) != 0)
			continue;
		if (r->query[i][len] == '=')
			return r->query[i] + len + 1;
		if (r->query[i][len] == '\0')
			return "";
	}
	return NULL;
}

/* cJSON would end a text there, and another text than was sent would be meant. In JSON that was
 * scanned a backslash stands in strings only, with its partner behind it. */
static bool holds_nul(struct bytes json)
{
	for (size_t i = 0; i + 1 < json.len; i++) {
		if (json.data[i] != '\\')
			continue;
		if (json.len - i >= 6 && memcmp(json.data + i, "\\u0000", 6) == 0)
			return true;
		i++;
	}
	return false;
}

int call_json(const struct call *r, struct cJSON **ret, struct err *err)
{
	struct bytes body = {r->body.data, r->body.len};
	size_t blank = 0;
	while (blank < body.len && memchr(" \t\r\n", body.data[blank], 4))
		blank++;
	*ret = NULL;
	if (blank == body.len)
		return 0;
	int status = json_scan(body, NULL, 0, err);
	if (status != 0) {
		err_wrap(err, "the request's body");
		return status;
	}
	if (!json_is_object(body))
		return err_set(err, E_INVALID, "the request's body is no JSON object");
	if (holds_nul(body))
		return err_set(err, E_INVALID, "the request's body: a text with NUL (\\u0000)");
	*ret = json_parse(body, NULL, err);
	return *ret ? 0 : err_wrap(err, "the request's body");
}

static const char no_memory[] = "{\"message\":\"the answer is too long, or memory is out\","
				"\"reason\":\"out_of_memory\"}";

static const char *status_text(int status)
{
	static const struct {
		int status;
		const char *text;
	} rows[] = {{200, "OK"}, {201, "Created"}, {204, "No Content"}, {302, "Found"},
		{400, "Bad Request"}, {401, "Unauthorized"}, {403, "Forbidden"}, {404, "Not Found"},
		{405, "Method Not Allowed"}, {409, "Conflict"}, {410, "Gone"},
		{413, "Content Too Large"}, {500, "Internal Server Error"},
		{501, "Not Implemented"}, {502, "Bad Gateway"}, {503, "Service Unavailable"},
		{504, "Gateway Timeout"}};
	for (unsigned i = 0; i < ARRAY_LEN(rows); i++)
		if (rows[i].status == status)
			return rows[i].text;
	return "Status";
}

void answer_header(struct call *r, const char *name, const char *value)
{
	for (const char *at = value; *at; at++)
		if ((unsigned char)*at < ' ' || *at == 0x7f)
			return;
	(void)buf_addf(&r->extra, "%s: %s\r\n", name, value); /* one too many is left out */
}

static void put_head(struct call *r, const char *mime, size_t len)
{
	static const uint8_t headroom[ANSWER_HEADROOM];
	struct buf *b = &r->answer;
	/* Every result is in the buffer's latch, which finish() looks at. */
	(void)buf_add(b, headroom, sizeof headroom);
	(void)buf_addf(b, "HTTP/1.1 %d %s\r\n", r->status, status_text(r->status));
	if (mime)
		(void)buf_addf(b, "Content-Type: %s\r\n", mime);
	if (r->streams && r->chunks)
		(void)buf_add_text(b, "Transfer-Encoding: chunked\r\n");
	else if (!r->streams && r->status != 204)
		(void)buf_addf(b, "Content-Length: %zu\r\n", len);
	(void)buf_addf(b, "Connection: %s\r\n", r->close ? "close" : "keep-alive");
	(void)buf_add_text(b, "X-Content-Type-Options: nosniff\r\n");
	(void)buf_add(b, r->extra.data, r->extra.len);
	(void)buf_add_text(b, "\r\n");
	if (r->extra.code == E_NOMEM) { /* a line that is missing may be one that guards */
		b->failed = true;
		b->code = E_NOMEM;
	}
}

/* The address that is logged; who may come in never depends on it. */
static const char *client_address(const struct call *r)
{
	if (r->door->gw->config.trust_xheaders) {
		if (r->header[HEADER_REAL_IP])
			return r->header[HEADER_REAL_IP];
		if (r->header[HEADER_FORWARDED_FOR])
			return r->header[HEADER_FORWARDED_FOR];
	}
	return r->peer;
}

/* Never the query: tokens stand there. What is asked all the time is below info. */
static void log_request(const struct call *r)
{
	struct door *d = r->door;
	const char *path = r->path ? r->path : "";
	bool quiet = strcmp(path, "/favicon.ico") == 0 || strcmp(path, "/healthz") == 0;
	log_line(&d->log, quiet ? LOG_DEBUG : LOG_INFO,
		"request method=%s path=%s status=%d ms=%llu owner=%s ip=%s",
		r->head ? "HEAD" : method_name(r->method), path, r->status,
		(unsigned long long)(clock_now_ms(d->gw->clock) - r->started_ms),
		r->owner ? r->owner->name : "-", client_address(r));
}

static void put_answer(struct call *r, const char *mime, struct bytes body)
{
	put_head(r, mime, body.len);
	if (!r->head && body.len > 0)
		(void)buf_add(&r->answer, body.data, body.len); /* latched */
}

/* Half an answer would be worse than none. Without memory for a word about it the carrier hangs up
 * on an empty one. */
static void put_failure(struct call *r)
{
	r->status = r->answer.code == E_TOO_BIG ? 413 : 500;
	r->close = true;
	buf_done(&r->answer);
	buf_done(&r->extra);
	put_answer(r, "application/json",
		(struct bytes){(const uint8_t *)no_memory, sizeof no_memory - 1});
	if (r->answer.failed)
		buf_done(&r->answer);
}

static void answer(struct call *r, int status, const char *mime, struct bytes body)
{
	r->status = status;
	r->door->counters.requests++;
	if (status == 401 || status == 403)
		r->door->counters.refused++;
	auth_cors(r);
	put_answer(r, mime, body);
	if (r->answer.failed)
		put_failure(r);
	log_request(r);
	if (r->carrier)
		r->answered(r);
	else
		call_free(r);
}

void answer_bytes(struct call *r, int status, const char *mime, struct bytes body)
{
	answer(r, status, mime, body);
}

void answer_empty(struct call *r, int status)
{
	answer(r, status, NULL, (struct bytes){0});
}

void answer_json(struct call *r, int status, struct cJSON *tree)
{
	AUTO(freep) char *text = tree ? json_print(tree, NULL) : NULL;
	cJSON_Delete(tree);
	if (!text) {
		answer(r, 500, "application/json",
			(struct bytes){(const uint8_t *)no_memory, sizeof no_memory - 1});
		return;
	}
	answer(r, status, "application/json", (struct bytes){(const uint8_t *)text, strlen(text)});
}

/* message and reason are the two keys that jupyter_server's proxy reads; short_message is Jupyter's
 * for a kernelspec that does not exist. */
void answer_error(struct call *r, const struct err *err)
{
	struct cJSON *tree = cJSON_CreateObject();
	(void)cJSON_AddStringToObject(tree, "message", err->text); /* NULL is told by answer_json */
	(void)cJSON_AddStringToObject(tree, "reason", err_name(err->code));
	if (err->code == E_UNAUTHORIZED)
		answer_header(
			r, "WWW-Authenticate", r->basic ? "Basic realm=\"coppice\"" : "Bearer");
	if (err->code == E_NO_SPEC)
		(void)cJSON_AddStringToObject(tree, "short_message", err->text);
	answer_json(r, err_http_status(err->code), tree);
}

void answer_begin(struct call *r, const char *mime, void (*on_gone)(void *data), void *data)
{
	r->status = 200;
	r->streams = true;
	r->on_gone = on_gone;
	r->stream_data = data;
	r->door->counters.requests++;
	auth_cors(r);
	put_head(r, mime, 0);
	log_request(r);
	if (r->carrier)
		r->answered(r);
}

size_t answer_backlog(const struct call *r)
{
	return r->carrier ? r->answer.len : 0;
}

bool answer_add(struct call *r, struct bytes piece)
{
	struct buf *b = &r->answer;
	if (!r->carrier || b->failed)
		return false;
	if (piece.len == 0 || r->head)
		return true;
	if (r->chunks)
		(void)buf_addf(b, "%zx\r\n", piece.len); /* latched */
	(void)buf_add(b, piece.data, piece.len);
	if (r->chunks)
		(void)buf_add_text(b, "\r\n");
	r->answered(r);
	return !b->failed;
}

void answer_end(struct call *r)
{
	r->whole = true;
	if (!r->carrier) {
		call_free(r);
		return;
	}
	if (r->chunks && !r->head)
		(void)buf_add_text(&r->answer, "0\r\n\r\n"); /* latched */
	r->answered(r);
}

/* Whoever answers hears of it in time to stop. */
static void stream_gone(struct call *r)
{
	if (r->whole)
		call_free(r);
	else if (r->on_gone)
		r->on_gone(r->stream_data);
}

void call_gone(struct call *r)
{
	r->carrier = NULL;
	if (r->streams) {
		stream_gone(r);
		return;
	}
	if (r->status != 0 || !r->dispatched)
		call_free(r);
}
