#include "history/amend.h"

#include <stdio.h>
#include <string.h>

#include "gateway/base/hash.h"
#include "gateway/base/json.h"
#include "history/forget.h"
#include "history/index.h"
#include "history/spliced.h"

#define META_MAX     (16u << 20)
#define SHOWN_BY_MAX 16 /* runs that an update of a display is carried to, latest first */

void amends_init(
	struct amends *a, struct db *db, struct repo *repo, const char *history, const char *parent)
{
	*a = (struct amends){.db = db, .repo = repo, .history = history, .parent = parent};
}

void amends_done(struct amends *a)
{
	for (size_t i = 0; i < a->n; i++) {
		buf_done(&a->list[i].meta);
		outputs_free(a->list[i].outputs);
	}
	a->n = 0;
}

static int read_file(const struct amends *a, const struct amended *run, const char *name,
	struct buf *ret_data, struct err *err)
{
	char path[RUN_FOLDER_SIZE + 16];
	(void)snprintf(path, sizeof path, "%s/%s", run->folder, name);
	return repo_read_file(a->repo, a->parent, path, ret_data, err);
}

/* That run, as the parent's tree has it: on another line a folder of that number is another run. */
static int load(const struct amends *a, struct amended *run, struct err *err)
{
	AUTO(buf_done) struct buf stored;
	char msg_id[JMSG_ID_MAX];
	buf_init(&stored, OUTPUTS_STORED_MAX);
	int status = read_file(a, run, "meta.json", &run->meta, err);
	if (status == E_NOT_FOUND)
		return 0;
	struct bytes meta = {run->meta.data, run->meta.len};
	if (status != 0)
		return status;
	if (!json_text(object_find(meta, "msg_id"), msg_id, sizeof msg_id) ||
		strcmp(msg_id, run->msg_id) != 0 || forget_is_forgotten(meta))
		return 0;
	status = read_file(a, run, "outputs.json", &stored, err);
	if (status != 0)
		return status;
	run->outputs = outputs_new();
	return outputs_load(run->outputs, (struct bytes){stored.data, stored.len},
		object_find(meta, "displays"), err);
}

int amends_outputs(void *data, const char *msg_id, struct outputs **ret_outputs, struct err *err)
{
	struct amends *a = data;
	struct index_place place;
	*ret_outputs = NULL;
	for (size_t i = 0; i < a->n; i++) {
		if (strcmp(a->list[i].msg_id, msg_id) == 0) {
			*ret_outputs = a->list[i].outputs;
			return 0;
		}
	}
	int status = index_find_run(a->db, a->history, msg_id, &place, err);
	if (status != 1)
		return status;
	if (a->n == AMENDS_MAX) {
		a->dropped++;
		return 0;
	}
	struct amended *run = &a->list[a->n++];
	*run = (struct amended){.n = place.n};
	buf_init(&run->meta, META_MAX);
	(void)copy_text(run->msg_id, sizeof run->msg_id, msg_id, strlen(msg_id)); /* fits */
	run_folder(place.n, run->folder);
	status = load(a, run, err);
	*ret_outputs = status == 0 ? run->outputs : NULL;
	return status;
}

/* The msg_ids of the runs that showed it; the caller frees. */
static int shown_by(struct amends *a, const char *display_id, struct buf *ret_ids, struct err *err)
{
	AUTO(db_endp) struct db_rows *rows = NULL;
	int status = db_ask(a->db,
		"SELECT msg_id FROM displays WHERE history = ? AND display_id = ?"
		" ORDER BY n DESC LIMIT ?",
		DB_VALUES(DB_T(a->history), DB_T(display_id), DB_N(SHOWN_BY_MAX)), &rows, err);
	while (status == 0 && (status = db_next(rows, err)) == 1) {
		const char *id = db_text(rows, 0);
		status = buf_add(ret_ids, id, strlen(id) + 1);
	}
	return status;
}

int amends_update(void *data, const char *display_id, struct bytes content, struct err *err)
{
	struct amends *a = data;
	AUTO(buf_done) struct buf ids;
	buf_init(&ids, (size_t)SHOWN_BY_MAX * JMSG_ID_MAX);
	int status = shown_by(a, display_id, &ids, err);
	const char *id = (const char *)ids.data, *end = id + ids.len;
	for (; status == 0 && id && id < end; id += strlen(id) + 1) {
		struct outputs *outputs;
		status = amends_outputs(a, id, &outputs, err);
		if (status == 0 && outputs)
			status = outputs_update(outputs, display_id, content, err);
	}
	return status;
}

/* ---- writing ---- */

static int add_change(const char *folder, const char *name, const char *blob, struct buf *changes,
	struct err *err)
{
	struct tree_change change = {0};
	(void)snprintf(change.path, sizeof change.path, "%s/%s", folder, name);
	(void)snprintf(change.blob, sizeof change.blob, "%s", blob);
	(void)buf_add(changes, &change, sizeof change); /* latched */
	return buf_check(changes, "files of a node", err);
}

