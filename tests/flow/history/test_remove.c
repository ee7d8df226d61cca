/* gc and removal, beside a recorder that goes on. */
#include <signal.h>

#include "tests/lib/pack_fixture.h"

#define LONG 3600000u

static struct hfix *open_quiet(void)
{
	struct hfix *fx = hfix_make();
	fx->keeping = (struct history_keeping){1000000, LONG, 20};
	hfix_open(fx);
	return fx;
}

static int order(struct hfix *fx,
	void (*what)(struct histories *, const char *,
		void (*)(void *, int, struct bytes, const struct err *), void *),
	const char *id)
{
	fx->answered = false;
	what(fx->h, id, on_answer, fx);
	assert_false(fx->answered);
	AWAIT(fx, fx->answered);
	return fx->status;
}

static double number_in(const char *json, const char *key)
{
	cJSON *tree = cJSON_Parse(json);
	double number = cJSON_GetNumberValue(cJSON_GetObjectItem(tree, key));
	cJSON_Delete(tree);
	return number;
}

static int look(struct hfix *fx, const char *history)
{
	struct history_question q = {.what = HISTORY_ONE, .history = history};
	return ask(fx, &q);
}

TEST(remove, gc_frees_and_changes_nothing)
{
	struct hfix *fx = open_quiet();
	record_each(fx, 0, 100);
	assert_int_equal(look(fx, HISTORY_A), 0);
	char *before = strdup(fx->json);
	assert_int_equal(order(fx, history_gc, HISTORY_A), 0);
	assert_true(number_in(fx->json, "freed_bytes") > 100 * 4096);
	assert_true(number_in(fx->json, "bytes") < 100 * 4096);
	assert_int_equal(packs(fx), 1);
	assert_int_equal(look(fx, HISTORY_A), 0);
	assert_string_equal(fx->json, before);
	free(before);
	record_some(fx, 100, 3);
	assert_int_equal(order(fx, history_gc, HISTORY_A), 0);
	assert_git(fx, HISTORY_A, "rev-list --count --all", "104\n");
	assert_sound(fx, HISTORY_A);
	assert_int_equal(order(fx, history_gc, HISTORY_B), E_NOT_FOUND);
	assert_int_equal(order(fx, history_gc, "../" HISTORY_A), E_NOT_FOUND);
	hfix_free(fx);
}

TEST(remove, gc_drops_what_nothing_leads_to_once_it_is_old)
{
	struct hfix *fx = open_quiet();
	char line[512];
	record_some(fx, 0, 5);
	(void)snprintf(line, sizeof line,
		"cd '%s/" HISTORY_A ".git' && echo old | git hash-object -w --stdin > ../old &&"
		" echo young | git hash-object -w --stdin > ../young && o=$(cat ../old) &&"
		" touch -d '2 hours ago' objects/$(echo $o | cut -c 1-2)/$(echo $o | cut -c 3-)",
		fx->folder);
	shell(line);
	assert_int_equal(order(fx, history_gc, HISTORY_A), 0);
	(void)snprintf(line, sizeof line,
		"cd '%s/" HISTORY_A ".git' && ! git cat-file -e $(cat ../old) 2>/dev/null &&"
		" git cat-file -e $(cat ../young)",
		fx->folder);
	shell(line);
	assert_sound(fx, HISTORY_A);
	hfix_free(fx);
}

/* An old object that nothing leads to is written again by a run: it is young then. */
TEST(remove, gc_keeps_what_is_being_recorded)
{
	struct hfix *fx = open_quiet();
	char line[512];
	record_some(fx, 0, 3);
	(void)snprintf(line, sizeof line,
		"cd '%s/" HISTORY_A
		".git' && printf again | git hash-object -w --stdin > ../again &&"
		" git repack -q -a -d -k && find objects -type f | xargs touch -d '2 hours ago'",
		fx->folder);
	shell(line);
	struct tape *t = record_cell(fx, "m9", "again", NULL);
	await_fine(fx, t);
	assert_int_equal(order(fx, history_gc, HISTORY_A), 0);
	assert_git(fx, HISTORY_A, "show main:runs/00/00/04/code.py", "again");
	assert_sound(fx, HISTORY_A);
	hfix_free(fx);
}

/* A clock that was put back: all that lies there is of tomorrow. */
TEST(remove, gc_after_a_clock_that_went_back)
{
	struct hfix *fx = open_quiet();
	char line[512];
	record_some(fx, 0, 20);
	(void)snprintf(line, sizeof line,
		"cd '%s/" HISTORY_A ".git' && echo odd | git hash-object -w --stdin > ../odd &&"
		" find objects -type f | xargs touch -d tomorrow",
		fx->folder);
	shell(line);
	for (unsigned round = 0; round < 2; round++) {
		record_some(fx, 20 + round, 1);
		assert_int_equal(order(fx, history_gc, HISTORY_A), 0);
		AWAIT(fx, packs(fx) == 1);
	}
	assert_git(fx, HISTORY_A, "rev-list --count --all", "23\n");
	(void)snprintf(line, sizeof line,
		"cd '%s/" HISTORY_A ".git' && git cat-file -e $(cat ../odd)", fx->folder);
	shell(line);
	assert_sound(fx, HISTORY_A);
	hfix_free(fx);
}

