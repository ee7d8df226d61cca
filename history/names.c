#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "history/ask.h"
#include "history/stand.h"

#define CANDIDATES_MAX 8

static void take_found(struct db_rows *rows, struct history_found *ret_found)
{
	(void)snprintf(ret_found->id, sizeof ret_found->id, "%s", db_text(rows, 0));
	(void)snprintf(ret_found->name, sizeof ret_found->name, "%s", db_text(rows, 1));
}

/* 1: there is one, 0: none. */
static int find_called(struct db *db, const struct history_question *question,
	struct history_found *ret_found, struct err *err)
{
	AUTO(db_endp) struct db_rows *rows = NULL;
	const char *asked = question->history;
	int status = db_ask(db,
		"SELECT id, name FROM histories WHERE (id = ?1 OR name = ?1)"
		" AND (?2 IS NULL OR owner = ?2) ORDER BY id = ?1 DESC LIMIT 2",
		DB_VALUES(DB_T(asked), DB_T(question->owner)), &rows, err);
	if (status == 0)
		status = db_next(rows, err);
	if (status != 1)
		return status;
	take_found(rows, ret_found);
	if (strcmp(ret_found->id, asked) == 0)
		return 1;
	status = db_next(rows, err);
	if (status == 1)
		return err_set(err, E_AMBIGUOUS,
			"'%.100s' is ambiguous: more than one history is called so", asked);
	return status == 0 ? 1 : status;
}

/* The history that a kernel is in which has none of its own id. 1: there is one, 0: none. */
static int find_kernel_s(struct db *db, const struct history_question *question,
	struct history_found *ret_found, struct err *err)
{
	AUTO(db_endp) struct db_rows *rows = NULL;
	int status = db_ask(db,
		"SELECT h.id, h.name FROM session_states s JOIN histories h ON h.id = s.history"
		" WHERE s.kernel_id = ?1 AND (?2 IS NULL OR h.owner = ?2)",
		DB_VALUES(DB_T(question->history), DB_T(question->owner)), &rows, err);
	if (status == 0)
		status = db_next(rows, err);
	if (status == 1)
		take_found(rows, ret_found);
	return status;
}

int find_history(struct db *db, const struct history_question *question,
	struct history_found *ret_found, struct err *err)
{
	struct history_question q = *question;
	q.history = question->history ? question->history : "";
	int status = find_called(db, &q, ret_found, err);
	if (status == 0 && !q.exact)
		status = find_kernel_s(db, &q, ret_found, err);
	if (status == 0)
		return err_set(err, E_NOT_FOUND, "there is no history '%.100s'", q.history);
	return status == 1 ? 0 : status;
}

/* The first column of the one row; 1: there is one, 0: none. */
static int one_node(struct db_rows *rows, char ret_node[HISTORY_NODE_SIZE], struct err *err)
{
	int status = db_next(rows, err);
	if (status == 1)
		(void)snprintf(ret_node, HISTORY_NODE_SIZE, "%s", db_text(rows, 0));
	return status;
}

static int by_branch(struct db *db, const char *history, const char *name,
	char ret_node[HISTORY_NODE_SIZE], struct err *err)
{
	AUTO(db_endp) struct db_rows *rows = NULL;
	int status = db_ask(db, "SELECT node FROM branches WHERE history = ? AND name = ?",
		DB_VALUES(DB_T(history), DB_T(name)), &rows, err);
	return status == 0 ? one_node(rows, ret_node, err) : status;
}

/* Of a history whose kernels all went on in others. */
static int by_last(
	struct db *db, const char *history, char ret_node[HISTORY_NODE_SIZE], struct err *err)
{
	AUTO(db_endp) struct db_rows *rows = NULL;
	int status = db_ask(db,
		"SELECT node FROM execution_records WHERE history = ? AND kind <> 'root'"
		" ORDER BY seq DESC LIMIT 1",
		DB_VALUES(DB_T(history)), &rows, err);
	return status == 0 ? one_node(rows, ret_node, err) : status;
}

