#include "history/import.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "gateway/base/json.h"
#include "gateway/base/tree.h"
#include "history/amend.h"
#include "history/export.h"
#include "history/folder.h"
#include "history/notebook.h"
#include "history/percent.h"
#include "history/record.h"
#include "history/repo.h"
#include "history/spliced.h"

#define CHANGES_MAX (64u << 20)
#define META_MAX    (16u << 20)
#define NODES_MAX   (64u << 20)
#define SLICE	    32	       /* cells: some 30 ms */
#define PACK_BYTES  (8u << 20) /* of objects, some thousand cells */

struct importing {
	struct notebook nb;
	struct history_run run; /* texts are the question's and this struct's */
	char id[UUID_SIZE], name[IMPORT_NAME_MAX + 1];
	char path[PATH_MAX], half[PATH_MAX]; /* where it goes, where it is made */
	int64_t now_us;
	struct repo repo;
	bool is_open;	  /* repo; then what is half made is to be removed */
	struct buf nodes; /* struct imported_node */
	char folder[PATH_MAX];
	char tip[HISTORY_NODE_SIZE];
	uint64_t n;  /* executions */
	size_t at;   /* the next cell */
	size_t from; /* the first cell that no execution has beside it yet */
	size_t last; /* the last code cell */
};

/* ---- one execution ---- */

/* An error's texts as a record has them. */
static void put_error(struct record *r, struct bytes error)
{
	if (error.len == 0)
		return;
	(void)buf_add_text(&r->error, "{"); /* latched, as below */
	record_add_cut(&r->error, "ename", object_find(error, "ename"));
	(void)buf_add_text(&r->error, ",");
	record_add_cut(&r->error, "evalue", object_find(error, "evalue"));
	(void)buf_add_text(&r->error, "}");
}

static int put_outputs(struct record *r, const struct cell *c, struct err *err)
{
	struct bytes list = {c->outputs.data, c->outputs.len}, output;
	int status = 0;
	for (size_t at = 0; status == 0 && array_next(list, &at, &output);) {
		char type[32] = "";
		(void)json_text(object_find(output, "output_type"), type, sizeof type); /* known */
		status = outputs_message(r->outputs, type, output, err);
	}
	return status;
}

static int make_record(
	struct importing *im, const struct cell *c, struct record *r, struct err *err)
{
	bool failed = cell_error(c).len > 0;
	(void)snprintf(r->msg_id, sizeof r->msg_id, "%s_%llu", im->id, (unsigned long long)im->n);
	(void)snprintf(r->cell_id, sizeof r->cell_id, "%s", c->id);
	(void)snprintf(r->status, sizeof r->status, "%s", failed ? "error" : "ok");
	(void)snprintf(r->execution_count, sizeof r->execution_count, "%s", c->count);
	r->imported = true;
	r->done_us = (uint64_t)im->now_us;
	(void)buf_add(&r->code, c->source.data, c->source.len); /* latched */
	put_error(r, cell_error(c));
	return put_outputs(r, c, err);
}

static void add_cells(struct importing *im, const char *key, size_t upto, struct buf *b)
{
	const char *before = "";
	if (im->from == upto)
		return;
	(void)buf_addf(b, "%s\"%s\":[", b->len > 1 ? ",\n" : "", key); /* latched, as below */
	for (size_t i = im->from; i < upto; i++) {
		(void)buf_addf(b, "%s\n", before);
		cell_write(&im->nb.cells[i], b);
		before = ",";
	}
	(void)buf_add_text(b, "\n]");
}

static void add_object(const char *key, const struct buf *object, struct buf *b)
{
	if (object->len > 0)
		(void)buf_addf(b, "%s\"%s\":%s", b->len > 1 ? ",\n" : "", key,
			(const char *)object->data); /* latched */
}

/* What no execution has: text before it (and behind the last), metadata. */
static int write_beside(struct importing *im, size_t at, const char *folder,
	struct buf *ret_changes, struct err *err)
{
	AUTO(buf_done) struct buf json;
	buf_init(&json, NOTEBOOK_MAX);
	(void)buf_add_text(&json, "{"); /* latched, as below */
	add_cells(im, "before", at, &json);
	add_object("metadata", &im->nb.cells[at].metadata, &json);
	if (im->n == 1)
		add_object("notebook", &im->nb.metadata, &json);
	im->from = at + 1;
	if (at == im->last)
		add_cells(im, "after", im->nb.n, &json);
	(void)buf_add_text(&json, "}\n");
	int status = buf_check(&json, NOTEBOOK_FILE, err);
	return status == 0 ? run_write_file(&im->repo, folder, NOTEBOOK_FILE,
				     (struct bytes){json.data, json.len}, ret_changes, err)
			   : status;
}

