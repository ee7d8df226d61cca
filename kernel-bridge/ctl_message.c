#include "kernel-bridge/ctl_message.h"

#include <assert.h>
#include <cjson/cJSON.h>
#include <string.h>

#include "gateway/base/json.h"
#include "gateway/base/json_tree.h"

#define INT_MAX_EXACT 9007199254740991.0 /* 2^53 - 1: beyond it a double skips numbers */

/* The rows of docs/PROTOCOL-ctl.md. */
static const struct ctl_row rows[CTL_TYPES] = {
	[CTL_HELLO] = {"hello", CTL_UP, 0,
		{{"version", CTL_INT, false}, {"pid", CTL_INT, false}, {"image", CTL_TEXT, true},
			{"python", CTL_TEXT, true}, {"ipykernel", CTL_TEXT, true},
			{"lines", CTL_LIST, true}, {"hands_over", CTL_BOOL, true},
			{"parks", CTL_BOOL, true}, {"files", CTL_BOOL, true},
			{"branches", CTL_BOOL, true}}},
	[CTL_WELCOME] = {"welcome", CTL_DOWN, 0,
		{{"version", CTL_INT, false}, {"reports", CTL_BOOL, true},
			{"parks_max", CTL_INT, true}, {"files", CTL_BOOL, true},
			{"lays_kept", CTL_LIST, true}}},
	[CTL_START] = {"start", CTL_DOWN, CTL_FDS_MAX,
		{{"line", CTL_INT, false}, {"kernel", CTL_TEXT, false}, {"key", CTL_TEXT, false},
			{"cwd", CTL_TEXT, false}, {"env", CTL_TEXTS, false},
			{"endpoints", CTL_LIST, false}, {"fresh", CTL_BOOL, false}}},
	[CTL_STARTED] = {"started", CTL_UP, 0, {{"line", CTL_INT, false}, {"pid", CTL_INT, false}}},
	[CTL_START_FAILED] = {"start_failed", CTL_UP, 0,
		{{"line", CTL_INT, false}, {"reason", CTL_TEXT, false}}},
	[CTL_SIGNAL] = {"signal", CTL_DOWN, 0,
		{{"line", CTL_INT, false}, {"signal", CTL_INT, false}}},
	[CTL_SIGNALLED] = {"signalled", CTL_UP, 0,
		{{"line", CTL_INT, false}, {"ok", CTL_BOOL, false}, {"reason", CTL_TEXT, true}}},
	[CTL_KILL] = {"kill", CTL_DOWN, 0, {{"line", CTL_INT, false}}},
	[CTL_EXITED] = {"exited", CTL_UP, 0,
		{{"line", CTL_INT, false}, {"code", CTL_INT, true}, {"signal", CTL_INT, true},
			{"oom", CTL_BOOL, false}, {"left", CTL_INT, false}}},
	[CTL_ACK] = {"ack", CTL_DOWN, 0,
		{{"line", CTL_INT, false}, {"channel", CTL_TEXT, false},
			{"msg_id", CTL_TEXT, false}}},
	[CTL_REPLAY] = {"replay", CTL_DOWN, 0,
		{{"line", CTL_INT, false}, {"after", CTL_LIST, false}}},
	[CTL_KEPT] = {"kept", CTL_UP, 0,
		{{"line", CTL_INT, false}, {"channel", CTL_TEXT, false}, {"id", CTL_INT, false},
			{"offset", CTL_INT, false}, {"size", CTL_INT, false},
			{"data", CTL_TEXT, false}}},
	[CTL_KEPT_END] = {"kept_end", CTL_UP, 0,
		{{"line", CTL_INT, false}, {"dropped", CTL_INT, false}}},
	[CTL_HAND_OVER] = {"hand_over", CTL_DOWN, 0,
		{{"line", CTL_INT, false}, {"kernel", CTL_TEXT, false}, {"cwd", CTL_TEXT, false},
			{"env", CTL_TEXTS, false}}},
	[CTL_HANDED_OVER] = {"handed_over", CTL_UP, 0, {{"line", CTL_INT, false}}},
	[CTL_REPORT] = {"report", CTL_UP, 0,
		{{"line", CTL_INT, false}, {"msg_id", CTL_TEXT, false}, {"data", CTL_TEXT, false}}},
	[CTL_ASK] = {"ask", CTL_UP, 0,
		{{"line", CTL_INT, false}, {"id", CTL_INT, false}, {"what", CTL_TEXT, false},
			{"about", CTL_TEXT, false}}},
	[CTL_ANSWER] = {"answer", CTL_DOWN, 0,
		{{"line", CTL_INT, false}, {"id", CTL_INT, false}, {"status", CTL_TEXT, false},
			{"offset", CTL_INT, false}, {"size", CTL_INT, false},
			{"data", CTL_TEXT, false}}},
	[CTL_PARKED] = {"parked", CTL_UP, 0,
		{{"line", CTL_INT, false}, {"msg_id", CTL_TEXT, false}, {"park", CTL_INT, false},
			{"pid", CTL_INT, false}, {"data", CTL_TEXT, false},
			{"kernel", CTL_TEXT, true}}},
	[CTL_NOT_PARKED] = {"not_parked", CTL_UP, 0,
		{{"line", CTL_INT, false}, {"msg_id", CTL_TEXT, false},
			{"reason", CTL_TEXT, false}}},
	[CTL_UNPARKED] = {"unparked", CTL_UP, 0,
		{{"park", CTL_INT, false}, {"reason", CTL_TEXT, false}}},
	[CTL_RELEASE] = {"release", CTL_DOWN, 0, {{"park", CTL_INT, false}}},
	[CTL_REVIVE] = {"revive", CTL_DOWN, CTL_FDS_MAX,
		{{"line", CTL_INT, false}, {"park", CTL_INT, false}, {"kernel", CTL_TEXT, false},
			{"key", CTL_TEXT, false}, {"cwd", CTL_TEXT, false},
			{"env", CTL_TEXTS, false}, {"endpoints", CTL_LIST, false}}},
	[CTL_DROP_FOLDER] = {"drop_folder", CTL_DOWN, 0, {{"folder", CTL_TEXT, false}}},
	[CTL_REVIVED] = {"revived", CTL_UP, 0,
		{{"line", CTL_INT, false}, {"data", CTL_TEXT, false}}},
	[CTL_FILES] = {"files", CTL_UP, 0,
		{{"line", CTL_INT, false}, {"msg_id", CTL_TEXT, false}, {"offset", CTL_INT, false},
			{"size", CTL_INT, false}, {"data", CTL_TEXT, false}}},
	[CTL_WANT] = {"want", CTL_DOWN, 0,
		{{"line", CTL_INT, false}, {"msg_id", CTL_TEXT, false}, {"names", CTL_LIST, false},
			{"last", CTL_BOOL, false}}},
	[CTL_CONTENT] = {"content", CTL_UP, 0,
		{{"name", CTL_TEXT, false}, {"offset", CTL_INT, false}, {"size", CTL_INT, false},
			{"data", CTL_TEXT, false}}},
	[CTL_SCAN] = {"scan", CTL_DOWN, 0,
		{{"line", CTL_INT, false}, {"id", CTL_TEXT, false}, {"full", CTL_BOOL, true}}},
	[CTL_LAY] = {"lay", CTL_DOWN, 0,
		{{"id", CTL_TEXT, false}, {"folder", CTL_TEXT, false}, {"offset", CTL_INT, false},
			{"size", CTL_INT, false}, {"data", CTL_TEXT, false}}},
	[CTL_LAID] = {"laid", CTL_UP, 0,
		{{"id", CTL_TEXT, false}, {"ready", CTL_BOOL, false}, {"reason", CTL_TEXT, true},
			{"names", CTL_LIST, true}, {"last", CTL_BOOL, false}}},
	[CTL_LAY_CONTENT] = {"lay_content", CTL_DOWN, 0,
		{{"id", CTL_TEXT, false}, {"name", CTL_TEXT, false}, {"offset", CTL_INT, false},
			{"size", CTL_INT, false}, {"data", CTL_TEXT, false}}},
	[CTL_LAY_END] = {"lay_end", CTL_DOWN, 0,
		{{"id", CTL_TEXT, false}, {"keep", CTL_BOOL, false}}},
	[CTL_ERROR] = {"error", CTL_BOTH, 0,
		{{"about", CTL_TEXT, false}, {"reason", CTL_TEXT, false}}},
};

