#include "history/ask.h"

#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <cjson/cJSON.h>

#include "gateway/base/clock.h"
#include "gateway/base/json_tree.h"
#include "history/ask_files.h"
#include "history/diff.h"
#include "history/export.h"
#include "history/folder.h"
#include "history/forget.h"
#include "history/learnt.h"
#include "history/outputs.h"
#include "history/record.h"
#include "history/repo.h"
#include "history/spliced.h"

#define LIMIT_DEFAULT 100u
#define LIMIT_MAX     1000u
#define FOREVER	      INT64_MAX
#define META_MAX      (16u << 20)

#define NODE_COLUMNS                                                                               \
	" r.seq, r.node, r.parent, r.kind, r.execution_count, r.status, r.summary, r.started_us,"  \
	" r.duration_us, r.stdout_bytes, r.stderr_bytes, r.outputs, r.msg_id, r.silent, r.ename,"  \
	" r.evalue, r.exit, r.n, r.environment, r.files, r.memory_of"

enum {
	COLUMN_SEQ,
	COLUMN_NODE,
	COLUMN_PARENT,
	COLUMN_KIND,
	COLUMN_COUNT,
	COLUMN_STATUS,
	COLUMN_SUMMARY,
	COLUMN_STARTED,
	COLUMN_DURATION,
	COLUMN_STDOUT,
	COLUMN_STDERR,
	COLUMN_OUTPUTS,
	COLUMN_MSG_ID,
	COLUMN_SILENT,
	COLUMN_ENAME,
	COLUMN_EVALUE,
	COLUMN_EXIT,
	COLUMN_N,
	COLUMN_ENVIRONMENT,
	COLUMN_FILES,
	COLUMN_MEMORY_OF
};

int asker_open(struct asker *a, const char *folder, struct err *err)
{
	char path[PATH_MAX];
	*a = (struct asker){.folder = folder};
	(void)snprintf(path, sizeof path, "%s/index.sqlite", folder);
	return db_open(path, &a->db, err);
}

void asker_close(struct asker *a)
{
	db_close(a->db);
	a->db = NULL;
}

static void tree_freep(cJSON **tree)
{
	cJSON_Delete(*tree);
}

static unsigned page_size(const struct history_question *q)
{
	if (q->limit == 0)
		return LIMIT_DEFAULT;
	return q->limit < LIMIT_MAX ? q->limit : LIMIT_MAX;
}

static void add_stamp(cJSON *object, const char *key, int64_t us)
{
	char stamp[CLOCK_STAMP_SIZE];
	if (us <= 0) {
		cJSON_AddNullToObject(object, key);
		return;
	}
	clock_stamp(us, stamp);
	cJSON_AddStringToObject(object, key, stamp);
}

/* As digits: a count is not to pass through a double. */
static void add_number(cJSON *object, const char *key, int64_t number)
{
	char digits[24];
	(void)snprintf(digits, sizeof digits, "%lld", (long long)number);
	cJSON_AddRawToObject(object, key, digits);
}

static void add_text_or_null(cJSON *object, const char *key, const char *text)
{
	if (text[0])
		cJSON_AddStringToObject(object, key, text);
	else
		cJSON_AddNullToObject(object, key);
}

static int print(cJSON *tree, struct buf *ret_json, struct err *err)
{
	AUTO(freep) char *text = json_print(tree, err);
	if (!text)
		return E_NOMEM;
	(void)buf_add_text(ret_json, text); /* latched */
	return buf_check(ret_json, "an answer", err);
}

/* ---- the list ---- */

struct list_cursor {
	int64_t activity_us;
	char id[64];
};

/* "ACTIVITY.ID" */
static int read_list_cursor(const char *cursor, struct list_cursor *ret_cursor, struct err *err)
{
	char *end;
	*ret_cursor = (struct list_cursor){FOREVER, ""};
	if (!cursor)
		return 0;
	ret_cursor->activity_us = strtoll(cursor, &end, 10);
	if (end == cursor || *end != '.' ||
		!copy_text(ret_cursor->id, sizeof ret_cursor->id, end + 1, strlen(end + 1)))
		return err_set(err, E_INVALID, "the cursor is none of ours");
	return 0;
}

