#include "history/lanes.h"

#include <string.h>
#include <time.h>

#include "history/import.h"

#define ANSWER_MAX  (1u << 30)
#define CATCH_UP_MS 1000

void job_free(struct job *job)
{
	free(job->text);
	free(job);
}

void asking_free(struct asking *asking)
{
	buf_done(&asking->json);
	buf_done(&asking->nodes);
	free(asking->text);
	free(asking);
}

/* ---- recording ---- */

static struct stop *find_stop(struct histories *h, const char *kernel_id)
{
	LIST_EACH (at, &h->stops) {
		struct stop *stop = CONTAINER_OF(at, struct stop, link);
		if (strncmp(stop->kernel_id, kernel_id, sizeof stop->kernel_id - 1) == 0)
			return stop;
	}
	return NULL;
}

/* Under the lock. A job that came after the failure was told takes the stop away. */
static void check_stop(struct histories *h, struct job *job)
{
	struct stop *stop = find_stop(h, job->run.kernel_id);
	if (!stop)
		return;
	if (job->seq < stop->until) {
		job_refuse(job);
		return;
	}
	list_remove(&stop->link);
	free(stop);
}

static void add_stop(struct histories *h, const struct job *job)
{
	if (job->status == 0 || job->refused || find_stop(h, job->run.kernel_id))
		return;
	struct stop *stop = xcalloc(1, sizeof *stop);
	(void)copy_text(stop->kernel_id, sizeof stop->kernel_id, job->run.kernel_id,
		strlen(job->run.kernel_id)); /* cut is fine */
	stop->until = UINT64_MAX;
	list_append(&h->stops, &stop->link);
}

