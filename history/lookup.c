/* Reading is a file of its own beside commit.c: the bulk lane uses nothing else of git, and what
 * this file cannot do it cannot do to a history. */
#include "history/repo.h"

#include <stdio.h>
#include <string.h>
#include <git2.h>

#define MESSAGE_MAX (1u << 20)

static int git_fail(int code, const char *what, struct err *err)
{
	const git_error *e = git_error_last();
	const char *why = e && e->message ? e->message : "no reason given";
	return err_set(err, code == GIT_ENOTFOUND ? E_NOT_FOUND : E_IO, "git: %s: %s", what, why);
}

static int set_library(void)
{
	static const int levels[] = {GIT_CONFIG_LEVEL_SYSTEM, GIT_CONFIG_LEVEL_XDG,
		GIT_CONFIG_LEVEL_GLOBAL, GIT_CONFIG_LEVEL_PROGRAMDATA};
	int code = 0;
	for (size_t i = 0; code == 0 && i < ARRAY_LEN(levels); i++)
		code = git_libgit2_opts(GIT_OPT_SET_SEARCH_PATH, levels[i], "");
	/* Each object that is named was written or read just before. */
	if (code == 0)
		code = git_libgit2_opts(GIT_OPT_ENABLE_STRICT_OBJECT_CREATION, 0);
	/* The folder is locked by us, whoever made it. */
	if (code == 0)
		code = git_libgit2_opts(GIT_OPT_SET_OWNER_VALIDATION, 0);
	return code;
}

int repo_library_start(struct err *err)
{
	int code = git_libgit2_init();
	if (code >= 0)
		code = set_library();
	return code >= 0 ? 0 : git_fail(code, "libgit2 cannot start", err);
}

void repo_library_end(void)
{
	(void)git_libgit2_shutdown(); /* how many users are left */
}

/* Whether refs are synced is decided when their database is opened; objects ask at each write.
 * Refs are to be synced one by one, objects once for a batch. */
static int open_refs_synced(git_repository *git)
{
	git_refdb *refs = NULL;
	int code = git_libgit2_opts(GIT_OPT_ENABLE_FSYNC_GITDIR, 1);
	if (code == 0)
		code = git_repository_refdb(&refs, git);
	(void)git_libgit2_opts(GIT_OPT_ENABLE_FSYNC_GITDIR, 0); /* cannot fail where 1 did not */
	git_refdb_free(refs);
	return code;
}

int repo_open(const char *path, struct repo *ret_repo, struct err *err)
{
	git_repository *git = NULL;
	int code = git_repository_open_ext(
		&git, path, GIT_REPOSITORY_OPEN_BARE | GIT_REPOSITORY_OPEN_NO_SEARCH, NULL);
	if (code == 0)
		code = open_refs_synced(git);
	if (code != 0) {
		git_repository_free(git);
		return git_fail(GIT_ERROR, "a repository cannot be opened", err);
	}
	*ret_repo = (struct repo){.git = git};
	return 0;
}

void repo_close(struct repo *repo)
{
	git_repository_free(repo->git);
	*repo = (struct repo){.git = NULL};
}

static int by_name(const void *a, const void *b)
{
	const struct branch_tip *x = a, *y = b;
	bool x_main = strcmp(x->name, "main") == 0, y_main = strcmp(y->name, "main") == 0;
	return x_main != y_main ? (x_main ? -1 : 1) : strcmp(x->name, y->name);
}

static int add_tip(git_reference *ref, struct buf *tips)
{
	static const char prefix[] = "refs/heads/";
	const char *name = git_reference_name(ref);
	const git_oid *id = git_reference_target(ref);
	struct branch_tip tip;
	if (!id || strncmp(name, prefix, sizeof prefix - 1) != 0)
		return 0;
	name += sizeof prefix - 1;
	if (!copy_text(tip.name, sizeof tip.name, name, strlen(name)))
		return 0; /* not one that we made */
	git_oid_tostr(tip.node, sizeof tip.node, id);
	return buf_add(tips, &tip, sizeof tip);
}

int repo_branches(struct repo *repo, struct branch_tip **ret_tips, size_t *ret_n, struct err *err)
{
	AUTO(buf_done) struct buf tips;
	git_reference_iterator *it = NULL;
	git_reference *ref;
	buf_init(&tips, 64u << 20);
	int code = git_reference_iterator_glob_new(&it, repo->git, "refs/heads/*");
	while (code == 0 && (code = git_reference_next(&ref, it)) == 0) {
		(void)add_tip(ref, &tips); /* latched */
		git_reference_free(ref);
	}
	git_reference_iterator_free(it);
	if (code != GIT_ITEROVER)
		return git_fail(code, "the branches cannot be read", err);
	int status = buf_check(&tips, "branches", err);
	if (status != 0)
		return status;
	*ret_n = tips.len / sizeof **ret_tips;
	if (*ret_n > 0)
		qsort(tips.data, *ret_n, sizeof **ret_tips, by_name);
	*ret_tips = (struct branch_tip *)(void *)buf_take(&tips, NULL);
	return 0;
}

