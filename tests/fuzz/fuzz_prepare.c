/* A model's text: whatever it is, the answer is one of three verdicts, strict JSON, and runs hold
 * code with line ends of one kind. */
#include <assert.h>
#include <string.h>
#include <cjson/cJSON.h>
#include "frontend-adapter/adapter.h"
#include "gateway/base/json.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

static const char *text_of(const cJSON *tree, const char *key)
{
	return cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(tree, key));
}

static void check_blocks(const cJSON *tree)
{
	const cJSON *block;
	const char *verdict = text_of(tree, "verdict");
	size_t runs = 0;
	cJSON_ArrayForEach (block, cJSON_GetObjectItemCaseSensitive(tree, "blocks")) {
		if (strcmp(text_of(block, "language"), "python") != 0)
			continue;
		const char *code = text_of(block, "code");
		assert(code[strspn(code, " \t\n\f")] != '\0' && !strchr(code, '\r'));
		runs++;
	}
	assert(strcmp(verdict, "code") == 0
			? runs > 0
			: strcmp(verdict, "incomplete") == 0 ||
				  (strcmp(verdict, "no-code") == 0 && runs == 0));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	cJSON *tree = NULL;
	struct err err;
	if (prepare_text((struct bytes){data, len}, &tree, &err) != 0)
		return 0;
	check_blocks(tree);
	char *json = cJSON_PrintUnformatted(tree);
	assert(json &&
		json_scan((struct bytes){(uint8_t *)json, strlen(json)}, NULL, 0, &err) == 0);
	cJSON_free(json);
	cJSON_Delete(tree);
	return 0;
}
