#include "tests/lib/fake_histories.h"

#include <stdio.h>
#include <string.h>

#include "gateway/base/err.h"
#include "gateway/base/list.h"

#define RUNS_MAX 64

struct histories {
	struct fake_run runs[RUNS_MAX];
	void *data[RUNS_MAX];
	size_t n, answered;
	struct history_question asked;
	char node[64], at[64], name[64], parked[512];
	void (*on_answer)(void *data, int status, struct bytes json, const struct err *err);
	void *asker;
	char forgets[64]; /* the node */
	bool forgets_rest;
	struct history_forget_watcher forgetter;
	struct list works;
	char kept[4096];
	bool held;
};

/* A question about contents that is not answered yet. */
struct work {
	struct list link;
	size_t *lacking, n;
	char *text; /* of a content */
	void (*on_lacks)(
		void *data, int status, const size_t *lacking, size_t n, const struct err *err);
	void (*on_kept)(void *data, int status, const struct err *err);
	void (*on_content)(void *data, int status, struct bytes content, const struct err *err);
	int status;
	void *data;
};

struct histories *fake_histories_new(void)
{
	struct histories *h = xcalloc(1, sizeof(struct histories));
	list_init(&h->works);
	return h;
}

static void forget(struct fake_run *run)
{
	jmsg_unref(run->request);
	jmsg_unref(run->end);
	*run = (struct fake_run){0};
}

void fake_histories_free(struct histories *h)
{
	(void)fake_histories_tell(h, NULL); /* whoever asked went */
	fake_histories_hold(h, false);
	fake_histories_work(h);
	for (size_t i = 0; i < h->n; i++)
		forget(&h->runs[i]);
	free(h);
}

static struct work *work_new(struct histories *h, void *data)
{
	struct work *w = xcalloc(1, sizeof *w);
	w->data = data;
	list_append(&h->works, &w->link);
	return w;
}

static const char *find_kept(const struct histories *h, const char *name)
{
	char key[80];
	(void)snprintf(key, sizeof key, "%s=", name); /* fits */
	const char *at = strstr(h->kept, key);
	return at ? at + strlen(key) : NULL;
}

void history_lacks(struct histories *h, const struct history_whose *whose, const char *const *names,
	size_t n,
	void (*cb)(void *data, int status, const size_t *lacking, size_t n, const struct err *err),
	void *data)
{
	struct work *w = work_new(h, data);
	(void)whose;
	w->on_lacks = cb;
	w->lacking = xcalloc(n + 1, sizeof *w->lacking);
	for (size_t i = 0; i < n; i++)
		if (!find_kept(h, names[i]))
			w->lacking[w->n++] = i;
}

void history_keep(struct histories *h, const struct history_whose *whose, const char *name,
	struct bytes content, void (*cb)(void *data, int status, const struct err *err), void *data)
{
	struct work *w = work_new(h, data);
	size_t len = strlen(h->kept);
	(void)whose;
	w->on_kept = cb;
	w->status = content.len >= 3 && memcmp(content.data, "bad", 3) == 0 ? E_INVALID : 0;
	if (w->status == 0)
		(void)snprintf(h->kept + len, sizeof h->kept - len, "%s=%.*s ", name,
			(int)content.len, (const char *)content.data); /* may be cut */
}

void history_content(struct histories *h, const struct history_whose *whose, const char *name,
	void (*cb)(void *data, int status, struct bytes content, const struct err *err), void *data)
{
	struct work *w = work_new(h, data);
	const char *text = find_kept(h, name);
	(void)whose;
	w->on_content = cb;
	w->status = text ? 0 : E_NOT_FOUND;
	w->text = strndup(text ? text : "", text ? strcspn(text, " ") : 0);
}

static void answer_work(struct work *w)
{
	static const struct err err = {E_NOT_FOUND, "as the test says"};
	const struct err *why = w->status ? &err : NULL;
	struct bytes content = {(const uint8_t *)w->text, w->text ? strlen(w->text) : 0};
	list_remove(&w->link);
	if (w->on_lacks)
		w->on_lacks(w->data, 0, w->lacking, w->n, NULL);
	else if (w->on_kept)
		w->on_kept(w->data, w->status, why);
	else
		w->on_content(w->data, w->status, content, why);
	free(w->lacking);
	free(w->text);
	free(w);
}

void fake_histories_hold(struct histories *h, bool hold)
{
	h->held = hold;
}

void fake_histories_work(struct histories *h)
{
	while (!h->held && !list_empty(&h->works))
		answer_work(CONTAINER_OF(h->works.next, struct work, link));
}

const char *fake_histories_kept(const struct histories *h)
{
	return h->kept;
}

static int read_all(struct fake_run *run, const struct history_source *source, struct err *err)
{
	struct bytes frame;
	int rc;
	while ((rc = source->next(source->data, &frame, err)) == 1) {
		jmsg_unref(run->end);
		run->n_between++;
		(void)jmsg_from_frame(frame, &run->end, NULL); /* NULL then: the test sees it */
		if (!run->request)
			run->request = jmsg_ref(run->end);
	}
	run->n_between -= run->n_between > 1 ? 2 : 1; /* a report is alone */
	source->close(source->data);
	return rc;
}

