#include "history/index.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

static const char schema_1[] =
	"CREATE TABLE histories(id TEXT PRIMARY KEY, name TEXT NOT NULL, owner TEXT NOT NULL,"
	" kernelspec TEXT NOT NULL, root TEXT NOT NULL, created_us INTEGER NOT NULL,"
	" activity_us INTEGER NOT NULL, node_count INTEGER NOT NULL) WITHOUT ROWID;"
	"CREATE INDEX histories_activity ON histories(activity_us, id);"
	"CREATE TABLE branches(history TEXT, name TEXT, node TEXT NOT NULL,"
	" PRIMARY KEY(history, name)) WITHOUT ROWID;"
	"CREATE TABLE execution_records(seq INTEGER PRIMARY KEY, history TEXT NOT NULL,"
	" node TEXT NOT NULL, parent TEXT NOT NULL, kind TEXT NOT NULL, branch TEXT NOT NULL,"
	" n INTEGER NOT NULL, kernel_id TEXT NOT NULL, epoch INTEGER NOT NULL,"
	" state_version INTEGER NOT NULL, msg_id TEXT, execution_count INTEGER,"
	" status TEXT NOT NULL, summary TEXT NOT NULL, started_us INTEGER NOT NULL,"
	" duration_us INTEGER NOT NULL, silent INTEGER NOT NULL, stdout_bytes INTEGER NOT NULL,"
	" stderr_bytes INTEGER NOT NULL, outputs INTEGER NOT NULL, ename TEXT, evalue TEXT,"
	" exit TEXT, environment TEXT NOT NULL);"
	"CREATE UNIQUE INDEX records_node ON execution_records(history, node);"
	"CREATE INDEX records_msg ON execution_records(history, msg_id);"
	"CREATE INDEX records_order ON execution_records(history, seq);"
	"CREATE INDEX records_kernel ON execution_records(history, kernel_id, epoch, seq);"
	"CREATE TABLE session_states(kernel_id TEXT PRIMARY KEY, history TEXT NOT NULL,"
	" branch TEXT NOT NULL, node TEXT NOT NULL, epoch INTEGER NOT NULL,"
	" state_version INTEGER NOT NULL, activity_us INTEGER NOT NULL) WITHOUT ROWID;"
	"CREATE INDEX states_history ON session_states(history, activity_us);"
	"CREATE TABLE displays(history TEXT, display_id TEXT, msg_id TEXT, n INTEGER NOT NULL,"
	" PRIMARY KEY(history, display_id, msg_id)) WITHOUT ROWID;";

static const char schema_2[] = "CREATE TABLE rewritten(history TEXT, was TEXT, node TEXT NOT NULL,"
			       " PRIMARY KEY(history, was)) WITHOUT ROWID;";

/* Histories whose rows went, and of whose texts pages of the file may still hold something. */
static const char schema_3[] = "CREATE TABLE untidy(history TEXT PRIMARY KEY) WITHOUT ROWID;";

/* How many files a node changed; of a change of files, in which run's memory it is. */
static const char schema_4[] =
	"ALTER TABLE execution_records ADD COLUMN files INTEGER NOT NULL DEFAULT 0;"
	"ALTER TABLE execution_records ADD COLUMN memory_of TEXT;";

/* The script that leads from version i to i + 1. */
static const char *const migrations[] = {schema_1, schema_2, schema_3, schema_4};

static int migrate_from(struct db *db, size_t version, struct err *err)
{
	char set[64];
	(void)snprintf(set, sizeof set, "PRAGMA user_version = %zu", version + 1);
	int status = db_script(db, "BEGIN IMMEDIATE", err);
	if (status == 0)
		status = db_script(db, migrations[version], err);
	if (status == 0)
		status = db_script(db, set, err);
	if (status == 0)
		return db_script(db, "COMMIT", err);
	(void)db_script(db, "ROLLBACK", NULL); /* the first failure is the one that counts */
	return status;
}

static int read_version(struct db *db, size_t *ret_version, struct err *err)
{
	AUTO(db_endp) struct db_rows *rows = NULL;
	int status = db_ask(db, "PRAGMA user_version", DB_NONE, &rows, err);
	if (status == 0)
		status = db_next(rows, err);
	if (status < 0)
		return status;
	*ret_version = (size_t)db_number(rows, 0);
	return 0;
}

