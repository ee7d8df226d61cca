/* The working folder in a move (docs/decisions/0028): what it holds is recorded before anything is
 * removed, then what it held is laid down beside it and put in its place, before the kernel that
 * remembers it stands up. */
#include "gateway/spine/move_internal.h"

#include <cjson/cJSON.h>
#include <string.h>

#include "gateway/base/json_tree.h"

#define FOLDER	  "/work" /* of one that has no other */
#define LAY_MS	  30000u  /* without a sign of it */
#define AHEAD	  16	  /* contents that are in memory at once */
#define NEEDS_MAX FOLDER_NAMES_MAX

static void feed(struct move *m);

static const char *text_of(const cJSON *o, const char *key)
{
	const char *text = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(o, key));
	return text ? text : "";
}

static void delete_tree(cJSON **tree)
{
	cJSON_Delete(*tree);
}

void move_files_end(struct move *m, bool keep)
{
	struct desk *d = m->desk;
	if (m->sm.state == MOVE_SCANS)
		files_scan_cancel(d);
	if (d->kernel)
		kernel_lay_end(d->kernel, keep);
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
	timer_stop(m->desk->gw->clock, &m->timer);
	m->laid = true;
	report_note(m->report, "The working folder holds the files that it held then.");
	move_revive(m);
}

static void on_needs(void *data, const struct cJSON *names, bool last)
{
	struct move *m = data;
	const cJSON *one;
	struct err err = {.code = E_PROTOCOL, .text = "its container asks for more than there is"};
	timer_start(m->desk->gw->clock, &m->timer, LAY_MS);
	if (cJSON_GetArraySize(m->needs) + cJSON_GetArraySize(names) > (int)NEEDS_MAX) {
		move_fail(m, &err);
		return;
	}
	cJSON_ArrayForEach (one, names)
		cJSON_AddItemToArray(m->needs, cJSON_CreateString(one->valuestring));
	if (last)
		feed(m);
}

static void on_room(void *data)
{
	struct move *m = data;
	timer_start(m->desk->gw->clock, &m->timer, LAY_MS);
	if (m->expects == 0)
		feed(m);
}

static void on_content(void *data, int status, struct bytes content, const struct err *err)
{
	struct move *m = data;
	struct err why;
	m->expects--;
	if (!m->desk) {
		move_free(m);
		return;
	}
	if (m->sm.state != MOVE_LAYS)
		return;
	/* Its container tells what follows from one that is missing. */
	if (status != 0) {
		log_warn(&m->desk->log, "content_missing error=\"%s\"", err->text);
		content = (struct bytes){0};
	}
	cJSON *name = cJSON_DetachItemFromArray(m->needs, 0);
	int rc = kernel_lay_content(m->desk->kernel, name->valuestring, content, &why);
	cJSON_Delete(name);
	if (rc != 0)
		fail(m, &why, "its files could not be laid down");
}

/* In portions: the next one once this one has left. History answers in order. */
static void feed(struct move *m)
{
	struct desk *d = m->desk;
	const struct history_whose whose = {.history_id = d->id,
		.wanted = *d->scribe.history ? d->scribe.history : NULL,
		.owner = d->owner->name};
	const cJSON *name = m->needs->child;
	for (int i = 0; name && i < AHEAD; i++, name = name->next) {
		m->expects++;
		history_content(d->gw->histories, &whose, name->valuestring, on_content, m);
	}
}

static void lay(struct move *m)
{
	struct desk *d = m->desk;
	struct err err;
	cJSON *order = cJSON_CreateObject();
	cJSON_AddItemReferenceToObject(order, "entries", m->entries);
	AUTO(freep) char *text = json_print(order, &err);
	cJSON_Delete(order);
	const char *own = kernel_folder(d->kernel);
	const struct kernel_lay what = {.folder = *own ? own : FOLDER,
		.entries = {(const uint8_t *)text, text ? strlen(text) : 0},
		.on_needs = on_needs,
		.on_room = on_room,
		.on_laid = on_laid,
		.data = m};
	m->needs = cJSON_CreateArray();
	sm_move(&m->sm, MOVE_LAYS);
	timer_start(d->gw->clock, &m->timer, LAY_MS);
	if (!text || kernel_lay(d->kernel, &what, &err) != 0)
		fail(m, &err, "its files could not be laid down");
}

/* ---- fetches ---- */

/* As the new line will say what it has lost. */
static void report_lost(struct move *m)
{
	cJSON *said = cJSON_CreateObject(), *list = cJSON_AddArrayToObject(said, "lost");
	const cJSON *one;
	cJSON_ArrayForEach (one, m->entries) {
		if (!*text_of(one, "lost"))
			continue;
		cJSON *row = cJSON_CreateObject();
		cJSON_AddStringToObject(row, "name", text_of(one, "path"));
		cJSON_AddStringToObject(row, "kind", "file");
		cJSON_AddStringToObject(row, "reason", text_of(one, "lost"));
		cJSON_AddItemToArray(list, row);
	}
	AUTO(freep) char *text = json_print(said, NULL);
	cJSON_Delete(said);
	if (text)
		report_add_lost(m->report, (struct bytes){(const uint8_t *)text, strlen(text)});
}

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
	report_lost(m);
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
