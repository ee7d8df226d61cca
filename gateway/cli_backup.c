/* coppice backup FILE: all that a data folder holds and cannot be made again, as one tar file,
 * beside a running gateway or without one. First as a folder of second names, which takes a moment,
 * then tar reads that: nothing changes under its hands. */
#include "gateway/cli_backup.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "gateway/base/child.h"
#include "gateway/base/clock.h"
#include "gateway/base/file.h"
#include "gateway/base/tree.h"
#include "gateway/cli.h"
#include "gateway/gateway.h"
#include "history/history.h"

/* ---- the folder ---- */

static int lock_folder(const char *path)
{
	int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (fd >= 0 && flock(fd, LOCK_EX | LOCK_NB) != 0) {
		(void)close(fd); /* read only */
		return -1;
	}
	return fd;
}

static int sweep_one(
	void *data, const char *path, const char *name, bool is_folder, struct err *err)
{
	const char *stem = data;
	size_t len = strlen(stem);
	if (!is_folder || strncmp(name, stem, len) != 0 || name[len] != '.')
		return 0;
	int lock = lock_folder(path);
	if (lock < 0)
		return 0;
	int status = tree_remove(path, err);
	(void)close(lock); /* as above */
	return status;
}

int backup_place_make(struct backup_place *place, const char *stem, struct err *err)
{
	char parent[PATH_MAX];
	const char *slash = strrchr(stem, '/');
	*place = (struct backup_place){.lock = -1};
	if (!slash || snprintf(place->path, PATH_MAX, "%s.XXXXXX", stem) >= PATH_MAX)
		return err_set(err, E_INVALID, "the path %.100s is too long", stem);
	(void)copy_text(
		parent, sizeof parent, stem, (size_t)(slash - stem)); /* shorter than that */
	int status = file_folder_make(stem, err);
	if (status == 0)
		status = tree_each(
			*parent ? parent : "/", sweep_one, (char *)(uintptr_t)(slash + 1), err);
	if (status != 0)
		return status;
	if (!mkdtemp(place->path)) {
		status = err_set(
			err, E_IO, "a folder beside %s cannot be made: %s", stem, strerror(errno));
		place->path[0] = '\0';
		return status;
	}
	place->lock = lock_folder(place->path); /* or not: then nobody may sweep meanwhile */
	return 0;
}

void backup_place_done(struct backup_place *place)
{
	if (place->path[0])
		(void)tree_remove(place->path, NULL); /* the next one sweeps */
	if (place->lock >= 0)
		(void)close(place->lock); /* read only */
}

/* ---- what goes in ---- */

static int put_facts(const char *folder, size_t n_histories, struct err *err)
{
	char path[PATH_MAX + 32], text[256], stamp[CLOCK_STAMP_SIZE];
	struct timespec now;
	(void)clock_gettime(CLOCK_REALTIME, &now); /* cannot fail */
	clock_stamp((int64_t)now.tv_sec * 1000000, stamp);
	(void)snprintf(path, sizeof path, "%s/" BACKUP_FACTS, folder);
	int n = snprintf(text, sizeof text,
		"{\"format\":%d,\"coppice\":\"%s\",\"created\":\"%s\",\"histories\":%zu}\n",
		BACKUP_FORMAT, COPPICE_VERSION, stamp, n_histories);
	return file_write(path, text, (size_t)n, err);
}

static bool is_no_conversation(const char *name)
{
	size_t n = strlen(name);
	return n < 5 || strcmp(name + n - 5, ".json") != 0;
}

/* Conversations are replaced, never changed: a second name keeps what is there now. */
static int put_chat(const char *data_dir, const char *folder, struct err *err)
{
	char from[PATH_MAX + 32], to[PATH_MAX + 32];
	(void)snprintf(from, sizeof from, "%s/" BACKUP_CHAT, data_dir);
	(void)snprintf(to, sizeof to, "%s/" BACKUP_CHAT, folder);
	return tree_copy(from, to, false, is_no_conversation, err);
}

