#include "history/recorder_parts.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "history/amend.h"
#include "history/files.h"
#include "history/files_tree.h"
#include "history/folder.h"
#include "history/learnt.h"
#include "history/reindex.h"

#define REPOS_MAX   32u
#define CHANGES_MAX (64u << 20)

/* ---- repositories ---- */

static void forget_repo(struct recorder *r, struct open_repo *repo)
{
	HASH_DEL(r->repos, repo);
	repo_close(&repo->repo);
	free(repo);
}

/* The one that was used longest ago, unless this batch or its index needs it. */
static void trim_repos(struct recorder *r)
{
	struct open_repo *at, *next, *oldest = NULL;
	if (HASH_COUNT(r->repos) < REPOS_MAX)
		return;
	HASH_ITER (hh, r->repos, at, next) {
		if (!at->in_batch && !at->behind && (!oldest || at->used < oldest->used))
			oldest = at;
	}
	if (oldest)
		forget_repo(r, oldest);
}

static int step(struct recorder *r, enum record_step at, struct err *err)
{
	const struct record_hook *hook = &r->setup.hook;
	if (!hook->step || hook->step(hook->data, at) == 0)
		return 0;
	return err_set(err, E_IO, "step %d of recording failed", (int)at);
}

static int ensure_repo(
	struct recorder *r, const char *id, const char *path, bool *ret_made, struct err *err)
{
	struct stat st;
	*ret_made = stat(path, &st) != 0;
	if (!*ret_made)
		return 0;
	int status = step(r, STEP_REPOSITORY, err);
	if (status == 0)
		status = shed_whole(r, id, err);
	return status == 0 ? repo_make(path, err) : status;
}

static int find_repo(
	struct recorder *r, const char *id, struct open_repo **ret_repo, struct err *err)
{
	struct open_repo *repo;
	char path[PATH_MAX];
	bool made = false;
	HASH_FIND_STR(r->repos, id, repo);
	if (repo) {
		repo->used = ++r->uses;
		*ret_repo = repo;
		return 0;
	}
	if (strlen(id) >= sizeof repo->id || !folder_repository(r->folder, id, path, sizeof path))
		return err_set(err, E_INVALID, "'%.60s' is no id of a history", id);
	int status = ensure_repo(r, id, path, &made, err);
	if (status != 0)
		return status;
	trim_repos(r);
	repo = xcalloc(1, sizeof *repo);
	status = repo_open_to_write(path, &repo->repo, err);
	if (status != 0) {
		free(repo);
		return status;
	}
	(void)snprintf(repo->id, sizeof repo->id, "%s", id);
	repo->used = ++r->uses;
	repo->mended = made;
	HASH_ADD_STR(r->repos, id, repo);
	*ret_repo = repo;
	return 0;
}

static int catch_up(struct recorder *r, struct open_repo *repo, struct err *err)
{
	size_t added = 0;
	int status = reindex_history(r->db, &repo->repo, repo->id, &added, err);
	if (status != 0)
		return status;
	repo->behind = repo->owed = false;
	if (added > 0)
		log_info(r->setup.log, "reindexed history=%s nodes=%zu", repo->id, added);
	return 0;
}

/* ---- one run ---- */

/* What is no Change fails nothing: the node has the files of its parent, and says why. */
static int write_files(struct recorder *r, struct open_repo *repo, struct record *rec,
	const struct place *place, const char *folder, struct buf *ret_changes, struct err *err)
{
	AUTO(files_made_done) struct files_made made;
	struct tree_change change = {.path = FILES_FOLDER, .is_folder = true};
	int status = files_make(r, repo, place->parent,
		(struct bytes){rec->files.data, rec->files.len}, &made, err);
	if (status == E_INVALID || status == E_TOO_BIG) {
		(void)snprintf(rec->files_reason, sizeof rec->files_reason, "%.*s",
			(int)sizeof rec->files_reason - 1, err ? err->text : "");
		return 0;
	}
	if (status != 0)
		return status;
	memcpy(change.blob, made.tree, sizeof change.blob);
	memcpy(rec->files_summary, made.summary, sizeof rec->files_summary);
	rec->n_files = made.changed;
	rec->files_known = true;
	(void)buf_add(ret_changes, &change, sizeof change); /* latched */
	return run_write_file(&repo->repo, folder, FILES_JSON,
		(struct bytes){made.json.data, made.json.len}, ret_changes, err);
}

