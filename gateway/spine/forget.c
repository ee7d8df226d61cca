#include "gateway/spine/forget.h"

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

static void on_done(void *data, const struct history_forgotten *told)
{
	struct forget *fg = data;
	struct kernels *ks = fg->gw->kernels;
	if (ks)
		LIST_EACH (at, &ks->desks)
			scribe_renamed(CONTAINER_OF(at, struct desk, link), told->rewritten,
				told->n_rewritten);
	end(fg, told->status, told->json, told->err);
}

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
		forget_run(gw, what->kernel_id, what->msg_id, on_journal, fg);
	else
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
