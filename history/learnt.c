#include "history/learnt.h"

#include <stdio.h>
#include <string.h>

#include "gateway/base/json.h"
#include "history/forget.h"
#include "history/recorder_parts.h"
#include "history/spliced.h"

#define NAME_SIZE      1024
#define META_MAX       (16u << 20)
#define DIMENSIONS_MAX 8u
#define NUMBER_MAX     ((uint64_t)1 << 53) /* beyond it readers of JSON round */

void learnt_path(const char *node, char ret_path[LEARNT_PATH_SIZE])
{
	(void)snprintf(ret_path, LEARNT_PATH_SIZE, "%.2s/%.2s/%.40s/learnt.json", node, node + 2,
		node); /* 61 */
}

/* ---- a guest's report ---- */

static bool is_count(struct bytes raw)
{
	uint64_t number;
	return number_u64(raw, &number) && number < NUMBER_MAX;
}

static bool is_shape(struct bytes raw)
{
	struct bytes one;
	unsigned n = 0;
	if (!is_array(raw))
		return false;
	for (size_t at = 0; array_next(raw, &at, &one); n++)
		if (n == DIMENSIONS_MAX || !is_count(one))
			return false;
	return true;
}

static void add_raw(struct buf *b, const char *key, struct bytes raw, bool fits)
{
	(void)buf_addf(b, ",\"%s\":", key); /* latched, as below */
	if (fits)
		(void)buf_add(b, raw.data, raw.len);
	else
		(void)buf_add_text(b, "null");
}

static void add_text(struct buf *b, const char *key, const char *text)
{
	(void)buf_addf(b, "\"%s\":", key); /* latched, as below */
	(void)buf_add_json_string(b, text, strlen(text));
}

/* False: it is none, and left out. */
static bool add_variable(struct buf *b, struct bytes raw, const char *before)
{
	char name[NAME_SIZE], type[NAME_SIZE];
	struct bytes shape = object_find(raw, "shape"), size = object_find(raw, "bytes");
	if (!json_text(object_find(raw, "name"), name, sizeof name) || !name[0] ||
		!json_text(object_find(raw, "type"), type, sizeof type))
		return false;
	(void)buf_add_text(b, before); /* latched, as below */
	(void)buf_add_text(b, "{");
	add_text(b, "name", name);
	(void)buf_add_text(b, ",");
	add_text(b, "type", type);
	add_raw(b, "shape", shape, is_shape(shape));
	add_raw(b, "bytes", size, is_count(size));
	(void)buf_add_text(b, "}");
	return true;
}

static bool add_variables(struct buf *b, struct bytes list)
{
	struct bytes one;
	const char *before = "\n";
	bool whole = is_array(list);
	unsigned n = 0;
	(void)buf_add_text(b, ",\n\"variables\":["); /* latched, as below */
	for (size_t at = 0; array_next(list, &at, &one); n++) {
		if (n == LEARNT_VARIABLES_MAX) {
			whole = false;
			break;
		}
		if (add_variable(b, one, before))
			before = ",\n";
		else
			whole = false;
	}
	(void)buf_add_text(b, "\n]");
	return whole;
}

int learnt_clean(struct bytes report, struct buf *ret_json, struct err *err)
{
	struct bytes peak = object_find(report, "peak_bytes");
	(void)buf_add_text(ret_json, "{\n\"version\":1"); /* latched, as below */
	bool whole = add_variables(ret_json, object_find(report, "variables"));
	whole = whole && bytes_equal(object_find(report, "complete"), "true");
	(void)buf_addf(
		ret_json, ",\n\"complete\":%s,\n\"peak_memory_bytes\":", whole ? "true" : "false");
	if (is_count(peak))
		(void)buf_add(ret_json, peak.data, peak.len);
	else
		(void)buf_add_text(ret_json, "null");
	(void)buf_add_text(ret_json, "\n}\n");
	return buf_check(ret_json, "what was learnt", err);
}

/* ---- into the tree ---- */

/* A report comes in the pause after its run, which may have been forgotten by then. */
static int is_forgotten(
	struct repo *repo, const struct index_place *there, bool *ret_is, struct err *err)
{
	AUTO(buf_done) struct buf meta;
	char folder[RUN_FOLDER_SIZE], path[RUN_FOLDER_SIZE + 16];
	buf_init(&meta, META_MAX);
	run_folder(there->n, folder);
	(void)snprintf(path, sizeof path, "%s/meta.json", folder);
	int status = repo_read_file(repo, there->node, path, &meta, err);
	*ret_is = status == 0 && forget_is_forgotten((struct bytes){meta.data, meta.len});
	return status;
}

int learnt_add(struct recorder *r, struct open_repo *repo, const struct record *rec,
	const struct job *job, struct err *err)
{
	struct index_place there;
	struct tree_change change = {0};
	AUTO(buf_done) struct buf json;
	buf_init(&json, LEARNT_MAX);
	int status = index_find_run(r->db, repo->id, job->msg_id, &there, err);
	if (status != 1 || rec->report.len == 0)
		return status < 0 ? status : 0;
	bool forgotten = false;
	status = is_forgotten(&repo->repo, &there, &forgotten, err);
	if (status != 0 || forgotten)
		return status;
	learnt_path(there.node, change.path);
	status = learnt_clean((struct bytes){rec->report.data, rec->report.len}, &json, err);
	if (status == 0)
		status = repo_blob(
			&repo->repo, (struct bytes){json.data, json.len}, change.blob, err);
	return status == 0 ? repo_state_tree(&repo->repo, repo->learnt.tree, &change, 1,
				     repo->learnt.tree, err)
			   : status;
}

bool learnt_any(const struct recorder *r)
{
	struct open_repo *repo, *next;
	HASH_ITER (hh, r->repos, repo, next) {
		if (repo->learnt.tree[0])
			return true;
	}
	return false;
}

int learnt_commit(struct recorder *r, struct err *err)
{
	struct open_repo *repo, *next;
	int status = 0;
	HASH_ITER (hh, r->repos, repo, next) {
		repo->learnt.commit[0] = '\0'; /* the state may be as it was again */
		if (status == 0 && repo->learnt.tree[0])
			status = repo_state_commit(
				&repo->repo, repo->learnt.tree, repo->learnt.commit, err);
	}
	return status;
}

int learnt_publish(struct recorder *r, struct err *err)
{
	struct open_repo *repo, *next;
	int status = 0;
	HASH_ITER (hh, r->repos, repo, next) {
		if (status == 0 && repo->learnt.commit[0])
			status = repo_state_move(&repo->repo, repo->learnt.commit, err);
	}
	return status;
}

void learnt_forget(struct recorder *r)
{
	struct open_repo *repo, *next;
	HASH_ITER (hh, r->repos, repo, next) {
		repo->learnt = (struct learnt){"", ""};
	}
}
