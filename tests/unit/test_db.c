#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "gateway/base/db.h"
#include "tests/lib/test.h"

static char path[64];

static struct db *fresh(void)
{
	struct db *db;
	(void)snprintf(path, sizeof path, "/tmp/coppice-db-XXXXXX");
	int fd = mkstemp(path);
	assert_true(fd >= 0);
	assert_int_equal(close(fd), 0);
	assert_int_equal(db_open(path, &db, NULL), 0);
	assert_int_equal(db_script(db, "CREATE TABLE t(a TEXT, b INTEGER)", NULL), 0);
	return db;
}

static void done(struct db *db)
{
	db_close(db);
	assert_int_equal(unlink(path), 0);
}

static int64_t count(struct db *db, const char *text)
{
	AUTO(db_endp) struct db_rows *rows = NULL;
	assert_int_equal(db_ask(db, "SELECT count(*) FROM t WHERE a IS ?1", DB_VALUES(DB_T(text)),
				 &rows, NULL),
		0);
	assert_int_equal(db_next(rows, NULL), 1);
	return db_number(rows, 0);
}

TEST(db, values_come_back_as_they_went_in)
{
	struct db *db = fresh();
	static const int64_t numbers[] = {0, -1, INT64_MAX, INT64_MIN};
	for (size_t i = 0; i < ARRAY_LEN(numbers); i++)
		assert_int_equal(db_run(db, "INSERT INTO t VALUES(?, ?)",
					 DB_VALUES(DB_T("' OR 1=1 --"), DB_N(numbers[i])), NULL),
			0);
	assert_int_equal(db_run(db, "INSERT INTO t VALUES(?, 1)", DB_VALUES(DB_T(NULL)), NULL), 0);
	assert_int_equal(count(db, "' OR 1=1 --"), 4);
	assert_int_equal(count(db, NULL), 1);
	struct db_rows *rows;
	assert_int_equal(db_ask(db, "SELECT a, b FROM t ORDER BY rowid", DB_NONE, &rows, NULL), 0);
	for (size_t i = 0; i < ARRAY_LEN(numbers); i++) {
		assert_int_equal(db_next(rows, NULL), 1);
		assert_string_equal(db_text(rows, 0), "' OR 1=1 --");
		assert_true(db_number(rows, 1) == numbers[i]);
	}
	assert_int_equal(db_next(rows, NULL), 1);
	assert_true(db_is_null(rows, 0));
	assert_string_equal(db_text(rows, 0), "");
	assert_int_equal(db_next(rows, NULL), 0);
	db_end(rows);
	done(db);
}

TEST(db, what_is_wrong_is_said)
{
	struct db *db = fresh();
	struct err err;
	assert_int_equal(db_run(db, "INSERT INTO nowhere VALUES(1)", DB_NONE, &err), E_IO);
	assert_non_null(strstr(err.text, "no such table: nowhere"));
	assert_int_equal(db_script(db, "ROLLBACK", &err), E_IO);
	assert_false(db_in_transaction(db));
	assert_int_equal(db_script(db, "BEGIN", &err), 0);
	assert_true(db_in_transaction(db));
	assert_int_equal(db_script(db, "COMMIT", &err), 0);
	done(db);
	struct db *none = NULL;
	assert_int_equal(db_open("/nowhere/at/all", &none, &err), E_IO);
	assert_null(none);
}

TEST(db, a_file_that_is_no_database_is_told_apart)
{
	struct db *db = fresh(), *again = NULL;
	struct err err;
	db_close(db);
	FILE *file = fopen(path, "we");
	assert_non_null(file);
	for (int i = 0; i < 1000; i++)
		assert_true(fputs("this is no database", file) >= 0);
	assert_int_equal(fclose(file), 0);
	assert_int_equal(db_open(path, &again, &err), E_GONE);
	assert_null(again);
	assert_int_equal(unlink(path), 0);
}

RUN(TEST_ROW(db, values_come_back_as_they_went_in), TEST_ROW(db, what_is_wrong_is_said),
	TEST_ROW(db, a_file_that_is_no_database_is_told_apart))
