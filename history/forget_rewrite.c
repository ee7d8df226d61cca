#include "history/forget_rewrite.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "history/amend.h"
#include "history/forget_files.h"
#include "history/rewrite.h"
#include "history/spliced.h"

#define META_MAX    (16u << 20)
#define CHANGES_MAX (1u << 20)
#define MESSAGE_MAX (1u << 20)

/* A node that is written again, by the id that it had. */
struct again {
	char was[HISTORY_NODE_SIZE], now[HISTORY_NODE_SIZE], parent[HISTORY_NODE_SIZE];
	uint64_t n;
	/* The nearest run on its line, itself included, that amended the node and whose meta.json
	 * tells so; and the next before that one. */
	struct again *amending, *before;
	UT_hash_handle hh;
};

struct rewriting {
	struct recorder *r;
	struct repo *repo;
	struct forgetting *f;
	struct again *all;   /* parents first */
	struct buf reverted; /* struct path_change: earlier runs, as they were before the node */
	struct forget_files *files;
	char code[HISTORY_NODE_SIZE];	/* of its code.py */
	char folder[HISTORY_NODE_SIZE]; /* what stands in the place of its run's folder */
};

static struct again *find(const struct rewriting *w, const char *node)
{
	struct again *a;
	HASH_FIND_STR(w->all, node, a);
	return a;
}

static bool is_the_node(const struct rewriting *w, const struct again *a)
{
	return strcmp(a->was, w->f->node) == 0;
}

static void path_of(uint64_t n, const char *name, char ret_path[64])
{
	char folder[RUN_FOLDER_SIZE];
	run_folder(n, folder);
	(void)snprintf(ret_path, 64, "%s%s%s", folder, *name ? "/" : "", name); /* fits */
}

/* ---- which ---- */

/* One that says the same and is another: it is for the person to decide. */
static void note_same(struct rewriting *w, const char *node, uint64_t n)
{
	char path[64], code[HISTORY_NODE_SIZE];
	struct forgetting *f = w->f;
	path_of(n, "code.py", path);
	if (n == 0 || f->n_same == FORGET_SAME_MAX || strcmp(node, f->node) == 0 ||
		repo_find_path(w->repo, node, path, code, NULL) != 0)
		return;
	if (strcmp(code, w->code) == 0)
		memcpy(f->same[f->n_same++], node, HISTORY_NODE_SIZE);
}

/* A later cell that drew the history has had the node's first line, or all of it, in its outputs.
 */
static void note_shown(struct rewriting *w, const char *node, const char *summary)
{
	static const char *const magics[] = {"%coppice log", "%coppice show"};
	struct forgetting *f = w->f;
	for (size_t i = 0; i < ARRAY_LEN(magics); i++)
		if (w->all && f->n_shown < FORGET_SAME_MAX &&
			strncmp(summary, magics[i], strlen(magics[i])) == 0)
			(void)snprintf(f->shown[f->n_shown++], HISTORY_NODE_SIZE, "%s", node);
}

static void take_row(struct rewriting *w, struct db_rows *rows)
{
	char node[HISTORY_NODE_SIZE], parent[HISTORY_NODE_SIZE];
	(void)snprintf(node, sizeof node, "%s", db_text(rows, 0));
	(void)snprintf(parent, sizeof parent, "%s", db_text(rows, 1));
	uint64_t n = (uint64_t)db_number(rows, 2);
	note_same(w, node, n);
	note_shown(w, node, db_text(rows, 3));
	if (strcmp(node, w->f->node) != 0 && !find(w, parent))
		return;
	struct again *a = xcalloc(1, sizeof *a);
	memcpy(a->was, node, sizeof a->was);
	memcpy(a->parent, parent, sizeof a->parent);
	a->n = n;
	HASH_ADD_STR(w->all, was, a);
}

/* The node and what came after it: a row comes after its parent's. */
static int plan(struct rewriting *w, struct err *err)
{
	AUTO(db_endp) struct db_rows *rows = NULL;
	char path[64];
	path_of(w->f->n, "code.py", path);
	int status = repo_find_path(w->repo, w->f->node, path, w->code, err);
	if (status == 0)
		status = db_ask(w->r->db,
			"SELECT node, parent, n, summary FROM execution_records WHERE history = ?"
			" ORDER BY seq",
			DB_VALUES(DB_T(w->f->history)), &rows, err);
	while (status == 0 && (status = db_next(rows, err)) == 1) {
		take_row(w, rows);
		status = 0;
	}
	return status;
}

/* ---- what stands in its place ---- */

/* That of the n-th run in the tree of a node. */
static int read_meta(const struct rewriting *w, const struct again *a, uint64_t n,
	struct buf *ret_meta, struct err *err)
{
	char path[64];
	path_of(n, "meta.json", path);
	return repo_read_file(w->repo, a->was, path, ret_meta, err);
}

/* What the node said into earlier runs goes with it, and with that what later ones added there:
 * the two cannot be told apart any more. */
