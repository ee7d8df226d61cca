/* An .ipynb as a notebook. What is malformed is refused with a sentence that says where; what
 * Python writes beside JSON (NaN, lone surrogates) is mended as in a kernel's messages. */
#include "history/notebook.h"

#include <stdio.h>
#include <string.h>

#include "gateway/base/json.h"
#include "history/outputs.h"
#include "history/spliced.h"

/* ---- texts ---- */

/* A string, or a list of strings that belong together. */
static bool add_text(struct bytes value, struct buf *ret_text)
{
	struct bytes line;
	if (is_string(value)) {
		(void)string_unescape(value, ret_text); /* latched, as below */
		return true;
	}
	for (size_t at = 0; array_next(value, &at, &line);) {
		if (!is_string(line))
			return false;
		(void)string_unescape(line, ret_text);
	}
	return is_array(value);
}

void metadata_stripped(struct bytes object, struct buf *ret_json)
{
	const char *before = "";
	struct member m;
	(void)buf_add_text(ret_json, "{"); /* latched, as below */
	for (size_t at = 0; object_next(object, &at, &m);) {
		if (bytes_equal(string_inside(m.key), METADATA_KEY))
			continue;
		(void)buf_add_text(ret_json, before);
		(void)buf_add(ret_json, m.key.data, m.key.len);
		(void)buf_add(ret_json, ":", 1);
		(void)buf_add(ret_json, m.value.data, m.value.len);
		before = ",";
	}
	(void)buf_add_text(ret_json, "}");
}

/* Nothing for one without members. */
static int read_metadata(struct bytes value, struct buf *ret, const char *whose, struct err *err)
{
	if (value.len == 0)
		return 0;
	if (!is_object(value))
		return err_set(err, E_INVALID, "the metadata of %s are no object", whose);
	metadata_stripped(value, ret);
	if (ret->len == 2)
		buf_reset(ret);
	return 0;
}

/* ---- outputs ---- */

static int no_file(void *data, const char *name, struct buf *ret_content, struct err *err)
{
	(void)data, (void)ret_content;
	return err_set(err, E_NOT_FOUND, "%s", name);
}

static bool is_texts(struct bytes list)
{
	struct bytes value;
	for (size_t at = 0; array_next(list, &at, &value);)
		if (!is_string(value))
			return false;
	return is_array(list);
}

static bool output_is_right(struct bytes output)
{
	char type[32];
	if (!json_text(object_find(output, "output_type"), type, sizeof type))
		return false;
	if (strcmp(type, "stream") == 0) {
		struct bytes text = object_find(output, "text");
		return is_string(object_find(output, "name")) &&
		       (is_string(text) || is_texts(text));
	}
	if (strcmp(type, "error") == 0)
		return is_string(object_find(output, "ename")) &&
		       is_string(object_find(output, "evalue")) &&
		       is_texts(object_find(output, "traceback"));
	return (strcmp(type, "display_data") == 0 || strcmp(type, "execute_result") == 0) &&
	       is_object(object_find(output, "data"));
}

static int read_outputs(struct bytes list, struct cell *c, size_t number, struct err *err)
{
	struct bytes output;
	size_t n = 0;
	if (list.len == 0)
		return 0;
	if (!is_array(list))
		return err_set(err, E_INVALID, "the outputs of cell %zu are no list", number);
	for (size_t at = 0; array_next(list, &at, &output); n++)
		if (!output_is_right(output))
			return err_set(err, E_INVALID,
				"output %zu of cell %zu is none of nbformat 4", n + 1, number);
	return n > 0 ? outputs_expand(list, no_file, NULL, &c->outputs, err) : 0;
}

/* ---- cells ---- */

static int read_kind(struct bytes cell, size_t number, enum cell_kind *ret_kind, struct err *err)
{
	static const char *const kinds[] = {"code", "markdown", "raw"};
	char text[32] = "";
	if (!is_object(cell))
		return err_set(err, E_INVALID, "cell %zu is no object", number);
	(void)json_text(object_find(cell, "cell_type"), text, sizeof text); /* else "" */
	for (size_t i = 0; i < ARRAY_LEN(kinds); i++) {
		if (strcmp(text, kinds[i]) == 0) {
			*ret_kind = (enum cell_kind)i;
			return 0;
		}
	}
	return err_set(err, E_INVALID, "cell %zu is neither code nor markdown nor raw", number);
}

