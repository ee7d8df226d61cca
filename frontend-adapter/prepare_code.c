/* The runs of an answer as one cell. A cell magic can only begin a cell, so amid others it becomes
 * the call that IPython makes of it. */
#include "frontend-adapter/prepare.h"

#include <cjson/cJSON.h>
#include <string.h>

#include "frontend-adapter/adapter.h"
#include "frontend-adapter/python.h"
#include "gateway/base/buf.h"

#define CODE_MAX (16u << 20)

static const char *text_of(const cJSON *tree, const char *key)
{
	return cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(tree, key));
}

/* A string of JSON is one of Python too. */
static void add_magic(struct buf *cell, const char *code)
{
	code = strstr(code, "%%") + 2; /* py_is_cell_magic() saw it */
	size_t name = strcspn(code, " \t\n"), line = strcspn(code, "\n");
	const char *body = code + line + (code[line] == '\n');
	size_t blank = name + strspn(code + name, " \t");
	(void)buf_add_text(cell, "get_ipython().run_cell_magic("); /* latched, as all here */
	(void)buf_add_json_string(cell, code, name);
	(void)buf_add_text(cell, ", ");
	(void)buf_add_json_string(cell, code + blank, line > blank ? line - blank : 0);
	(void)buf_add_text(cell, ", ");
	(void)buf_add_json_string(cell, body, strlen(body));
	(void)buf_add_text(cell, ")\n");
}

static void add_run(struct buf *cell, const char *code, bool only)
{
	bool magic = py_is_cell_magic((struct bytes){(const uint8_t *)code, strlen(code)});
	if (cell->len > 0)
		(void)buf_add_text(
			cell, cell->data[cell->len - 1] == '\n' ? "\n" : "\n\n"); /* latched */
	if (magic && !only)
		add_magic(cell, code);
	else
		(void)buf_add_text(cell, code); /* latched */
}

static bool is_run(const cJSON *block)
{
	return strcmp(text_of(block, "language"), "python") == 0;
}

static void join(const cJSON *blocks, struct buf *cell, struct buf *written, cJSON *changes)
{
	cJSON *block, *change;
	unsigned runs = 0;
	cJSON_ArrayForEach (block, blocks)
		runs += is_run(block);
	cJSON_ArrayForEach (block, blocks) {
		if (!is_run(block))
			continue;
		add_run(cell, text_of(block, "code"), runs == 1);
		add_run(written, text_of(block, "written"), true);
		cJSON *made = cJSON_GetObjectItemCaseSensitive(block, "changes");
		while ((change = cJSON_DetachItemFromArray(made, 0)))
			(void)cJSON_AddItemToArray(changes, change); /* both are there */
	}
}

static int take(struct buf *cell, struct buf *written, struct prepared *ret, struct err *err)
{
	if (buf_check(cell, "the code", err) != 0)
		return cell->code;
	if (buf_check(written, "the code", err) != 0)
		return written->code;
	ret->code = (char *)buf_take(cell, NULL);
	ret->written = (char *)buf_take(written, NULL); /* there is none of code that is empty */
	return 0;
}

int prepare_code(const char *text, enum prepared_is *ret_is, struct prepared *ret, struct err *err)
{
	cJSON *tree = NULL, *changes = cJSON_CreateArray();
	AUTO(buf_done) struct buf cell, written;
	buf_init(&cell, CODE_MAX);
	buf_init(&written, CODE_MAX);
	int status = prepare_read((struct bytes){(const uint8_t *)text, strlen(text)}, &tree, err);
	const char *verdict = status == 0 ? text_of(tree, "verdict") : "";
	bool cut = strcmp(verdict, "incomplete") == 0;
	*ret_is = cut ? PREPARED_CUT : PREPARED_NONE;
	if (strcmp(verdict, "code") == 0)
		join(cJSON_GetObjectItemCaseSensitive(tree, "blocks"), &cell, &written, changes);
	cJSON_Delete(tree);
	if (status == 0 && (cell.len > 0 || cell.failed))
		status = take(&cell, &written, ret, err);
	if (status == 0 && ret->code) {
		*ret_is = PREPARED_CODE;
		ret->changes = TAKE(changes);
	}
	cJSON_Delete(changes);
	return status;
}

void prepared_done(struct prepared *p)
{
	free(p->code);
	free(p->written);
	cJSON_Delete(p->changes);
	*p = (struct prepared){0};
}
