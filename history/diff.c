#include "history/diff.h"

#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "history/ask_files.h"
#include "history/export.h"
#include "history/folder.h"
#include "history/sequence.h"
#include "history/spliced.h"

#define OPS_MAX (1u << 30)
#define NONE	SIZE_MAX

/* ---- which cell is which ---- */

enum match_by { BY_ID, BY_SOURCE };

/* Cells of `from` have theirs in `to`, in the same order. */
struct pairing {
	const struct notebook *from, *to;
	size_t *match; /* for each of from: which of to, or NONE */
	struct err *err;
};

/* A stretch of both. */
struct range {
	size_t at, n, new_at, new_n;
};

static struct bytes key_of(const struct cell *c, enum match_by by)
{
	if (by == BY_SOURCE)
		return (struct bytes){c->source.data, c->source.len};
	return (struct bytes){(const uint8_t *)c->id, strlen(c->id)};
}

static void put_keys(const struct notebook *nb, size_t at, size_t n, enum match_by by,
	struct interner *t, struct sequence *s)
{
	sequence_init(s);
	for (size_t i = at; i < at + n; i++)
		sequence_add(s, t, key_of(&nb->cells[i], by));
}

static int keep_hunk(void *data, const struct hunk *h)
{
	return buf_add(data, h, sizeof *h);
}

static void pair(struct pairing *p, size_t at, size_t new_at, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (p->from->cells[at + i].kind == p->to->cells[new_at + i].kind)
			p->match[at + i] = new_at + i;
}

static int match_range(struct pairing *p, struct range r, enum match_by by);

/* What lies between the hunks is the same; the hunks are looked at by what stands in their cells.
 */
static int take_hunks(struct pairing *p, struct range r, enum match_by by, const struct buf *hunks)
{
	size_t at = 0, new_at = 0;
	int status = 0;
	for (size_t i = 0; status == 0 && i < hunks->len / sizeof(struct hunk); i++) {
		struct hunk h;
		memcpy(&h, hunks->data + i * sizeof h, sizeof h);
		pair(p, r.at + at, r.new_at + new_at, h.at - at);
		struct range inner = {r.at + h.at, h.n, r.new_at + h.new_at, h.new_n};
		if (by == BY_ID)
			status = match_range(p, inner, BY_SOURCE);
		at = h.at + h.n;
		new_at = h.new_at + h.new_n;
	}
	if (status == 0)
		pair(p, r.at + at, r.new_at + new_at, r.n - at);
	return status;
}

static int match_range(struct pairing *p, struct range r, enum match_by by)
{
	AUTO(buf_done) struct buf hunks;
	struct interner table = {0};
	struct sequence a, b;
	buf_init(&hunks, OPS_MAX);
	if (r.n == 0 || r.new_n == 0)
		return 0;
	put_keys(p->from, r.at, r.n, by, &table, &a);
	put_keys(p->to, r.new_at, r.new_n, by, &table, &b);
	int status = sequence_diff(&a, &b, keep_hunk, &hunks, p->err);
	if (status == 0)
		status = buf_check(&hunks, "a difference", p->err);
	sequence_done(&a);
	sequence_done(&b);
	interner_done(&table);
	return status == 0 ? take_hunks(p, r, by, &hunks) : status;
}

/* ---- the two lists ---- */

static void add_range(
	struct ops *ops, size_t key, const struct notebook *to, size_t at, size_t upto)
{
	if (at == upto)
		return;
	ops_begin_at(ops, "addrange", key);
	(void)buf_add_text(ops->b, ",\"valuelist\":["); /* latched, as below */
	for (size_t i = at; i < upto; i++) {
		(void)buf_add_text(ops->b, i > at ? "," : "");
		cell_join(&to->cells[i], ops->b);
	}
	(void)buf_add_text(ops->b, "]");
	ops_end(ops);
}

static void remove_range(struct ops *ops, size_t key, size_t n)
{
	if (n == 0)
		return;
	ops_begin_at(ops, "removerange", key);
	(void)buf_addf(ops->b, ",\"length\":%zu", n); /* latched */
	ops_end(ops);
}

static int patch_cell(const struct pairing *p, size_t at, struct ops *ops)
{
	char key[24];
	(void)snprintf(key, sizeof key, "%zu", at);
	struct patch patch = patch_begin(ops, key);
	int status =
		cell_ops(&p->from->cells[at], &p->to->cells[p->match[at]], &patch.inner, p->err);
	patch_end(&patch);
	return status;
}