static cJSON *history_row(struct db_rows *rows)
{
	cJSON *row = cJSON_CreateObject();
	cJSON_AddStringToObject(row, "id", db_text(rows, 0));
	cJSON_AddStringToObject(row, "name", db_text(rows, 1));
	add_text_or_null(row, "kernel_id", db_text(rows, 2));
	add_text_or_null(row, "branch", db_text(rows, 3));
	add_text_or_null(row, "head", db_text(rows, 4));
	add_number(row, "node_count", db_number(rows, 5));
	add_stamp(row, "created", db_number(rows, 6));
	add_stamp(row, "last_activity", db_number(rows, 7));
	return row;
}

static int answer_list(
	struct asker *a, const struct history_question *q, struct buf *ret_json, struct err *err)
{
	AUTO(tree_freep) cJSON *answer = cJSON_CreateObject();
	AUTO(db_endp) struct db_rows *rows = NULL;
	cJSON *list = cJSON_AddArrayToObject(answer, "histories");
	struct list_cursor from;
	char next[128] = "";
	unsigned n = 0, size = page_size(q);
	int status = read_list_cursor(q->cursor, &from, err);
	if (status == 0)
		status = db_ask(a->db,
			"SELECT h.id, h.name, s.kernel_id, coalesce(s.branch, r.branch),"
			" coalesce(s.node, r.node), h.node_count, h.created_us, h.activity_us"
			" FROM histories h"
			" LEFT JOIN session_states s ON s.kernel_id = (SELECT kernel_id FROM"
			" session_states WHERE history = h.id ORDER BY activity_us DESC LIMIT 1)"
			" LEFT JOIN execution_records r ON s.kernel_id IS NULL AND r.seq ="
			" (SELECT seq FROM execution_records WHERE history = h.id AND"
			" kind <> 'root' ORDER BY seq DESC LIMIT 1)" /* all went on elsewhere */
			" WHERE (?1 IS NULL OR h.owner = ?1)"
			" AND (h.activity_us, h.id) < (?2, ?3)"
			" ORDER BY h.activity_us DESC, h.id DESC LIMIT ?4",
			DB_VALUES(DB_T(q->owner), DB_N(from.activity_us), DB_T(from.id),
				DB_N(size + 1)),
			&rows, err);
	while (status == 0 && (status = db_next(rows, err)) == 1) {
		status = 0;
		if (n++ == size)
			break;
		(void)snprintf(next, sizeof next, "%lld.%s", (long long)db_number(rows, 7),
			db_text(rows, 0));
		cJSON_AddItemToArray(list, history_row(rows));
	}
	if (status != 0)
		return status;
	add_text_or_null(answer, "next", n > size ? next : "");
	return print(answer, ret_json, err);
}

/* ---- nodes ---- */

static void add_branches(struct asker *a, const char *history, const char *node, cJSON *object)
{
	AUTO(db_endp) struct db_rows *rows = NULL;
	cJSON *list = cJSON_AddArrayToObject(object, "branches");
	/* A failure here shows as a node without names; the next statement meets it again. */
	int status = db_ask(a->db,
		"SELECT name FROM branches WHERE history = ? AND node = ? ORDER BY name",
		DB_VALUES(DB_T(history), DB_T(node)), &rows, NULL);
	while (status == 0 && db_next(rows, NULL) == 1)
		cJSON_AddItemToArray(list, cJSON_CreateString(db_text(rows, 0)));
}

static void add_counts(struct db_rows *rows, cJSON *object)
{
	cJSON *counts = cJSON_AddObjectToObject(object, "counts");
	add_number(counts, "stdout_bytes", db_number(rows, COLUMN_STDOUT));
	add_number(counts, "stderr_bytes", db_number(rows, COLUMN_STDERR));
	add_number(counts, "outputs", db_number(rows, COLUMN_OUTPUTS));
	add_number(counts, "files", db_number(rows, COLUMN_FILES));
}

