#include "history/files_walk.h"

#include <stdio.h>
#include <string.h>
#include <git2.h>

#include "gateway/base/hash.h"
#include "history/change.h"
#include "history/files_tree.h"

/* What an entry's path may have come to beyond what a guest may say: escapes, the marker. */
#define PATH_ROOM (2 * CHANGE_PATH_MAX)
#define DEPTH_MAX (CHANGE_DEPTH_MAX + 4)

static int git_fail(int code, const char *what, struct err *err)
{
	const git_error *e = git_error_last();
	const char *why = e && e->message ? e->message : "no reason given";
	return err_set(err, code == GIT_ENOTFOUND ? E_NOT_FOUND : E_IO, "git: %s: %s", what, why);
}

static void tree_freep(git_tree **tree)
{
	git_tree_free(*tree);
}

static void odb_freep(git_odb **odb)
{
	git_odb_free(*odb);
}

static void object_freep(git_odb_object **object)
{
	git_odb_object_free(*object);
}

static void commit_freep(git_commit **commit)
{
	git_commit_free(*commit);
}

static void walk_freep(git_revwalk **walk)
{
	git_revwalk_free(*walk);
}

static void diff_freep(git_diff **diff)
{
	git_diff_free(*diff);
}

/* ---- one blob ---- */

static int look(git_odb *odb, const git_oid *id, uint64_t *ret_bytes, struct buf *text,
	struct pointer *ret_pointer, bool *ret_is_pointer)
{
	AUTO(object_freep) git_odb_object *object = NULL;
	size_t size = 0;
	git_object_t type;
	*ret_is_pointer = false;
	int code = git_odb_read_header(&size, &type, odb, id);
	*ret_bytes = size;
	if (code != 0 || !pointer_may_be(size))
		return code;
	code = git_odb_read(&object, odb, id);
	if (code != 0)
		return code;
	buf_reset(text);
	if (buf_add(text, git_odb_object_data(object), git_odb_object_size(object)) != 0)
		return GIT_ERROR;
	*ret_is_pointer = pointer_read((struct bytes){text->data, text->len}, ret_pointer);
	if (*ret_is_pointer)
		*ret_bytes = ret_pointer->bytes;
	return 0;
}

int files_look(struct repo *repo, const char *blob, uint64_t *ret_bytes, struct buf *ret_text,
	struct pointer *ret_pointer, bool *ret_is_pointer, struct err *err)
{
	AUTO(odb_freep) git_odb *odb = NULL;
	git_oid id;
	buf_init(ret_text, POINTER_MAX);
	int code = git_oid_fromstr(&id, blob);
	if (code == 0)
		code = git_repository_odb(&odb, repo->git);
	if (code == 0)
		code = look(odb, &id, ret_bytes, ret_text, ret_pointer, ret_is_pointer);
	return code == 0 ? 0 : git_fail(code, "a file cannot be read", err);
}

/* ---- one folder ---- */

struct walking {
	git_repository *git;
	git_odb *odb;
	int (*on_entry)(void *data, const struct files_entry *entry, struct err *err);
	void *data;
	struct err *err;
	struct buf path, text;
};

/* The marker stands for the folder that it is in. */
static bool cut_marker(char *path, unsigned *mode)
{
	char *slash = strrchr(path, '/');
	if (strcmp(slash ? slash + 1 : path, EMPTY_FOLDER) != 0)
		return false;
	*(slash ? slash : path) = '\0';
	*mode = MODE_FOLDER;
	return true;
}

static int visit_blob(struct walking *w, const git_tree_entry *e)
{
	struct pointer pointer;
	struct files_entry entry = {
		.path = (const char *)w->path.data, .mode = (unsigned)git_tree_entry_filemode(e)};
	bool is_pointer = false;
	git_oid_tostr(entry.blob, sizeof entry.blob, git_tree_entry_id(e));
	if (cut_marker((char *)w->path.data, &entry.mode))
		return *entry.path ? w->on_entry(w->data, &entry, w->err) : 0;
	int code =
		look(w->odb, git_tree_entry_id(e), &entry.bytes, &w->text, &pointer, &is_pointer);
	if (code != 0)
		return git_fail(code, "a file cannot be read", w->err);
	if (is_pointer)
		entry.pointer = &pointer;
	if (is_pointer && pointer.is_lost)
		entry.mode = pointer.mode;
	return w->on_entry(w->data, &entry, w->err);
}

