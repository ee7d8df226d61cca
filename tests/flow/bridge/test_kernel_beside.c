/* Two kernels in one slot, each a line of its own: begun beside, ended, restarted, dying with the
 * slot, left and taken up again; and what fails on the way, after which nothing is half. */
#include <cjson/cJSON.h>

#include "tests/flow/bridge/fixture.h"

#define TEXT "{\"digest\":\"d1\",\"lost\":[],\"folder\":\"f\"}"
#define ID_A "11111111-2222-4333-8444-555555555555"
#define ID_B "99999999-2222-4333-8444-555555555555"

/* What one of them heard. */
struct one {
	struct kernel *kernel;
	unsigned ready, deaths, records, parked, unparked, messages, ended;
	struct kernel_death death;
	char type[64];
};

struct pair {
	struct fixture fx;
	struct one a, b;
	unsigned answers;
	struct err answer;
};

static void on_ready(void *data, const struct jmsg *reply)
{
	struct one *o = data;

	(void)reply;
	o->ready++;
}

static void on_message(void *data, struct jmsg *m)
{
	struct one *o = data;

	o->messages++;
	snprintf(o->type, sizeof(o->type), "%s", m->msg_type);
}

static void on_turn(void *data)
{
	(void)data;
}

static void on_death(void *data, const struct kernel_death *death)
{
	struct one *o = data;

	o->deaths++;
	o->death = *death;
}

static void on_notice(void *data, const char *text)
{
	(void)data, (void)text;
}

static void on_record(void *data)
{
	struct one *o = data;

	o->records++;
}

static void on_parked(void *data, const char *msg_id, int64_t park, struct bytes text)
{
	struct one *o = data;

	(void)msg_id, (void)park, (void)text;
	o->parked++;
}

static void on_unparked(void *data, int64_t park, const char *reason)
{
	struct one *o = data;

	(void)park, (void)reason;
	o->unparked++;
}

static void on_ended_one(void *data)
{
	struct one *o = data;

	o->ended++;
}

static struct kernel_watcher watcher_of(struct one *o)
{
	return (struct kernel_watcher){.on_ready = on_ready,
		.on_message = on_message,
		.on_turn = on_turn,
		.on_death = on_death,
		.on_notice = on_notice,
		.on_record = on_record,
		.on_parked = on_parked,
		.on_unparked = on_unparked,
		.data = o};
}

static struct pair *pair_of(struct fixture *fx)
{
	return CONTAINER_OF(fx, struct pair, fx);
}

static bool a_is_ready(struct fixture *fx)
{
	return pair_of(fx)->a.ready > 0;
}

static bool b_is_ready(struct fixture *fx)
{
	return pair_of(fx)->b.ready > 0;
}

static bool b_is_answered(struct fixture *fx)
{
	return pair_of(fx)->answers > 0;
}

static bool a_has_ended(struct fixture *fx)
{
	return pair_of(fx)->a.ended > 0;
}

static bool b_has_ended(struct fixture *fx)
{
	return pair_of(fx)->b.ended > 0;
}

static bool both_died(struct fixture *fx)
{
	return pair_of(fx)->a.deaths > 0 && pair_of(fx)->b.deaths > 0;
}

static int check(void *data, struct bytes text, struct err *err)
{
	(void)data, (void)text, (void)err;
	return 0;
}

static void on_switch(void *data)
{
	(void)data;
}

static void on_done(void *data, const struct err *err)
{
	struct pair *p = data;

	p->answers++;
	p->answer = err ? *err : (struct err){0};
}

/* A runs and has park 7. */
static void open_a(struct pair *p)
{
	struct err err = {0};
	const struct kernel_watcher watcher = watcher_of(&p->a);

	*p = (struct pair){0};
	fixture_open(&p->fx);
	const struct kernel_start start = {
		.id = ID_A, .owner = "owner", .spec = &p->fx.engine->spec};
	assert_int_equal(kernel_start(p->fx.bridge, &start, &watcher, &p->a.kernel, &err), 0);
	fixture_run(&p->fx, a_is_ready);
	fake_engine_parks(p->fx.engine, 7, "m1", TEXT);
	assert_int_equal(p->a.parked, 1);
}

