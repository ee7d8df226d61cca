#include "gateway/spine/survive.h"

#include <cjson/cJSON.h>
#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "gateway/base/file.h"
#include "gateway/base/json_tree.h"
#include "gateway/spine/desk.h"
#include "gateway/spine/input.h"
#include "gateway/spine/journal_file.h"
#include "gateway/spine/limits.h"
#include "gateway/spine/look.h"
#include "gateway/spine/notice.h"
#include "gateway/spine/relay.h"
#include "gateway/spine/sessions.h"

#define ROW_MAX_BYTES (1u << 20)
#define LOST	      "the gateway was restarted and this kernel was gone by then"

static void delete_tree(cJSON **tree)
{
	cJSON_Delete(*tree);
}

static bool row_path(const struct gateway *gw, const char *id, char ret[PATH_MAX])
{
	int n = snprintf(ret, PATH_MAX, "%s/kernels/%s.json", gw->config.data_dir, id);
	return n > 0 && n < PATH_MAX;
}

/* ---- the row ---- */

/* What a restart of a dead one needs. */
static cJSON *dead_record(const struct kernel *k)
{
	cJSON *record = cJSON_CreateObject();
	const cJSON *env = kernel_env(k);
	if (env)
		cJSON_AddItemToObject(record, "env", cJSON_Duplicate(env, true));
	if (*kernel_folder(k))
		cJSON_AddStringToObject(record, "folder", kernel_folder(k));
	return record;
}

static cJSON *row_of(struct desk *d)
{
	cJSON *kernel = NULL;
	if (d->kernel)
		kernel = d->dead ? dead_record(d->kernel) : kernel_record(d->kernel);
	if (!kernel)
		return NULL;
	cJSON *row = cJSON_CreateObject();
	/* What is missed for want of memory makes the row malformed: the kernel is not adopted. */
	cJSON_AddStringToObject(row, "id", d->id);
	cJSON_AddStringToObject(row, "owner", d->owner->name);
	cJSON_AddStringToObject(row, "spec", d->name);
	if (d->path)
		cJSON_AddStringToObject(row, "path", d->path);
	if (d->scribe.history[0])
		cJSON_AddStringToObject(row, "history", d->scribe.history);
	scribe_add_stand(d, row);
	if (d->dead)
		cJSON_AddStringToObject(row, "dead", d->reason);
	cJSON_AddItemToObject(row, "kernel", kernel);
	if (d->gw->sessions)
		cJSON_AddItemToObject(row, "sessions", sessions_rows(d->gw->sessions, d->id));
	return row;
}

void survive_record(struct desk *d)
{
	struct err err;
	AUTO(delete_tree) cJSON *row = d->ending || d->unborn ? NULL : row_of(d);
	AUTO(freep) char *text = row ? json_print(row, &err) : NULL;
	char path[PATH_MAX];
	if (!row || !row_path(d->gw, d->id, path))
		return;
	if (!text || file_write(path, text, strlen(text), &err) != 0)
		log_warn(&d->log, "row_not_written error=\"%s\"", err.text);
}

void survive_ready(const struct desk *d)
{
	AUTO(delete_tree) cJSON *record = kernel_record(d->kernel);
	if (!record)
		survive_forget(d);
}

void survive_forget(const struct desk *d)
{
	char path[PATH_MAX];
	if (row_path(d->gw, d->id, path))
		(void)unlink(path); /* a row that stays names no container: it is dropped then */
}

/* In the journal's folder. */
static bool path_beside(const struct desk *d, const char *name, char ret[PATH_MAX])
{
	int n = snprintf(ret, PATH_MAX, "%s/journals/%s/%s", d->gw->config.data_dir, d->id, name);
	return n > 0 && n < PATH_MAX;
}

void survive_remove(const struct desk *d)
{
	static const char *const names[] = {"live", FORGOTTEN_FILE};
	char path[PATH_MAX];
	for (size_t i = 0; i < ARRAY_LEN(names); i++)
		if (path_beside(d, names[i], path))
			(void)unlink(path); /* what stays is swept at the next start */
}

