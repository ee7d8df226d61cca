/* The request: a head line, then the bundle. */
#include "frontend-adapter/render/render.h"
#include "gateway/base/crypto.h"
#include "gateway/base/json.h"

#include <cjson/cJSON.h>
#include <string.h>

static int parse_head(const struct cJSON *head, struct request *r, struct err *err)
{
	const char *to = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(head, "to"));
	const struct cJSON *max = cJSON_GetObjectItemCaseSensitive(head, "max_bytes");
	if (!to || (strcmp(to, "png") != 0 && strcmp(to, "html") != 0))
		return err_set(err, E_INVALID, "`to` must be png or html");
	r->png = strcmp(to, "png") == 0;
	unsigned least = r->png ? PNG_MAX_MIN : HTML_MAX_MIN;
	r->max_bytes = MAX_BYTES_MAX;
	if (!max)
		return 0;
	if (!cJSON_IsNumber(max) || !(max->valuedouble >= least))
		return err_set(err, E_INVALID, "`max_bytes` must be a number from %u", least);
	if (max->valuedouble < MAX_BYTES_MAX)
		r->max_bytes = (size_t)max->valuedouble;
	return 0;
}

/* nbformat on disk has texts as lists of lines. */
static struct cJSON *join(const struct cJSON *list)
{
	AUTO(buf_done) struct buf text;
	const struct cJSON *line;
	buf_init(&text, REQUEST_MAX);
	(void)buf_add_text(&text, ""); /* latched, as all below */
	cJSON_ArrayForEach (line, list)
		(void)buf_add_text(&text, cJSON_IsString(line) ? line->valuestring : "");
	return text.failed ? NULL : cJSON_CreateString(text.data ? (char *)text.data : "");
}

static bool is_json(const char *mime)
{
	size_t len = strlen(mime);
	return strcmp(mime, "application/json") == 0 ||
	       (len > 5 && strcmp(mime + len - 5, "+json") == 0);
}

/* What should be JSON becomes its text, any other list its lines' text. */
static struct cJSON *flatten(const struct cJSON *item)
{
	AUTO(freep) char *text = is_json(item->string) ? cJSON_Print(item) : NULL;
	if (text)
		return cJSON_CreateString(text);
	return cJSON_IsString(item) ? cJSON_CreateStringReference(item->valuestring) : join(item);
}

static int take_data(struct request *r, struct err *err)
{
	const struct cJSON *data = cJSON_GetObjectItemCaseSensitive(r->bundle, "data");
	const struct cJSON *item;
	if (!cJSON_IsObject(data))
		return err_set(err, E_INVALID, "the bundle has no object `data`");
	r->data = cJSON_CreateObject();
	cJSON_ArrayForEach (item, data)
		if (!cJSON_AddItemToObject(r->data, item->string, flatten(item)))
			return err_set(err, E_NOMEM, "out of memory");
	return 0;
}

int request_parse(struct buf *bytes, struct request *ret, struct err *err)
{
	const uint8_t *end = bytes->data ? memchr(bytes->data, '\n', bytes->len) : NULL;
	*ret = (struct request){0};
	if (!end)
		return err_set(err, E_INVALID, "there is no head line");
	size_t head_len = (size_t)(end - bytes->data);
	json_replace_nul(bytes->data, bytes->len);
	struct cJSON *head = cJSON_ParseWithLength((char *)bytes->data, head_len);
	int status = head ? parse_head(head, ret, err)
			  : err_set(err, E_INVALID, "the head line is no JSON");
	cJSON_Delete(head);
	if (status != 0)
		return status;
	ret->bundle = cJSON_ParseWithLength((char *)end + 1, bytes->len - head_len - 1);
	if (!ret->bundle)
		return err_set(err, E_INVALID, "the bundle is no JSON");
	return take_data(ret, err);
}

void request_done(struct request *r)
{
	cJSON_Delete(r->data);
	cJSON_Delete(r->bundle);
	*r = (struct request){0};
}

const char *request_text(const struct request *r, const char *mime)
{
	return cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(r->data, mime));
}

int request_picture(const struct request *r, const char *mime, struct buf *ret)
{
	const char *text = request_text(r, mime);
	struct bytes bytes = {(const uint8_t *)text, text ? strlen(text) : 0};
	return text ? base64_decode_loose(bytes, ret) : E_NOT_FOUND;
}

int request_side(const struct request *r, const char *mime, const char *key)
{
	const struct cJSON *all = cJSON_GetObjectItemCaseSensitive(r->bundle, "metadata");
	const struct cJSON *of = cJSON_GetObjectItemCaseSensitive(all, mime);
	const struct cJSON *side = cJSON_GetObjectItemCaseSensitive(of, key);
	bool sound = cJSON_IsNumber(side) && side->valuedouble >= 1 && side->valuedouble <= 20000;
	return sound ? (int)side->valuedouble : 0;
}