static int find_reverted(
	struct rewriting *w, const struct again *a, struct bytes meta, struct err *err)
{
	struct bytes list = object_find(meta, "amends"), one;
	int status = 0;
	for (size_t at = 0; status == 0 && array_next(list, &at, &one);) {
		struct path_change change = {.is_folder = true};
		uint64_t n = 0;
		if (!number_u64(object_find(one, "n"), &n) || n >= a->n)
			continue;
		path_of(n, "", change.path);
		status = repo_find_path(w->repo, a->parent, change.path, change.id, err);
		if (status == 0)
			status = buf_add(&w->reverted, &change, sizeof change);
		else if (status == E_NOT_FOUND)
			status = 0;
	}
	return status == 0 ? buf_check(&w->reverted, "earlier runs", err) : status;
}

static int make_folder(struct rewriting *w, struct bytes meta, struct err *err)
{
	AUTO(buf_done) struct buf text;
	struct folder_file files[] = {
		{.name = "code.py"}, {.name = "meta.json"}, {.name = "outputs.json"}};
	struct bytes code = {(const uint8_t *)FORGOTTEN_CODE, strlen(FORGOTTEN_CODE)};
	struct bytes outputs = {(const uint8_t *)"[\n]\n", 4};
	buf_init(&text, META_MAX);
	int status = forget_meta(meta, &text, err);
	if (status == 0)
		status = repo_blob(w->repo, code, files[0].blob, err);
	if (status == 0)
		status =
			repo_blob(w->repo, (struct bytes){text.data, text.len}, files[1].blob, err);
	if (status == 0)
		status = repo_blob(w->repo, outputs, files[2].blob, err);
	return status == 0 ? repo_make_folder(w->repo, files, ARRAY_LEN(files), w->folder, err)
			   : status;
}

static int prepare(struct rewriting *w, struct err *err)
{
	AUTO(buf_done) struct buf meta;
	const struct again *a = find(w, w->f->node);
	buf_init(&meta, META_MAX);
	if (!a)
		return err_set(err, E_IO, "the node is not in the index");
	int status = read_meta(w, a, a->n, &meta, err);
	struct bytes text = {meta.data, meta.len};
	if (status == 0)
		status = find_reverted(w, a, text, err);
	if (status == 0)
		status = forget_files_find(w->repo, a->parent, a->was, &w->files, err);
	return status == 0 ? make_folder(w, text, err) : status;
}

/* ---- one commit ---- */

static void add_change(struct buf *changes, const struct path_change *change)
{
	(void)buf_add(changes, change, sizeof *change); /* the latch is read at the end */
}

/* The meta.json of the n-th run may tell that it amended the node. */
static int clean_meta(const struct rewriting *w, const struct again *a, uint64_t n,
	struct buf *changes, bool *ret_changed, struct err *err)
{
	AUTO(buf_done) struct buf meta, now;
	struct path_change change = {0};
	buf_init(&meta, META_MAX);
	buf_init(&now, META_MAX);
	*ret_changed = false;
	int status = read_meta(w, a, n, &meta, err);
	if (status == 0)
		status = forget_amending(
			(struct bytes){meta.data, meta.len}, w->f->msg_id, &now, ret_changed, err);
	if (status != 0 || !*ret_changed)
		return status;
	path_of(n, "meta.json", change.path);
	status = repo_blob(w->repo, (struct bytes){now.data, now.len}, change.id, err);
	add_change(changes, &change);
	return status;
}

/* Its own, and in its tree those of the runs before it. */
static int clean_metas(
	const struct rewriting *w, struct again *a, struct buf *changes, struct err *err)
{
	const struct again *parent = find(w, a->parent);
	bool changed = false, before_changed;
	a->before = a->amending = parent ? parent->amending : NULL;
	int status = clean_meta(w, a, a->n, changes, &changed, err);
	if (changed)
		a->amending = a;
	for (const struct again *at = a->before; status == 0 && at; at = at->before)
		status = clean_meta(w, a, at->n, changes, &before_changed, err);
	return status;
}

static int find_changes(
	const struct rewriting *w, struct again *a, struct buf *changes, struct err *err)
{
	struct path_change change = {.is_folder = true}, files;
	bool has_files = false;
	int status = 0;
	path_of(w->f->n, "", change.path);
	memcpy(change.id, w->folder, sizeof change.id);
	add_change(changes, &change);
	if (!is_the_node(w, a)) {
		(void)buf_add(changes, w->reverted.data, w->reverted.len); /* latched */
		status = forget_files_of(w->files, a->was, &files, &has_files, err);
		if (has_files)
			add_change(changes, &files);
		if (status == 0)
			status = clean_metas(w, a, changes, err);
	}
	return status == 0 ? buf_check(changes, "files of a node", err) : status;
}

