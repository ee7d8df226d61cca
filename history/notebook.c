#include "history/notebook.h"

#include <stdio.h>
#include <string.h>

#include "gateway/base/hash.h"
#include "history/outputs.h"
#include "history/record.h"
#include "history/spliced.h"

#define METADATA_MAX (16u << 20)

void notebook_init(struct notebook *nb)
{
	*nb = (struct notebook){0};
	buf_init(&nb->metadata, METADATA_MAX);
}

static void cell_done(struct cell *c)
{
	buf_done(&c->source);
	buf_done(&c->outputs);
	buf_done(&c->metadata);
	buf_done(&c->attachments);
}

void notebook_done(struct notebook *nb)
{
	for (size_t i = 0; i < nb->n; i++)
		cell_done(&nb->cells[i]);
	free(nb->cells);
	buf_done(&nb->metadata);
	*nb = (struct notebook){0};
}

struct cell *notebook_add(struct notebook *nb, enum cell_kind kind)
{
	if (nb->n == nb->size) {
		size_t size = nb->size ? 2 * nb->size : 16;
		struct cell *cells = xcalloc(size, sizeof *cells);
		if (nb->n > 0)
			memcpy(cells, nb->cells, nb->n * sizeof *cells);
		free(nb->cells);
		nb->cells = cells;
		nb->size = size;
	}
	struct cell *c = &nb->cells[nb->n++];
	*c = (struct cell){.kind = kind, .count = "null"};
	buf_init(&c->source, RECORD_CODE_MAX);
	buf_init(&c->outputs, OUTPUTS_STORED_MAX);
	buf_init(&c->metadata, METADATA_MAX);
	buf_init(&c->attachments, NOTEBOOK_MAX);
	return c;
}

void notebook_drop(struct notebook *nb, bool (*goes)(void *data, size_t at), void *data)
{
	size_t kept = 0;
	for (size_t i = 0; i < nb->n; i++) {
		if (goes(data, i))
			cell_done(&nb->cells[i]);
		else
			nb->cells[kept++] = nb->cells[i];
	}
	nb->n = kept;
}

int notebook_check(const struct notebook *nb, struct err *err)
{
	size_t used = nb->metadata.len;
	int status = buf_check(&nb->metadata, "the notebook's metadata", err);
	for (size_t i = 0; status == 0 && i < nb->n; i++) {
		const struct cell *c = &nb->cells[i];
		const struct buf *parts[] = {
			&c->source, &c->outputs, &c->metadata, &c->attachments};
		for (size_t k = 0; status == 0 && k < ARRAY_LEN(parts); k++) {
			status = buf_check(parts[k], "a cell", err);
			used += parts[k]->len;
		}
	}
	if (status == 0 && used > NOTEBOOK_MAX)
		status = err_set(
			err, E_TOO_BIG, "a notebook of more than %u MiB", NOTEBOOK_MAX >> 20);
	return status;
}

/* ---- ids ---- */