static const char *const kind_names[CTL_KINDS] = {
	[CTL_INT] = "int",
	[CTL_TEXT] = "text",
	[CTL_BOOL] = "bool",
	[CTL_TEXTS] = "texts",
	[CTL_LIST] = "list",
};

const struct ctl_row *ctl_row(enum ctl_type type)
{
	assert(type < CTL_TYPES);
	return &rows[type];
}

const char *ctl_kind_name(enum ctl_kind kind)
{
	assert(kind < CTL_KINDS);
	return kind_names[kind];
}

static bool is_int(const cJSON *v)
{
	if (!cJSON_IsNumber(v))
		return false;
	/* The range comes first: a cast of what does not fit would be undefined. */
	return v->valuedouble >= -INT_MAX_EXACT && v->valuedouble <= INT_MAX_EXACT &&
	       v->valuedouble >= (double)(int64_t)v->valuedouble &&
	       v->valuedouble <= (double)(int64_t)v->valuedouble;
}

static bool all_texts(const cJSON *v)
{
	const cJSON *item;
	cJSON_ArrayForEach (item, v)
		if (!cJSON_IsString(item))
			return false;
	return true;
}

static bool is_kind(const cJSON *v, enum ctl_kind kind)
{
	switch (kind) {
	case CTL_INT:
		return is_int(v);
	case CTL_TEXT:
		return cJSON_IsString(v);
	case CTL_BOOL:
		return cJSON_IsBool(v);
	case CTL_TEXTS:
		return cJSON_IsObject(v) && all_texts(v);
	case CTL_LIST:
		return cJSON_IsArray(v) && all_texts(v);
	default:
		return false;
	}
}