static int put_all(const struct config *config, const char *folder, size_t *ret_n, struct err *err)
{
	char from[PATH_MAX + 32], to[PATH_MAX + 32];
	(void)snprintf(from, sizeof from, "%s/" BACKUP_HISTORY, config->data_dir);
	(void)snprintf(to, sizeof to, "%s/" BACKUP_HISTORY, folder);
	int status = histories_snapshot(from, to, ret_n, err);
	if (status == 0)
		status = put_chat(config->data_dir, folder, err);
	(void)snprintf(to, sizeof to, "%s/" BACKUP_TOKENS, folder);
	if (status == 0 && access(config->token_file, F_OK) == 0)
		status = tree_copy_file(config->token_file, to, err);
	return status == 0 ? put_facts(folder, *ret_n, err) : status;
}

/* ---- the file ---- */

static int sync_path(const char *path, struct err *err)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	int rc = fd < 0 ? -1 : fsync(fd);
	int status = rc == 0 ? 0 : err_set(err, E_IO, "%s: %s", path, strerror(errno));
	if (fd >= 0)
		(void)close(fd); /* read only */
	return status;
}

static int run_tar(const char *folder, const char *file, struct err *err)
{
	const char *const argv[] = {"tar", "--create", "--file", file, "--force-local",
		"--directory", folder, "--numeric-owner", "--owner=0", "--group=0", "--sort=name",
		"--format=posix", ".", NULL};
	struct child child;
	child_init(&child);
	int status = child_run(&child, argv, -1, err);
	child_done(&child);
	return status;
}

/* Whole under its name, or not at all. */
static int write_file(const char *folder, const char *file, struct err *err)
{
	char half[PATH_MAX];
	if (snprintf(half, sizeof half, "%s.XXXXXX", file) >= (int)sizeof half)
		return err_set(err, E_INVALID, "the path %.100s is too long", file);
	int fd = mkostemp(half, O_CLOEXEC); /* 0600: tokens are in it */
	if (fd < 0)
		return err_set(err, E_IO, "%s cannot be written: %s", file, strerror(errno));
	(void)close(fd); /* nothing was written yet */
	int status = run_tar(folder, half, err);
	if (status == 0)
		status = sync_path(half, err);
	if (status == 0 && rename(half, file) != 0)
		status = err_set(err, E_IO, "%s cannot be replaced: %s", file, strerror(errno));
	if (status != 0)
		(void)unlink(half); /* the first fault is the one that is told */
	return status;
}

static int backup(const struct config *config, const char *file, struct err *err)
{
	struct backup_place place;
	char stem[PATH_MAX];
	size_t n = 0;
	if (access(config->data_dir, F_OK) != 0)
		return err_set(err, E_NOT_FOUND, "there is no data folder %s", config->data_dir);
	if (snprintf(stem, sizeof stem, "%s/backup", config->data_dir) >= (int)sizeof stem)
		return err_set(err, E_INVALID, "data_dir is too long");
	int status = backup_place_make(&place, stem, err);
	if (status == 0)
		status = put_all(config, place.path, &n, err);
	if (status == 0)
		status = write_file(place.path, file, err);
	backup_place_done(&place);
	if (status == 0)
		printf("%zu histories in %s; it holds the tokens too\n", n, file);
	return status;
}

static int run(int argc, char **argv)
{
	const char *file = cli_take_word(&argc, argv);
	struct config config;
	struct err err;
	int status = cli_config(&config, argc, argv);
	if (status != CLI_OK)
		return status;
	if (!file) {
		fprintf(stderr, "coppice backup: which FILE?\n");
		status = CLI_WRONG_USE;
	} else if (backup(&config, file, &err) != 0) {
		status = cli_fail(&err);
	}
	config_done(&config);
	return status;
}

const struct command command_backup = {
	.name = "backup",
	.about = "all histories, conversations and tokens as one tar file: coppice backup FILE",
	.usage = "  A gateway may run meanwhile. FILE is replaced at once if it is there.\n",
	.takes_options = true,
	.run = run,
};
