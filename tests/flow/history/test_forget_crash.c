/* Forgetting that fails or is killed at each of its steps: the node is there whole, or it is gone
 * once the next one has gone on. */
#include <signal.h>
#include <sys/mman.h>

#include "tests/lib/forget_fixture.h"

/* Counts the steps of forgetting, fails or kills at one. Shared with the child that dies. */
struct steps {
	unsigned n, at;
	bool kills;
};

static int at_step(void *data, enum record_step step)
{
	struct steps *s = data;
	if (step != STEP_FORGET || ++s->n != s->at)
		return 0;
	if (s->kills)
		(void)kill(getpid(), SIGKILL);
	return -1;
}

/* A second branch that holds the node: between the two of them is a step. */
static void make_side(struct hfix *fx, const struct story *story)
{
	char command[128];
	(void)snprintf(
		command, sizeof command, "update-ref refs/heads/side %s", story->later->node);
	free(git(fx, HISTORY_A, command));
	hfix_reopen(fx);
}

static void assert_all_forgotten(struct hfix *fx)
{
	assert_forgotten(fx);
	assert_git(fx, HISTORY_A, "log --format=%s side", "b = 2\n(forgotten)\na = 1\nBegin\n");
	assert_git(fx, HISTORY_A, "merge-base --is-ancestor side main", "");
}

/* Between two of the first failure's halves, and after it, the rest of the history goes on. */
static bool fails_at(unsigned nth, bool packed)
{
	struct steps s = {.at = nth};
	struct hfix *fx = hfix_make();
	struct story story;
	struct forgot g = {0};
	fx->hook = (struct record_hook){at_step, &s};
	hfix_open(fx);
	record_story(fx, &story);
	make_side(fx, &story);
	if (packed)
		free(git(fx, HISTORY_A, "gc -q"));
	if (forget(fx, &g, story.secret->node) != 0) {
		assert_sound(fx, HISTORY_A);
		cJSON *tree = ask_node(fx, story.last->node);
		assert_string_equal(text_at(tree, "code"), "c = 3");
		cJSON_Delete(tree);
		forget_fine(fx, &g, story.secret->node);
	}
	assert_all_forgotten(fx);
	free(g.json);
	hfix_free(fx);
	return s.n >= nth;
}

TEST(forget_crash, whatever_step_fails_it_is_done_when_asked_again)
{
	unsigned nth = 1;
	while (fails_at(nth, nth % 2 == 0))
		nth++;
	assert_true(nth > 9);
}

static void child(struct hfix *fx, const char *node)
{
	struct forgot g = {0};
	hfix_open(fx);
	(void)forget(fx, &g, node);
	(void)kill(getpid(), SIGKILL);
}

static void die(struct hfix *fx, struct steps *s, const char *node)
{
	fx->hook = (struct record_hook){at_step, s};
	pid_t pid = fork();
	assert_true(pid >= 0);
	if (pid == 0)
		child(fx, node);
	int status;
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
	fx->hook = (struct record_hook){0};
}

struct left {
	unsigned n;
	char history[64], node[HISTORY_NODE_SIZE];
};

static void on_left(void *data, const char *history, const char *node)
{
	struct left *left = data;
	left->n++;
	(void)snprintf(left->history, sizeof left->history, "%s", history);
	(void)snprintf(left->node, sizeof left->node, "%s", node);
}

static bool killed_at(unsigned nth, bool packed)
{
	struct hfix *fx = hfix_new();
	struct story story;
	struct forgot g = {0};
	struct left left = {0};
	struct steps *s =
		mmap(NULL, sizeof *s, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	assert_ptr_not_equal(s, MAP_FAILED);
	*s = (struct steps){.at = nth, .kills = true};
	record_story(fx, &story);
	make_side(fx, &story);
	if (packed)
		free(git(fx, HISTORY_A, "gc -q"));
	hfix_close(fx);
	die(fx, s, story.secret->node);
	bool met = s->n >= nth;
	hfix_open(fx);
	assert_sound(fx, HISTORY_A);
	assert_int_equal(histories_unfinished(fx->h, on_left, &left, NULL), 0);
	if (left.n == 0 && nth == 1) { /* nothing was begun */
		assert_code(fx, story.secret->node, "key = '" SECRET "'\nprint(key)", NULL, SECRET);
		forget_fine(fx, &g, story.secret->node);
	} else if (met) {
		assert_int_equal(left.n, 1);
		assert_string_equal(left.history, HISTORY_A);
		assert_string_equal(left.node, story.secret->node);
		forget_fine(fx, &g, left.node);
	}
	assert_all_forgotten(fx);
	left.n = 0;
	assert_int_equal(histories_unfinished(fx->h, on_left, &left, NULL), 0);
	assert_int_equal(left.n, 0);
	free(g.json);
	hfix_free(fx);
	assert_int_equal(munmap(s, sizeof *s), 0);
	return met;
}

TEST(forget_crash, whatever_step_kills_the_next_one_goes_on)
{
	unsigned nth = 1;
	while (killed_at(nth, nth % 2 == 0))
		nth++;
	assert_true(nth > 9);
}

/* The other rooms did not come to it: it is as if it had been killed there. */
TEST(forget_crash, what_is_left_after_the_first_half_is_found_again)
{
	struct hfix *fx = hfix_new();
	struct story story;
	struct forgot g = {.leaves = true};
	struct left left = {0};
	record_story(fx, &story);
	(void)forget(fx, &g, story.secret->node);
	hfix_reopen(fx);
	assert_int_equal(histories_unfinished(fx->h, on_left, &left, NULL), 0);
	assert_int_equal(left.n, 1);
	g.leaves = false;
	forget_fine(fx, &g, left.node);
	assert_forgotten(fx);
	free(g.json);
	hfix_free(fx);
}

RUN(TEST_ROW(forget_crash, whatever_step_fails_it_is_done_when_asked_again),
	TEST_ROW(forget_crash, whatever_step_kills_the_next_one_goes_on),
	TEST_ROW(forget_crash, what_is_left_after_the_first_half_is_found_again))
