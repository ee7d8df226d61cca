/* Forgetting, between the loop and the recorder's thread. */
#include <string.h>

#include "history/forget.h"
#include "history/lanes.h"

static char *put(char *at, const char **text)
{
	size_t size = *text ? strlen(*text) + 1 : 0;
	if (!*text)
		return at;
	*text = memcpy(at, *text, size);
	return at + size;
}

static void copy_question(struct forgetting *f, const struct history_question *question)
{
	struct history_question *q = &f->question;
	*q = *question;
	const char **texts[] = {&q->owner, &q->history, &q->node, &q->kernel_id};
	size_t size = 1;
	q->cursor = NULL;
	for (size_t i = 0; i < ARRAY_LEN(texts); i++)
		size += *texts[i] ? strlen(*texts[i]) + 1 : 0;
	char *at = f->text = xcalloc(1, size);
	for (size_t i = 0; i < ARRAY_LEN(texts); i++)
		at = put(at, texts[i]);
}

/* Under the lock. */
static bool is_refused(const struct histories *h)
{
	return h->closing || h->n_forgets >= FORGETS_MAX;
}

void history_forget(struct histories *h, const struct history_question *question,
	const struct history_forget_watcher *watcher)
{
	struct forgetting *f = xcalloc(1, sizeof *f);
	forgetting_init(f);
	f->h = h;
	f->watcher = *watcher;
	copy_question(f, question);
	pthread_mutex_lock(&h->lock);
	if (is_refused(h)) {
		f->status = err_set(&f->err, E_UNAVAILABLE,
			"too much is to be forgotten at once, or everything ends");
		list_append(&h->forgets_done, &f->link);
		(void)uv_async_send(&h->async); /* as in history_ask() */
	} else {
		list_append(&h->forgets, &f->link);
		h->forgets_rest = false;
		pthread_cond_signal(&h->record_wake);
	}
	h->n_forgets++;
	pthread_mutex_unlock(&h->lock);
}

int history_forget_rest(struct forgetting *f, struct err *err)
{
	struct histories *h = f->h;
	pthread_mutex_lock(&h->lock);
	bool closing = h->closing;
	if (!closing) {
		list_append(&h->forgets, &f->link);
		h->forgets_rest = false;
		pthread_cond_signal(&h->record_wake);
	}
	pthread_mutex_unlock(&h->lock);
	if (!closing)
		return 0;
	history_forget_leave(f);
	return err_set(err, E_UNAVAILABLE, "everything ends; the next start goes on with it");
}

void history_forget_leave(struct forgetting *f)
{
	pthread_mutex_lock(&f->h->lock);
	f->h->n_forgets--;
	pthread_mutex_unlock(&f->h->lock);
	forgetting_free(f);
}

int histories_unfinished(struct histories *h,
	void (*on_one)(void *data, const char *history, const char *node), void *data,
	struct err *err)
{
	return forgets_unfinished(h->folder, on_one, data, err);
}

/* ---- the recorder's thread ---- */

static struct forgetting *take(struct histories *h)
{
	struct forgetting *f = NULL;
	pthread_mutex_lock(&h->lock);
	if (!list_empty(&h->forgets)) {
		f = CONTAINER_OF(h->forgets.next, struct forgetting, link);
		list_remove(&f->link);
	}
	pthread_mutex_unlock(&h->lock);
	return f;
}

/* Somebody packs or copies the history, or reads the index: runs go on meanwhile. */
static bool is_again(const struct histories *h, const struct forgetting *f)
{
	return f->found && f->status == E_UNAVAILABLE && !h->closing;
}

static void give_back(struct histories *h, struct forgetting *f, struct list *again)
{
	pthread_mutex_lock(&h->lock);
	if (is_again(h, f)) {
		list_append(again, &f->link);
	} else {
		list_append(&h->forgets_done, &f->link);
		(void)uv_async_send(&h->async); /* cannot fail while it is open */
	}
	pthread_mutex_unlock(&h->lock);
}

void lane_forget(struct histories *h)
{
	struct list again;
	list_init(&again);
	for (struct forgetting *f; (f = take(h));) {
		if (f->found)
			forget_rest(h->recorder, f);
		else
			forget_find(h->recorder, f);
		give_back(h, f, &again);
	}
	pthread_mutex_lock(&h->lock);
	h->forgets_rest = list_empty(&h->forgets) && !list_empty(&again);
	LIST_EACH_SAFE (at, &again) {
		list_remove(at);
		list_append(&h->forgets, at);
	}
	pthread_mutex_unlock(&h->lock);
}

/* ---- back in the loop ---- */

static void tell_found(struct forgetting *f)
{
	const struct history_run_found what = {.kernel_id = f->kernel_id,
		.msg_id = f->msg_id,
		.code = {f->code.data, f->code.len}};
	f->found = true;
	f->watcher.on_found(f->watcher.data, f, &what);
}

static void tell_done(struct histories *h, struct forgetting *f)
{
	bool failed = f->status != 0;
	const struct history_forgotten told = {.status = f->status,
		.err = failed ? &f->err : NULL,
		.json = failed ? (struct bytes){0} : (struct bytes){f->json.data, f->json.len},
		.rewritten = (const void *)f->rewritten.data,
		.n_rewritten = f->rewritten.len / sizeof(struct history_rewritten)};
	if (failed)
		log_warn(&h->log, "not_forgotten history=%s node=%s reason=\"%s\"", f->history,
			f->node, f->err.text);
	f->watcher.on_done(f->watcher.data, &told);
	history_forget_leave(f);
}

void forget_tell(struct histories *h, struct forgetting *f)
{
	if (f->status == 0 && !f->found)
		tell_found(f);
	else
		tell_done(h, f);
}
