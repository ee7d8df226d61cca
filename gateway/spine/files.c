#include "gateway/spine/files.h"

#include <assert.h>
#include <cjson/cJSON.h>
#include <stdio.h>
#include <string.h>

#include "gateway/base/json_tree.h"
#include "gateway/spine/desk.h"
#include "gateway/spine/facts.h"

#define TELL_MS	    10000u
#define SETTLE_MS   2000u
#define CONTENTS_MS 120000u /* 256 MiB at 2 MiB a second */
#define NOT_IN_TIME "not told in time"
#define REASON_MAX  2048u
#define CARRIED_MAX (16u << 20) /* more than what a folder may cost */
#define ALL_MAX	    (32u << 20) /* of all runs of a kernel that are not recorded yet */

struct carried {
	struct list link;
	struct desk *desk;
	char *msg_id;
	uint64_t turn; /* as it ended */
	struct timer patience;
	bool ready;
	char *text;
};

static void on_scan_late(struct timer *t);
static void on_settled(struct timer *t);
static bool are_waiting(const struct files *f);

void files_init(struct desk *d)
{
	list_init(&d->files.carried);
	timer_init(&d->files.scan.patience, on_scan_late);
	timer_init(&d->files.settling, on_settled);
}

void files_done(struct desk *d)
{
	struct files *f = &d->files;
	assert(list_empty(&f->carried));
	files_scan_cancel(d);
	telling_drop(TAKE(f->now));
	folder_clear(&f->folder);
}

bool files_are_on(const struct desk *d)
{
	return d->gw->histories && d->kernel && (!d->ending || d->files.settle) &&
	       kernel_has_files(d->kernel);
}

static void unsync(struct desk *d)
{
	d->files.synced = false;
}

void files_turn(struct desk *d)
{
	d->files.turn++;
	unsync(d);
}

/* A container that is another one has told nothing yet: its folder was empty. */
static void look_where(struct desk *d)
{
	struct files *f = &d->files;
	uint64_t place = kernel_place(d->kernel);
	if (f->place != place) {
		folder_clear(&f->folder);
		f->place = place;
		f->known = true;
		files_turn(d);
	}
	if (f->epoch != d->epoch)
		files_turn(d);
	f->epoch = d->epoch;
}

void files_adopted(struct desk *d)
{
	d->files.place = kernel_place(d->kernel);
	d->files.epoch = d->epoch;
	d->files.known = d->files.synced = false;
}

/* ---- what a run carries ---- */

static void on_late(struct timer *t);

static struct carried *carried_new(struct desk *d, const char *msg_id)
{
	struct carried *c = xcalloc(1, sizeof *c);
	c->desk = d;
	c->msg_id = xstrdup(msg_id);
	c->turn = d->files.turn;
	timer_init(&c->patience, on_late);
	list_append(&d->files.carried, &c->link);
	return c;
}

static void set_text(struct carried *c, char *text)
{
	struct files *f = &c->desk->files;
	f->carried_bytes -= c->text ? strlen(c->text) : 0;
	f->carried_bytes += text ? strlen(text) : 0;
	free(c->text);
	c->text = text;
}

void carried_free(struct carried *c)
{
	if (!c)
		return;
	struct files *f = &c->desk->files;
	if (f->now && f->now->carried == c)
		f->now->carried = NULL;
	timer_stop(c->desk->gw->clock, &c->patience);
	set_text(c, NULL);
	list_remove(&c->link);
	free(c->msg_id);
	free(c);
}

bool carried_is_ready(const struct carried *c)
{
	return c->ready;
}

const char *carried_text(const struct carried *c)
{
	return c->text ? c->text : "";
}

/* Takes the text. */
static void set_ready(struct carried *c, char *text)
{
	struct files *f = &c->desk->files;
	if (f->now && f->now->carried == c)
		f->now->carried = NULL;
	timer_stop(c->desk->gw->clock, &c->patience);
	c->ready = true;
	if (f->settle && !are_waiting(f))
		timer_start(c->desk->gw->clock, &f->settling, 0);
	set_text(c, text);
	scribe_look_soon(c->desk);
}

