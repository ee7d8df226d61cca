/* coppice restore FILE: a new data folder from a backup. Made beside and renamed: it is there whole
 * or not at all. */
#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <cjson/cJSON.h>
#include <sys/stat.h>

#include "gateway/base/buf.h"
#include "gateway/base/child.h"
#include "gateway/base/file.h"
#include "gateway/base/tree.h"
#include "gateway/cli.h"
#include "gateway/cli_backup.h"
#include "history/history.h"

#define FACTS_MAX 65536

static int run_tar(const char *file, const char *folder, struct err *err)
{
	const char *const argv[] = {"tar", "--extract", "--file", file, "--force-local",
		"--directory", folder, "--no-same-owner", "--no-same-permissions", NULL};
	struct child child;
	child_init(&child);
	int status = child_run(&child, argv, -1, err);
	child_done(&child);
	return status;
}

/* A link could lead out of the folder: none is in a backup of ours. */
static int check_entry(
	void *data, const char *path, const char *name, bool is_folder, struct err *err)
{
	struct stat st;
	if (lstat(path, &st) != 0 || !(S_ISREG(st.st_mode) || is_folder))
		return err_set(err, E_INVALID, "the file is no backup: it has %s in it", name);
	return is_folder ? tree_each(path, check_entry, data, err) : 0;
}

static int check_facts(const char *folder, struct err *err)
{
	char path[PATH_MAX + 32];
	AUTO(buf_done) struct buf text;
	buf_init(&text, FACTS_MAX);
	(void)snprintf(path, sizeof path, "%s/" BACKUP_FACTS, folder);
	int status = file_read(path, &text, err);
	if (status == E_NOT_FOUND)
		return err_set(err, E_INVALID, "the file is no backup: it has no " BACKUP_FACTS);
	if (status != 0)
		return status;
	cJSON *tree = cJSON_ParseWithLength((const char *)text.data, text.len);
	const cJSON *format = cJSON_GetObjectItemCaseSensitive(tree, "format");
	int number = cJSON_IsNumber(format) ? format->valueint : 0;
	cJSON_Delete(tree);
	if (number == BACKUP_FORMAT)
		return 0;
	return err_set(err, E_INVALID, "the backup has format %d; this coppice reads %d", number,
		BACKUP_FORMAT);
}

/* Reads each history on the way. */
static int make_index(const char *folder, struct history_counts *ret_counts, struct err *err)
{
	char path[PATH_MAX + 32];
	struct log_sink sink = {.level = LOG_WARN};
	struct log log;
	log_init(&log, &sink);
	(void)snprintf(path, sizeof path, "%s/" BACKUP_HISTORY, folder);
	return histories_reindex(path, &log, ret_counts, err);
}

/* An empty folder is as good as none. */
static int check_target(const char *data_dir, struct err *err)
{
	DIR *dir = opendir(data_dir);
	unsigned n = 0;
	if (!dir && errno == ENOENT)
		return 0;
	if (!dir)
		return err_set(err, E_IO, "%s: %s", data_dir, strerror(errno));
	while (readdir(dir))
		n++;
	(void)closedir(dir); /* read only */
	return n <= 2 ? 0
		      : err_set(err, E_CONFLICT,
				"%s is there already and not empty; nothing is overwritten: give "
				"another --data-dir, or move it away",
				data_dir);
}

static int put_in_place(struct backup_place *place, const char *data_dir, struct err *err)
{
	(void)sync(); /* cannot fail */
	if (rename(place->path, data_dir) != 0)
		return err_set(
			err, E_IO, "%s cannot be put in place: %s", data_dir, strerror(errno));
	place->path[0] = '\0';
	return 0;
}

static int restore(const struct config *config, const char *file, struct err *err)
{
	struct backup_place place = {.lock = -1};
	struct history_counts counts;
	int status = check_target(config->data_dir, err);
	if (status == 0 && access(file, R_OK) != 0)
		status = err_set(err, E_NOT_FOUND, "%s: %s", file, strerror(errno));
	if (status == 0)
		status = backup_place_make(&place, config->data_dir, err);
	if (status == 0)
		status = run_tar(file, place.path, err);
	if (status == 0)
		status = check_facts(place.path, err);
	if (status == 0)
		status = tree_each(place.path, check_entry, NULL, err);
	if (status == 0)
		status = make_index(place.path, &counts, err);
	if (status == 0)
		status = put_in_place(&place, config->data_dir, err);
	backup_place_done(&place);
	if (status == 0)
		printf("%llu histories with %llu executions in %s\n",
			(unsigned long long)counts.histories, (unsigned long long)counts.nodes,
			config->data_dir);
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
		fprintf(stderr, "coppice restore: which FILE?\n");
		status = CLI_WRONG_USE;
	} else if (restore(&config, file, &err) != 0) {
		status = cli_fail(&err);
	}
	config_done(&config);
	return status;
}

const struct command command_restore = {
	.name = "restore",
	.about = "a new data folder from a backup: coppice restore FILE --data-dir DIR",
	.usage = "  DIR must not be there yet, or be empty. A backup is trusted as much as a data "
		 "folder.\n",
	.takes_options = true,
	.run = run,
};
