#include "gateway/door/rest.h"

#include <cjson/cJSON.h>
#include <stdlib.h>

#define LIMIT	  100u
#define LIMIT_MAX 1000u

const char *rest_text(const struct cJSON *body, const char *key)
{
	return cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(body, key));
}

const struct cJSON *rest_object(const struct cJSON *body, const char *key)
{
	const struct cJSON *item = cJSON_GetObjectItemCaseSensitive(body, key);
	return cJSON_IsObject(item) ? item : NULL;
}

static bool is_texts(const struct cJSON *object)
{
	const struct cJSON *item;
	if (!cJSON_IsObject(object))
		return false;
	cJSON_ArrayForEach (item, object)
		if (!cJSON_IsString(item))
			return false;
	return true;
}

static bool is_kind(const struct cJSON *item, enum rest_kind kind)
{
	switch (kind) {
	case REST_TEXT:
		return cJSON_IsString(item);
	case REST_TEXTS:
		return is_texts(item);
	default:
		return cJSON_IsObject(item);
	}
}

int rest_check(const struct cJSON *body, const char *where, const struct rest_member *members,
	size_t n, struct err *err)
{
	static const char *const kinds[] = {"a string", "an object of strings", "an object"};
	for (size_t i = 0; i < n; i++) {
		const struct cJSON *item = cJSON_GetObjectItemCaseSensitive(body, members[i].key);
		if (item && !cJSON_IsNull(item) && !is_kind(item, members[i].kind))
			return err_set(err, E_INVALID, "%s%s must be %s", where, members[i].key,
				kinds[members[i].kind]);
	}
	return 0;
}

int rest_limit(const struct call *r, unsigned *ret, struct err *err)
{
	const char *text = call_query(r, "limit");
	char *end;
	*ret = LIMIT;
	if (!text || !*text)
		return 0;
	unsigned long limit = strtoul(text, &end, 10);
	if (*end || *text == '-' || limit == 0 || limit > LIMIT_MAX)
		return err_set(err, E_INVALID, "limit: `%.40s` is not a number from 1 to %u", text,
			LIMIT_MAX);
	*ret = (unsigned)limit;
	return 0;
}

void rest_location(struct call *r, const char *path, const char *id)
{
	AUTO(buf_done) struct buf value;
	buf_init(&value, 4096);
	if (buf_addf(&value, "%s%s%s", r->door->base, path, id) == 0)
		answer_header(r, "Location", (const char *)value.data);
}