static int find_commit(struct repo *repo, const char *node, git_commit **ret_commit)
{
	git_oid id;
	int code = git_oid_fromstr(&id, node);
	return code == 0 ? git_commit_lookup(ret_commit, repo->git, &id) : code;
}

int repo_read_commit(
	struct repo *repo, const char *node, struct commit_view *ret_view, struct err *err)
{
	git_commit *commit = NULL;
	buf_init(&ret_view->message, MESSAGE_MAX);
	int code = find_commit(repo, node, &commit);
	if (code != 0)
		return git_fail(code, "a commit cannot be read", err);
	ret_view->parent[0] = '\0';
	if (git_commit_parentcount(commit) > 0)
		git_oid_tostr(ret_view->parent, HISTORY_NODE_SIZE, git_commit_parent_id(commit, 0));
	ret_view->author_us = (int64_t)git_commit_author(commit)->when.time * 1000000;
	(void)buf_add_text(&ret_view->message, git_commit_message_raw(commit)); /* latched */
	git_commit_free(commit);
	return buf_check(&ret_view->message, "commit message", err);
}

static int find_entry(struct repo *repo, const char *node, const char *path,
	git_object **ret_object, git_object_t type)
{
	git_commit *commit = NULL;
	git_tree *tree = NULL;
	git_tree_entry *entry = NULL;
	int code = find_commit(repo, node, &commit);
	if (code == 0)
		code = git_commit_tree(&tree, commit);
	if (code == 0)
		code = git_tree_entry_bypath(&entry, tree, path);
	if (code == 0)
		code = git_tree_entry_type(entry) == type ? 0 : GIT_ENOTFOUND;
	if (code == 0)
		code = git_tree_entry_to_object(ret_object, repo->git, entry);
	git_tree_entry_free(entry);
	git_tree_free(tree);
	git_commit_free(commit);
	return code;
}

int repo_read_file(struct repo *repo, const char *node, const char *path, struct buf *ret_data,
	struct err *err)
{
	git_object *object = NULL;
	int code = find_entry(repo, node, path, &object, GIT_OBJECT_BLOB);
	if (code != 0)
		return git_fail(code, path, err);
	const git_blob *blob = (const git_blob *)object;
	(void)buf_add(ret_data, git_blob_rawcontent(blob), (size_t)git_blob_rawsize(blob));
	git_object_free(object); /* the result above is latched */
	return buf_check(ret_data, path, err);
}

int repo_read_blob(struct repo *repo, const char *id, struct buf *ret_data, struct err *err)
{
	git_blob *blob = NULL;
	git_oid oid;
	int code = git_oid_fromstr(&oid, id);
	if (code == 0)
		code = git_blob_lookup(&blob, repo->git, &oid);
	if (code != 0)
		return git_fail(code, id, err);
	(void)buf_add(ret_data, git_blob_rawcontent(blob), (size_t)git_blob_rawsize(blob));
	git_blob_free(blob); /* the result above is latched */
	return buf_check(ret_data, id, err);
}

int repo_read_state(struct repo *repo, const char *path, struct buf *ret_data, struct err *err)
{
	char commit[HISTORY_NODE_SIZE];
	git_oid id;
	int code = git_reference_name_to_id(&id, repo->git, STATE_REF);
	if (code != 0)
		return git_fail(code, STATE_REF, err);
	git_oid_tostr(commit, sizeof commit, &id);
	return repo_read_file(repo, commit, path, ret_data, err);
}

int repo_list_folder(struct repo *repo, const char *node, const char *path,
	void (*on_name)(void *data, const char *name), void *data, struct err *err)
{
	git_object *object = NULL;
	int code = find_entry(repo, node, path, &object, GIT_OBJECT_TREE);
	if (code == GIT_ENOTFOUND)
		return 0;
	if (code != 0)
		return git_fail(code, path, err);
	const git_tree *tree = (const git_tree *)object;
	for (size_t i = 0; i < git_tree_entrycount(tree); i++)
		on_name(data, git_tree_entry_name(git_tree_entry_byindex(tree, i)));
	git_object_free(object);
	return 0;
}