static void add_ends(struct db_rows *rows, cJSON *object)
{
	if (!db_is_null(rows, COLUMN_ENAME)) {
		cJSON *error = cJSON_AddObjectToObject(object, "error");
		cJSON_AddStringToObject(error, "ename", db_text(rows, COLUMN_ENAME));
		cJSON_AddStringToObject(error, "evalue", db_text(rows, COLUMN_EVALUE));
	}
	if (!db_is_null(rows, COLUMN_EXIT))
		cJSON_AddRawToObject(object, "exit", db_text(rows, COLUMN_EXIT));
}

/* A line each: "exact MSG_ID". */
const char *asker_parked(const struct asker *a, const char *msg_id)
{
	size_t len = strlen(msg_id);
	for (const char *at = a->parked; at && *at && len > 0;) {
		size_t word = strcspn(at, " \n"), line = strcspn(at, "\n");
		if (line == word + 1 + len && memcmp(at + word + 1, msg_id, len) == 0)
			return *at == 'e' ? "exact" : "partial";
		at += line + (at[line] ? 1 : 0);
	}
	return NULL;
}

/* A state is kept as long as a process that was in it stands by; else nothing but the code is. */
void asker_add_fidelity(const struct asker *a, const char *msg_id, cJSON *object)
{
	const char *parked = asker_parked(a, msg_id);
	cJSON_AddStringToObject(object, "fidelity", parked ? parked : "code-only");
	cJSON *ways = cJSON_AddArrayToObject(object, "restorable_by");
	if (parked)
		cJSON_AddItemToArray(ways, cJSON_CreateString("parked"));
	cJSON_AddStringToObject(object, "replay", "unknown");
}

static bool is_files(struct db_rows *rows)
{
	return strcmp(db_text(rows, COLUMN_KIND), "files") == 0;
}

/* A change of files is in the memory of the run before it. */
static const char *memory_of(struct db_rows *rows)
{
	return db_text(rows, is_files(rows) ? COLUMN_MEMORY_OF : COLUMN_MSG_ID);
}

static cJSON *node_object(struct asker *a, const char *history, struct db_rows *rows)
{
	cJSON *o = cJSON_CreateObject();
	cJSON_AddStringToObject(o, "id", db_text(rows, COLUMN_NODE));
	cJSON_AddStringToObject(o, "kind", db_text(rows, COLUMN_KIND));
	add_text_or_null(o, "parent", db_text(rows, COLUMN_PARENT));
	add_branches(a, history, db_text(rows, COLUMN_NODE), o);
	if (db_is_null(rows, COLUMN_COUNT))
		cJSON_AddNullToObject(o, "execution_count");
	else
		add_number(o, "execution_count", db_number(rows, COLUMN_COUNT));
	cJSON_AddStringToObject(o, "status", db_text(rows, COLUMN_STATUS));
	cJSON_AddStringToObject(o, "summary", db_text(rows, COLUMN_SUMMARY));
	add_stamp(o, "started", db_number(rows, COLUMN_STARTED));
	int64_t us = db_number(rows, COLUMN_DURATION);
	char ms[32];
	(void)snprintf(
		ms, sizeof ms, "%lld.%03lld", (long long)(us / 1000), (long long)(us % 1000));
	cJSON_AddRawToObject(o, "duration_ms", ms);
	asker_add_fidelity(a, memory_of(rows), o);
	add_counts(rows, o);
	add_text_or_null(o, "msg_id", is_files(rows) ? "" : db_text(rows, COLUMN_MSG_ID));
	cJSON_AddBoolToObject(o, "silent", db_number(rows, COLUMN_SILENT) != 0);
	add_ends(rows, o);
	return o;
}

static int read_node_cursor(const char *cursor, int64_t *ret_seq, struct err *err)
{
	char *end;
	*ret_seq = FOREVER;
	if (!cursor)
		return 0;
	*ret_seq = strtoll(cursor, &end, 10);
	if (end == cursor || *end || *ret_seq < 0)
		return err_set(err, E_INVALID, "the cursor is none of ours");
	return 0;
}

