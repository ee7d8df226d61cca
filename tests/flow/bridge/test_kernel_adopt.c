/* A kernel of an earlier gateway: taken up with what it kept, or found to be gone; whatever it and
 * its container say meanwhile. */
#include "tests/flow/bridge/adopt_fixture.h"

#include <signal.h>

#include "gateway/base/buf.h"
#include "kernel-bridge/kernel_internal.h"

static void assert_text(struct fixture *fx, unsigned i, const char *text)
{
	assert_true(i < fx->messages);
	assert_string_equal(fx->type[i], "stream");
	if (!strstr(fx->content[i], text))
		fail_msg("message %u is %s, not %s", i, fx->content[i], text);
}

TEST(kernel_adopt, is_ready_with_what_it_kept)
{
	struct fixture fx;

	fixture_open(&fx);
	adopt_to_replay(&fx);
	assert_string_equal(fx.engine->after[CHANNEL_IOPUB], "last-iopub");
	assert_string_equal(fx.engine->after[CHANNEL_SHELL], "");
	adopt_keeps(&fx, "one");
	adopt_keeps(&fx, "two");
	assert_int_equal(fx.messages, 0); /* on_ready comes first */
	fake_engine_kept_end(fx.engine, 0);
	assert_int_equal(fx.ready, 1);
	assert_int_equal(kernel_state(fx.kernel), KERNEL_IDLE);
	assert_int_equal(fx.messages, 2);
	assert_text(&fx, 0, "one");
	assert_text(&fx, 1, "two");
	assert_int_equal(fx.notices, 0);
	assert_int_equal(fx.turns, 1);
	/* It is a kernel like any other now. */
	send_request(&fx, CHANNEL_SHELL, "execute_request");
	while (!fx.engine->kernel->requests[CHANNEL_SHELL])
		fixture_turn(&fx);
	assert_int_equal(fx.engine->launched, 1);
	assert_int_equal(fx.engine->started, 1);
	fixture_close(&fx);
}

static bool has_live(struct fixture *fx)
{
	return !list_empty(&fx->kernel->live);
}

static bool has_three(struct fixture *fx)
{
	return fx->messages >= 3;
}

static void say(struct fixture *fx, const struct jmsg *m)
{
	struct wire_head head;

	wire_encode(&fx->engine->kernel->sign, m, &head);
	script_send_raw(fx->engine->kernel, CHANNEL_IOPUB, head.frames, WIRE_HEAD);
}

TEST(kernel_adopt, what_comes_twice_comes_once)
{
	struct fixture fx;
	struct jmsg *kept = adopt_message("kept");
	struct jmsg *live = adopt_message("live");

	fixture_open(&fx);
	adopt_to_replay(&fx);
	fake_engine_keeps(fx.engine, CHANNEL_IOPUB, kept);
	say(&fx, kept); /* kept and sent at the same time */
	say(&fx, live);
	fixture_run(&fx, has_live);
	fake_engine_kept_end(fx.engine, 0);
	script_send(fx.engine->kernel, CHANNEL_IOPUB, "stream", NULL, "{\"text\":\"later\"}");
	fixture_run(&fx, has_three);
	assert_int_equal(fx.messages, 3);
	assert_text(&fx, 0, "kept");
	assert_text(&fx, 1, "live");
	assert_text(&fx, 2, "later");
	jmsg_unref(kept);
	jmsg_unref(live);
	fixture_close(&fx);
}

TEST(kernel_adopt, a_line_that_was_not_begun_is_begun)
{
	struct fixture fx;
	struct err err = {0};
	cJSON *row;

	fixture_open(&fx);
	row = adopt_left(&fx);
	cJSON_ReplaceItemInObject(row, "line", cJSON_CreateNumber(0));
	assert_int_equal(adopt_try(&fx, row, &err), 0);
	fixture_run(&fx, is_ready);
	assert_int_equal(fx.engine->started, 2);
	assert_int_equal(fx.engine->replays, 0);
	fixture_close(&fx);
}

static void assert_lay(struct fixture *fx, const char *lay)
{
	cJSON *row = kernel_record(fx->kernel);
	const char *said = cJSON_GetStringValue(cJSON_GetObjectItem(row, "lay"));

	assert_string_equal(fx->engine->lay, lay);
	assert_string_equal(said ? said : "", lay); /* also for the one after this */
	cJSON_Delete(row);
}