static int check_fields(const struct ctl_row *row, const cJSON *message, struct err *err)
{
	for (const struct ctl_field *f = row->fields; f->name; f++) {
		const cJSON *v = cJSON_GetObjectItemCaseSensitive(message, f->name);
		if (!v || cJSON_IsNull(v)) {
			if (!f->optional)
				return err_set(err, E_INVALID, "%s is missing", f->name);
		} else if (!is_kind(v, f->kind)) {
			return err_set(err, E_INVALID, "%s is not of kind %s", f->name,
				kind_names[f->kind]);
		}
	}
	return 0;
}

static int find_row(const cJSON *message, enum ctl_direction direction, enum ctl_type *ret_type,
	struct err *err)
{
	const char *type = ctl_text(message, "type", "");
	for (unsigned i = 0; i < CTL_TYPES; i++) {
		if (strcmp(rows[i].type, type) == 0 && (rows[i].direction & direction)) {
			*ret_type = (enum ctl_type)i;
			return 0;
		}
	}
	return err_set(err, E_INVALID, "the type is unknown");
}

static void delete_tree(cJSON **tree)
{
	cJSON_Delete(*tree);
}

int ctl_message_read(struct bytes packet, enum ctl_type *ret_type, struct cJSON **ret_message,
	char ret_about[CTL_TYPE_MAX], struct err *err)
{
	ret_about[0] = '\0';
	/* The scan is stricter than cJSON: after it all texts are UTF-8 and may be shown. */
	int rc = json_scan(packet, NULL, 0, err);
	if (rc < 0) {
		(void)err_wrap(err, "packet"); /* rc is the code */
		return rc;
	}
	AUTO(delete_tree) cJSON *m = json_parse(packet, NULL, err);
	if (!m)
		return err_wrap(err, "a packet");
	if (!cJSON_IsObject(m))
		return err_set(err, E_INVALID, "a packet is one JSON object");
	const char *type = ctl_text(m, "type", "");
	if (strlen(type) < CTL_TYPE_MAX)
		(void)copy_text(ret_about, CTL_TYPE_MAX, type, strlen(type)); /* it fits */
	enum ctl_type found = CTL_ERROR;
	rc = find_row(m, CTL_UP, &found, err);
	if (rc == 0)
		rc = check_fields(&rows[found], m, err);
	if (rc < 0)
		return rc;
	*ret_type = found;
	*ret_message = TAKE(m);
	return 0;
}

struct cJSON *ctl_message_new(enum ctl_type type)
{
	cJSON *m = cJSON_CreateObject();
	/* Out of memory leaves it without a type, which ctl_message_write refuses. */
	(void)cJSON_AddStringToObject(m, "type", ctl_row(type)->type);
	return m;
}

int ctl_message_write(const struct cJSON *message, char **ret_text, struct err *err)
{
	enum ctl_type type = CTL_ERROR;
	int rc = find_row(message, CTL_DOWN, &type, err);
	if (rc == 0)
		rc = check_fields(&rows[type], message, err);
	if (rc < 0) {
		(void)err_wrap(err, "ctl message"); /* rc is the code */
		return rc;
	}
	AUTO(freep) char *text = json_print(message, err);
	if (!text)
		return err_wrap(err, "ctl message");
	if (strlen(text) > CTL_PACKET_MAX)
		return err_set(err, E_TOO_BIG, "ctl message %s is longer than %d bytes",
			rows[type].type, CTL_PACKET_MAX);
	*ret_text = TAKE(text);
	return 0;
}

int64_t ctl_int(const struct cJSON *message, const char *name, int64_t otherwise)
{
	const cJSON *v = cJSON_GetObjectItemCaseSensitive(message, name);
	return is_int(v) ? (int64_t)v->valuedouble : otherwise;
}

const char *ctl_text(const struct cJSON *message, const char *name, const char *otherwise)
{
	const cJSON *v = cJSON_GetObjectItemCaseSensitive(message, name);
	return cJSON_IsString(v) ? v->valuestring : otherwise;
}

bool ctl_bool(const struct cJSON *message, const char *name)
{
	return cJSON_IsTrue(cJSON_GetObjectItemCaseSensitive(message, name));
}