static int add_nodes(struct asker *a, const char *history, const struct history_question *q,
	cJSON *answer, struct err *err)
{
	AUTO(db_endp) struct db_rows *rows = NULL;
	cJSON *list = cJSON_AddArrayToObject(answer, "nodes");
	unsigned n = 0, size = page_size(q);
	int64_t from, last = 0;
	char next[24] = "";
	int status = read_node_cursor(q->cursor, &from, err);
	if (status == 0)
		status = db_ask(a->db,
			"SELECT" NODE_COLUMNS " FROM execution_records r WHERE r.history = ?"
			" AND r.seq < ? AND (r.silent = 0 OR ?) ORDER BY r.seq DESC LIMIT ?",
			DB_VALUES(DB_T(history), DB_N(from), DB_N(q->silent), DB_N(size + 1)),
			&rows, err);
	while (status == 0 && (status = db_next(rows, err)) == 1) {
		status = 0;
		if (n++ == size) {
			(void)snprintf(next, sizeof next, "%lld", (long long)last);
			break;
		}
		last = db_number(rows, COLUMN_SEQ);
		cJSON_AddItemToArray(list, node_object(a, history, rows));
	}
	add_text_or_null(answer, "next", next);
	return status;
}

static int answer_one(
	struct asker *a, const struct history_question *q, struct buf *ret_json, struct err *err)
{
	AUTO(tree_freep) cJSON *answer = cJSON_CreateObject();
	struct history_found found;
	int status = find_history(a->db, q, &found, err);
	if (status != 0)
		return status;
	cJSON_AddStringToObject(answer, "id", found.id);
	cJSON_AddStringToObject(answer, "name", found.name);
	status = answer_branches(a, found.id, answer, err);
	if (status == 0)
		status = add_nodes(a, found.id, q, answer, err);
	return status == 0 ? print(answer, ret_json, err) : status;
}

/* ---- one node ---- */

struct node_files {
	struct repo repo;
	const char *node;
	bool brief, peak_told;
	char folder[RUN_FOLDER_SIZE];
};

static int read_beside(void *data, const char *name, struct buf *ret_content, struct err *err)
{
	struct node_files *f = data;
	char path[RUN_FOLDER_SIZE + OUTPUTS_NAME_SIZE + 8];
	(void)snprintf(path, sizeof path, "%s/%s", f->folder, name);
	return repo_read_file(&f->repo, f->node, path, ret_content, err);
}

/* Appended to an object whose end was taken off. */
static int splice_run(struct node_files *f, struct buf *ret_json, struct err *err)
{
	AUTO(buf_done) struct buf code, stored;
	buf_init(&code, RECORD_CODE_MAX);
	buf_init(&stored, OUTPUTS_STORED_MAX);
	int status = read_beside(f, "code.py", &code, err);
	if (status == 0 && !f->brief)
		status = read_beside(f, "outputs.json", &stored, err);
	if (status != 0)
		return status;
	(void)buf_add_text(ret_json, ",\"code\":"); /* latched, as below */
	(void)buf_add_json_string(ret_json, code.data ? (const char *)code.data : "", code.len);
	buf_done(&code);
	(void)buf_add_text(ret_json, ",\"outputs\":");
	if (f->brief)
		return buf_add_text(ret_json, "null");
	return outputs_expand(
		(struct bytes){stored.data, stored.len}, read_beside, f, ret_json, err);
}

static void add_member(struct buf *b, const char *key, struct bytes object, const char *member)
{
	struct bytes raw = object_find(object, member);
	(void)buf_addf(b, ",\"%s\":", key); /* latched, as below */
	if (raw.len > 0)
		(void)buf_add(b, raw.data, raw.len);
	else
		(void)buf_add_text(b, "null");
}

/* No variables were looked at of a cell that another one followed at once. Kernels of earlier
 * images told the peak of memory with them. */
