#include "history/forget.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "history/amend.h"
#include "history/ask.h"
#include "history/files_tree.h"
#include "history/folder.h"
#include "history/forget_rewrite.h"
#include "history/purge.h"
#include "history/recorder_parts.h"
#include "history/rewrite.h"

#define META_MAX   (16u << 20)
#define PAIRS_MAX  (256u << 20)
#define ANSWER_MAX (1u << 30)
#define PURGES_MAX 3 /* something else may pack what was, just then */

/* FOLDER/ID.git/NOTE_HEAD + NODE, empty: what is asked and not done. It goes with its history. */
static const char note_head[] = "coppice-forget.";

void forgetting_init(struct forgetting *f)
{
	list_init(&f->link);
	buf_init(&f->code, RECORD_CODE_MAX);
	buf_init(&f->rewritten, PAIRS_MAX);
	buf_init(&f->json, ANSWER_MAX);
}

void forgetting_free(struct forgetting *f)
{
	buf_done(&f->code);
	buf_done(&f->rewritten);
	buf_done(&f->json);
	free(f->text);
	free(f);
}

static int step(struct recorder *r, struct err *err)
{
	return recorder_step(r, STEP_FORGET, err);
}

/* ---- the note ---- */

static int note_path(const struct recorder *r, const struct forgetting *f, char ret_path[PATH_MAX],
	struct err *err)
{
	char repository[PATH_MAX];
	if (folder_repository(r->folder, f->history, repository, sizeof repository) &&
		snprintf(ret_path, PATH_MAX, "%s/%s%s", repository, note_head, f->noted) < PATH_MAX)
		return 0;
	return err_set(err, E_IO, "the path of a history is too long");
}

/* A file's coming or going is on the disk. */
static int sync_folder_of(const char *path, struct err *err)
{
	char folder[PATH_MAX];
	(void)copy_text(
		folder, sizeof folder, path, (size_t)(strrchr(path, '/') - path)); /* fits */
	int fd = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	bool fine = fd >= 0 && fsync(fd) == 0;
	if (fd >= 0)
		(void)close(fd); /* read only */
	return fine ? 0 : err_set(err, E_IO, "%s cannot be synced: %s", folder, strerror(errno));
}

static int write_note(struct recorder *r, const struct forgetting *f, struct err *err)
{
	char path[PATH_MAX];
	int status = note_path(r, f, path, err);
	if (status == 0)
		status = step(r, err);
	if (status != 0)
		return status;
	/* One that is there keeps its time. */
	int fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
	if (fd < 0)
		return err_set(err, E_IO, "%s cannot be written: %s", path, strerror(errno));
	(void)close(fd); /* nothing is in it */
	return sync_folder_of(path, err);
}

static int remove_note(struct recorder *r, const struct forgetting *f, struct err *err)
{
	char path[PATH_MAX];
	int status = note_path(r, f, path, err);
	if (status != 0)
		return status;
	if (unlink(path) != 0 && errno != ENOENT)
		return err_set(err, E_IO, "%s cannot be removed: %s", path, strerror(errno));
	return sync_folder_of(path, err);
}

static bool is_history(const char *name, char ret_id[64])
{
	size_t n = strlen(name);
	return n > 4 && strcmp(name + n - 4, ".git") == 0 && copy_text(ret_id, 64, name, n - 4);
}

static void read_notes(const char *repository, const char *id,
	void (*on_one)(void *data, const char *history, const char *node), void *data)
{
	DIR *dir = opendir(repository);
	for (struct dirent *d; dir && (d = readdir(dir));)
		if (strncmp(d->d_name, note_head, sizeof note_head - 1) == 0)
			on_one(data, id, d->d_name + sizeof note_head - 1);
	if (dir)
		(void)closedir(dir); /* read only */
}

int forgets_unfinished(const char *folder,
	void (*on_one)(void *data, const char *history, const char *node), void *data,
	struct err *err)
{
	char path[PATH_MAX], id[64];
	DIR *dir = opendir(folder);
	if (!dir)
		return err_set(err, E_IO, "%s cannot be read: %s", folder, strerror(errno));
	for (struct dirent *d; (d = readdir(dir));)
		if (is_history(d->d_name, id) && folder_repository(folder, id, path, sizeof path))
			read_notes(path, id, on_one, data);
	(void)closedir(dir); /* read only */
	return 0;
}

/* ---- finding it ---- */

static int read_row(struct recorder *r, struct forgetting *f, struct err *err)
{
	AUTO(db_endp) struct db_rows *rows = NULL;
	int status = db_ask(r->db,
		"SELECT n, kernel_id, msg_id, kind FROM execution_records"
		" WHERE history = ? AND node = ?",
		DB_VALUES(DB_T(f->history), DB_T(f->node)), &rows, err);
	if (status == 0)
		status = db_next(rows, err);
	if (status != 1)
		return status < 0 ? status : err_set(err, E_NOT_FOUND, "the node is gone");
	if (strcmp(db_text(rows, 3), "root") == 0)
		return err_set(err, E_INVALID,
			"%.8s is the root of its history: nothing was run there that could be "
			"forgotten",
			f->node);
	f->n = (uint64_t)db_number(rows, 0);
	(void)snprintf(f->kernel_id, sizeof f->kernel_id, "%s", db_text(rows, 1));
	(void)snprintf(f->msg_id, sizeof f->msg_id, "%s", db_text(rows, 2));
	return 0;
}

