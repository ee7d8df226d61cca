#include "history/purge.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "gateway/base/child.h"
#include "gateway/base/tree.h"
#include "history/pack.h"
#include "history/sweep.h"

#define PATH_SIZE 4200

static bool ends_with(const char *text, const char *tail)
{
	size_t n = strlen(text), m = strlen(tail);
	return n >= m && strcmp(text + n - m, tail) == 0;
}

/* Packs with such a file git would not touch. */
static int drop_keep(
	void *data, const char *path, const char *name, bool is_folder, struct err *err)
{
	(void)data, (void)is_folder;
	if (!ends_with(name, ".keep") || unlink(path) == 0 || errno == ENOENT)
		return 0;
	return err_set(err, E_IO, "%s cannot be removed: %s", path, strerror(errno));
}

/* Lists of commits that are made to look things up faster: they would name what is gone. */
static void drop_lists(const char *repository)
{
	static const char *const names[] = {
		"objects/info/commit-graph", "objects/info/commit-graphs/commit-graph-chain"};
	char file[PATH_SIZE];
	for (size_t i = 0; i < ARRAY_LEN(names); i++) {
		(void)snprintf(file, sizeof file, "%s/%s", repository, names[i]); /* fits */
		(void)unlink(file); /* it may not be there */
	}
}

static int purge_locked(struct child *child, const char *repository, int lock, struct err *err)
{
	char packs[PATH_SIZE];
	(void)snprintf(packs, sizeof packs, "%s/objects/pack", repository); /* fits */
	const char *const repack[] = {"git", "-C", repository, "-c", "repack.writeBitmaps=false",
		"repack", "-a", "-d", "-q", NULL};
	const char *const prune[] = {"git", "-C", repository, "prune", "--expire=all", NULL};
	int status = pack_clean(repository, err);
	if (status == 0)
		status = tree_each(packs, drop_keep, NULL, err);
	drop_lists(repository);
	if (status == 0)
		status = pack_bursts(child, repository, lock, err);
	if (status == 0)
		status = child_run(child, repack, lock, err);
	return status == 0 ? child_run(child, prune, lock, err) : status;
}

int repo_purge(const char *repository, struct pins *pins, const char *history, struct err *err)
{
	int lock = -1;
	struct child child;
	int status = pack_lock(repository, false, &lock, err);
	if (status != 0)
		return status;
	child_init(&child);
	status = purge_locked(&child, repository, lock, err);
	child_done(&child);
	if (status == 0)
		status = sweep_chunks(repository, pins, history, 0, err);
	(void)close(lock); /* nothing is written through it */
	return status;
}