static int splice_learnt(struct node_files *f, struct buf *ret_json, struct err *err)
{
	AUTO(buf_done) struct buf stored;
	char path[LEARNT_PATH_SIZE];
	buf_init(&stored, LEARNT_MAX);
	learnt_path(f->node, path);
	int status = repo_read_state(&f->repo, path, &stored, err);
	if (status != 0 && status != E_NOT_FOUND)
		return status;
	struct bytes learnt = {stored.data, stored.len};
	add_member(ret_json, "variables", learnt, "variables");
	add_member(ret_json, "variables_complete", learnt, "complete");
	struct bytes peak = object_find(learnt, "peak_memory_bytes");
	f->peak_told = peak.len > 0 && !bytes_equal(peak, "null");
	if (f->peak_told)
		add_member(ret_json, "peak_memory_bytes", learnt, "peak_memory_bytes");
	return 0;
}

/* What it took and waited for. */
static int splice_cost(struct node_files *f, struct buf *ret_json, struct err *err)
{
	AUTO(buf_done) struct buf stored;
	uint64_t accepted = 0, sent = 0;
	buf_init(&stored, META_MAX);
	int status = read_beside(f, "meta.json", &stored, err);
	if (status != 0)
		return status;
	struct bytes meta = {stored.data, stored.len};
	if (!f->peak_told)
		add_member(ret_json, "peak_memory_bytes", meta, "peak_memory_bytes");
	add_member(ret_json, "queue_position", meta, "queue_position");
	struct bytes reason = object_find(meta, "files_reason");
	if (reason.len > 0)
		add_member(ret_json, "files_reason", meta, "files_reason");
	if (forget_is_forgotten(meta))
		(void)buf_add_text(ret_json, ",\"forgotten\":true"); /* latched, as below */
	/* One that was never sent waited until its end, which says nothing. */
	if (number_u64(object_find(meta, "accepted_us"), &accepted) &&
		number_u64(object_find(meta, "sent_us"), &sent) && sent >= accepted && sent > 0)
		(void)buf_addf(ret_json, ",\"wait_ms\":%llu.%03llu", /* latched, as below */
			(unsigned long long)((sent - accepted) / 1000),
			(unsigned long long)((sent - accepted) % 1000));
	else
		(void)buf_add_text(ret_json, ",\"wait_ms\":null");
	return 0;
}

static void add_report(cJSON *object, bool is_root, const char *parked, bool has_files)
{
	cJSON *report = cJSON_AddObjectToObject(object, "report");
	cJSON_AddStringToObject(report, "fidelity", parked ? parked : "code-only");
	cJSON_AddArrayToObject(report, "lost");
	cJSON_AddArrayToObject(report, "approximate");
	cJSON *notes = cJSON_AddArrayToObject(report, "notes");
	if (!is_root)
		cJSON_AddItemToArray(
			notes, cJSON_CreateString(files_note(parked != NULL, has_files)));
}

/* The object without its closing brace. */
static int put_node_head(struct asker *a, const char *history, struct db_rows *rows,
	struct node_files *f, struct buf *ret_json, struct err *err)
{
	AUTO(tree_freep) cJSON *object = node_object(a, history, rows);
	bool is_root = strcmp(db_text(rows, COLUMN_KIND), "root") == 0, has_files = false;
	int status = files_known(&f->repo, f->node, &has_files, err);
	if (status != 0)
		return status;
	add_report(object, is_root, asker_parked(a, memory_of(rows)), has_files);
	cJSON_AddStringToObject(object, "environment", db_text(rows, COLUMN_ENVIRONMENT));
	cJSON_AddNullToObject(object, "messages_url"); /* raw messages are not kept */
	status = print(object, ret_json, err);
	if (status != 0)
		return status;
	ret_json->data[--ret_json->len] = '\0';
	(void)buf_add_text(ret_json, ",\"files\":"); /* latched */
	return files_put_node(&f->repo, db_text(rows, COLUMN_PARENT), f->node, ret_json, err);
}

