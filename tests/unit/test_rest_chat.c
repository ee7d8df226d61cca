/* POST /chat/prepare: what is answered for which body. */
#include "tests/lib/test.h"

#include <cjson/cJSON.h>
#include <string.h>

#include "gateway/door/route.h"
#include "tests/lib/fake_clock.c"

struct fixture {
	struct gateway gw;
	struct door door;
	struct call *r;
	int answered;
};

static void on_answered(struct call *r)
{
	((struct fixture *)r->carrier)->answered++;
}

static void given(struct fixture *f, const char *body)
{
	memset(f, 0, sizeof *f);
	f->gw.clock = clock_new(NULL);
	f->door.gw = &f->gw;
	f->door.base = (char *)(uintptr_t) "";
	f->r = call_new(&f->door);
	f->r->carrier = f;
	f->r->answered = on_answered;
	assert_int_equal(buf_add_text(&f->r->body, body), 0);
	rest_chat_routes[0].handle(f->r);
	assert_int_equal(f->answered, 1);
}

/* The answer's body; the caller owns it. */
static cJSON *answer_of(const struct fixture *f)
{
	const char *head = (const char *)f->r->answer.data + ANSWER_HEADROOM;
	const char *body = strstr(head, "\r\n\r\n");
	assert_non_null(body);
	return cJSON_Parse(body + 4);
}

static void done(struct fixture *f)
{
	call_free(f->r);
	clock_close(f->gw.clock, NULL, NULL);
}

TEST(rest_chat, prepare_answers_with_a_verdict)
{
	struct fixture f;
	given(&f, "{\"text\":\"Sure:\\n```python\\nprint(1)\\n```\"}");
	assert_int_equal(f.r->status, 200);
	cJSON *tree = answer_of(&f);
	const cJSON *block = cJSON_GetArrayItem(cJSON_GetObjectItem(tree, "blocks"), 0);
	assert_string_equal(cJSON_GetObjectItem(tree, "verdict")->valuestring, "code");
	assert_string_equal(cJSON_GetObjectItem(tree, "prose")->valuestring, "Sure:");
	assert_string_equal(cJSON_GetObjectItem(block, "code")->valuestring, "print(1)\n");
	assert_string_equal(cJSON_GetObjectItem(block, "language")->valuestring, "python");
	assert_true(cJSON_IsArray(cJSON_GetObjectItem(block, "changes")));
	cJSON_Delete(tree);
	done(&f);
}

TEST(rest_chat, prepare_needs_a_text)
{
	static const char *const bodies[] = {
		"", "{}", "{\"text\":null}", "{\"text\":3}", "[]", "{", "{\"text\":\"a\\u0000b\"}"};
	for (size_t i = 0; i < ARRAY_LEN(bodies); i++) {
		struct fixture f;
		given(&f, bodies[i]);
		assert_int_equal(f.r->status, 400);
		cJSON *tree = answer_of(&f);
		assert_string_equal(cJSON_GetObjectItem(tree, "reason")->valuestring, "invalid");
		cJSON_Delete(tree);
		done(&f);
	}
}

TEST(rest_chat, prepare_needs_the_scope_run)
{
	assert_string_equal(rest_chat_routes[0].path, "/chat/prepare");
	assert_int_equal(rest_chat_routes[0].method, METHOD_POST);
	assert_int_equal(rest_chat_routes[0].scopes, SCOPE_RUN);
}

RUN(TEST_ROW(rest_chat, prepare_answers_with_a_verdict), TEST_ROW(rest_chat, prepare_needs_a_text),
	TEST_ROW(rest_chat, prepare_needs_the_scope_run))
