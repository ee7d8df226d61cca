/* A kernel goes back to a parked fork: the new line beside the old one, its proof, the switch, and
 * all that can go wrong until then, after which nothing has moved. */
#include <cjson/cJSON.h>
#include <dirent.h>

#include "tests/flow/bridge/fixture.h"

#define TEXT  "{\"digest\":\"d1\",\"lost\":[],\"folder\":\"f\"}"
#define OTHER "{\"digest\":\"d2\",\"lost\":[],\"folder\":\"f\"}"

/* What the watcher and the revival heard. */
struct heard {
	struct fixture fx;
	unsigned parked, unparked, not_parked, records, switches, checks, answers;
	int64_t park;
	char text[128], why[128];
	int refuses; /* what check says */
	struct err answer;
	unsigned ready_at_switch, line_at_record;
	char lay_at_record[UUID_SIZE]; /* "": none */
	unsigned descriptors;	       /* as many as there were before */
};

static struct heard *heard_of(struct fixture *fx)
{
	return CONTAINER_OF(fx, struct heard, fx);
}

static void on_parked(void *data, const char *msg_id, int64_t park, struct bytes text)
{
	struct heard *h = heard_of(data);

	(void)msg_id;
	h->parked++;
	h->park = park;
	snprintf(h->text, sizeof(h->text), "%.*s", (int)text.len, (const char *)text.data);
}

static void on_unparked(void *data, int64_t park, const char *reason)
{
	struct heard *h = heard_of(data);

	h->unparked++;
	h->park = park;
	snprintf(h->why, sizeof(h->why), "%s", reason);
}

static unsigned line_of(const struct kernel *k)
{
	cJSON *report = kernel_report(k);
	unsigned line = (unsigned)cJSON_GetObjectItem(report, "line")->valueint;

	cJSON_Delete(report);
	return line;
}

static void read_lay(const struct kernel *k, char ret[UUID_SIZE])
{
	cJSON *row = kernel_record(k);
	const char *lay = cJSON_GetStringValue(cJSON_GetObjectItem(row, "lay"));

	snprintf(ret, UUID_SIZE, "%s", lay ? lay : "");
	cJSON_Delete(row);
}

static void on_record(void *data)
{
	struct fixture *fx = data;
	struct heard *h = heard_of(fx);

	h->records++;
	if (fx->kernel)
		h->line_at_record = line_of(fx->kernel);
	if (fx->kernel)
		read_lay(fx->kernel, h->lay_at_record);
}

static int check(void *data, struct bytes text, struct err *err)
{
	struct heard *h = data;

	h->checks++;
	snprintf(h->text, sizeof(h->text), "%.*s", (int)text.len, (const char *)text.data);
	return h->refuses ? err_set(err, h->refuses, "not good enough") : 0;
}

static void on_switch(void *data)
{
	struct heard *h = data;

	h->switches++;
	h->ready_at_switch = h->fx.ready;
}

static void on_done(void *data, const struct err *err)
{
	struct heard *h = data;

	h->answers++;
	h->answer = err ? *err : (struct err){0};
}

static struct fixture *open_kernel(struct heard *h)
{
	struct fixture *fx = &h->fx;
	const struct kernel_watcher watcher = {.on_ready = note_ready,
		.on_message = note_message,
		.on_turn = note_turn,
		.on_death = note_death,
		.on_notice = note_notice,
		.on_record = on_record,
		.on_parked = on_parked,
		.on_unparked = on_unparked,
		.data = fx};
	struct err err = {0};

	*h = (struct heard){0};
	fixture_open(fx);
	const struct kernel_start start = {.id = "11111111-2222-4333-8444-555555555555",
		.owner = "owner",
		.spec = &fx->engine->spec};
	assert_int_equal(kernel_start(fx->bridge, &start, &watcher, &fx->kernel, &err), 0);
	fixture_run(fx, is_ready);
	fx->ready = 0;
	return fx;
}

static struct fixture *open_parked(struct heard *h)
{
	struct fixture *fx = open_kernel(h);

