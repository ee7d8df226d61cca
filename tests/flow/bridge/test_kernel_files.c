/* The folder of a kernel through the bridge: what its slot tells reaches the watcher, a lay is of
 * one at a time and ends in any case. */
#include <cjson/cJSON.h>

#include "kernel-bridge/kernel_internal.h"
#include "tests/flow/bridge/fixture.h"

struct heard {
	struct fixture fx;
	unsigned files, contents, needs, rooms, laid;
	char text[128];
	struct err err; /* of the last lay */
};

static struct heard *heard_of(void *data)
{
	return CONTAINER_OF(data, struct heard, fx);
}

static void on_files(void *data, const char *msg_id, struct bytes change)
{
	struct heard *h = heard_of(data);

	h->files++;
	snprintf(h->text, sizeof(h->text), "%s %.*s", msg_id, (int)change.len,
		(const char *)change.data);
}

static void on_content(void *data, const char *name, struct bytes bytes)
{
	struct heard *h = heard_of(data);

	h->contents++;
	snprintf(h->text, sizeof(h->text), "%s %.*s", name, (int)bytes.len,
		bytes.data ? (const char *)bytes.data : "");
}

static void on_needs(void *data, const struct cJSON *names, bool last)
{
	struct heard *h = data;

	h->needs += (unsigned)cJSON_GetArraySize(names);
	assert_true(last);
}

static void on_room(void *data)
{
	((struct heard *)data)->rooms++;
}

static void on_laid(void *data, const struct err *err)
{
	struct heard *h = data;

	h->laid++;
	h->err = err ? *err : (struct err){0};
}

static void start(struct heard *h)
{
	memset(h, 0, sizeof(*h));
	fixture_open(&h->fx);
	h->fx.engine->has_files = true;
	fixture_start(&h->fx);
	h->fx.kernel->watcher.on_files = on_files;
	h->fx.kernel->watcher.on_content = on_content;
}

static int lay(struct heard *h, struct err *err)
{
	const struct kernel_lay what = {.folder = "/work",
		.entries = {(const uint8_t *)"{}", 2},
		.on_needs = on_needs,
		.on_room = on_room,
		.on_laid = on_laid,
		.data = h};

	return kernel_lay(h->fx.kernel, &what, err);
}

/* The lay's, as the engine was told. */
static const char *id_of(const struct heard *h)
{
	static _Thread_local char id[UUID_SIZE];

	(void)copy_text(id, sizeof(id), h->fx.engine->said, UUID_SIZE - 1); /* it begins with it */
	return id;
}

TEST(kernel_files, what_is_told_and_asked)
{
	static const char *const names[] = {"aa"};
	const struct kernel_want want = {.msg_id = "m", .names = names, .n = 1, .last = true};
	struct heard h;

	start(&h);
	assert_true(kernel_has_files(h.fx.kernel));
	fake_engine_files(h.fx.engine, 1, "m", "{}");
	assert_string_equal(h.text, "m {}");
	/* A line that has ended changed the same folder. */
	h.fx.ready = 0;
	kernel_restart(h.fx.kernel, note_answer, &h.fx);
	fixture_run(&h.fx, is_ready);
	fake_engine_files(h.fx.engine, 1, "n", "{}");
	assert_int_equal(h.files, 2);
	/* Of one that was nobody's nothing is wanted, and who told it need not wait. */
	fake_engine_files(h.fx.engine, 7, "o", "{}");
	assert_int_equal(h.files, 2);
	assert_string_equal(h.fx.engine->said, "want 7 o 0 - 1");
	assert_int_equal(kernel_want(h.fx.kernel, &want, NULL), 0);
	assert_string_equal(h.fx.engine->said, "want 2 m 1 aa 1");
	fake_engine_content(h.fx.engine, "aa", "text");
	assert_string_equal(h.text, "aa text");
	fake_engine_content(h.fx.engine, "bb", NULL);
	assert_int_equal(h.contents, 2);
	assert_int_equal(kernel_scan(h.fx.kernel, "s", false, NULL), 0);
	assert_string_equal(h.fx.engine->said, "scan 2 s");
	assert_int_equal(kernel_scan(h.fx.kernel, "t", true, NULL), 0);
	assert_string_equal(h.fx.engine->said, "scan 2 t full");
	fixture_close(&h.fx);
}

