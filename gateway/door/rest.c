#include "gateway/door/rest.h"

#include <cjson/cJSON.h>

const char *rest_text(const struct cJSON *body, const char *key)
{
	return cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(body, key));
}

const struct cJSON *rest_object(const struct cJSON *body, const char *key)
{
	const struct cJSON *item = cJSON_GetObjectItemCaseSensitive(body, key);
	return cJSON_IsObject(item) ? item : NULL;
}

void rest_location(struct call *r, const char *path, const char *id)
{
	AUTO(buf_done) struct buf value;
	buf_init(&value, 4096);
	if (buf_addf(&value, "%s%s%s", r->door->base, path, id) == 0)
		answer_header(r, "Location", (const char *)value.data);
}