/* Where the process stands, which has run nothing here yet or was there before. */
static int by_stand(struct db *db, const char *history, const struct history_question *q,
	char ret_node[HISTORY_NODE_SIZE], struct err *err)
{
	const struct stand of = {history, q->kernel_id, q->epoch, q->at};
	struct stands stands;
	int status = stand_find(db, &of, &stands, err);
	if (status == 0)
		return index_find_root(db, history, ret_node, err);
	if (status == 1)
		memcpy(ret_node, stands.place.node, HISTORY_NODE_SIZE);
	return status;
}

int find_head(struct db *db, const char *history, const struct history_question *q,
	char ret_node[HISTORY_NODE_SIZE], struct err *err)
{
	AUTO(db_endp) struct db_rows *rows = NULL;
	if (q->kernel_id && q->epoch > 0)
		return by_stand(db, history, q, ret_node, err);
	int status = db_ask(db,
		"SELECT node FROM session_states WHERE history = ?1"
		" AND (?2 IS NULL OR kernel_id = ?2)"
		" ORDER BY activity_us DESC, state_version DESC LIMIT 1",
		DB_VALUES(DB_T(history), DB_T(q->kernel_id)), &rows, err);
	return status == 0 ? one_node(rows, ret_node, err) : status;
}

static int up(struct db *db, const char *history, unsigned long steps, char node[HISTORY_NODE_SIZE],
	struct err *err)
{
	AUTO(db_endp) struct db_rows *rows = NULL;
	int status = db_ask(db,
		"WITH RECURSIVE line(node, parent, k) AS ("
		" SELECT node, parent, 0 FROM execution_records WHERE history = ?1 AND node = ?2"
		" UNION ALL SELECT r.node, r.parent, line.k + 1 FROM line"
		" JOIN execution_records r ON r.history = ?1 AND r.node = line.parent"
		" WHERE line.k < ?3)"
		" SELECT node FROM line WHERE k = ?3",
		DB_VALUES(DB_T(history), DB_T(node), DB_N(steps)), &rows, err);
	return status == 0 ? one_node(rows, node, err) : status;
}

/* The node before the last one on the line that ran. What was held behind it did not, and stands in
 * the state that it left. */
static int before_last(
	struct db *db, const char *history, char node[HISTORY_NODE_SIZE], struct err *err)
{
	AUTO(db_endp) struct db_rows *rows = NULL;
	int status = db_ask(db,
		"WITH RECURSIVE line(node, parent, status, k) AS ("
		" SELECT node, parent, status, 0 FROM execution_records"
		" WHERE history = ?1 AND node = ?2"
		" UNION ALL SELECT r.node, r.parent, r.status, line.k + 1 FROM line"
		" JOIN execution_records r ON r.history = ?1 AND r.node = line.parent"
		" WHERE line.status = 'aborted')"
		" SELECT r.node FROM line"
		" JOIN execution_records r ON r.history = ?1 AND r.node = line.parent"
		" WHERE line.status <> 'aborted'",
		DB_VALUES(DB_T(history), DB_T(node)), &rows, err);
	return status == 0 ? one_node(rows, node, err) : status;
}

/* The execution with that count on the line that ends at node, the latest that was not silent. */
static int by_count(struct db *db, const char *history, unsigned long count,
	char node[HISTORY_NODE_SIZE], struct err *err)
{
	AUTO(db_endp) struct db_rows *rows = NULL;
	int status = db_ask(db,
		"WITH RECURSIVE line(node, parent, execution_count, silent) AS ("
		" SELECT node, parent, execution_count, silent FROM execution_records"
		" WHERE history = ?1 AND node = ?2"
		" UNION ALL SELECT r.node, r.parent, r.execution_count, r.silent FROM line"
		" JOIN execution_records r ON r.history = ?1 AND r.node = line.parent)"
		" SELECT node FROM line WHERE execution_count = ?3 AND silent = 0 LIMIT 1",
		DB_VALUES(DB_T(history), DB_T(node), DB_N(count)), &rows, err);
	return status == 0 ? one_node(rows, node, err) : status;
}

static bool is_prefix(const char *name)
{
	size_t n = strlen(name);
	return n >= 4 && n < HISTORY_NODE_SIZE && strspn(name, "0123456789abcdef") == n;
}