void survive_open(struct desk *d, bool goes_on)
{
	char path[PATH_MAX];
	struct err err;
	if (!goes_on)
		survive_remove(d); /* of an earlier kernel of that id */
	else if (path_beside(d, "", path))
		forgotten_read(&d->scribe.forgotten, path);
	if (!path_beside(d, "live", path) || file_folder_make(path, &err) != 0)
		return;
	if (live_open(path, &d->live, &err) != 0)
		log_warn(&d->log, "live_not_opened error=\"%s\"", err.text);
}

/* ---- leaving ---- */

static bool has_row(const struct desk *d)
{
	char path[PATH_MAX];
	return row_path(d->gw, d->id, path) && access(path, F_OK) == 0;
}

/* One that is dying, or is being restarted, ends: the next gateway starts it anew under its id, and
 * its pages hear what became of what they asked. */
void survive_leave(struct desk *d)
{
	survive_record(d);
	if (!d->kernel || !has_row(d)) {
		desk_end(d, "The gateway is ending.", NULL, NULL);
		return;
	}
	bool left = !d->dead && kernel_leave(d->kernel);
	log_info(&d->log, left ? "kernel_left" : "kernel_not_left");
	desk_leave(d, left);
}

/* ---- adoption ---- */

static int by_order(const void *a, const void *b)
{
	const struct live_request *const *x = a, *const *y = b;
	return ((*x)->order > (*y)->order) - ((*x)->order < (*y)->order);
}

static void restore_requests(struct desk *d, uint64_t last)
{
	struct live_request *row;
	size_t n = 0;
	AUTO(freep)
	struct live_request **rows = xcalloc(LIVE_BLOCKS * LIVE_BLOCK, sizeof *rows);
	for (size_t i = 0; d->live && (row = live_request_at(d->live, i)); i++)
		if (row->order > 0)
			rows[n++] = row;
	qsort(rows, n, sizeof *rows, by_order);
	for (size_t i = 0; i < n; i++) {
		if (rows[i]->of > 0)
			input_restore(d, rows[i]);
		else
			request_restore(d, rows[i], last);
	}
	uint64_t unkept = live_take_unkept(d->live);
	if (unkept > 0)
		notice_text(d, JOURNAL_TO_ALL,
			"%llu requests that waited when the gateway ended could not be kept beyond "
			"it, for want of disk space: cells that still wait are to be run again.",
			(unsigned long long)unkept);
}

static void restore_clients(struct desk *d, uint64_t last)
{
	if (!d->live)
		return;
	d->last_client = live_last_client(d->live);
	for (size_t i = 0; i < LIVE_CLIENTS; i++)
		if (live_clients(d->live)[i].number > 0)
			client_restore(d, &live_clients(d->live)[i], last);
}

/* It may never have come up. */
static void set_dead(struct desk *d, const char *reason)
{
	d->dead = true;
	d->was_ready = false;
	(void)copy_text(d->reason, sizeof d->reason, reason, strlen(reason)); /* may be cut */
}

static const char *text_of(const cJSON *row, const char *name)
{
	return cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(row, name));
}

static int take_kernel(struct desk *d, const cJSON *row, const struct kernelspec *spec,
	bool *ret_lost, struct err *err)
{
	char *after[CHANNEL_HB] = {0};
	const cJSON *kernel = cJSON_GetObjectItemCaseSensitive(row, "kernel");
	const struct kernel_start start = {.id = d->id, .owner = d->owner->name, .spec = spec};
	const struct kernel_watcher watcher = desk_watcher(d);
	const struct kernel_start anew = {.id = d->id,
		.owner = d->owner->name,
		.spec = spec,
		.env = cJSON_GetObjectItemCaseSensitive(kernel, "env"),
		.folder = text_of(kernel, "folder")};
	if (d->dead)
		return kernel_restore_dead(d->gw->bridge, &anew, &watcher, &d->kernel, err);
	for (int c = 0; d->live && c < CHANNEL_HB; c++)
		after[c] =
			(char *)(uintptr_t)live_acked_id(d->live, (enum channel)c); /* read only */
	struct err why;
	int rc = kernel_adopt(d->gw->bridge, &start, kernel, after, &watcher, &d->kernel, &why);
	*ret_lost = rc != 0;
	if (rc == 0)
		return 0;
	d->kernel = NULL;
	log_warn(&d->log, "not_adopted reason=\"%s\"", why.text);
	if (!d->gw->config.auto_restart) {
		set_dead(d, LOST);
		return kernel_restore_dead(d->gw->bridge, &anew, &watcher, &d->kernel, err);
	}
	return kernel_start(d->gw->bridge, &anew, &watcher, &d->kernel, err);
}

