#include "gateway/spine/survive.h"

#include <cjson/cJSON.h>
#include <dirent.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "gateway/base/file.h"
#include "gateway/spine/desk.h"
#include "gateway/spine/journal_file.h"
#include "gateway/spine/notice.h"
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

static cJSON *row_of(struct desk *d)
{
	cJSON *kernel = d->kernel ? kernel_record(d->kernel) : NULL;
	if (!kernel)
		return NULL;
	cJSON *row = cJSON_CreateObject();
	/* What is missed for want of memory makes the row malformed: the kernel is not adopted. */
	cJSON_AddStringToObject(row, "id", d->id);
	cJSON_AddStringToObject(row, "owner", d->owner->name);
	cJSON_AddStringToObject(row, "spec", d->name);
	if (d->path)
		cJSON_AddStringToObject(row, "path", d->path);
	cJSON_AddItemToObject(row, "kernel", kernel);
	if (d->gw->sessions)
		cJSON_AddItemToObject(row, "sessions", sessions_rows(d->gw->sessions, d->id));
	return row;
}

void survive_record(struct desk *d)
{
	AUTO(delete_tree) cJSON *row = d->ending || d->dead ? NULL : row_of(d);
	AUTO(freep) char *text = row ? cJSON_PrintUnformatted(row) : NULL;
	char path[PATH_MAX];
	struct err err;
	if (!text || !row_path(d->gw, d->id, path))
		return;
	if (file_write(path, text, strlen(text), &err) != 0)
		log_warn(&d->log, "row_not_written error=\"%s\"", err.text);
}

void survive_forget(const struct desk *d)
{
	char path[PATH_MAX];
	if (row_path(d->gw, d->id, path))
		(void)unlink(path); /* a row that stays names no container: it is dropped then */
}

static bool live_path(const struct desk *d, char ret[PATH_MAX])
{
	int n = snprintf(ret, PATH_MAX, "%s/journals/%s/live", d->gw->config.data_dir, d->id);
	return n > 0 && n < PATH_MAX;
}

void survive_remove(const struct desk *d)
{
	char path[PATH_MAX];
	if (live_path(d, path))
		(void)unlink(path); /* what stays is swept at the next start */
}

void survive_open(struct desk *d, bool goes_on)
{
	char path[PATH_MAX];
	struct err err;
	if (!live_path(d, path) || file_folder_make(path, &err) != 0)
		return;
	if (!goes_on)
		(void)unlink(path); /* of an earlier kernel of that id */
	if (live_open(path, &d->live, &err) != 0)
		log_warn(&d->log, "live_not_opened error=\"%s\"", err.text);
}

/* ---- leaving ---- */

void survive_leave(struct desk *d)
{
	survive_record(d);
	if (d->dead || !d->kernel || !kernel_leave(d->kernel)) {
		desk_end(d, "The gateway is ending.", NULL, NULL);
		return;
	}
	log_info(&d->log, "kernel_left");
	d->kernel = NULL;
	d->open = false;
	d->leaving = true;
	requests_forget(d);
	kernels_unlist(d);
	d->ending = true;
	desk_release(d);
}

/* ---- adoption ---- */

static int by_order(const void *a, const void *b)
{
	const struct live_request *const *x = a, *const *y = b;
	return ((*x)->order > (*y)->order) - ((*x)->order < (*y)->order);
}

static void restore_requests(struct desk *d, uint64_t last)
{
	struct live_request *rows[LIVE_REQUESTS] = {0};
	size_t n = 0;
	for (size_t i = 0; d->live && i < LIVE_REQUESTS; i++)
		if (live_requests(d->live)[i].order > 0)
			rows[n++] = &live_requests(d->live)[i];
	qsort(rows, n, sizeof rows[0], by_order);
	for (size_t i = 0; i < n; i++)
		request_restore(d, rows[i], last);
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

static int take_kernel(struct desk *d, const cJSON *row, const struct kernelspec *spec,
	bool *ret_lost, struct err *err)
{
	char *after[CHANNEL_HB] = {0};
	const cJSON *kernel = cJSON_GetObjectItemCaseSensitive(row, "kernel");
	const struct kernel_start start = {.id = d->id, .owner = d->owner->name, .spec = spec};
	const struct kernel_watcher watcher = desk_watcher(d);
	for (int c = 0; d->live && c < CHANNEL_HB; c++)
		after[c] =
			(char *)(uintptr_t)live_acked_id(d->live, (enum channel)c); /* read only */
	int rc = kernel_adopt(d->gw->bridge, &start, kernel, after, &watcher, &d->kernel, err);
	*ret_lost = rc != 0;
	if (rc == 0)
		return 0;
	d->kernel = NULL;
	log_warn(&d->log, "not_adopted reason=\"%s\"", err->text);
	if (!d->gw->config.auto_restart)
		return rc;
	const struct kernel_start anew = {.id = d->id,
		.owner = d->owner->name,
		.spec = spec,
		.env = cJSON_GetObjectItemCaseSensitive(kernel, "env")};
	return kernel_start(d->gw->bridge, &anew, &watcher, &d->kernel, err);
}

static const char *text_of(const cJSON *row, const char *name)
{
	return cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(row, name));
}