static int code_ops(const struct pairing *p, struct ops *ops)
{
	size_t at = 0, new_at = 0;
	int status = 0;
	while (status == 0 && at < p->from->n) {
		size_t gone = at;
		while (gone < p->from->n && p->match[gone] == NONE)
			gone++;
		size_t upto = gone < p->from->n ? p->match[gone] : p->to->n;
		add_range(ops, at, p->to, new_at, upto);
		remove_range(ops, at, gone - at);
		at = gone;
		new_at = upto;
		if (at < p->from->n) {
			status = patch_cell(p, at++, ops);
			new_at++;
		}
	}
	add_range(ops, at, p->to, new_at, p->to->n);
	return status;
}

static int all_outputs_ops(const struct pairing *p, struct ops *ops)
{
	int status = 0;
	for (size_t i = 0; status == 0 && i < p->from->n; i++) {
		char key[24];
		if (p->match[i] == NONE)
			continue;
		(void)snprintf(key, sizeof key, "%zu", i);
		struct patch cell = patch_begin(ops, key);
		struct patch list = patch_begin(&cell.inner, "\"outputs\"");
		status = outputs_ops(
			&p->from->cells[i], &p->to->cells[p->match[i]], &list.inner, p->err);
		patch_end(&list);
		patch_end(&cell);
	}
	return status;
}

/* Of the notebooks themselves. */
static void metadata_op(const struct pairing *p, struct ops *ops)
{
	AUTO(buf_done) struct buf from, to;
	buf_init(&from, OPS_MAX);
	buf_init(&to, OPS_MAX);
	notebook_metadata(p->from, &from); /* latched, as below */
	notebook_metadata(p->to, &to);
	if (from.len == to.len && memcmp(from.data, to.data, to.len) == 0)
		return;
	ops_begin(ops, "replace", "\"metadata\"");
	(void)buf_add_text(ops->b, ",\"value\":");
	(void)buf_add(ops->b, to.data, to.len);
	ops_end(ops);
}

static int put_ops(const struct pairing *p, int (*write)(const struct pairing *p, struct ops *ops),
	struct buf *ret)
{
	struct ops ops = {ret, 0};
	(void)buf_add_text(ret, "["); /* latched, as below */
	if (write == code_ops)
		metadata_op(p, &ops);
	struct patch cells = patch_begin(&ops, "\"cells\"");
	int status = write(p, &cells.inner);
	patch_end(&cells);
	(void)buf_add_text(ret, "]");
	return status == 0 ? buf_check(ret, "a difference", p->err) : status;
}

int diff_notebooks(const struct notebook *from, const struct notebook *to, struct buf *ret_code,
	struct buf *ret_outputs, struct err *err)
{
	AUTO(freep) size_t *match = xcalloc(from->n + 1, sizeof *match);
	struct pairing p = {from, to, match, err};
	for (size_t i = 0; i < from->n; i++)
		match[i] = NONE;
	int status = match_range(&p, (struct range){0, from->n, 0, to->n}, BY_ID);
	if (status == 0)
		status = put_ops(&p, code_ops, ret_code);
	if (status == 0)
		status = put_ops(&p, all_outputs_ops, ret_outputs);
	return status;
}

/* ---- variables ---- */

static struct bytes find_variable(struct bytes list, struct bytes name)
{
	struct bytes variable;
	for (size_t at = 0; array_next(list, &at, &variable);) {
		struct bytes other = object_find(variable, "name");
		if (other.len == name.len && memcmp(other.data, name.data, name.len) == 0)
			return variable;
	}
	return (struct bytes){0};
}

/* Those of `list` that `other` lacks. */
static void add_lacking(struct bytes list, struct bytes other, struct buf *b)
{
	const char *before = "";
	struct bytes variable;
	for (size_t at = 0; array_next(list, &at, &variable);) {
		struct bytes name = object_find(variable, "name");
		if (!is_string(name) || find_variable(other, name).len > 0)
			continue;
		(void)buf_add_text(b, before); /* latched, as below */
		(void)buf_add(b, variable.data, variable.len);
		before = ",";
	}
}