/* Paths come from trees that were made of checked ones, but not necessarily by us. */
static int walk(struct walking *w, const git_oid *id, unsigned depth)
{
	AUTO(tree_freep) git_tree *tree = NULL;
	size_t before = w->path.len;
	int code = git_tree_lookup(&tree, w->git, id);
	int status = code == 0 ? 0 : git_fail(code, "a folder cannot be read", w->err);
	for (size_t i = 0; status == 0 && i < git_tree_entrycount(tree); i++) {
		const git_tree_entry *e = git_tree_entry_byindex(tree, i);
		w->path.len = before;
		if (before > 0)
			(void)buf_add(&w->path, "/", 1); /* latched, as below */
		(void)buf_add_text(&w->path, git_tree_entry_name(e));
		status = buf_check(&w->path, "a path", w->err);
		if (status != 0)
			break;
		if (git_tree_entry_type(e) == GIT_OBJECT_BLOB)
			status = visit_blob(w, e);
		else if (git_tree_entry_type(e) == GIT_OBJECT_TREE && depth < DEPTH_MAX)
			status = walk(w, git_tree_entry_id(e), depth + 1);
	}
	w->path.len = before;
	return status;
}

int files_each(struct repo *repo, const char *tree,
	int (*on_entry)(void *data, const struct files_entry *entry, struct err *err), void *data,
	struct err *err)
{
	AUTO(odb_freep) git_odb *odb = NULL;
	struct walking w = {.git = repo->git, .on_entry = on_entry, .data = data, .err = err};
	git_oid id;
	int code = git_oid_fromstr(&id, tree);
	if (code == 0)
		code = git_repository_odb(&odb, repo->git);
	if (code != 0)
		return git_fail(code, "a folder cannot be read", err);
	w.odb = odb;
	buf_init(&w.path, PATH_ROOM);
	buf_init(&w.text, POINTER_MAX);
	int status = walk(&w, &id, 0);
	buf_done(&w.path);
	buf_done(&w.text);
	return status;
}

/* ---- two folders ---- */

static int find_tree(struct repo *repo, const char *text, git_tree **ret)
{
	git_oid id;
	*ret = NULL;
	if (!text[0])
		return 0;
	int code = git_oid_fromstr(&id, text);
	return code == 0 ? git_tree_lookup(ret, repo->git, &id) : code;
}

/* A folder of that path, whatever is in it. */
static bool has_folder(git_tree *tree, const char *path)
{
	git_tree_entry *e = NULL;
	bool there = tree && git_tree_entry_bypath(&e, tree, path) == 0 &&
		     git_tree_entry_type(e) == GIT_OBJECT_TREE;
	git_tree_entry_free(e);
	return there;
}

/* False: it is nothing that a person would call a change. */
static bool make_delta(
	const git_diff_delta *d, git_tree *from, git_tree *to, char *path, struct files_delta *ret)
{
	bool is_new = d->status == GIT_DELTA_ADDED, is_gone = d->status == GIT_DELTA_DELETED;
	unsigned folder = 0;
	*ret = (struct files_delta){.path = path,
		.change = is_new    ? FILES_CREATED
			  : is_gone ? FILES_DELETED
				    : FILES_MODIFIED,
		.from_mode = is_new ? 0 : d->old_file.mode,
		.to_mode = is_gone ? 0 : d->new_file.mode};
	if (!is_new)
		git_oid_tostr(ret->from, sizeof ret->from, &d->old_file.id);
	if (!is_gone)
		git_oid_tostr(ret->to, sizeof ret->to, &d->new_file.id);
	if (!cut_marker(path, &folder))
		return true;
	if (!*path || has_folder(is_new ? from : to, path))
		return false;
	ret->from_mode = is_new ? 0 : folder;
	ret->to_mode = is_gone ? 0 : folder;
	ret->from[0] = ret->to[0] = '\0';
	return true;
}

int files_diff(struct repo *repo, const char *from, const char *to,
	int (*on_delta)(void *data, const struct files_delta *delta, struct err *err), void *data,
	struct err *err)
{
	AUTO(tree_freep) git_tree *old = NULL, *new = NULL;
	AUTO(diff_freep) git_diff *diff = NULL;
	git_diff_options options;
	int status = 0;
	if (strcmp(from, to) == 0)
		return 0;
	(void)git_diff_options_init(&options, GIT_DIFF_OPTIONS_VERSION); /* a version it knows */
	options.flags = GIT_DIFF_INCLUDE_TYPECHANGE | GIT_DIFF_SKIP_BINARY_CHECK;
	int code = find_tree(repo, from, &old);
	if (code == 0)
		code = find_tree(repo, to, &new);
	if (code == 0)
		code = git_diff_tree_to_tree(&diff, repo->git, old, new, &options);
	if (code != 0)
		return git_fail(code, "two folders cannot be compared", err);
	for (size_t i = 0; status == 0 && i < git_diff_num_deltas(diff); i++) {
		const git_diff_delta *d = git_diff_get_delta(diff, i);
		bool is_gone = d->status == GIT_DELTA_DELETED;
		AUTO(freep) char *path = xstrdup(is_gone ? d->old_file.path : d->new_file.path);
		struct files_delta delta;
		if (make_delta(d, old, new, path, &delta))
			status = on_delta(data, &delta, err);
	}
	return status;
}

