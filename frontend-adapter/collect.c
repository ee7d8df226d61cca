#include "frontend-adapter/collect.h"

#include <cjson/cJSON.h>
#include <stdio.h>
#include <string.h>

#include "frontend-adapter/plain.h"

#define FLUSH_MAX (16u << 10)

void collect_init(struct collect *c, const struct collect_sink *to)
{
	*c = (struct collect){.outputs = cJSON_CreateArray(), .to = *to};
	stream_init(&c->out);
	stream_init(&c->err);
	buf_init(&c->text, 2 * STREAM_HALF);
}

void collect_done(struct collect *c)
{
	stream_done(&c->out);
	stream_done(&c->err);
	buf_done(&c->text);
	cJSON_Delete(c->outputs);
	cJSON_Delete(c->error);
	cJSON_Delete(c->truncated);
}

static const char *text_of(const cJSON *tree, const char *key)
{
	const char *text = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(tree, key));
	return text ? text : "";
}

/* ---- streams ---- */

static const char *stream_name(bool is_err)
{
	return is_err ? "stderr" : "stdout";
}

static void tell_text(struct collect *c, bool is_err, const char *text, size_t len)
{
	AUTO(freep) char *copy = strndup(text, len);
	cJSON *event = cJSON_CreateObject();
	if (copy)
		(void)cJSON_AddStringToObject(
			event, stream_name(is_err), copy); /* {} without memory */
	c->to.tell(c->to.data, "output", event);
}

void collect_flush(struct collect *c)
{
	if (c->text.len > 0)
		tell_text(c, c->text_is_err, (const char *)c->text.data, c->text.len);
	buf_reset(&c->text);
}

static void keep_text(struct collect *c, bool is_err, const char *text, size_t len)
{
	if (c->text.len > 0 && c->text_is_err != is_err)
		collect_flush(c);
	if (c->text.len == 0)
		c->to.waits(c->to.data);
	c->text_is_err = is_err;
	(void)buf_add(&c->text, text, len); /* a stream tells no more than half of its room */
	if (c->text.len > FLUSH_MAX)
		collect_flush(c);
}

static void add_stream(struct collect *c, const cJSON *content)
{
	const char *text = text_of(content, "text");
	bool is_err = strcmp(text_of(content, "name"), "stderr") == 0;
	struct stream *s = is_err ? &c->err : &c->out;
	struct bytes all = {(const uint8_t *)text, strlen(text)};
	c->to.print(c->to.data, all);
	size_t n = stream_add(s, all);
	if (n > 0)
		keep_text(c, is_err, text, n);
}

/* ---- outputs ---- */

static void clear(struct collect *c)
{
	struct collect fresh;
	collect_init(&fresh, &c->to);
	fresh.error = TAKE(c->error);
	fresh.output_bytes = c->output_bytes;
	fresh.out.bytes = c->out.bytes;
	fresh.err.bytes = c->err.bytes;
	collect_done(c);
	*c = fresh;
	c->to.tell(c->to.data, "clear", cJSON_CreateObject());
}

static cJSON *output_of(const char *msg_type, const cJSON *content)
{
	static const char *const keys[] = {
		"data", "metadata", "execution_count", "ename", "evalue", "traceback"};
	cJSON *output = cJSON_CreateObject();
	bool updates = strcmp(msg_type, "update_display_data") == 0;
	(void)cJSON_AddStringToObject(output, "output_type", updates ? "display_data" : msg_type);
	for (size_t i = 0; i < ARRAY_LEN(keys); i++) {
		const cJSON *item = cJSON_GetObjectItemCaseSensitive(content, keys[i]);
		if (item)
			(void)cJSON_AddItemToObject(output, keys[i], cJSON_Duplicate(item, true));
	}
	return output;
}

static size_t size_of(const cJSON *item)
{
	AUTO(freep) char *text = cJSON_PrintUnformatted(item);
	return text ? strlen(text) : 0;
}

static cJSON *largest(cJSON *data)
{
	cJSON *item, *found = NULL;
	size_t most = 0;
	cJSON_ArrayForEach (item, data) {
		size_t size = size_of(item);
		if (size > most)
			found = item, most = size;
	}
	return found;
}

