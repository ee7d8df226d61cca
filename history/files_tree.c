#include "history/files_tree.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <git2.h>
#include <git2/sys/path.h>

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

static void builder_freep(git_treebuilder **builder)
{
	git_treebuilder_free(*builder);
}

static void commit_freep(git_commit **commit)
{
	git_commit_free(*commit);
}

/* ---- names ---- */

/* What git looks into by itself in a clone, in any spelling that some system takes for it. */
static bool steers(const char *name, size_t len)
{
	static const char mailmap[] = ".mailmap";
	return git_path_is_gitfile(name, len, GIT_PATH_GITFILE_GITMODULES, GIT_PATH_FS_GENERIC) >
		       0 ||
	       git_path_is_gitfile(name, len, GIT_PATH_GITFILE_GITATTRIBUTES, GIT_PATH_FS_GENERIC) >
		       0 ||
	       git_path_is_gitfile(name, len, GIT_PATH_GITFILE_GITIGNORE, GIT_PATH_FS_GENERIC) >
		       0 ||
	       (len == sizeof mailmap - 1 && strncasecmp(name, mailmap, len) == 0);
}

/* What HFS takes for `.git` it takes, with `modules` behind it, for `.gitmodules`: libgit2 tells
 * of the one only where a repository is set up for it. */
static bool is_hfs_git(const char *name)
{
	char longer[CHANGE_NAME_MAX + 16];
	int n = snprintf(longer, sizeof longer, "%smodules", name);
	return n > 0 && (size_t)n < sizeof longer &&
	       git_path_is_gitfile(
		       longer, (size_t)n, GIT_PATH_GITFILE_GITMODULES, GIT_PATH_FS_HFS) > 0;
}

/* A builder of a tree that is never written knows which names git takes. */
static bool is_refused(git_treebuilder *scratch, const char *name, size_t len)
{
	static const git_oid any = {{1}};
	char text[CHANGE_NAME_MAX + 1];
	if (!copy_text(text, sizeof text, name, len) || is_hfs_git(text))
		return true;
	bool fine = git_treebuilder_insert(NULL, scratch, text, &any, GIT_FILEMODE_BLOB) == 0;
	(void)git_treebuilder_clear(scratch); /* cannot fail */
	return !fine;
}

/* One escape more makes a name two bytes longer. */
static bool add_name(struct buf *memory, const char *name, size_t len)
{
	if (!steers(name, len)) {
		(void)buf_add(memory, name, len); /* latched, as below */
		return true;
	}
	(void)buf_addf(memory, "%%%02X", (unsigned)(uint8_t)name[0]);
	(void)buf_add(memory, name + 1, len - 1);
	return len + 2 <= CHANGE_NAME_MAX;
}

/* Without the text that it adds if a name is refused. */
static bool add_path(git_treebuilder *scratch, const char *path, struct buf *memory)
{
	for (const char *at = path;;) {
		size_t len = strcspn(at, "/");
		if (is_refused(scratch, at, len) || !add_name(memory, at, len))
			return false;
		(void)buf_add(memory, at + len, 1); /* the slash or the NUL; latched */
		if (!at[len])
			return true;
		at += len + 1;
	}
}

int files_name(
	struct repo *repo, const char *path, struct buf *memory, const char **ret, struct err *err)
{
	AUTO(builder_freep) git_treebuilder *scratch = NULL;
	size_t before = memory->len;
	int code = git_treebuilder_new(&scratch, repo->git, NULL);
	if (code != 0)
		return git_fail(code, "a folder cannot be written", err);
	bool fine = add_path(scratch, path, memory);
	int status = buf_check(memory, "names of files", err);
	*ret = fine && status == 0 ? (const char *)memory->data + before : NULL;
	if (!fine)
		memory->len = before;
	return status;
}

/* ---- what is there ---- */

int files_of(struct repo *repo, const char *node, char ret_tree[HISTORY_NODE_SIZE], struct err *err)
{
	AUTO(commit_freep) git_commit *commit = NULL;
	AUTO(tree_freep) git_tree *tree = NULL;
	git_oid id;
	ret_tree[0] = '\0';
	if (!node[0])
		return 0;
	int code = git_oid_fromstr(&id, node);
	if (code == 0)
		code = git_commit_lookup(&commit, repo->git, &id);
	if (code == 0)
		code = git_commit_tree(&tree, commit);
	if (code != 0)
		return git_fail(code, "a node cannot be read", err);
	const git_tree_entry *e = git_tree_entry_byname(tree, FILES_FOLDER);
	if (e && git_tree_entry_type(e) == GIT_OBJECT_TREE)
		git_oid_tostr(ret_tree, HISTORY_NODE_SIZE, git_tree_entry_id(e));
	return 0;
}

