#include "history/forget_files.h"

#include <stdio.h>
#include <string.h>

#include "gateway/base/hash.h"
#include "history/files_tree.h"
#include "history/files_walk.h"

#define REASON	"forgotten, with the execution that left it"
#define ALL_MAX (256u << 20)

/* A file as the node left it. */
struct left {
	char *path;
	char blob[HISTORY_NODE_SIZE];
	char instead[HISTORY_NODE_SIZE];
};

/* Most nodes after it have the folder of the one before them. */
struct known {
	char was[HISTORY_NODE_SIZE], now[HISTORY_NODE_SIZE];
	UT_hash_handle hh;
};

struct forget_files {
	struct repo *repo;
	struct buf left; /* struct left */
	size_t n;
	struct known *known;
};

static struct left *left_at(const struct forget_files *ff, size_t i)
{
	return (struct left *)(void *)ff->left.data + i;
}

static int add_left(void *data, const struct files_delta *d, struct err *err)
{
	struct forget_files *ff = data;
	AUTO(buf_done) struct buf text;
	struct left left = {.path = NULL};
	buf_init(&text, POINTER_MAX);
	if (!d->to[0])
		return 0; /* it is gone, or an empty folder */
	memcpy(left.blob, d->to, sizeof left.blob);
	pointer_add_lost(&text, d->to_mode, 0, REASON);
	int status = repo_blob(ff->repo, (struct bytes){text.data, text.len}, left.instead, err);
	if (status != 0)
		return status;
	left.path = xstrdup(d->path);
	if (buf_add(&ff->left, &left, sizeof left) == 0) {
		ff->n++;
		return 0;
	}
	free(left.path);
	return buf_check(&ff->left, "files of a node", err);
}

int forget_files_find(struct repo *repo, const char *parent, const char *node,
	struct forget_files **ret, struct err *err)
{
	char from[HISTORY_NODE_SIZE], to[HISTORY_NODE_SIZE];
	struct forget_files *ff = xcalloc(1, sizeof *ff);
	ff->repo = repo;
	buf_init(&ff->left, ALL_MAX);
	*ret = ff;
	int status = files_of(repo, parent, from, err);
	if (status == 0)
		status = files_of(repo, node, to, err);
	if (status != 0 || !to[0])
		return status;
	return files_diff(repo, from, to, add_left, ff, err);
}

void forget_files_free(struct forget_files *ff)
{
	struct known *k, *next;
	if (!ff)
		return;
	HASH_ITER (hh, ff->known, k, next) {
		HASH_DEL(ff->known, k);
		free(k);
	}
	for (size_t i = 0; i < ff->n; i++)
		free(left_at(ff, i)->path);
	buf_done(&ff->left);
	free(ff);
}

static int make(struct forget_files *ff, struct known *k, struct err *err)
{
	AUTO(freep) struct files_op *ops = calloc(ff->n + 1, sizeof *ops);
	size_t n = 0;
	if (!ops)
		return err_set(err, E_NOMEM, "files of a node: out of memory");
	for (size_t i = 0; i < ff->n; i++) {
		const struct left *left = left_at(ff, i);
		char blob[HISTORY_NODE_SIZE];
		if (!files_find(ff->repo, k->was, left->path, blob) ||
			strcmp(blob, left->blob) != 0)
			continue;
		ops[n] =
			(struct files_op){.path = left->path, .kind = FILES_PUT, .mode = MODE_FILE};
		memcpy(ops[n++].blob, left->instead, HISTORY_NODE_SIZE);
	}
	memcpy(k->now, k->was, sizeof k->now);
	return n > 0 ? files_apply(ff->repo, k->was, ops, n, k->now, err) : 0;
}

static int find_known(
	struct forget_files *ff, const char *tree, struct known **ret, struct err *err)
{
	struct known *k;
	HASH_FIND_STR(ff->known, tree, k);
	*ret = k;
	if (k)
		return 0;
	k = xcalloc(1, sizeof *k);
	(void)snprintf(k->was, sizeof k->was, "%s", tree);
	int status = make(ff, k, err);
	if (status != 0) {
		free(k);
		return status;
	}
	HASH_ADD_STR(ff->known, was, k);
	*ret = k;
	return 0;
}

int forget_files_of(struct forget_files *ff, const char *node, struct path_change *ret,
	bool *ret_changes, struct err *err)
{
	char tree[HISTORY_NODE_SIZE];
	struct known *k = NULL;
	*ret_changes = false;
	if (ff->n == 0)
		return 0;
	int status = files_of(ff->repo, node, tree, err);
	if (status != 0 || !tree[0])
		return status;
	status = find_known(ff, tree, &k, err);
	if (status != 0 || strcmp(k->was, k->now) == 0)
		return status;
	*ret = (struct path_change){.path = FILES_FOLDER, .is_folder = true};
	memcpy(ret->id, k->now, sizeof ret->id);
	*ret_changes = true;
	return 0;
}