TEST(kernel_adopt, the_lay_of_its_line_counts)
{
	static const char id[] = "22222222-2222-4333-8444-555555555555";
	static const char *const none[] = {
		"null", "7", "{}", "\"22222222-2222-4333-8444-5555555555556\""};
	struct fixture fx;
	struct err err = {0};

	for (size_t i = 0; i <= ARRAY_LEN(none); i++) {
		fixture_open(&fx);
		cJSON *row = adopt_left(&fx);
		assert_null(cJSON_GetObjectItem(row, "lay"));
		cJSON_AddItemToObject(
			row, "lay", i == 0 ? cJSON_CreateString(id) : cJSON_Parse(none[i - 1]));
		assert_int_equal(adopt_try(&fx, row, &err), 0);
		assert_lay(&fx, i == 0 ? id : "");
		fixture_close(&fx);
	}
}

TEST(kernel_adopt, nothing_is_kept_by_an_older_image)
{
	struct fixture fx;

	fixture_open(&fx);
	fx.engine->keeps_nothing = true;
	adopt_begin(&fx);
	fixture_run(&fx, is_ready);
	assert_int_equal(kernel_state(fx.kernel), KERNEL_IDLE);
	fixture_close(&fx);
}

/* ---- it is not there any more ---- */

TEST(kernel_adopt, the_supervisor_never_comes_back)
{
	struct fixture fx;

	fixture_open(&fx);
	fx.engine->left = LEFT_SILENT;
	adopt_begin(&fx);
	fixture_pass(&fx, 4900);
	assert_int_equal(fx.deaths, 0);
	fixture_pass(&fx, 200);
	assert_int_equal(fx.deaths, 1);
	assert_int_equal(fx.death.cause, DEATH_GONE);
	assert_non_null(strstr(fx.death.text, "went away"));
	assert_int_equal(fx.ready, 0);
	fixture_turns(&fx, 5);
	assert_int_equal(fx.engine->removed, 1);
	fixture_close(&fx);
}

TEST(kernel_adopt, its_container_is_gone)
{
	struct fixture fx;
	struct err err = {0};

	fixture_open(&fx);
	cJSON *row = adopt_left(&fx);
	fx.engine->left = LEFT_GONE;
	assert_int_equal(adopt_try(&fx, row, &err), E_NOT_FOUND);
	assert_int_equal(fx.bridge->n_kernels, 0);
	fixture_close(&fx);
}

TEST(kernel_adopt, it_exited_meanwhile)
{
	struct fixture fx;

	fixture_open(&fx);
	fx.engine->left = LEFT_EXITED;
	adopt_begin(&fx);
	fixture_run(&fx, is_dead);
	assert_int_equal(fx.death.cause, DEATH_EXIT);
	assert_int_equal(fx.death.code, 3);
	assert_int_equal(fx.engine->replays, 0);
	/* Its place is still good. */
	kernel_restart(fx.kernel, note_answer, &fx);
	fixture_run(&fx, is_ready);
	assert_int_equal(fx.engine->launched, 1);
	fixture_close(&fx);
}

TEST(kernel_adopt, it_exits_while_it_gives_back)
{
	struct fixture fx;

	fixture_open(&fx);
	adopt_to_replay(&fx);
	adopt_keeps(&fx, "one");
	fake_engine_exit(fx.engine, &(struct line_exit){.known = true, .signal = SIGKILL});
	fixture_run(&fx, is_dead);
	assert_int_equal(fx.death.cause, DEATH_SIGNAL);
	assert_int_equal(fx.ready, 0);
	assert_int_equal(fx.messages, 1); /* what it had given back is not lost */
	assert_text(&fx, 0, "one");
	fixture_close(&fx);
}

TEST(kernel_adopt, its_container_goes_while_it_gives_back)
{
	struct fixture fx;

	fixture_open(&fx);
	adopt_to_replay(&fx);
	adopt_keeps(&fx, "one");
	fake_engine_lose_slot(fx.engine);
	fixture_run(&fx, is_dead);
	assert_int_equal(fx.death.cause, DEATH_GONE);
	assert_int_equal(fx.messages, 1);
	fixture_turns(&fx, 5);
	assert_int_equal(fx.engine->removed, 1);
	fixture_close(&fx);
}

/* ---- what it gives back is wrong ---- */

static void keeps_bytes(struct fixture *fx, const char *bytes, size_t len)
{
	fake_engine_keeps_raw(
		fx->engine, CHANNEL_IOPUB, (struct bytes){(const uint8_t *)bytes, len});
}

