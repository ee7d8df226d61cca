/* Outputs as they lie in a node: written, and loaded again to be amended by a later run. */
#include "history/outputs_parts.h"

#include <stdio.h>
#include <string.h>

#include "history/spliced.h"

/* ---- writing ---- */

/* The last update of a display, in place of what an output showed. */
static int apply(struct outputs *o, size_t i, struct bytes latest, struct err *err)
{
	struct output *out = &o->list[i];
	struct bytes metadata = object_find(latest, "metadata"), old = {out->text, out->len};
	struct bytes data = object_find(latest, "data"), head = object_find(old, "output_type");
	struct bytes count = object_find(old, "execution_count");
	struct out_file *files = NULL;
	struct buf *b = &o->scratch;
	if (o->used > OUTPUTS_MAX || latest.len > OUTPUTS_MAX - o->used) {
		/* One update may concern a million outputs. */
		o->dropped++;
		o->dropped_bytes += latest.len;
		return 0;
	}
	o->used += latest.len;
	buf_reset(b);
	/* All latched. */
	(void)buf_addf(b, "{\"output_type\":%.*s,", (int)head.len, (const char *)head.data);
	if (count.len > 0)
		(void)buf_addf(
			b, "\"execution_count\":%.*s,", (int)count.len, (const char *)count.data);
	int status = mime_add(o, is_object(data) ? data : (struct bytes){0}, &files, b);
	(void)buf_add_text(b, ",\"metadata\":");
	if (is_object(metadata))
		(void)buf_add(b, metadata.data, metadata.len);
	else
		(void)buf_add_text(b, "{}");
	status = buf_add_text(b, "}");
	uint8_t *text = status == 0 ? malloc(b->len) : NULL;
	if (!text) {
		out_files_free(files);
		return err_set(err, E_NOMEM, "an update of a display: out of memory");
	}
	memcpy(text, b->data, b->len);
	out_files_free(out->files);
	free(out->text);
	*out = (struct output){
		.kind = OUTPUT_WHOLE, .text = text, .len = b->len, .size = b->len, .files = files};
	return 0;
}

static int apply_all(struct outputs *o, struct err *err)
{
	struct display *d, *next;
	int status = 0;
	HASH_ITER (hh, o->displays, d, next) {
		struct bytes latest = {d->latest, d->latest_len};
		for (size_t i = 0; d->latest && status == 0 && i < d->n; i++)
			if (d->at[i] < d->upto)
				status = apply(o, d->at[i], latest, err);
	}
	return status;
}

static void write_one(struct output *out, struct buf *ret, struct outputs_counts *counts)
{
	struct bytes text = {out->text, out->len};
	bool is_error = out->kind == OUTPUT_STDERR;
	/* All latched. */
	if (out->kind == OUTPUT_WHOLE) {
		(void)buf_add(ret, text.data, text.len);
	} else {
		*(is_error ? &counts->stderr_bytes : &counts->stdout_bytes) += string_length(text);
		(void)buf_addf(ret, "{\"output_type\":\"stream\",\"name\":\"%s\",\"text\":",
			is_error ? "stderr" : "stdout");
		(void)lines_add(text, ret);
		(void)buf_add(ret, "}", 1);
	}
	free(out->text);
	out->text = NULL;
	out->len = out->size = 0;
}

int outputs_write(
	struct outputs *o, struct buf *ret_json, struct outputs_counts *ret_counts, struct err *err)
{
	struct outputs_counts counts = {.outputs = o->n};
	int status = apply_all(o, err);
	if (status != 0)
		return status;
	(void)buf_add_text(ret_json, "["); /* the latch is read at the end */
	for (size_t i = 0; i < o->n && !ret_json->failed; i++) {
		(void)buf_add_text(ret_json, i > 0 ? ",\n" : "\n"); /* latched */
		write_one(&o->list[i], ret_json, &counts);
	}
	if (o->dropped > 0)
		(void)buf_addf(ret_json,
			"%s{\"output_type\":\"stream\",\"name\":\"stderr\",\"text\":[\n\"[coppice: "
			"%llu "
			"more outputs of %llu bytes are not in this record: it holds %u "
			"MiB]\\n\"]}",
			o->n > 0 ? ",\n" : "\n", (unsigned long long)o->dropped,
			(unsigned long long)o->dropped_bytes, OUTPUTS_MAX >> 20); /* latched */
	(void)buf_add_text(ret_json, "\n]\n");					  /* latched */
	*ret_counts = counts;
	return buf_check(ret_json, "outputs", err);
}