	fake_engine_parks(fx->engine, 7, "m1", TEXT);
	assert_int_equal(h->parked, 1);
	return fx;
}

static void revive(struct fixture *fx, int64_t park)
{
	struct heard *h = heard_of(fx);
	const struct kernel_revival revival = {
		.park = park, .check = check, .on_switch = on_switch, .cb = on_done, .data = h};

	h->answers = 0;
	kernel_revive(fx->kernel, &revival);
	assert_int_equal(h->answers, 0);
}

static bool is_done(struct fixture *fx)
{
	return heard_of(fx)->answers > 0;
}

/* The old line is the kernel, and works. */
static void assert_as_before(struct fixture *fx, unsigned line)
{
	assert_int_equal(line_of(fx->kernel), line);
	assert_int_equal(heard_of(fx)->switches, 0);
	assert_int_equal(kernel_state(fx->kernel), KERNEL_IDLE);
	fx->messages = 0;
	unsigned before = fx->engine->kernel->requests[CHANNEL_SHELL];
	send_request(fx, CHANNEL_SHELL, "execute_request");
	while (fx->engine->kernel->requests[CHANNEL_SHELL] == before)
		fixture_turn(fx);
	script_send(fx->engine->kernel, CHANNEL_SHELL, "execute_reply",
		fx->engine->kernel->last[CHANNEL_SHELL], "{}");
	while (fx->messages == 0)
		fixture_turn(fx);
	assert_string_equal(fx->type[0], "execute_reply");
}

TEST(revive, the_new_line_takes_the_place_of_the_old)
{
	struct heard h;
	struct fixture *fx = open_parked(&h);
	unsigned killed = fx->engine->killed;
	h.records = 0;
	revive(fx, 7);
	assert_int_equal(fx->engine->park, 7);
	assert_int_equal(h.records, 1); /* its number is used */
	assert_int_equal(h.line_at_record, 1);
	fixture_turns(fx, 5);
	assert_int_equal(h.checks, 0);
	assert_int_equal(fx->engine->second->infos, 0); /* nothing is asked before it is proved */
	fake_engine_says_revived(fx->engine, 2, TEXT);
	assert_int_equal(h.checks, 1);
	assert_string_equal(h.text, TEXT);
	fixture_run(fx, is_done);
	assert_int_equal(h.answer.code, 0);
	assert_int_equal(h.switches, 1);
	assert_int_equal(h.ready_at_switch, 0);
	assert_int_equal(fx->ready, 1);
	assert_int_equal(h.records, 2);
	assert_int_equal(h.line_at_record, 2);
	assert_int_equal(fx->engine->killed, killed + 1);
	assert_int_equal(fx->engine->kernel->line, 2); /* the old one is gone */
	assert_int_equal(fx->deaths, 0);
	h.switches = 0;
	assert_as_before(fx, 2);
	/* As often as is wanted. */
	fx->ready = 0;
	revive(fx, 7);
	fake_engine_says_revived(fx->engine, 3, TEXT);
	fixture_run(fx, is_done);
	assert_int_equal(h.answer.code, 0);
	assert_int_equal(line_of(fx->kernel), 3);
	fixture_close(fx);
}

/* ---- with a folder ---- */

static void on_laid(void *data, const struct err *err)
{
	(void)data;
	assert_null(err);
}

/* Ready; its id. */
static void lay(struct fixture *fx, char ret_id[UUID_SIZE])
{
	const struct kernel_lay what = {
		.folder = "/work", .entries = {(const uint8_t *)"{}", 2}, .on_laid = on_laid};

	assert_int_equal(kernel_lay(fx->kernel, &what, NULL), 0);
	(void)copy_text(ret_id, UUID_SIZE, fx->engine->said, UUID_SIZE - 1); /* it begins with it */
	fake_engine_laid(fx->engine, ret_id, NULL, NULL);
}

static void assert_lay(struct fixture *fx, const char *id)
{
	char lay[UUID_SIZE];

	read_lay(fx->kernel, lay);
	assert_string_equal(lay, id);
}

