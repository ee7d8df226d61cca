/* A journal that is left is taken up again: numbers go on, a torn record is cut off. */
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>
#include <uv.h>

#include "gateway/base/crypto.h"
#include "gateway/spine/journal.h"
#include "tests/lib/test.h"

struct fixture {
	uv_loop_t loop;
	struct clock *clock;
	char folder[64], segment[96];
	struct journal *journal;
	bool closed;
	uint64_t kept, last_kept, kept_for;
};

static void on_pressure(void *data, bool over)
{
	(void)data, (void)over;
}

static void on_kept(void *data, struct bytes frame, uint64_t number, uint64_t to)
{
	struct fixture *fx = data;
	struct jmsg *m;
	assert_int_equal(jmsg_from_frame(frame, &m, NULL), 0);
	jmsg_unref(m);
	fx->kept++;
	fx->last_kept = number;
	fx->kept_for = to;
}

static void on_trouble(void *data, const char *text)
{
	(void)data;
	fail_msg("%s", text);
}

static void open_it(struct fixture *fx, bool goes_on)
{
	struct journal_setup setup = {.loop = &fx->loop,
		.clock = fx->clock,
		.folder = fx->folder,
		.goes_on = goes_on,
		.memory_max = 1 << 20,
		.disk_max = 64 << 20,
		.on_kept = on_kept,
		.on_pressure = on_pressure,
		.on_trouble = on_trouble,
		.data = fx};
	assert_int_equal(journal_open(&setup, &fx->journal, NULL), 0);
}

static void setup(struct fixture *fx)
{
	memset(fx, 0, sizeof *fx);
	assert_int_equal(crypto_init(NULL), 0);
	assert_int_equal(uv_loop_init(&fx->loop), 0);
	fx->clock = clock_new(&fx->loop);
	(void)snprintf(fx->folder, sizeof fx->folder, "/tmp/coppice-restore-XXXXXX");
	assert_non_null(mkdtemp(fx->folder));
	(void)snprintf(fx->segment, sizeof fx->segment, "%s/000000.seg", fx->folder);
	open_it(fx, false);
}

static void on_closed(void *data)
{
	((struct fixture *)data)->closed = true;
}

static void run(struct fixture *fx)
{
	while (!fx->closed)
		(void)uv_run(&fx->loop, UV_RUN_ONCE);
	fx->closed = false;
}

static void leave(struct fixture *fx)
{
	journal_leave(fx->journal, on_closed, fx);
	run(fx);
}

static void teardown(struct fixture *fx)
{
	journal_close(fx->journal, on_closed, fx);
	run(fx);
	assert_int_equal(access(fx->folder, F_OK), -1);
	clock_close(fx->clock, NULL, NULL);
	assert_int_equal(uv_run(&fx->loop, UV_RUN_DEFAULT), 0);
	assert_int_equal(uv_loop_close(&fx->loop), 0);
}

static void say_content(struct fixture *fx, uint64_t to, uint64_t expected, const char *content)
{
	struct jmsg *m;
	uint64_t number = 0;
	assert_int_equal(jmsg_make(CHANNEL_IOPUB, "stream", "s", NULL, content, &m, NULL), 0);
	assert_int_equal(journal_append(fx->journal, m, to, &number, NULL), 0);
	assert_int_equal(number, expected);
	jmsg_unref(m);
}

static void say(struct fixture *fx, uint64_t to, uint64_t expected)
{
	say_content(fx, to, expected, "{}");
}

static void on_ready(void *data)
{
	*(bool *)data = true;
}

static void assert_entry(struct fixture *fx, uint64_t number, uint64_t to)
{
	struct cursor c;
	struct entry *e = NULL;
	uint64_t missed = 0;
	bool ready = false;
	cursor_init(&c, fx->journal, number);
	c.on_ready = on_ready;
	c.data = &ready;
	while (cursor_next(&c, &missed, &e) == 0)
		(void)uv_run(&fx->loop, UV_RUN_ONCE);
	assert_int_equal(missed, 0);
	assert_int_equal(e->number, number);
	assert_int_equal(e->to, to);
	entry_unref(e);
	cursor_done(&c);
}

TEST(journal_restore, numbers_go_on)
{
	struct fixture fx;
	setup(&fx);
	for (uint64_t i = 1; i <= 5; i++)
		say(&fx, i, i);
	leave(&fx);
	open_it(&fx, true);
	assert_int_equal(journal_first(fx.journal), 1);
	assert_int_equal(journal_next(fx.journal), 6);
	assert_entry(&fx, 3, 3);
	say(&fx, 9, 6);
	leave(&fx);
	open_it(&fx, true);
	assert_int_equal(journal_next(fx.journal), 7);
	assert_entry(&fx, 5, 5);
	assert_entry(&fx, 6, 9);
	teardown(&fx);
}

TEST(journal_restore, a_torn_record_is_cut_off)
{
	struct fixture fx;
	setup(&fx);
	for (uint64_t i = 1; i <= 3; i++)
		say(&fx, 0, i);
	leave(&fx);
	int fd = open(fx.segment, O_RDWR | O_CLOEXEC);
	off_t size = lseek(fd, 0, SEEK_END);
	assert_int_equal(ftruncate(fd, size - 7), 0);
	(void)close(fd);
	open_it(&fx, true);
	assert_int_equal(journal_next(fx.journal), 3);
	say(&fx, 4, 3);
	assert_entry(&fx, 2, 0);
	assert_entry(&fx, 3, 4);
	teardown(&fx);
}

TEST(journal_restore, entries_for_one_client_are_told)
{
	struct fixture fx;
	setup(&fx);
	say(&fx, JOURNAL_TO_ALL, 1);
	say(&fx, 7, 2);
	say(&fx, JOURNAL_TO_NOBODY, 3);
	leave(&fx);
	open_it(&fx, true);
	assert_int_equal(fx.kept, 1);
	assert_int_equal(fx.last_kept, 2);
	assert_int_equal(fx.kept_for, 7);
	teardown(&fx);
}

/* Not all of a long journal: each costs the start something. */
TEST(journal_restore, the_newest_are_told)
{
	struct fixture fx;
	setup(&fx);
	char *content = malloc((1 << 20) + 1);
	memset(content, ' ', 1 << 20);
	(void)snprintf(content + (1 << 20) - 2, 3, "{}");
	for (uint64_t i = 1; i <= 60; i++) {
		say_content(&fx, 7, i, content);
		if (i % 10 > 0)
			continue;
		fx.kept = 0;
		leave(&fx); /* each begins another segment */
		open_it(&fx, true);
	}
	assert_int_equal(fx.last_kept, 60);
	assert_int_equal(fx.kept, 40);
	free(content);
	teardown(&fx);
}

TEST(journal_restore, nothing_there_begins_at_one)
{
	struct fixture fx;
	setup(&fx);
	leave(&fx);
	open_it(&fx, true);
	assert_int_equal(journal_next(fx.journal), 1);
	say(&fx, 0, 1);
	teardown(&fx);
}

RUN(TEST_ROW(journal_restore, numbers_go_on), TEST_ROW(journal_restore, a_torn_record_is_cut_off),
	TEST_ROW(journal_restore, entries_for_one_client_are_told),
	TEST_ROW(journal_restore, the_newest_are_told),
	TEST_ROW(journal_restore, nothing_there_begins_at_one))
