/* What the recorder does between batches: repositories that were packed, histories that go. */
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "history/folder.h"
#include "history/recorder_parts.h"

static struct open_repo *find_open(struct recorder *r, const char *history)
{
	struct open_repo *repo;
	HASH_FIND_STR(r->repos, history, repo);
	return repo;
}

void recorder_reopen(struct recorder *r, const char *history)
{
	struct open_repo *repo = find_open(r, history);
	struct repo fresh;
	char path[PATH_MAX];
	/* One that cannot be opened stays as it is: what was packed away is found all the same. */
	if (!repo || !folder_repository(r->folder, history, path, sizeof path) ||
		repo_open_to_write(path, &fresh, NULL) != 0)
		return;
	repo_close(&repo->repo);
	repo->repo = fresh;
}

/* ---- rows ---- */

static struct shed *find_shed(struct recorder *r, const char *history)
{
	LIST_EACH (at, &r->sheds) {
		struct shed *shed = CONTAINER_OF(at, struct shed, link);
		if (strcmp(shed->history, history) == 0)
			return shed;
	}
	return NULL;
}

static struct shed *add_shed(struct recorder *r, const char *history)
{
	struct shed *shed = find_shed(r, history);
	if (shed)
		return shed;
	shed = xcalloc(1, sizeof *shed);
	(void)copy_text(shed->history, sizeof shed->history, history, strlen(history)); /* an id */
	list_append(&r->sheds, &shed->link);
	return shed;
}

static void end_shed(struct shed *shed)
{
	if (!shed)
		return;
	list_remove(&shed->link);
	free(shed);
}

void sheds_free(struct recorder *r)
{
	LIST_EACH_SAFE (at, &r->sheds)
		end_shed(CONTAINER_OF(at, struct shed, link));
}

/* A rollback brings the rows back: then the index is behind its refs, which repairs it. */
int shed_whole(struct recorder *r, const char *history, struct err *err)
{
	int status = index_forget(r->db, history, err);
	if (status == 0)
		end_shed(find_shed(r, history));
	return status;
}

static int shed_some(struct recorder *r, const char *history, struct err *err)
{
	int status = db_script(r->db, "BEGIN IMMEDIATE", err);
	if (status == 0)
		status = index_untidy(r->db, history, err);
	if (status == 0)
		status = index_shed(r->db, history, err);
	int ended = status < 0 ? 0 : db_script(r->db, "COMMIT", err);
	if (ended < 0 || status < 0)
		(void)db_script(r->db, "ROLLBACK", NULL); /* there may be none */
	return ended < 0 ? ended : status;
}

bool recorder_sheds(const struct recorder *r)
{
	return !list_empty(&r->sheds);
}

/* What fails is left to the next start, which finds rows without a repository. */
static void shed_one(struct recorder *r, struct shed *shed)
{
	struct err err;
	int status = shed_some(r, shed->history, &err);
	if (status < 0)
		log_warn(r->setup.log, "rows_left history=%s reason=\"%s\"", shed->history,
			err.text);
	if (status != 1)
		end_shed(shed);
	r->untidy = true;
}

void recorder_shed(struct recorder *r)
{
	if (!list_empty(&r->sheds))
		shed_one(r, CONTAINER_OF(r->sheds.next, struct shed, link));
}

bool recorder_is_untidy(const struct recorder *r)
{
	return r->untidy && list_empty(&r->sheds);
}

void recorder_tidy(struct recorder *r)
{
	struct err err;
	if (!recorder_is_untidy(r) || r->tidied)
		return;
	int status = recorder_step(r, STEP_TIDY, &err);
	if (status == 0)
		status = index_tidy(r->db, &err);
	if (status != 0 && !r->untidy_told)
		log_warn(r->setup.log, "index_untidy reason=\"%s\"", err.text);
	r->untidy = r->tidied = r->untidy_told = status != 0;
}

/* Collected first: rows are not read while they are removed. */
int shed_vanished(struct recorder *r, struct err *err)
{
	AUTO(db_endp) struct db_rows *rows = NULL;
	char path[PATH_MAX];
	struct stat st;
	int status = db_ask(r->db, "SELECT id FROM histories", DB_NONE, &rows, err);
	while (status == 0 && (status = db_next(rows, err)) == 1) {
		if (folder_repository(r->folder, db_text(rows, 0), path, sizeof path) &&
			stat(path, &st) != 0 && errno == ENOENT)
			(void)add_shed(r, db_text(rows, 0));
		status = 0;
	}
	while (status == 0 && !list_empty(&r->sheds)) {
		const char *history = CONTAINER_OF(r->sheds.next, struct shed, link)->history;
		status = index_untidy(r->db, history, err);
		if (status == 0)
			status = shed_whole(r, history, err);
	}
	int untidy = status == 0 ? index_is_untidy(r->db, err) : status;
	r->untidy = untidy == 1;
	return untidy < 0 ? untidy : 0;
}

/* ---- the whole ---- */

int recorder_drop(struct recorder *r, const char *history, struct err *err)
{
	char path[PATH_MAX], gone[PATH_MAX + 8];
	struct open_repo *repo = find_open(r, history);
	if (!folder_repository(r->folder, history, path, sizeof path))
		return err_set(err, E_NOT_FOUND, "there is no such history");
	(void)snprintf(gone, sizeof gone, "%s.gone", path);
	if (rename(path, gone) != 0)
		return err_set(err, errno == ENOENT ? E_NOT_FOUND : E_IO,
			"%s cannot be removed: %s", path, strerror(errno));
	if (repo) {
		HASH_DEL(r->repos, repo);
		repo_close(&repo->repo);
		free(repo);
	}
	shed_one(r, add_shed(r, history));
	return 0;
}