static int join(struct pair *p, struct err *err)
{
	const struct kernel_watcher watcher = watcher_of(&p->b);
	const struct kernel_start start = {
		.id = ID_B, .owner = "owner", .spec = &p->fx.engine->spec, .folder = "/branches/x"};

	return kernel_beside(p->a.kernel, &start, &watcher, &p->b.kernel, err);
}

static void revive_b(struct pair *p)
{
	const struct kernel_revival revival = {
		.park = 7, .check = check, .on_switch = on_switch, .cb = on_done, .data = p};

	p->answers = 0;
	kernel_revive(p->b.kernel, &revival);
}

static void begin_b(struct pair *p)
{
	struct err err = {0};

	if (join(p, &err) < 0)
		fail_msg("%s", err.text);
	assert_int_equal(kernel_state(p->b.kernel), KERNEL_DEAD);
	revive_b(p);
	fixture_turns(&p->fx, 3);
	fake_engine_says_revived(p->fx.engine, 2, TEXT);
	fixture_run(&p->fx, b_is_answered);
}

/* Both run: A is line 1, B line 2. */
static void open_both(struct pair *p)
{
	open_a(p);
	begin_b(p);
	assert_int_equal(p->answer.code, 0);
	assert_int_equal(p->b.ready, 1);
	assert_int_equal(p->fx.engine->launched, 1);
}

static void end(struct pair *p, struct one *o)
{
	kernel_end(o->kernel, on_ended_one, o);
	fixture_run(&p->fx, o == &p->a ? a_has_ended : b_has_ended);
	o->kernel = NULL;
}

static void close_all(struct pair *p)
{
	if (p->a.kernel && !p->a.ended)
		end(p, &p->a);
	if (p->b.kernel && !p->b.ended)
		end(p, &p->b);
	assert_int_equal(p->fx.bridge->n_kernels, 0);
	assert_true(list_empty(&p->fx.bridge->places));
	fixture_close(&p->fx);
}

/* A cell of it is answered by its own process and by no other. */
static void assert_works(struct pair *p, struct one *o, struct script_kernel *k)
{
	unsigned before = k->requests[CHANNEL_SHELL], messages = o->messages;
	unsigned others = p->a.messages + p->b.messages - messages;
	struct err err = {0};
	struct jmsg *m = NULL;

	assert_int_equal(jmsg_make(CHANNEL_SHELL, "execute_request", "s", NULL, "{}", &m, &err), 0);
	assert_int_equal(kernel_send(o->kernel, m, &err), 0);
	jmsg_unref(m);
	while (k->requests[CHANNEL_SHELL] == before)
		fixture_turn(&p->fx);
	script_send(k, CHANNEL_SHELL, "execute_reply", k->last[CHANNEL_SHELL], "{}");
	while (o->messages == messages)
		fixture_turn(&p->fx);
	assert_string_equal(o->type, "execute_reply");
	assert_int_equal(p->a.messages + p->b.messages - o->messages, others);
}

TEST(beside, both_work_and_know_nothing_of_each_other)
{
	struct pair p;
	open_both(&p);
	assert_string_equal(p.fx.engine->folder, "/branches/x");
	assert_string_equal(p.fx.engine->kernel_id, ID_B);
	assert_int_equal(p.a.ready, 1);
	for (int i = 0; i < 3; i++) {
		assert_works(&p, &p.a, p.fx.engine->kernel);
		assert_works(&p, &p.b, p.fx.engine->second);
	}
	assert_true(kernel_is_beside(p.a.kernel, p.b.kernel));
	close_all(&p);
	assert_int_equal(p.a.deaths + p.b.deaths, 0);
}

TEST(beside, the_slot_lives_as_long_as_one_of_them)
{
	for (int first = 0; first < 2; first++) {
		struct pair p;
		open_both(&p);
		end(&p, first == 0 ? &p.a : &p.b);
		assert_int_equal(p.fx.engine->removed, 0);
		assert_works(&p, first == 0 ? &p.b : &p.a, p.fx.engine->kernel);
		assert_int_equal(p.a.deaths + p.b.deaths, 0);
		/* What it had parked goes with it, and only that. */
		assert_int_equal(p.fx.engine->released, first == 0 ? 7 : 0);
		end(&p, first == 0 ? &p.b : &p.a);
		assert_int_equal(p.fx.engine->removed, 1);
		close_all(&p);
	}
}

