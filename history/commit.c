#include "history/repo.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>
#include <git2.h>
#include <git2/sys/repository.h>

#define MAKER "coppice"

static int git_fail(int code, const char *what, struct err *err)
{
	const git_error *e = git_error_last();
	const char *why = e && e->message ? e->message : "no reason given";
	if (code == GIT_EMODIFIED || code == GIT_EEXISTS)
		return err_set(err, E_CONFLICT, "git: %s: %s", what, why);
	return err_set(err, E_IO, "git: %s: %s", what, why);
}

static void repo_freep(git_repository **git)
{
	git_repository_free(*git);
}

static void tree_freep(git_tree **tree)
{
	git_tree_free(*tree);
}

static void commit_freep(git_commit **commit)
{
	git_commit_free(*commit);
}

static void signature_freep(git_signature **signature)
{
	git_signature_free(*signature);
}

/* What is ours alone is hidden from clones; packing is our own affair. Added as text: libgit2's
 * setting of a key with several values loses the memory of its pattern. */
static int configure(const char *folder, struct err *err)
{
	static const char text[] =
		"[transfer]\n\thideRefs = refs/coppice\n\thideRefs = refs/notes\n"
		"[gc]\n\tauto = 0\n";
	char path[4200];
	(void)snprintf(path, sizeof path, "%s/config", folder);
	int fd = open(path, O_WRONLY | O_APPEND | O_CLOEXEC);
	bool fine = fd >= 0 && write(fd, text, sizeof text - 1) == (ssize_t)sizeof text - 1;
	if (fd >= 0)
		fine = close(fd) == 0 && fine;
	return fine ? 0
		    : err_set(err, E_IO, "git: %s cannot be written: %s", path, strerror(errno));
}

/* Made beside and renamed: a kill leaves no half of one. */
int repo_make(const char *path, struct err *err)
{
	char half[4096];
	if (snprintf(half, sizeof half, "%s.new", path) >= (int)sizeof half)
		return err_set(err, E_INVALID, "the path of a history is too long");
	git_repository_init_options options;
	(void)git_repository_init_options_init(
		&options, GIT_REPOSITORY_INIT_OPTIONS_VERSION); /* a version it knows */
	options.flags = GIT_REPOSITORY_INIT_BARE | GIT_REPOSITORY_INIT_MKPATH;
	options.mode = 0700;
	options.initial_head = "main";
	AUTO(repo_freep) git_repository *git = NULL;
	int code = git_repository_init_ext(&git, half, &options);
	if (code != 0)
		return git_fail(code, "a repository cannot be made", err);
	int status = configure(half, err);
	if (status != 0)
		return status;
	if (rename(half, path) != 0)
		return err_set(err, E_IO, "git: %s cannot be put in place", path);
	return 0;
}

int repo_blob(struct repo *repo, struct bytes data, char ret_id[HISTORY_NODE_SIZE], struct err *err)
{
	git_oid id;
	git_odb *odb = NULL;
	int code = git_repository_odb(&odb, repo->git);
	if (code == 0)
		code = git_odb_write(&id, odb, data.len ? (const void *)data.data : "", data.len,
			GIT_OBJECT_BLOB);
	git_odb_free(odb);
	if (code != 0)
		return git_fail(code, "a file cannot be written", err);
	git_oid_tostr(ret_id, HISTORY_NODE_SIZE, &id);
	return 0;
}

bool repo_blob_name(struct bytes data, char ret_id[HISTORY_NODE_SIZE])
{
	git_oid id;
	if (git_odb_hash(&id, data.len ? (const void *)data.data : "", data.len, GIT_OBJECT_BLOB) !=
		0)
		return false;
	git_oid_tostr(ret_id, HISTORY_NODE_SIZE, &id);
	return true;
}

/* A path that goes but is not there would be an error to libgit2. */
static bool is_idle(git_tree *base, const struct tree_change *change)
{
	git_tree_entry *entry = NULL;
	if (change->blob[0])
		return false;
	bool there = base && git_tree_entry_bypath(&entry, base, change->path) == 0;
	git_tree_entry_free(entry);
	return !there;
}

static int make_tree(struct repo *repo, git_tree *base, const struct tree_change *changes,
	size_t n_changes, git_oid *ret_tree)
{
	AUTO(freep) git_tree_update *updates = calloc(n_changes + 1, sizeof *updates);
	size_t n = 0;
	if (!updates)
		return GIT_ERROR;
	for (size_t i = 0; i < n_changes; i++) {
		const struct tree_change *change = &changes[i];
		if (is_idle(base, change))
			continue;
		git_tree_update *u = &updates[n++];
		u->action = change->blob[0] ? GIT_TREE_UPDATE_UPSERT : GIT_TREE_UPDATE_REMOVE;
		u->filemode = change->is_folder ? GIT_FILEMODE_TREE : GIT_FILEMODE_BLOB;
		u->path = change->path;
		if (change->blob[0])
			(void)git_oid_fromstr(&u->id, change->blob); /* our own hex */
	}
	return git_tree_create_updated(ret_tree, repo->git, base, n, updates);
}

/* What git allows in a name, and something where nothing is left. */
static void plain_name(const char *name, char ret_name[64])
{
	size_t n = 0;
	for (; *name && n < 60; name++)
		if ((unsigned char)*name >= ' ' && !strchr("<>\\\"", *name) && *name != 0x7f)
			ret_name[n++] = *name;
	while (n > 0 && ((unsigned char)ret_name[n - 1] & 0xc0) == 0x80 && n >= 57)
		n--; /* never half a character at the cut */
	if (n >= 57 && ((unsigned char)ret_name[n - 1] & 0xc0) == 0xc0)
		n--;
	ret_name[n] = '\0';
	if (n == 0 || strspn(ret_name, " .,:;'") == n)
		(void)snprintf(ret_name, 64, "nobody");
}