static void write_display(const struct display *d, const char *before, struct buf *ret)
{
	/* All latched. */
	(void)buf_addf(ret, "%s{\"display_id\":\"%s\",\"outputs\":[", before, d->id);
	for (size_t i = 0; i < d->n && i < DISPLAYS_KEPT; i++)
		(void)buf_addf(ret, "%s%zu", i ? "," : "", d->at[i]);
	(void)buf_add_text(ret, "]}");
}

int outputs_displays(const struct outputs *o, struct buf *ret_json, struct err *err)
{
	const char *before = "";
	struct display *d, *next;
	size_t n = 0;
	(void)buf_add_text(ret_json, "["); /* the latch is read at the end */
	HASH_ITER (hh, o->displays, d, next) {
		if (n++ < DISPLAYS_KEPT)
			write_display(d, before, ret_json);
		before = ",";
	}
	(void)buf_add_text(ret_json, "]"); /* latched */
	return buf_check(ret_json, "displays", err);
}

/* ---- loading ---- */

static bool load_text(struct output *out, size_t len)
{
	out->text = malloc(len + 1);
	out->size = len;
	return out->text != NULL;
}

static void put(struct output *out, struct bytes more)
{
	if (more.len > 0)
		memcpy(out->text + out->len, more.data, more.len);
	out->len += more.len;
}

static bool load_stream(struct output *out, struct bytes stored)
{
	struct bytes text = object_find(stored, "text"), line;
	bool is_error = bytes_equal(object_find(stored, "name"), "\"stderr\"");
	out->kind = is_error ? OUTPUT_STDERR : OUTPUT_STDOUT;
	if (!load_text(out, text.len))
		return false;
	put(out, string_inside(text));
	for (size_t at = 0; array_next(text, &at, &line);)
		put(out, string_inside(line));
	return true;
}

static bool load_one(struct outputs *o, struct output *out, struct bytes stored)
{
	if (bytes_equal(object_find(stored, "output_type"), "\"stream\""))
		return load_stream(out, stored);
	out->kind = OUTPUT_WHOLE;
	if (!load_text(out, stored.len))
		return false;
	put(out, stored);
	return mime_files(o, object_find(stored, "data"), &out->files) == 0;
}

static int load_list(struct outputs *o, struct bytes stored, struct err *err)
{
	struct bytes value;
	for (size_t at = 0; array_next(stored, &at, &value); o->n++) {
		if (o->n == o->size) {
			size_t size = o->size ? 2 * o->size : 8;
			struct output *list = realloc(o->list, size * sizeof *list);
			if (!list)
				return err_set(err, E_NOMEM, "outputs: out of memory");
			o->list = list;
			o->size = size;
		}
		struct output *out = &o->list[o->n];
		*out = (struct output){0};
		if (!load_one(o, out, value)) {
			o->n++; /* so that it is freed */
			return err_set(err, E_NOMEM, "outputs: out of memory");
		}
		o->used += out->len;
	}
	return 0;
}

static void load_display(struct outputs *o, struct bytes stored)
{
	struct bytes id = string_inside(object_find(stored, "display_id")), value;
	struct bytes list = object_find(stored, "outputs");
	char text[DISPLAY_ID_SIZE];
	size_t n = 0;
	uint64_t number;
	if (id.len == 0 || !copy_text(text, sizeof text, (const char *)id.data, id.len))
		return;
	for (size_t at = 0; array_next(list, &at, &value);)
		n++;
	struct display *d = xcalloc(1, sizeof *d);
	d->id = xstrdup(text);
	d->at = calloc(n + 1, sizeof *d->at);
	d->size = d->at ? n : 0;
	for (size_t at = 0; d->n < d->size && array_next(list, &at, &value);)
		if (number_u64(value, &number) && number < o->n &&
			o->list[number].kind == OUTPUT_WHOLE)
			d->at[d->n++] = (size_t)number;
	HASH_ADD_KEYPTR(hh, o->displays, d->id, strlen(d->id), d);
}

int outputs_load(struct outputs *o, struct bytes stored, struct bytes displays, struct err *err)
{
	struct bytes value;
	int status = load_list(o, stored, err);
	for (size_t at = 0; status == 0 && array_next(displays, &at, &value);)
		load_display(o, value);
	return status;
}