#define KEEPS(fx, bytes) keeps_bytes(fx, bytes, sizeof(bytes) - 1)

TEST(kernel_adopt, garbage_is_passed_over)
{
	struct fixture fx;

	fixture_open(&fx);
	adopt_to_replay(&fx);
	KEEPS(&fx, "");
	KEEPS(&fx, "\0\0\0");
	KEEPS(&fx, "\377\377\377\377x");
	KEEPS(&fx, "\0\0\0\1x\0\0\0\11<IDS|MSG>\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0");
	adopt_keeps(&fx, "one");
	fake_engine_keeps_raw(fx.engine, CHANNEL_HB, (struct bytes){(const uint8_t *)"x", 1});
	fake_engine_kept_end(fx.engine, 0);
	assert_int_equal(fx.kernel->bad_frames, 5);
	assert_int_equal(fx.ready, 1);
	assert_int_equal(fx.messages, 1);
	assert_text(&fx, 0, "one");
	/* Unasked words of a hostile guest. */
	adopt_keeps(&fx, "two");
	fake_engine_kept_end(fx.engine, 7);
	assert_int_equal(fx.ready, 1);
	assert_int_equal(fx.messages, 1);
	assert_int_equal(fx.notices, 0);
	fixture_close(&fx);
}

TEST(kernel_adopt, a_replay_has_a_bound)
{
	static const size_t part = 16 << 20;
	struct fixture fx;
	AUTO(buf_done) struct buf content;
	struct jmsg *m = NULL;
	unsigned n = 0;

	fixture_open(&fx);
	adopt_to_replay(&fx);
	buf_init(&content, part + 64);
	buf_add_text(&content, "{\"text\":\"");
	while (content.len < part)
		buf_add_text(&content, "0123456789abcdef0123456789abcdef");
	buf_add_text(&content, "\"}");
	assert_int_equal(jmsg_make(CHANNEL_IOPUB, "stream", "kernel-session", NULL,
				 (const char *)content.data, &m, NULL),
		0);
	for (; fx.ready == 0 && n < 20; n++)
		fake_engine_keeps(fx.engine, CHANNEL_IOPUB, m);
	assert_int_equal(n, 9); /* 128 MiB and one of the largest messages */
	assert_int_equal(fx.notices, 1);
	assert_non_null(strstr(fx.notice, "too much"));
	assert_int_equal(fx.messages, n);
	fake_engine_keeps(fx.engine, CHANNEL_IOPUB, m);
	fake_engine_kept_end(fx.engine, 0);
	assert_int_equal(fx.messages, n);
	jmsg_unref(m);
	fixture_close(&fx);
}

TEST(kernel_adopt, a_replay_without_end_is_ended)
{
	struct fixture fx;

	fixture_open(&fx);
	adopt_to_replay(&fx);
	fixture_pass(&fx, 20000);
	adopt_keeps(&fx, "one");
	fixture_pass(&fx, 29000);
	assert_int_equal(fx.ready, 0);
	fixture_pass(&fx, 1500);
	assert_int_equal(fx.ready, 1);
	assert_int_equal(fx.messages, 1);
	assert_int_equal(kernel_state(fx.kernel), KERNEL_IDLE);
	fixture_close(&fx);
}

TEST(kernel_adopt, a_loss_is_told)
{
	struct fixture fx;

	fixture_open(&fx);
	adopt_to_replay(&fx);
	fake_engine_kept_end(fx.engine, 12);
	assert_int_equal(fx.notices, 1);
	assert_non_null(strstr(fx.notice, "12 messages"));
	assert_int_equal(fx.ready, 1);
	fixture_close(&fx);
}

/* ---- what was written down is wrong ---- */

static void refuse_row(const char *name, const char *json)
{
	struct fixture fx;
	struct err err = {0};

	fixture_open(&fx);
	cJSON *row = adopt_left(&fx);
	cJSON_ReplaceItemInObject(row, name, cJSON_Parse(json));
	assert_int_equal(adopt_try(&fx, row, &err), E_INVALID);
	assert_int_equal(fx.bridge->n_kernels, 0);
	assert_int_equal(fx.engine->adopted, 0);
	fixture_close(&fx);
}

