#include "history/recorder_parts.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "history/amend.h"
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

static int ensure_repo(struct recorder *r, const char *id, const char *path, struct err *err)
{
	struct stat st;
	if (stat(path, &st) == 0)
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
	HASH_FIND_STR(r->repos, id, repo);
	if (repo) {
		repo->used = ++r->uses;
		*ret_repo = repo;
		return 0;
	}
	if (strlen(id) >= sizeof repo->id || !folder_repository(r->folder, id, path, sizeof path))
		return err_set(err, E_INVALID, "'%.60s' is no id of a history", id);
	int status = ensure_repo(r, id, path, err);
	if (status != 0)
		return status;
	trim_repos(r);
	repo = xcalloc(1, sizeof *repo);
	status = repo_open(path, &repo->repo, err);
	if (status != 0) {
		free(repo);
		return status;
	}
	(void)snprintf(repo->id, sizeof repo->id, "%s", id);
	repo->used = ++r->uses;
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

static void tell_place(struct job *job, const char *node, const char *branch, uint64_t version)
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
	tell_place(job, job->node, place.branch, place.at.state_version);
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
	tell_place(job, there.node, there.branch, there.state_version);
	return 0;
}

/* In a savepoint: rows of a run that fails are not there for the next. */
static int record_one(struct recorder *r, struct job *job, struct err *err)
{
	struct open_repo *repo = NULL;
	struct record rec;
	int status = place_history(r, job, err);
	if (status == 0)
		status = find_repo(r, job->run.history_id, &repo, err);
	if (status == 0)
		status = db_script(r->db, "SAVEPOINT run", err);
	if (status != 0)
		return status;
	repo->in_batch = true;
	if (repo->behind)
		status = catch_up(r, repo, err);
	record_init(&rec);
	if (status == 0)
		status = record_job(r, repo, &rec, job, err);
	record_done(&rec);
	if (status != 0)
		(void)db_script(r->db, "ROLLBACK TO run", NULL); /* the cause counts */
	int released = db_script(r->db, "RELEASE run", status == 0 ? err : NULL);
	return status != 0 ? status : released;
}

/* ---- a batch ---- */

static bool same_kernel(const struct job *a, const struct job *b)
{
	return strcmp(a->run.kernel_id, b->run.kernel_id) == 0;
}

/* The order of a kernel's runs is kept: after one that failed the later ones wait for it. */
static bool waits_for_earlier(struct job **jobs, size_t i)
{
	for (size_t k = 0; k < i; k++)
		if (jobs[k]->status != 0 && same_kernel(jobs[k], jobs[i]))
			return true;
	return false;
}

void job_refuse(struct job *job)
{
	job->refused = true;
	job->status =
		err_set(&job->err, E_UNAVAILABLE, "an earlier run of this kernel was not recorded");
}

/* What is not 0 is the end of the batch, before any ref. */
static int record_all(struct recorder *r, struct job **jobs, size_t n, struct err *err)
{
	for (size_t i = 0; i < n; i++) {
		struct job *job = jobs[i];
		if (job->status != 0)
			continue;
		if (waits_for_earlier(jobs, i))
			job_refuse(job);
		else
			job->status = record_one(r, job, &job->err);
		if (!db_in_transaction(r->db))
			return err_set(err, E_IO, "%s", job->err.text);
	}
	return 0;
}

static int sync_objects(struct recorder *r, struct err *err)
{
	if (r->n_moves == 0 && !learnt_any(r))
		return 0;
	int status = step(r, STEP_SYNC, err);
	if (status == 0 && syncfs(r->folder_fd) != 0)
		status = err_set(err, E_IO, "%s cannot be synced: %s", r->folder, strerror(errno));
	return status;
}

static int move_branches(struct recorder *r, struct err *err)
{
	int status = 0;
	for (size_t i = 0; status == 0 && i < r->n_moves; i++) {
		const struct move *m = &r->moves[i];
		status = step(r, STEP_REF, err);
		if (status == 0)
			status = repo_move_branch(&m->repo->repo, m->branch, m->from, m->to, err);
	}
	return status;
}

