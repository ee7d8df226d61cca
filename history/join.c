/* Packs put together. First those that bursts left, one for each batch, without deltas: git never
 * looks for a delta between two objects of one pack that have none there, unless it is told to.
 * Then small ones: the largest stay as they are as long as each is twice as large as all smaller
 * ones together; the rest become one. So an object is written again a few times while its history
 * grows by much, and the packs stay few. */
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "gateway/base/buf.h"
#include "gateway/base/tree.h"
#include "history/pack.h"

#define TIMES	  2
#define NAME_SIZE 64
#define LIST_MAX  (16u << 20)
#define BURST	  "pack-" PACK_OF_BURST
/* Not in objects/pack: what is not whole is nobody's to read. pack_clean() removes it. */
#define HALF "tmp_join"

struct pack_file {
	char name[NAME_SIZE]; /* without its ending */
	off_t bytes;
	bool joins;
};

struct joining {
	const char *repository;
	struct child *child;
	int lock;
	struct buf found; /* struct pack_file */
	struct pack_file *all;
	size_t n;
	bool places_index;    /* which files are put in place now */
	char made[NAME_SIZE]; /* what they became */
};

static bool ends_with(const char *name, const char *end)
{
	size_t n = strlen(name), m = strlen(end);
	return n > m && strcmp(name + n - m, end) == 0;
}

/* ---- which ---- */

/* Somebody put such a file beside it: it is not ours to remove. */
static bool is_held(const char *path)
{
	static const char *const ends[] = {"keep", "promisor", "mtimes"};
	char beside[PATH_MAX];
	for (size_t i = 0; i < ARRAY_LEN(ends); i++) {
		(void)snprintf(beside, sizeof beside, "%.*s%s", (int)(strlen(path) - 4), path,
			ends[i]); /* fits or is no such file */
		if (access(beside, F_OK) == 0)
			return true;
	}
	return false;
}

static int add_pack(void *data, const char *path, const char *name, bool is_folder, struct err *err)
{
	struct joining *j = data;
	struct pack_file file = {.bytes = 0};
	struct stat st;
	(void)err;
	if (is_folder || strncmp(name, "pack-", 5) != 0 || !ends_with(name, ".pack") ||
		stat(path, &st) != 0 || is_held(path) ||
		!copy_text(file.name, sizeof file.name, name, strlen(name) - 5))
		return 0;
	file.bytes = st.st_size;
	(void)buf_add(&j->found, &file, sizeof file); /* latched */
	return 0;
}

static int by_size(const void *a, const void *b)
{
	const struct pack_file *x = a, *y = b;
	return x->bytes != y->bytes ? (x->bytes < y->bytes ? 1 : -1) : strcmp(x->name, y->name);
}

static void path_of(const struct joining *j, const char *name, const char *end, char ret[PATH_MAX])
{
	(void)snprintf(ret, PATH_MAX, "%s/objects/pack/%s%s", j->repository, name, end);
	/* fits: folder.h */
}

/* The largest first. */
static int find_packs(struct joining *j, struct err *err)
{
	char folder[PATH_MAX];
	path_of(j, "", "", folder);
	int status = tree_each(folder, add_pack, j, err);
	if (status == 0)
		status = buf_check(&j->found, "the packs of a history", err);
	if (status != 0)
		return status;
	j->all = (struct pack_file *)(void *)j->found.data;
	j->n = j->found.len / sizeof *j->all;
	if (j->n > 0)
		qsort(j->all, j->n, sizeof *j->all, by_size);
	return 0;
}

static bool choose_bursts(struct joining *j)
{
	bool any = false;
	for (size_t i = 0; i < j->n; i++) {
		j->all[i].joins = strncmp(j->all[i].name, BURST, sizeof BURST - 1) == 0;
		any = any || j->all[i].joins;
	}
	return any;
}

/* The last one has none below it: it stays alone, or goes with others. */
static bool choose_small(struct joining *j)
{
	off_t rest = 0;
	size_t i = 0;
	for (size_t k = 0; k < j->n; k++)
		rest += j->all[k].bytes;
	for (; i < j->n; i++) {
		rest -= j->all[i].bytes;
		if (j->all[i].bytes < TIMES * rest)
			break;
	}
	for (size_t k = i; k < j->n; k++)
		j->all[k].joins = true;
	return i < j->n;
}

/* ---- together ---- */