TEST(kernel_adopt, a_damaged_row_is_refused)
{
	refuse_row("line", "-1");
	refuse_row("line", "1e300");
	refuse_row("line", "\"1\"");
	refuse_row("key", "null");
	refuse_row("routing_id", "[]");
	refuse_row("asker", "\"0123456789012345678901234567890123456789\"");
	refuse_row("env", "{\"A\":1}");
	refuse_row("env", "[\"A\"]");
	refuse_row("env", "\"A\"");
}

/* ---- the gateway goes again ---- */

static void leave_and_take_up(struct fixture *fx)
{
	struct err err = {0};
	cJSON *row = kernel_record(fx->kernel);

	assert_true(kernel_leave(fx->kernel));
	fx->kernel = NULL;
	assert_int_equal(fx->bridge->n_kernels, 0);
	assert_int_equal(fx->messages, 0); /* the next one gets it */
	fx->engine->replays = 0;
	assert_int_equal(adopt_try(fx, row, &err), 0);
	fixture_run(fx, adopt_is_asked);
	fake_engine_kept_end(fx->engine, 0);
	assert_int_equal(fx->ready, 1);
	assert_int_equal(fx->engine->removed, 0);
}

TEST(kernel_adopt, the_gateway_ends_before_it_is_heard)
{
	struct fixture fx;

	fixture_open(&fx);
	adopt_begin(&fx);
	leave_and_take_up(&fx);
	fixture_close(&fx);
}

TEST(kernel_adopt, the_gateway_ends_while_it_gives_back)
{
	struct fixture fx;

	fixture_open(&fx);
	adopt_to_replay(&fx);
	adopt_keeps(&fx, "one");
	leave_and_take_up(&fx);
	fixture_close(&fx);
}

TEST(kernel_adopt, is_ended_at_any_moment)
{
	struct fixture fx;

	fixture_open(&fx);
	adopt_begin(&fx);
	fixture_end(&fx);
	assert_int_equal(fx.engine->removed, 1);
	adopt_to_replay(&fx);
	adopt_keeps(&fx, "one");
	fixture_end(&fx);
	assert_int_equal(fx.engine->removed, 2);
	assert_int_equal(fx.messages, 0);
	assert_int_equal(fx.deaths, 0);
	fixture_close(&fx);
}

TEST(kernel_adopt, is_restarted_at_any_moment)
{
	struct fixture fx;

	fixture_open(&fx);
	adopt_begin(&fx);
	kernel_restart(fx.kernel, note_answer, &fx);
	fixture_run(&fx, is_ready);
	assert_int_equal(fx.answers, 1);
	fixture_end(&fx);
	fx.ready = fx.answers = 0;
	adopt_to_replay(&fx);
	adopt_keeps(&fx, "one");
	kernel_restart(fx.kernel, note_answer, &fx);
	fixture_run(&fx, is_ready);
	assert_int_equal(fx.answers, 1);
	assert_int_equal(fx.messages, 0); /* of the line that nobody wants any more */
	fixture_close(&fx);
}

RUN(TEST_ROW(kernel_adopt, is_ready_with_what_it_kept),
	TEST_ROW(kernel_adopt, what_comes_twice_comes_once),
	TEST_ROW(kernel_adopt, a_line_that_was_not_begun_is_begun),
	TEST_ROW(kernel_adopt, the_lay_of_its_line_counts),
	TEST_ROW(kernel_adopt, nothing_is_kept_by_an_older_image),
	TEST_ROW(kernel_adopt, the_supervisor_never_comes_back),
	TEST_ROW(kernel_adopt, its_container_is_gone), TEST_ROW(kernel_adopt, it_exited_meanwhile),
	TEST_ROW(kernel_adopt, it_exits_while_it_gives_back),
	TEST_ROW(kernel_adopt, its_container_goes_while_it_gives_back),
	TEST_ROW(kernel_adopt, garbage_is_passed_over),
	TEST_ROW(kernel_adopt, a_replay_has_a_bound),
	TEST_ROW(kernel_adopt, a_replay_without_end_is_ended),
	TEST_ROW(kernel_adopt, a_loss_is_told), TEST_ROW(kernel_adopt, a_damaged_row_is_refused),
	TEST_ROW(kernel_adopt, the_gateway_ends_before_it_is_heard),
	TEST_ROW(kernel_adopt, the_gateway_ends_while_it_gives_back),
	TEST_ROW(kernel_adopt, is_ended_at_any_moment),
	TEST_ROW(kernel_adopt, is_restarted_at_any_moment))
