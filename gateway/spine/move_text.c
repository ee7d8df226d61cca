#include "gateway/spine/move_text.h"

#include <cjson/cJSON.h>
#include <stdio.h>
#include <string.h>

#include "gateway/base/json.h"
#include "gateway/spine/parks.h"

#define NOTICE_MAX (32u << 10)
#define CELLS_MAX  1024u
#define LOST_SHOWN 20

bool move_same_folder(struct bytes parked, struct bytes revived)
{
	struct json_want was = {.key = "folder"}, now = {.key = "folder"};
	return json_scan(parked, &was, 1, NULL) == 0 && json_scan(revived, &now, 1, NULL) == 0 &&
	       was.value.len > 0 && was.value.len == now.value.len &&
	       memcmp(was.value.data, now.value.data, was.value.len) == 0;
}

static const char *text_of(const cJSON *o, const char *key)
{
	const char *text = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(o, key));
	return text ? text : "";
}

static int count_of(const cJSON *node)
{
	const cJSON *count = cJSON_GetObjectItemCaseSensitive(node, "execution_count");
	return cJSON_IsNumber(count) ? count->valueint : -1;
}

static void add_run(struct buf *b, int first, int last)
{
	const char *before = b->len > 0 ? ", " : "";
	if (first == last)
		(void)buf_addf(b, "%sIn[%d]", before, first); /* latched, as below */
	else
		(void)buf_addf(b, "%sIn[%d] to In[%d]", before, first, last);
}

/* "In[5] to In[9], In[11]", in the list's order. What has no count is not named. */
static void add_cells(struct buf *b, const cJSON *list, bool backwards)
{
	int n = cJSON_GetArraySize(list), first = -1, last = -1;
	for (int i = 0; i < n; i++) {
		int count = count_of(cJSON_GetArrayItem(list, backwards ? n - 1 - i : i));
		if (count < 0)
			continue;
		if (first >= 0 && count != last + 1) {
			add_run(b, first, last);
			first = count;
		}
		if (first < 0)
			first = count;
		last = count;
	}
	if (first >= 0)
		add_run(b, first, last);
}

static void cells_of(struct buf *b, const cJSON *way, const char *which, bool backwards)
{
	buf_init(b, CELLS_MAX);
	add_cells(b, cJSON_GetObjectItemCaseSensitive(way, which), backwards);
}

static const char *or_none(const struct buf *b)
{
	return b->len > 0 ? (const char *)b->data : "nothing that has a number";
}

struct cJSON *move_code_only(const struct cJSON *way, const char *why)
{
	AUTO(buf_done) struct buf cells;
	cJSON *report = report_new(FIDELITY_CODE_ONLY), *row = cJSON_CreateObject();
	const cJSON *node;
	cells_of(&cells, way, "rebuild", false);
	cJSON_AddStringToObject(row, "name", "*");
	cJSON_AddStringToObject(row, "kind", "namespace");
	cJSON_AddStringToObject(row, "reason", why);
	cJSON *rebuild = cJSON_AddArrayToObject(row, "rebuild");
	cJSON_ArrayForEach (node, cJSON_GetObjectItemCaseSensitive(way, "rebuild")) {
		cJSON_AddItemToArray(rebuild, cJSON_CreateString(text_of(node, "id")));
	}
	cJSON_AddItemToArray(cJSON_GetObjectItemCaseSensitive(report, "lost"), row);
	report_note(report, "Only its code is kept: %s.", why);
	report_note(report, "To be run again, in this order: %s.", or_none(&cells));
	return report;
}

void move_add_rebuild(struct err *err, const struct cJSON *way)
{
	AUTO(buf_done) struct buf cells;
	char text[sizeof err->text];
	cells_of(&cells, way, "rebuild", false);
	(void)copy_text(text, sizeof text, err->text, strlen(err->text)); /* as long */
	err_set(err, err->code, "%s; to be run again, in this order: %.200s", text,
		or_none(&cells));
}

void move_add_last_note(struct err *err, const struct cJSON *report)
{
	char text[sizeof err->text];
	const cJSON *notes = cJSON_GetObjectItemCaseSensitive(report, "notes");
	const char *last =
		cJSON_GetStringValue(cJSON_GetArrayItem(notes, cJSON_GetArraySize(notes) - 1));
	if (!last)
		return;
	(void)copy_text(text, sizeof text, err->text, strlen(err->text)); /* as long */
	err_set(err, err->code, "%s. %.300s", text, last);
}

static void add_lost(struct buf *b, const cJSON *report)
{
	const cJSON *one;
	int n = 0;
	cJSON_ArrayForEach (one, cJSON_GetObjectItemCaseSensitive(report, "lost")) {
		if (n++ == LOST_SHOWN) {
			(void)buf_addf(b, "  ...\n"); /* latched, as all */
			break;
		}
		(void)buf_addf(b, "  %s (%s): %s\n", text_of(one, "name"), text_of(one, "kind"),
			text_of(one, "reason"));
	}
}

static void add_report(struct buf *b, const cJSON *report)
{
	const cJSON *note;
	bool exact = report_fidelity(report) == FIDELITY_EXACT;
	(void)buf_add_text(b, exact ? "All variables are as they were.\n"
				    : "Not everything is as it was:\n"); /* latched, as below */
	add_lost(b, report);
	cJSON_ArrayForEach (note, cJSON_GetObjectItemCaseSensitive(report, "notes")) {
		(void)buf_addf(b, "  %s\n", cJSON_IsString(note) ? note->valuestring : "");
	}
}

void move_notice(struct buf *b, const struct cJSON *way, const struct cJSON *told)
{
	AUTO(buf_done) struct buf left;
	const cJSON *node = cJSON_GetObjectItemCaseSensitive(way, "node");
	int count = count_of(node);
	cells_of(&left, way, "left", true);
	buf_init(b, NOTICE_MAX);
	/* All latched. */
	(void)buf_addf(b, "Gone back to ");
	if (count >= 0)
		(void)buf_addf(b, "In[%d], ", count);
	(void)buf_addf(b, "node %.8s (%s).\n", text_of(node, "id"), text_of(node, "summary"));
	if (count >= 0)
		(void)buf_addf(b, "The next cell is In[%d], ", count + 1);
	else
		(void)buf_addf(b, "The next cell is ");
	(void)buf_addf(b, "on branch %s.\n", text_of(told, "branch"));
	if (left.len > 0)
		(void)buf_addf(
			b, "Left behind, on a line of their own: %s.\n", (const char *)left.data);
	add_report(b, cJSON_GetObjectItemCaseSensitive(told, "report"));
}
