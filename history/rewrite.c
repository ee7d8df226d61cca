#include "history/rewrite.h"

#include <ctype.h>
#include <string.h>
#include <git2.h>

#define ENTRY_PATH_MAX 512

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

static void commit_freep(git_commit **commit)
{
	git_commit_free(*commit);
}

static void builder_freep(git_treebuilder **builder)
{
	git_treebuilder_free(*builder);
}

static void index_freep(git_index **index)
{
	git_index_free(*index);
}

static void ref_freep(git_reference **ref)
{
	git_reference_free(*ref);
}

static int find_commit(git_repository *git, const char *node, git_commit **ret)
{
	git_oid id;
	int code = git_oid_fromstr(&id, node);
	return code == 0 ? git_commit_lookup(ret, git, &id) : code;
}

static int find_tree(git_repository *git, const char *node, git_tree **ret)
{
	AUTO(commit_freep) git_commit *commit = NULL;
	int code = find_commit(git, node, &commit);
	return code == 0 ? git_commit_tree(ret, commit) : code;
}

static int make_tree(git_repository *git, const struct commit_again *again, git_oid *ret_tree)
{
	AUTO(tree_freep) git_tree *base = NULL;
	AUTO(freep) git_tree_update *updates = calloc(again->n_changes + 1, sizeof *updates);
	int code = updates ? find_tree(git, again->tree, &base) : GIT_ERROR;
	for (size_t i = 0; code == 0 && i < again->n_changes; i++) {
		const struct path_change *change = &again->changes[i];
		git_tree_update *u = &updates[i];
		u->action = GIT_TREE_UPDATE_UPSERT;
		u->filemode = change->is_folder ? GIT_FILEMODE_TREE : GIT_FILEMODE_BLOB;
		u->path = change->path;
		code = git_oid_fromstr(&u->id, change->id);
	}
	return code == 0 ? git_tree_create_updated(ret_tree, git, base, again->n_changes, updates)
			 : code;
}

static int write_again(git_repository *git, const struct commit_again *again, git_oid *ret_id)
{
	AUTO(commit_freep) git_commit *old = NULL, *parent = NULL;
	AUTO(tree_freep) git_tree *tree = NULL;
	git_oid id;
	int code = make_tree(git, again, &id);
	if (code == 0)
		code = git_tree_lookup(&tree, git, &id);
	if (code == 0)
		code = find_commit(git, again->node, &old);
	if (code == 0)
		code = find_commit(git, again->parent, &parent);
	if (code != 0)
		return code;
	const git_commit *parents[] = {parent};
	return git_commit_create(ret_id, git, NULL, git_commit_author(old),
		git_commit_committer(old), NULL, again->message, tree, 1, parents);
}

int repo_commit_again(struct repo *repo, const struct commit_again *again,
	char ret_id[HISTORY_NODE_SIZE], struct err *err)
{
	git_oid id;
	int code = write_again(repo->git, again, &id);
	if (code != 0)
		return git_fail(code, "a commit cannot be written again", err);
	git_oid_tostr(ret_id, HISTORY_NODE_SIZE, &id);
	return 0;
}

int repo_find_path(struct repo *repo, const char *node, const char *path,
	char ret_id[HISTORY_NODE_SIZE], struct err *err)
{
	AUTO(tree_freep) git_tree *tree = NULL;
	git_tree_entry *entry = NULL;
	int code = find_tree(repo->git, node, &tree);
	if (code == 0)
		code = git_tree_entry_bypath(&entry, tree, path);
	if (code != 0)
		return git_fail(code, path, err);
	git_oid_tostr(ret_id, HISTORY_NODE_SIZE, git_tree_entry_id(entry));
	git_tree_entry_free(entry);
	return 0;
}

int repo_make_folder(struct repo *repo, const struct folder_file *files, size_t n,
	char ret_id[HISTORY_NODE_SIZE], struct err *err)
{
	AUTO(builder_freep) git_treebuilder *builder = NULL;
	git_oid id;
	int code = git_treebuilder_new(&builder, repo->git, NULL);
	for (size_t i = 0; code == 0 && i < n; i++) {
		code = git_oid_fromstr(&id, files[i].blob);
		if (code == 0)
			code = git_treebuilder_insert(
				NULL, builder, files[i].name, &id, GIT_FILEMODE_BLOB);
	}
	if (code == 0)
		code = git_treebuilder_write(&id, builder);
	if (code != 0)
		return git_fail(code, "a folder cannot be written", err);
	git_oid_tostr(ret_id, HISTORY_NODE_SIZE, &id);
	return 0;
}

/* ---- what is kept beside, under a node's id ---- */

static bool is_hex(const char *text, size_t len)
{
	for (size_t i = 0; i < len; i++)
		if (!isxdigit((unsigned char)text[i]))
			return false;
	return len > 0;
}

/* Where a whole id stands as a name in the path ("ab/cd/ID/learnt.json"), or NULL. */
static const char *id_in(const char *path)
{
	for (size_t len; *path; path += len + (path[len] == '/')) {
		len = strcspn(path, "/");
		if (len == HISTORY_NODE_SIZE - 1 && is_hex(path, len))
			return path;
	}
	return NULL;
}