static int by_prefix(struct db *db, const char *history, const char *prefix,
	char ret_node[HISTORY_NODE_SIZE], struct err *err)
{
	AUTO(db_endp) struct db_rows *rows = NULL;
	char above[HISTORY_NODE_SIZE + 1], list[CANDIDATES_MAX * 16] = "";
	size_t n = 0;
	(void)snprintf(above, sizeof above, "%sg", prefix); /* past every hex digit */
	int status = db_ask(db,
		"SELECT node FROM execution_records WHERE history = ? AND node >= ? AND node < ?"
		" ORDER BY node LIMIT ?",
		DB_VALUES(DB_T(history), DB_T(prefix), DB_T(above), DB_N(CANDIDATES_MAX)), &rows,
		err);
	while (status == 0 && (status = one_node(rows, ret_node, err)) == 1) {
		size_t at = strlen(list);
		(void)snprintf(list + at, sizeof list - at, "%s%.12s", n++ ? ", " : "", ret_node);
		status = 0;
	}
	if (status < 0)
		return status;
	return n < 2 ? (int)n : err_set(err, E_AMBIGUOUS, "'%s' is ambiguous: %s", prefix, list);
}

/* The id that it had before it was rewritten, or its first digits. */
static int by_was(struct db *db, const char *history, const char *prefix,
	char ret_node[HISTORY_NODE_SIZE], struct err *err)
{
	AUTO(db_endp) struct db_rows *rows = NULL;
	char above[HISTORY_NODE_SIZE + 1], other[HISTORY_NODE_SIZE];
	(void)snprintf(above, sizeof above, "%sg", prefix); /* past every hex digit */
	int status = db_ask(db,
		"SELECT DISTINCT node FROM rewritten WHERE history = ? AND was >= ? AND was < ?"
		" LIMIT 2",
		DB_VALUES(DB_T(history), DB_T(prefix), DB_T(above)), &rows, err);
	if (status == 0)
		status = one_node(rows, ret_node, err);
	if (status != 1)
		return status;
	status = one_node(rows, other, err);
	return status == 1 ? err_set(err, E_AMBIGUOUS, "'%s' is ambiguous: %.12s, %.12s", prefix,
				     ret_node, other)
			   : (status == 0 ? 1 : status);
}

/* "HEAD", "HEAD^", "HEAD~3", "HEAD~", "In[7]"; 0: the name is of another sort. */
static int by_head_name(struct db *db, const char *history, const struct history_question *question,
	char ret_node[HISTORY_NODE_SIZE], struct err *err)
{
	const char *name = question->node;
	bool is_before = strcmp(name, HISTORY_BEFORE) == 0;
	bool is_head =
		is_before || (strncmp(name, "HEAD", 4) == 0 && (name[4] == '\0' || name[4] == '~'));
	bool is_count = strncmp(name, "In[", 3) == 0;
	char *end = NULL;
	unsigned long number = 0;
	if (!is_head && !is_count)
		return 0;
	int status = find_head(db, history, question, ret_node, err);
	if (status == 0 && !question->kernel_id)
		status = by_last(db, history, ret_node, err);
	if (status != 1 || (is_head && name[4] == '\0'))
		return status;
	if (is_before)
		return before_last(db, history, ret_node, err);
	const char *digits = is_head ? name + 5 : name + 3;
	if (isdigit((unsigned char)*digits))
		number = strtoul(digits, &end, 10);
	const char *rest = end ? end : digits;
	if (is_head)
		return *rest ? 0 : up(db, history, end ? number : 1, ret_node, err);
	return end && strcmp(rest, "]") == 0 ? by_count(db, history, number, ret_node, err) : 0;
}

int find_node(struct db *db, const char *history, const struct history_question *question,
	char ret_node[HISTORY_NODE_SIZE], struct err *err)
{
	const char *name = question->node ? question->node : "HEAD";
	struct history_question asked = *question;
	asked.node = name;
	int status = by_branch(db, history, name, ret_node, err);
	if (status == 0)
		status = by_head_name(db, history, &asked, ret_node, err);
	if (status == 0 && is_prefix(name))
		status = by_prefix(db, history, name, ret_node, err);
	if (status == 0 && is_prefix(name))
		status = by_was(db, history, name, ret_node, err);
	if (status == 0)
		return err_set(err, E_NOT_FOUND,
			"there is no node '%.100s' in this history: `coppice log` lists them, as "
			"`%%coppice log` does in a cell",
			name);
	return status == 1 ? 0 : status;
}