static void give_up(struct carried *c, const char *why)
{
	AUTO(buf_done) struct buf b;
	char text[REASON_MAX / 4];
	(void)copy_text(text, sizeof text, why, strlen(why)); /* may be cut */
	for (char *at = text; *at; at++)
		if ((unsigned char)*at >= 0x80) /* of a character that was cut, maybe */
			*at = '?';
	buf_init(&b, REASON_MAX);
	(void)buf_addf(&b, ",\"files_reason\":"); /* checked below */
	(void)buf_add_json_string(&b, text, strlen(text));
	unsync(c->desk);
	log_info(&c->desk->log, "files_not_carried msg_id=%s reason=\"%s\"", c->msg_id, why);
	set_ready(c, b.failed ? NULL : (char *)buf_take(&b, NULL));
}

static void on_late(struct timer *t)
{
	give_up(CONTAINER_OF(t, struct carried, patience), NOT_IN_TIME);
}

static void let_go(struct desk *d, const char *why)
{
	struct telling *t = TAKE(d->files.now);
	if (!t)
		return;
	if (t->change)
		unsync(d);
	struct carried *c = TAKE(t->carried);
	telling_drop(t);
	if (c)
		give_up(c, why);
}

void files_lost(struct desk *d)
{
	unsync(d);
	LIST_EACH_SAFE (at, &d->files.carried)
		give_up(CONTAINER_OF(at, struct carried, link),
			"what it builds on could not be recorded");
}

void files_give_up(struct desk *d, const char *why)
{
	files_scan_cancel(d);
	let_go(d, why);
	LIST_EACH_SAFE (at, &d->files.carried) {
		struct carried *c = CONTAINER_OF(at, struct carried, link);
		if (!c->ready)
			give_up(c, why);
	}
}

/* The facts that follow have the folder from here on. */
static void carry(struct carried *c, const cJSON *change)
{
	AUTO(freep) char *text = json_print(change, NULL);
	AUTO(buf_done) struct buf b;
	buf_init(&b, CARRIED_MAX);
	(void)buf_add_text(&b, ",\"files\":"); /* checked below */
	(void)buf_add_text(&b, text ? text : "");
	if (!text || b.failed || c->desk->files.carried_bytes + b.len > ALL_MAX) {
		give_up(c, "too much waits to be recorded");
		return;
	}
	c->desk->files.synced = c->turn == c->desk->files.turn;
	set_ready(c, (char *)buf_take(&b, NULL));
}

static bool are_waiting(const struct files *f)
{
	LIST_EACH (at, &f->carried) {
		if (!CONTAINER_OF(at, struct carried, link)->ready)
			return true;
	}
	return false;
}

static void on_settled(struct timer *t)
{
	struct files *f = CONTAINER_OF(t, struct files, settling);
	struct desk *d = CONTAINER_OF(f, struct desk, files);
	void (*cb)(struct desk * d) = TAKE(f->settle);
	files_give_up(d, "the kernel was ended meanwhile");
	cb(d);
}

bool files_settle(struct desk *d, void (*cb)(struct desk *d))
{
	struct files *f = &d->files;
	files_scan_cancel(d);
	f->settle = cb;
	if (files_are_on(d) && are_waiting(f)) {
		timer_start(d->gw->clock, &f->settling, SETTLE_MS);
		return true;
	}
	f->settle = NULL;
	files_give_up(d, "the kernel was ended meanwhile");
	return false;
}

/* Its cell changed nothing, but what it follows on is not what was recorded. */
static struct carried *carry_all(struct desk *d, const char *msg_id)
{
	struct files *f = &d->files;
	if (f->synced || !f->known || are_waiting(f) || (f->now && !f->now->is_whole))
		return NULL;
	telling_drop(TAKE(f->now)); /* of one that did not wait for it */
	cJSON *change = folder_change(&f->folder);
	struct carried *c = carried_new(d, msg_id);
	carry(c, change);
	cJSON_Delete(change);
	return c;
}

/* What has come and is whole goes with the run. */
static void claim(struct desk *d)
{
	struct telling *t = TAKE(d->files.now);
	if (t->change)
		carry(t->carried, t->change);
	else
		set_ready(t->carried, NULL);
	telling_drop(t);
}