int run_write_file(struct repo *repo, const char *folder, const char *name, struct bytes data,
	struct buf *ret_changes, struct err *err)
{
	char blob[HISTORY_NODE_SIZE];
	int status = repo_blob(repo, data, blob, err);
	return status == 0 ? add_change(folder, name, blob, ret_changes, err) : status;
}

struct writing {
	struct repo *repo;
	const char *folder;
	struct buf *changes;
};

static int write_fresh(void *data, const char *name, struct bytes content, struct err *err)
{
	const struct writing *w = data;
	if (!content.data)
		return 0;
	return run_write_file(w->repo, w->folder, name, content, w->changes, err);
}

int run_write_outputs(struct repo *repo, const char *folder, struct outputs *outputs,
	struct outputs_counts *ret_counts, struct buf *ret_changes, struct err *err)
{
	struct writing w = {repo, folder, ret_changes};
	AUTO(buf_done) struct buf json;
	buf_init(&json, OUTPUTS_STORED_MAX);
	int status = outputs_write(outputs, &json, ret_counts, err);
	if (status == 0)
		status = run_write_file(repo, folder, "outputs.json",
			(struct bytes){json.data, json.len}, ret_changes, err);
	return status == 0 ? outputs_files(outputs, write_fresh, &w, err) : status;
}

/* ---- files beside that no output names any more ---- */

struct name {
	char text[OUTPUTS_NAME_SIZE];
	UT_hash_handle hh;
};

struct sweep {
	const struct amended *run;
	struct name *named;
	struct buf *changes;
};

static int note_name(void *data, const char *name, struct bytes content, struct err *err)
{
	struct sweep *s = data;
	struct name *n;
	(void)content;
	(void)err;
	HASH_FIND_STR(s->named, name, n);
	if (n)
		return 0;
	n = xcalloc(1, sizeof *n);
	(void)copy_text(n->text, sizeof n->text, name, strlen(name)); /* of that size */
	HASH_ADD_STR(s->named, text, n);
	return 0;
}

static void sweep_name(void *data, const char *name)
{
	struct sweep *s = data;
	struct name *n;
	HASH_FIND_STR(s->named, name, n);
	if (!n && strncmp(name, "out-", 4) == 0)
		(void)add_change(s->run->folder, name, "", s->changes, NULL); /* latched */
}

static int sweep_files(
	const struct amends *a, const struct amended *run, struct buf *changes, struct err *err)
{
	struct sweep s = {.run = run, .changes = changes};
	struct name *n, *next;
	int status = outputs_files(run->outputs, note_name, &s, err);
	if (status == 0)
		status = repo_list_folder(a->repo, a->parent, run->folder, sweep_name, &s, err);
	HASH_ITER (hh, s.named, n, next) {
		HASH_DEL(s.named, n);
		free(n);
	}
	return status == 0 ? buf_check(changes, "files of a node", err) : status;
}

static int write_one(struct amends *a, struct amended *run, struct buf *changes, struct err *err)
{
	struct outputs_counts counts;
	AUTO(buf_done) struct buf meta;
	buf_init(&meta, META_MAX);
	int status = run_write_outputs(a->repo, run->folder, run->outputs, &counts, changes, err);
	if (status == 0)
		status = record_meta_amend(
			(struct bytes){run->meta.data, run->meta.len}, run->outputs, &meta, err);
	if (status == 0)
		status = run_write_file(a->repo, run->folder, "meta.json",
			(struct bytes){meta.data, meta.len}, changes, err);
	return status == 0 ? sweep_files(a, run, changes, err) : status;
}

struct telling {
	struct buf *ret;
	const char *before;
};

static int tell_display(void *data, const char *display_id, struct err *err)
{
	struct telling *t = data;
	(void)err;
	(void)buf_addf(t->ret, "%s\"%s\"", t->before, display_id); /* latched */
	t->before = ",";
	return 0;
}

/* For the meta.json of the node that amends: the index learns from there what is shown where. */
static int tell_amended(const struct amended *run, struct buf *ret_told, struct err *err)
{
	struct telling t = {ret_told, ""};
	/* All latched. */
	(void)buf_addf(ret_told, "%s{\"n\":%llu,\"msg_id\":", ret_told->len > 0 ? "," : "",
		(unsigned long long)run->n);
	(void)buf_add_json_string(ret_told, run->msg_id, strlen(run->msg_id));
	(void)buf_add_text(ret_told, ",\"displays\":[");
	(void)outputs_display_ids(run->outputs, tell_display, &t, err);
	(void)buf_add_text(ret_told, "]}");
	return buf_check(ret_told, "amended runs", err);
}

int amends_write(struct amends *a, struct buf *ret_changes, struct buf *ret_told, struct err *err)
{
	int status = 0;
	for (size_t i = 0; status == 0 && i < a->n; i++) {
		struct amended *run = &a->list[i];
		if (!run->outputs || !outputs_changed(run->outputs))
			continue;
		status = write_one(a, run, ret_changes, err);
		if (status == 0)
			status = tell_amended(run, ret_told, err);
	}
	return status;
}