bool files_has_blob(struct repo *repo, const char *blob, uint64_t *ret_bytes)
{
	git_odb *odb = NULL;
	git_oid id;
	size_t size = 0;
	git_object_t type = GIT_OBJECT_INVALID;
	int code = git_oid_fromstr(&id, blob);
	if (code == 0)
		code = git_repository_odb(&odb, repo->git);
	if (code == 0)
		code = git_odb_read_header(&size, &type, odb, &id);
	git_odb_free(odb);
	*ret_bytes = size;
	return code == 0 && type == GIT_OBJECT_BLOB;
}

/* ---- a folder of ops ---- */

struct building {
	struct repo *repo;
	git_oid marker; /* the empty blob of an empty folder, written if */
	bool marks;
};

/* A slash comes before all that a name may hold, so that a folder's ops lie together. */
static int by_path(const void *a, const void *b)
{
	const struct files_op *x = a, *y = b;
	const uint8_t *p = (const uint8_t *)x->path, *q = (const uint8_t *)y->path;
	while (*p && *p == *q)
		p++, q++;
	if (*p == *q)
		return (int)x->kind - (int)y->kind;
	int s = *p == '/' ? 1 : *p, t = *q == '/' ? 1 : *q;
	return s - t;
}

/* The ops of one name in a folder: its own, in order of kind, then those of what lies in it. */
struct group {
	const struct files_op *put;
	bool removes, empties;
	struct files_op *deeper;
	size_t n_deeper, n;
	char name[CHANGE_NAME_MAX + 1];
};

static bool is_of(const struct files_op *op, size_t at, const char *name, size_t len)
{
	const char *rest = op->path + at;
	return strncmp(rest, name, len) == 0 && (rest[len] == '\0' || rest[len] == '/');
}

/* They come in order of kind; of two files the first counts, and an empty folder before a file. */
static void take_own(struct group *g, struct files_op *op)
{
	g->removes = g->removes || op->kind == FILES_REMOVE;
	g->empties = g->empties || op->kind == FILES_FOLDER_EMPTY;
	if (op->kind == FILES_PUT && (g->put || g->empties))
		op->refused = true;
	else if (op->kind == FILES_PUT)
		g->put = op;
}

static void find_group(struct files_op *ops, size_t n, size_t at, struct group *g)
{
	const char *name = ops[0].path + at;
	size_t len = strcspn(name, "/");
	*g = (struct group){.n = 0};
	(void)copy_text(g->name, sizeof g->name, name, len); /* fits: files_name() */
	while (g->n < n && is_of(&ops[g->n], at, name, len)) {
		struct files_op *op = &ops[g->n++];
		if (op->path[at + len] == '\0') {
			take_own(g, op);
			continue;
		}
		if (!g->deeper)
			g->deeper = op;
		g->n_deeper++;
	}
}

/* A folder with nothing in it but the marker. */
static int mark(struct building *b, git_oid *ret)
{
	AUTO(builder_freep) git_treebuilder *builder = NULL;
	int code = git_treebuilder_new(&builder, b->repo->git, NULL);
	if (code == 0)
		code = git_treebuilder_insert(
			NULL, builder, EMPTY_FOLDER, &b->marker, GIT_FILEMODE_BLOB);
	b->marks = true;
	return code == 0 ? git_treebuilder_write(ret, builder) : code;
}

static int build(struct building *b, git_tree *base, struct files_op *ops, size_t n, size_t at,
	git_oid *ret, bool *ret_empty);

static int put_folder(struct building *b, git_treebuilder *builder, struct group *g, size_t at)
{
	AUTO(tree_freep) git_tree *sub = NULL;
	const git_tree_entry *e = git_treebuilder_get(builder, g->name);
	bool stays = e && !g->removes && (!g->empties || g->n_deeper > 0);
	git_oid id;
	bool empty = true;
	int code = 0;
	if (stays && git_tree_entry_type(e) == GIT_OBJECT_TREE)
		code = git_tree_lookup(&sub, b->repo->git, git_tree_entry_id(e));
	if (code == 0)
		code = build(b, sub, g->deeper, g->n_deeper, at + strlen(g->name) + 1, &id, &empty);
	if (code == 0 && empty && g->empties) {
		code = mark(b, &id);
		empty = false;
	}
	if (code != 0)
		return code;
	if (!empty)
		return git_treebuilder_insert(NULL, builder, g->name, &id, GIT_FILEMODE_TREE);
	/* What was removed below a file leaves the file. */
	bool gone = e && (g->removes || git_tree_entry_type(e) == GIT_OBJECT_TREE);
	return gone ? git_treebuilder_remove(builder, g->name) : 0;
}

static int put_group(struct building *b, git_treebuilder *builder, struct group *g, size_t at)
{
	git_oid id;
	if (!g->put)
		return put_folder(b, builder, g, at);
	for (size_t i = 0; i < g->n_deeper; i++)
		g->deeper[i].refused = g->deeper[i].kind != FILES_REMOVE;
	int code = git_oid_fromstr(&id, g->put->blob);
	return code == 0 ? git_treebuilder_insert(
				   NULL, builder, g->name, &id, (git_filemode_t)g->put->mode)
			 : code;
}

