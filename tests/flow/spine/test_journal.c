/* The journal as kernels and clients meet it: memory, file, bounds, a disk that fails. */
#include "tests/lib/spine_fixture.h"

#define LINES 4000

static struct fixture *small_fixture(int64_t memory, int64_t disk)
{
	struct fixture *fx = fixture_new();
	fx->gw.config.journal_memory = memory;
	fx->gw.config.journal_disk = disk;
	assert_int_equal(fixture_start(fx), 0);
	fake_kernel_ready(fx->kernel);
	return fx;
}

static void flood(struct fixture *fx, int from, int to)
{
	char text[128];
	for (int i = from; i < to; i++) {
		(void)snprintf(text, sizeof text, "line %d. %080d", i, i);
		say_stream(fx->kernel, NULL, text);
		if (i % 50 == 0)
			fake_kernel_turn(fx->kernel);
		if (fake_kernel_held(fx->kernel))
			settle(fx);
	}
	fake_kernel_turn(fx->kernel);
	advance(fx, 100);
}

static double figure(struct fixture *fx, const char *name)
{
	cJSON *rows = view(fx, "kernels");
	cJSON *item = cJSON_GetObjectItem(cJSON_GetArrayItem(rows, 0), name);
	double value = cJSON_IsBool(item) ? cJSON_IsTrue(item) : cJSON_GetNumberValue(item);
	cJSON_Delete(rows);
	return value;
}

/* Line numbers rise by one from `from`, however many a message holds; returns the next one that is
 * due. */
static int assert_lines(const struct page *p, size_t at, int from)
{
	for (; at < p->n; at++) {
		struct bytes content = p->got[at]->part[PART_CONTENT];
		AUTO(freep) char *text = strndup((const char *)content.data, content.len);
		bool is_stream = strcmp(p->got[at]->msg_type, "stream") == 0;
		const char *line = is_stream ? strstr(text, "line ") : NULL;
		assert_true(line || !is_stream);
		for (; line; line = strstr(line + 1, "line ")) {
			int number = -1;
			assert_int_equal(sscanf(line, "line %d.", &number), 1);
			assert_int_equal(number, from++);
		}
	}
	return from;
}

TEST(journal, the_kernel_is_told_what_is_in_the_file)
{
	struct fixture *fx = small_fixture(8 << 20, 1 << 30);
	assert_string_equal(fake_kernel_written(fx->kernel, CHANNEL_IOPUB), "");
	say_stream(fx->kernel, NULL, "line 0.");
	fake_kernel_turn(fx->kernel);
	assert_string_equal(fake_kernel_written(fx->kernel, CHANNEL_IOPUB), "");
	advance(fx, 110); /* it is written */
	advance(fx, 900); /* each word costs the kernel: seldom */
	assert_string_equal(fake_kernel_written(fx->kernel, CHANNEL_IOPUB), "");
	advance(fx, 200); /* and told */
	assert_string_not_equal(fake_kernel_written(fx->kernel, CHANNEL_IOPUB), "");
	assert_string_equal(fake_kernel_written(fx->kernel, CHANNEL_SHELL), "");
	fixture_free(fx);
}

TEST(journal, a_slow_page_reads_the_old_part_from_the_file)
{
	struct fixture *fx = small_fixture(64 << 10, 1 << 30);
	struct page *p = page_open(fx, "s1"), *q = page_open(fx, "s2");
	page_pull(p);
	flood(fx, 0, LINES);
	assert_true(figure(fx, "journal_memory_bytes") <= 64 << 10);
	assert_true(figure(fx, "journal_disk_bytes") > LINES * 300);
	page_pull_all(fx, p);
	assert_int_equal(assert_lines(p, 0, 0), LINES);
	page_pull_all(fx, q);
	assert_int_equal(assert_lines(q, 0, 0), LINES);
	for (size_t i = 1; i < p->n; i++)
		assert_true(p->number[i] > p->number[i - 1]);
	flood(fx, LINES, LINES + 10);
	page_pull_all(fx, p);
	assert_int_equal(assert_lines(p, 0, 0), LINES + 10);
	page_leave(p, 0);
	page_leave(q, 0);
	fixture_free(fx);
}

TEST(journal, a_page_that_returns_late_reads_from_the_file)
{
	struct fixture *fx = small_fixture(64 << 10, 1 << 30);
	struct page *p = page_open(fx, "s1");
	for (int i = 0; i < 100; i += 50) {
		flood(fx, i, i + 50);
		page_pull_all(fx, p);
	}
	uint64_t lost = p->number[p->n - 50];
	page_leave(p, lost);
	flood(fx, 100, LINES);
	p = page_open(fx, "s1");
	page_pull_all(fx, p);
	assert_int_equal(assert_lines(p, 0, 50), LINES);
	page_leave(p, 0);
	fixture_free(fx);
}