/* ---- all nodes ---- */

struct seen {
	git_oid id;
	UT_hash_handle hh;
};

struct marking {
	git_repository *git;
	git_odb *odb;
	struct seen *seen;
	void (*on_chunk)(void *data, const char *name);
	void *data;
	struct buf text;
};

static bool see(struct marking *m, const git_oid *id)
{
	struct seen *s = NULL;
	HASH_FIND(hh, m->seen, id->id, sizeof id->id, s);
	if (s)
		return false;
	s = xcalloc(1, sizeof *s);
	s->id = *id;
	HASH_ADD(hh, m->seen, id.id, sizeof s->id.id, s);
	return true;
}

static int mark_blob(struct marking *m, const git_oid *id)
{
	struct pointer pointer;
	bool is_pointer = false;
	uint64_t bytes;
	char name[CHUNK_NAME_LEN + 1];
	int code = look(m->odb, id, &bytes, &m->text, &pointer, &is_pointer);
	for (size_t i = 0; code == 0 && is_pointer && i < pointer.n; i++) {
		(void)copy_text(name, sizeof name,
			(const char *)pointer.chunks.data + i * (CHUNK_NAME_LEN + 1),
			CHUNK_NAME_LEN);
		m->on_chunk(m->data, name);
	}
	return code;
}

static int mark_tree(struct marking *m, const git_oid *id, unsigned depth)
{
	AUTO(tree_freep) git_tree *tree = NULL;
	int code = git_tree_lookup(&tree, m->git, id);
	for (size_t i = 0; code == 0 && i < git_tree_entrycount(tree); i++) {
		const git_tree_entry *e = git_tree_entry_byindex(tree, i);
		if (!see(m, git_tree_entry_id(e)))
			continue;
		if (git_tree_entry_type(e) == GIT_OBJECT_BLOB)
			code = mark_blob(m, git_tree_entry_id(e));
		else if (git_tree_entry_type(e) == GIT_OBJECT_TREE && depth < DEPTH_MAX)
			code = mark_tree(m, git_tree_entry_id(e), depth + 1);
	}
	return code;
}

static int mark_commit(struct marking *m, const git_oid *id)
{
	AUTO(commit_freep) git_commit *commit = NULL;
	AUTO(tree_freep) git_tree *tree = NULL;
	int code = git_commit_lookup(&commit, m->git, id);
	if (code == 0)
		code = git_commit_tree(&tree, commit);
	if (code != 0)
		return code;
	const git_tree_entry *e = git_tree_entry_byname(tree, FILES_FOLDER);
	if (!e || git_tree_entry_type(e) != GIT_OBJECT_TREE || !see(m, git_tree_entry_id(e)))
		return 0;
	return mark_tree(m, git_tree_entry_id(e), 0);
}

static int mark_all(struct marking *m)
{
	AUTO(walk_freep) git_revwalk *walk_all = NULL;
	git_oid id;
	int code = git_revwalk_new(&walk_all, m->git);
	if (code == 0)
		code = git_revwalk_push_glob(walk_all, "refs/heads/*");
	while (code == 0 && (code = git_revwalk_next(&id, walk_all)) == 0)
		code = mark_commit(m, &id);
	return code == GIT_ITEROVER ? 0 : code;
}

int files_each_chunk(struct repo *repo, void (*on_chunk)(void *data, const char *name), void *data,
	struct err *err)
{
	AUTO(odb_freep) git_odb *odb = NULL;
	struct marking m = {.git = repo->git, .on_chunk = on_chunk, .data = data};
	struct seen *s, *next;
	int code = git_repository_odb(&odb, repo->git);
	if (code != 0)
		return git_fail(code, "a history cannot be read", err);
	m.odb = odb;
	buf_init(&m.text, POINTER_MAX);
	code = mark_all(&m);
	HASH_ITER (hh, m.seen, s, next) {
		HASH_DEL(m.seen, s);
		free(s);
	}
	buf_done(&m.text);
	return code == 0 ? 0 : git_fail(code, "a history cannot be read", err);
}
