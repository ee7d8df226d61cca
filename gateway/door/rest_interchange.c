/* Histories in and out: as notebooks and scripts, and what changed between two nodes. */
#include <cjson/cJSON.h>
#include <stdio.h>
#include <string.h>

#include "gateway/door/rest.h"
#include "gateway/door/rest_history.h"
#include "gateway/door/route.h"
#include "gateway/gateway.h"

#define PIECE	    (4u << 20)
#define AT_ONCE_MAX (16u << 20) /* longer ones go out piece by piece, as the reader takes them */

/* ---- an answer of any length ---- */

struct sending {
	struct call *call;
	struct buf bytes;
	size_t at;
	bool gone;
};

static void send_more(struct sending *s)
{
	while (!s->gone && s->at < s->bytes.len && answer_backlog(s->call) < PIECE) {
		size_t n = s->bytes.len - s->at < PIECE ? s->bytes.len - s->at : PIECE;
		s->gone = !answer_add(s->call, (struct bytes){s->bytes.data + s->at, n});
		s->at += n;
	}
	if (!s->gone && s->at < s->bytes.len)
		return;
	struct call *call = s->call;
	call->on_drained = NULL;
	buf_done(&s->bytes);
	free(s);
	answer_end(call);
}

static void on_drained(void *data)
{
	send_more(data);
}

static void on_gone(void *data)
{
	struct sending *s = data;
	s->gone = true;
	send_more(s);
}

static void answer_long(struct call *r, const char *mime, struct bytes bytes)
{
	if (bytes.len <= AT_ONCE_MAX) {
		answer_bytes(r, 200, mime, bytes);
		return;
	}
	struct sending *s = xcalloc(1, sizeof *s);
	struct err err;
	s->call = r;
	buf_init(&s->bytes, bytes.len);
	if (buf_add(&s->bytes, bytes.data, bytes.len) != 0) {
		err_set(&err, E_NOMEM, "no memory for a file of %zu bytes", bytes.len);
		free(s);
		answer_error(r, &err);
		return;
	}
	r->on_drained = on_drained;
	answer_begin(r, mime, on_gone, s);
	send_more(s);
}

/* ---- asking ---- */

static bool is_set(const struct call *r, const char *key)
{
	const char *value = call_query(r, key);
	return value && (!*value || strcmp(value, "true") == 0);
}

static void on_file(void *data, int status, struct bytes file, const struct err *err)
{
	struct call *r = data;
	char header[160], name[128];
	if (status != 0) {
		answer_error(r, err);
		return;
	}
	const uint8_t *newline = memchr(file.data, '\n', file.len);
	size_t len = newline ? (size_t)(newline - file.data) : 0;
	(void)copy_text(name, sizeof name, (const char *)file.data, len); /* it was made short */
	(void)snprintf(header, sizeof header, "attachment; filename=\"%s\"", name);
	answer_header(r, "Content-Disposition", header);
	bool script = len > 3 && strcmp(name + strlen(name) - 3, ".py") == 0;
	answer_long(r, script ? "text/x-python; charset=utf-8" : "application/x-ipynb+json",
		(struct bytes){file.data + len + 1, file.len - len - 1});
}

static void export_get(struct call *r)
{
	const char *counts = call_query(r, "counts");
	struct history_question q;
	struct err err;
	int status = question_read(r, HISTORY_EXPORT, r->param[0], &q, &err);
	if (status == 0 && counts && strcmp(counts, "original") != 0 &&
		strcmp(counts, "renumbered") != 0)
		status = err_set(&err, E_INVALID,
			"counts: `%.20s` is neither original nor renumbered", counts);
	if (status != 0) {
		answer_error(r, &err);
		return;
	}
	q.node = call_query(r, "node");
	q.format = call_query(r, "format");
	q.renumber = counts && strcmp(counts, "renumbered") == 0;
	q.ours = is_set(r, "metadata");
	history_ask(r->door->gw->histories, &q, on_file, r);
}

static void on_difference(void *data, int status, struct bytes json, const struct err *err)
{
	struct call *r = data;
	if (status == 0)
		answer_long(r, "application/json", json);
	else
		answer_error(r, err);
}

static void diff_get(struct call *r)
{
	struct history_question q;
	struct err err;
	if (question_read(r, HISTORY_DIFF, r->param[0], &q, &err) != 0) {
		answer_error(r, &err);
		return;
	}
	q.node = call_query(r, "from");
	q.to = call_query(r, "to");
	history_ask(r->door->gw->histories, &q, on_difference, r);
}

/* ---- import ---- */

static void on_imported(void *data, int status, struct bytes json, const struct err *err)
{
	struct call *r = data;
	if (status != 0) {
		answer_error(r, err);
		return;
	}
	struct cJSON *tree = cJSON_ParseWithLength((const char *)json.data, json.len);
	const char *id = rest_text(tree, "id");
	if (id)
		rest_location(r, "/history/", id);
	cJSON_Delete(tree);
	answer_bytes(r, 201, "application/json", json);
}

static void import_post(struct call *r)
{
	struct history_question q;
	struct err err;
	if (question_read(r, HISTORY_IMPORT, NULL, &q, &err) != 0) {
		answer_error(r, &err);
		return;
	}
	q.name = call_query(r, "name");
	q.format = call_query(r, "format");
	q.file = (struct bytes){r->body.data, r->body.len};
	history_ask(r->door->gw->histories, &q, on_imported, r);
}

const struct route rest_interchange_routes[] = {
	{METHOD_GET, "/history/{h}/export", SCOPE_READ | SCOPE_RUN, export_get},
	{METHOD_GET, "/history/{h}/diff", SCOPE_READ | SCOPE_RUN, diff_get},
	{METHOD_POST, "/history/import", SCOPE_RUN | ROUTE_LARGE, import_post},
	{0},
};