TEST(beside, one_dies_and_is_begun_anew_in_the_same_slot)
{
	struct pair p;
	open_both(&p);
	fake_engine_exit_second(p.fx.engine, &(struct line_exit){.known = true, .signal = 9});
	while (p.b.deaths == 0)
		fixture_turn(&p.fx);
	assert_int_equal(p.b.death.cause, DEATH_SIGNAL);
	assert_int_equal(p.a.deaths, 0);
	unsigned records = p.a.records;
	kernel_restart(p.b.kernel, on_done, &p);
	p.b.ready = 0;
	fixture_run(&p.fx, b_is_ready);
	assert_int_equal(p.fx.engine->launched, 1);
	assert_int_equal(p.fx.engine->second->line, 3);
	assert_string_equal(p.fx.engine->folder, "/branches/x");
	assert_true(p.a.records > records); /* its row has the number that is used now */
	assert_works(&p, &p.a, p.fx.engine->kernel);
	assert_works(&p, &p.b, p.fx.engine->second);
	close_all(&p);
}

TEST(beside, a_restart_leaves_the_other_alone)
{
	struct pair p;
	open_both(&p);
	p.a.ready = 0;
	kernel_restart(p.a.kernel, on_done, &p);
	fixture_run(&p.fx, a_is_ready);
	assert_int_equal(p.fx.engine->launched, 1);
	assert_int_equal(p.fx.engine->kernel->line, 2); /* the other's */
	assert_works(&p, &p.b, p.fx.engine->kernel);
	assert_works(&p, &p.a, p.fx.engine->second);
	close_all(&p);
}

TEST(beside, the_death_of_the_slot_is_the_death_of_all)
{
	struct pair p;
	open_both(&p);
	fake_engine_lose_slot(p.fx.engine);
	fixture_run(&p.fx, both_died);
	assert_non_null(strstr(p.a.death.text, "the container went away"));
	assert_non_null(strstr(p.b.death.text, "the container went away"));
	assert_int_equal(p.a.unparked, 1);
	fixture_turns(&p.fx, 3);
	assert_int_equal(p.fx.engine->removed, 1);
	assert_false(kernel_has_place(p.a.kernel) || kernel_has_place(p.b.kernel));
	/* Each gets a slot of its own if it is begun again. */
	p.b.ready = 0;
	kernel_restart(p.b.kernel, on_done, &p);
	fixture_run(&p.fx, b_is_ready);
	assert_int_equal(p.fx.engine->launched, 2);
	assert_works(&p, &p.b, p.fx.engine->kernel);
	close_all(&p);
}

TEST(beside, a_line_that_cannot_be_begun_costs_only_its_own_kernel)
{
	struct pair p;
	open_both(&p);
	p.fx.engine->hangs_start = true;
	kernel_restart(p.b.kernel, on_done, &p);
	while (p.b.deaths == 0)
		fixture_pass(&p.fx, 1000);
	assert_int_equal(p.b.death.cause, DEATH_START);
	assert_false(kernel_has_place(p.b.kernel));
	assert_int_equal(p.fx.engine->removed, 0);
	assert_works(&p, &p.a, p.fx.engine->kernel);
	p.fx.engine->hangs_start = false;
	close_all(&p);
}

TEST(beside, parks_are_the_kernel_s_whose_line_it_was)
{
	struct pair p;
	open_both(&p);
	p.fx.engine->parks_of = ID_B;
	fake_engine_parks(p.fx.engine, 8, "m2", TEXT);
	assert_int_equal(p.a.parked, 1);
	assert_int_equal(p.b.parked, 1);
	/* Whoever is in the container may go back to it. */
	const struct kernel_revival revival = {
		.park = 8, .check = check, .on_switch = on_switch, .cb = on_done, .data = &p};
	end(&p, &p.b);
	assert_int_equal(p.fx.engine->released, 8);
	p.answers = 0;
	kernel_revive(p.a.kernel, &revival);
	fixture_run(&p.fx, b_is_answered);
	assert_int_equal(p.answer.code, E_GONE);
	/* One of a kernel that is not there any more is given up. */
	fake_engine_parks(p.fx.engine, 9, "m3", TEXT);
	assert_int_equal(p.fx.engine->released, 9);
	assert_int_equal(p.a.parked, 1);
	close_all(&p);
}

