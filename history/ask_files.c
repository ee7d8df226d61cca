#include "history/ask_files.h"

#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "history/files.h"
#include "history/files_tree.h"
#include "history/files_walk.h"
#include "history/folder.h"
#include "history/spliced.h"

/* A list that is being written. */
struct list_of {
	struct repo *repo;
	struct buf *b;
	size_t n;
};

static void add_text(struct buf *b, const char *key, const char *text)
{
	(void)buf_addf(b, "\"%s\":", key); /* latched, as below */
	(void)buf_add_json_string(b, text, strlen(text));
}

/* ---- the whole folder ---- */

static void add_chunks(struct buf *b, const struct pointer *p)
{
	(void)buf_add_text(b, ",\"chunks\":["); /* latched, as below */
	for (size_t i = 0; i < p->n; i++)
		(void)buf_addf(b, "%s\"%.*s\"", i ? "," : "", (int)CHUNK_NAME_LEN,
			(const char *)p->chunks.data + i * (CHUNK_NAME_LEN + 1));
	(void)buf_add_text(b, "]");
}

static int add_entry(void *data, const struct files_entry *e, struct err *err)
{
	struct list_of *l = data;
	if (l->n == HISTORY_FILES_MAX)
		return err_set(err, E_TOO_BIG,
			"the node has more than %u files: it cannot be laid down",
			HISTORY_FILES_MAX);
	(void)buf_addf(l->b, "%s{", l->n++ ? ",\n" : "\n"); /* latched, as below */
	add_text(l->b, "path", e->path);
	(void)buf_addf(l->b, ",\"mode\":\"%o\"", e->mode);
	if (e->mode != MODE_FOLDER)
		(void)buf_addf(l->b, ",\"bytes\":%llu", (unsigned long long)e->bytes);
	if (e->pointer && e->pointer->is_lost) {
		(void)buf_add_text(l->b, ",");
		add_text(l->b, "lost", e->pointer->reason);
	} else if (e->pointer) {
		add_chunks(l->b, e->pointer);
	} else if (e->mode != MODE_FOLDER) {
		(void)buf_addf(l->b, ",\"blob\":\"%s\"", e->blob);
	}
	(void)buf_add_text(l->b, "}");
	return buf_check(l->b, "the files of a node", err);
}

/* What its own Change told that is no entry. */
static int add_lost(struct repo *repo, const char *node, uint64_t n, struct buf *b, struct err *err)
{
	AUTO(buf_done) struct buf json;
	char folder[RUN_FOLDER_SIZE], path[RUN_FOLDER_SIZE + 16];
	buf_init(&json, FILES_JSON_MAX);
	run_folder(n, folder);
	(void)snprintf(path, sizeof path, "%s/" FILES_JSON, folder);
	int status = repo_read_file(repo, node, path, &json, err);
	struct bytes lost = object_find((struct bytes){json.data, json.len}, "lost");
	if (status != 0 && status != E_NOT_FOUND)
		return status;
	if (status == 0 && is_array(lost))
		(void)buf_add(b, lost.data, lost.len); /* latched, as below */
	else
		(void)buf_add_text(b, "[]");
	return 0;
}

static int put_folder(
	struct repo *repo, const char *node, uint64_t n, struct buf *b, struct err *err)
{
	char tree[HISTORY_NODE_SIZE];
	struct list_of l = {repo, b, 0};
	int status = files_of(repo, node, tree, err);
	if (status != 0)
		return status;
	(void)buf_addf(b, ",\"recorded\":%s,\"entries\":[",
		tree[0] ? "true" : "false"); /* latched, as below */
	if (tree[0])
		status = files_each(repo, tree, add_entry, &l, err);
	(void)buf_add_text(b, "],\"lost\":");
	if (status == 0)
		status = add_lost(repo, node, n, b, err);
	(void)buf_add_text(b, "}");
	return status == 0 ? buf_check(b, "the files of a node", err) : status;
}

int answer_files(
	struct asker *a, const struct history_question *q, struct buf *ret_json, struct err *err)
{
	struct history_found found;
	struct index_place place;
	struct repo repo;
	char node[HISTORY_NODE_SIZE], path[PATH_MAX];
	int status = find_history(a->db, q, &found, err);
	if (status == 0)
		status = find_node(a->db, found.id, q, node, err);
	if (status == 0)
		status = index_find_node(a->db, found.id, node, &place, err);
	if (status == 0)
		status = err_set(err, E_NOT_FOUND, "the node is gone");
	if (status == 1 && !folder_repository(a->folder, found.id, path, sizeof path))
		status = err_set(err, E_IO, "the path of a history is too long");
	if (status == 1)
		status = repo_open(path, &repo, err) == 0 ? 1 : E_IO;
	if (status != 1)
		return status;
	(void)buf_addf(
		ret_json, "{\"history\":\"%s\",\"node\":\"%s\"", found.id, node); /* latched */
	status = put_folder(&repo, node, place.n, ret_json, err);
	repo_close(&repo);
	/* The index names it: that git lacks it is no wrong name. */
	return status == E_NOT_FOUND ? err_set(err, E_IO, "the node cannot be read") : status;
}