TEST(remove, nothing_of_it_is_left)
{
	struct hfix *fx = open_quiet();
	record_each(fx, 0, 60);
	struct tape *t = tape_new(fx, "n0", "n0", ",\"silent\":false,\"store_history\":true");
	tape_end(t, "ok", 1, "");
	assert_int_equal(hand_over_to(fx, t, HISTORY_B, "k2", 1), 0);
	await_fine(fx, t);
	assert_int_equal(order(fx, history_remove, HISTORY_A), 0);
	assert_true(number_in(fx->json, "freed_bytes") > 60 * 4096);
	assert_int_equal(look(fx, HISTORY_A), E_NOT_FOUND);
	assert_int_equal(look(fx, HISTORY_B), 0);
	assert_false(is_there(fx, HISTORY_A ".git") || is_there(fx, HISTORY_A ".git.gone"));
	assert_int_equal(order(fx, history_remove, HISTORY_A), E_NOT_FOUND);
	/* Another of the same id begins anew; the state's version of the kernel goes on. */
	t = record_cell(fx, "m0", "again", NULL);
	await_fine(fx, t);
	assert_int_equal(t->state_version, 61);
	assert_string_equal(t->branch, "main");
	assert_git(fx, HISTORY_A, "log --format=%s --all", "again\nBegin\n");
	assert_sound(fx, HISTORY_A);
	hfix_reopen(fx);
	assert_int_equal(look(fx, HISTORY_A), 0);
	hfix_free(fx);
}

/* More rows than go at once, and the same id is there again before they are gone. */
TEST(remove, many_rows_go_bit_by_bit)
{
	struct hfix *fx = open_quiet();
	record_some(fx, 0, 5000);
	assert_int_equal(order(fx, history_remove, HISTORY_A), 0);
	hfix_forget_tapes(fx);
	record_some(fx, 0, 3);
	assert_git(fx, HISTORY_A, "rev-list --count --all", "4\n");
	struct history_question q = {.what = HISTORY_ONE, .history = HISTORY_A};
	cJSON *tree = ask_tree(fx, &q);
	assert_int_equal(cJSON_GetArraySize(cJSON_GetObjectItem(tree, "nodes")), 4);
	cJSON_Delete(tree);
	hfix_free(fx);
}

static bool is_found(struct hfix *fx, const char *text)
{
	char command[256];
	(void)snprintf(command, sizeof command, "grep -rqaF '%s' '%s'", text, fx->folder);
	int status = system(command);
	assert_true(WIFEXITED(status) && WEXITSTATUS(status) <= 1);
	return WEXITSTATUS(status) == 0;
}

/* Runs of two histories in turns, so that their rows share pages, which grow and are divided. */
static void record_both(struct hfix *fx, const char *secret)
{
	struct tape *last = NULL;
	for (unsigned i = 0; i < 400; i++) {
		char id[16], code[200];
		(void)snprintf(id, sizeof id, "%c%u", i % 2 ? 'b' : 'a', i);
		(void)snprintf(code, sizeof code, "key = '%s %0*u'", i % 2 ? "of b" : secret,
			(int)(i * 37 % 40), i);
		last = tape_new(fx, id, code, ",\"silent\":false,\"store_history\":true");
		tape_end(last, "ok", 1, "");
		assert_int_equal(hand_over_to(fx, last, i % 2 ? HISTORY_B : HISTORY_A,
					 i % 2 ? "k2" : "k1", 1),
			0);
	}
	await_fine(fx, last);
}

/* Removed rows stay in the pages that they were in, and in the log before the file. */
TEST(remove, no_text_of_it_is_left_in_the_index)
{
	struct hfix *fx = open_quiet();
	record_both(fx, "sk-4f1d9c77e0");
	assert_true(is_found(fx, "sk-4f1d9c77e0"));
	assert_int_equal(order(fx, history_remove, HISTORY_A), 0);
	AWAIT(fx, !is_found(fx, "sk-4f1d9c77e0"));
	assert_true(is_found(fx, "of b"));
	assert_int_equal(look(fx, HISTORY_B), 0);
	record_some(fx, 0, 3);
	hfix_reopen(fx);
	assert_int_equal(look(fx, HISTORY_A), 0);
	hfix_free(fx);
}

static int dies_untidy(void *data, enum record_step step)
{
	(void)data;
	if (step == STEP_TIDY)
		(void)kill(getpid(), SIGKILL);
	return 0;
}