static int write_run(struct recorder *r, struct open_repo *repo, struct record *rec,
	struct amends *amends, const struct place *place, struct job *job, struct buf *ret_meta,
	struct err *err)
{
	AUTO(buf_done) struct buf changes, message;
	char folder[RUN_FOLDER_SIZE];
	buf_init(&changes, CHANGES_MAX);
	buf_init(&message, 1 << 16);
	run_folder(place->at.n, folder);
	int status = step(r, STEP_OBJECTS, err);
	if (status == 0)
		status = run_write_file(&repo->repo, folder, "code.py",
			(struct bytes){rec->code.data, rec->code.len}, &changes, err);
	if (status == 0)
		status = run_write_outputs(
			&repo->repo, folder, rec->outputs, &rec->counts, &changes, err);
	if (status == 0)
		status = amends_write(amends, &changes, &rec->amends, err);
	if (status == 0 && rec->files.len > 0)
		status = write_files(r, repo, rec, place, folder, &changes, err);
	if (status == 0)
		status = record_meta(rec, &place->at, ret_meta, err);
	if (status == 0)
		status = run_write_file(&repo->repo, folder, "meta.json",
			(struct bytes){ret_meta->data, ret_meta->len}, &changes, err);
	if (status == 0)
		status = record_message(rec, &place->at, &message, err);
	if (status != 0)
		return status;
	uint64_t started = record_started_us(rec);
	struct commit_draft draft = {.parent = place->parent,
		.changes = (const struct tree_change *)(void *)changes.data,
		.n_changes = changes.len / sizeof(struct tree_change),
		.message = (const char *)message.data,
		.author = job->run.owner,
		.author_us = started ? (int64_t)started : job->came_us,
		.committer_us = job->came_us};
	return repo_commit(&repo->repo, &draft, job->node, err);
}

/* The branch goes to the job's node once the batch is durable. */
static void note_move(
	struct recorder *r, struct open_repo *repo, const struct place *place, const char *node)
{
	struct move *m = NULL;
	for (size_t i = 0; i < r->n_moves; i++)
		if (r->moves[i].repo == repo && strcmp(r->moves[i].branch, place->branch) == 0)
			m = &r->moves[i];
	if (!m) {
		m = &r->moves[r->n_moves++]; /* a batch has no more runs than this has rows */
		m->repo = repo;
		memcpy(m->branch, place->branch, sizeof m->branch);
		memcpy(m->from, place->tip, sizeof m->from);
	}
	(void)snprintf(m->to, sizeof m->to, "%s", node);
}

static int add_row(struct recorder *r, struct open_repo *repo, const struct place *place,
	const struct job *job, const struct buf *meta, struct err *err)
{
	struct index_node row = {repo->id, job->node, place->parent, {meta->data, meta->len}};
	int status = step(r, STEP_ROW, err);
	if (status == 0)
		status = index_add_node(r->db, &row, err);
	if (status == 0)
		status = index_set_branch(r->db, repo->id, place->branch, job->node, err);
	return status;
}

void job_place(struct job *job, const char *node, const char *branch, uint64_t version)
{
	if (job->node != node)
		(void)snprintf(job->node, sizeof job->node, "%s", node);
	(void)snprintf(job->branch, sizeof job->branch, "%s", branch);
	job->state_version = version;
}

/* A run that repairs another names its node, if that is of this history. */
static int find_repaired(struct recorder *r, const struct open_repo *repo, const struct record *rec,
	struct place *place, struct err *err)
{
	struct index_place there;
	if (!rec->retry_of[0])
		return 0;
	int status = index_find_run(r->db, repo->id, rec->retry_of, &there, err);
	if (status == 1)
		memcpy(place->at.retry_of, there.node, sizeof place->at.retry_of);
	return status < 0 ? status : 0;
}