/* ---- what changed ---- */

static const char *word_of(enum files_change change)
{
	static const char *const words[] = {[FILES_CREATED] = "created",
		[FILES_MODIFIED] = "modified",
		[FILES_DELETED] = "deleted"};
	return words[change];
}

/* {"bytes", "digest", "lost"?} of one side, without the braces. An empty folder has no digest. */
static int add_side(struct list_of *l, unsigned mode, const char *blob, struct err *err)
{
	AUTO(buf_done) struct buf text;
	struct pointer pointer;
	bool is_pointer = false;
	uint64_t bytes = 0;
	buf_init(&text, POINTER_MAX);
	if (mode == MODE_FOLDER || !blob[0]) {
		(void)buf_add_text(l->b, "\"bytes\":0,\"digest\":null"); /* latched, as below */
		return 0;
	}
	int status = files_look(l->repo, blob, &bytes, &text, &pointer, &is_pointer, err);
	if (status != 0)
		return status;
	bool lost = is_pointer && pointer.is_lost;
	(void)buf_addf(l->b, "\"bytes\":%llu,\"digest\":", (unsigned long long)bytes);
	if (!lost)
		(void)buf_addf(l->b, "\"%s\"", blob);
	else
		(void)buf_add_text(l->b, "null,");
	if (lost)
		add_text(l->b, "lost", pointer.reason);
	return 0;
}

/* Of what was deleted: how it was. */
static int add_node_delta(void *data, const struct files_delta *d, struct err *err)
{
	struct list_of *l = data;
	bool gone = d->change == FILES_DELETED;
	if (l->n == HISTORY_FILES_MAX)
		return 0;
	(void)buf_addf(l->b, "%s{", l->n++ ? ",\n" : "\n"); /* latched, as below */
	add_text(l->b, "path", d->path);
	(void)buf_addf(l->b, ",\"change\":\"%s\",", word_of(d->change));
	int status = add_side(l, gone ? d->from_mode : d->to_mode, gone ? d->from : d->to, err);
	(void)buf_add_text(l->b, "}");
	return status;
}

static int add_diff_side(
	struct list_of *l, const char *key, unsigned mode, const char *blob, struct err *err)
{
	(void)buf_addf(l->b, ",\"%s\":", key); /* latched, as below */
	if (mode == 0) {
		(void)buf_add_text(l->b, "null");
		return 0;
	}
	(void)buf_addf(l->b, "{\"mode\":\"%o\",", mode);
	int status = add_side(l, mode, blob, err);
	(void)buf_add_text(l->b, "}");
	return status;
}

static int add_diff_delta(void *data, const struct files_delta *d, struct err *err)
{
	struct list_of *l = data;
	(void)buf_addf(l->b, "%s{", l->n++ ? ",\n" : "\n"); /* latched, as below */
	add_text(l->b, "path", d->path);
	(void)buf_addf(l->b, ",\"change\":\"%s\"", word_of(d->change));
	int status = add_diff_side(l, "from", d->from_mode, d->from, err);
	if (status == 0)
		status = add_diff_side(l, "to", d->to_mode, d->to, err);
	(void)buf_add_text(l->b, "}");
	return status;
}

static int put_list(struct repo *repo, const char *from, const char *to,
	int (*add)(void *data, const struct files_delta *d, struct err *err), struct buf *b,
	struct err *err)
{
	char old[HISTORY_NODE_SIZE], new[HISTORY_NODE_SIZE];
	struct list_of l = {repo, b, 0};
	int status = files_of(repo, from, old, err);
	if (status == 0)
		status = files_of(repo, to, new, err);
	(void)buf_add_text(b, "["); /* latched, as below */
	if (status == 0)
		status = files_diff(repo, old, new, add, &l, err);
	(void)buf_add_text(b, "]");
	return status == 0 ? buf_check(b, "files", err) : status;
}

int files_put_node(struct repo *repo, const char *parent, const char *node, struct buf *ret_json,
	struct err *err)
{
	return put_list(repo, parent, node, add_node_delta, ret_json, err);
}

int files_put_diff(
	struct repo *repo, const char *from, const char *to, struct buf *ret_json, struct err *err)
{
	return put_list(repo, from, to, add_diff_delta, ret_json, err);
}

int files_known(struct repo *repo, const char *node, bool *ret_known, struct err *err)
{
	char tree[HISTORY_NODE_SIZE];
	int status = files_of(repo, node, tree, err);
	*ret_known = status == 0 && tree[0];
	return status;
}

const char *files_note(bool parked, bool has_files)
{
	if (parked && has_files)
		return "The state itself stands by in the kernel's container: `checkout` goes back "
		       "to it, with the working files of this node, and tells what of it is lost.";
	if (parked)
		return "The state itself stands by in the kernel's container: `checkout` goes back "
		       "to it and tells what of it is lost. Working files are not put back.";
	return has_files ? "Code, outputs, working files and what kind of variables there were are "
			   "kept; what they held is not."
			 : "Code, outputs and what kind of variables there were are kept; what "
			   "they held and working files of this node are not.";
}
