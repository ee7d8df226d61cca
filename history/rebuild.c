/* The index made anew, without a gateway. */
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "history/folder.h"
#include "history/recorder_parts.h"

/* True only as long as nobody else comes: who does is met again by recorder_open(). */
static int discard(const char *folder, struct err *err)
{
	char path[PATH_MAX];
	int lock = -1;
	if (access(folder, F_OK) != 0)
		return err_set(err, errno == ENOENT ? E_NOT_FOUND : E_IO, "%s: %s", folder,
			strerror(errno));
	int status = folder_lock(folder, &lock, err);
	if (status != 0)
		return status;
	(void)snprintf(path, sizeof path, "%s/index.sqlite", folder); /* cut, it is not there */
	index_discard(path);
	(void)close(lock); /* nothing is written in it */
	return 0;
}

static int count(struct db *db, struct history_counts *ret_counts, struct err *err)
{
	AUTO(db_endp) struct db_rows *rows = NULL;
	int status = db_ask(db,
		"SELECT (SELECT count(*) FROM histories),"
		" (SELECT count(*) FROM execution_records WHERE kind = 'execution')",
		DB_NONE, &rows, err);
	if (status == 0)
		status = db_next(rows, err);
	if (status < 0)
		return status;
	*ret_counts =
		(struct history_counts){(uint64_t)db_number(rows, 0), (uint64_t)db_number(rows, 1)};
	return 0;
}

int histories_reindex(const char *folder, const struct log *log, struct history_counts *ret_counts,
	struct err *err)
{
	struct recorder_setup setup = {.folder = folder, .log = log};
	struct recorder *r = NULL;
	int status = discard(folder, err);
	if (status == 0)
		status = recorder_open(&setup, &r, err);
	if (status != 0)
		return status;
	status = count(r->db, ret_counts, err);
	recorder_close(r);
	return status;
}