static void note(struct collect *c, const char *what)
{
	char text[160];
	if (!c->truncated)
		c->truncated = cJSON_CreateArray();
	(void)snprintf(text, sizeof text, "%.80s did not fit into 3 MB: the history has it", what);
	if (cJSON_GetArraySize(c->truncated) < 100)
		(void)cJSON_AddItemToArray(c->truncated, cJSON_CreateString(text));
	c->left_out++;
}

/* Its largest representations go until it fits beside what is there. */
static bool fit(struct collect *c, cJSON *output, size_t *ret_bytes)
{
	cJSON *data = cJSON_GetObjectItemCaseSensitive(output, "data"), *item;
	*ret_bytes = size_of(output);
	while (c->bytes + *ret_bytes > COLLECT_OUTPUTS && (item = largest(data))) {
		note(c, item->string);
		cJSON_Delete(cJSON_DetachItemViaPointer(data, item));
		*ret_bytes = size_of(output);
	}
	if (c->bytes + *ret_bytes <= COLLECT_OUTPUTS)
		return !data || data->child;
	note(c, text_of(output, "output_type"));
	return false;
}

static const char *display_id(const cJSON *content)
{
	return text_of(cJSON_GetObjectItemCaseSensitive(content, "transient"), "display_id");
}

/* All outputs of that display. False: this run has none; one of an earlier run is not shown anew.
 */
static bool update(struct collect *c, const char *id, const cJSON *output)
{
	int n = cJSON_GetArraySize(c->outputs);
	bool found = false;
	for (int i = 0; *id && i < n; i++) {
		if (strcmp(text_of(cJSON_GetArrayItem(c->outputs, i), "display_id"), id) != 0)
			continue;
		(void)cJSON_ReplaceItemInArray(c->outputs, i, cJSON_Duplicate(output, true));
		found = true;
	}
	return found;
}

static void add_output(struct collect *c, const char *msg_type, const cJSON *content)
{
	const char *id = display_id(content);
	bool updates = strcmp(msg_type, "update_display_data") == 0;
	cJSON *output = output_of(msg_type, content);
	size_t bytes;
	if (!fit(c, output, &bytes)) {
		cJSON_Delete(output);
		return;
	}
	if (*id)
		(void)cJSON_AddStringToObject(output, "display_id", id);
	if (updates && !update(c, id, output)) {
		cJSON_Delete(output);
		return;
	}
	c->bytes += bytes; /* of an update too: it may have taken a shorter one's place */
	if (!updates)
		(void)cJSON_AddItemToArray(c->outputs, cJSON_Duplicate(output, true));
	else
		(void)cJSON_AddTrueToObject(output, "update");
	c->to.tell(c->to.data, "output", output);
}

static void note_error(struct collect *c, const cJSON *content)
{
	cJSON_Delete(c->error);
	c->error = cJSON_CreateObject();
	(void)cJSON_AddStringToObject(c->error, "ename", text_of(content, "ename"));
	(void)cJSON_AddStringToObject(c->error, "evalue", text_of(content, "evalue"));
	(void)cJSON_AddItemToObject(c->error, "traceback",
		cJSON_Duplicate(cJSON_GetObjectItemCaseSensitive(content, "traceback"), true));
}

static bool is_shown(const char *msg_type)
{
	static const char *const shown[] = {"display_data", "execute_result", "error"};
	for (size_t i = 0; i < ARRAY_LEN(shown); i++)
		if (strcmp(msg_type, shown[i]) == 0)
			return true;
	return false;
}

void collect_add(struct collect *c, const char *msg_type, struct bytes content)
{
	bool streams = strcmp(msg_type, "stream") == 0, shows = is_shown(msg_type);
	bool updates = strcmp(msg_type, "update_display_data") == 0;
	bool clears = strcmp(msg_type, "clear_output") == 0;
	if (!streams && !shows && !updates && !clears)
		return;
	cJSON *tree = cJSON_ParseWithLength((const char *)content.data, content.len);
	if (!streams || c->clears)
		collect_flush(c);
	if ((streams || shows) && c->clears)
		clear(c);
	if (!streams && !clears)
		c->output_bytes += content.len;
	if (streams)
		add_stream(c, tree);
	else if (clears && cJSON_IsTrue(cJSON_GetObjectItemCaseSensitive(tree, "wait")))
		c->clears = true;
	else if (clears)
		clear(c);
	else
		add_output(c, msg_type, tree);
	if (strcmp(msg_type, "error") == 0)
		note_error(c, tree);
	cJSON_Delete(tree);
}

