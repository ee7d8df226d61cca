#include "history/keeper.h"

#include <errno.h>
#include <limits.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "gateway/base/hash.h"
#include "gateway/base/tree.h"
#include "history/folder.h"
#include "history/chunk.h"
#include "history/pack.h"
#include "history/sweep.h"

#define EVERY	 1000u
#define IDLE_MS	 300000u
#define RETRY_MS 60000u
#define NEVER	 UINT64_MAX

/* A history with something loose in it. */
struct kept {
	char id[64];
	unsigned n;	   /* executions since its last packing */
	uint64_t last_ms;  /* the last of them */
	uint64_t retry_ms; /* not before: a packing failed */
	UT_hash_handle hh;
};

struct keeper {
	struct keeper_setup setup;
	struct child child;
	pthread_t thread;
	/* Under the lock: */
	pthread_mutex_t lock;
	pthread_cond_t wake;
	struct kept *kept;
	struct list orders;
	bool closing;
};

static uint64_t now_ms(void)
{
	struct timespec now;
	(void)clock_gettime(CLOCK_MONOTONIC, &now); /* cannot fail */
	return (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000;
}

/* ---- what is to be done ---- */

/* Under the lock. */
static void note(struct keeper *k, const char *history, unsigned n)
{
	struct kept *kept;
	HASH_FIND_STR(k->kept, history, kept);
	if (!kept) {
		kept = xcalloc(1, sizeof *kept);
		(void)copy_text(kept->id, sizeof kept->id, history, strlen(history)); /* an id */
		HASH_ADD_STR(k->kept, id, kept);
		pthread_cond_signal(&k->wake); /* its rest is to be waited for */
	}
	unsigned every = k->setup.keeping.every;
	if (kept->n < every && kept->n + n >= every)
		pthread_cond_signal(&k->wake);
	kept->n += n;
	kept->last_ms = now_ms();
}

void keeper_note(struct keeper *k, const char *history)
{
	pthread_mutex_lock(&k->lock);
	note(k, history, 1);
	pthread_mutex_unlock(&k->lock);
}

void keeper_order(struct keeper *k, struct order *order)
{
	pthread_mutex_lock(&k->lock);
	bool closing = k->closing;
	if (!closing) {
		list_append(&k->orders, &order->link);
		pthread_cond_signal(&k->wake);
	}
	pthread_mutex_unlock(&k->lock);
	if (!closing)
		return;
	order->status = err_set(&order->err, E_UNAVAILABLE, "the gateway ends");
	k->setup.on_done(k->setup.data, order);
}

static uint64_t due_ms(const struct keeper *k, const struct kept *kept)
{
	const struct history_keeping *keeping = &k->setup.keeping;
	uint64_t at = kept->n >= keeping->every ? 0 : kept->last_ms + keeping->idle_ms;
	return at > kept->retry_ms ? at : kept->retry_ms;
}

/* Under the lock: the one that waited longest, or NULL and when one will be due. */
static struct kept *next_due(struct keeper *k, uint64_t *ret_ms)
{
	struct kept *kept, *next, *first = NULL;
	*ret_ms = NEVER;
	HASH_ITER (hh, k->kept, kept, next) {
		uint64_t at = due_ms(k, kept);
		if (at < *ret_ms) {
			*ret_ms = at;
			first = kept;
		}
	}
	return first && *ret_ms <= now_ms() ? first : NULL;
}

/* ---- packing ---- */

static int pack_locked(struct keeper *k, const char *repository, int lock, struct err *err)
{
	int status = pack_clean(repository, err);
	return status == 0 ? pack_recent(&k->child, repository, lock, err) : status;
}

static int pack_one(struct keeper *k, const char *id, struct err *err)
{
	char repository[PATH_MAX];
	int lock = -1;
	if (!folder_repository(k->setup.folder, id, repository, sizeof repository))
		return err_set(err, E_NOT_FOUND, "'%.60s' is no id of a history", id);
	int status = pack_lock(repository, false, &lock, err);
	if (status != 0)
		return status;
	status = pack_locked(k, repository, lock, err);
	(void)close(lock); /* nothing is written through it */
	k->setup.on_packed(k->setup.data, id);
	return status;
}

/* Under the lock. */
static void settle(struct keeper *k, const char *id, unsigned n, int status)
{
	struct kept *kept;
	HASH_FIND_STR(k->kept, id, kept);
	if (!kept)
		return;
	if (status != 0 && status != E_NOT_FOUND) {
		kept->retry_ms = now_ms() + k->setup.keeping.retry_ms;
		return;
	}
	kept->n -= n < kept->n ? n : kept->n;
	kept->retry_ms = 0;
	if (kept->n > 0)
		return;
	HASH_DEL(k->kept, kept);
	free(kept);
}

/* Without the lock; kept is only read by its id, which is copied. */
static int pack_due(struct keeper *k, const char *id, unsigned n)
{
	struct err err;
	uint64_t began = now_ms();
	int status = pack_one(k, id, &err);
	if (status == 0)
		log_info(k->setup.log, "packed history=%s executions=%u ms=%llu", id, n,
			(unsigned long long)(now_ms() - began));
	else if (status == E_IO)
		log_warn(k->setup.log, "not_packed history=%s reason=\"%s\"", id, err.text);
	return status;
}

/* ---- orders ---- */

static int gc_locked(
	struct keeper *k, struct order *order, const char *repository, int lock, struct err *err)
{
	uint64_t before = 0;
	int status = tree_bytes(repository, &before, err);
	if (status == 0)
		status = pack_clean(repository, err);
	if (status == 0)
		status = pack_whole(&k->child, repository, lock, err);
	if (status == 0)
		status = sweep_chunks(repository, NULL, order->history, CHUNK_GRACE, err);
	if (status == 0)
		status = tree_bytes(repository, &order->bytes, err);
	if (status == 0)
		order->freed_bytes = before > order->bytes ? before - order->bytes : 0;
	return status;
}

static int remove_gone(struct keeper *k, struct order *order, struct err *err)
{
	char gone[PATH_MAX + 8], repository[PATH_MAX];
	(void)folder_repository(
		k->setup.folder, order->history, repository, sizeof repository); /* did before */
	(void)snprintf(gone, sizeof gone, "%s.gone", repository);
	int status = tree_bytes(gone, &order->freed_bytes, err);
	return status == 0 ? tree_remove(gone, err) : status;
}

static int obey(struct keeper *k, struct order *order, struct err *err)
{
	char repository[PATH_MAX];
	int lock = -1;
	if (!folder_repository(k->setup.folder, order->history, repository, sizeof repository))
		return err_set(err, E_NOT_FOUND, "there is no such history");
	int status = pack_lock(repository, false, &lock, err);
	if (status == E_UNAVAILABLE)
		return err_set(err, E_BUSY, "the history is being packed or copied; try again");
	if (status == E_NOT_FOUND)
		return err_set(err, E_NOT_FOUND, "there is no such history any more");
	if (status != 0)
		return status;
	if (order->what == ORDER_GC)
		status = gc_locked(k, order, repository, lock, err);
	else
		status = k->setup.drop(k->setup.data, order->history, err);
	(void)close(lock); /* nothing is written through it */
	if (status == 0 && order->what == ORDER_REMOVE)
		return remove_gone(k, order, err);
	if (order->what == ORDER_GC)
		k->setup.on_packed(k->setup.data, order->history);
	return status;
}

static void carry_out(struct keeper *k, struct order *order)
{
	static const char *const words[] = {[ORDER_GC] = "collected", [ORDER_REMOVE] = "removed"};
	order->status = obey(k, order, &order->err);
	if (order->status == 0)
		log_info(k->setup.log, "%s history=%s freed_bytes=%llu", words[order->what],
			order->history, (unsigned long long)order->freed_bytes);
	k->setup.on_done(k->setup.data, order);
}

/* ---- the thread ---- */

/* What an earlier gateway left: half-made packs go, loose objects are counted. */
static int survey_one(
	void *data, const char *path, const char *name, bool is_folder, struct err *err)
{
	struct keeper *k = data;
	char id[64];
	size_t len = strlen(name);
	int lock = -1;
	if (!is_folder || len <= 4 || strcmp(name + len - 4, ".git") != 0 ||
		!copy_text(id, sizeof id, name, len - 4))
		return 0;
	pthread_mutex_lock(&k->lock);
	bool closing = k->closing;
	pthread_mutex_unlock(&k->lock);
	if (closing)
		return err_set(err, E_UNAVAILABLE, "the gateway ends");
	if (pack_lock(path, false, &lock, NULL) == 0) {
		/* One that cannot be cleaned is met again when it is packed. */
		(void)pack_clean(path, NULL);
		(void)close(lock); /* as above */
	}
	unsigned n = pack_loose_nodes(path);
	pthread_mutex_lock(&k->lock);
	if (n > 0 || lock < 0) /* somebody is at it: to be cleaned afterwards */
		note(k, id, n > 0 ? n : 1);
	pthread_mutex_unlock(&k->lock);
	return 0;
}

/* Under the lock. */
static void wait_until(struct keeper *k, uint64_t ms)
{
	struct timespec until = {
		.tv_sec = (time_t)(ms / 1000), .tv_nsec = (long)(ms % 1000) * 1000000};
	if (ms == NEVER)
		(void)pthread_cond_wait(&k->wake, &k->lock);
	else
		(void)pthread_cond_timedwait(&k->wake, &k->lock, &until); /* it looks again */
}

static struct order *take_order(struct keeper *k)
{
	if (list_empty(&k->orders))
		return NULL;
	struct order *order = CONTAINER_OF(k->orders.next, struct order, link);
	list_remove(&order->link);
	return order;
}

/* Under the lock, let go of while something is done. False: there was nothing. */
static bool do_next(struct keeper *k, uint64_t *ret_ms)
{
	struct order *order = take_order(k);
	struct kept *due = order ? NULL : next_due(k, ret_ms);
	if (order) {
		pthread_mutex_unlock(&k->lock);
		carry_out(k, order);
		pthread_mutex_lock(&k->lock);
	} else if (due) {
		char id[64];
		unsigned n = due->n;
		memcpy(id, due->id, sizeof id);
		pthread_mutex_unlock(&k->lock);
		int status = pack_due(k, id, n);
		pthread_mutex_lock(&k->lock);
		settle(k, id, n, status);
	}
	return order || due;
}

static void *keep(void *data)
{
	struct keeper *k = data;
	uint64_t ms = NEVER;
	/* What cannot be read is no reason to keep nothing else in order. */
	(void)tree_each(k->setup.folder, survey_one, k, NULL);
	pthread_mutex_lock(&k->lock);
	while (!k->closing)
		if (!do_next(k, &ms))
			wait_until(k, ms);
	for (struct order *order; (order = take_order(k));) {
		order->status = err_set(&order->err, E_UNAVAILABLE, "the gateway ends");
		k->setup.on_done(k->setup.data, order);
	}
	pthread_mutex_unlock(&k->lock);
	k->setup.on_ended(k->setup.data);
	return NULL;
}

static void drop(struct keeper *k)
{
	struct kept *kept, *next;
	HASH_ITER (hh, k->kept, kept, next) {
		HASH_DEL(k->kept, kept);
		free(kept);
	}
	child_done(&k->child);
	(void)pthread_cond_destroy(&k->wake); /* nobody waits */
	(void)pthread_mutex_destroy(&k->lock);
	free(k);
}

struct keeper *keeper_start(const struct keeper_setup *setup)
{
	struct keeper *k = xcalloc(1, sizeof *k);
	pthread_condattr_t monotonic;
	k->setup = *setup;
	struct history_keeping *keeping = &k->setup.keeping;
	keeping->every = keeping->every ? keeping->every : EVERY;
	keeping->idle_ms = keeping->idle_ms ? keeping->idle_ms : IDLE_MS;
	keeping->retry_ms = keeping->retry_ms ? keeping->retry_ms : RETRY_MS;
	list_init(&k->orders);
	child_init(&k->child);
	(void)pthread_condattr_init(&monotonic); /* these cannot fail with what they are given */
	(void)pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
	(void)pthread_mutex_init(&k->lock, NULL);
	(void)pthread_cond_init(&k->wake, &monotonic);
	(void)pthread_condattr_destroy(&monotonic);
	if (pthread_create(&k->thread, NULL, keep, k) == 0)
		return k;
	drop(k);
	return NULL;
}

void keeper_stop(struct keeper *k)
{
	pthread_mutex_lock(&k->lock);
	k->closing = true;
	pthread_cond_signal(&k->wake);
	pthread_mutex_unlock(&k->lock);
	child_stop(&k->child);
}

void keeper_join(struct keeper *k)
{
	(void)pthread_join(k->thread, NULL); /* it has said that it ended */
	drop(k);
}