static int write_files(struct importing *im, size_t at, struct record *r,
	const struct record_place *place, struct buf *ret_changes, struct err *err)
{
	AUTO(buf_done) struct buf meta;
	char folder[RUN_FOLDER_SIZE];
	buf_init(&meta, META_MAX);
	run_folder(im->n, folder);
	int status = run_write_file(&im->repo, folder, "code.py",
		(struct bytes){r->code.data, r->code.len}, ret_changes, err);
	if (status == 0)
		status = run_write_outputs(
			&im->repo, folder, r->outputs, &r->counts, ret_changes, err);
	if (status == 0)
		status = write_beside(im, at, folder, ret_changes, err);
	if (status == 0)
		status = record_meta(r, place, &meta, err);
	if (status == 0)
		status = run_write_file(&im->repo, folder, "meta.json",
			(struct bytes){meta.data, meta.len}, ret_changes, err);
	return status;
}

static int commit(
	struct importing *im, const char *message, const struct buf *changes, struct err *err)
{
	struct commit_draft draft = {.parent = im->tip,
		.changes = (const struct tree_change *)(void *)changes->data,
		.n_changes = changes->len / sizeof(struct tree_change),
		.message = message,
		.author = im->run.owner,
		.author_us = im->now_us,
		.committer_us = im->now_us};
	struct imported_node made = {.n = im->n};
	int status = repo_commit(&im->repo, &draft, made.node, err);
	if (status != 0)
		return status;
	memcpy(made.parent, im->tip, sizeof made.parent);
	memcpy(im->tip, made.node, sizeof im->tip);
	(void)buf_add(&im->nodes, &made, sizeof made); /* latched */
	return buf_check(&im->nodes, "nodes", err);
}

static int write_record(struct importing *im, size_t at, struct record *r, struct err *err)
{
	AUTO(buf_done) struct buf changes, message;
	const struct record_place place = {
		.run = &im->run, .branch = "main", .n = im->n, .state_version = im->n};
	buf_init(&changes, CHANGES_MAX);
	buf_init(&message, 1 << 16);
	int status = make_record(im, &im->nb.cells[at], r, err);
	if (status == 0)
		status = buf_check(&r->code, "code", err);
	if (status == 0)
		status = write_files(im, at, r, &place, &changes, err);
	if (status == 0)
		status = record_message(r, &place, &message, err);
	return status == 0 ? commit(im, (const char *)message.data, &changes, err) : status;
}

/* ---- the whole ---- */

static int write_root(struct importing *im, struct err *err)
{
	AUTO(buf_done) struct buf message;
	struct buf none = {0};
	buf_init(&message, 1 << 16);
	int status = root_message(&im->run, im->name, im->now_us, &message, err);
	return status == 0 ? commit(im, (const char *)message.data, &none, err) : status;
}

static int write_cell(struct importing *im, size_t at, struct err *err)
{
	struct record r;
	if (im->nb.cells[at].kind != CELL_CODE)
		return 0;
	im->n++;
	record_init(&r);
	int status = write_record(im, at, &r, err);
	record_done(&r);
	return status;
}

/* A pack is written a few times for all, not a file for each object. */
static int flush_some(struct importing *im, size_t from_bytes, struct err *err)
{
	if (repo_staged_bytes(&im->repo) < from_bytes)
		return 0;
	int status = repo_flush(&im->repo, err);
	repo_begin(&im->repo);
	return status;
}

static int sync_folder(const char *folder, int (*sync)(int fd), struct err *err)
{
	int fd = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	int status = fd >= 0 && sync(fd) == 0 ? 0
					      : err_set(err, E_IO, "%s cannot be synced: %s",
							folder, strerror(errno));
	if (fd >= 0)
		(void)close(fd); /* read only */
	return status;
}

/* Objects, then the branch, then the name: what is found under it is whole. */
static int put_in_place(struct importing *im, struct err *err)
{
	int status = sync_folder(im->folder, syncfs, err);
	if (status == 0)
		status = repo_move_branch(&im->repo, "main", "", im->tip, err);
	if (status == 0 && rename(im->half, im->path) != 0)
		status = err_set(
			err, E_IO, "%s cannot be put in place: %s", im->path, strerror(errno));
	if (status != 0)
		return status;
	repo_close(&im->repo);
	im->is_open = false;
	return sync_folder(im->folder, fsync, err);
}