void collect_end(struct collect *c)
{
	collect_flush(c);
	for (int i = 0; i < 2; i++) {
		AUTO(freep) char *rest = stream_rest(i == 0 ? &c->out : &c->err);
		if (rest)
			tell_text(c, i == 1, rest, strlen(rest));
	}
}

/* ---- the record ---- */

static void add_stream_text(cJSON *record, const char *name, const struct stream *s)
{
	AUTO(freep) char *text = stream_text(s);
	(void)cJSON_AddStringToObject(record, name, text); /* without memory it is left out */
}

static void add_cut(cJSON *list, const char *name, const struct stream *s)
{
	char text[120];
	uint64_t left_out = stream_left_out(s);
	if (left_out == 0)
		return;
	(void)snprintf(text, sizeof text, "%s: %llu bytes amid it are left out: the log has them",
		name, (unsigned long long)left_out);
	(void)cJSON_AddItemToArray(list, cJSON_CreateString(text));
}

void collect_record(const struct collect *c, struct cJSON *record)
{
	cJSON *output;
	add_stream_text(record, "stdout", &c->out);
	add_stream_text(record, "stderr", &c->err);
	cJSON *outputs = cJSON_Duplicate(c->outputs, true);
	cJSON_ArrayForEach (output, outputs)
		cJSON_DeleteItemFromObjectCaseSensitive(output, "display_id");
	(void)cJSON_AddItemToObject(record, "outputs", outputs);
	if (c->error)
		(void)cJSON_AddItemToObject(record, "error", cJSON_Duplicate(c->error, true));
	cJSON *cut = c->truncated ? cJSON_Duplicate(c->truncated, true) : cJSON_CreateArray();
	add_cut(cut, "stdout", &c->out);
	add_cut(cut, "stderr", &c->err);
	(void)cJSON_AddItemToObject(record, "truncated", cut);
}

void collect_bytes(const struct collect *c, struct cJSON *record)
{
	cJSON *bytes = cJSON_AddObjectToObject(record, "bytes");
	(void)cJSON_AddNumberToObject(bytes, "stdout", (double)c->out.bytes); /* as above */
	(void)cJSON_AddNumberToObject(bytes, "stderr", (double)c->err.bytes);
	(void)cJSON_AddNumberToObject(bytes, "outputs", (double)c->output_bytes);
}

/* ---- for a model ---- */

static void add_plain(struct buf *b, const char *text)
{
	plain_add(b, (struct bytes){(const uint8_t *)text, strlen(text)}); /* latched */
}

static void add_result(struct buf *b, const cJSON *output)
{
	const cJSON *data = cJSON_GetObjectItemCaseSensitive(output, "data"), *item;
	const char *plain = text_of(data, "text/plain");
	cJSON_ArrayForEach (item, data) {
		if (strncmp(item->string, "image/", 6) == 0)
			(void)buf_addf(b, "[a picture: %s]\n", item->string);
	}
	add_plain(b, plain);
	if (*plain)
		(void)buf_add_text(b, "\n");
}

static char *cut_middle(const char *text, size_t len, size_t max)
{
	AUTO(buf_done) struct buf cut;
	size_t head = plain_boundary(text, max / 2), tail = plain_boundary(text, len - max / 2);
	buf_init(&cut, max + 128);
	(void)buf_add(&cut, text, head); /* all fits */
	(void)buf_addf(&cut, "\n[... %zu characters left out ...]\n", tail - head);
	(void)buf_add(&cut, text + tail, len - tail);
	return xstrdup(cut.data ? (const char *)cut.data : "");
}

char *collect_text(const struct collect *c, size_t max)
{
	AUTO(buf_done) struct buf b;
	AUTO(freep) char *out = stream_text(&c->out), *err = stream_text(&c->err);
	const cJSON *output;
	buf_init(&b, 4 * COLLECT_BUDGET);
	add_plain(&b, out);
	add_plain(&b, err);
	cJSON_ArrayForEach (output, c->outputs)
		add_result(&b, output);
	const char *text = b.data ? (const char *)b.data : "";
	return b.len <= max ? xstrdup(text) : cut_middle(text, b.len, max);
}
