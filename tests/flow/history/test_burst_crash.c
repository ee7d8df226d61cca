/* A batch that becomes a pack, failed and killed at each of its steps and at each call it makes. */
#include <sys/mman.h>

#include "tests/lib/failing_disk.h"
#include "tests/lib/pack_fixture.h"

#define FINE ",\"silent\":false,\"store_history\":true"
#define LONG 3600000u

enum { PACKED = 8, LOOSE = 2, RUNS = PACKED + LOOSE }; /* runs of k1, which are a pack, and of k2 */

/* What a child that is killed tells. */
struct seen {
	unsigned n_told;
	struct tape *told[RUNS]; /* its own, which are the parent's too */
};

static unsigned steps, step_at;

static int at_counted_step(void *data, enum record_step step)
{
	(void)at_step(data, step);
	if (++steps != step_at)
		return 0;
	if (kills)
		(void)kill(getpid(), SIGKILL);
	return -1;
}

struct scene {
	struct hfix *fx;
	struct tape *t[RUNS];
};

static const char *kernel_of(unsigned i)
{
	return i % 5 == 4 ? "k2" : "k1";
}

/* One whose content is not kept: its text is written with the batch. */
static void end_with_file(struct tape *t)
{
	char facts[256];
	(void)snprintf(facts, sizeof facts,
		",\"files\":{\"changed\":[{\"path\":\"d/%s\",\"mode\":\"100644\",\"bytes\":7,"
		"\"lost\":\"changed while being read\"}]}",
		t->msg_id);
	tape_end(t, "ok", 1, facts);
}

static void make_scene(struct scene *s)
{
	s->fx = hfix_make();
	s->fx->keeping = (struct history_keeping){1000000, LONG, 20};
	s->fx->hook = (struct record_hook){at_counted_step, NULL};
	for (unsigned i = 0; i < RUNS; i++) {
		char id[16];
		(void)snprintf(id, sizeof id, "m%02u", i);
		s->t[i] = tape_new(s->fx, id, id, FINE);
		tape_stream(s->t[i], "stdout", id);
		end_with_file(s->t[i]);
	}
}

static void hand_over_scene(struct scene *s)
{
	for (unsigned i = 0; i < RUNS; i++) {
		if (s->t[i]->told && s->t[i]->status == 0)
			continue;
		s->t[i]->closed = 0;
		assert_int_equal(hand_over_to(s->fx, s->t[i], HISTORY_A, kernel_of(i), 1), 0);
	}
}

/* All in one batch. */
static void record_scene(struct scene *s)
{
	hfix_gather(s->fx);
	hfix_open(s->fx);
	hand_over_scene(s);
	hfix_close(s->fx);
}

static bool is_whole(const struct scene *s)
{
	for (unsigned i = 0; i < RUNS; i++)
		if (!s->t[i]->told || s->t[i]->status != 0)
			return false;
	return true;
}

static size_t count_lines(const struct scene *s, const char *command)
{
	char *out = git(s->fx, HISTORY_A, command);
	size_t n = 0;
	for (const char *at = out; (at = strchr(at, '\n')); at++)
		n++;
	free(out);
	return n;
}

/* Once each, however often it was handed over. */
static void assert_once(struct scene *s, bool with_fsck)
{
	struct history_question q = {.what = HISTORY_ONE, .history = HISTORY_A, .limit = 1000};
	char *log = git(s->fx, HISTORY_A, "log --format=%s --all");
	assert_int_equal(count_lines(s, "log --format=%s --all"), RUNS + 1);
	for (unsigned i = 0; i < RUNS; i++) {
		const char *at = strstr(log, s->t[i]->msg_id);
		if (!at)
			fail_msg("%s is lost", s->t[i]->msg_id);
		assert_null(strstr(at + 1, s->t[i]->msg_id));
	}
	free(log);
	/* Whose kernel's line is the first depends on what failed. */
	assert_int_equal(count_lines(s, "ls-tree -r --name-only main files/") +
				 count_lines(s, "ls-tree -r --name-only main.2 files/"),
		RUNS);
	hfix_open(s->fx);
	cJSON *tree = ask_tree(s->fx, &q);
	assert_int_equal(cJSON_GetArraySize(cJSON_GetObjectItem(tree, "nodes")), RUNS + 1);
	cJSON_Delete(tree);
	hfix_close(s->fx);
	if (with_fsck)
		assert_sound(s->fx, HISTORY_A);
}

/* ---- what fails ---- */

