#include "history/export.h"

#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "gateway/base/hash.h"
#include "gateway/base/json.h"
#include "history/folder.h"
#include "history/outputs.h"
#include "history/percent.h"
#include "history/record.h"
#include "history/repo.h"
#include "history/spliced.h"

#define META_MAX (16u << 20)

/* A run of the line that is exported. */
struct run_files {
	struct repo repo;
	const char *node;
	char folder[RUN_FOLDER_SIZE];
	struct buf meta, stored;
};

static int read_beside(void *data, const char *name, struct buf *ret_content, struct err *err)
{
	struct run_files *f = data;
	char path[RUN_FOLDER_SIZE + OUTPUTS_NAME_SIZE + 8];
	(void)snprintf(path, sizeof path, "%s/%s", f->folder, name);
	return repo_read_file(&f->repo, f->node, path, ret_content, err);
}

/* ---- what is ours, if it is asked for ---- */

static void add_ours(struct cell *c, struct bytes meta)
{
	static const char *const keys[] = {"status", "started_us", "duration_us", "silent",
		"kernel_id", "msg_id", "error", "exit"};
	struct buf *b = &c->metadata;
	const char *before = "{";
	/* The object without its end, all latched. */
	if (b->len > 0)
		b->data[--b->len] = '\0';
	(void)buf_addf(b, "%s\"" METADATA_KEY "\":", b->len > 0 ? "," : "{");
	for (size_t i = 0; i < ARRAY_LEN(keys); i++) {
		struct bytes value = object_find(meta, keys[i]);
		if (value.len == 0)
			continue;
		(void)buf_addf(b, "%s\"%s\":", before, keys[i]);
		(void)buf_add(b, value.data, value.len);
		before = ",";
	}
	(void)buf_add_text(b, *before == '{' ? "{}}" : "}}");
}

static void add_ours_of_all(struct exported *e)
{
	AUTO(buf_done) struct buf whole;
	struct buf *b = &e->nb.metadata;
	buf_init(&whole, META_MAX);
	notebook_metadata(&e->nb, &whole); /* all latched */
	buf_reset(b);
	(void)buf_add(b, whole.data, whole.len > 0 ? whole.len - 1 : 0);
	(void)buf_add_text(b, b->len > 1 ? ",\"" METADATA_KEY "\":" : "\"" METADATA_KEY "\":");
	(void)buf_add_text(b, "{\"history\":");
	(void)buf_add_json_string(b, e->history.id, strlen(e->history.id));
	(void)buf_add_text(b, ",\"name\":");
	(void)buf_add_json_string(b, e->history.name, strlen(e->history.name));
	(void)buf_addf(b, ",\"node\":\"%s\"}}", e->node);
}

/* ---- what an import keeps beside ---- */

static int add_cells(struct bytes list, struct notebook *nb, struct err *err)
{
	struct bytes cell;
	int status = 0;
	for (size_t at = 0; status == 0 && array_next(list, &at, &cell);)
		status = cell_read(cell, nb, err);
	return status;
}

static void keep_metadata(struct bytes object, struct buf *ret)
{
	if (ret->len == 0 && is_object(object))
		(void)buf_add(ret, object.data, object.len); /* latched */
}

/* ---- runs ---- */

static void text_of(struct bytes meta, const char *key, char *ret, size_t size)
{
	if (!json_text(object_find(meta, key), ret, size))
		ret[0] = '\0';
}

static void read_facts(struct bytes meta, struct cell *c)
{
	struct bytes count = object_find(meta, "execution_count");
	uint64_t number;
	c->idle = bytes_equal(object_find(meta, "status"), "\"aborted\"");
	text_of(meta, "cell_id", c->id, sizeof c->id);
	text_of(meta, "msg_id", c->fresh, sizeof c->fresh);
	if (!c->idle && number_u64(count, &number))
		(void)snprintf(c->count, sizeof c->count, "%llu", (unsigned long long)number);
}