/* An empty folder is one as long as nothing else is in it. */
static int drop_marker(git_treebuilder *builder)
{
	bool marked = git_treebuilder_get(builder, EMPTY_FOLDER) != NULL;
	return marked && git_treebuilder_entrycount(builder) > 1
		       ? git_treebuilder_remove(builder, EMPTY_FOLDER)
		       : 0;
}

/* No deeper than paths are. */
static int build(struct building *b, git_tree *base, struct files_op *ops, size_t n, size_t at,
	git_oid *ret, bool *ret_empty)
{
	AUTO(builder_freep) git_treebuilder *builder = NULL;
	struct group g;
	*ret_empty = !base;
	if (n == 0 && !base)
		return 0;
	int code = git_treebuilder_new(&builder, b->repo->git, base);
	for (size_t i = 0; code == 0 && i < n; i += g.n) {
		find_group(ops + i, n - i, at, &g);
		code = put_group(b, builder, &g, at);
	}
	if (code == 0)
		code = drop_marker(builder);
	if (code != 0)
		return code;
	*ret_empty = git_treebuilder_entrycount(builder) == 0;
	return *ret_empty ? 0 : git_treebuilder_write(ret, builder);
}

int files_apply(struct repo *repo, const char *base, struct files_op *ops, size_t n,
	char ret_tree[HISTORY_NODE_SIZE], struct err *err)
{
	AUTO(tree_freep) git_tree *tree = NULL;
	struct building b = {.repo = repo};
	char marker[HISTORY_NODE_SIZE];
	bool empty = true;
	git_oid id;
	int code = git_odb_hash(&b.marker, "", 0, GIT_OBJECT_BLOB);
	if (code == 0 && base[0]) {
		code = git_oid_fromstr(&id, base);
		if (code == 0)
			code = git_tree_lookup(&tree, repo->git, &id);
	}
	if (n > 0)
		qsort(ops, n, sizeof *ops, by_path);
	if (code == 0)
		code = build(&b, tree, ops, n, 0, &id, &empty);
	/* That it is known is one thing, that nothing is in it another. */
	if (code == 0 && empty)
		code = mark(&b, &id);
	if (code != 0)
		return git_fail(code, "the files of a node cannot be written", err);
	git_oid_tostr(ret_tree, HISTORY_NODE_SIZE, &id);
	return b.marks ? repo_blob(repo, (struct bytes){(const uint8_t *)"", 0}, marker, err) : 0;
}

bool files_find(
	struct repo *repo, const char *tree, const char *path, char ret_blob[HISTORY_NODE_SIZE])
{
	AUTO(tree_freep) git_tree *folder = NULL;
	git_tree_entry *e = NULL;
	git_oid id;
	bool there = git_oid_fromstr(&id, tree) == 0 &&
		     git_tree_lookup(&folder, repo->git, &id) == 0 &&
		     git_tree_entry_bypath(&e, folder, path) == 0 &&
		     git_tree_entry_type(e) == GIT_OBJECT_BLOB;
	if (there)
		git_oid_tostr(ret_blob, HISTORY_NODE_SIZE, git_tree_entry_id(e));
	git_tree_entry_free(e);
	return there;
}

/* ---- what is to be named soon ---- */

static int hold(struct repo *repo, git_treebuilder *builder)
{
	git_reference *ref = NULL;
	git_oid id;
	int code = git_treebuilder_write(&id, builder);
	if (code == 0)
		code = git_reference_create(&ref, repo->git, HELD_REF, &id, 1, "held");
	git_reference_free(ref);
	return code;
}

int files_hold(struct repo *repo, const struct buf *names, struct err *err)
{
	AUTO(builder_freep) git_treebuilder *builder = NULL;
	int code = git_treebuilder_new(&builder, repo->git, NULL);
	for (size_t i = 0; code == 0 && i < names->len / HISTORY_NODE_SIZE; i++) {
		const char *name = (const char *)names->data + i * HISTORY_NODE_SIZE;
		uint64_t bytes;
		git_oid id;
		if (!files_has_blob(repo, name, &bytes))
			continue;
		code = git_oid_fromstr(&id, name);
		if (code == 0)
			code = git_treebuilder_insert(NULL, builder, name, &id, GIT_FILEMODE_BLOB);
	}
	if (code == 0)
		code = hold(repo, builder);
	return code == 0 ? 0 : git_fail(code, "contents cannot be held", err);
}

int files_let_go(struct repo *repo, struct err *err)
{
	int code = git_reference_remove(repo->git, HELD_REF);
	return code == 0 || code == GIT_ENOTFOUND
		       ? 0
		       : git_fail(code, "contents cannot be let go", err);
}