/* Rows are gone by then, and the log before the file still has them. */
TEST(remove, what_a_killed_process_leaves_of_it_the_next_one_removes)
{
	struct hfix *fx = hfix_make();
	int status;
	fx->keeping = (struct history_keeping){1000000, LONG, 20};
	pid_t pid = fork();
	assert_true(pid >= 0);
	if (pid == 0) {
		fx->hook = (struct record_hook){dies_untidy, NULL};
		hfix_open(fx);
		record_both(fx, "sk-4f1d9c77e0");
		(void)order(fx, history_remove, HISTORY_A);
		AWAIT(fx, false);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
	assert_true(is_found(fx, "sk-4f1d9c77e0"));
	hfix_open(fx);
	AWAIT(fx, !is_found(fx, "sk-4f1d9c77e0"));
	assert_int_equal(look(fx, HISTORY_A), E_NOT_FOUND);
	assert_int_equal(look(fx, HISTORY_B), 0);
	hfix_free(fx);
}

struct gate {
	bool shut, met;
};

static int at_gate(void *data, enum record_step step)
{
	struct gate *gate = data;
	if (step != STEP_SYNC)
		return 0;
	__atomic_store_n(&gate->met, true, __ATOMIC_RELEASE); /* the other side is another thread */
	while (__atomic_load_n(&gate->shut, __ATOMIC_ACQUIRE))
		(void)sched_yield();
	return 0;
}

static bool wished(struct hfix *fx)
{
	pthread_mutex_lock(&fx->h->lock);
	bool is = !list_empty(&fx->h->wishes);
	pthread_mutex_unlock(&fx->h->lock);
	return is;
}

TEST(remove, not_while_runs_wait_for_it)
{
	struct hfix *fx = hfix_make();
	struct gate gate = {0};
	fx->hook = (struct record_hook){at_gate, &gate};
	hfix_open(fx);
	record_some(fx, 0, 1);
	gate.met = false;
	__atomic_store_n(&gate.shut, true, __ATOMIC_RELEASE);
	struct tape *a = record_cell(fx, "a", "a", NULL);
	AWAIT(fx, __atomic_load_n(&gate.met, __ATOMIC_ACQUIRE));
	struct tape *b = record_cell(fx, "b", "b", NULL);
	fx->answered = false;
	history_remove(fx->h, HISTORY_A, on_answer, fx);
	AWAIT(fx, wished(fx));
	__atomic_store_n(&gate.shut, false, __ATOMIC_RELEASE);
	AWAIT(fx, fx->answered);
	assert_int_equal(fx->status, E_BUSY);
	await_fine(fx, a);
	await_fine(fx, b);
	assert_sound(fx, HISTORY_A);
	assert_int_equal(order(fx, history_remove, HISTORY_A), 0);
	hfix_free(fx);
}

TEST(remove, killed_amid_it_the_next_start_goes_on)
{
	static const char *const harms[] = {
		"mv " HISTORY_A ".git " HISTORY_A ".git.gone", "rm -rf " HISTORY_A ".git"};
	for (size_t i = 0; i < ARRAY_LEN(harms); i++) {
		struct hfix *fx = open_quiet();
		char line[256];
		record_some(fx, 0, 3);
		hfix_close(fx);
		(void)snprintf(line, sizeof line, "cd '%s' && %s", fx->folder, harms[i]);
		shell(line);
		hfix_open(fx);
		assert_int_equal(look(fx, HISTORY_A), E_NOT_FOUND);
		assert_false(is_there(fx, HISTORY_A ".git.gone"));
		record_some(fx, 0, 2);
		assert_git(fx, HISTORY_A, "rev-list --count --all", "3\n");
		hfix_free(fx);
	}
}

TEST(remove, not_what_is_being_copied)
{
	struct hfix *fx = open_quiet();
	int lock = -1;
	record_some(fx, 0, 3);
	assert_int_equal(pack_lock(path_in(fx, ""), false, &lock, NULL), 0);
	assert_int_equal(order(fx, history_remove, HISTORY_A), E_BUSY);
	assert_int_equal(order(fx, history_gc, HISTORY_A), E_BUSY);
	assert_int_equal(close(lock), 0);
	assert_int_equal(order(fx, history_remove, HISTORY_A), 0);
	hfix_free(fx);
}

TEST(remove, what_is_asked_at_the_end_is_answered)
{
	struct hfix *fx = open_quiet();
	record_some(fx, 0, 3);
	fx->answered = false;
	hold_git(fx);
	history_gc(fx->h, HISTORY_A, on_answer, fx);
	AWAIT(fx, is_there(fx, "began"));
	hfix_close(fx);
	unhold_git(fx);
	assert_true(fx->answered);
	assert_int_equal(fx->status, E_UNAVAILABLE);
	hfix_free(fx);
}

RUN(TEST_ROW(remove, gc_frees_and_changes_nothing),
	TEST_ROW(remove, gc_drops_what_nothing_leads_to_once_it_is_old),
	TEST_ROW(remove, gc_keeps_what_is_being_recorded),
	TEST_ROW(remove, gc_after_a_clock_that_went_back), TEST_ROW(remove, nothing_of_it_is_left),
	TEST_ROW(remove, many_rows_go_bit_by_bit),
	TEST_ROW(remove, no_text_of_it_is_left_in_the_index),
	TEST_ROW(remove, what_a_killed_process_leaves_of_it_the_next_one_removes),
	TEST_ROW(remove, not_while_runs_wait_for_it),
	TEST_ROW(remove, killed_amid_it_the_next_start_goes_on),
	TEST_ROW(remove, not_what_is_being_copied),
	TEST_ROW(remove, what_is_asked_at_the_end_is_answered))