/* A change of files is in the memory of the run before it. */
static int find_memory(struct recorder *r, const struct open_repo *repo, const struct record *rec,
	struct place *place, struct err *err)
{
	return rec->is_files ? index_find_memory(r->db, repo->id, place->parent,
				       place->at.memory_of, sizeof place->at.memory_of, err)
			     : 0;
}

static int record_new(struct recorder *r, struct open_repo *repo, struct record *rec,
	struct job *job, struct err *err)
{
	struct place place;
	struct amends amends;
	AUTO(buf_done) struct buf meta;
	buf_init(&meta, 16u << 20);
	int status = place_find(r, repo, job, &place, err);
	if (status != 0)
		return status;
	place.at.branch = place.branch;
	status = find_repaired(r, repo, rec, &place, err);
	if (status == 0)
		status = find_memory(r, repo, rec, &place, err);
	if (status != 0)
		return status;
	amends_init(&amends, r->db, &repo->repo, repo->id, place.parent);
	struct record_others others = {amends_outputs, amends_update, &amends};
	status = record_rest(rec, &job->run.source, &others, err);
	if (status == 0)
		status = write_run(r, repo, rec, &amends, &place, job, &meta, err);
	amends_done(&amends);
	if (status == 0)
		status = add_row(r, repo, &place, job, &meta, err);
	if (status != 0)
		return status;
	note_move(r, repo, &place, job->node);
	job_place(job, job->node, place.branch, place.at.state_version);
	return 0;
}

static int record_job(struct recorder *r, struct open_repo *repo, struct record *rec,
	struct job *job, struct err *err)
{
	struct index_place there;
	int status = step(r, STEP_READ, err);
	if (status == 0)
		status = record_begin(rec, &job->run.source, err);
	if (status != 0)
		return status;
	(void)copy_text(job->msg_id, sizeof job->msg_id, rec->msg_id, strlen(rec->msg_id));
	job->learns = rec->is_report;
	if (job->learns)
		return learnt_add(r, repo, rec, job, err);
	status = index_find_run(r->db, repo->id, rec->msg_id, &there, err);
	if (status < 0)
		return status;
	if (status == 0)
		return record_new(r, repo, rec, job, err);
	job_place(job, there.node, there.branch, there.state_version);
	return 0;
}

/* Before anything is done in it: what a run that fails takes back is its own. */
static int bring_up(struct recorder *r, struct open_repo *repo, struct err *err)
{
	if (!repo->behind)
		return 0;
	int status = db_script(r->db, "SAVEPOINT history", err);
	if (status != 0)
		return status;
	status = catch_up(r, repo, err);
	repo->mended = repo->mended || status == 0;
	if (status != 0)
		(void)db_script(r->db, "ROLLBACK TO history", NULL); /* the cause counts */
	int released = db_script(r->db, "RELEASE history", status == 0 ? err : NULL);
	return status != 0 ? status : released;
}

static int find_place(
	struct recorder *r, struct job *job, struct open_repo **ret_repo, struct err *err)
{
	int status = place_history(r, job, err);
	if (status == 0)
		status = find_repo(r, job->run.history_id, ret_repo, err);
	if (status == 0)
		(*ret_repo)->in_batch = true;
	return status == 0 ? bring_up(r, *ret_repo, err) : status;
}

/* In a savepoint: rows of a run that fails are not there for the next. */
int recorder_run(struct recorder *r, struct job *job, struct err *err)
{
	struct open_repo *repo = NULL;
	struct record rec;
	int status = find_place(r, job, &repo, err);
	if (status == 0)
		status = db_script(r->db, "SAVEPOINT run", err);
	if (status != 0)
		return status;
	repo_begin(&repo->repo);
	record_init(&rec);
	status = record_job(r, repo, &rec, job, err);
	record_done(&rec);
	if (status != 0)
		(void)db_script(r->db, "ROLLBACK TO run", NULL); /* the cause counts */
	int released = db_script(r->db, "RELEASE run", status == 0 ? err : NULL);
	return status != 0 ? status : released;
}