TEST(beside, three_are_enough)
{
	struct pair p;
	struct one c = {0}, d = {0};
	struct err err = {0};
	open_a(&p);
	assert_int_equal(join(&p, &err), 0);
	const struct kernel_watcher third = watcher_of(&c);
	const struct kernel_start start = {
		.id = "88888888-2222-4333-8444-555555555555", .spec = &p.fx.engine->spec};
	assert_int_equal(kernel_beside(p.a.kernel, &start, &third, &c.kernel, &err), 0);
	assert_int_equal(kernel_beside(p.a.kernel, &start, &third, &d.kernel, &err), E_CAPACITY);
	assert_non_null(strstr(err.text, "3 branches live in this container"));
	kernel_end(c.kernel, on_ended_one, &c);
	while (c.ended == 0)
		fixture_turn(&p.fx);
	assert_int_equal(p.fx.engine->removed, 0);
	close_all(&p);
}

TEST(beside, what_has_no_branches_says_so)
{
	struct pair p;
	struct err err = {0};
	open_a(&p);
	p.fx.engine->no_branches = true;
	assert_int_equal(join(&p, &err), E_UNAVAILABLE);
	p.fx.engine->no_branches = false;
	fake_engine_lose_slot(p.fx.engine);
	while (p.a.deaths == 0)
		fixture_turn(&p.fx);
	assert_int_equal(join(&p, &err), E_GONE);
	assert_int_equal(p.fx.bridge->n_kernels, 1);
	close_all(&p);
}

/* Each way in which it does not stand up. */
enum way { REFUSED, OTHER_DIGEST, DIED, TOO_LATE, WAYS };

static void fail_to_begin(struct pair *p, enum way way)
{
	struct fake_engine *e = p->fx.engine;
	struct err err = {0};

	assert_int_equal(join(p, &err), 0);
	e->fault = way == REFUSED ? 1 : 0;
	e->hangs_start = way == TOO_LATE;
	revive_b(p);
	fixture_turns(&p->fx, 3);
	if (way == OTHER_DIGEST)
		fake_engine_says_revived(e, e->second->line, "{\"digest\":\"other\"}");
	else if (way == DIED)
		fake_engine_exit_second(e, &(struct line_exit){.known = true, .code = 1});
	while (p->answers == 0)
		fixture_pass(&p->fx, 100);
	e->hangs_start = false;
	assert_int_not_equal(p->answer.code, 0);
	assert_int_equal(kernel_state(p->b.kernel), KERNEL_DEAD);
	end(p, &p->b);
	p->b.ended = 0;
}

TEST(beside, one_that_does_not_stand_up_leaves_nothing)
{
	for (enum way way = REFUSED; way < WAYS; way++) {
		struct pair p;
		open_a(&p);
		fail_to_begin(&p, way);
		assert_int_equal(p.fx.engine->removed, 0);
		assert_int_equal(p.b.ready + p.b.deaths, 0);
		assert_int_equal(p.fx.bridge->n_kernels, 1);
		assert_works(&p, &p.a, p.fx.engine->kernel);
		/* And it can be tried again. */
		struct err err = {0};
		assert_int_equal(join(&p, &err), 0);
		revive_b(&p);
		fixture_turns(&p.fx, 3);
		fake_engine_says_revived(p.fx.engine, p.fx.engine->second->line, TEXT);
		fixture_run(&p.fx, b_is_answered);
		assert_int_equal(p.answer.code, 0);
		assert_works(&p, &p.b, p.fx.engine->second);
		close_all(&p);
	}
}

/* ---- through gateways ---- */

static void leave(struct one *o, cJSON **ret_row)
{
	*ret_row = kernel_record(o->kernel);
	assert_non_null(*ret_row);
	assert_true(kernel_leave(o->kernel));
	o->kernel = NULL;
	o->ready = 0;
}

