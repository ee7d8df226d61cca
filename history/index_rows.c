/* Rows from what git holds. */
#include "history/index.h"

#include <stdio.h>
#include <string.h>

#include "gateway/base/json.h"
#include "history/record.h"
#include "history/spliced.h"

#define TEXT_SIZE 1024

/* The members of meta.json, as rows want them. */
struct facts {
	char kernel_id[TEXT_SIZE], msg_id[JMSG_ID_MAX], branch[HISTORY_BRANCH_SIZE], status[16];
	char summary[SUMMARY_SIZE], ename[TEXT_SIZE], evalue[TEXT_SIZE], environment[TEXT_SIZE];
	char exit[4200], count[24];
	uint64_t epoch, n, state_version, started_us, duration_us, done_us;
	uint64_t stdout_bytes, stderr_bytes, outputs, files;
	char memory_of[JMSG_ID_MAX];
	bool silent, is_files;
};

static uint64_t number_of(struct bytes meta, const char *key)
{
	uint64_t number = 0;
	(void)number_u64(object_find(meta, key), &number); /* absent is 0 */
	return number;
}

static void text_of(struct bytes object, const char *key, char *ret_text, size_t size)
{
	if (!json_text(object_find(object, key), ret_text, size))
		ret_text[0] = '\0';
}

static void read_numbers(struct facts *f, struct bytes meta)
{
	f->epoch = number_of(meta, "epoch");
	f->n = number_of(meta, "n");
	f->state_version = number_of(meta, "state_version");
	f->started_us = number_of(meta, "started_us");
	f->duration_us = number_of(meta, "duration_us");
	f->done_us = number_of(meta, "done_us");
	f->stdout_bytes = number_of(meta, "stdout_bytes");
	f->stderr_bytes = number_of(meta, "stderr_bytes");
	f->outputs = number_of(meta, "outputs");
	f->files = number_of(meta, "files");
}

static int read_facts(struct facts *f, struct bytes meta, struct err *err)
{
	struct bytes error = object_find(meta, "error"), exit = object_find(meta, "exit");
	struct bytes count = object_find(meta, "execution_count");
	if (json_scan(meta, NULL, 0, err) != 0)
		return err_wrap(err, "meta.json");
	read_numbers(f, meta);
	text_of(meta, "kernel_id", f->kernel_id, sizeof f->kernel_id);
	text_of(meta, "msg_id", f->msg_id, sizeof f->msg_id);
	text_of(meta, "branch", f->branch, sizeof f->branch);
	text_of(meta, "status", f->status, sizeof f->status);
	text_of(meta, "summary", f->summary, sizeof f->summary);
	text_of(meta, "environment", f->environment, sizeof f->environment);
	text_of(error, "ename", f->ename, sizeof f->ename);
	text_of(error, "evalue", f->evalue, sizeof f->evalue);
	if (!is_object(exit) ||
		!copy_text(f->exit, sizeof f->exit, (const char *)exit.data, exit.len))
		f->exit[0] = '\0';
	if (!copy_text(f->count, sizeof f->count, (const char *)count.data, count.len) ||
		strcmp(f->count, "null") == 0)
		f->count[0] = '\0';
	f->silent = bytes_equal(object_find(meta, "silent"), "true");
	f->is_files = bytes_equal(object_find(meta, "kind"), "\"files\"");
	text_of(meta, "memory_of", f->memory_of, sizeof f->memory_of);
	return 0;
}

static const char *or_null(const char *text)
{
	return text[0] ? text : NULL;
}

static int add_record(
	struct db *db, const struct index_node *node, const struct facts *f, struct err *err)
{
	return db_run(db,
		"INSERT INTO execution_records VALUES(NULL, ?, ?, ?, ?, ?, ?, ?, ?, ?,"
		" ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
		DB_VALUES(DB_T(node->history), DB_T(node->node), DB_T(node->parent),
			DB_T(f->is_files ? "files" : "execution"), DB_T(f->branch), DB_N(f->n),
			DB_T(f->kernel_id), DB_N(f->epoch), DB_N(f->state_version),
			DB_T(or_null(f->msg_id)), DB_T(or_null(f->count)), DB_T(f->status),
			DB_T(f->summary), DB_N(f->started_us), DB_N(f->duration_us),
			DB_N(f->silent), DB_N(f->stdout_bytes), DB_N(f->stderr_bytes),
			DB_N(f->outputs), DB_T(or_null(f->ename)),
			DB_T(f->ename[0] ? f->evalue : NULL), DB_T(or_null(f->exit)),
			DB_T(f->environment), DB_N(f->files),
			DB_T(f->is_files ? f->memory_of : NULL)),
		err);
}