struct carried *files_carry(struct request *r)
{
	struct desk *d = r->desk;
	struct files *f = &d->files;
	enum facts_files said = r->reply ? facts_files(r->reply) : FACTS_FILES_UNSAID;
	if (!files_are_on(d) || said == FACTS_FILES_UNSAID)
		return NULL;
	look_where(d);
	if (said == FACTS_FILES_SAME)
		return carry_all(d, r->x->msg_id);
	struct carried *c = carried_new(d, r->x->msg_id);
	timer_start(d->gw->clock, &c->patience, TELL_MS);
	if (!f->now || strcmp(f->now->msg_id, c->msg_id) != 0)
		return c;
	f->now->carried = c;
	if (f->now->is_whole)
		claim(d);
	return c;
}

/* ---- what is told ---- */

static struct carried *waiting_for(const struct files *f, const char *msg_id)
{
	LIST_EACH (at, &f->carried) {
		struct carried *c = CONTAINER_OF(at, struct carried, link);
		if (!c->ready && strcmp(c->msg_id, msg_id) == 0)
			return c;
	}
	return NULL;
}

static void scan_over(struct desk *d, bool is_recorded, const struct err *err)
{
	struct files *f = &d->files;
	void (*cb)(void *data, bool is_recorded, const struct err *err) = TAKE(f->scan.cb);
	timer_stop(d->gw->clock, &f->scan.patience);
	f->scan.id[0] = '\0';
	if (cb)
		cb(f->scan.data, is_recorded, err);
}

static bool is_scan(const struct files *f, const char *msg_id)
{
	return f->scan.id[0] && strcmp(f->scan.id, msg_id) == 0;
}

/* What follows would build on it: until all is told anew, which is asked for, nothing can be said
 * of the folder. */
static void refuse(struct desk *d, const char *msg_id, const struct err *err)
{
	struct files *f = &d->files;
	struct carried *c = waiting_for(f, msg_id);
	const struct kernel_want nothing = {.msg_id = msg_id, .last = true};
	log_warn(&d->log, "files_refused msg_id=%s error=\"%s\"", msg_id, err->text);
	f->known = f->synced = false;
	(void)kernel_want(d->kernel, &nothing, NULL); /* nobody waits for it */
	if (c)
		give_up(c, err->text);
	if (is_scan(f, msg_id))
		scan_over(d, false, err);
	else if (!f->scan.id[0])
		files_ask(d);
}

static int take_change(struct desk *d, struct bytes text, cJSON **ret, struct err *err)
{
	struct files *f = &d->files;
	cJSON *change = NULL;
	int rc = told_read(text, &change, err);
	if (rc != 0)
		return rc;
	if (!f->known && !told_is_full(change))
		rc = err_set(err, E_INVALID, "it follows on what was not told");
	if (rc == 0)
		rc = folder_apply(&f->folder, change, err);
	if (rc == 0)
		*ret = TAKE(change);
	cJSON_Delete(change);
	return rc;
}

/* What is to be recorded of it; NULL: nothing, it is all the same. Takes the change. */
static cJSON *to_record(struct desk *d, cJSON *change)
{
	struct files *f = &d->files;
	bool follows = f->known && f->synced && !told_is_full(change);
	cJSON *ret = change;
	f->known = true;
	if (follows && !told_is_empty(change)) {
		f->synced = false; /* until it is carried */
		return change;
	}
	ret = follows ? NULL : folder_change(&f->folder);
	cJSON_Delete(change);
	return ret;
}

void files_on_files(void *desk, const char *msg_id, struct bytes text)
{
	struct desk *d = desk;
	struct files *f = &d->files;
	const struct execution *x = execution_find(d, msg_id);
	cJSON *change = NULL;
	struct err err;
	if (!files_are_on(d))
		return;
	look_where(d);
	let_go(d, "what its container told of the next one came before all of it");
	if (take_change(d, text, &change, &err) != 0) {
		refuse(d, msg_id, &err);
		return;
	}
	if (is_scan(f, msg_id)) /* what is left takes the time that it takes */
		timer_start(d->gw->clock, &f->scan.patience, CONTENTS_MS);
	f->now = telling_new(
		d, msg_id, x && x->history ? x->history : d->scribe.history, to_record(d, change));
	f->now->carried = waiting_for(f, msg_id);
	telling_begin(f->now);
}