static const struct owner *owner_of(const struct gateway *gw, const char *name)
{
	const struct owner *o = owners_next(gw->owners, NULL);
	while (o && strcmp(o->name, name) != 0)
		o = owners_next(gw->owners, o);
	return o;
}

static void say_lost(struct desk *d)
{
	notice_text(d, JOURNAL_TO_ALL, "The kernel died: %s.", LOST);
	requests_abort(d, true);
	desk_new_epoch(d);
	notice_break(d, d->dead ? "dead" : "restarting", JOURNAL_TO_ALL);
}

static void adopted(struct desk *d, const cJSON *row, uint64_t last, bool lost)
{
	bool restarts = !lost && live_is_restarting(d->live);
	restore_requests(d, last);
	if (d->gw->sessions)
		sessions_restore(d->gw->sessions, d->owner, d->id,
			cJSON_GetObjectItemCaseSensitive(row, "sessions"));
	d->adopting = !lost && !d->dead;
	if (!d->adopting || restarts)
		past_end(d->past);
	if (restarts)
		desk_restart_on(d);
	else if (lost)
		say_lost(d);
	else if (d->dead)
		requests_abort(d, true);
	if (d->adopting)
		limit_restore(d);
	else
		live_kills(d->live, false);
	survive_record(d);
}

static int adopt(struct kernels *ks, const cJSON *row, const char *id, struct err *err)
{
	const char *owner_name = text_of(row, "owner"), *spec_name = text_of(row, "spec");
	const struct owner *owner = owner_name ? owner_of(ks->gw, owner_name) : NULL;
	const struct kernelspec *spec =
		spec_name && *spec_name ? bridge_spec(ks->gw->bridge, spec_name) : NULL;
	struct kernels_start start = {
		.owner = owner, .path = text_of(row, "path"), .history = text_of(row, "history")};
	bool lost = false;
	if (!owner || !spec)
		return err_set(err, E_GONE, "its owner or its kernelspec is not there any more");
	struct desk *d = NULL;
	ks->n_alive++;
	int rc = desk_restore(ks, &start, id, spec, &d, err);
	if (rc != 0)
		return rc;
	uint64_t last = journal_next(d->journal) - 1;
	d->past = d->live ? past_new(d->live, last) : NULL;
	d->was_ready = true;
	if (text_of(row, "dead"))
		set_dead(d, text_of(row, "dead"));
	restore_clients(d, last);
	scribe_restore(d, last);
	d->epoch = live_epoch_of(d->live);
	scribe_restore_stand(d, row);
	rc = take_kernel(d, row, spec, &lost, err);
	if (rc != 0) {
		d->ending = true;
		desk_release(d);
		return rc;
	}
	files_adopted(d);
	kernels_list_desk(d);
	adopted(d, row, last, lost);
	look_ask(d);
	return 0;
}

static int read_row(const char *path, const char *id, cJSON **ret, struct err *err)
{
	AUTO(buf_done) struct buf text;
	buf_init(&text, ROW_MAX_BYTES);
	int rc = file_read(path, &text, err);
	if (rc != 0)
		return rc;
	*ret = json_parse((struct bytes){text.data, text.len}, NULL, err);
	const char *said = text_of(*ret, "id");
	if (!*ret)
		return err_wrap(err, "%s", path);
	return said && strcmp(said, id) == 0 ? 0 : err_set(err, E_INVALID, "the row is malformed");
}

