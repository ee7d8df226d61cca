/* What two kernels of one slot share, and what must reach one of them alone: their folders, their
 * parks, and the end of one whose time is up. */
#include "kernel-bridge/kernel_files.h"
#include "kernel-bridge/limits.h"
#include "tests/flow/bridge/fixture.h"

#define TEXT "{\"digest\":\"d1\",\"lost\":[],\"folder\":\"f\"}"

struct one {
	struct kernel *kernel;
	unsigned ready, deaths, files, contents, laid, looked, ended;
	int left;
	char text[128];
	struct kernel_death death;
};

struct pair {
	struct fixture fx;
	struct one a, b;
	unsigned answers;
};

static void on_ready(void *data, const struct jmsg *reply)
{
	(void)reply;
	((struct one *)data)->ready++;
}

static void on_message(void *data, struct jmsg *m)
{
	(void)data, (void)m;
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

static void on_parked(void *data, const char *msg_id, int64_t park, struct bytes text)
{
	(void)data, (void)msg_id, (void)park, (void)text;
}

static void on_unparked(void *data, int64_t park, const char *reason)
{
	(void)data, (void)park, (void)reason;
}

static void on_files(void *data, const char *msg_id, struct bytes change)
{
	struct one *o = data;

	o->files++;
	snprintf(o->text, sizeof(o->text), "%s %.*s", msg_id, (int)change.len,
		(const char *)change.data);
}

static void on_content(void *data, const char *name, struct bytes bytes)
{
	(void)name, (void)bytes;
	((struct one *)data)->contents++;
}

static void on_ended_one(void *data)
{
	((struct one *)data)->ended++;
}

static void on_needs(void *data, const struct cJSON *names, bool last)
{
	(void)data, (void)names, (void)last;
}

static void on_room(void *data)
{
	(void)data;
}

static void on_laid(void *data, const struct err *err)
{
	struct one *o = data;

	assert_null(err);
	o->laid++;
}

static void on_looked(void *data, const struct err *left)
{
	struct one *o = data;

	o->looked++;
	o->left = left ? left->code : 0;
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
	assert_null(err);
	((struct pair *)data)->answers++;
}

static struct kernel_watcher watcher_of(struct one *o)
{
	return (struct kernel_watcher){.on_ready = on_ready,
		.on_message = on_message,
		.on_turn = on_turn,
		.on_death = on_death,
		.on_notice = on_notice,
		.on_parked = on_parked,
		.on_unparked = on_unparked,
		.on_files = on_files,
		.on_content = on_content,
		.data = o};
}

/* A is line 1 and has park 7; B, which began from it, is line 2. */
static void open_both(struct pair *p)
{
	const struct kernel_watcher a = watcher_of(&p->a), b = watcher_of(&p->b);
	const struct kernel_revival revival = {
		.park = 7, .check = check, .on_switch = on_switch, .cb = on_done, .data = p};
	struct err err = {0};

	*p = (struct pair){0};
	fixture_open(&p->fx);
	p->fx.engine->has_files = true;
	const struct kernel_start first = {.id = "11111111-2222-4333-8444-555555555555",
		.owner = "owner",
		.spec = &p->fx.engine->spec};
	const struct kernel_start second = {.id = "99999999-2222-4333-8444-555555555555",
		.owner = "owner",
		.spec = &p->fx.engine->spec,
		.folder = "/branches/x"};
	assert_int_equal(kernel_start(p->fx.bridge, &first, &a, &p->a.kernel, &err), 0);
	while (p->a.ready == 0)
		fixture_turn(&p->fx);
	fake_engine_parks(p->fx.engine, 7, "m1", TEXT);
	assert_int_equal(kernel_beside(p->a.kernel, &second, &b, &p->b.kernel, &err), 0);
	kernel_revive(p->b.kernel, &revival);
	fixture_turns(&p->fx, 3);
	fake_engine_says_revived(p->fx.engine, 2, TEXT);
	while (p->answers == 0)
		fixture_turn(&p->fx);
}

static void end(struct pair *p, struct one *o)
{
	kernel_end(o->kernel, on_ended_one, o);
	while (o->ended == 0)
		fixture_turn(&p->fx);
}

static void close_all(struct pair *p)
{
	if (!p->a.ended)
		end(p, &p->a);
	if (!p->b.ended)
		end(p, &p->b);
	assert_true(list_empty(&p->fx.bridge->places));
	fixture_close(&p->fx);
}

TEST(shared, a_change_is_of_the_line_that_made_it)
{
	struct pair p;
	open_both(&p);
	fake_engine_files(p.fx.engine, 1, "m", "{}");
	fake_engine_files(p.fx.engine, 2, "n", "{}");
	assert_string_equal(p.a.text, "m {}");
	assert_string_equal(p.b.text, "n {}");
	assert_int_equal(p.a.files + p.b.files, 2);
	assert_int_equal(kernel_scan(p.b.kernel, "s", false, NULL), 0);
	assert_string_equal(p.fx.engine->said, "scan 2 s");
	/* Its line ended, and what it did last comes late. */
	p.a.ready = 0;
	kernel_restart(p.a.kernel, on_done, &p);
	while (p.a.ready == 0)
		fixture_turn(&p.fx);
	fake_engine_files(p.fx.engine, 1, "late", "{}");
	assert_string_equal(p.a.text, "late {}");
	/* One that left has no folder any more. */
	end(&p, &p.b);
	fake_engine_files(p.fx.engine, 2, "gone", "{}");
	assert_int_equal(p.a.files, 2);
	assert_string_equal(p.fx.engine->said, "want 2 gone 0 - 1");
	close_all(&p);
}

static void lay(struct pair *p, struct one *o, const char *folder, char ret_id[UUID_SIZE])
{
	const struct kernel_lay what = {.folder = folder,
		.entries = {(const uint8_t *)"{}", 2},
		.on_needs = on_needs,
		.on_room = on_room,
		.on_laid = on_laid,
		.data = o};

	assert_int_equal(kernel_lay(o->kernel, &what, NULL), 0);
	(void)copy_text(ret_id, UUID_SIZE, p->fx.engine->said, UUID_SIZE - 1); /* it begins so */
}

TEST(shared, each_lays_its_own_folder)
{
	struct pair p;
	char a[UUID_SIZE], b[UUID_SIZE];
	open_both(&p);
	lay(&p, &p.a, "/work", a);
	lay(&p, &p.b, "/branches/x", b);
	assert_non_null(strstr(p.fx.engine->said, " lay /branches/x {}"));
	fake_engine_laid(p.fx.engine, b, NULL, NULL);
	assert_int_equal(p.b.laid, 1);
	assert_int_equal(p.a.laid, 0);
	kernel_lay_end(p.b.kernel, true);
	fake_engine_laid(p.fx.engine, a, NULL, NULL);
	assert_int_equal(p.a.laid, 1);
	kernel_lay_end(p.a.kernel, true);
	close_all(&p);
}

TEST(shared, who_gives_up_its_parks_gives_up_no_other_s)
{
	struct pair p;
	open_both(&p);
	p.fx.engine->released = -1;
	kernel_release(p.b.kernel, PARK_ALL);
	assert_int_equal(p.fx.engine->released, -1); /* it has none */
	kernel_release(p.a.kernel, PARK_ALL);
	assert_int_equal(p.fx.engine->released, 7);
	end(&p, &p.b);
	kernel_release(p.a.kernel, PARK_ALL);
	assert_int_equal(
		p.fx.engine->released, PARK_ALL); /* alone: those that are being made too */
	close_all(&p);
}

static void kill_b(struct pair *p)
{
	kernel_set_busy(p->b.kernel, true);
	kernel_kill(p->b.kernel);
	while (p->b.deaths == 0)
		fixture_turn(&p->fx);
	assert_int_equal(p->a.deaths, 0);
	kernel_look(p->b.kernel, on_looked, &p->b);
}

TEST(shared, the_time_of_one_is_up_and_the_other_goes_on)
{
	struct pair p;
	open_both(&p);
	p.fx.engine->stays = "a process";
	kill_b(&p);
	/* Where another would lose its container there is more patience. */
	fixture_pass(&p.fx, KERNEL_CLEAN_MS + 500);
	assert_int_equal(p.b.looked, 0);
	p.fx.engine->stays = NULL;
	while (p.b.looked == 0)
		fixture_pass(&p.fx, 60);
	assert_int_equal(p.b.left, 0);
	assert_int_equal(p.a.deaths, 0);
	assert_true(kernel_has_place(p.b.kernel));
	close_all(&p);
}

TEST(shared, what_stays_costs_all_the_container_and_all_are_told)
{
	struct pair p;
	open_both(&p);
	p.fx.engine->stays = "a process";
	kill_b(&p);
	while (p.b.looked == 0)
		fixture_pass(&p.fx, 500);
	assert_int_equal(p.b.left, E_BUSY);
	while (p.a.deaths == 0)
		fixture_turn(&p.fx);
	assert_int_equal(p.a.death.cause, DEATH_GONE);
	assert_non_null(strstr(p.a.death.text, "another kernel of its container"));
	fixture_turns(&p.fx, 3);
	assert_int_equal(p.fx.engine->removed, 1);
	assert_false(kernel_has_place(p.a.kernel) || kernel_has_place(p.b.kernel));
	p.fx.engine->stays = NULL;
	close_all(&p);
}

TEST(shared, one_that_ended_hears_nothing_of_a_look)
{
	struct pair p;
	open_both(&p);
	kill_b(&p);
	fixture_turns(&p.fx, 1);
	end(&p, &p.b);
	unsigned looked = p.b.looked;
	fixture_pass(&p.fx, 200);
	assert_int_equal(p.b.looked, looked);
	assert_int_equal(p.a.deaths, 0);
	close_all(&p);
}

RUN(TEST_ROW(shared, a_change_is_of_the_line_that_made_it),
	TEST_ROW(shared, each_lays_its_own_folder),
	TEST_ROW(shared, who_gives_up_its_parks_gives_up_no_other_s),
	TEST_ROW(shared, the_time_of_one_is_up_and_the_other_goes_on),
	TEST_ROW(shared, what_stays_costs_all_the_container_and_all_are_told),
	TEST_ROW(shared, one_that_ended_hears_nothing_of_a_look))
