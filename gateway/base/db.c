#include "gateway/base/db.h"

#include <sqlite3.h>
#include <string.h>

#define STATEMENTS_MAX 96
#define BUSY_MS	       5000

struct db_rows {
	struct db *db;
	const char *sql; /* NULL: this place is free */
	sqlite3_stmt *stmt;
};

struct db {
	sqlite3 *sqlite;
	size_t n;
	struct db_rows kept[STATEMENTS_MAX];
};

static int fail(struct db *db, int code, const char *what, struct err *err)
{
	const char *why = db->sqlite ? sqlite3_errmsg(db->sqlite) : sqlite3_errstr(code);
	int primary = code & 0xff;
	if (primary == SQLITE_CORRUPT || primary == SQLITE_NOTADB)
		return err_set(err, E_GONE, "%s: the index is damaged: %s", what, why);
	if (primary == SQLITE_NOMEM)
		return err_set(err, E_NOMEM, "%s: out of memory", what);
	if (primary == SQLITE_BUSY || primary == SQLITE_LOCKED)
		return err_set(err, E_UNAVAILABLE, "%s: %s", what, why);
	return err_set(err, E_IO, "%s: %s", what, why);
}

void db_close(struct db *db)
{
	if (!db)
		return;
	for (size_t i = 0; i < db->n; i++)
		(void)sqlite3_finalize(db->kept[i].stmt); /* repeats the last step's result */
	(void)sqlite3_close(db->sqlite);		  /* nothing is open in it any more */
	free(db);
}

void db_closep(struct db **db)
{
	db_close(*db);
	*db = NULL;
}

int db_open(const char *path, struct db **ret_db, struct err *err)
{
	AUTO(db_closep) struct db *db = xcalloc(1, sizeof *db);
	int flags = SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE | SQLITE_OPEN_NOMUTEX;
	int code = sqlite3_open_v2(path, &db->sqlite, flags, NULL);
	if (code != SQLITE_OK)
		return fail(db, code, path, err);
	/* sqlite falls back on reading alone, in silence, whatever writing failed of. */
	if (sqlite3_db_readonly(db->sqlite, "main") != 0)
		return err_set(err, E_IO, "%s cannot be opened for writing", path);
	(void)sqlite3_busy_timeout(db->sqlite, BUSY_MS); /* cannot fail */
	/* temp_store: what a savepoint may take back is kept in memory, not in a file beside. */
	int status = db_script(db,
		"PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL; PRAGMA mmap_size = 0; "
		"PRAGMA cache_size = -256; PRAGMA temp_store = MEMORY;",
		err);
	if (status == 0)
		*ret_db = TAKE(db);
	return status;
}

int db_script(struct db *db, const char *sql, struct err *err)
{
	int code = sqlite3_exec(db->sqlite, sql, NULL, NULL, NULL);
	return code == SQLITE_OK ? 0 : fail(db, code, "index", err);
}

bool db_in_transaction(const struct db *db)
{
	return sqlite3_get_autocommit(db->sqlite) == 0;
}

int db_check(struct db *db, struct err *err)
{
	AUTO(db_endp) struct db_rows *rows = NULL;
	int status = db_ask(db, "PRAGMA quick_check(1)", DB_NONE, &rows, err);
	if (status == 0)
		status = db_next(rows, err);
	if (status == 1)
		status = strcmp(db_text(rows, 0), "ok") == 0
				 ? 0
				 : err_set(err, E_GONE, "the index is damaged: %s",
					   db_text(rows, 0));
	return status;
}

static int statement(struct db *db, const char *sql, struct db_rows **ret_rows, struct err *err)
{
	for (size_t i = 0; i < db->n; i++) {
		if (db->kept[i].sql == sql) {
			*ret_rows = &db->kept[i];
			return 0;
		}
	}
	if (db->n == STATEMENTS_MAX)
		return err_set(err, E_NOMEM, "more statements than the index keeps");
	struct db_rows *rows = &db->kept[db->n];
	int code = sqlite3_prepare_v3(
		db->sqlite, sql, -1, SQLITE_PREPARE_PERSISTENT, &rows->stmt, NULL);
	if (code != SQLITE_OK)
		return fail(db, code, "index", err);
	rows->db = db;
	rows->sql = sql;
	db->n++;
	*ret_rows = rows;
	return 0;
}

static int bind(sqlite3_stmt *stmt, int at, const struct db_value *value)
{
	if (value->kind == DB_NUMBER)
		return sqlite3_bind_int64(stmt, at, value->number);
	if (!value->text)
		return sqlite3_bind_null(stmt, at);
	/* Copied: rows may be read after the caller's text is gone. */
	return sqlite3_bind_text(stmt, at, value->text, -1, SQLITE_TRANSIENT);
}

int db_ask(struct db *db, const char *sql, const struct db_value *values, size_t n,
	struct db_rows **ret_rows, struct err *err)
{
	struct db_rows *rows = NULL;
	int status = statement(db, sql, &rows, err);
	for (size_t i = 0; status == 0 && i < n; i++) {
		int code = bind(rows->stmt, (int)i + 1, &values[i]);
		if (code != SQLITE_OK)
			status = fail(db, code, "index", err);
	}
	if (status == 0)
		*ret_rows = rows;
	return status;
}

int db_next(struct db_rows *rows, struct err *err)
{
	int code = sqlite3_step(rows->stmt);
	if (code == SQLITE_ROW)
		return 1;
	return code == SQLITE_DONE ? 0 : fail(rows->db, code, "index", err);
}

const char *db_text(struct db_rows *rows, int column)
{
	const char *text = (const char *)sqlite3_column_text(rows->stmt, column);
	return text ? text : "";
}

int64_t db_number(struct db_rows *rows, int column)
{
	return sqlite3_column_int64(rows->stmt, column);
}

bool db_is_null(struct db_rows *rows, int column)
{
	return sqlite3_column_type(rows->stmt, column) == SQLITE_NULL;
}

void db_end(struct db_rows *rows)
{
	if (!rows)
		return;
	(void)sqlite3_reset(rows->stmt);	  /* repeats the last step's result */
	(void)sqlite3_clear_bindings(rows->stmt); /* cannot fail */
}

void db_endp(struct db_rows **rows)
{
	db_end(*rows);
	*rows = NULL;
}

int db_run(struct db *db, const char *sql, const struct db_value *values, size_t n, struct err *err)
{
	AUTO(db_endp) struct db_rows *rows = NULL;
	int status = db_ask(db, sql, values, n, &rows, err);
	while (status == 0 && (status = db_next(rows, err)) == 1)
		status = 0; /* rows that nobody wants */
	return status;
}
