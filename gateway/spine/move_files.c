/* The working folder in a move (docs/decisions/0028): what it holds is recorded before anything is
 * removed, then what it held is laid down beside it and put in its place, before the kernel that
 * remembers it stands up. */
#include "gateway/spine/move_internal.h"

#include <cjson/cJSON.h>
#include <string.h>

#include "gateway/base/json_tree.h"

static void delete_tree(cJSON **tree)
{
	cJSON_Delete(*tree);
}

void move_files_end(struct move *m, bool keep)
{
	struct desk *d = m->desk;
	if (m->sm.state == MOVE_SCANS)
		files_scan_cancel(d);
	lay_down_end(TAKE(m->laying), keep);
}

static void fail(struct move *m, const struct err *cause, const char *what)
{
	struct err err;
	err_set(&err, cause->code, "%s: %.400s", what, cause->text);
	move_fail(m, &err);
}

/* ---- lays ---- */

static void on_laid(void *data, const struct err *err)
{
	struct move *m = data;
	if (err) {
		fail(m, err, "its files could not be laid down, the folder is as it was");
		return;
	}
	m->laid = true;
	report_note(m->report, "The working folder holds the files that it held then.");
	move_revive(m);
}

static void lay(struct move *m)
{
	struct err err;
	sm_move(&m->sm, MOVE_LAYS);
	if (lay_down_begin(m->desk, m->entries, on_laid, m, &m->laying, &err) != 0)
		fail(m, &err, "its files could not be laid down");
}

/* ---- fetches ---- */

static void on_entries(void *data, int status, struct bytes json, const struct err *failure)
{
	struct move *m = data;
	struct err err;
	m->expects--;
	if (!m->desk) {
		move_free(m);
		return;
	}
	if (status != 0) {
		fail(m, failure, "what files it had cannot be read");
		return;
	}
	AUTO(delete_tree) cJSON *answer = json_parse(json, NULL, &err);
	if (!answer) {
		fail(m, &err, "what files it had cannot be read");
		return;
	}
	if (!cJSON_IsTrue(cJSON_GetObjectItemCaseSensitive(answer, "recorded"))) {
		move_revive(m);
		return;
	}
	m->entries = cJSON_DetachItemFromObjectCaseSensitive(answer, "entries");
	report_add_lost_files(m->report, m->entries);
	if (report_fidelity(m->report) > m->accept) {
		err_set(&err, E_PARTIAL, "less than %s would come back: see the report",
			fidelity_name(m->accept));
		move_fail(m, &err);
		return;
	}
	lay(m);
}

static void fetch(struct move *m)
{
	struct desk *d = m->desk;
	const struct history_question q = {
		.what = HISTORY_FILES,
		.owner = d->owner->name,
		.history = scribe_history(d),
		.node = m->to.node,
		.kernel_id = d->id,
	};
	m->expects++;
	sm_move(&m->sm, MOVE_FETCHES);
	history_ask(d->gw->histories, &q, on_entries, m);
}

/* ---- scans ---- */

static void on_scanned(void *data, bool is_recorded, const struct err *err)
{
	struct move *m = data;
	if (err) {
		fail(m, err, "what is in the folder now is not recorded, so it stays");
		return;
	}
	m->scanned = true;
	if (is_recorded)
		move_record(m);
	else
		fetch(m);
}

void move_files(struct move *m)
{
	if (m->scanned) {
		fetch(m);
		return;
	}
	sm_move(&m->sm, MOVE_SCANS);
	files_scan(m->desk, on_scanned, m);
}
