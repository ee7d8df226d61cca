#include <string.h>

#include "gateway/base/json.h"
#include "history/forget.h"
#include "history/spliced.h"

#define TRAILER "Coppice-"

/* The lines after the subject that are trailers of ours. */
static void add_trailers(struct buf *b, const char *message)
{
	const char *at = strstr(message, "\n\n");
	for (at = at ? at + 2 : ""; *at;) {
		size_t len = strcspn(at, "\n");
		if (strncmp(at, TRAILER, sizeof TRAILER - 1) == 0)
			(void)buf_addf(b, "%.*s\n", (int)len, at); /* latched */
		at += len + (at[len] == '\n');
	}
}

int forget_message(const char *message, const char *node, bool forgotten, struct buf *ret_text,
	struct err *err)
{
	size_t subject = strcspn(message, "\n");
	/* All latched. */
	if (forgotten)
		(void)buf_add_text(ret_text, FORGOTTEN_SUBJECT);
	else
		(void)buf_add(ret_text, message, subject);
	(void)buf_add_text(ret_text, "\n\n");
	add_trailers(ret_text, message);
	(void)buf_addf(ret_text, TRAILER TRAILER_WAS ": %s\n", node);
	return buf_check(ret_text, "commit message", err);
}

int forget_each_was(const char *message,
	int (*on_was)(void *data, const char *node, struct err *err), void *data, struct err *err)
{
	static const char head[] = "\n" TRAILER TRAILER_WAS ": ";
	char node[HISTORY_NODE_SIZE];
	const char *body = strstr(message, "\n\n"); /* the subject is somebody's code */
	int status = 0;
	for (const char *at = body; status == 0 && at && (at = strstr(at, head));) {
		at += sizeof head - 1;
		size_t len = strspn(at, "0123456789abcdef");
		if (len == sizeof node - 1 && copy_text(node, sizeof node, at, len))
			status = on_was(data, node, err);
	}
	return status;
}

/* What is known of a run beside what it says. Whatever else may come to stand in meta.json, by
 * whichever version, goes. */
static bool stays(struct bytes key)
{
	static const char *const keys[] = {"msg_id", "session", "cell_id", "status",
		"execution_count", "silent", "store_history", "kernel_id", "kernelspec",
		"environment", "epoch", "branch", "n", "state_version", "accepted_us", "sent_us",
		"running_us", "done_us", "started_us", "duration_us", "queue_position",
		"peak_memory_bytes", "kind", "memory_of"};
	for (size_t i = 0; i < ARRAY_LEN(keys); i++)
		if (bytes_equal(string_inside(key), keys[i]))
			return true;
	return false;
}

static void add_member(struct buf *b, const char *before, const struct member *m)
{
	/* All latched. */
	(void)buf_add_text(b, before);
	(void)buf_add(b, m->key.data, m->key.len);
	(void)buf_add_text(b, ":");
	(void)buf_add(b, m->value.data, m->value.len);
}

int forget_meta(struct bytes meta, struct buf *ret_json, struct err *err)
{
	const char *before = "{\n";
	struct member m;
	for (size_t at = 0; object_next(meta, &at, &m);) {
		if (!stays(m.key))
			continue;
		add_member(ret_json, before, &m);
		before = ",\n";
	}
	/* All latched. */
	(void)buf_add_text(ret_json, before);
	(void)buf_add_text(ret_json,
		"\"summary\":\"" FORGOTTEN_SUBJECT "\",\n\"forgotten\":true,\n\"stdout_bytes\":0,\n"
		"\"stderr_bytes\":0,\n\"outputs\":0,\n\"displays\":[]\n}\n");
	return buf_check(ret_json, "meta.json", err);
}

bool forget_is_forgotten(struct bytes meta)
{
	return bytes_equal(object_find(meta, "forgotten"), "true");
}

static bool is_of(struct bytes amended, const char *msg_id)
{
	char id[JMSG_ID_MAX];
	return json_text(object_find(amended, "msg_id"), id, sizeof id) && strcmp(id, msg_id) == 0;
}

/* Adds the elements of others; true if one was left out. */
static bool add_others(struct buf *b, struct bytes list, const char *msg_id)
{
	const char *before = "";
	struct bytes one;
	bool left_out = false;
	(void)buf_add_text(b, "["); /* latched, as below */
	for (size_t at = 0; array_next(list, &at, &one);) {
		if (is_of(one, msg_id)) {
			left_out = true;
			continue;
		}
		(void)buf_add_text(b, before);
		(void)buf_add(b, one.data, one.len);
		before = ",";
	}
	(void)buf_add_text(b, "]");
	return left_out;
}

int forget_amending(struct bytes meta, const char *msg_id, struct buf *ret_json, bool *ret_changed,
	struct err *err)
{
	const char *before = "{\n";
	struct member m;
	*ret_changed = false;
	for (size_t at = 0; object_next(meta, &at, &m);) {
		AUTO(buf_done) struct buf list;
		buf_init(&list, m.value.len + 16);
		if (bytes_equal(m.key, "\"amends\"")) {
			*ret_changed = add_others(&list, m.value, msg_id);
			m.value = (struct bytes){list.data, list.len};
		}
		add_member(ret_json, before, &m);
		before = ",\n";
	}
	(void)buf_add_text(ret_json, "\n}\n"); /* latched */
	return buf_check(ret_json, "meta.json", err);
}