static void adopt(struct pair *p, struct one *o, const char *id, cJSON *row)
{
	const struct kernel_watcher watcher = watcher_of(o);
	const struct kernel_start start = {.id = id, .owner = "owner", .spec = &p->fx.engine->spec};
	struct err err = {0};

	if (kernel_adopt(p->fx.bridge, &start, row, NULL, &watcher, &o->kernel, &err) < 0)
		fail_msg("%s", err.text);
	cJSON_Delete(row);
}

static bool both_are_asked(struct fixture *fx)
{
	return fx->engine->replays == 2;
}

TEST(beside, both_are_left_and_taken_up)
{
	struct pair p;
	cJSON *row_a, *row_b;
	open_both(&p);
	leave(&p.a, &row_a);
	leave(&p.b, &row_b);
	assert_true(list_empty(&p.fx.bridge->places));
	adopt(&p, &p.a, ID_A, row_a);
	adopt(&p, &p.b, ID_B, row_b);
	assert_int_equal(p.fx.engine->adopted, 2);
	assert_true(kernel_is_beside(p.a.kernel, p.b.kernel));
	fixture_run(&p.fx, both_are_asked);
	fake_engine_kept_end_of(p.fx.engine, 1, 0);
	fake_engine_kept_end_of(p.fx.engine, 2, 0);
	fixture_run(&p.fx, a_is_ready);
	fixture_run(&p.fx, b_is_ready);
	assert_works(&p, &p.a, p.fx.engine->kernel);
	assert_works(&p, &p.b, p.fx.engine->second);
	assert_string_equal(kernel_folder(p.b.kernel), "/branches/x");
	/* A number is used once. */
	p.a.ready = 0;
	kernel_restart(p.a.kernel, on_done, &p);
	fixture_run(&p.fx, a_is_ready);
	assert_int_equal(p.fx.engine->second->line, 3);
	assert_int_equal(p.fx.engine->removed, 0);
	close_all(&p);
}

TEST(beside, one_ended_while_nobody_was_there)
{
	struct pair p;
	cJSON *row_a, *row_b;
	open_both(&p);
	leave(&p.a, &row_a);
	leave(&p.b, &row_b);
	script_free(TAKE(p.fx.engine->second));
	adopt(&p, &p.b, ID_B, row_b);
	adopt(&p, &p.a, ID_A, row_a);
	while (p.b.deaths == 0 || p.fx.engine->replays == 0)
		fixture_turn(&p.fx);
	fake_engine_kept_end_of(p.fx.engine, 1, 0);
	fixture_run(&p.fx, a_is_ready);
	assert_int_equal(p.a.deaths, 0);
	assert_works(&p, &p.a, p.fx.engine->kernel);
	close_all(&p);
}

TEST(beside, one_is_left_and_the_other_ended)
{
	struct pair p;
	cJSON *row_a;
	open_both(&p);
	leave(&p.a, &row_a);
	end(&p, &p.b);
	assert_int_equal(p.fx.engine->removed, 0);
	assert_true(list_empty(&p.fx.bridge->places));
	adopt(&p, &p.a, ID_A, row_a);
	while (p.fx.engine->replays == 0)
		fixture_turn(&p.fx);
	fake_engine_kept_end_of(p.fx.engine, 1, 0);
	fixture_run(&p.fx, a_is_ready);
	assert_works(&p, &p.a, p.fx.engine->kernel);
	close_all(&p);
}

RUN(TEST_ROW(beside, both_work_and_know_nothing_of_each_other),
	TEST_ROW(beside, the_slot_lives_as_long_as_one_of_them),
	TEST_ROW(beside, one_dies_and_is_begun_anew_in_the_same_slot),
	TEST_ROW(beside, a_restart_leaves_the_other_alone),
	TEST_ROW(beside, the_death_of_the_slot_is_the_death_of_all),
	TEST_ROW(beside, a_line_that_cannot_be_begun_costs_only_its_own_kernel),
	TEST_ROW(beside, parks_are_the_kernel_s_whose_line_it_was),
	TEST_ROW(beside, three_are_enough), TEST_ROW(beside, what_has_no_branches_says_so),
	TEST_ROW(beside, one_that_does_not_stand_up_leaves_nothing),
	TEST_ROW(beside, both_are_left_and_taken_up),
	TEST_ROW(beside, one_ended_while_nobody_was_there),
	TEST_ROW(beside, one_is_left_and_the_other_ended))