static const struct owner *owner_of(const struct gateway *gw, const char *name)
{
	const struct owner *o = owners_next(gw->owners, NULL);
	while (o && strcmp(o->name, name) != 0)
		o = owners_next(gw->owners, o);
	return o;
}

static void adopted(struct desk *d, const cJSON *row, uint64_t last, bool lost)
{
	restore_requests(d, last);
	if (d->gw->sessions)
		sessions_restore(d->gw->sessions, d->owner, d->id,
			cJSON_GetObjectItemCaseSensitive(row, "sessions"));
	d->adopting = !lost;
	if (lost) {
		notice_text(d, JOURNAL_TO_ALL, "The kernel died: %s.", LOST);
		requests_abort(d, true);
		notice_break(d, "restarting", JOURNAL_TO_ALL);
		past_free(TAKE(d->past));
	}
	survive_record(d);
}

static int adopt(struct kernels *ks, const cJSON *row, const char *id, struct err *err)
{
	const char *owner_name = text_of(row, "owner"), *spec_name = text_of(row, "spec");
	const struct owner *owner = owner_name ? owner_of(ks->gw, owner_name) : NULL;
	const struct kernelspec *spec =
		spec_name && *spec_name ? bridge_spec(ks->gw->bridge, spec_name) : NULL;
	struct kernels_start start = {.owner = owner, .path = text_of(row, "path")};
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
	restore_clients(d, last);
	rc = take_kernel(d, row, spec, &lost, err);
	if (rc != 0) {
		d->ending = true;
		desk_release(d);
		return rc;
	}
	kernels_list_desk(d);
	adopted(d, row, last, lost);
	return 0;
}

static void adopt_file(struct kernels *ks, const char *path, const char *id)
{
	AUTO(buf_done) struct buf text;
	struct err err;
	buf_init(&text, ROW_MAX_BYTES);
	int rc = file_read(path, &text, &err);
	AUTO(delete_tree)
	cJSON *row = rc == 0 ? cJSON_ParseWithLength((const char *)text.data, text.len) : NULL;
	const char *said = text_of(row, "id");
	if (rc == 0 && (!said || strcmp(said, id) != 0))
		rc = err_set(&err, E_INVALID, "the row is malformed");
	if (rc == 0)
		rc = adopt(ks, row, id, &err);
	if (rc == 0)
		return;
	log_warn(&ks->gw->log, "kernel_not_adopted kernel=%s reason=\"%s\"", id, err.text);
	(void)unlink(path); /* the sweep removes what it named */
}

static bool is_listed(void *data, const char *name)
{
	struct kernels *ks = data;
	struct desk *d;
	HASH_FIND_STR(ks->by_id, name, d);
	return d != NULL;
}

void kernels_adopt(struct kernels *ks)
{
	char folder[PATH_MAX], path[PATH_MAX], id[UUID_SIZE];
	int n = snprintf(folder, sizeof folder, "%s/kernels", ks->gw->config.data_dir);
	DIR *dir = n > 0 && (size_t)n < sizeof folder ? opendir(folder) : NULL;
	for (struct dirent *e; dir && (e = readdir(dir));) {
		size_t len = strlen(e->d_name);
		if (len != UUID_SIZE - 1 + 5 || strcmp(e->d_name + UUID_SIZE - 1, ".json") != 0 ||
			!copy_text(id, sizeof id, e->d_name, UUID_SIZE - 1) || !kernels_is_id(id) ||
			!row_path(ks->gw, id, path))
			continue;
		adopt_file(ks, path, id);
	}
	if (dir)
		closedir(dir);
	n = snprintf(folder, sizeof folder, "%s/journals", ks->gw->config.data_dir);
	if (n > 0 && (size_t)n < sizeof folder)
		journal_file_sweep(folder, is_listed, ks);
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
	}
}

void survive_settled(struct desk *d)
{
	d->adopting = false;
	if (d->past)
		past_end(d->past);
	send_again(d);
	log_info(&d->log, "kernel_adopted");
}
