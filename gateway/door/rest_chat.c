/* Calls about conversations with a model. So far: what of a model's text is code. */
#include <cjson/cJSON.h>
#include <string.h>

#include "frontend-adapter/adapter.h"
#include "gateway/door/rest.h"
#include "gateway/door/route.h"

static int prepare(const struct cJSON *body, struct cJSON **ret, struct err *err)
{
	const char *text = rest_text(body, "text");
	if (!text)
		return err_set(err, E_INVALID, "text: a string is needed");
	return prepare_text((struct bytes){(const uint8_t *)text, strlen(text)}, ret, err);
}

static void prepare_post(struct call *r)
{
	struct cJSON *body = NULL, *answer = NULL;
	struct err err;
	int status = call_json(r, &body, &err);
	if (status == 0)
		status = prepare(body, &answer, &err);
	cJSON_Delete(body);
	if (status == 0)
		answer_json(r, 200, answer);
	else
		answer_error(r, &err);
}

const struct route rest_chat_routes[] = {
	{METHOD_POST, "/chat/prepare", SCOPE_RUN, prepare_post},
	{0},
};
