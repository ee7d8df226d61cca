#include "frontend-adapter/collect.h"

#include <cjson/cJSON.h>
#include <stdio.h>
#include <string.h>

#include "frontend-adapter/plain.h"
#include "gateway/base/json_tree.h"

#define FLUSH_MAX (16u << 10)
#define UNTOLD	  "\n[... out of memory: what comes here is in the record ...]\n"

static void tell_output(void *data, struct cJSON *output)
{
	struct collect *c = data;
	c->to.tell(c->to.data, "output", output);
}

void collect_init(struct collect *c, const struct collect_sink *to)
{
	*c = (struct collect){.to = *to};
	const struct shown_to shown = {
		.tell = tell_output, .data = c, .renderer = to->renderer, .clock = to->clock};
	shown_init(&c->shown, COLLECT_OUTPUTS, &shown);
	stream_init(&c->out);
	stream_init(&c->err);
	buf_init(&c->text, 2 * STREAM_HALF);
}

void collect_done(struct collect *c)
{
	stream_done(&c->out);
	stream_done(&c->err);
	buf_done(&c->text);
	shown_done(&c->shown);
	cJSON_Delete(c->error);
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
	(void)cJSON_AddStringToObject(
		event, stream_name(is_err), copy ? copy : UNTOLD); /* cannot fail (json_tree.h) */
	c->to.tell(c->to.data, "output", event);
}

void collect_flush(struct collect *c)
{
	if (c->text.len > 0)
		tell_text(c, c->text_is_err, (const char *)c->text.data, c->text.len);
	if (c->text.failed)
		tell_text(c, c->text_is_err, UNTOLD, sizeof UNTOLD - 1);
	buf_reset(&c->text);
}

static void keep_text(struct collect *c, bool is_err, const char *text, size_t len)
{
	bool waits = c->text.len > 0 || c->text.failed;
	if (waits && c->text_is_err != is_err)
		collect_flush(c);
	if (c->text.len == 0)
		c->to.waits(c->to.data);
	c->text_is_err = is_err;
	(void)buf_add(&c->text, text, len); /* latched: collect_flush() says it */
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

static void clear_stream(struct stream *s)
{
	uint64_t bytes = s->bytes;
	stream_done(s);
	stream_init(s);
	s->bytes = bytes;
}

static void clear(struct collect *c)
{
	clear_stream(&c->out);
	clear_stream(&c->err);
	shown_clear(&c->shown);
	buf_reset(&c->text);
	c->clears = false;
	c->to.tell(c->to.data, "clear", cJSON_CreateObject());
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
	cJSON *tree = json_parse(content, NULL, NULL);
	if (!tree) { /* a kernel's messages are JSON: it is memory */
		c->n_lost++;
		return;
	}
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
	else if (shown_add(&c->shown, msg_type, tree) != 0)
		c->n_lost++;
	if (strcmp(msg_type, "error") == 0)
		note_error(c, tree);
	cJSON_Delete(tree);
}

bool collect_scales(const struct collect *c)
{
	return shown_scales(&c->shown);
}

bool collect_end(struct collect *c, void (*cb)(void *data), void *data)
{
	collect_flush(c);
	for (int i = 0; i < 2; i++) {
		AUTO(freep) char *rest = NULL;
		if (stream_rest(i == 0 ? &c->out : &c->err, &rest) != 0)
			tell_text(c, i == 1, UNTOLD, sizeof UNTOLD - 1);
		if (rest)
			tell_text(c, i == 1, rest, strlen(rest));
	}
	return shown_settle(&c->shown, cb, data);
}

/* ---- the record ---- */

static void add_cut(cJSON *list, const char *text)
{
	(void)cJSON_AddItemToArray(list, cJSON_CreateString(text)); /* cannot fail (json_tree.h) */
}

static void add_stream_text(cJSON *record, cJSON *cut, const char *name, const struct stream *s)
{
	AUTO(freep) char *all = stream_text(s);
	uint64_t left_out = stream_left_out(s);
	char text[120];
	(void)cJSON_AddStringToObject(record, name, all ? all : ""); /* as above */
	(void)snprintf(text, sizeof text, "%s: %llu bytes amid it are left out: the log has them",
		name, (unsigned long long)left_out);
	if (left_out > 0)
		add_cut(cut, text);
	(void)snprintf(text, sizeof text,
		"%s: out of memory: not all of it is here: the log has it", name);
	if (!all || s->lost)
		add_cut(cut, text);
}

void collect_record(const struct collect *c, struct cJSON *record)
{
	cJSON *cut = cJSON_CreateArray();
	char text[120];
	add_stream_text(record, cut, "stdout", &c->out);
	add_stream_text(record, cut, "stderr", &c->err);
	(void)cJSON_AddItemToObject(record, "outputs", shown_list(&c->shown)); /* as above */
	if (c->error)
		(void)cJSON_AddItemToObject(record, "error", cJSON_Duplicate(c->error, true));
	shown_add_truncated(&c->shown, cut);
	(void)snprintf(text, sizeof text,
		"out of memory: %u messages of the kernel are not here: the history has them",
		c->n_lost);
	if (c->n_lost > 0)
		add_cut(cut, text);
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

/* NULL: out of memory. */
static char *take_text(struct buf *b)
{
	if (!b->failed)
		return (char *)buf_take(b, NULL);
	buf_done(b);
	return NULL;
}

static char *cut_middle(const char *text, size_t len, size_t max)
{
	struct buf cut;
	size_t head = plain_boundary(text, max / 2), tail = plain_boundary(text, len - max / 2);
	buf_init(&cut, max + 128);
	(void)buf_add(&cut, text, head); /* latched */
	(void)buf_addf(&cut, "\n[... %zu characters left out ...]\n", tail - head);
	(void)buf_add(&cut, text + tail, len - tail);
	return take_text(&cut);
}

char *collect_text(const struct collect *c, size_t max)
{
	AUTO(buf_done) struct buf b;
	AUTO(freep) char *out = stream_text(&c->out), *err = stream_text(&c->err);
	buf_init(&b, 4 * COLLECT_BUDGET);
	if (!out || !err)
		return NULL;
	add_plain(&b, out);
	add_plain(&b, err);
	LIST_EACH (at, &c->shown.outputs)
		add_result(&b, CONTAINER_OF(at, struct shown_output, link)->tree);
	return b.failed || b.len <= max ? take_text(&b)
					: cut_middle((const char *)b.data, b.len, max);
}