static int read_run(struct recorder *r, struct forgetting *f, struct err *err)
{
	AUTO(buf_done) struct buf meta;
	struct open_repo *repo = NULL;
	char folder[RUN_FOLDER_SIZE], path[RUN_FOLDER_SIZE + 16];
	buf_init(&meta, META_MAX);
	run_folder(f->n, folder);
	(void)snprintf(path, sizeof path, "%s/meta.json", folder);
	int status = recorder_repo(r, f->history, &repo, err);
	if (status == 0)
		status = repo_read_file(&repo->repo, f->node, path, &meta, err);
	if (status != 0)
		return status;
	f->is_forgotten = forget_is_forgotten((struct bytes){meta.data, meta.len});
	(void)snprintf(path, sizeof path, "%s/code.py", folder);
	buf_reset(&f->code);
	return f->is_forgotten ? 0 : repo_read_file(&repo->repo, f->node, path, &f->code, err);
}

static int locate(struct recorder *r, struct forgetting *f, const char *name, struct err *err)
{
	struct history_question q = f->question;
	char node[HISTORY_NODE_SIZE];
	q.node = name;
	int status = find_node(r->db, f->history, &q, node, err);
	if (status != 0)
		return status;
	memcpy(f->node, node, sizeof f->node);
	status = read_row(r, f, err);
	if (status == 0)
		status = read_run(r, f, err);
	/* The index names it: that git lacks it is no wrong name. */
	return status == E_NOT_FOUND ? err_set(err, E_IO, "the node cannot be read") : status;
}

static bool is_id(const char *name)
{
	return name && strlen(name) == HISTORY_NODE_SIZE - 1 &&
	       strspn(name, "0123456789abcdef") == HISTORY_NODE_SIZE - 1;
}

void forget_find(struct recorder *r, struct forgetting *f)
{
	struct history_found found;
	f->status = find_history(r->db, &f->question, &found, &f->err);
	if (f->status != 0)
		return;
	(void)snprintf(f->history, sizeof f->history, "%s", found.id);
	f->status = locate(r, f, f->question.node, &f->err);
	if (f->status != 0)
		return;
	/* By the id that it was asked for, so that an unfinished one finds its note again. */
	(void)snprintf(f->noted, sizeof f->noted, "%s",
		is_id(f->question.node) ? f->question.node : f->node);
	f->status = write_note(r, f, &f->err);
}

/* ---- the rest ---- */

/* The index as the refs are. */
static int index_again(struct recorder *r, struct open_repo *repo, struct err *err)
{
	int status = db_script(r->db, "BEGIN IMMEDIATE", err);
	if (status != 0)
		return status;
	repo->behind = repo->owed = true;
	status = recorder_index(r, repo, err);
	if (status == 0)
		status = db_script(r->db, "COMMIT", err);
	if (status == 0)
		return 0;
	(void)db_script(r->db, "ROLLBACK", NULL); /* there may be none any more */
	repo->behind = repo->owed = true;
	return status;
}

/* Anything of what was is still there. */
static bool is_left(struct repo *repo, const struct forgetting *f)
{
	const struct history_rewritten *pairs = (const void *)f->rewritten.data;
	size_t n = f->rewritten.len / sizeof *pairs;
	if (strcmp(f->noted, f->node) != 0 && repo_has_object(repo, f->noted))
		return true;
	for (size_t i = 0; i < n; i++)
		if (repo_has_object(repo, pairs[i].was))
			return true;
	return false;
}

static void add_pinned(void *data, const char *name)
{
	char text[HISTORY_NODE_SIZE];
	if (copy_text(text, sizeof text, name, strlen(name))) /* else it is a chunk's */
		(void)buf_add(data, text, sizeof text);	      /* latched */
}

/* What a run that waits is going to name lies there without a node that names it. */
static int hold_pinned(struct recorder *r, const char *history, struct err *err)
{
	AUTO(buf_done) struct buf names;
	struct open_repo *repo = NULL;
	buf_init(&names, PINS_MAX * HISTORY_NODE_SIZE);
	pins_each(r->pins, history, add_pinned, &names);
	int status = buf_check(&names, "names of contents", err);
	if (status == 0)
		status = recorder_repo(r, history, &repo, err);
	if (status != 0)
		return status;
	return names.len > 0 ? files_hold(&repo->repo, &names, err)
			     : files_let_go(&repo->repo, err);
}

