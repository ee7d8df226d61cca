#include "history/history.h"

#include <stdio.h>
#include <string.h>

#include "history/forget.h"
#include "history/lanes.h"

/* ---- texts of a job or a question, in one allocation ---- */

static size_t size_of(const char *text)
{
	return text ? strlen(text) + 1 : 0;
}

static const char *put(char **at, const char *text)
{
	size_t size = size_of(text);
	char *copy = *at;
	if (!text)
		return NULL;
	memcpy(copy, text, size);
	*at += size;
	return copy;
}

static char *copy_texts(const char **texts[], size_t n)
{
	size_t size = 1;
	for (size_t i = 0; i < n; i++)
		size += size_of(*texts[i]);
	char *block = xcalloc(1, size), *at = block;
	for (size_t i = 0; i < n; i++)
		*texts[i] = put(&at, *texts[i]);
	return block;
}

static const char *or_empty(const char *text)
{
	return text ? text : "";
}

static struct job *new_job(const struct history_run *run, int64_t came_us)
{
	struct job *job = xcalloc(1, sizeof *job);
	struct history_run *r = &job->run;
	*r = *run;
	r->kernelspec = or_empty(run->kernelspec);
	r->environment = or_empty(run->environment);
	r->owner = or_empty(run->owner);
	const char **texts[] = {&r->history_id, &r->name, &r->owner, &r->kernel_id, &r->kernelspec,
		&r->environment, &r->wanted, &r->at, &r->branch};
	job->text = copy_texts(texts, ARRAY_LEN(texts));
	job->came_us = came_us;
	list_init(&job->link);
	return job;
}

static struct asking *new_asking(const struct history_question *question)
{
	struct asking *asking = xcalloc(1, sizeof *asking);
	struct history_question *q = &asking->question;
	*q = *question;
	const char **texts[] = {&q->owner, &q->history, &q->node, &q->kernel_id, &q->cursor, &q->to,
		&q->format, &q->name, &q->at, &q->parked, &q->stands};
	asking->text = copy_texts(texts, ARRAY_LEN(texts));
	list_init(&asking->link);
	return asking;
}

/* ---- what the lanes give back ---- */

static void take_list(struct list *from, struct list *to)
{
	list_init(to);
	while (!list_empty(from)) {
		struct list *at = from->next;
		list_remove(at);
		list_append(to, at);
	}
}

static void tell_job(struct histories *h, struct job *job)
{
	bool failed = job->status != 0;
	struct history_recorded told = {.run_data = job->run.data,
		.status = job->status,
		.err = failed ? &job->err : NULL,
		.history = failed ? "" : job->run.history_id,
		.node = failed ? "" : job->node,
		.branch = failed ? "" : job->branch,
		.state_version = failed ? 0 : job->state_version};
	if (failed)
		log_warn(&h->log, "not_recorded kernel=%s history=%s reason=\"%s\"",
			job->run.kernel_id, job->run.history_id, job->err.text);
	h->on_recorded(h->data, &told);
	job_free(job);
}

static void tell_asking(struct asking *asking)
{
	bool failed = asking->status != 0;
	struct bytes json = {asking->json.data, asking->json.len};
	asking->cb(asking->data, asking->status, failed ? (struct bytes){0} : json,
		failed ? &asking->err : NULL);
	asking_free(asking);
}

static void on_async_closed(uv_handle_t *handle)
{
	struct histories *h = handle->data;
	LIST_EACH_SAFE (at, &h->stops) {
		list_remove(at);
		free(CONTAINER_OF(at, struct stop, link));
	}
	LIST_EACH_SAFE (at, &h->wishes)
		free(CONTAINER_OF(at, struct wish, link)); /* of packs that are new */
	recorder_close(h->recorder);
	asker_close(&h->asker);
	pthread_cond_destroy(&h->wish_done);
	pthread_cond_destroy(&h->record_wake);
	pthread_cond_destroy(&h->ask_wake);
	pthread_mutex_destroy(&h->lock);
	free(h->folder);
	if (h->on_closed)
		h->on_closed(h->closed_data);
	free(h);
}