/* The id that a path is of: as above, or cut into names as notes are ("ab/cdef..."). */
static bool node_of(const char *path, char ret_node[HISTORY_NODE_SIZE])
{
	const char *whole = id_in(path);
	size_t n = 0;
	if (whole)
		return copy_text(ret_node, HISTORY_NODE_SIZE, whole, HISTORY_NODE_SIZE - 1);
	for (; *path && n < HISTORY_NODE_SIZE - 1; path++)
		if (*path != '/')
			ret_node[n++] = *path;
	ret_node[n] = '\0';
	return n == HISTORY_NODE_SIZE - 1 && is_hex(ret_node, n) && !isxdigit((unsigned char)*path);
}

/* The same path for another node: digits of the one become digits of the other, in the names that
 * fan out before a whole id too. */
static bool path_for(
	const char *path, const char *was, const char *now, char ret_path[ENTRY_PATH_MAX])
{
	const char *whole = id_in(path);
	size_t k = 0;
	if (!copy_text(ret_path, ENTRY_PATH_MAX, path, strlen(path)))
		return false;
	if (whole)
		memcpy(ret_path + (whole - path), now, HISTORY_NODE_SIZE - 1);
	size_t end = whole ? (size_t)(whole - path) : strlen(path);
	for (size_t i = 0; i < end && k < HISTORY_NODE_SIZE - 1; i++) {
		if (path[i] == '/')
			continue;
		if (path[i] != was[k])
			return true; /* what stands before it is no part of the id */
		ret_path[i] = now[k++];
	}
	return true;
}

struct renaming {
	bool (*rename)(void *data, const char *node, char ret_node[HISTORY_NODE_SIZE]);
	void *data;
	bool changed;
};

static int rename_entry(git_index *to, const git_index_entry *entry, struct renaming *r)
{
	char node[HISTORY_NODE_SIZE], now[HISTORY_NODE_SIZE], path[ENTRY_PATH_MAX];
	git_index_entry copy = *entry;
	if (node_of(entry->path, node) && r->rename(r->data, node, now)) {
		r->changed = true;
		if (!now[0] || !path_for(entry->path, node, now, path))
			return 0;
		copy.path = path;
	}
	return git_index_add(to, &copy);
}

static int rename_all(git_repository *git, git_commit *commit, struct renaming *r, git_oid *ret)
{
	AUTO(index_freep) git_index *from = NULL, *to = NULL;
	AUTO(tree_freep) git_tree *tree = NULL;
	int code = git_commit_tree(&tree, commit);
	if (code == 0)
		code = git_index_new(&from);
	if (code == 0)
		code = git_index_new(&to);
	if (code == 0)
		code = git_index_read_tree(from, tree);
	for (size_t i = 0; code == 0 && i < git_index_entrycount(from); i++)
		code = rename_entry(to, git_index_get_byindex(from, i), r);
	return code == 0 && r->changed ? git_index_write_tree_to(ret, to, git) : code;
}

static int move_beside(git_repository *git, const char *name, git_commit *old, const git_oid *tree)
{
	AUTO(tree_freep) git_tree *now = NULL;
	AUTO(ref_freep) git_reference *ref = NULL;
	git_oid id;
	int code = git_tree_lookup(&now, git, tree);
	if (code == 0)
		code = git_commit_create(&id, git, NULL, git_commit_author(old),
			git_commit_committer(old), NULL, git_commit_message_raw(old), now, 0, NULL);
	return code == 0 ? git_reference_create(&ref, git, name, &id, 1, "forget") : code;
}

int repo_rename_entries(struct repo *repo, const char *ref,
	bool (*rename)(void *data, const char *node, char ret_node[HISTORY_NODE_SIZE]), void *data,
	struct err *err)
{
	AUTO(commit_freep) git_commit *commit = NULL;
	struct renaming r = {rename, data, false};
	git_oid id, tree;
	int code = git_reference_name_to_id(&id, repo->git, ref);
	if (code == GIT_ENOTFOUND)
		return 0;
	if (code == 0)
		code = git_commit_lookup(&commit, repo->git, &id);
	if (code == 0)
		code = rename_all(repo->git, commit, &r, &tree);
	if (code == 0 && (r.changed || git_commit_parentcount(commit) > 0)) {
		if (!r.changed)
			git_oid_cpy(&tree, git_commit_tree_id(commit));
		code = move_beside(repo->git, ref, commit, &tree);
	}
	return code == 0 ? 0 : git_fail(code, ref, err);
}

bool repo_has_object(struct repo *repo, const char *id)
{
	git_odb *odb = NULL;
	git_oid oid;
	bool there = git_repository_odb(&odb, repo->git) == 0 && git_oid_fromstr(&oid, id) == 0 &&
		     git_odb_refresh(odb) == 0 && git_odb_exists(odb, &oid) == 1;
	git_odb_free(odb);
	return there;
}