/* What cannot be read now may be there for all that: then nothing is removed. */
static int adopt_file(struct kernels *ks, const char *path, const char *id, struct err *err)
{
	AUTO(delete_tree) cJSON *row = NULL;
	struct err why;
	int rc = read_row(path, id, &row, &why);
	if (rc == E_IO || rc == E_NOMEM)
		return err_set(err, rc, "%s", why.text);
	if (rc == 0)
		rc = adopt(ks, row, id, &why);
	if (rc == E_NOMEM)
		return err_set(err, rc, "%s", why.text);
	if (rc == 0)
		return 0;
	log_warn(&ks->gw->log, "kernel_not_adopted kernel=%s reason=\"%s\"", id, why.text);
	(void)unlink(path); /* the sweep removes what it named */
	return 0;
}

static bool is_listed(void *data, const char *name)
{
	struct kernels *ks = data;
	struct desk *d;
	HASH_FIND_STR(ks->by_id, name, d);
	return d != NULL;
}

int kernels_adopt(struct kernels *ks, struct err *err)
{
	char folder[PATH_MAX], path[PATH_MAX], id[UUID_SIZE];
	int n = snprintf(folder, sizeof folder, "%s/kernels", ks->gw->config.data_dir), rc = 0;
	DIR *dir = n > 0 && (size_t)n < sizeof folder ? opendir(folder) : NULL;
	if (!dir && errno != ENOENT)
		return err_set(err, E_IO, "%s cannot be read: %s", folder, strerror(errno));
	for (struct dirent *e; rc == 0 && dir && (e = readdir(dir));) {
		size_t len = strlen(e->d_name);
		if (len != UUID_SIZE - 1 + 5 || strcmp(e->d_name + UUID_SIZE - 1, ".json") != 0 ||
			!copy_text(id, sizeof id, e->d_name, UUID_SIZE - 1) || !kernels_is_id(id) ||
			!row_path(ks->gw, id, path))
			continue;
		rc = adopt_file(ks, path, id, err);
	}
	if (dir)
		closedir(dir);
	n = snprintf(folder, sizeof folder, "%s/journals", ks->gw->config.data_dir);
	if (rc == 0 && n > 0 && (size_t)n < sizeof folder)
		journal_file_sweep(folder, is_listed, ks);
	return rc;
}

/* What was sent just before the end may not have reached the kernel. One that has it already drops
 * the second copy, which has the same signature. */
static void send_again(struct desk *d)
{
	struct err err;
	LIST_EACH (at, &d->requests.all) {
		struct request *r = CONTAINER_OF(at, struct request, link);
		bool unsure = r->is_sent && r->row && !r->row->is_slim && !r->row->is_running &&
			      !r->replied && !r->idled;
		if (unsure && kernel_send(d->kernel, r->msg, &err) != 0)
			log_warn(&d->log, "not_sent_again error=\"%s\"", err.text);
		if (r->input && !r->replied && !r->idled)
			input_send_again(r);
	}
}

/* A second copy that a client sent before we knew that the first was answered. */
static struct request *find_answered(const struct requests *rs, const struct answered **ret)
{
	LIST_EACH (at, &rs->all) {
		struct request *r = CONTAINER_OF(at, struct request, link);
		*ret = r->is_sent ? NULL
				  : answers_find(&rs->answers, r->msg->session, r->msg->msg_id);
		if (*ret)
			return r;
	}
	return NULL;
}

static void answer_again(struct desk *d)
{
	const struct answered *a;
	for (struct request *r; (r = find_answered(&d->requests, &a));) {
		d->kernels->count.duplicates++;
		relay_answer_again(r, a);
	}
}

void survive_settled(struct desk *d)
{
	d->adopting = false;
	past_end(d->past);
	requests_settled(d);
	send_again(d);
	answer_again(d);
	relay_repeats(d);
	limit_look(d);
	d->open = true;
	queue_open(d);
	files_ask(d);
	log_info(&d->log, "kernel_adopted");
}