int history_record(struct histories *h, const struct history_run *run, struct err *err)
{
	struct fake_run *kept = &h->runs[h->n];
	kept->epoch = run->epoch;
	(void)snprintf(kept->name, sizeof kept->name, "%s", run->name); /* may be cut */
	(void)snprintf(kept->wanted, sizeof kept->wanted, "%s", run->wanted ? run->wanted : "");
	(void)snprintf(kept->at, sizeof kept->at, "%s", run->at ? run->at : "");
	(void)snprintf(kept->branch, sizeof kept->branch, "%s", run->branch ? run->branch : "");
	kept->after_version = run->after_version;
	h->data[h->n] = run->data;
	int rc = h->n + 1 < RUNS_MAX ? read_all(kept, &run->source, err) : E_UNAVAILABLE;
	h->n += rc == 0 ? 1 : 0;
	return rc;
}

void fake_histories_answer(struct histories *h, int status)
{
	struct err err;
	if (h->answered == h->n)
		return;
	struct history_recorded r = {.run_data = h->data[h->answered],
		.status = status,
		.history = status == 0 && h->runs[h->answered].wanted[0]
				   ? "44444444-4444-4444-8444-444444444444"
				   : "",
		.node = "0123456789012345678901234567890123456789",
		.branch = "main",
		.state_version = h->answered + 1};
	if (status == 0) {
		h->answered++;
	} else { /* it is handed over again */
		err_set(&err, status,
			status == E_UNAVAILABLE ? "an earlier one failed" : "as the test says");
		r.err = &err;
		h->n--;
		forget(&h->runs[h->answered]);
		for (size_t i = h->answered; i < h->n; i++) {
			h->runs[i] = h->runs[i + 1];
			h->data[i] = h->data[i + 1];
		}
		h->runs[h->n] = (struct fake_run){0};
	}
	scribe_recorded(NULL, &r);
}

void history_ask(struct histories *h, const struct history_question *question,
	void (*cb)(void *data, int status, struct bytes json, const struct err *err), void *data)
{
	(void)fake_histories_tell(h, NULL); /* one at a time is enough */
	h->asked = *question;
	(void)snprintf(h->node, sizeof h->node, "%s", question->node ? question->node : "");
	(void)snprintf(h->at, sizeof h->at, "%s", question->at ? question->at : "");
	(void)snprintf(h->parked, sizeof h->parked, "%s", question->parked ? question->parked : "");
	(void)snprintf(h->name, sizeof h->name, "%s", question->name ? question->name : "");
	h->asked.name = h->name;
	h->asked.node = h->node;
	h->asked.at = h->at;
	h->asked.parked = h->parked;
	h->on_answer = cb;
	h->asker = data;
}

bool fake_histories_refuse(struct histories *h, int code)
{
	void (*cb)(void *data, int status, struct bytes bytes, const struct err *err) =
		TAKE(h->on_answer);
	struct err err;
	err_set(&err, code, "it is refused");
	if (cb)
		cb(h->asker, code, (struct bytes){0}, &err);
	return cb != NULL;
}

bool fake_histories_tell(struct histories *h, const char *json)
{
	static const struct err none = {E_NOT_FOUND, "there is none"};
	void (*cb)(void *data, int status, struct bytes bytes, const struct err *err) =
		TAKE(h->on_answer);
	struct bytes bytes = {(const uint8_t *)json, json ? strlen(json) : 0};
	if (cb)
		cb(h->asker, json ? 0 : E_NOT_FOUND, bytes, json ? NULL : &none);
	return cb != NULL;
}

void history_forget(struct histories *h, const struct history_question *question,
	const struct history_forget_watcher *watcher)
{
	(void)snprintf(h->forgets, sizeof h->forgets, "%s", question->node);
	h->forgetter = *watcher;
	h->forgets_rest = false;
}

int history_forget_rest(struct forgetting *f, struct err *err)
{
	struct histories *h = (void *)f;
	(void)err;
	h->forgets_rest = true;
	return 0;
}

void history_forget_leave(struct forgetting *f)
{
	(void)f;
}

int histories_unfinished(struct histories *h,
	void (*on_one)(void *data, const char *history, const char *node), void *data,
	struct err *err)
{
	(void)h, (void)on_one, (void)data, (void)err;
	return 0;
}

const char *fake_histories_forgets(const struct histories *h)
{
	return h->forgets[0] ? h->forgets : NULL;
}

void fake_histories_found(struct histories *h, const char *kernel_id, const char *msg_id)
{
	const struct history_run_found what = {.kernel_id = kernel_id, .msg_id = msg_id};
	h->forgetter.on_found(h->forgetter.data, (void *)h, &what);
}

bool fake_histories_forgets_rest(const struct histories *h)
{
	return h->forgets_rest;
}

void fake_histories_forgot(struct histories *h, const char *json)
{
	static const struct err failed = {E_IO, "the disk failed"};
	const struct history_forgotten told = {.status = json ? 0 : E_IO,
		.err = json ? NULL : &failed,
		.json = {(const uint8_t *)json, json ? strlen(json) : 0}};
	h->forgets[0] = '\0';
	h->forgetter.on_done(h->forgetter.data, &told);
}

const struct history_question *fake_histories_asked(const struct histories *h)
{
	return &h->asked;
}

size_t fake_histories_n(const struct histories *h)
{
	return h->answered;
}

size_t fake_histories_waiting(const struct histories *h)
{
	return h->n - h->answered;
}

const struct fake_run *fake_histories_run(const struct histories *h, size_t i)
{
	return &h->runs[i];
}