static int read_cell(struct run_files *f, struct notebook *nb, struct cell **ret, struct err *err)
{
	struct bytes meta = {f->meta.data, f->meta.len};
	struct cell *c = notebook_add(nb, CELL_CODE);
	*ret = c;
	read_facts(meta, c);
	int status = read_beside(f, "code.py", &c->source, err);
	if (status == 0)
		status = read_beside(f, "outputs.json", &f->stored, err);
	if (status == 0)
		status = outputs_expand((struct bytes){f->stored.data, f->stored.len}, read_beside,
			f, &c->outputs, err);
	if (status == 0)
		status = cell_make_valid(c, err);
	if (status == 0 && !nb->kernelspec[0])
		text_of(meta, "kernelspec", nb->kernelspec, sizeof nb->kernelspec);
	return status;
}

/* With the cells that an import found around it. */
static int read_imported(struct run_files *f, struct exported *e, bool ours, struct err *err)
{
	AUTO(buf_done) struct buf beside;
	struct cell *c;
	buf_init(&beside, NOTEBOOK_MAX);
	int status = read_beside(f, NOTEBOOK_FILE, &beside, err);
	struct bytes extra = {beside.data, beside.len};
	if (status == 0)
		status = add_cells(object_find(extra, "before"), &e->nb, err);
	if (status == 0)
		status = read_cell(f, &e->nb, &c, err);
	if (status != 0)
		return status;
	keep_metadata(object_find(extra, "notebook"), &e->nb.metadata);
	keep_metadata(object_find(extra, "metadata"), &c->metadata);
	if (ours)
		add_ours(c, (struct bytes){f->meta.data, f->meta.len});
	return add_cells(object_find(extra, "after"), &e->nb, err);
}

static int read_run(struct run_files *f, uint64_t n, const struct history_question *q,
	struct exported *e, struct err *err)
{
	struct cell *c;
	run_folder(n, f->folder);
	buf_reset(&f->meta);
	buf_reset(&f->stored);
	int status = read_beside(f, "meta.json", &f->meta, err);
	struct bytes meta = {f->meta.data, f->meta.len};
	if (status == E_NOT_FOUND || bytes_equal(object_find(meta, "kind"), "\"files\""))
		return 0; /* a node that is no execution, or one that was forgotten */
	if (status != 0 || (!q->silent && bytes_equal(object_find(meta, "silent"), "true")))
		return status;
	if (bytes_equal(object_find(meta, "imported"), "true"))
		return read_imported(f, e, q->ours, err);
	status = read_cell(f, &e->nb, &c, err);
	if (status == 0 && q->ours)
		add_ours(c, meta);
	return status;
}

/* ---- what was held back and run later ---- */

struct ran {
	const char *key;
	UT_hash_handle hh;
};

struct later {
	struct notebook *nb;
	bool *goes;
	struct ran *ids, *sources;
};

static bool note(struct ran **table, struct ran *row, const char *key, size_t len, bool ran)
{
	struct ran *found = NULL;
	if (len == 0)
		return false;
	HASH_FIND(hh, *table, key, len, found);
	if (!found && ran) {
		row->key = key;
		HASH_ADD_KEYPTR(hh, *table, key, len, row);
	}
	return found != NULL;
}

static bool is_later(void *data, size_t at)
{
	const struct later *l = data;
	return l->goes[at];
}

/* A cell that was held back behind a failure stays as one that did not run, unless the same cell,
 * or the same code, ran after it: "run all" twice would have it twice. */
static void drop_held_back(struct notebook *nb)
{
	AUTO(freep) bool *goes = xcalloc(nb->n + 1, sizeof *goes);
	AUTO(freep) struct ran *rows = xcalloc(2 * nb->n + 1, sizeof *rows);
	struct later l = {.nb = nb, .goes = goes};
	for (size_t i = nb->n; i-- > 0;) {
		const struct cell *c = &nb->cells[i];
		if (c->kind != CELL_CODE)
			continue;
		bool ran = !c->idle;
		bool same_id = note(&l.ids, &rows[2 * i], c->id, strlen(c->id), ran);
		bool same_code = note(&l.sources, &rows[2 * i + 1], (const char *)c->source.data,
			c->source.len, ran);
		goes[i] = c->idle && (same_id || same_code);
	}
	HASH_CLEAR(hh, l.ids);
	HASH_CLEAR(hh, l.sources);
	notebook_drop(nb, is_later, &l);
}

/* ---- the whole ---- */

