#include "history/outputs_parts.h"

#include <string.h>

#include "history/spliced.h"

#define OUTPUT_COST 128u /* what an output takes beside its text */

struct outputs *outputs_new(void)
{
	struct outputs *o = xcalloc(1, sizeof *o);
	buf_init(&o->scratch, OUTPUTS_STORED_MAX);
	return o;
}

static void drop_displays(struct outputs *o)
{
	struct display *d, *next;
	HASH_ITER (hh, o->displays, d, next) {
		HASH_DEL(o->displays, d);
		free(d->id);
		free(d->at);
		free(d->latest);
		free(d);
	}
}

static void clear(struct outputs *o)
{
	for (size_t i = 0; i < o->n; i++) {
		free(o->list[i].text);
		out_files_free(o->list[i].files);
	}
	drop_displays(o);
	o->n = o->used = 0;
	o->dropped = o->dropped_bytes = 0;
	o->clear_waits = false;
}

void outputs_free(struct outputs *o)
{
	if (!o)
		return;
	clear(o);
	free(o->list);
	buf_done(&o->scratch);
	free(o);
}

bool outputs_changed(const struct outputs *o)
{
	return o->changed;
}

/* ---- adding ---- */

/* False: it would pass the bound, and is counted as dropped. */
static bool fits(struct outputs *o, size_t len)
{
	if (o->used < OUTPUTS_MAX && len <= OUTPUTS_MAX - o->used)
		return true;
	o->dropped++;
	o->dropped_bytes += len;
	return false;
}

static struct output *new_output(struct outputs *o, enum output_kind kind)
{
	if (o->n == o->size) {
		size_t size = o->size ? 2 * o->size : 8;
		struct output *list = realloc(o->list, size * sizeof *list);
		if (!list)
			return NULL;
		o->list = list;
		o->size = size;
	}
	o->list[o->n] = (struct output){.kind = kind};
	o->used += OUTPUT_COST;
	return &o->list[o->n++];
}

static bool output_append(struct outputs *o, struct output *out, struct bytes more)
{
	if (more.len > out->size - out->len) {
		/* Whole outputs are exact: a million small ones must not cost their slack. */
		size_t size = out->len + more.len;
		if (out->len > 0)
			size += size / 2;
		uint8_t *text = realloc(out->text, size);
		if (!text)
			return false;
		out->text = text;
		out->size = size;
	}
	if (more.len > 0)
		memcpy(out->text + out->len, more.data, more.len);
	out->len += more.len;
	o->used += more.len;
	return true;
}

static int no_memory(struct err *err)
{
	return err_set(err, E_NOMEM, "the outputs of a run: out of memory");
}

static int add_stream(struct outputs *o, struct bytes content, struct err *err)
{
	struct bytes text = string_inside(object_find(content, "text"));
	bool is_error = bytes_equal(object_find(content, "name"), "\"stderr\"");
	enum output_kind kind = is_error ? OUTPUT_STDERR : OUTPUT_STDOUT;
	if (text.len == 0 || !fits(o, text.len + OUTPUT_COST))
		return 0;
	struct output *last = o->n > 0 ? &o->list[o->n - 1] : NULL;
	if (!last || last->kind != kind)
		last = new_output(o, kind);
	return last && output_append(o, last, text) ? 0 : no_memory(err);
}

/* What was put together in scratch becomes an output. */
static int add_scratch(struct outputs *o, struct out_file *files, struct err *err)
{
	struct buf *b = &o->scratch;
	struct output *out = b->failed ? NULL : new_output(o, OUTPUT_WHOLE);
	if (!out) {
		out_files_free(files);
		return b->failed && b->code == E_TOO_BIG ? (o->dropped++, 0) : no_memory(err);
	}
	out->files = files;
	for (struct out_file *f = files; f; f = f->next)
		o->used += f->len;
	int status = output_append(o, out, (struct bytes){b->data, b->len}) ? 0 : no_memory(err);
	if (b->size > 1u << 20)
		buf_done(b);
	return status;
}

static void add_or(struct buf *b, struct bytes value, bool right, const char *otherwise)
{
	if (right)
		(void)buf_add(b, value.data, value.len); /* latched */
	else
		(void)buf_add_text(b, otherwise); /* latched */
}

/* Head, data and metadata in scratch; head is text up to the data. */
static int put_bundle(struct outputs *o, struct bytes content, struct out_file **files)
{
	struct bytes data = object_find(content, "data");
	struct bytes metadata = object_find(content, "metadata");
	struct buf *b = &o->scratch;
	int status = mime_add(o, is_object(data) ? data : (struct bytes){0}, files, b);
	(void)buf_add_text(b, ",\"metadata\":"); /* latched, as below */
	add_or(b, metadata, is_object(metadata), "{}");
	(void)buf_add_text(b, "}");
	return status;
}

static struct display *display_find(const struct outputs *o, const char *id)
{
	struct display *d;
	HASH_FIND_STR(o->displays, id, d);
	return d;
}

/* Remembers that output i has that id. */
static int display_note(struct outputs *o, const char *id, size_t i, struct err *err)
{
	struct display *d = display_find(o, id);
	if (!d) {
		d = xcalloc(1, sizeof *d);
		d->id = xstrdup(id);
		HASH_ADD_KEYPTR(hh, o->displays, d->id, strlen(d->id), d);
		o->used += strlen(id) + OUTPUT_COST;
	}
	if (d->n == d->size) {
		size_t size = d->size ? 2 * d->size : 2;
		size_t *at = realloc(d->at, size * sizeof *at);
		if (!at)
			return no_memory(err);
		d->at = at;
		d->size = size;
	}
	d->at[d->n++] = i;
	return 0;
}