static int finish(struct recorder *r, struct err *err)
{
	int status = learnt_commit(r, err);
	if (status == 0)
		status = sync_objects(r, err);
	if (status == 0)
		status = move_branches(r, err);
	if (status == 0)
		status = learnt_publish(r, err);
	if (status == 0)
		status = step(r, STEP_INDEX, err);
	if (status == 0)
		status = db_script(r->db, "COMMIT", err);
	return status;
}

static int look_up(struct recorder *r, struct job *job, struct err *err)
{
	struct open_repo *repo = NULL;
	struct index_place there;
	if (job->learns)
		return 0; /* twice does no harm */
	int status = find_repo(r, job->run.history_id, &repo, err);
	if (status == 0 && repo->behind)
		status = catch_up(r, repo, err);
	if (status == 0)
		status = index_find_run(r->db, job->run.history_id, job->msg_id, &there, err);
	if (status == 1)
		tell_place(job, there.node, there.branch, there.state_version);
	return status;
}

/* The batch ended amid its refs: what each run came to is read from them. */
static void settle(struct recorder *r, struct job **jobs, size_t n, const struct err *cause)
{
	struct open_repo *repo, *next;
	struct err err;
	(void)db_script(r->db, "ROLLBACK", NULL); /* there may be none any more */
	HASH_ITER (hh, r->repos, repo, next) {
		repo->behind = repo->behind || repo->in_batch;
	}
	bool open = db_script(r->db, "BEGIN IMMEDIATE", &err) == 0;
	for (size_t i = 0; i < n; i++) {
		struct job *job = jobs[i];
		if (job->status == 0 && (!open || look_up(r, job, &err) != 1))
			job->status = err_set(&job->err, cause->code, "%s", cause->text);
	}
	if (open && db_script(r->db, "COMMIT", &err) == 0)
		return;
	(void)db_script(r->db, "ROLLBACK", NULL); /* as above */
	HASH_ITER (hh, r->repos, repo, next) {
		repo->behind = repo->behind || repo->in_batch;
		repo->owed = repo->owed || repo->in_batch;
	}
}

bool recorder_lags(const struct recorder *r)
{
	struct open_repo *repo, *next;
	if (r->tidied)
		return true;
	HASH_ITER (hh, r->repos, repo, next) {
		if (repo->owed)
			return true;
	}
	return false;
}

void recorder_catch_up(struct recorder *r)
{
	struct open_repo *repo, *next;
	struct err err;
	r->tidied = false;
	int status = db_script(r->db, "BEGIN IMMEDIATE", &err);
	HASH_ITER (hh, r->repos, repo, next) {
		repo->in_batch = status == 0 && repo->owed;
		if (repo->in_batch)
			status = catch_up(r, repo, &err);
	}
	if (status == 0)
		status = db_script(r->db, "COMMIT", &err);
	if (status != 0)
		(void)db_script(r->db, "ROLLBACK", NULL); /* there may be none any more */
	HASH_ITER (hh, r->repos, repo, next) {
		if (status != 0 && repo->in_batch)
			repo->behind = repo->owed = true;
		repo->in_batch = false;
	}
}

void recorder_batch(struct recorder *r, struct job **jobs, size_t n)
{
	struct open_repo *repo, *next;
	struct err err;
	r->n_moves = 0;
	int status = db_script(r->db, "BEGIN IMMEDIATE", &err);
	if (status == 0)
		status = record_all(r, jobs, n, &err);
	if (status == 0)
		status = finish(r, &err);
	if (status != 0)
		settle(r, jobs, n, &err);
	learnt_forget(r);
	HASH_ITER (hh, r->repos, repo, next) {
		repo->in_batch = false;
	}
	(void)step(r, STEP_TOLD, &err); /* too late to fail: a place to be killed at */
}

/* ---- for forget*.c ---- */

int recorder_step(struct recorder *r, enum record_step at, struct err *err)
{
	return step(r, at, err);
}

int recorder_repo(
	struct recorder *r, const char *history, struct open_repo **ret_repo, struct err *err)
{
	return find_repo(r, history, ret_repo, err);
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
	db_close(r->db);
	if (r->folder_fd >= 0)
		(void)close(r->folder_fd); /* read only */
	if (r->lock >= 0)
		(void)close(r->lock); /* nothing is written in it */
	repo_library_end();
	free(r->folder);
	free(r);
}