static int put_run(struct node_files *f, uint64_t n, struct buf *ret_json, struct err *err)
{
	if (n == 0)
		return buf_add_text(ret_json, ",\"code\":\"\",\"outputs\":[],\"variables\":[],"
					      "\"variables_complete\":true,"
					      "\"peak_memory_bytes\":null,\"queue_position\":null,"
					      "\"wait_ms\":null");
	run_folder(n, f->folder);
	int status = splice_run(f, ret_json, err);
	if (status == 0)
		status = splice_learnt(f, ret_json, err);
	return status == 0 ? splice_cost(f, ret_json, err) : status;
}

static int put_node(struct asker *a, const char *history, const char *path, struct node_files *f,
	struct buf *ret_json, struct err *err)
{
	AUTO(db_endp) struct db_rows *rows = NULL;
	const char *node = f->node;
	int status = db_ask(a->db,
		"SELECT" NODE_COLUMNS " FROM execution_records r WHERE history = ? AND node = ?",
		DB_VALUES(DB_T(history), DB_T(node)), &rows, err);
	if (status == 0)
		status = db_next(rows, err);
	if (status != 1)
		return status < 0 ? status : err_set(err, E_NOT_FOUND, "the node is gone");
	status = repo_open(path, &f->repo, err);
	if (status == 0)
		status = put_node_head(a, history, rows, f, ret_json, err);
	if (status == 0)
		status = put_run(f, (uint64_t)db_number(rows, COLUMN_N), ret_json, err);
	repo_close(&f->repo);
	(void)buf_add_text(ret_json, "}"); /* latched */
	return status == 0 ? buf_check(ret_json, "an answer", err) : status;
}

static int answer_node(
	struct asker *a, const struct history_question *q, struct buf *ret_json, struct err *err)
{
	struct history_found found;
	char node[HISTORY_NODE_SIZE], path[PATH_MAX];
	struct node_files f = {.node = node, .brief = q->brief};
	int status = find_history(a->db, q, &found, err);
	if (status == 0)
		status = find_node(a->db, found.id, q, node, err);
	if (status != 0)
		return status;
	if (!folder_repository(a->folder, found.id, path, sizeof path))
		return err_set(err, E_IO, "the path of a history is too long");
	status = put_node(a, found.id, path, &f, ret_json, err);
	/* The index names it: that git lacks it is no wrong name. */
	return status == E_NOT_FOUND ? err_set(err, E_IO, "the node cannot be read") : status;
}

static int answer_repository(
	struct asker *a, const struct history_question *q, struct buf *ret_json, struct err *err)
{
	struct history_found found;
	char path[PATH_MAX];
	int status = find_history(a->db, q, &found, err);
	if (status != 0)
		return status;
	if (!folder_repository(a->folder, found.id, path, sizeof path))
		return err_set(err, E_IO, "the path of a history is too long");
	AUTO(tree_freep) cJSON *answer = cJSON_CreateObject();
	cJSON_AddStringToObject(answer, "path", path);
	cJSON_AddStringToObject(answer, "id", found.id);
	return print(answer, ret_json, err);
}

int asker_answer(struct asker *a, const struct history_question *question, struct buf *ret_json,
	struct err *err)
{
	a->parked = question->parked;
	a->stands = question->stands;
	switch (question->what) {
	case HISTORY_LIST:
		return answer_list(a, question, ret_json, err);
	case HISTORY_ONE:
		return answer_one(a, question, ret_json, err);
	case HISTORY_NODE:
		return answer_node(a, question, ret_json, err);
	case HISTORY_REPOSITORY:
		return answer_repository(a, question, ret_json, err);
	case HISTORY_EXPORT:
		return answer_export(a, question, ret_json, err);
	case HISTORY_DIFF:
		return answer_diff(a, question, ret_json, err);
	case HISTORY_IMPORT:
	case HISTORY_BRANCH:
		break; /* in slices, or the recorder's: lane_ask() */
	case HISTORY_WAY:
		return answer_way(a, question, ret_json, err);
	case HISTORY_FILES:
		return answer_files(a, question, ret_json, err);
	}
	return err_set(err, E_INVALID, "a question of no kind");
}