/* The number of the line that a stream message bears. */
static int line_of(const struct jmsg *m)
{
	int number = -1;
	char *text = strndup((const char *)m->part[PART_CONTENT].data, m->part[PART_CONTENT].len);
	const char *at = strstr(text, "line ");
	assert_non_null(at);
	assert_int_equal(sscanf(at, "line %d.", &number), 1);
	free(text);
	return number;
}

/* A newer socket of the session comes while the older one is read for, and goes back. */
TEST(journal, a_page_replaced_while_it_reads_the_file_misses_nothing)
{
	struct fixture *fx = small_fixture(64 << 10, 1 << 30);
	struct page *p = page_open(fx, "s1");
	flood(fx, 0, LINES);
	for (page_pull(p); p->n < 2; page_pull(p))
		settle(fx);
	assert_true(client_waits(p->client)); /* it has a block; the next is on its way */
	p->undelivered = p->number[1];
	int line = line_of(p->got[1]);
	struct page *q = page_open(fx, "s1");
	assert_true(p->replaced);
	page_pull_all(fx, q);
	assert_int_equal(assert_lines(q, 0, line), LINES);
	page_leave(p, 0);
	page_leave(q, 0);
	fixture_free(fx);
}

TEST(journal, a_page_that_is_closed_far_behind_gets_its_tail)
{
	struct fixture *fx = small_fixture(64 << 10, 1 << 30);
	struct page *p = page_open(fx, "s1");
	flood(fx, 0, LINES);
	desk_end(fx->desk, NULL, NULL, NULL);
	assert_int_equal(p->closed, 1000);
	page_pull(p);
	assert_true(client_waits(p->client));
	page_pull_all(fx, p);
	assert_false(client_waits(p->client));
	assert_int_equal(assert_lines(p, 0, 0), LINES);
	assert_true(holds(p->got[p->n - 1], "dead"));
	page_leave(p, 0);
	fixture_free(fx);
}

static void keep_legacy(struct page *p, size_t bytes)
{
	struct entry *e;
	while (client_next(p->client, &e) == 1) {
		uint8_t *text = calloc(1, JMSG_HEADROOM + bytes);
		entry_keep_legacy(e, (struct bytes){text + JMSG_HEADROOM, bytes}, false);
		entry_unref(e);
	}
}

TEST(journal, legacy_texts_count_towards_its_memory)
{
	struct fixture *fx = small_fixture(64 << 10, 1 << 30);
	struct page *p = page_open(fx, "s1");
	flood(fx, 0, 20);
	double before = figure(fx, "journal_memory_bytes");
	keep_legacy(p, 1000);
	assert_true(figure(fx, "journal_memory_bytes") == before + 20 * 1000);
	flood(fx, 20, 60);
	keep_legacy(p, 1000);
	assert_true(figure(fx, "journal_memory_bytes") <= 64 << 10);
	assert_true(figure(fx, "journal_memory_bytes") > 32 << 10);
	flood(fx, 60, LINES);
	assert_true(figure(fx, "journal_memory_bytes") <= 64 << 10);
	page_leave(p, 0);
	fixture_free(fx);
}

TEST(journal, a_page_may_leave_while_its_block_is_read)
{
	struct fixture *fx = small_fixture(64 << 10, 1 << 30);
	struct page *p = page_open(fx, "s1"), *q = page_open(fx, NULL);
	flood(fx, 0, LINES);
	page_pull(p); /* begins to read */
	page_pull(q);
	page_leave(p, 0);
	page_leave(q, 0);
	fixture_free(fx);
}

TEST(journal, larger_than_a_block_comes_whole)
{
	struct fixture *fx = small_fixture(64 << 10, 1 << 30);
	struct page *p = page_open(fx, "s1");
	size_t size = 3u << 20;
	char *content = malloc(size);
	(void)snprintf(content, size, "{\"name\":\"stdout\",\"text\":\"%0*d\"}", (int)size - 64, 7);
	say_stream(fx->kernel, NULL, "first");
	fake_kernel_say(fx->kernel, CHANNEL_IOPUB, "display_data", NULL, content);
	flood(fx, 0, LINES);
	page_pull_all(fx, p);
	size_t at = page_find(p, 0, "stream", NULL, "first");
	assert_int_equal(p->got[at + 1]->part[PART_CONTENT].len, strlen(content));
	assert_int_equal(assert_lines(p, at + 2, 0), LINES);
	free(content);
	page_leave(p, 0);
	fixture_free(fx);
}