/* ---- for batch.c and forget*.c ---- */

int recorder_step(struct recorder *r, enum record_step at, struct err *err)
{
	return step(r, at, err);
}

int recorder_repo(
	struct recorder *r, const char *history, struct open_repo **ret_repo, struct err *err)
{
	return find_repo(r, history, ret_repo, err);
}

struct pins *recorder_pins(const struct recorder *r)
{
	return r->pins;
}

void recorder_let_go(struct recorder *r, const char *history)
{
	struct open_repo *repo;
	HASH_FIND_STR(r->repos, history, repo);
	if (repo)
		forget_repo(r, repo);
}

int recorder_index(struct recorder *r, struct open_repo *repo, struct err *err)
{
	return catch_up(r, repo, err);
}

/* ---- opening ---- */

static int scan_one(void *data, const char *id, struct err *err)
{
	struct recorder *r = data;
	struct open_repo *repo = NULL;
	int status = db_script(r->db, "SAVEPOINT history", err);
	if (status != 0)
		return status;
	status = find_repo(r, id, &repo, err);
	if (status == 0)
		status = catch_up(r, repo, err);
	if (status == 0)
		return db_script(r->db, "RELEASE history", err);
	/* One history that cannot be read does not keep the others closed; it is tried again when
	 * something is to be recorded in it. */
	log_error(r->setup.log, "history_unreadable history=%s reason=\"%s\"", id, err->text);
	if (repo)
		repo->behind = true;
	status = db_script(r->db, "ROLLBACK TO history", err);
	return status == 0 ? db_script(r->db, "RELEASE history", err) : status;
}

static int scan(struct recorder *r, struct err *err)
{
	int status = db_script(r->db, "BEGIN IMMEDIATE", err);
	if (status == 0)
		status = folder_clean(r->folder, scan_one, r, err);
	if (status == 0)
		status = shed_vanished(r, err);
	return status == 0 ? db_script(r->db, "COMMIT", err) : status;
}

static int open_index(struct recorder *r, struct err *err)
{
	char path[PATH_MAX];
	bool fresh = false;
	(void)snprintf(path, sizeof path, "%s/index.sqlite", r->folder);
	int status = index_open(path, &r->db, &fresh, err);
	if (status == 0 && fresh)
		log_info(r->setup.log, "index_made path=%s", path);
	return status;
}

int recorder_open(
	const struct recorder_setup *setup, struct recorder **ret_recorder, struct err *err)
{
	int status = repo_library_start(err);
	if (status != 0)
		return status;
	struct recorder *r = xcalloc(1, sizeof *r);
	*r = (struct recorder){.setup = *setup, .lock = -1, .folder_fd = -1};
	r->folder = xstrdup(setup->folder);
	list_init(&r->sheds);
	list_init(&r->promises);
	r->pins = pins_new();
	status = folder_lock(r->folder, &r->lock, err);
	if (status == 0) {
		r->folder_fd = open(r->folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
		if (r->folder_fd < 0)
			status = err_set(
				err, E_IO, "%s cannot be opened: %s", r->folder, strerror(errno));
	}
	if (status == 0)
		status = open_index(r, err);
	if (status == 0)
		status = scan(r, err);
	if (status != 0) {
		recorder_close(r);
		return status;
	}
	*ret_recorder = r;
	return 0;
}

void recorder_close(struct recorder *r)
{
	struct open_repo *repo, *next;
	HASH_ITER (hh, r->repos, repo, next) {
		forget_repo(r, repo);
	}
	sheds_free(r);
	promises_free(r);
	pins_free(r->pins);
	db_close(r->db);
	if (r->folder_fd >= 0)
		(void)close(r->folder_fd); /* read only */
	if (r->lock >= 0)
		(void)close(r->lock); /* nothing is written in it */
	repo_library_end();
	free(r->folder);
	free(r);
}
