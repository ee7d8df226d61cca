#include "gateway/spine/forget.h"

#include <string.h>

#include "frontend-adapter/adapter.h"
#include "gateway/gateway.h"
#include "gateway/spine/desk.h"
#include "gateway/spine/forget_run.h"
#include "history/history.h"

struct forget {
	struct gateway *gw;
	struct forgetting *f; /* between its two halves */
	void (*cb)(void *data, int status, struct bytes json, const struct err *err);
	void *data;
};

static void end(struct forget *fg, int status, struct bytes json, const struct err *err)
{
	if (fg->cb)
		fg->cb(fg->data, status, json, err);
	free(fg);
}

static void fail(struct forget *fg, const struct err *err)
{
	end(fg, err->code, (struct bytes){0}, err);
}

/* ---- who knows nodes by their old ids ---- */

struct renamed {
	struct history_rewritten *pairs; /* by `was` */
	size_t n;
};

static int by_was(const void *a, const void *b)
{
	const struct history_rewritten *x = a, *y = b;
	return strcmp(x->was, y->was);
}

static const char *now_of(const void *data, const char *node)
{
	const struct renamed *r = data;
	struct history_rewritten wanted;
	if (!copy_text(wanted.was, sizeof wanted.was, node, strlen(node)))
		return NULL;
	const struct history_rewritten *found =
		bsearch(&wanted, r->pairs, r->n, sizeof wanted, by_was);
	return found ? found->now : NULL;
}

/* Without memory they go on by the old ids, which lead to the same. */
static void tell_chats(struct chats *chats, const struct history_forgotten *told)
{
	struct renamed r = {.n = told->n_rewritten};
	if (r.n == 0 || !chats)
		return;
	r.pairs = malloc(r.n * sizeof *r.pairs);
	if (!r.pairs)
		return;
	memcpy(r.pairs, told->rewritten, r.n * sizeof *r.pairs);
	qsort(r.pairs, r.n, sizeof *r.pairs, by_was);
	chats_renamed(chats, now_of, &r);
	free(r.pairs);
}

static void on_done(void *data, const struct history_forgotten *told)
{
	struct forget *fg = data;
	struct kernels *ks = fg->gw->kernels;
	if (ks)
		LIST_EACH (at, &ks->desks)
			scribe_renamed(CONTAINER_OF(at, struct desk, link), told->rewritten,
				told->n_rewritten);
	tell_chats(fg->gw->chats, told);
	end(fg, told->status, told->json, told->err);
}

/* ---- the steps ---- */

static void leave(struct forget *fg, const struct err *err)
{
	if (fg->gw->histories)
		history_forget_leave(TAKE(fg->f));
	fail(fg, err);
}

static void on_journal(void *data, const struct err *err)
{
	struct forget *fg = data;
	struct err why;
	if (err) {
		leave(fg, err);
		return;
	}
	if (!fg->gw->histories || fg->gw->ending) {
		err_set(&why, E_UNAVAILABLE,
			"the gateway ends; the next start goes on with forgetting");
		leave(fg, &why);
		return;
	}
	if (history_forget_rest(TAKE(fg->f), &why) != 0)
		fail(fg, &why);
}

static void on_found(void *data, struct forgetting *f, const struct history_run_found *what)
{
	struct forget *fg = data;
	struct gateway *gw = fg->gw;
	struct err err;
	int rc = 0;
	fg->f = f;
	if (gw->ending)
		rc = err_set(&err, E_UNAVAILABLE,
			"the gateway ends; the next start goes on with forgetting");
	else if (gw->chats)
		rc = chats_forget(gw->chats, what->kernel_id, what->code, &err);
	if (rc == 0)
		rc = forget_run(gw, what->kernel_id, what->msg_id, on_journal, fg, &err);
	if (rc != 0)
		leave(fg, &err);
}

void forget_node(struct gateway *gw, const struct history_question *question,
	void (*cb)(void *data, int status, struct bytes json, const struct err *err), void *data)
{
	struct forget *fg = xcalloc(1, sizeof *fg);
	fg->gw = gw;
	fg->cb = cb;
	fg->data = data;
	const struct history_forget_watcher watcher = {
		.on_found = on_found, .on_done = on_done, .data = fg};
	history_forget(gw->histories, question, &watcher);
}

static void resume_one(void *data, const char *history, const char *node)
{
	struct gateway *gw = data;
	const struct history_question question = {
		.what = HISTORY_NODE, .history = history, .node = node};
	log_info(&gw->log, "forgetting_goes_on history=%s node=%s", history, node);
	forget_node(gw, &question, NULL, NULL);
}

void forget_resume(struct gateway *gw)
{
	struct err err;
	if (gw->histories && histories_unfinished(gw->histories, resume_one, gw, &err) != 0)
		log_warn(&gw->log, "forgetting_not_looked_for error=\"%s\"", err.text);
}
