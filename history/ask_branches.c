/* The branches of a history: where each stands, who goes on there, what comes back of its state. */
#include "history/ask.h"

#include <cjson/cJSON.h>
#include <stdio.h>
#include <string.h>

/* A line each: "KERNEL_ID NODE BRANCH". The kernel that stands there and has run nothing since. */
static bool find_standing(const struct asker *a, const char *name, const char *node, char ret[64])
{
	char line[HISTORY_BRANCH_SIZE + HISTORY_NODE_SIZE + 64], wanted[sizeof line];
	int len = snprintf(wanted, sizeof wanted, " %s %s", node, name);
	for (const char *at = a->stands; at && *at;) {
		size_t n = strcspn(at, "\n"), id = strcspn(at, " \n");
		if (copy_text(line, sizeof line, at, n) && len > 0 && id + (size_t)len == n &&
			strcmp(line + id, wanted) == 0)
			return copy_text(ret, 64, at, id);
		at += n + (at[n] ? 1 : 0);
	}
	return false;
}

/* What can come back of the state at its tip. */
static cJSON *branch_object(struct asker *a, struct db_rows *rows)
{
	const char *name = db_text(rows, 0), *node = db_text(rows, 1);
	char standing[64] = "";
	cJSON *row = cJSON_CreateObject();
	cJSON_AddStringToObject(row, "name", name);
	cJSON_AddStringToObject(row, "node", node);
	bool stands = find_standing(a, name, node, standing);
	const char *kernel = stands ? standing : db_text(rows, 2);
	cJSON_AddItemToObject(
		row, "kernel_id", *kernel ? cJSON_CreateString(kernel) : cJSON_CreateNull());
	asker_add_fidelity(a, db_text(rows, 3), row);
	cJSON_DeleteItemFromObject(row, "replay");
	return row;
}

int answer_branches(struct asker *a, const char *history, cJSON *answer, struct err *err)
{
	AUTO(db_endp) struct db_rows *rows = NULL;
	cJSON *list = cJSON_AddArrayToObject(answer, "branches");
	int status = db_ask(a->db,
		"SELECT b.name, b.node, s.kernel_id, r.msg_id FROM branches b"
		" LEFT JOIN session_states s"
		" ON s.history = b.history AND s.branch = b.name AND s.node = b.node"
		" LEFT JOIN execution_records r ON r.history = b.history AND r.node = b.node"
		" WHERE b.history = ? GROUP BY b.name ORDER BY b.name <> 'main', b.name",
		DB_VALUES(DB_T(history)), &rows, err);
	while (status == 0 && (status = db_next(rows, err)) == 1) {
		cJSON_AddItemToArray(list, branch_object(a, rows));
		status = 0;
	}
	return status;
}