TEST(kernel_files, a_lay)
{
	struct heard h;
	struct err err;
	cJSON *names = cJSON_Parse("[\"aa\",\"bb\"]");

	start(&h);
	assert_int_equal(lay(&h, &err), 0);
	char id[UUID_SIZE];
	snprintf(id, sizeof(id), "%s", id_of(&h));
	assert_non_null(strstr(h.fx.engine->said, " lay /work {}"));
	fake_engine_laid(h.fx.engine, "of another", names, NULL);
	assert_int_equal(h.needs, 0);
	fake_engine_laid(h.fx.engine, id, names, NULL);
	assert_int_equal(h.needs, 2);
	assert_int_equal(kernel_lay_content(
				 h.fx.kernel, "aa", (struct bytes){(const uint8_t *)"x", 1}, &err),
		0);
	assert_non_null(strstr(h.fx.engine->said, " aa=x"));
	fake_engine_room(h.fx.engine);
	assert_int_equal(h.rooms, 1);
	fake_engine_laid(h.fx.engine, id, NULL, NULL);
	assert_int_equal(h.laid, 1);
	assert_int_equal(h.err.code, 0);
	fake_engine_laid(h.fx.engine, id, NULL, "twice");
	fake_engine_room(h.fx.engine);
	assert_int_equal(h.laid, 1);
	assert_int_equal(h.rooms, 1);
	kernel_lay_end(h.fx.kernel, true);
	assert_non_null(strstr(h.fx.engine->said, " end 1"));
	h.fx.engine->said[0] = '\0';
	kernel_lay_end(h.fx.kernel, false); /* there is none any more */
	assert_string_equal(h.fx.engine->said, "");
	assert_int_equal(lay(&h, &err), 0);
	fake_engine_laid(h.fx.engine, id_of(&h), NULL, "no room");
	assert_int_equal(h.err.code, E_UNAVAILABLE);
	assert_string_equal(h.err.text, "no room");
	kernel_lay_end(h.fx.kernel, false);
	cJSON_Delete(names);
	fixture_close(&h.fx);
}

static bool is_laid(struct fixture *fx)
{
	return heard_of(fx)->laid > 0;
}

TEST(kernel_files, its_container_goes_in_the_middle_of_a_lay)
{
	struct heard h;
	struct err err;

	start(&h);
	uint64_t place = kernel_place(h.fx.kernel);
	assert_int_equal(lay(&h, &err), 0);
	fake_engine_lose_slot(h.fx.engine);
	fixture_run(&h.fx, is_laid);
	assert_int_equal(h.err.code, E_UNAVAILABLE);
	kernel_lay_end(h.fx.kernel, false);
	assert_false(kernel_has_files(h.fx.kernel));
	assert_int_equal(kernel_scan(h.fx.kernel, "s", false, &err), E_UNAVAILABLE);
	fixture_run(&h.fx, is_dead);
	kernel_restart(h.fx.kernel, note_answer, &h.fx);
	fixture_run(&h.fx, is_ready);
	assert_true(kernel_place(h.fx.kernel) != place);
	assert_int_equal(h.laid, 1);
	fixture_close(&h.fx);
}

TEST(kernel_files, an_end_in_the_middle_of_a_lay_calls_nobody)
{
	struct heard h;
	struct err err;

	start(&h);
	assert_int_equal(lay(&h, &err), 0);
	kernel_lay_end(h.fx.kernel, false);
	fake_engine_laid(h.fx.engine, id_of(&h), NULL, NULL);
	assert_int_equal(lay(&h, &err), 0);
	fixture_close(&h.fx); /* nor does the kernel's */
	assert_int_equal(h.laid, 0);
}

TEST(kernel_files, each_call_fails_in_turn)
{
	const struct kernel_want want = {.msg_id = "m", .last = true};
	struct heard h;
	struct err err;

	start(&h);
	for (int nth = 1; nth <= 3; nth++) {
		h.fx.engine->fault = 1;
		int rc = nth == 1   ? kernel_want(h.fx.kernel, &want, &err)
			 : nth == 2 ? kernel_scan(h.fx.kernel, "s", false, &err)
				    : lay(&h, &err);
		assert_int_equal(rc, E_UNAVAILABLE);
	}
	assert_int_equal(lay(&h, &err), 0); /* the one that failed is none */
	h.fx.engine->fault = 1;
	assert_int_equal(
		kernel_lay_content(h.fx.kernel, "aa", (struct bytes){0}, &err), E_UNAVAILABLE);
	h.fx.engine->fault = 1;
	kernel_lay_end(h.fx.kernel, false);
	assert_int_equal(lay(&h, &err), 0);
	kernel_lay_end(h.fx.kernel, false);
	assert_int_equal(h.laid, 0);
	fixture_close(&h.fx);
}

RUN(TEST_ROW(kernel_files, what_is_told_and_asked), TEST_ROW(kernel_files, a_lay),
	TEST_ROW(kernel_files, its_container_goes_in_the_middle_of_a_lay),
	TEST_ROW(kernel_files, an_end_in_the_middle_of_a_lay_calls_nobody),
	TEST_ROW(kernel_files, each_call_fails_in_turn))