void files_on_content(void *desk, const char *name, struct bytes bytes)
{
	struct desk *d = desk;
	if (d->files.now)
		telling_content(d->files.now, name, bytes);
}

/* A scan that somebody waits for. */
static void record_scan(struct desk *d)
{
	struct telling *t = TAKE(d->files.now);
	struct err err = {
		.code = E_UNAVAILABLE, .text = "what is in the folder cannot be recorded"};
	struct carried *c = t->change ? carried_new(d, t->msg_id) : NULL;
	bool asked = d->files.scan.cb != NULL, recorded = false;
	if (c && asked) {
		carry(c, t->change);
		recorded = scribe_add_files(d, c);
	}
	if (c && !recorded) {
		unsync(d);
		carried_free(c);
	}
	telling_drop(t);
	scan_over(d, recorded, c && asked && !recorded ? &err : NULL);
}

void files_told(struct telling *t, const struct err *err)
{
	struct desk *d = t->desk;
	bool scan = is_scan(&d->files, t->msg_id);
	if (err) {
		let_go(d, err->text);
		if (scan)
			scan_over(d, false, err);
	} else if (scan) {
		record_scan(d);
	} else if (t->carried) {
		claim(d);
	} /* else its execution has not ended, or has gone without it */
}

/* ---- scans ---- */

static void on_scan_late(struct timer *t)
{
	struct files *f = CONTAINER_OF(t, struct files, scan.patience);
	struct desk *d = CONTAINER_OF(f, struct desk, files);
	struct err err;
	if (f->scan.is_asked)
		err_set(&err, E_TIMEOUT,
			"the kernel's container did not tell in time what is in its folder");
	else
		err_set(&err, E_UNAVAILABLE,
			"the kernel's container cannot be asked what is in its folder");
	if (f->now && is_scan(f, f->now->msg_id))
		let_go(d, err.text);
	scan_over(d, false, &err);
}

static int begin_scan(struct desk *d, struct err *err)
{
	struct files *f = &d->files;
	look_where(d);
	crypto_uuid(f->scan.id);
	timer_start(d->gw->clock, &f->scan.patience, TELL_MS);
	int rc = kernel_scan(d->kernel, f->scan.id, !f->known, err);
	f->scan.is_asked = rc == 0;
	return rc;
}

void files_ask(struct desk *d)
{
	struct err err;
	if (!files_are_on(d) || begin_scan(d, &err) == 0)
		return;
	log_warn(&d->log, "not_scanned error=\"%s\"", err.text);
	scan_over(d, false, &err);
}

void files_scan(
	struct desk *d, void (*cb)(void *data, bool is_recorded, const struct err *err), void *data)
{
	struct files *f = &d->files;
	struct err err;
	f->scan.cb = cb;
	f->scan.data = data;
	/* What cannot be asked is told as what is not answered, from the loop. */
	if (begin_scan(d, &err) != 0)
		timer_start(d->gw->clock, &f->scan.patience, 0);
}

void files_scan_cancel(struct desk *d)
{
	struct files *f = &d->files;
	f->scan.cb = NULL;
	f->scan.id[0] = '\0';
	timer_stop(d->gw->clock, &f->scan.patience);
}

void files_laid(struct desk *d, const struct cJSON *entries)
{
	struct files *f = &d->files;
	struct err err;
	cJSON *change = cJSON_CreateObject();
	cJSON_AddTrueToObject(change, "full");
	cJSON_AddItemToObject(change, "changed", cJSON_Duplicate(entries, true));
	cJSON_AddArrayToObject(change, "removed");
	cJSON_AddArrayToObject(change, "lost");
	look_where(d);
	f->known = f->synced = folder_apply(&f->folder, change, &err) == 0;
	if (!f->known)
		log_warn(&d->log, "folder_not_known error=\"%s\"", err.text);
	cJSON_Delete(change);
}