static void end(struct histories *h)
{
	(void)pthread_join(h->record_thread, NULL); /* all have said that they ended */
	(void)pthread_join(h->ask_thread, NULL);
	keeper_join(h->keeper);
	uv_close((uv_handle_t *)&h->async, on_async_closed);
}

/* Who waits for a failed run may hand it over again from now on: what came before is refused. */
static void open_stops(struct histories *h)
{
	LIST_EACH (at, &h->stops) {
		struct stop *stop = CONTAINER_OF(at, struct stop, link);
		if (stop->until == UINT64_MAX)
			stop->until = h->next_seq;
	}
}

static void on_async(uv_async_t *async)
{
	struct histories *h = async->data;
	struct list jobs, askings, orders, forgets, contents;
	pthread_mutex_lock(&h->lock);
	take_list(&h->jobs_done, &jobs);
	take_list(&h->askings_done, &askings);
	take_list(&h->orders_done, &orders);
	take_list(&h->forgets_done, &forgets);
	take_list(&h->contents_done, &contents);
	open_stops(h);
	LIST_EACH (at, &jobs)
		h->n_jobs--;
	LIST_EACH (at, &askings)
		h->n_askings--;
	LIST_EACH (at, &contents)
		h->n_contents--;
	bool ended = h->record_ended && h->ask_ended && h->keep_ended;
	pthread_mutex_unlock(&h->lock);
	LIST_EACH_SAFE (at, &jobs)
		tell_job(h, CONTAINER_OF(at, struct job, link));
	LIST_EACH_SAFE (at, &askings)
		tell_asking(CONTAINER_OF(at, struct asking, link));
	LIST_EACH_SAFE (at, &forgets) {
		list_remove(at);
		forget_tell(h, CONTAINER_OF(at, struct forgetting, link));
	}
	contents_tell(&contents);
	keeping_tell(&orders);
	if (ended && !uv_is_closing((uv_handle_t *)async))
		end(h);
}

/* ---- opening and closing ---- */

static void init_lanes(struct histories *h)
{
	list_init(&h->jobs);
	list_init(&h->askings);
	list_init(&h->jobs_done);
	list_init(&h->askings_done);
	list_init(&h->adoptions);
	list_init(&h->branchings);
	list_init(&h->stops);
	list_init(&h->forgets);
	list_init(&h->forgets_done);
	list_init(&h->wishes);
	list_init(&h->orders_done);
	list_init(&h->contents);
	list_init(&h->contents_done);
	pthread_condattr_t monotonic;
	(void)pthread_condattr_init(&monotonic); /* these cannot fail with what they are given */
	(void)pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
	(void)pthread_mutex_init(&h->lock, NULL);
	(void)pthread_cond_init(&h->record_wake, &monotonic);
	(void)pthread_cond_init(&h->ask_wake, NULL);
	(void)pthread_cond_init(&h->wish_done, NULL);
	(void)pthread_condattr_destroy(&monotonic);
}

/* Those that run end at once: there is nothing to do yet. */
static int unstart(struct histories *h, unsigned n, struct err *err)
{
	pthread_mutex_lock(&h->lock);
	h->closing = true;
	pthread_cond_signal(&h->record_wake);
	pthread_cond_signal(&h->ask_wake);
	pthread_mutex_unlock(&h->lock);
	if (n > 0)
		(void)pthread_join(h->ask_thread, NULL); /* as above */
	if (n > 1) {
		keeper_stop(h->keeper);
		keeper_join(h->keeper);
	}
	h->closing = false;
	h->record_ended = h->ask_ended = h->keep_ended = true;
	return err_set(err, E_NOMEM, "a thread of the histories cannot start");
}