static int migrate(struct db *db, bool *ret_fresh, struct err *err)
{
	size_t version = 0;
	int status = read_version(db, &version, err);
	if (status == 0 && version > ARRAY_LEN(migrations))
		status = err_set(err, E_GONE, "the index is of a later coppice");
	if (status == 0)
		*ret_fresh = version == 0;
	for (; status == 0 && version < ARRAY_LEN(migrations); version++)
		status = migrate_from(db, version, err);
	return status;
}

static int open_once(const char *path, struct db **ret_db, bool *ret_fresh, struct err *err)
{
	AUTO(db_closep) struct db *db = NULL;
	int status = db_open(path, &db, err);
	if (status == 0)
		status = db_check(db, err);
	if (status == 0)
		status = migrate(db, ret_fresh, err);
	/* What is removed or replaced is written over, not only forgotten. */
	if (status == 0)
		status = db_script(db, "PRAGMA secure_delete = ON", err);
	if (status == 0)
		*ret_db = TAKE(db);
	return status;
}

void index_discard(const char *path)
{
	static const char *const ends[] = {"", "-wal", "-shm"};
	for (size_t i = 0; i < ARRAY_LEN(ends); i++) {
		char file[4096];
		(void)snprintf(file, sizeof file, "%s%s", path, ends[i]);
		(void)unlink(file); /* it may not be there; what stays fails when it is opened */
	}
}

int index_open(const char *path, struct db **ret_db, bool *ret_fresh, struct err *err)
{
	int status = open_once(path, ret_db, ret_fresh, err);
	if (status != E_GONE)
		return status;
	index_discard(path);
	return open_once(path, ret_db, ret_fresh, err);
}

int index_set_branch(
	struct db *db, const char *history, const char *branch, const char *node, struct err *err)
{
	return db_run(db,
		"INSERT INTO branches VALUES(?, ?, ?)"
		" ON CONFLICT(history, name) DO UPDATE SET node = excluded.node",
		DB_VALUES(DB_T(history), DB_T(branch), DB_T(node)), err);
}

int index_forget(struct db *db, const char *history, struct err *err)
{
	static const char *const statements[] = {
		"DELETE FROM histories WHERE id = ?",
		"DELETE FROM branches WHERE history = ?",
		"DELETE FROM execution_records WHERE history = ?",
		"DELETE FROM displays WHERE history = ?",
		"DELETE FROM rewritten WHERE history = ?",
		"UPDATE session_states SET history = '', branch = '', node = '' WHERE history = ?",
	};
	int status = 0;
	for (size_t i = 0; status == 0 && i < ARRAY_LEN(statements); i++)
		status = db_run(db, statements[i], DB_VALUES(DB_T(history)), err);
	return status;
}

int index_add_was(
	struct db *db, const char *history, const char *was, const char *node, struct err *err)
{
	return db_run(db, "INSERT OR REPLACE INTO rewritten VALUES(?, ?, ?)",
		DB_VALUES(DB_T(history), DB_T(was), DB_T(node)), err);
}

int index_untidy(struct db *db, const char *history, struct err *err)
{
	return db_run(db, "INSERT OR IGNORE INTO untidy VALUES(?)", DB_VALUES(DB_T(history)), err);
}

int index_is_untidy(struct db *db, struct err *err)
{
	AUTO(db_endp) struct db_rows *rows = NULL;
	int status = db_ask(db, "SELECT 1 FROM untidy LIMIT 1", DB_NONE, &rows, err);
	return status == 0 ? db_next(rows, err) : status;
}

static int truncate_log(struct db *db, struct err *err)
{
	AUTO(db_endp) struct db_rows *rows = NULL;
	int status = db_ask(db, "PRAGMA wal_checkpoint(TRUNCATE)", DB_NONE, &rows, err);
	if (status == 0)
		status = db_next(rows, err);
	if (status != 1)
		return status < 0 ? status : err_set(err, E_IO, "the index tells nothing");
	return db_number(rows, 0) == 0
		       ? 0
		       : err_set(err, E_UNAVAILABLE, "somebody reads the index all the time");
}

/* Rows that moved to another page stay in the gaps of the one that they came from, and all of them
 * in the log before it. */
int index_tidy(struct db *db, struct err *err)
{
	int status = db_script(db, "VACUUM", err);
	if (status == 0)
		status = truncate_log(db, err);
	return status == 0 ? db_script(db, "DELETE FROM untidy", err) : status;
}

#define SHED "2000"