/* Of two nodes of a kernel the one with the greater version is where it stands. */
static int set_state(
	struct db *db, const struct index_node *node, const struct facts *f, struct err *err)
{
	return db_run(db,
		"INSERT INTO session_states VALUES(?, ?, ?, ?, ?, ?, ?)"
		" ON CONFLICT(kernel_id) DO UPDATE SET"
		" history = excluded.history, branch = excluded.branch, node = excluded.node,"
		" epoch = max(epoch, excluded.epoch), state_version = excluded.state_version,"
		" activity_us = excluded.activity_us"
		" WHERE excluded.state_version >= state_version",
		DB_VALUES(DB_T(f->kernel_id), DB_T(node->history), DB_T(f->branch),
			DB_T(node->node), DB_N(f->epoch), DB_N(f->state_version), DB_N(f->done_us)),
		err);
}

struct shown {
	struct db *db;
	const char *history, *msg_id;
	uint64_t n;
};

/* raw is a string; its escapes stay, as they only meet themselves. */
static int add_display(const struct shown *s, struct bytes raw, struct err *err)
{
	struct bytes id = string_inside(raw);
	char text[DISPLAY_ID_SIZE];
	if (id.len == 0 || !copy_text(text, sizeof text, (const char *)id.data, id.len))
		return 0;
	return index_add_display(s->db, s->history, text, s->msg_id, s->n, err);
}

/* What an earlier run shows since this node. */
static int add_amended(
	struct db *db, const struct index_node *node, struct bytes amended, struct err *err)
{
	struct bytes list = object_find(amended, "displays"), id;
	char msg_id[JMSG_ID_MAX];
	struct shown s = {db, node->history, msg_id, number_of(amended, "n")};
	int status = 0;
	text_of(amended, "msg_id", msg_id, sizeof msg_id);
	for (size_t at = 0; status == 0 && array_next(list, &at, &id);)
		status = add_display(&s, id, err);
	return status;
}

static int add_displays(
	struct db *db, const struct index_node *node, const struct facts *f, struct err *err)
{
	struct shown s = {db, node->history, f->msg_id, f->n};
	struct bytes list = object_find(node->meta, "displays"), one;
	int status = 0;
	for (size_t at = 0; status == 0 && array_next(list, &at, &one);)
		status = add_display(&s, object_find(one, "display_id"), err);
	list = object_find(node->meta, "amends");
	for (size_t at = 0; status == 0 && array_next(list, &at, &one);)
		status = add_amended(db, node, one, err);
	return status;
}

int index_add_node(struct db *db, const struct index_node *node, struct err *err)
{
	struct facts f;
	int status = read_facts(&f, node->meta, err);
	if (status == 0)
		status = add_record(db, node, &f, err);
	if (status == 0)
		status = set_state(db, node, &f, err);
	if (status == 0)
		status = add_displays(db, node, &f, err);
	if (status == 0)
		status = db_run(db,
			"UPDATE histories SET node_count = node_count + 1,"
			" activity_us = max(activity_us, ?) WHERE id = ?",
			DB_VALUES(DB_N(f.done_us), DB_T(node->history)), err);
	return status;
}

static int64_t created_of(const char *message)
{
	char created[24];
	uint64_t created_us = 0;
	(void)trailer_find(message, "Created-Us", created, sizeof created); /* absent: 0 */
	(void)number_u64((struct bytes){(uint8_t *)created, strlen(created)}, &created_us);
	return (int64_t)created_us;
}

int index_add_root(
	struct db *db, const char *history, const char *root, const char *message, struct err *err)
{
	return db_run(db,
		"INSERT INTO execution_records VALUES(NULL, ?, ?, '', 'root', 'main', 0, '', 0, 0,"
		" NULL, NULL, 'ok', '', ?, 0, 0, 0, 0, 0, NULL, NULL, NULL, '', 0, NULL)",
		DB_VALUES(DB_T(history), DB_T(root), DB_N(created_of(message))), err);
}

int index_publish(
	struct db *db, const char *history, const char *root, const char *message, struct err *err)
{
	char name[TEXT_SIZE], owner[TEXT_SIZE], spec[TEXT_SIZE];
	int64_t created_us = created_of(message);
	/* What is absent or too long is "". */
	(void)trailer_find(message, "Name", name, sizeof name);
	(void)trailer_find(message, "Owner", owner, sizeof owner);
	(void)trailer_find(message, "Kernelspec", spec, sizeof spec);
	return db_run(db,
		"INSERT INTO histories SELECT ?1, ?2, ?3, ?4, ?5, ?6, ?6, count(*)"
		" FROM execution_records WHERE history = ?1",
		DB_VALUES(DB_T(history), DB_T(name), DB_T(owner), DB_T(spec), DB_T(root),
			DB_N(created_us)),
		err);
}

int index_add_history(
	struct db *db, const char *history, const char *root, const char *message, struct err *err)
{
	int status = index_add_root(db, history, root, message, err);
	return status == 0 ? index_publish(db, history, root, message, err) : status;
}
