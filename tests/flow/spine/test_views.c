/* What can be asked, sessions included. */
#include "gateway/base/buf.h"
#include "gateway/base/file.h"
#include "gateway/spine/sessions.h"
#include "tests/lib/spine_fixture.h"

TEST(views, are_there_and_say_no_secret)
{
	static const char *const names[] = {"kernels", "executions", "clients", "slots", "sessions",
		"engine", "config", "counters"};
	struct fixture *fx = fixture_with_kernel();
	struct page *p = page_open(fx, "s1");
	(void)snprintf(fx->owner.secret, sizeof fx->owner.secret, "hush-hush");
	execute(p, "a");
	for (size_t i = 0; i < ARRAY_LEN(names); i++) {
		cJSON *tree = view(fx, names[i]);
		char *text = cJSON_Print(tree);
		assert_null(strstr(text, "hush-hush"));
		free(text);
		cJSON_Delete(tree);
	}
	assert_null(admin_show(&fx->gw, "secrets"));
	page_leave(p, 0);
	fixture_free(fx);
}

TEST(views, metrics_count)
{
	struct fixture *fx = fixture_with_kernel();
	struct page *p = page_open(fx, "s1");
	execute(p, "a");
	kernel_answers(fx, "a", REPLY_OK);
	AUTO(buf_done) struct buf b;
	buf_init(&b, 1 << 20);
	admin_metrics(&fx->gw, &b);
	const char *text = (const char *)b.data;
	assert_non_null(strstr(text, "coppice_kernels{state=\"idle\"} 1\n"));
	assert_non_null(strstr(text, "coppice_executions_total{status=\"ok\"} 1\n"));
	assert_non_null(strstr(text, "\ncoppice_clients 1\n"));
	assert_non_null(strstr(text, "\ncoppice_heap_bytes "));
	assert_non_null(strstr(text, "\ncoppice_messages_out_total 3\n"));
	page_leave(p, 0);
	fixture_free(fx);
}

static int create(struct fixture *fx, const char *body, char ret_id[UUID_SIZE])
{
	cJSON *tree = cJSON_Parse(body), *model = NULL;
	assert_non_null(tree);
	int rc = sessions_create(fx->gw.sessions, &fx->owner, tree, &model, NULL);
	if (rc == 0) {
		const char *id = cJSON_GetStringValue(cJSON_GetObjectItem(model, "id"));
		assert_true(copy_text(ret_id, UUID_SIZE, id, strlen(id)));
		assert_true(cJSON_IsObject(cJSON_GetObjectItem(model, "kernel")));
	}
	cJSON_Delete(model);
	cJSON_Delete(tree);
	return rc;
}

static int patch(struct fixture *fx, const char *id, const char *body)
{
	cJSON *tree = cJSON_Parse(body), *model = NULL;
	int rc = sessions_patch(fx->gw.sessions, &fx->owner, id, tree, &model, NULL);
	cJSON_Delete(model);
	cJSON_Delete(tree);
	return rc;
}

static void on_plain(void *data)
{
	++*(int *)data;
}

TEST(sessions, hold_a_kernel_each)
{
	struct fixture *fx = fixture_new();
	char a[UUID_SIZE], b[UUID_SIZE];
	int calls = 0;
	cJSON *model;
	struct owner other = {.name = "bob"};
	assert_int_equal(sessions_open(&fx->gw, &fx->gw.sessions, NULL), 0);
	assert_int_equal(create(fx, "{\"path\":\"n.ipynb\"}", a), E_INVALID);
	assert_int_equal(create(fx,
				 "{\"path\":\"n.ipynb\",\"type\":\"notebook\","
				 "\"kernel\":{\"name\":\"cobol\"}}",
				 a),
		E_NO_SPEC);
	static const char body[] = "{\"path\":\"n.ipynb\",\"type\":\"notebook\",\"name\":\"n\","
				   "\"kernel\":{\"id\":null,\"name\":\"python3\"}}";
	assert_int_equal(create(fx, body, a), 0);
	assert_int_equal(create(fx, body, b), 0);
	assert_string_equal(a, b);
	assert_int_equal(kernels_count(fx->gw.kernels, NULL), 1);
	assert_int_equal(sessions_get(fx->gw.sessions, &other, a, &model, NULL), E_NOT_FOUND);
	assert_int_equal(patch(fx, a, "{\"path\":\"m.ipynb\"}"), 0);
	assert_int_equal(patch(fx, a, "{\"kernel\":{\"id\":\"nope\"}}"), E_INVALID);
	assert_int_equal(patch(fx, a, "{\"kernel\":{\"name\":\"python3\"}}"), 0);
	assert_int_equal(kernels_count(fx->gw.kernels, NULL), 1);
	settle(fx);
	int rc = sessions_delete(fx->gw.sessions, &fx->owner, a, on_plain, &calls, NULL);
	assert_int_equal(rc, 0);
	settle(fx);
	assert_int_equal(calls, 1);
	assert_int_equal(kernels_count(fx->gw.kernels, NULL), 0);
	rc = sessions_delete(fx->gw.sessions, &fx->owner, a, on_plain, &calls, NULL);
	assert_int_equal(rc, E_NOT_FOUND);
	struct sessions *ss = fx->gw.sessions;
	fixture_free(fx);
	sessions_free(ss);
}