static int find_message(
	const struct rewriting *w, const struct again *a, struct buf *ret_text, struct err *err)
{
	AUTO(buf_done) struct buf keep;
	struct commit_view view;
	int status = repo_read_commit(w->repo, a->was, &view, err);
	keep = view.message;
	return status == 0 ? forget_message((const char *)keep.data, a->was, is_the_node(w, a),
				     ret_text, err)
			   : status;
}

/* The node itself has its parent's tree, and the folder that says that it was: whatever else it
 * changed is not there. */
static int write_one(struct rewriting *w, struct again *a, struct err *err)
{
	AUTO(buf_done) struct buf changes, message;
	const struct again *parent = find(w, a->parent);
	buf_init(&changes, CHANGES_MAX);
	buf_init(&message, MESSAGE_MAX);
	int status = recorder_step(w->r, STEP_FORGET, err);
	if (status == 0)
		status = find_changes(w, a, &changes, err);
	if (status == 0)
		status = find_message(w, a, &message, err);
	if (status != 0)
		return status;
	const struct commit_again commit = {.node = a->was,
		.tree = is_the_node(w, a) ? a->parent : a->was,
		.parent = parent ? parent->now : a->parent,
		.changes = (const struct path_change *)(void *)changes.data,
		.n_changes = changes.len / sizeof(struct path_change),
		.message = (const char *)message.data};
	return repo_commit_again(w->repo, &commit, a->now, err);
}

/* ---- what leads to them ---- */

static bool rename_entry(void *data, const char *node, char ret_node[HISTORY_NODE_SIZE])
{
	const struct rewriting *w = data;
	const struct again *a = find(w, node);
	if (a)
		(void)snprintf(ret_node, HISTORY_NODE_SIZE, "%s", is_the_node(w, a) ? "" : a->now);
	return a != NULL;
}

static int move_beside(struct rewriting *w, struct err *err)
{
	static const char *const refs[] = {"refs/coppice/state", "refs/notes/coppice"};
	int status = 0;
	for (size_t i = 0; status == 0 && i < ARRAY_LEN(refs); i++)
		status = repo_rename_entries(w->repo, refs[i], rename_entry, w, err);
	return status;
}

static int move_branches(struct rewriting *w, struct err *err)
{
	AUTO(freep) struct branch_tip *tips = NULL;
	size_t n = 0;
	int status = repo_branches(w->repo, &tips, &n, err);
	for (size_t i = 0; status == 0 && i < n; i++) {
		const struct again *a = find(w, tips[i].node);
		if (!a)
			continue;
		status = recorder_step(w->r, STEP_FORGET, err);
		if (status == 0)
			status = repo_move_branch(w->repo, tips[i].name, a->was, a->now, err);
	}
	return status;
}

static int sync_all(const struct rewriting *w, struct err *err)
{
	int status = recorder_step(w->r, STEP_FORGET, err);
	if (status == 0 && syncfs(w->r->folder_fd) != 0)
		status = err_set(
			err, E_IO, "%s cannot be synced: %s", w->r->folder, strerror(errno));
	return status;
}

static void tell_now(const struct rewriting *w, char (*nodes)[HISTORY_NODE_SIZE], size_t n)
{
	for (size_t i = 0; i < n; i++) {
		const struct again *a = find(w, nodes[i]);
		if (a)
			memcpy(nodes[i], a->now, HISTORY_NODE_SIZE);
	}
}

static int tell(struct rewriting *w, struct err *err)
{
	struct again *a, *next;
	buf_reset(&w->f->rewritten);
	HASH_ITER (hh, w->all, a, next) {
		struct history_rewritten pair;
		memcpy(pair.was, a->was, sizeof pair.was);
		memcpy(pair.now, a->now, sizeof pair.now);
		(void)buf_add(&w->f->rewritten, &pair, sizeof pair); /* latched */
	}
	tell_now(w, w->f->same, w->f->n_same);
	tell_now(w, w->f->shown, w->f->n_shown);
	return buf_check(&w->f->rewritten, "the rewritten nodes", err);
}

static int write_all(struct rewriting *w, struct err *err)
{
	struct again *a, *next;
	int status = plan(w, err);
	if (status == 0)
		status = prepare(w, err);
	HASH_ITER (hh, w->all, a, next) {
		if (status == 0)
			status = write_one(w, a, err);
	}
	if (status == 0)
		status = tell(w, err);
	if (status == 0)
		status = sync_all(w, err);
	if (status == 0)
		status = move_beside(w, err);
	return status == 0 ? move_branches(w, err) : status;
}

int forget_rewrite(
	struct recorder *r, struct open_repo *repo, struct forgetting *f, struct err *err)
{
	struct rewriting w = {.r = r, .repo = &repo->repo, .f = f};
	struct again *a, *next;
	f->n_same = f->n_shown = 0;
	buf_init(&w.reverted, CHANGES_MAX);
	int status = write_all(&w, err);
	HASH_ITER (hh, w.all, a, next) {
		HASH_DEL(w.all, a);
		free(a);
	}
	forget_files_free(w.files);
	buf_done(&w.reverted);
	return status;
}