static int find_number(
	struct asker *a, const char *history, const char *node, uint64_t *ret_n, struct err *err)
{
	AUTO(db_endp) struct db_rows *rows = NULL;
	int status = db_ask(a->db, "SELECT n FROM execution_records WHERE history = ? AND node = ?",
		DB_VALUES(DB_T(history), DB_T(node)), &rows, err);
	if (status == 0)
		status = db_next(rows, err);
	if (status == 1)
		*ret_n = (uint64_t)db_number(rows, 0);
	return status == 0  ? err_set(err, E_NOT_FOUND, "the node is gone")
	       : status < 0 ? status
			    : 0;
}

static int read_runs(struct run_files *f, uint64_t n, const struct history_question *q,
	struct exported *e, struct err *err)
{
	size_t used = 0;
	int status = 0;
	for (uint64_t k = 1; status == 0 && k <= n; k++) {
		size_t before = e->nb.n;
		status = read_run(f, k, q, e, err);
		for (size_t i = before; i < e->nb.n; i++)
			used += e->nb.cells[i].source.len + e->nb.cells[i].outputs.len;
		if (status == 0 && used > NOTEBOOK_MAX)
			status = err_set(err, E_TOO_BIG, "a notebook of more than %u MiB",
				NOTEBOOK_MAX >> 20);
	}
	return status;
}

static int read_line(
	struct asker *a, const struct history_question *q, struct exported *e, struct err *err)
{
	struct run_files f = {.node = e->node};
	char path[PATH_MAX];
	uint64_t n = 0;
	int status = find_number(a, e->history.id, e->node, &n, err);
	if (status == 0 && !folder_repository(a->folder, e->history.id, path, sizeof path))
		status = err_set(err, E_IO, "the path of a history is too long");
	if (status == 0)
		status = repo_open(path, &f.repo, err);
	if (status != 0)
		return status;
	buf_init(&f.meta, META_MAX);
	buf_init(&f.stored, OUTPUTS_STORED_MAX);
	status = read_runs(&f, n, q, e, err);
	buf_done(&f.meta);
	buf_done(&f.stored);
	repo_close(&f.repo);
	/* The index names it: that git lacks it is no wrong name. */
	return status == E_NOT_FOUND ? err_set(err, E_IO, "the node cannot be read") : status;
}

int export_node(
	struct asker *a, const struct history_question *q, struct exported *ret, struct err *err)
{
	notebook_init(&ret->nb);
	int status = find_history(a->db, q, &ret->history, err);
	if (status == 0)
		status = find_node(a->db, ret->history.id, q, ret->node, err);
	if (status == 0)
		status = read_line(a, q, ret, err);
	if (status != 0)
		return status;
	drop_held_back(&ret->nb);
	notebook_name_cells(&ret->nb);
	if (q->ours)
		add_ours_of_all(ret);
	return notebook_check(&ret->nb, err);
}

/* What any system takes as a name. */
static void add_file_name(const struct exported *e, const char *ending, struct buf *b)
{
	static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
				    "_-";
	bool gap = true;
	for (const char *c = e->history.name; *c && b->len < 80; c++) {
		bool fits = strchr(plain, *c) != NULL;
		if (fits || !gap)
			(void)buf_add(b, fits ? c : "-", 1); /* latched, as below */
		gap = !fits;
	}
	(void)buf_addf(b, "%s%.8s.%s\n", gap ? "" : "-", e->node, ending);
}

int answer_export(
	struct asker *a, const struct history_question *q, struct buf *ret_file, struct err *err)
{
	struct exported e;
	struct notebook_style style = {.renumber = q->renumber};
	bool script = q->format && strcmp(q->format, "py") == 0;
	if (q->format && !script && strcmp(q->format, "ipynb") != 0)
		return err_set(
			err, E_INVALID, "format: `%.20s` is neither ipynb nor py", q->format);
	int status = export_node(a, q, &e, err);
	if (status == 0) {
		add_file_name(&e, script ? "py" : "ipynb", ret_file);
		status = script ? percent_write(&e.nb, ret_file, err)
				: notebook_write(&e.nb, &style, ret_file, err);
	}
	notebook_done(&e.nb);
	return status;
}