int index_shed(struct db *db, const char *history, struct err *err)
{
	static const char *const statements[] = {
		"DELETE FROM histories WHERE id = ?",
		"DELETE FROM branches WHERE history = ?",
		"DELETE FROM rewritten WHERE history = ?",
		"UPDATE session_states SET history = '', branch = '', node = '' WHERE history = ?",
		"DELETE FROM execution_records WHERE seq IN"
		" (SELECT seq FROM execution_records WHERE history = ? LIMIT " SHED ")",
		"DELETE FROM displays WHERE (history, display_id, msg_id) IN (SELECT history,"
		" display_id, msg_id FROM displays WHERE history = ? LIMIT " SHED ")",
	};
	AUTO(db_endp) struct db_rows *rows = NULL;
	int status = 0;
	for (size_t i = 0; status == 0 && i < ARRAY_LEN(statements); i++)
		status = db_run(db, statements[i], DB_VALUES(DB_T(history)), err);
	if (status == 0)
		status = db_ask(db,
			"SELECT 1 FROM execution_records WHERE history = ?1"
			" UNION ALL SELECT 1 FROM displays WHERE history = ?1 LIMIT 1",
			DB_VALUES(DB_T(history)), &rows, err);
	return status == 0 ? db_next(rows, err) : status;
}

int index_add_display(struct db *db, const char *history, const char *display_id,
	const char *msg_id, uint64_t n, struct err *err)
{
	return db_run(db, "INSERT OR IGNORE INTO displays VALUES(?, ?, ?, ?)",
		DB_VALUES(DB_T(history), DB_T(display_id), DB_T(msg_id), DB_N(n)), err);
}

/* ---- asking ---- */

/* Columns branch, node, n, epoch, state_version, tip. */
static int read_place(struct db_rows *rows, struct index_place *ret_place, struct err *err)
{
	int status = db_next(rows, err);
	if (status != 1)
		return status;
	*ret_place = (struct index_place){.n = (uint64_t)db_number(rows, 2),
		.epoch = (uint64_t)db_number(rows, 3),
		.state_version = (uint64_t)db_number(rows, 4)};
	(void)snprintf(ret_place->branch, HISTORY_BRANCH_SIZE, "%s", db_text(rows, 0));
	(void)snprintf(ret_place->node, HISTORY_NODE_SIZE, "%s", db_text(rows, 1));
	(void)snprintf(ret_place->tip, HISTORY_NODE_SIZE, "%s", db_text(rows, 5));
	return 1;
}

#define PLACE                                                                                      \
	"SELECT r.branch, r.node, r.n, r.epoch, r.state_version, b.node"                           \
	" FROM execution_records r LEFT JOIN branches b"                                           \
	" ON b.history = r.history AND b.name = r.branch "

int index_find_run(struct db *db, const char *history, const char *msg_id,
	struct index_place *ret_place, struct err *err)
{
	AUTO(db_endp) struct db_rows *rows = NULL;
	int status = db_ask(db, PLACE "WHERE r.history = ? AND r.msg_id = ?",
		DB_VALUES(DB_T(history), DB_T(msg_id)), &rows, err);
	return status == 0 ? read_place(rows, ret_place, err) : status;
}

int index_find_node(struct db *db, const char *history, const char *node,
	struct index_place *ret_place, struct err *err)
{
	AUTO(db_endp) struct db_rows *rows = NULL;
	int status = db_ask(db, PLACE "WHERE r.history = ? AND r.node = ?",
		DB_VALUES(DB_T(history), DB_T(node)), &rows, err);
	return status == 0 ? read_place(rows, ret_place, err) : status;
}

int index_find_epoch(struct db *db, const char *history, const char *kernel_id, uint64_t epoch,
	struct index_place *ret_place, struct err *err)
{
	AUTO(db_endp) struct db_rows *rows = NULL;
	int status = db_ask(db,
		PLACE "WHERE r.history = ? AND r.kernel_id = ? AND r.epoch = ?"
		      " ORDER BY r.seq DESC LIMIT 1",
		DB_VALUES(DB_T(history), DB_T(kernel_id), DB_N(epoch)), &rows, err);
	return status == 0 ? read_place(rows, ret_place, err) : status;
}