void outputs_display_id(struct bytes content, char ret_id[DISPLAY_ID_SIZE])
{
	struct bytes id =
		string_inside(object_find(object_find(content, "transient"), "display_id"));
	/* As it is escaped: only compared with itself. */
	if (!copy_text(ret_id, DISPLAY_ID_SIZE, (const char *)id.data, id.len))
		ret_id[0] = '\0';
}

static int add_bundle(struct outputs *o, const char *type, struct bytes content, struct err *err)
{
	char id[DISPLAY_ID_SIZE];
	struct out_file *files = NULL;
	if (!fits(o, content.len + OUTPUT_COST))
		return 0;
	buf_reset(&o->scratch);
	(void)buf_addf(&o->scratch, "{\"output_type\":\"%s\",", type); /* latched, as below */
	if (strcmp(type, "execute_result") == 0) {
		struct bytes count = object_find(content, "execution_count");
		uint64_t number;
		(void)buf_add_text(&o->scratch, "\"execution_count\":");
		add_or(&o->scratch, count, number_u64(count, &number), "null");
		(void)buf_add_text(&o->scratch, ",");
	}
	(void)put_bundle(o, content, &files);
	size_t before = o->n;
	int status = add_scratch(o, files, err);
	outputs_display_id(content, id);
	return status == 0 && id[0] && o->n > before ? display_note(o, id, before, err) : status;
}

static bool all_strings(struct bytes list)
{
	struct bytes value;
	for (size_t at = 0; array_next(list, &at, &value);)
		if (!is_string(value))
			return false;
	return is_array(list);
}

static int add_error(struct outputs *o, struct bytes content, struct err *err)
{
	static const char *const texts[] = {"ename", "evalue"};
	struct buf *b = &o->scratch;
	if (!fits(o, content.len + OUTPUT_COST))
		return 0;
	buf_reset(b);
	(void)buf_add_text(b, "{\"output_type\":\"error\""); /* latched, as below */
	for (size_t i = 0; i < ARRAY_LEN(texts); i++) {
		struct bytes text = object_find(content, texts[i]);
		(void)buf_addf(b, ",\"%s\":", texts[i]);
		add_or(b, text, is_string(text), "\"\"");
	}
	struct bytes traceback = object_find(content, "traceback");
	(void)buf_add_text(b, ",\"traceback\":[");
	struct bytes line;
	const char *before = "\n";
	bool right = all_strings(traceback);
	for (size_t at = 0; right && array_next(traceback, &at, &line); before = ",\n") {
		(void)buf_add_text(b, before);
		(void)buf_add(b, line.data, line.len);
	}
	(void)buf_add_text(b, "]}");
	return add_scratch(o, NULL, err);
}

int outputs_update(struct outputs *o, const char *display_id, struct bytes content, struct err *err)
{
	struct display *d = display_find(o, display_id);
	if (!d || !fits(o, content.len))
		return 0;
	uint8_t *latest = malloc(content.len + 1);
	if (!latest)
		return no_memory(err);
	memcpy(latest, content.data, content.len);
	o->used += content.len - d->latest_len;
	free(d->latest);
	d->latest = latest;
	d->latest_len = content.len;
	d->upto = o->n;
	o->changed = true;
	return 0;
}

bool outputs_has_display(const struct outputs *o, const char *display_id)
{
	return display_find(o, display_id) != NULL;
}

static int take_clear(struct outputs *o, struct bytes content)
{
	if (bytes_equal(object_find(content, "wait"), "true"))
		o->clear_waits = true;
	else
		clear(o);
	return 0;
}

static int take_output(struct outputs *o, const char *type, struct bytes content, struct err *err)
{
	if (strcmp(type, "clear_output") == 0)
		return take_clear(o, content);
	if (o->clear_waits)
		clear(o);
	if (strcmp(type, "stream") == 0)
		return add_stream(o, content, err);
	if (strcmp(type, "error") == 0)
		return add_error(o, content, err);
	return add_bundle(o, type, content, err);
}

bool outputs_is_output(const char *msg_type)
{
	static const char *const types[] = {
		"stream", "display_data", "execute_result", "error", "clear_output"};
	for (size_t i = 0; i < ARRAY_LEN(types); i++)
		if (strcmp(msg_type, types[i]) == 0)
			return true;
	return false;
}

int outputs_message(struct outputs *o, const char *msg_type, struct bytes content, struct err *err)
{
	char id[DISPLAY_ID_SIZE];
	if (outputs_is_output(msg_type)) {
		o->changed = true;
		return take_output(o, msg_type, content, err);
	}
	if (strcmp(msg_type, "update_display_data") != 0)
		return 0;
	outputs_display_id(content, id);
	return id[0] ? outputs_update(o, id, content, err) : 0;
}

int outputs_files(const struct outputs *o,
	int (*on_file)(void *data, const char *name, struct bytes content, struct err *err),
	void *data, struct err *err)
{
	int status = 0;
	for (size_t i = 0; i < o->n; i++)
		for (struct out_file *f = o->list[i].files; status == 0 && f; f = f->next)
			status = on_file(data, f->name, (struct bytes){f->data, f->len}, err);
	return status;
}

int outputs_display_ids(const struct outputs *o,
	int (*on_id)(void *data, const char *display_id, struct err *err), void *data,
	struct err *err)
{
	struct display *d, *next;
	int status = 0;
	size_t n = 0;
	HASH_ITER (hh, o->displays, d, next) {
		if (status == 0 && n++ < DISPLAYS_KEPT)
			status = on_id(data, d->id, err);
	}
	return status;
}