static bool row_names(const struct fixture *fx, const struct desk *d, const char *session)
{
	char path[256];
	AUTO(buf_done) struct buf text;
	buf_init(&text, 1 << 20);
	(void)snprintf(path, sizeof path, "%s/kernels/%s.json", fx->folder, desk_id(d));
	assert_int_equal(file_read(path, &text, NULL), 0);
	assert_int_equal(buf_add(&text, "", 1), 0);
	return strstr((const char *)text.data, session) != NULL;
}

/* Else the next gateway would have it twice. */
TEST(sessions, a_kernel_that_others_hold_too_is_left_for_good)
{
	struct fixture *fx = fixture_new();
	char a[UUID_SIZE], b[UUID_SIZE], body[256];
	fake_bridge_survive(fx->gw.bridge);
	assert_int_equal(fixture_start(fx), 0);
	assert_int_equal(sessions_open(&fx->gw, &fx->gw.sessions, NULL), 0);
	for (int i = 0; i < 2; i++) {
		(void)snprintf(body, sizeof body,
			"{\"path\":\"%d\",\"type\":\"console\",\"kernel\":{\"id\":\"%s\"}}", i,
			desk_id(fx->desk));
		assert_int_equal(create(fx, body, i ? b : a), 0);
	}
	assert_true(row_names(fx, fx->desk, a) && row_names(fx, fx->desk, b));
	assert_int_equal(patch(fx, b, "{\"kernel\":{\"name\":\"python3\"}}"), 0);
	assert_int_equal(kernels_count(fx->gw.kernels, NULL), 2);
	assert_true(row_names(fx, fx->desk, a));
	assert_false(row_names(fx, fx->desk, b));
	struct sessions *ss = fx->gw.sessions;
	fixture_free(fx);
	sessions_free(ss);
}

TEST(kernels, an_unknown_spec_is_answered_with_those_that_are_there)
{
	struct fixture *fx = fixture_new();
	struct err err;
	struct desk *d;
	struct kernels_start start = {.owner = &fx->owner, .spec_name = "nothing"};
	struct kernelspec more[40] = {{.name = "julia-1.11"}};
	list_append(&fake_bridge_spec(fx->gw.bridge)->link, &more[0].link);
	assert_int_equal(kernels_start(fx->gw.kernels, &start, &d, &err), E_NOT_FOUND);
	assert_non_null(strstr(err.text, "'nothing'"));
	assert_non_null(strstr(err.text, "julia-1.11, python3"));
	for (size_t i = 1; i < ARRAY_LEN(more); i++) { /* more than an error can hold */
		more[i].name = "a-rather-long-name";
		list_append(&more[0].link, &more[i].link);
	}
	assert_int_equal(kernels_start(fx->gw.kernels, &start, &d, &err), E_NOT_FOUND);
	assert_non_null(strstr(err.text, "a-rather-long-name, "));
	assert_string_equal(err.text + strlen(err.text) - 5, ", ...");
	fixture_free(fx);
}

TEST(sessions, go_with_their_kernel)
{
	struct fixture *fx = fixture_with_kernel();
	char a[UUID_SIZE], body[256];
	assert_int_equal(sessions_open(&fx->gw, &fx->gw.sessions, NULL), 0);
	(void)snprintf(body, sizeof body,
		"{\"path\":\"n\",\"type\":\"console\",\"kernel\":{\"id\":\"%s\"}}",
		desk_id(fx->desk));
	assert_int_equal(create(fx, body, a), 0);
	assert_int_equal(kernels_count(fx->gw.kernels, NULL), 1);
	desk_end(fx->desk, "", NULL, NULL);
	cJSON *list = sessions_list(fx->gw.sessions, &fx->owner);
	assert_int_equal(cJSON_GetArraySize(list), 0);
	cJSON_Delete(list);
	struct sessions *ss = fx->gw.sessions;
	fixture_free(fx);
	sessions_free(ss);
}

RUN(TEST_ROW(views, are_there_and_say_no_secret), TEST_ROW(views, metrics_count),
	TEST_ROW(kernels, an_unknown_spec_is_answered_with_those_that_are_there),
	TEST_ROW(sessions, hold_a_kernel_each),
	TEST_ROW(sessions, a_kernel_that_others_hold_too_is_left_for_good),
	TEST_ROW(sessions, go_with_their_kernel))
