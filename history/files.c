#include "history/files.h"

#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "history/chunk.h"
#include "history/files_tree.h"
#include "history/files_walk.h"
#include "history/folder.h"

#define LINK_MAX_BYTES 4095u /* git's fsck takes no longer one */
#define SUMMARY_WIDTH  72u

struct making {
	struct recorder *r;
	struct open_repo *repo;
	char repository[PATH_MAX];
	struct change change;
	struct files_op *ops;
	size_t *entries; /* of which entry an op is; SIZE_MAX: of a removal */
	size_t n;
	struct buf names;
	struct files_made *made;
};

/* ---- contents ---- */

static int put_text(struct making *m, const struct buf *text, struct files_op *op, struct err *err)
{
	int status = buf_check(text, "a pointer", err);
	return status == 0 ? repo_blob(&m->repo->repo, (struct bytes){text->data, text->len},
				     op->blob, err)
			   : status;
}

static int put_lost(
	struct making *m, const struct change_entry *e, struct files_op *op, struct err *err)
{
	AUTO(buf_done) struct buf text;
	buf_init(&text, POINTER_MAX);
	pointer_add_lost(&text, e->mode, e->bytes, e->lost);
	op->mode = MODE_FILE;
	return put_text(m, &text, op, err);
}

/* It is named from now on. */
static void let_go(const struct making *m, const char *digits, size_t len)
{
	char name[CHUNK_NAME_LEN + 1];
	(void)copy_text(name, sizeof name, digits, len); /* of that length at most */
	pins_drop(m->r->pins, m->repo->id, name);
}

static int put_chunks(
	struct making *m, struct change_entry *e, struct files_op *op, struct err *err)
{
	AUTO(buf_done) struct buf text;
	buf_init(&text, POINTER_MAX);
	for (size_t i = 0; i < e->n_chunks && !e->lost; i++) {
		char name[CHUNK_NAME_LEN + 1];
		(void)copy_text(name, sizeof name, e->chunks + i * CHUNK_NAME_LEN, CHUNK_NAME_LEN);
		if (!chunk_touch(m->repository, name))
			e->lost = "not kept: its content did not come";
	}
	if (e->lost)
		return put_lost(m, e, op, err);
	for (size_t i = 0; i < e->n_chunks; i++)
		let_go(m, e->chunks + i * CHUNK_NAME_LEN, CHUNK_NAME_LEN);
	pointer_add(&text, e->bytes, e->chunks, e->n_chunks);
	return put_text(m, &text, op, err);
}

static int put_blob(struct making *m, struct change_entry *e, struct files_op *op, struct err *err)
{
	uint64_t bytes = 0;
	if (!files_has_blob(&m->repo->repo, e->blob, &bytes))
		e->lost = "not kept: its content did not come";
	else if (e->mode == MODE_LINK && (bytes == 0 || bytes > LINK_MAX_BYTES))
		e->lost = "not kept: no symbolic link has a target of that length";
	else
		e->bytes = bytes;
	if (e->lost)
		return put_lost(m, e, op, err);
	(void)snprintf(op->blob, sizeof op->blob, "%s", e->blob);
	let_go(m, e->blob, strlen(e->blob));
	/* It is a file of its own already. */
	repo_spill(&m->repo->repo);
	return 0;
}

static int put_content(
	struct making *m, struct change_entry *e, struct files_op *op, struct err *err)
{
	op->kind = e->mode == MODE_FOLDER ? FILES_FOLDER_EMPTY : FILES_PUT;
	op->mode = e->mode;
	if (e->mode == MODE_FOLDER)
		return 0;
	if (e->lost)
		return put_lost(m, e, op, err);
	return e->chunks ? put_chunks(m, e, op, err) : put_blob(m, e, op, err);
}

/* ---- ops ---- */

static int add_op(
	struct making *m, const char *path, size_t entry, struct files_op **ret, struct err *err)
{
	const char *name = NULL;
	int status = files_name(&m->repo->repo, path, &m->names, &name, err);
	*ret = NULL;
	if (status != 0)
		return status;
	if (!name) {
		change_note(&m->change, path, "refused: git takes no such name");
		return 0;
	}
	m->entries[m->n] = entry;
	*ret = &m->ops[m->n];
	**ret = (struct files_op){.path = name, .entry = m->n++};
	return 0;
}

