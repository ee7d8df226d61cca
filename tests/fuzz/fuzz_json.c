/* The JSON scan and the mending: a mended value scans, mending it again changes nothing, and cJSON
 * takes whatever the scan takes. */
#include <assert.h>
#include <string.h>
#include <cjson/cJSON.h>
#include "gateway/base/json.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

static void scan(struct bytes in)
{
	struct json_want wants[] = {{.key = "a"}, {.key = "msg_id"}};
	struct err err;
	if (json_scan(in, wants, ARRAY_LEN(wants), &err) != 0)
		return;
	for (size_t i = 0; i < ARRAY_LEN(wants); i++) {
		char text[64];
		(void)json_text(wants[i].value, text, sizeof text); /* must only not overrun */
	}
	cJSON *tree = cJSON_ParseWithLength((const char *)in.data, in.len);
	cJSON_Delete(tree);
}

static void mend(struct bytes in)
{
	AUTO(buf_done) struct buf once, twice;
	buf_init(&once, 1 << 22);
	buf_init(&twice, 1 << 22);
	struct err err;
	if (json_mend(in, &once, &err) != 0)
		return;
	struct bytes mended = {once.data, once.len};
	assert(json_scan(mended, NULL, 0, &err) == 0);
	assert(json_mend(mended, &twice, &err) == 0);
	assert(twice.len == once.len && memcmp(twice.data, once.data, once.len) == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	scan((struct bytes){data, len});
	mend((struct bytes){data, len});
	return 0;
}