TEST(journal, what_the_disk_bound_cuts_is_said)
{
	struct fixture *fx = small_fixture(64 << 10, 1 << 20);
	struct page *p = page_open(fx, "s1");
	flood(fx, 0, 2 * LINES);
	assert_true(figure(fx, "journal_disk_bytes") <= 1 << 20);
	assert_true(figure(fx, "journal_first") > 100);
	page_pull_all(fx, p);
	size_t at = page_find(p, 0, "stream", NULL, "missing here");
	assert_int_equal(at, 0);
	assert_true(holds(p->got[1], "idle")); /* whatever it had said of it was cut */
	int cut = line_of(p->got[2]);
	assert_true(cut > 100);
	assert_int_equal(assert_lines(p, 2, cut), 2 * LINES);
	char count[64];
	(void)snprintf(count, sizeof count, " %d messages", cut);
	assert_true(holds(p->got[0], count));
	page_leave(p, 0);
	fixture_free(fx);
}

TEST(journal, a_kernel_faster_than_the_disk_is_held)
{
	struct fixture *fx = small_fixture(64 << 10, 1 << 30);
	struct page *p = page_open(fx, "s1");
	char text[128];
	for (int i = 0; i < 1000; i++) {
		(void)snprintf(text, sizeof text, "line %d. %080d", i, i);
		say_stream(fx->kernel, NULL, text);
	}
	assert_true(fake_kernel_held(fx->kernel));
	fake_kernel_turn(fx->kernel);
	settle(fx);
	assert_false(fake_kernel_held(fx->kernel));
	page_pull_all(fx, p);
	assert_int_equal(assert_lines(p, 0, 0), 1000);
	page_leave(p, 0);
	fixture_free(fx);
}

TEST(journal, without_a_disk_memory_stays_bounded_and_cells_end)
{
	struct fixture *fx = small_fixture(64 << 10, 1 << 30);
	char path[256];
	(void)snprintf(path, sizeof path, "%s/journals/%s/live", fx->folder, desk_id(fx->desk));
	assert_int_equal(unlink(path), 0);
	*strrchr(path, '/') = '\0';
	assert_int_equal(rmdir(path), 0);
	*strrchr(path, '/') = '\0';
	assert_int_equal(rmdir(path), 0);
	struct page *p = page_open(fx, "s1"), *q = page_open(fx, "s2");
	flood(fx, 0, LINES);
	assert_true(figure(fx, "journal_failed") == 1);
	assert_true(figure(fx, "journal_memory_bytes") <= 64 << 10);
	assert_false(fake_kernel_held(fx->kernel));
	execute(p, "a");
	kernel_answers(fx, "a", REPLY_OK);
	page_pull_all(fx, p);
	page_find(p, 0, "stream", NULL, "missing here");
	assert_true(page_has_end(p, "a", "execute_reply"));
	page_pull_all(fx, q);
	assert_int_equal(page_count(q, "status", "a", "idle"), 1);
	page_leave(p, 0);
	page_leave(q, 0);
	fixture_free(fx);
}

TEST(journal, a_file_that_is_gone_is_said)
{
	struct fixture *fx = small_fixture(64 << 10, 1 << 30);
	struct page *p = page_open(fx, "s1");
	char path[256];
	flood(fx, 0, LINES);
	(void)snprintf(
		path, sizeof path, "%s/journals/%s/000000.seg", fx->folder, desk_id(fx->desk));
	assert_int_equal(unlink(path), 0);
	page_pull_all(fx, p);
	size_t at = page_find(p, 0, "stream", NULL, "missing here");
	assert_true(p->n > at + 1);
	page_leave(p, 0);
	fixture_free(fx);
}

TEST(journal, works_without_clients)
{
	struct fixture *fx = small_fixture(64 << 10, 1 << 20);
	flood(fx, 0, LINES);
	assert_true(figure(fx, "journal_memory_bytes") <= 64 << 10);
	assert_true(figure(fx, "journal_entries") >= LINES);
	fixture_free(fx);
}

RUN(TEST_ROW(journal, the_kernel_is_told_what_is_in_the_file),
	TEST_ROW(journal, a_slow_page_reads_the_old_part_from_the_file),
	TEST_ROW(journal, a_page_that_returns_late_reads_from_the_file),
	TEST_ROW(journal, a_page_replaced_while_it_reads_the_file_misses_nothing),
	TEST_ROW(journal, a_page_that_is_closed_far_behind_gets_its_tail),
	TEST_ROW(journal, legacy_texts_count_towards_its_memory),
	TEST_ROW(journal, a_page_may_leave_while_its_block_is_read),
	TEST_ROW(journal, larger_than_a_block_comes_whole),
	TEST_ROW(journal, what_the_disk_bound_cuts_is_said),
	TEST_ROW(journal, a_kernel_faster_than_the_disk_is_held),
	TEST_ROW(journal, without_a_disk_memory_stays_bounded_and_cells_end),
	TEST_ROW(journal, a_file_that_is_gone_is_said), TEST_ROW(journal, works_without_clients))