static int purge_once(
	struct recorder *r, const struct forgetting *f, bool *ret_left, struct err *err)
{
	char path[PATH_MAX];
	struct open_repo *repo = NULL;
	int status = step(r, err);
	if (status != 0)
		return status;
	(void)folder_repository(r->folder, f->history, path, sizeof path); /* fitted before */
	status = hold_pinned(r, f->history, err);
	if (status != 0)
		return status;
	recorder_let_go(r, f->history); /* it holds packs open */
	status = repo_purge(path, r->pins, f->history, err);
	int opened = recorder_repo(r, f->history, &repo, status == 0 ? err : NULL);
	if (opened == 0)
		opened = files_let_go(&repo->repo, status == 0 ? err : NULL);
	if (status == 0 && opened == 0)
		*ret_left = is_left(&repo->repo, f);
	return status == 0 ? opened : status;
}

static int purge(struct recorder *r, const struct forgetting *f, struct err *err)
{
	bool left = true;
	int status = 0;
	for (int i = 0; status == 0 && left && i < PURGES_MAX; i++)
		status = purge_once(r, f, &left, err);
	if (status == 0 && left)
		status = err_set(err, E_IO, "what was forgotten is still in the repository");
	return status;
}

/* The history may have been deleted meanwhile, and all of it with it. */
static int still_there(const struct recorder *r, const struct forgetting *f, struct err *err)
{
	char path[PATH_MAX];
	if (folder_repository(r->folder, f->history, path, sizeof path) && access(path, F_OK) == 0)
		return 0;
	return err_set(err, E_NOT_FOUND, "the history is not there any more");
}

/* It was rewritten by an earlier asking, of which perhaps nobody was told: the index knows what ids
 * the history's nodes had. */
static int tell_again(struct recorder *r, struct forgetting *f, struct err *err)
{
	AUTO(db_endp) struct db_rows *rows = NULL;
	buf_reset(&f->rewritten);
	int status = db_ask(r->db, "SELECT was, node FROM rewritten WHERE history = ?",
		DB_VALUES(DB_T(f->history)), &rows, err);
	while (status == 0 && (status = db_next(rows, err)) == 1) {
		struct history_rewritten pair;
		(void)snprintf(pair.was, sizeof pair.was, "%s", db_text(rows, 0));
		(void)snprintf(pair.now, sizeof pair.now, "%s", db_text(rows, 1));
		status = buf_add(&f->rewritten, &pair, sizeof pair);
	}
	return status == 0 ? buf_check(&f->rewritten, "the rewritten nodes", err) : status;
}

static int take_steps(struct recorder *r, struct forgetting *f, struct err *err)
{
	struct open_repo *repo = NULL;
	char name[HISTORY_NODE_SIZE];
	int status = still_there(r, f, err);
	if (status == 0)
		status = recorder_repo(r, f->history, &repo, err);
	if (status == 0)
		status = index_again(r, repo, err);
	/* Another forgetting may have come between: then it has another id. */
	memcpy(name, f->node, sizeof name);
	if (status == 0)
		status = locate(r, f, name, err);
	if (status == 0 && f->is_forgotten) {
		status = tell_again(r, f, err);
	} else if (status == 0) {
		status = forget_rewrite(r, repo, f, err);
		if (status == 0)
			status = step(r, err);
		if (status == 0)
			status = index_again(r, repo, err);
		if (status == 0)
			status = locate(r, f, name, err);
	}
	if (status == 0)
		status = purge(r, f, err);
	if (status == 0)
		status = step(r, err);
	if (status == 0)
		status = index_tidy(r->db, err);
	if (status == 0)
		status = step(r, err);
	return status == 0 ? remove_note(r, f, err) : status;
}

static int answer(struct forgetting *f, struct err *err)
{
	const struct history_rewritten *pairs = (const void *)f->rewritten.data;
	size_t n = f->rewritten.len / sizeof *pairs;
	struct buf *b = &f->json;
	/* All latched. */
	(void)buf_addf(
		b, "{\"history\":\"%s\",\"node\":\"%s\",\"rewritten\":[", f->history, f->node);
	for (size_t i = 0; i < n; i++)
		(void)buf_addf(b, "%s{\"old\":\"%s\",\"new\":\"%s\"}", i ? "," : "", pairs[i].was,
			pairs[i].now);
	(void)buf_add_text(b, "],\"same_code\":[");
	for (size_t i = 0; i < f->n_same; i++)
		(void)buf_addf(b, "%s\"%s\"", i ? "," : "", f->same[i]);
	(void)buf_add_text(b, "],\"shown_in\":[");
	for (size_t i = 0; i < f->n_shown; i++)
		(void)buf_addf(b, "%s\"%s\"", i ? "," : "", f->shown[i]);
	(void)buf_add_text(b, "]}");
	return buf_check(b, "an answer", err);
}

void forget_rest(struct recorder *r, struct forgetting *f)
{
	f->status = take_steps(r, f, &f->err);
	if (f->status != 0 && f->status != E_NOT_FOUND)
		f->status = err_wrap(&f->err, "forgetting is not finished; it goes on at the next "
					      "start, or when it is asked for again");
	if (f->status == 0)
		f->status = answer(f, &f->err);
	if (f->status == 0)
		log_info(r->setup.log, "forgot history=%s node=%s rewritten=%zu", f->history,
			f->node, f->rewritten.len / sizeof(struct history_rewritten));
}