static int sign(const char *name, int64_t us, git_signature **ret_signature)
{
	char plain[64], mail[96] = "";
	size_t n = 0;
	plain_name(name, plain);
	for (const char *c = plain; *c; c++)
		mail[n++] = (char)(strchr(" @,;:()[]", *c) ? '-' : *c);
	(void)snprintf(mail + n, sizeof mail - n, "@coppice");
	return git_signature_new(ret_signature, plain, mail, us > 0 ? us / 1000000 : 0, 0);
}

static int write_commit(struct repo *repo, const struct commit_draft *draft, git_oid *ret_id)
{
	AUTO(commit_freep) git_commit *parent = NULL;
	AUTO(tree_freep) git_tree *base = NULL, *tree = NULL;
	AUTO(signature_freep) git_signature *author = NULL, *maker = NULL;
	git_oid id;
	int code = 0;
	if (draft->parent[0]) {
		(void)git_oid_fromstr(&id, draft->parent); /* our own hex */
		code = git_commit_lookup(&parent, repo->git, &id);
		if (code == 0)
			code = git_commit_tree(&base, parent);
	}
	if (code == 0)
		code = make_tree(repo, base, draft->changes, draft->n_changes, &id);
	if (code == 0)
		code = git_tree_lookup(&tree, repo->git, &id);
	if (code == 0)
		code = sign(draft->author, draft->author_us, &author);
	if (code == 0)
		code = sign(MAKER, draft->committer_us, &maker);
	if (code != 0)
		return code;
	const git_commit *parents[] = {parent};
	return git_commit_create(ret_id, repo->git, NULL, author, maker, NULL, draft->message, tree,
		parent ? 1 : 0, parents);
}

int repo_commit(struct repo *repo, const struct commit_draft *draft, char ret_id[HISTORY_NODE_SIZE],
	struct err *err)
{
	git_oid id;
	int code = write_commit(repo, draft, &id);
	if (code != 0)
		return git_fail(code, "a commit cannot be written", err);
	git_oid_tostr(ret_id, HISTORY_NODE_SIZE, &id);
	return 0;
}

int repo_move_branch(
	struct repo *repo, const char *name, const char *from, const char *to, struct err *err)
{
	char full[HISTORY_BRANCH_SIZE + 16];
	git_reference *ref = NULL;
	git_oid old, new;
	(void)snprintf(full, sizeof full, "refs/heads/%s", name);
	(void)git_oid_fromstr(&new, to); /* our own hex, as below */
	int code;
	if (from[0]) {
		(void)git_oid_fromstr(&old, from);
		code = git_reference_create_matching(
			&ref, repo->git, full, &new, 1, &old, "execution");
	} else {
		code = git_reference_create(&ref, repo->git, full, &new, 0, "execution");
	}
	git_reference_free(ref);
	return code == 0 ? 0 : git_fail(code, "a branch cannot be moved", err);
}

/* ---- the state ---- */

/* GIT_ENOTFOUND: there is none yet. */
static int find_state(struct repo *repo, git_tree **ret_tree)
{
	AUTO(commit_freep) git_commit *commit = NULL;
	git_oid id;
	int code = git_reference_name_to_id(&id, repo->git, STATE_REF);
	if (code == 0)
		code = git_commit_lookup(&commit, repo->git, &id);
	return code == 0 ? git_commit_tree(ret_tree, commit) : code;
}

int repo_state_tree(struct repo *repo, const char *base, const struct tree_change *changes,
	size_t n, char ret_tree[HISTORY_NODE_SIZE], struct err *err)
{
	AUTO(tree_freep) git_tree *now = NULL, *before = NULL;
	git_oid id;
	int code = find_state(repo, &now);
	if (code == GIT_ENOTFOUND)
		code = 0;
	if (code == 0 && base[0]) {
		(void)git_oid_fromstr(&id, base); /* our own hex */
		code = git_tree_lookup(&before, repo->git, &id);
	}
	if (code == 0)
		code = make_tree(repo, before ? before : now, changes, n, &id);
	if (code != 0)
		return git_fail(code, "a state cannot be written", err);
	if (now && git_oid_equal(&id, git_tree_id(now)))
		ret_tree[0] = '\0';
	else
		git_oid_tostr(ret_tree, HISTORY_NODE_SIZE, &id);
	return 0;
}

int repo_state_commit(
	struct repo *repo, const char *tree, char ret_commit[HISTORY_NODE_SIZE], struct err *err)
{
	AUTO(tree_freep) git_tree *state = NULL;
	AUTO(signature_freep) git_signature *maker = NULL;
	git_oid id;
	(void)git_oid_fromstr(&id, tree); /* our own hex */
	int code = git_tree_lookup(&state, repo->git, &id);
	if (code == 0)
		code = sign(MAKER, 0, &maker);
	if (code == 0)
		code = git_commit_create(
			&id, repo->git, NULL, maker, maker, NULL, "State\n", state, 0, NULL);
	if (code != 0)
		return git_fail(code, "a state cannot be written", err);
	git_oid_tostr(ret_commit, HISTORY_NODE_SIZE, &id);
	return 0;
}

int repo_state_move(struct repo *repo, const char *commit, struct err *err)
{
	git_reference *ref = NULL;
	git_oid id;
	(void)git_oid_fromstr(&id, commit); /* our own hex */
	int code = git_reference_create(&ref, repo->git, STATE_REF, &id, 1, "learnt");
	git_reference_free(ref);
	return code == 0 ? 0 : git_fail(code, "the state cannot be set", err);
}