bool cell_id_valid(const char *id)
{
	size_t n = strspn(id, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_");
	return n > 0 && n < CELL_ID_SIZE && id[n] == '\0';
}

struct taken {
	const char *id;
	UT_hash_handle hh;
};

static bool is_taken(struct taken *ids, const char *id)
{
	struct taken *found;
	HASH_FIND_STR(ids, id, found);
	return found != NULL;
}

static void name_cell(struct cell *c, struct taken *ids, unsigned *counter)
{
	if (cell_id_valid(c->id) && !is_taken(ids, c->id))
		return;
	if (cell_id_valid(c->fresh) && !is_taken(ids, c->fresh)) {
		memcpy(c->id, c->fresh, sizeof c->id);
		return;
	}
	do
		(void)snprintf(c->id, sizeof c->id, "cell-%u", ++*counter);
	while (is_taken(ids, c->id));
}

void notebook_name_cells(struct notebook *nb)
{
	struct taken *ids = NULL, *rows = xcalloc(nb->n + 1, sizeof *rows);
	unsigned counter = 0;
	for (size_t i = 0; i < nb->n; i++) {
		name_cell(&nb->cells[i], ids, &counter);
		rows[i].id = nb->cells[i].id;
		HASH_ADD_KEYPTR(hh, ids, rows[i].id, strlen(rows[i].id), &rows[i]);
	}
	HASH_CLEAR(hh, ids);
	free(rows);
}

/* ---- parts ---- */

struct bytes cell_error(const struct cell *c)
{
	struct bytes list = {c->outputs.data, c->outputs.len}, output;
	for (size_t at = 0; array_next(list, &at, &output);)
		if (bytes_equal(object_find(output, "output_type"), "\"error\""))
			return output;
	return (struct bytes){0};
}

/* As nbformat's schema has it: what may be any JSON. */
static bool may_be_json(struct bytes type)
{
	static const char begin[] = "application/", end[] = "json";
	size_t n = sizeof begin - 1, m = sizeof end - 1;
	return type.len >= n + m && memcmp(type.data, begin, n) == 0 &&
	       memcmp(type.data + type.len - m, end, m) == 0 &&
	       (type.len == n + m || type.data[type.len - m - 1] == '+');
}

static bool is_odd(struct member m)
{
	return !is_string(m.value) && !may_be_json(string_inside(m.key));
}

static bool has_odd(struct bytes list)
{
	struct bytes output;
	struct member m;
	for (size_t at = 0; array_next(list, &at, &output);) {
		struct bytes data = object_find(output, "data");
		for (size_t k = 0; object_next(data, &k, &m);)
			if (is_odd(m))
				return true;
	}
	return false;
}

static void add_member(struct buf *b, struct member m, bool as_text, const char *before)
{
	(void)buf_add_text(b, before); /* latched, as below */
	(void)buf_add(b, m.key.data, m.key.len);
	(void)buf_add(b, ":", 1);
	if (as_text)
		(void)buf_add_json_string(b, (const char *)m.value.data, m.value.len);
	else
		(void)buf_add(b, m.value.data, m.value.len);
}

static void add_valid_data(struct bytes data, struct buf *b)
{
	const char *before = "";
	struct member m;
	(void)buf_add_text(b, "{"); /* latched, as below */
	for (size_t at = 0; object_next(data, &at, &m); before = ",")
		add_member(b, m, is_odd(m), before);
	(void)buf_add_text(b, "}");
}

static void add_valid(struct bytes output, struct buf *b)
{
	const char *before = "";
	struct member m;
	(void)buf_add_text(b, "{"); /* latched, as below */
	for (size_t at = 0; object_next(output, &at, &m); before = ",") {
		if (!bytes_equal(m.key, "\"data\"")) {
			add_member(b, m, false, before);
			continue;
		}
		(void)buf_addf(b, "%s\"data\":", before);
		add_valid_data(m.value, b);
	}
	(void)buf_add_text(b, "}");
}

int cell_make_valid(struct cell *c, struct err *err)
{
	struct bytes list = {c->outputs.data, c->outputs.len}, output;
	const char *before = "";
	struct buf made;
	if (!has_odd(list))
		return 0;
	buf_init(&made, OUTPUTS_STORED_MAX);
	(void)buf_add_text(&made, "["); /* latched, as below */
	for (size_t at = 0; array_next(list, &at, &output); before = ",") {
		(void)buf_add_text(&made, before);
		add_valid(output, &made);
	}
	(void)buf_add_text(&made, "]");
	buf_done(&c->outputs);
	c->outputs = made;
	return buf_check(&c->outputs, "outputs", err);
}

void notebook_metadata(const struct notebook *nb, struct buf *ret_json)
{
	const char *name = nb->kernelspec[0] ? nb->kernelspec : "python3";
	if (nb->metadata.len > 0) {
		(void)buf_add(ret_json, nb->metadata.data, nb->metadata.len); /* latched */
		return;
	}
	/* What a kernelspec is shown as is no part of a record. */
	(void)buf_add_text(ret_json, "{\"kernelspec\":{\"display_name\":"); /* latched, as below */
	(void)buf_add_json_string(ret_json, name, strlen(name));
	(void)buf_add_text(ret_json, ",\"language\":\"python\",\"name\":");
	(void)buf_add_json_string(ret_json, name, strlen(name));
	(void)buf_add_text(ret_json, "},\"language_info\":{\"name\":\"python\"}}");
}
