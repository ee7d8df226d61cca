/* Between the keeper and the others: what it wants of the recorder, what is ordered of it. */
#include <stdio.h>
#include <string.h>

#include "history/lanes.h"
#include "history/recorder.h"

/* ---- the keeper's thread ---- */

static void on_packed(void *data, const char *history)
{
	struct histories *h = data;
	struct wish *wish = xcalloc(1, sizeof *wish);
	(void)copy_text(wish->history, sizeof wish->history, history, strlen(history)); /* an id */
	pthread_mutex_lock(&h->lock);
	list_append(&h->wishes, &wish->link);
	pthread_cond_signal(&h->record_wake);
	pthread_mutex_unlock(&h->lock);
}

/* Waits for the recorder, which never waits for us. */
static int await(struct histories *h, struct wish *wish, struct err *err)
{
	pthread_mutex_lock(&h->lock);
	list_append(&h->wishes, &wish->link);
	pthread_cond_signal(&h->record_wake);
	while (!wish->done && !h->record_ended)
		(void)pthread_cond_wait(&h->wish_done, &h->lock);
	list_remove(&wish->link);
	pthread_mutex_unlock(&h->lock);
	if (!wish->done)
		return err_set(err, E_UNAVAILABLE, "the gateway ends");
	*err = wish->err;
	return wish->status;
}

static int drop(void *data, const char *history, struct err *err)
{
	struct wish wish = {.drops = true};
	(void)copy_text(wish.history, sizeof wish.history, history, strlen(history)); /* an id */
	return await(data, &wish, err);
}

int keeping_place(
	struct histories *h, const struct history_whose *whose, char ret_id[64], struct err *err)
{
	struct wish wish = {.places = whose};
	int status = await(h, &wish, err);
	if (status == 0)
		memcpy(ret_id, wish.history, sizeof wish.history);
	return status;
}

static void on_done(void *data, struct order *order)
{
	struct histories *h = data;
	pthread_mutex_lock(&h->lock);
	list_append(&h->orders_done, &order->link);
	(void)uv_async_send(&h->async); /* cannot fail while it is open */
	pthread_mutex_unlock(&h->lock);
}

static void on_ended(void *data)
{
	struct histories *h = data;
	pthread_mutex_lock(&h->lock);
	h->keep_ended = true;
	(void)uv_async_send(&h->async); /* as above; the loop cannot close it before the lock */
	pthread_mutex_unlock(&h->lock);
}

struct keeper *keeping_start(struct histories *h, const struct history_keeping *keeping)
{
	struct keeper_setup setup = {.folder = h->folder,
		.log = &h->log,
		.keeping = *keeping,
		.on_packed = on_packed,
		.drop = drop,
		.on_done = on_done,
		.on_ended = on_ended,
		.data = h};
	return keeper_start(&setup);
}

/* ---- the recorder's thread ---- */

bool keeping_wants(const struct histories *h)
{
	bool untidy = recorder_is_untidy(h->recorder) && !recorder_lags(h->recorder);
	return !list_empty(&h->wishes) || recorder_sheds(h->recorder) || untidy;
}

static bool waits_for(const struct histories *h, const char *history)
{
	LIST_EACH (at, &h->jobs) {
		const struct job *job = CONTAINER_OF(at, struct job, link);
		if (strcmp(job->run.history_id, history) == 0)
			return true;
	}
	return false;
}

static struct wish *take_wish(struct histories *h)
{
	struct wish *wish = NULL;
	pthread_mutex_lock(&h->lock);
	if (!list_empty(&h->wishes)) {
		wish = CONTAINER_OF(h->wishes.next, struct wish, link);
		list_remove(&wish->link);
		if (wish->drops && waits_for(h, wish->history))
			wish->status = err_set(&wish->err, E_BUSY,
				"executions of this history wait to be recorded");
	}
	pthread_mutex_unlock(&h->lock);
	return wish;
}

static void fulfil(struct histories *h, struct wish *wish)
{
	if (!wish->drops && !wish->places) {
		recorder_reopen(h->recorder, wish->history);
		free(wish);
		return;
	}
	if (wish->places)
		wish->status = recorder_place(h->recorder, wish->places, wish->history, &wish->err);
	else if (wish->status == 0)
		wish->status = recorder_drop(h->recorder, wish->history, &wish->err);
	pthread_mutex_lock(&h->lock);
	wish->done = true; /* whose memory it is goes on now */
	pthread_cond_broadcast(&h->wish_done);
	pthread_mutex_unlock(&h->lock);
}

void keeping_turn(struct histories *h)
{
	for (struct wish *wish; (wish = take_wish(h));)
		fulfil(h, wish);
	recorder_shed(h->recorder);
	pthread_mutex_lock(&h->lock);
	bool busy = !list_empty(&h->jobs) || adoptions_wait(h);
	pthread_mutex_unlock(&h->lock);
	if (!busy)
		recorder_tidy(h->recorder);
}

/* ---- the loop ---- */

static struct order *new_order(enum order_what what, const char *id,
	void (*cb)(void *data, int status, struct bytes json, const struct err *err), void *data)
{
	struct order *order = xcalloc(1, sizeof *order);
	order->what = what;
	order->cb = cb;
	order->data = data;
	/* A name that long is no history's; cut, it is none either. */
	(void)copy_text(order->history, sizeof order->history, id, strlen(id));
	return order;
}

void history_gc(struct histories *h, const char *id,
	void (*cb)(void *data, int status, struct bytes json, const struct err *err), void *data)
{
	keeper_order(h->keeper, new_order(ORDER_GC, id, cb, data));
}

void history_remove(struct histories *h, const char *id,
	void (*cb)(void *data, int status, struct bytes json, const struct err *err), void *data)
{
	keeper_order(h->keeper, new_order(ORDER_REMOVE, id, cb, data));
}

static void tell(struct order *order)
{
	char json[128] = "";
	if (order->what == ORDER_GC)
		(void)snprintf(json, sizeof json, "{\"freed_bytes\":%llu,\"bytes\":%llu}",
			(unsigned long long)order->freed_bytes, (unsigned long long)order->bytes);
	else
		(void)snprintf(json, sizeof json, "{\"freed_bytes\":%llu}",
			(unsigned long long)order->freed_bytes);
	bool failed = order->status != 0;
	order->cb(order->data, order->status,
		failed ? (struct bytes){0} : (struct bytes){(uint8_t *)json, strlen(json)},
		failed ? &order->err : NULL);
	free(order);
}

void keeping_tell(struct list *orders)
{
	LIST_EACH_SAFE (at, orders) {
		list_remove(at);
		tell(CONTAINER_OF(at, struct order, link));
	}
}