TEST(revive, the_row_names_the_lay_of_its_line)
{
	struct heard h;
	struct fixture *fx = open_parked(&h);
	char first[UUID_SIZE], second[UUID_SIZE];

	fx->engine->has_files = true;
	lay(fx, first);
	assert_lay(fx, ""); /* a gateway that is killed here: it is put back */
	revive(fx, 7);
	assert_string_equal(h.lay_at_record, "");
	fake_engine_says_revived(fx->engine, 2, TEXT);
	fixture_run(fx, is_done);
	assert_int_equal(h.answer.code, 0);
	assert_int_equal(h.line_at_record, 2); /* in one row */
	assert_string_equal(h.lay_at_record, first);
	/* The word of its end may not be heard. */
	kernel_lay_end(fx->kernel, true);
	assert_lay(fx, first);
	/* One that fails is not it. */
	lay(fx, second);
	h.answers = 0;
	revive(fx, 7);
	fake_engine_says_revived(fx->engine, 3, OTHER);
	fixture_run(fx, is_done);
	assert_int_equal(h.answer.code, E_CONFLICT);
	assert_lay(fx, first);
	kernel_lay_end(fx->kernel, false);
	assert_lay(fx, first);
	fixture_close(fx);
}

TEST(revive, it_may_speak_before_it_is_said_to_be_started)
{
	struct heard h;
	struct fixture *fx = open_parked(&h);
	revive(fx, 7);
	fake_engine_says_revived(fx->engine, 2, TEXT);
	assert_int_equal(h.checks, 0);
	fixture_run(fx, is_done);
	assert_int_equal(h.answer.code, 0);
	assert_int_equal(line_of(fx->kernel), 2);
	fixture_close(fx);
}

TEST(revive, another_state_is_not_served)
{
	static const char *const said[] = {OTHER, "{}", "[]", "{\"digest\":1}"};
	struct heard h;
	struct fixture *fx = open_parked(&h);
	for (unsigned i = 0; i < ARRAY_LEN(said); i++) {
		revive(fx, 7);
		fixture_turns(fx, 3);
		fake_engine_says_revived(fx->engine, 2 + i, said[i]);
		fixture_run(fx, is_done);
		assert_int_equal(h.answer.code, E_CONFLICT);
		assert_int_equal(h.checks, 0);
		assert_as_before(fx, 1);
		assert_null(fx->engine->second);
	}
	revive(fx, 7);
	fixture_turns(fx, 3);
	fake_engine_says_revived(fx->engine, 6, "{\"error\":\"OSError: x\"}");
	fixture_run(fx, is_done);
	assert_int_equal(h.answer.code, E_GONE);
	assert_non_null(strstr(h.answer.text, "OSError: x"));
	/* A park that says nothing of itself proves nothing. */
	fake_engine_parks(fx->engine, 8, "m2", "{}");
	revive(fx, 8);
	fixture_turns(fx, 3);
	fake_engine_says_revived(fx->engine, 7, "{}");
	fixture_run(fx, is_done);
	assert_int_equal(h.answer.code, E_CONFLICT);
	assert_as_before(fx, 1);
	fixture_close(fx);
}

TEST(revive, who_asked_may_refuse)
{
	struct heard h;
	struct fixture *fx = open_parked(&h);
	h.refuses = E_PARTIAL;
	revive(fx, 7);
	fake_engine_says_revived(fx->engine, 2, TEXT);
	fixture_run(fx, is_done);
	assert_int_equal(h.answer.code, E_PARTIAL);
	assert_as_before(fx, 1);
	fixture_close(fx);
}

TEST(revive, one_that_ends_or_is_silent_changes_nothing)
{
	struct heard h;
	struct fixture *fx = open_parked(&h);
	revive(fx, 7);
	fixture_turns(fx, 3);
	fake_engine_exit_second(fx->engine, &(struct line_exit){.known = true, .code = 1});
	fixture_run(fx, is_done);
	assert_int_equal(h.answer.code, E_GONE);
	assert_as_before(fx, 1);
	revive(fx, 7); /* it says nothing */
	fixture_turns(fx, 3);
	fixture_hurry(fx, is_done);
	assert_int_equal(h.answer.code, E_TIMEOUT);
	assert_as_before(fx, 1);
	fx->engine->script.mute = true; /* it says what it is and answers nothing */
	revive(fx, 7);
	fake_engine_says_revived(fx->engine, 4, TEXT);
	fixture_turns(fx, 10);
	fixture_hurry(fx, is_done);
	assert_int_equal(h.answer.code, E_TIMEOUT);
	assert_as_before(fx, 1);
	assert_int_equal(fx->deaths, 0);
	fixture_close(fx);
}

