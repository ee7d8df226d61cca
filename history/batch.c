/* A batch: its runs become objects, rows and branches, in the order of recorder.h. */
#include "history/recorder_parts.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "history/learnt.h"

/* ---- runs of one kernel ---- */

static bool same_kernel(const struct job *a, const struct job *b)
{
	return strcmp(a->run.kernel_id, b->run.kernel_id) == 0;
}

void job_refuse(struct job *job)
{
	job->refused = true;
	job->status =
		err_set(&job->err, E_UNAVAILABLE, "an earlier run of this kernel was not recorded");
}

/* Their order is kept: after one that failed the later ones wait for it. */
static int record_each(struct recorder *r, struct job **jobs, size_t n, struct err *err)
{
	const struct job *first = jobs[0];
	bool failed = false;
	for (size_t i = 0; i < n; i++) {
		struct job *job = jobs[i];
		if (!same_kernel(first, job))
			continue;
		job->taken = true;
		if (job->status == 0 && failed)
			job_refuse(job);
		else if (job->status == 0)
			job->status = recorder_run(r, job, &job->err);
		failed = failed || job->status != 0;
		if (!db_in_transaction(r->db))
			return err_set(err, E_IO, "%s", job->err.text);
	}
	return 0;
}

/* Of all repositories: in which one a kernel recorded is not asked. */
static int flush(struct recorder *r, struct err *err)
{
	struct open_repo *repo, *next;
	int status = learnt_commit(r, err);
	if (status == 0)
		status = recorder_step(r, STEP_FLUSH, err);
	HASH_ITER (hh, r->repos, repo, next) {
		if (status == 0)
			status = repo_flush(&repo->repo, err);
	}
	return status;
}

/* What the kernels before it came to. */
static void keep_before(struct recorder *r)
{
	struct open_repo *repo, *next;
	memcpy(r->moves_before, r->moves, r->n_moves * sizeof r->moves[0]);
	r->n_moves_before = r->n_moves;
	HASH_ITER (hh, r->repos, repo, next) {
		repo->learnt_before = repo->learnt;
		repo->mended = false;
	}
}

/* False: other rows went with this kernel's, so the batch cannot go on. */
static bool take_back(struct recorder *r)
{
	struct open_repo *repo, *next;
	bool whole = true;
	memcpy(r->moves, r->moves_before, r->n_moves_before * sizeof r->moves[0]);
	r->n_moves = r->n_moves_before;
	HASH_ITER (hh, r->repos, repo, next) {
		repo_drop(&repo->repo);
		repo->learnt = repo->learnt_before;
		whole = whole && !repo->mended;
	}
	return whole;
}

static void fail_all(struct job **jobs, size_t n, const struct err *cause)
{
	const struct job *first = jobs[0];
	for (size_t i = 0; i < n; i++)
		if (same_kernel(first, jobs[i]) && jobs[i]->status == 0)
			jobs[i]->status = err_set(&jobs[i]->err, cause->code, "%s", cause->text);
}

/* The runs of the first one's kernel. In a savepoint: a repository that cannot be written is no
 * other kernel's trouble. What is not 0 is the end of the batch. */
static int record_kernel(struct recorder *r, struct job **jobs, size_t n, struct err *err)
{
	struct err cause;
	keep_before(r);
	int status = db_script(r->db, "SAVEPOINT kernel", err);
	if (status == 0)
		status = record_each(r, jobs, n, err);
	if (status != 0)
		return status;
	if (flush(r, &cause) != 0) {
		fail_all(jobs, n, &cause);
		status = db_script(r->db, "ROLLBACK TO kernel", err);
		if (!take_back(r) && status == 0)
			status = err_set(err, cause.code, "%s", cause.text);
	}
	return status == 0 ? db_script(r->db, "RELEASE kernel", err) : status;
}

/* What is not 0 is the end of the batch, before any ref. */
static int record_all(struct recorder *r, struct job **jobs, size_t n, struct err *err)
{
	int status = 0;
	for (size_t i = 0; status == 0 && i < n; i++)
		if (!jobs[i]->taken)
			status = record_kernel(r, jobs + i, n - i, err);
	return status;
}

/* ---- the batch ---- */

static int sync_objects(struct recorder *r, struct err *err)
{
	if (r->n_moves == 0 && !learnt_any(r))
		return 0;
	int status = recorder_step(r, STEP_SYNC, err);
	if (status == 0 && syncfs(r->folder_fd) != 0)
		status = err_set(err, E_IO, "%s cannot be synced: %s", r->folder, strerror(errno));
	return status;
}

static int move_branches(struct recorder *r, struct err *err)
{
	int status = 0;
	for (size_t i = 0; status == 0 && i < r->n_moves; i++) {
		const struct move *m = &r->moves[i];
		status = recorder_step(r, STEP_REF, err);
		if (status == 0)
			status = repo_move_branch(&m->repo->repo, m->branch, m->from, m->to, err);
	}
	return status;
}

static int finish(struct recorder *r, struct err *err)
{
	int status = sync_objects(r, err);
	if (status == 0)
		status = move_branches(r, err);
	if (status == 0)
		status = learnt_publish(r, err);
	if (status == 0)
		status = recorder_step(r, STEP_INDEX, err);
	if (status == 0)
		status = db_script(r->db, "COMMIT", err);
	return status;
}

static int look_up(struct recorder *r, struct job *job, struct err *err)
{
	struct open_repo *repo = NULL;
	struct index_place there;
	if (job->learns || !job->msg_id[0])
		return 0; /* twice does no harm; or it was not read yet */
	int status = recorder_repo(r, job->run.history_id, &repo, err);
	if (status == 0 && repo->behind)
		status = recorder_index(r, repo, err);
	if (status == 0)
		status = index_find_run(r->db, job->run.history_id, job->msg_id, &there, err);
	if (status == 1)
		job_place(job, there.node, there.branch, there.state_version);
	return status;
}

/* The batch ended early, or amid its refs: what each run came to is read from them. */
static void settle(struct recorder *r, struct job **jobs, size_t n, const struct err *cause)
{
	struct open_repo *repo, *next;
	struct err err;
	(void)db_script(r->db, "ROLLBACK", NULL); /* there may be none any more */
	HASH_ITER (hh, r->repos, repo, next) {
		repo->behind = repo->behind || repo->in_batch;
		repo_drop(&repo->repo);
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
			status = recorder_index(r, repo, &err);
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
	(void)recorder_step(r, STEP_TOLD, &err); /* too late to fail: a place to be killed at */
}