static int begin_repository(struct importing *im, struct err *err)
{
	im->is_open = true;
	int status = repo_make(im->half, err);
	if (status == 0)
		status = repo_open_to_write(im->half, &im->repo, err);
	if (status != 0)
		return status;
	repo_begin(&im->repo);
	return write_root(im, err);
}

int import_go_on(struct importing *im, struct err *err)
{
	int status = 0;
	for (size_t end = im->at + SLICE; status == 0 && im->at < im->nb.n && im->at < end;
		im->at++)
		status = write_cell(im, im->at, err);
	if (status == 0)
		status = flush_some(im, im->at < im->nb.n ? PACK_BYTES : 0, err);
	if (status != 0 || im->at < im->nb.n)
		return status == 0 ? 1 : status;
	return put_in_place(im, err);
}

/* ---- the file ---- */

static bool looks_like_json(struct bytes file)
{
	size_t at = 0;
	while (at < file.len && file.data[at] && strchr(" \t\r\n", file.data[at]))
		at++;
	return at < file.len && file.data[at] == '{';
}

static int read_file(const struct history_question *q, struct notebook *nb, struct err *err)
{
	bool json = q->format ? strcmp(q->format, "ipynb") == 0 : looks_like_json(q->file);
	if (q->format && !json && strcmp(q->format, "py") != 0)
		return err_set(
			err, E_INVALID, "format: `%.20s` is neither ipynb nor py", q->format);
	if (q->file.len == 0)
		return err_set(err, E_INVALID, "the file is empty");
	return json ? notebook_read(q->file, nb, err) : percent_read(q->file, nb, err);
}

static int find_code(struct importing *im, struct err *err)
{
	bool found = false;
	for (size_t i = 0; i < im->nb.n; i++) {
		if (im->nb.cells[i].kind != CELL_CODE)
			continue;
		im->last = i;
		found = true;
	}
	return found ? 0 : err_set(err, E_INVALID, "there is no code in it");
}

/* One line, whole characters. */
static int take_name(struct importing *im, const char *name, struct err *err)
{
	if (!name || !name[0])
		name = "imported";
	if (!copy_text(im->name, sizeof im->name, name, strlen(name)))
		return err_set(err, E_INVALID, "a name of more than %u bytes", IMPORT_NAME_MAX);
	for (char *c = im->name; *c; c++)
		if ((unsigned char)*c < ' ' || *c == 0x7f)
			return err_set(err, E_INVALID, "a name with control characters");
	return 0;
}

static int prepare(
	struct importing *im, struct asker *a, const struct history_question *q, struct err *err)
{
	int status = take_name(im, q->name, err);
	if (status == 0)
		status = read_file(q, &im->nb, err);
	if (status == 0)
		status = find_code(im, err);
	if (status != 0)
		return status;
	crypto_uuid(im->id);
	im->now_us = q->now_us;
	im->run = (struct history_run){.history_id = im->id,
		.owner = q->owner ? q->owner : "",
		.kernel_id = im->id, /* so that HEAD is its tip */
		.kernelspec = im->nb.kernelspec,
		.environment = ""};
	if (!folder_repository(a->folder, im->id, im->path, sizeof im->path) ||
		snprintf(im->half, sizeof im->half, "%s.new", im->path) >= (int)sizeof im->half ||
		!copy_text(im->folder, sizeof im->folder, a->folder, strlen(a->folder)))
		return err_set(err, E_IO, "the path of a history is too long");
	return 0;
}

int import_begin(
	struct asker *a, const struct history_question *q, struct importing **ret, struct err *err)
{
	struct importing *im = xcalloc(1, sizeof *im);
	notebook_init(&im->nb);
	buf_init(&im->nodes, NODES_MAX);
	int status = prepare(im, a, q, err);
	if (status == 0)
		status = begin_repository(im, err);
	if (status == 0)
		*ret = im;
	else
		import_free(im);
	return status;
}

const char *import_id(const struct importing *im)
{
	return im->id;
}

struct buf import_nodes(struct importing *im)
{
	struct buf nodes = im->nodes;
	buf_init(&im->nodes, NODES_MAX);
	return nodes;
}

void import_free(struct importing *im)
{
	if (im->is_open) {
		repo_close(&im->repo);
		(void)tree_remove(im->half, NULL); /* else the next start does */
	}
	buf_done(&im->nodes);
	notebook_done(&im->nb);
	free(im);
}