static int read_count(struct bytes value, struct cell *c, size_t number, struct err *err)
{
	uint64_t count;
	if (value.len == 0 || bytes_equal(value, "null"))
		return 0;
	if (!number_u64(value, &count))
		return err_set(
			err, E_INVALID, "the execution_count of cell %zu is no count", number);
	(void)snprintf(c->count, sizeof c->count, "%llu", (unsigned long long)count);
	return 0;
}

static int read_code(struct bytes json, struct cell *c, size_t number, struct err *err)
{
	int status = read_count(object_find(json, "execution_count"), c, number, err);
	return status == 0 ? read_outputs(object_find(json, "outputs"), c, number, err) : status;
}

static int read_cell(struct bytes json, struct notebook *nb, size_t number, struct err *err)
{
	char whose[32];
	enum cell_kind kind = CELL_CODE;
	int status = read_kind(json, number, &kind, err);
	if (status != 0)
		return status;
	struct cell *c = notebook_add(nb, kind);
	struct bytes attachments = object_find(json, "attachments");
	if (!json_text(object_find(json, "id"), c->id, sizeof c->id) || !cell_id_valid(c->id))
		c->id[0] = '\0';
	if (!add_text(object_find(json, "source"), &c->source))
		return err_set(err, E_INVALID, "the source of cell %zu is no text", number);
	if (c->source.len > 0 && memchr(c->source.data, '\0', c->source.len))
		return err_set(err, E_INVALID, "the source of cell %zu holds a NUL", number);
	(void)snprintf(whose, sizeof whose, "cell %zu", number);
	status = read_metadata(object_find(json, "metadata"), &c->metadata, whose, err);
	if (status == 0 && kind == CELL_CODE)
		status = read_code(json, c, number, err);
	else if (status == 0 && is_object(attachments))
		(void)buf_add(&c->attachments, attachments.data, attachments.len); /* latched */
	return status;
}

int cell_read(struct bytes json, struct notebook *nb, struct err *err)
{
	return read_cell(json, nb, nb->n + 1, err);
}

/* ---- the whole ---- */

static int read_version(struct bytes file, struct err *err)
{
	uint64_t major = 0;
	if (!is_object(file))
		return err_set(err, E_INVALID, "this is no notebook: it is no JSON object");
	if (!number_u64(object_find(file, "nbformat"), &major))
		return err_set(err, E_INVALID, "this is no notebook: it has no nbformat");
	if (major != 4)
		return err_set(err, E_INVALID,
			"a notebook of nbformat %llu: only 4 is read (jupyter nbconvert --to "
			"notebook "
			"converts it)",
			(unsigned long long)major);
	return 0;
}

static void read_kernelspec(struct notebook *nb)
{
	struct bytes metadata = {nb->metadata.data, nb->metadata.len};
	struct bytes name = object_find(object_find(metadata, "kernelspec"), "name");
	if (!json_text(name, nb->kernelspec, sizeof nb->kernelspec))
		nb->kernelspec[0] = '\0';
}

static int read_all(struct bytes file, struct notebook *nb, struct err *err)
{
	struct bytes cells, cell;
	int status = read_version(file, err);
	if (status == 0)
		status = read_metadata(
			object_find(file, "metadata"), &nb->metadata, "the notebook", err);
	cells = status == 0 ? object_find(file, "cells") : (struct bytes){0};
	if (status == 0 && !is_array(cells))
		status = err_set(err, E_INVALID, "this is no notebook: it has no list of cells");
	for (size_t at = 0; status == 0 && array_next(cells, &at, &cell);) {
		if (nb->n == NOTEBOOK_CELLS_MAX)
			return err_set(err, E_TOO_BIG, "a notebook of more than %u cells",
				NOTEBOOK_CELLS_MAX);
		status = read_cell(cell, nb, nb->n + 1, err);
	}
	if (status != 0)
		return status;
	read_kernelspec(nb);
	return notebook_check(nb, err);
}

int notebook_read(struct bytes file, struct notebook *ret_nb, struct err *err)
{
	AUTO(buf_done) struct buf mended;
	buf_init(&mended, NOTEBOOK_MAX);
	if (json_scan(file, NULL, 0, err) == 0)
		return read_all(file, ret_nb, err);
	struct err why; /* what is wrong with the file as it is says more */
	if (json_mend(file, &mended, &why) != 0) {
		err_wrap(err, "the notebook is no JSON");
		return E_INVALID;
	}
	return read_all((struct bytes){mended.data, mended.len}, ret_nb, err);
}