static uint64_t now_ms(void)
{
	struct timespec now;
	(void)clock_gettime(CLOCK_MONOTONIC, &now); /* cannot fail */
	return (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000;
}

/* One that is gathered wakes nobody, but the first and the one that fills a batch. */
void lane_add(struct histories *h, struct job *job)
{
	job->came_ms = h->last_ms = now_ms();
	list_append(&h->jobs, &job->link);
	h->n_waiting++;
	if (h->gather_ms == 0 || h->n_waiting == 1 || h->n_waiting >= BATCH_MAX)
		pthread_cond_signal(&h->record_wake);
}

/* Under the lock: something else than recording is to be done. */
static bool is_wanted(const struct histories *h)
{
	return (!list_empty(&h->forgets) && !h->forgets_rest) || h->closing || keeping_wants(h) ||
	       adoptions_wait(h) || branchings_wait(h);
}

/* False: the time has come. */
static bool wait_until(struct histories *h, uint64_t ms)
{
	struct timespec until = {
		.tv_sec = (time_t)(ms / 1000), .tv_nsec = (long)(ms % 1000) * 1000000};
	return pthread_cond_timedwait(&h->record_wake, &h->lock, &until) == 0;
}

/* Under the lock: until there is a job, the end, or it is time to try again what is owed. */
static void wait_for_jobs(struct histories *h)
{
	bool lags = recorder_lags(h->recorder);
	uint64_t until = now_ms() + CATCH_UP_MS;
	while (list_empty(&h->jobs) && !is_wanted(h)) {
		if (!lags && !h->forgets_rest)
			pthread_cond_wait(&h->record_wake, &h->lock);
		else if (!wait_until(h, until))
			return;
	}
}

/* Under the lock: of a burst, one at a time would cost three times as much, and the kernel's next
 * cell wants the processor too. */
static void gather(struct histories *h)
{
	while (!list_empty(&h->jobs) && h->n_waiting < BATCH_MAX && !is_wanted(h)) {
		const struct job *oldest = CONTAINER_OF(h->jobs.next, struct job, link);
		uint64_t pause = h->last_ms + h->gather_ms;
		uint64_t most = oldest->came_ms + h->gather_most_ms;
		uint64_t until = pause < most ? pause : most;
		if (h->gather_ms == 0 || now_ms() >= until)
			return;
		(void)wait_until(h, until); /* it looks again */
	}
}

/* False: there is nothing and it is the end. */
static bool take_batch(struct histories *h, struct job **jobs, size_t *ret_n)
{
	size_t n = 0;
	pthread_mutex_lock(&h->lock);
	wait_for_jobs(h);
	gather(h);
	while (!list_empty(&h->jobs) && n < BATCH_MAX) {
		jobs[n] = CONTAINER_OF(h->jobs.next, struct job, link);
		list_remove(&jobs[n]->link);
		h->n_waiting--;
		check_stop(h, jobs[n++]);
	}
	bool more = n > 0 || !list_empty(&h->forgets) || !h->closing || adoptions_wait(h) ||
		    branchings_wait(h);
	pthread_mutex_unlock(&h->lock);
	*ret_n = n;
	return more;
}

static void give_back(struct histories *h, struct job **jobs, size_t n)
{
	pthread_mutex_lock(&h->lock);
	for (size_t i = 0; i < n; i++) {
		add_stop(h, jobs[i]);
		list_append(&h->jobs_done, &jobs[i]->link);
	}
	pthread_mutex_unlock(&h->lock);
	(void)uv_async_send(&h->async); /* cannot fail while it is open */
}

static void record(struct histories *h, struct job **jobs, size_t n)
{
	recorder_batch(h->recorder, jobs, n);
	for (size_t i = 0; i < n; i++) {
		jobs[i]->run.source.close(jobs[i]->run.source.data);
		if (jobs[i]->status == 0)
			keeper_note(h->keeper, jobs[i]->run.history_id);
	}
	give_back(h, jobs, n);
}

void *lane_record(void *histories)
{
	struct histories *h = histories;
	struct job *jobs[BATCH_MAX];
	size_t n;
	while (take_batch(h, jobs, &n)) {
		lane_forget(h);
		branchings_turn(h);
		adoptions_turn(h);
		if (n == 0)
			recorder_catch_up(h->recorder);
		else
			record(h, jobs, n);
		keeping_turn(h);
	}
	pthread_mutex_lock(&h->lock);
	h->record_ended = true;
	pthread_cond_broadcast(&h->wish_done);
	(void)uv_async_send(&h->async); /* as above; the loop cannot close it before the lock */
	pthread_mutex_unlock(&h->lock);
	return NULL;
}

/* ---- answering ---- */

/* An import that is under way in the bulk lane. */
struct under_way {
	struct asking *asking; /* NULL: none is */
	struct importing *im;
};

/* Under the lock. Beside an import no other begins, they would only take turns. */
static struct asking *first_asking(struct histories *h, bool imports)
{
	LIST_EACH (at, &h->askings) {
		struct asking *asking = CONTAINER_OF(at, struct asking, link);
		if (imports && asking->question.what == HISTORY_IMPORT)
			continue;
		list_remove(at);
		return asking;
	}
	return NULL;
}

/* False: there is nothing, and it is the end. */
static bool wait_for_questions(struct histories *h, bool imports)
{
	pthread_mutex_lock(&h->lock);
	while (list_empty(&h->askings) && list_empty(&h->contents) && !h->closing && !imports)
		pthread_cond_wait(&h->ask_wake, &h->lock);
	bool more = !list_empty(&h->askings) || !list_empty(&h->contents) || !h->closing || imports;
	pthread_mutex_unlock(&h->lock);
	return more;
}

/* NULL: there is none, or none but imports beside the one that is under way. */
static struct asking *take_asking(struct histories *h, bool imports)
{
	pthread_mutex_lock(&h->lock);
	struct asking *asking = first_asking(h, imports);
	pthread_mutex_unlock(&h->lock);
	return asking;
}

static void answered(struct histories *h, struct asking *asking)
{
	pthread_mutex_lock(&h->lock);
	list_append(&h->askings_done, &asking->link);
	(void)uv_async_send(&h->async); /* as above */
	pthread_mutex_unlock(&h->lock);
}

static void go_on(struct histories *h, struct under_way *u)
{
	struct asking *asking = u->asking;
	asking->status = import_go_on(u->im, &asking->err);
	if (asking->status == 1)
		return;
	bool written = asking->status == 0;
	if (written)
		adoption_add(h, asking, u->im);
	import_free(u->im); /* what is half made is gone before that is told */
	if (!written)
		answered(h, asking);
	*u = (struct under_way){0};
}

static void take(struct histories *h, struct under_way *u, struct asking *asking)
{
	buf_init(&asking->json, ANSWER_MAX);
	if (asking->question.what == HISTORY_BRANCH) {
		branching_add(h, asking);
		return;
	}
	if (asking->question.what != HISTORY_IMPORT) {
		asking->status =
			asker_answer(&h->asker, &asking->question, &asking->json, &asking->err);
		answered(h, asking);
		return;
	}
	asking->status = import_begin(&h->asker, &asking->question, &u->im, &asking->err);
	if (asking->status == 0)
		u->asking = asking;
	else
		answered(h, asking);
}

/* An import is written in slices, and whoever asks meanwhile is answered between two of them. For
 * contents a run waits that is to be recorded: they come before questions. */
void *lane_ask(void *histories)
{
	struct histories *h = histories;
	struct under_way u = {0};
	for (bool imports = false; wait_for_questions(h, imports);) {
		contents_turn(h);
		struct asking *asking = take_asking(h, imports);
		if (asking)
			take(h, &u, asking);
		if (u.asking)
			go_on(h, &u);
		imports = u.asking != NULL;
	}
	pthread_mutex_lock(&h->lock);
	h->ask_ended = true;
	(void)uv_async_send(&h->async); /* as above */
	pthread_mutex_unlock(&h->lock);
	return NULL;
}