TEST(revive, a_dead_kernel_whose_container_lives_can_go_back)
{
	struct heard h;
	struct fixture *fx = open_parked(&h);
	fake_engine_exit(fx->engine, &(struct line_exit){.known = true, .signal = 9});
	fixture_run(fx, is_dead);
	assert_int_equal(kernel_state(fx->kernel), KERNEL_DEAD);
	revive(fx, 7);
	fake_engine_says_revived(fx->engine, 2, TEXT);
	fixture_run(fx, is_done);
	assert_int_equal(h.answer.code, 0);
	h.switches = 0;
	assert_as_before(fx, 2);
	fixture_close(fx);
}

TEST(revive, the_old_line_may_die_on_the_way)
{
	struct heard h;
	struct fixture *fx = open_parked(&h);
	revive(fx, 7);
	fake_engine_exit(fx->engine, &(struct line_exit){.known = true, .signal = 9});
	fixture_run(fx, is_dead);
	fake_engine_says_revived(fx->engine, 2, TEXT);
	fixture_run(fx, is_done);
	assert_int_equal(h.answer.code, 0);
	assert_int_equal(fx->deaths, 1);
	h.switches = 0;
	assert_as_before(fx, 2);
	fixture_close(fx);
}

static void assert_cancelled(struct fixture *fx, struct heard *h, int code)
{
	fixture_run(fx, is_done);
	assert_int_equal(h->answer.code, code);
	assert_int_equal(h->answers, 1);
	assert_int_equal(h->switches, 0);
}

TEST(revive, a_restart_comes_first)
{
	struct heard h;
	struct fixture *fx = open_parked(&h);
	revive(fx, 7);
	fixture_turns(fx, 3);
	kernel_restart(fx->kernel, note_answer, fx);
	assert_cancelled(fx, &h, E_DEAD);
	fixture_run(fx, is_ready);
	assert_int_equal(line_of(fx->kernel), 3); /* no number is used twice */
	/* The park is still there. */
	fx->ready = 0;
	revive(fx, 7);
	fake_engine_says_revived(fx->engine, 4, TEXT);
	fixture_run(fx, is_done);
	assert_int_equal(h.answer.code, 0);
	fixture_close(fx);
}

TEST(revive, a_container_that_goes_takes_the_parks_with_it)
{
	struct heard h;
	struct fixture *fx = open_parked(&h);
	revive(fx, 7);
	fixture_turns(fx, 3);
	fake_engine_lose_slot(fx->engine);
	assert_cancelled(fx, &h, E_GONE);
	fixture_run(fx, is_dead);
	assert_int_equal(h.unparked, 1);
	assert_int_equal(h.park, 7);
	revive(fx, 7);
	assert_cancelled(fx, &h, E_GONE);
	fixture_close(fx);
}

TEST(revive, the_end_of_a_kernel_on_its_way)
{
	struct heard h;
	struct fixture *fx = open_parked(&h);
	revive(fx, 7);
	fixture_turns(fx, 3);
	fixture_end(fx);
	assert_cancelled(fx, &h, E_DEAD);
	assert_int_equal(h.unparked, 0); /* its watcher hears nothing more */
	fixture_close(fx);
}

