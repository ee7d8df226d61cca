#include "gateway/base/json_tree.h"

#include <cjson/cJSON.h>

/* Of the call of cJSON's that this thread is in, for the hooks, which have no argument for it: set
 * and read within the two functions below, as errno is. */
static _Thread_local struct {
	bool may_fail, failed;
} now;

static void *allocate(size_t size)
{
	if (!now.may_fail)
		return xcalloc(1, size);
	void *p = malloc(size);
	now.failed = now.failed || !p;
	return p;
}

void json_tree_init(void)
{
	cJSON_Hooks hooks = {.malloc_fn = allocate, .free_fn = free};
	cJSON_InitHooks(&hooks);
}

static void begin(void)
{
	now.may_fail = true;
	now.failed = false;
}

struct cJSON *json_parse(struct bytes text, size_t *ret_used, struct err *err)
{
	const char *from = (const char *)text.data, *end = NULL;
	begin();
	struct cJSON *tree = cJSON_ParseWithLengthOpts(from, text.len, &end, false);
	now.may_fail = false;
	if (tree && ret_used)
		*ret_used = (size_t)(end - from);
	if (tree)
		return tree;
	if (now.failed)
		err_set(err, E_NOMEM, "JSON of %zu bytes: out of memory", text.len);
	else
		err_set(err, E_INVALID, "it is no JSON");
	return NULL;
}

char *json_print(const struct cJSON *tree, struct err *err)
{
	begin();
	char *text = tree ? cJSON_PrintUnformatted(tree) : NULL;
	now.may_fail = false;
	if (!text)
		err_set(err, E_NOMEM, "JSON: out of memory");
	return text;
}