static int add_changed(struct making *m, struct err *err)
{
	struct change *c = &m->change;
	int status = 0;
	for (size_t i = 0; status == 0 && i < c->n_changed; i++) {
		struct change_entry *e = &c->changed[i];
		struct files_op *op;
		status = add_op(m, e->path, i, &op, err);
		e->path = op ? op->path : NULL;
		if (op && status == 0)
			status = put_content(m, e, op, err);
	}
	return status;
}

static int add_removed(struct making *m, struct err *err)
{
	struct change *c = &m->change;
	size_t n = 0;
	int status = 0;
	for (size_t i = 0; status == 0 && i < c->n_removed; i++) {
		struct files_op *op;
		status = add_op(m, c->removed[i], SIZE_MAX, &op, err);
		if (op)
			c->removed[n++] = op->path;
	}
	if (status == 0)
		c->n_removed = n;
	return status;
}

/* Entries that became nothing are not told as entries. */
static void drop_refused(struct making *m)
{
	struct change *c = &m->change;
	size_t n = 0;
	for (size_t i = 0; i < m->n; i++) {
		size_t entry = m->entries[m->ops[i].entry];
		if (!m->ops[i].refused || entry == SIZE_MAX)
			continue;
		change_note(c, m->ops[i].path,
			"refused: that path is another file of the same change, or lies in one");
		c->changed[entry].path = NULL;
	}
	for (size_t i = 0; i < c->n_changed; i++)
		if (c->changed[i].path)
			c->changed[n++] = c->changed[i];
	c->n_changed = n;
}

/* ---- what it came to ---- */

/* Names as long as there is room, then how many more. */
static int tell_delta(void *data, const struct files_delta *delta, struct err *err)
{
	struct files_made *made = data;
	size_t used = strlen(made->summary), len = strlen(delta->path);
	(void)err;
	made->changed++;
	if (used > 3 && strcmp(made->summary + used - 3, "...") == 0)
		return 0;
	if (used + len + 2 < SUMMARY_WIDTH)
		(void)snprintf(made->summary + used, sizeof made->summary - used, "%s%s",
			made->changed == 1 ? "files: " : ", ", delta->path);
	else
		(void)snprintf(made->summary + used, sizeof made->summary - used, "%s ...",
			used ? "," : "files:");
	return 0;
}

static int room_for_names(struct making *m, struct err *err)
{
	const struct change *c = &m->change;
	size_t room = 64;
	for (size_t i = 0; i < c->n_changed; i++)
		room += 2 * strlen(c->changed[i].path) + 1;
	for (size_t i = 0; i < c->n_removed; i++)
		room += 2 * strlen(c->removed[i]) + 1;
	buf_init(&m->names, room);
	return buf_reserve(&m->names, room - 32) == 0
		       ? 0
		       : err_set(err, E_NOMEM, "names of files: out of memory");
}

static int make(struct making *m, const char *parent, struct err *err)
{
	struct change *c = &m->change;
	char base[HISTORY_NODE_SIZE];
	size_t n = c->n_changed + c->n_removed;
	m->ops = calloc(n + 1, sizeof *m->ops);
	m->entries = calloc(n + 1, sizeof *m->entries);
	if (!m->ops || !m->entries)
		return err_set(err, E_NOMEM, "files of a node: out of memory");
	int status = room_for_names(m, err);
	if (status == 0)
		status = files_of(&m->repo->repo, parent, base, err);
	if (status == 0)
		status = add_changed(m, err);
	if (status == 0)
		status = add_removed(m, err);
	if (status == 0)
		status = files_apply(
			&m->repo->repo, c->full ? "" : base, m->ops, m->n, m->made->tree, err);
	if (status == 0)
		status = files_diff(&m->repo->repo, base, m->made->tree, tell_delta, m->made, err);
	if (status != 0)
		return status;
	drop_refused(m);
	return change_write(c, &m->made->json, err);
}

int files_make(struct recorder *r, struct open_repo *repo, const char *parent, struct bytes change,
	struct files_made *ret, struct err *err)
{
	struct making m = {.r = r, .repo = repo, .made = ret};
	*ret = (struct files_made){.changed = 0};
	buf_init(&ret->json, FILES_JSON_MAX);
	int status = change_read(change, &m.change, err);
	if (status == 0 &&
		!folder_repository(r->folder, repo->id, m.repository, sizeof m.repository))
		status = err_set(err, E_IO, "the path of a history is too long");
	if (status == 0)
		status = make(&m, parent, err);
	change_done(&m.change);
	buf_done(&m.names);
	free(m.ops);
	free(m.entries);
	return status;
}

void files_made_done(struct files_made *made)
{
	buf_done(&made->json);
}