TEST(revive, what_cannot_be_begun)
{
	struct heard h;
	struct fixture *fx = open_parked(&h);
	revive(fx, 8);
	assert_cancelled(fx, &h, E_GONE);
	fake_engine_unparks(fx->engine, 7);
	assert_int_equal(h.unparked, 1);
	revive(fx, 7);
	assert_cancelled(fx, &h, E_GONE);
	fake_engine_parks(fx->engine, 9, "m3", TEXT);
	fx->engine->fault = 1;
	revive(fx, 9);
	assert_cancelled(fx, &h, E_ENGINE);
	revive(fx, 9);
	h.answers = 0;
	const struct kernel_revival second = {
		.park = 9, .check = check, .on_switch = on_switch, .cb = on_done, .data = &h};
	kernel_revive(fx->kernel, &second);
	assert_cancelled(fx, &h, E_UNAVAILABLE); /* one at a time; the first goes on */
	h.answers = 0;
	fake_engine_says_revived(fx->engine, 3, TEXT);
	fixture_run(fx, is_done);
	assert_int_equal(h.answer.code, 0);
	kernel_release(fx->kernel, 9);
	assert_int_equal(fx->engine->released, 9);
	kernel_release(fx->kernel, PARK_ALL);
	assert_int_equal(fx->engine->released, PARK_ALL);
	fixture_close(fx);
}

/* A guest that parks without end is not believed for ever. */
TEST(revive, parks_are_bounded)
{
	struct heard h;
	struct fixture *fx = open_kernel(&h);
	for (int i = 1; i <= 1000; i++)
		fake_engine_parks(fx->engine, i, "m", TEXT);
	assert_true(h.parked >= 16 && h.parked <= 64);
	fixture_close(fx);
}

/* The same park told anew, as after a gateway's return. */
TEST(revive, the_record_names_every_number_that_was_used)
{
	struct heard h;
	struct fixture *fx = open_parked(&h);
	revive(fx, 7);
	fixture_turns(fx, 3);
	cJSON *row = kernel_record(fx->kernel);
	assert_int_equal(cJSON_GetObjectItem(row, "line")->valueint, 1);
	assert_int_equal(cJSON_GetObjectItem(row, "last_line")->valueint, 2);
	cJSON_Delete(row);
	fixture_close(fx);
}

static unsigned count_descriptors(void)
{
	DIR *dir = opendir("/proc/self/fd");
	unsigned n = 0;

	assert_non_null(dir);
	while (readdir(dir))
		n++;
	closedir(dir);
	return n;
}

/* libzmq closes in its own time. */
static bool has_no_more_descriptors(struct fixture *fx)
{
	return count_descriptors() <= heard_of(fx)->descriptors;
}

TEST(revive, a_hundred_leave_no_descriptor)
{
	struct heard h;
	struct fixture *fx = open_parked(&h);
	h.descriptors = count_descriptors();
	for (unsigned i = 0; i < 100; i++) {
		revive(fx, 7);
		fake_engine_says_revived(fx->engine, 2 + i, TEXT);
		fixture_run(fx, is_done);
		assert_int_equal(h.answer.code, 0);
		while (fx->engine->second)
			fixture_turn(fx);
	}
	fixture_run(fx, has_no_more_descriptors);
	assert_int_equal(line_of(fx->kernel), 101);
	fixture_close(fx);
}

RUN(TEST_ROW(revive, a_hundred_leave_no_descriptor),
	TEST_ROW(revive, the_new_line_takes_the_place_of_the_old),
	TEST_ROW(revive, the_row_names_the_lay_of_its_line),
	TEST_ROW(revive, it_may_speak_before_it_is_said_to_be_started),
	TEST_ROW(revive, another_state_is_not_served), TEST_ROW(revive, who_asked_may_refuse),
	TEST_ROW(revive, one_that_ends_or_is_silent_changes_nothing),
	TEST_ROW(revive, a_dead_kernel_whose_container_lives_can_go_back),
	TEST_ROW(revive, the_old_line_may_die_on_the_way), TEST_ROW(revive, a_restart_comes_first),
	TEST_ROW(revive, a_container_that_goes_takes_the_parks_with_it),
	TEST_ROW(revive, the_end_of_a_kernel_on_its_way), TEST_ROW(revive, what_cannot_be_begun),
	TEST_ROW(revive, parks_are_bounded),
	TEST_ROW(revive, the_record_names_every_number_that_was_used))