/* For pack-objects: which packs' objects, and of which none. */
static int list_packs(const struct joining *j, int fd, struct err *err)
{
	AUTO(buf_done) struct buf list;
	buf_init(&list, LIST_MAX);
	for (size_t i = 0; i < j->n; i++)
		(void)buf_addf(&list, "%s%s.pack\n", j->all[i].joins ? "" : "^", j->all[i].name);
	int status = buf_check(&list, "the packs of a history", err);
	if (status == 0 && write(fd, list.data, list.len) != (ssize_t)list.len)
		status = err_set(err, E_NOMEM, "the packs of a history: out of memory");
	return status;
}

/* By git, which finds deltas between them, by the names of what it packs. Loose objects it does not
 * touch: of a run that is being written it would take half. */
static int run_git(const struct joining *j, const char *reuse, struct err *err)
{
	const char *const argv[] = {"git", "-C", j->repository, "pack-objects", "-q",
		"--stdin-packs", "--non-empty", "--delta-base-offset", reuse,
		"objects/" HALF "/pack", NULL};
	int fd = memfd_create("packs", MFD_CLOEXEC);
	if (fd < 0)
		return err_set(err, E_IO, "git: %s", strerror(errno));
	int status = list_packs(j, fd, err);
	if (status == 0)
		status = child_run_fed(j->child, argv, fd, j->lock, err);
	(void)close(fd); /* nothing is kept in it */
	return status;
}

static int place(void *data, const char *path, const char *name, bool is_folder, struct err *err)
{
	struct joining *j = data;
	char to[PATH_MAX];
	bool is_index = ends_with(name, ".idx");
	if (is_folder || is_index != j->places_index)
		return 0;
	path_of(j, name, "", to);
	if (is_index) /* its name fits, as those that there were */
		(void)copy_text(j->made, sizeof j->made, name, strlen(name) - 4);
	return rename(path, to) == 0
		       ? 0
		       : err_set(err, E_IO, "%s cannot be put in place: %s", to, strerror(errno));
}

/* The index last, as git does. Durable, since the old ones go then. */
static int put_in_place(struct joining *j, const char *half, struct err *err)
{
	int status = tree_each(half, place, j, err);
	j->places_index = true;
	if (status == 0)
		status = tree_each(half, place, j, err);
	if (status == 0 && fsync(j->lock) != 0)
		status = err_set(
			err, E_IO, "%s cannot be synced: %s", j->repository, strerror(errno));
	return status;
}

/* The index first: what is left then is half a pack. */
static void remove_pack(const struct joining *j, const char *name)
{
	static const char *const ends[] = {".idx", ".rev", ".bitmap", ".pack"};
	char path[PATH_MAX];
	for (size_t i = 0; i < ARRAY_LEN(ends); i++) {
		path_of(j, name, ends[i], path);
		(void)unlink(path); /* not all are there; what stays is joined again */
	}
}

static int join_chosen(struct joining *j, const char *reuse, struct err *err)
{
	char half[PATH_MAX];
	(void)snprintf(half, sizeof half, "%s/objects/" HALF, j->repository); /* fits */
	int status = tree_remove(half, err);
	if (status == 0 && mkdir(half, 0700) != 0)
		status = err_set(err, E_IO, "%s cannot be made: %s", half, strerror(errno));
	if (status == 0)
		status = run_git(j, reuse, err);
	if (status == 0)
		status = put_in_place(j, half, err);
	for (size_t i = 0; status == 0 && i < j->n; i++)
		if (j->all[i].joins && strcmp(j->all[i].name, j->made) != 0)
			remove_pack(j, j->all[i].name);
	(void)tree_remove(half, NULL); /* else the next packing does */
	return status;
}

static int join(const struct joining *where, bool (*choose)(struct joining *j), const char *reuse,
	struct err *err)
{
	struct joining j = *where;
	buf_init(&j.found, LIST_MAX);
	int status = find_packs(&j, err);
	if (status == 0 && choose(&j))
		status = join_chosen(&j, reuse, err);
	buf_done(&j.found);
	return status;
}

int pack_bursts(struct child *child, const char *repository, int lock, struct err *err)
{
	const struct joining where = {.repository = repository, .child = child, .lock = lock};
	return join(&where, choose_bursts, "--no-reuse-object", err);
}

int pack_join(struct child *child, const char *repository, int lock, struct err *err)
{
	const struct joining where = {.repository = repository, .child = child, .lock = lock};
	int status = pack_bursts(child, repository, lock, err);
	return status == 0 ? join(&where, choose_small, "-q", err) : status;
}