static void add_changed(struct bytes from, struct bytes to, struct buf *b)
{
	const char *before = "";
	struct bytes variable;
	for (size_t at = 0; array_next(from, &at, &variable);) {
		struct bytes name = object_find(variable, "name");
		struct bytes now = is_string(name) ? find_variable(to, name) : (struct bytes){0};
		if (now.len == 0 ||
			(now.len == variable.len && memcmp(now.data, variable.data, now.len) == 0))
			continue;
		(void)buf_addf(b, "%s{\"name\":", before); /* latched, as below */
		(void)buf_add(b, name.data, name.len);
		(void)buf_add_text(b, ",\"from\":");
		(void)buf_add(b, variable.data, variable.len);
		(void)buf_add_text(b, ",\"to\":");
		(void)buf_add(b, now.data, now.len);
		(void)buf_add_text(b, "}");
		before = ",";
	}
}

/* As far as both nodes have them in their record; known says whether they do. */
static void add_variables(struct bytes from, struct bytes to, struct buf *b)
{
	bool known = is_array(from) && is_array(to);
	struct bytes none = {0};
	(void)buf_add_text(b, ",\"variables\":{\"added\":["); /* latched, as below */
	add_lacking(known ? to : none, from, b);
	(void)buf_add_text(b, "],\"removed\":[");
	add_lacking(known ? from : none, to, b);
	(void)buf_add_text(b, "],\"changed\":[");
	add_changed(known ? from : none, to, b);
	(void)buf_addf(b, "],\"known\":%s}", known ? "true" : "false");
}

/* ---- the answer ---- */

static int node_json(struct asker *a, const struct exported *e, struct buf *ret, struct err *err)
{
	struct history_question q = {
		.what = HISTORY_NODE, .history = e->history.id, .node = e->node};
	return asker_answer(a, &q, ret, err);
}

static int put_variables(struct asker *a, const struct exported *from, const struct exported *to,
	struct buf *ret_json, struct err *err)
{
	AUTO(buf_done) struct buf x, y;
	buf_init(&x, OPS_MAX);
	buf_init(&y, OPS_MAX);
	int status = node_json(a, from, &x, err);
	if (status == 0)
		status = node_json(a, to, &y, err);
	if (status != 0)
		return status;
	add_variables(object_find((struct bytes){x.data, x.len}, "variables"),
		object_find((struct bytes){y.data, y.len}, "variables"), ret_json);
	return 0;
}

static int put_files(struct asker *a, const struct exported *from, const struct exported *to,
	struct buf *ret_json, struct err *err)
{
	struct repo repo;
	char path[PATH_MAX];
	if (!folder_repository(a->folder, from->history.id, path, sizeof path))
		return err_set(err, E_IO, "the path of a history is too long");
	int status = repo_open(path, &repo, err);
	if (status != 0)
		return status;
	status = files_put_diff(&repo, from->node, to->node, ret_json, err);
	repo_close(&repo);
	return status;
}

static int put_diff(struct asker *a, const struct exported *from, const struct exported *to,
	struct buf *ret_json, struct err *err)
{
	AUTO(buf_done) struct buf outputs;
	buf_init(&outputs, OPS_MAX);
	(void)buf_addf(ret_json, "{\"from\":\"%s\",\"to\":\"%s\",\"code\":", from->node,
		to->node); /* latched, as below */
	int status = diff_notebooks(&from->nb, &to->nb, ret_json, &outputs, err);
	(void)buf_add_text(ret_json, ",\"outputs\":");
	(void)buf_add(ret_json, outputs.data, outputs.len);
	if (status == 0)
		status = put_variables(a, from, to, ret_json, err);
	(void)buf_add_text(ret_json, ",\"files\":");
	if (status == 0)
		status = put_files(a, from, to, ret_json, err);
	(void)buf_add_text(ret_json, "}");
	return status == 0 ? buf_check(ret_json, "a difference", err) : status;
}

int answer_diff(
	struct asker *a, const struct history_question *q, struct buf *ret_json, struct err *err)
{
	struct exported from, to;
	struct history_question asked = *q;
	if (!q->node || !q->to)
		return err_set(
			err, E_INVALID, "a difference is from one node to another: ?from=&to=");
	int status = export_node(a, &asked, &from, err);
	asked.node = q->to;
	notebook_init(&to.nb);
	if (status == 0)
		status = export_node(a, &asked, &to, err);
	if (status == 0)
		status = put_diff(a, &from, &to, ret_json, err);
	notebook_done(&from.nb);
	notebook_done(&to.nb);
	return status;
}