int index_find_state(struct db *db, const char *history, const char *kernel_id,
	struct index_place *ret_place, bool *ret_here, struct err *err)
{
	AUTO(db_endp) struct db_rows *rows = NULL;
	int status = db_ask(db,
		"SELECT s.branch, s.node, r.n, s.epoch, s.state_version, b.node, s.history = ?"
		" FROM session_states s"
		" LEFT JOIN execution_records r ON r.history = s.history AND r.node = s.node"
		" LEFT JOIN branches b ON b.history = s.history AND b.name = s.branch"
		" WHERE s.kernel_id = ?",
		DB_VALUES(DB_T(history), DB_T(kernel_id)), &rows, err);
	if (status == 0)
		status = read_place(rows, ret_place, err);
	if (status == 1)
		*ret_here = db_number(rows, 6) == 1;
	return status;
}

/* The one text that is asked for. */
static int find_node(struct db_rows *rows, char ret_node[HISTORY_NODE_SIZE], struct err *err)
{
	int status = db_next(rows, err);
	if (status == 1)
		(void)snprintf(ret_node, HISTORY_NODE_SIZE, "%s", db_text(rows, 0));
	return status;
}

int index_find_root(
	struct db *db, const char *history, char ret_root[HISTORY_NODE_SIZE], struct err *err)
{
	AUTO(db_endp) struct db_rows *rows = NULL;
	int status = db_ask(db, "SELECT root FROM histories WHERE id = ?", DB_VALUES(DB_T(history)),
		&rows, err);
	return status == 0 ? find_node(rows, ret_root, err) : status;
}

int index_find_was(struct db *db, const char *history, const char *was,
	char ret_node[HISTORY_NODE_SIZE], struct err *err)
{
	AUTO(db_endp) struct db_rows *rows = NULL;
	int status = db_ask(db, "SELECT node FROM rewritten WHERE history = ? AND was = ?",
		DB_VALUES(DB_T(history), DB_T(was)), &rows, err);
	return status == 0 ? find_node(rows, ret_node, err) : status;
}

int index_find_tip(struct db *db, const char *history, const char *branch,
	char ret_node[HISTORY_NODE_SIZE], struct err *err)
{
	AUTO(db_endp) struct db_rows *rows = NULL;
	int status = db_ask(db, "SELECT node FROM branches WHERE history = ? AND name = ?",
		DB_VALUES(DB_T(history), DB_T(branch)), &rows, err);
	return status == 0 ? find_node(rows, ret_node, err) : status;
}

int index_find_memory(struct db *db, const char *history, const char *node, char *ret_msg_id,
	size_t size, struct err *err)
{
	AUTO(db_endp) struct db_rows *rows = NULL;
	ret_msg_id[0] = '\0';
	int status = db_ask(db,
		"SELECT coalesce(memory_of, msg_id, '') FROM execution_records"
		" WHERE history = ? AND node = ?",
		DB_VALUES(DB_T(history), DB_T(node)), &rows, err);
	if (status == 0)
		status = db_next(rows, err);
	if (status == 1)
		(void)copy_text(ret_msg_id, size, db_text(rows, 0), strlen(db_text(rows, 0)));
	return status < 0 ? status : 0;
}

int index_find_history(
	struct db *db, const char *owner, const char *called, char ret_id[64], struct err *err)
{
	AUTO(db_endp) struct db_rows *rows = NULL;
	int status = db_ask(db,
		"SELECT id FROM histories WHERE owner = ?1 AND (id = ?2 OR name = ?2)"
		" ORDER BY id = ?2 DESC, activity_us DESC, id LIMIT 1",
		DB_VALUES(DB_T(owner), DB_T(called)), &rows, err);
	if (status == 0)
		status = db_next(rows, err);
	if (status == 1)
		(void)copy_text(ret_id, 64, db_text(rows, 0), strlen(db_text(rows, 0))); /* fits */
	return status;
}

int index_has_history(struct db *db, const char *id, struct err *err)
{
	AUTO(db_endp) struct db_rows *rows = NULL;
	int status =
		db_ask(db, "SELECT 1 FROM histories WHERE id = ?", DB_VALUES(DB_T(id)), &rows, err);
	return status == 0 ? db_next(rows, err) : status;
}

int index_has_node(struct db *db, const char *history, const char *node, struct err *err)
{
	AUTO(db_endp) struct db_rows *rows = NULL;
	int status = db_ask(db, "SELECT 1 FROM execution_records WHERE history = ? AND node = ?",
		DB_VALUES(DB_T(history), DB_T(node)), &rows, err);
	return status == 0 ? db_next(rows, err) : status;
}
