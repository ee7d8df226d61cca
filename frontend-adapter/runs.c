#include "frontend-adapter/runs.h"

#include <cjson/cJSON.h>
#include <stdio.h>
#include <string.h>

#include "frontend-adapter/mend.h"
#include "frontend-adapter/python.h"
#include "frontend-adapter/reply_text.h"

#define CODE_MAX   (8u << 20)
#define BLOCKS_MAX 1000u

static int no_memory(struct err *err)
{
	return err_set(err, E_NOMEM, "blocks: out of memory");
}

int runs_init(struct runs *r, struct err *err)
{
	*r = (struct runs){.blocks = cJSON_CreateArray()};
	buf_init(&r->code, CODE_MAX);
	buf_init(&r->written, CODE_MAX);
	return r->blocks ? 0 : no_memory(err);
}

void runs_done(struct runs *r)
{
	cJSON_Delete(r->blocks);
	r->blocks = NULL;
	buf_done(&r->code);
	buf_done(&r->written);
}

int runs_drop(struct runs *r, struct err *err)
{
	bool crs = r->crs;
	runs_done(r);
	int status = runs_init(r, err);
	r->crs = crs;
	return status;
}

/* ret_changes is borrowed from it. */
static cJSON *add_block(struct runs *r, const char *language, const char *code, cJSON **ret_changes)
{
	cJSON *block = cJSON_CreateObject();
	if (block && cJSON_AddStringToObject(block, "code", code) &&
		cJSON_AddStringToObject(block, "language", language) &&
		(*ret_changes = cJSON_AddArrayToObject(block, "changes")) &&
		cJSON_AddItemToArray(r->blocks, block))
		return block;
	cJSON_Delete(block);
	return NULL;
}

/* Its code goes where it belongs. */
static int end_run(struct runs *r, struct err *err)
{
	cJSON *changes = cJSON_GetObjectItemCaseSensitive(r->run, "changes");
	char before[32];
	if (!r->run)
		return 0;
	int len = snprintf(before, sizeof before, "%u blocks", r->joined);
	if (r->joined > 1 &&
		!mend_note(changes, "joined", (struct bytes){(uint8_t *)before, (size_t)len},
			(struct bytes){(const uint8_t *)"1 run", 5}))
		return no_memory(err);
	cJSON *code = cJSON_CreateString((const char *)r->code.data);
	if (!code || !cJSON_ReplaceItemInObjectCaseSensitive(r->run, "code", code))
		return no_memory(err);
	if (!cJSON_AddStringToObject(r->run, "written", (const char *)r->written.data))
		return no_memory(err);
	r->run = NULL;
	r->joined = 0;
	buf_reset(&r->code);
	buf_reset(&r->written);
	return 0;
}

static int too_many(const struct runs *r, struct err *err)
{
	if (r->listed + r->pythons < BLOCKS_MAX)
		return 0;
	return err_set(err, E_TOO_BIG, "text: more than %u blocks of code", BLOCKS_MAX);
}

/* A blank line between what is joined. */
static int add_gap(struct buf *b)
{
	bool ended = b->len > 0 && b->data[b->len - 1] == '\n';
	return buf_add_text(b, ended ? "\n" : "\n\n");
}

/* The run that code is added to. */
static int open_run(struct runs *r, bool magic, struct err *err)
{
	static const struct bytes cr = {(const uint8_t *)"\r\n", 2},
				  lf = {(const uint8_t *)"\n", 1};
	cJSON *changes = NULL;
	if (r->run && !magic && !r->alone && !r->apart) {
		int gap = add_gap(&r->written);
		return gap != 0 ? gap : add_gap(&r->code);
	}
	int status = end_run(r, err);
	if (status != 0)
		return status;
	r->run = add_block(r, "python", "", &changes);
	r->alone = magic;
	if (!r->run || (r->crs && !mend_note(changes, "line-ends", cr, lf)))
		return no_memory(err);
	return 0;
}

static void delete_tree(cJSON **tree)
{
	cJSON_Delete(*tree);
}

/* code is mended; changes are moved to the run. */
static int add_python(
	struct runs *r, struct bytes written, struct bytes code, cJSON *changes, struct err *err)
{
	int status = open_run(r, py_is_cell_magic(code), err);
	if (status != 0)
		return status;
	cJSON *all = cJSON_GetObjectItemCaseSensitive(r->run, "changes"), *change;
	while ((change = cJSON_DetachItemFromArray(changes, 0)))
		(void)cJSON_AddItemToArray(all, change); /* both are there: it cannot fail */
	r->pythons++;
	r->joined++;
	r->incomplete |= py_ends_in_string(code);
	(void)buf_add(&r->code, code.data, code.len); /* latched, looked at next */
	(void)buf_add(&r->written, written.data, written.len);
	if (buf_check(&r->code, "code", err) != 0)
		return r->code.code;
	return buf_check(&r->written, "code", err) == 0 ? 0 : r->written.code;
}

int runs_python(struct runs *r, struct bytes code, struct err *err)
{
	AUTO(buf_done) struct buf mended;
	AUTO(delete_tree) cJSON *changes = cJSON_CreateArray();
	buf_init(&mended, CODE_MAX);
	int status = changes ? too_many(r, err) : no_memory(err);
	if (status == 0)
		status = mend_python(code, &mended, changes, err);
	struct bytes now = {mended.data, mended.len};
	if (status != 0 || bytes_trim(now).len == 0)
		return status;
	return add_python(r, code, now, changes, err);
}

int runs_listed(struct runs *r, const char *language, struct bytes code, struct err *err)
{
	cJSON *changes;
	AUTO(buf_done) struct buf copy;
	buf_init(&copy, CODE_MAX);
	int status = too_many(r, err);
	if (status != 0)
		return status;
	r->listed++;
	(void)buf_add(&copy, code.data, code.len); /* latched, looked at next */
	if (buf_check(&copy, "code", err) != 0)
		return copy.code;
	const char *text = copy.data ? (const char *)copy.data : "";
	return add_block(r, language, text, &changes) ? 0 : no_memory(err);
}

int runs_take(struct runs *r, struct cJSON **ret_blocks, struct err *err)
{
	int status = end_run(r, err);
	if (status == 0) {
		*ret_blocks = r->blocks;
		r->blocks = NULL;
	}
	return status;
}