static bool live(unsigned step, unsigned call)
{
	struct scene s;
	make_scene(&s);
	steps = calls = 0;
	step_at = step;
	fails_at = call;
	record_scene(&s);
	bool met = step ? steps >= step : calls >= call;
	step_at = fails_at = 0;
	for (int round = 0; !is_whole(&s); round++) {
		assert_true(round < 4);
		record_scene(&s);
	}
	assert_once(&s, !met || (step + call) % 4 == 0);
	hfix_free(s.fx);
	return met;
}

TEST(burst_crash, whatever_step_fails_all_is_recorded_once_when_tried_again)
{
	unsigned nth = 1;
	kills = stays_full = false;
	while (live(nth, 0))
		nth++;
	assert_true(nth > 3 * RUNS);
}

TEST(burst_crash, one_call_that_fails_loses_nothing)
{
	unsigned nth = 1;
	kills = stays_full = false;
	while (live(0, nth))
		nth++;
	print_message("%u calls\n", nth - 1);
	assert_true(nth > 40);
}

TEST(burst_crash, a_disk_that_is_full_from_one_call_on_loses_nothing)
{
	unsigned nth = 1;
	kills = false;
	stays_full = true;
	while (live(0, nth))
		nth++;
	assert_true(nth > 40);
}

/* ---- killed ---- */

static void told_in_child(void *data, const struct history_recorded *recorded)
{
	struct seen *seen = data;
	assert_int_equal(recorded->status, 0);
	seen->told[seen->n_told++] = recorded->run_data;
}

static void child(struct scene *s, struct seen *seen)
{
	struct hfix *fx = s->fx;
	struct histories_setup setup = {.loop = &fx->loop,
		.clock = fx->clock,
		.folder = fx->folder,
		.on_recorded = told_in_child,
		.data = seen,
		.gather_ms = LONG,
		.gather_most_ms = LONG};
	if (histories_open_hooked(&setup, &fx->hook, &fx->h, NULL) != 0)
		_exit(3);
	hand_over_scene(s);
	hfix_close(fx);
	_exit(0);
}

static void assert_told_are_there(struct scene *s, const struct seen *seen)
{
	if (seen->n_told == 0)
		return;
	char *log = git(s->fx, HISTORY_A, "log --format=%s --all");
	for (unsigned i = 0; i < seen->n_told; i++)
		if (!strstr(log, seen->told[i]->msg_id))
			fail_msg("%s was told and is lost", seen->told[i]->msg_id);
	free(log);
}

static bool die_at(struct seen *seen, unsigned step, unsigned call)
{
	struct scene s;
	int status;
	make_scene(&s);
	*seen = (struct seen){0};
	steps = calls = 0;
	step_at = step;
	fails_at = call;
	pid_t pid = fork();
	assert_true(pid >= 0);
	if (pid == 0)
		child(&s, seen);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	step_at = fails_at = 0;
	bool met = WIFSIGNALED(status);
	assert_true(met ? WTERMSIG(status) == SIGKILL : WEXITSTATUS(status) == 0);
	assert_told_are_there(&s, seen);
	record_scene(&s);
	assert_true(is_whole(&s));
	assert_once(&s, !met || (step + call) % 4 == 0);
	char line[256];
	(void)snprintf(line, sizeof line,
		"test -z \"$(find '%s' -name 'tmp_*' -o -name '*.lock')\"", s.fx->folder);
	shell(line);
	hfix_free(s.fx);
	return met;
}

static struct seen *shared_seen(void)
{
	struct seen *seen =
		mmap(NULL, sizeof *seen, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	assert_ptr_not_equal(seen, MAP_FAILED);
	return seen;
}

TEST(burst_crash, killed_at_any_step_nothing_is_lost_or_doubled)
{
	struct seen *seen = shared_seen();
	unsigned nth = 1;
	kills = true;
	while (die_at(seen, nth, 0))
		nth++;
	assert_true(nth > 3 * RUNS);
	assert_int_equal(munmap(seen, sizeof *seen), 0);
}

TEST(burst_crash, killed_at_any_call_nothing_is_lost_or_doubled)
{
	struct seen *seen = shared_seen();
	unsigned nth = 1;
	kills = true;
	while (die_at(seen, 0, nth))
		nth++;
	assert_true(nth > 40);
	assert_int_equal(munmap(seen, sizeof *seen), 0);
}

RUN(TEST_ROW(burst_crash, whatever_step_fails_all_is_recorded_once_when_tried_again),
	TEST_ROW(burst_crash, one_call_that_fails_loses_nothing),
	TEST_ROW(burst_crash, a_disk_that_is_full_from_one_call_on_loses_nothing),
	TEST_ROW(burst_crash, killed_at_any_step_nothing_is_lost_or_doubled),
	TEST_ROW(burst_crash, killed_at_any_call_nothing_is_lost_or_doubled))
