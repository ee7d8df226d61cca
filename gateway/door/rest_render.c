/* One MIME bundle as safe HTML or as PNG: what a chat shows of an output. Pure. */
#include <cjson/cJSON.h>
#include <string.h>

#include "frontend-adapter/adapter.h"
#include "gateway/base/json_tree.h"
#include "gateway/door/rest.h"
#include "gateway/door/route.h"

static void on_rendered(
	void *data, int status, const struct render_result *result, const struct err *err)
{
	struct call *r = data;
	if (status != 0) {
		answer_error(r, err);
		return;
	}
	/* Should a browser ever show it as a page of its own: nothing is fetched, nothing runs. */
	answer_header(r, "Content-Security-Policy",
		"sandbox; default-src 'none'; img-src data:; style-src 'unsafe-inline'");
	answer_header(r, "Coppice-Rendered-From", result->from);
	answer_header(r, "Coppice-Cut", result->cut ? "true" : "false");
	answer_bytes(r, 200, result->mime, result->body);
}

static int read_to(const struct cJSON *body, struct render_request *q, struct err *err)
{
	const char *to = rest_text(body, "to");
	const struct cJSON *max = cJSON_GetObjectItemCaseSensitive(body, "max_bytes");
	if (!to || (strcmp(to, "png") != 0 && strcmp(to, "html") != 0))
		return err_set(err, E_INVALID, "to: `png` or `html` is needed");
	q->to = strcmp(to, "png") == 0 ? RENDER_TO_PNG : RENDER_TO_HTML;
	if (!max || cJSON_IsNull(max))
		return 0;
	if (!cJSON_IsNumber(max) || !(max->valuedouble >= 1 && max->valuedouble <= 1e15))
		return err_set(err, E_INVALID, "max_bytes: a number of bytes is needed");
	q->max_bytes = (size_t)max->valuedouble;
	return 0;
}

/* Members are borrowed from the body. */
static char *print_bundle(const struct cJSON *body, struct err *err)
{
	struct cJSON *bundle = cJSON_CreateObject();
	struct cJSON *data = cJSON_GetObjectItemCaseSensitive(body, "data");
	struct cJSON *metadata = cJSON_GetObjectItemCaseSensitive(body, "metadata");
	(void)cJSON_AddItemReferenceToObject(bundle, "data", data); /* cannot fail */
	if (metadata)
		(void)cJSON_AddItemReferenceToObject(bundle, "metadata", metadata);
	char *text = json_print(bundle, err);
	cJSON_Delete(bundle);
	return text;
}

static int render(struct call *r, const struct cJSON *body, struct err *err)
{
	static const struct rest_member members[] = {
		{"data", REST_OBJECT}, {"metadata", REST_OBJECT}};
	struct render_request q = {0};
	int status = rest_check(body, "", members, ARRAY_LEN(members), err);
	if (status == 0 && !rest_object(body, "data"))
		status = err_set(err, E_INVALID, "data: a MIME bundle is needed");
	if (status == 0)
		status = read_to(body, &q, err);
	if (status != 0)
		return status;
	AUTO(freep) char *bundle = print_bundle(body, err);
	if (!bundle)
		return E_NOMEM;
	q.bundle = (struct bytes){(const uint8_t *)bundle, strlen(bundle)};
	return renderer_ask(r->door->gw->renderer, &q, on_rendered, r, err);
}

static void render_post(struct call *r)
{
	struct cJSON *body = NULL;
	struct err err;
	int status = call_json(r, &body, &err);
	if (status == 0)
		status = render(r, body, &err);
	cJSON_Delete(body);
	if (status != 0)
		answer_error(r, &err);
}

const struct route rest_render_routes[] = {
	{METHOD_POST, "/chat/render", SCOPE_RUN, render_post},
	{0},
};