/* The recorder last: it tells the keeper. */
static int start_threads(
	struct histories *h, const struct history_keeping *keeping, struct err *err)
{
	if (pthread_create(&h->ask_thread, NULL, lane_ask, h) != 0)
		return unstart(h, 0, err);
	h->keeper = keeping_start(h, keeping);
	if (!h->keeper)
		return unstart(h, 1, err);
	if (pthread_create(&h->record_thread, NULL, lane_record, h) != 0)
		return unstart(h, 2, err);
	return 0;
}

static void drop(struct histories *h)
{
	if (h->recorder)
		recorder_close(h->recorder);
	asker_close(&h->asker);
	free(h->folder);
	free(h);
}

int histories_open_hooked(const struct histories_setup *setup, const struct record_hook *hook,
	struct histories **ret, struct err *err)
{
	struct histories *h = xcalloc(1, sizeof *h);
	h->clock = setup->clock;
	h->on_recorded = setup->on_recorded;
	h->data = setup->data;
	h->gather_ms = setup->gather_ms;
	h->gather_most_ms = setup->gather_most_ms;
	h->folder = xstrdup(setup->folder);
	if (setup->log)
		h->log = *setup->log;
	init_lanes(h);
	struct recorder_setup recorder = {.folder = h->folder, .log = &h->log};
	if (hook)
		recorder.hook = *hook;
	int status = recorder_open(&recorder, &h->recorder, err);
	if (status == 0)
		status = asker_open(&h->asker, h->folder, err);
	if (status != 0) {
		drop(h);
		return status;
	}
	(void)uv_async_init(setup->loop, &h->async, on_async); /* fails without descriptors only */
	h->async.data = h;
	status = start_threads(h, &setup->keeping, err);
	if (status != 0) {
		uv_close((uv_handle_t *)&h->async, on_async_closed);
		return status;
	}
	*ret = h;
	return 0;
}

int histories_open(const struct histories_setup *setup, struct histories **ret, struct err *err)
{
	return histories_open_hooked(setup, NULL, ret, err);
}

void histories_close(struct histories *h, void (*cb)(void *data), void *data)
{
	h->on_closed = cb;
	h->closed_data = data;
	pthread_mutex_lock(&h->lock);
	h->closing = true;
	pthread_cond_signal(&h->record_wake);
	pthread_cond_signal(&h->ask_wake);
	pthread_mutex_unlock(&h->lock);
	keeper_stop(h->keeper);
}

/* ---- handing over ---- */

int history_record(struct histories *h, const struct history_run *run, struct err *err)
{
	struct job *job = new_job(run, clock_wall_us(h->clock));
	pthread_mutex_lock(&h->lock);
	bool full = h->n_jobs >= HISTORY_QUEUE_MAX || h->closing;
	if (!full) {
		h->n_jobs++;
		job->seq = h->next_seq++;
		lane_add(h, job);
	}
	pthread_mutex_unlock(&h->lock);
	if (!full)
		return 0;
	job_free(job);
	run->source.close(run->source.data);
	return err_set(err, E_UNAVAILABLE, "%u runs wait to be recorded", HISTORY_QUEUE_MAX);
}

void history_ask(struct histories *h, const struct history_question *question,
	void (*cb)(void *data, int status, struct bytes json, const struct err *err), void *data)
{
	struct asking *asking = new_asking(question);
	asking->cb = cb;
	asking->data = data;
	asking->question.now_us = clock_wall_us(h->clock);
	pthread_mutex_lock(&h->lock);
	bool full = h->n_askings++ >= HISTORY_QUEUE_MAX || h->closing;
	if (full) {
		asking->status = err_set(
			&asking->err, E_UNAVAILABLE, "too many questions about histories wait");
		list_append(&h->askings_done, &asking->link);
		(void)uv_async_send(
			&h->async); /* it is open as long as the loop has not closed h */
	} else {
		list_append(&h->askings, &asking->link);
		pthread_cond_signal(&h->ask_wake);
	}
	pthread_mutex_unlock(&h->lock);
}
