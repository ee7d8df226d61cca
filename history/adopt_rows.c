/* Rows of a history that was imported, a few at a time: it is found only once all are there. A
 * process that ends on the way has its next one make them anew (reindex.c). Recorder's thread. */
#include <stdio.h>

#include "history/import.h"
#include "history/recorder_parts.h"

#define ROWS_MAX 256 /* in one transaction: some 80 ms */
#define META_MAX (16u << 20)

static int add_root(
	struct recorder *r, struct open_repo *repo, const struct imported_node *at, struct err *err)
{
	struct commit_view view;
	int status = repo_read_commit(&repo->repo, at->node, &view, err);
	if (status == 0)
		status = index_add_root(
			r->db, repo->id, at->node, (const char *)view.message.data, err);
	buf_done(&view.message);
	return status;
}

static int add_run(
	struct recorder *r, struct open_repo *repo, const struct imported_node *at, struct err *err)
{
	AUTO(buf_done) struct buf meta;
	char path[RUN_FOLDER_SIZE + 16], folder[RUN_FOLDER_SIZE];
	buf_init(&meta, META_MAX);
	run_folder(at->n, folder);
	(void)snprintf(path, sizeof path, "%s/meta.json", folder);
	int status = repo_read_file(&repo->repo, at->node, path, &meta, err);
	if (status != 0)
		return status;
	const struct index_node node = {repo->id, at->node, at->parent, {meta.data, meta.len}};
	return index_add_node(r->db, &node, err);
}

static int publish(
	struct recorder *r, struct open_repo *repo, const struct adopting *a, struct err *err)
{
	struct commit_view view;
	int status = repo_read_commit(&repo->repo, a->nodes[0].node, &view, err);
	if (status == 0)
		status = index_publish(
			r->db, repo->id, a->nodes[0].node, (const char *)view.message.data, err);
	if (status == 0)
		status = index_set_branch(r->db, repo->id, "main", a->nodes[a->n - 1].node, err);
	buf_done(&view.message);
	return status;
}

static int add_some(struct recorder *r, struct open_repo *repo, const struct adopting *a,
	size_t from, size_t upto, struct err *err)
{
	int status = recorder_step(r, STEP_ADOPT, err);
	for (size_t i = from; status == 0 && i < upto; i++)
		status = i == 0 ? add_root(r, repo, &a->nodes[i], err)
				: add_run(r, repo, &a->nodes[i], err);
	return status == 0 && upto == a->n ? publish(r, repo, a, err) : status;
}

int recorder_adopt(struct recorder *r, const struct adopting *a, size_t *at, struct err *err)
{
	struct open_repo *repo = NULL;
	size_t upto = a->n - *at > ROWS_MAX ? *at + ROWS_MAX : a->n;
	int status = db_script(r->db, "BEGIN IMMEDIATE", err);
	if (status == 0)
		status = recorder_repo(r, a->history, &repo, err);
	if (status == 0)
		status = add_some(r, repo, a, *at, upto, err);
	if (status == 0)
		status = db_script(r->db, "COMMIT", err);
	if (status == 0) {
		*at = upto;
		return 0;
	}
	(void)db_script(r->db, "ROLLBACK", NULL); /* the cause counts */
	if (repo)
		repo->behind = repo->owed = true;
	return status;
}
