/* The door to sqlite: one connection, its statements kept, values as an array. Owns the connection.
 * One thread at a time; each thread opens its own. Blocks. */
#ifndef COPPICE_BASE_DB_H
#define COPPICE_BASE_DB_H

#include "base.h"
#include "err.h"

struct db;
struct db_rows; /* a question that is being answered; the connection keeps it */

struct db_value {
	const char *text; /* with kind DB_TEXT; NULL is SQL's NULL; borrowed for the call */
	int64_t number;
	enum { DB_TEXT, DB_NUMBER } kind;
};

#define DB_T(t)                                                                                    \
	{                                                                                          \
		.text = (t), .kind = DB_TEXT                                                       \
	}
#define DB_N(n)                                                                                    \
	{                                                                                          \
		.number = (int64_t)(n), .kind = DB_NUMBER                                          \
	}
/* The two arguments `values, n` from rows of DB_T() and DB_N(). */
#define DB_VALUES(...)                                                                             \
	(const struct db_value[]){__VA_ARGS__},                                                    \
		sizeof((const struct db_value[]){__VA_ARGS__}) / sizeof(struct db_value)
#define DB_NONE NULL, 0

/* Opens or makes the file, with a write-ahead log, synchronous. E_IO; E_GONE: what is there is
 * damaged or no database. */
int db_open(const char *path, struct db **ret_db, struct err *err);
void db_close(struct db *db);
void db_closep(struct db **db); /* for AUTO */
/* Reads the whole file. E_GONE: damaged. */
int db_check(struct db *db, struct err *err);

/* sql is a literal that lives as long as the connection: its statement is kept by its address.
 * E_IO, E_GONE (damaged), E_UNAVAILABLE (somebody else writes). */
int db_run(
	struct db *db, const char *sql, const struct db_value *values, size_t n, struct err *err);
/* Several statements without values, nothing kept. */
int db_script(struct db *db, const char *sql, struct err *err);

/* False where none was begun or sqlite rolled it back by itself, as it does when a disk is full. */
bool db_in_transaction(const struct db *db);

/* The statement of a literal is one: do not ask it again before db_end(). */
int db_ask(struct db *db, const char *sql, const struct db_value *values, size_t n,
	struct db_rows **ret_rows, struct err *err);
/* 1: there is a row; 0: no more; E_*. */
int db_next(struct db_rows *rows, struct err *err);
/* Of the present row; text is "" for NULL and borrowed until db_next() or db_end(). */
const char *db_text(struct db_rows *rows, int column);
int64_t db_number(struct db_rows *rows, int column);
bool db_is_null(struct db_rows *rows, int column);
void db_end(struct db_rows *rows);
void db_endp(struct db_rows **rows); /* for AUTO */

#endif
