/* A history that grows: what a commit costs, how much room it takes, how long questions take. The
 * figures are printed and decide nothing, but the room does: it does not depend on the machine.
 * COPPICE_HISTORY_NODES=100000 for as many (make soak, make bench-history). */
#include <time.h>

#include "tests/lib/files_fixture.h"
#include "tests/lib/pack_fixture.h"

#define BURST	       200u
#define PACED	       20u
#define BYTES_PER_NODE 1536u
#define SECOND_NS      1000000000ll

static long long ns_of(clockid_t clock)
{
	struct timespec t;
	(void)clock_gettime(clock, &t);
	return t.tv_sec * SECOND_NS + t.tv_nsec;
}

static double ms_since(clockid_t clock, long long began)
{
	return (double)(ns_of(clock) - began) / 1e6;
}

/* As people type: no two alike. */
static struct tape *small_cell(struct hfix *fx, unsigned i)
{
	char id[16], code[128], text[64];
	(void)snprintf(id, sizeof id, "m%u", i);
	(void)snprintf(code, sizeof code, "total_%u = sum(range(%u))\nprint('step', total_%u)",
		i % 97, i * 7, i % 97);
	(void)snprintf(text, sizeof text, "step %u\n", i * 7919);
	return record_cell(fx, id, code, text);
}

static void grow_to(struct hfix *fx, unsigned *n, unsigned to)
{
	while (*n < to) {
		struct tape *last = NULL;
		for (unsigned k = 0; *n < to && k < 500; k++)
			last = small_cell(fx, ++*n);
		await_fine(fx, last);
		hfix_forget_tapes(fx);
	}
}

/* As fast as they are taken, and packed meanwhile. */
static void print_growth(struct hfix *fx, unsigned *n, unsigned to)
{
	unsigned from = *n;
	long long wall = ns_of(CLOCK_MONOTONIC), cpu = ns_of(CLOCK_PROCESS_CPUTIME_ID);
	grow_to(fx, n, to);
	print_message("%7u nodes: from %u in %.1f s, %.2f ms a commit (processor %.2f)\n", to, from,
		ms_since(CLOCK_MONOTONIC, wall) / 1e3,
		ms_since(CLOCK_MONOTONIC, wall) / (to - from),
		ms_since(CLOCK_PROCESS_CPUTIME_ID, cpu) / (to - from));
}

/* Of a history that has come to rest. */
static void print_commits(struct hfix *fx, unsigned *n)
{
	unsigned at = *n;
	long long wall = ns_of(CLOCK_MONOTONIC), cpu = ns_of(CLOCK_PROCESS_CPUTIME_ID);
	grow_to(fx, n, at + BURST);
	double burst = ms_since(CLOCK_MONOTONIC, wall) / BURST;
	double burst_cpu = ms_since(CLOCK_PROCESS_CPUTIME_ID, cpu) / BURST;
	wall = ns_of(CLOCK_MONOTONIC);
	for (unsigned i = 0; i < PACED; i++)
		grow_to(fx, n, *n + 1);
	print_message("%7u nodes: a commit in a burst %.2f ms (processor %.2f), alone %.2f ms\n",
		at, burst, burst_cpu, ms_since(CLOCK_MONOTONIC, wall) / PACED);
}

static double ms_of_question(struct hfix *fx, const struct history_question *question)
{
	long long began = ns_of(CLOCK_MONOTONIC);
	assert_int_equal(ask(fx, question), 0);
	return ms_since(CLOCK_MONOTONIC, began);
}

static void print_questions(struct hfix *fx, unsigned n)
{
	char far[32], line[300];
	(void)snprintf(far, sizeof far, "HEAD~%u", n - 1);
	struct history_question list = {.what = HISTORY_ONE, .history = HISTORY_A};
	struct history_question head = {.what = HISTORY_NODE, .history = HISTORY_A, .node = "HEAD"};
	struct history_question first = head;
	first.node = far;
	double log_ms = ms_of_question(fx, &list), head_ms = ms_of_question(fx, &head),
	       first_ms = ms_of_question(fx, &first);
	(void)snprintf(line, sizeof line,
		"rm -rf '%s/clone' && git clone -q --bare --no-local '%s/" HISTORY_A
		".git' '%s/clone'",
		fx->folder, fx->folder, fx->folder);
	long long began = ns_of(CLOCK_MONOTONIC);
	shell(line);
	print_message(
		"%7u nodes: newest 100 %.1f ms, newest node %.1f ms, first one by HEAD~%u %.1f ms, "
		"clone %.0f ms\n",
		n, log_ms, head_ms, n - 1, first_ms, ms_since(CLOCK_MONOTONIC, began));
}

static void on_collected(void *data, int status, struct bytes json, const struct err *err)
{
	struct hfix *fx = data;
	(void)json, (void)err;
	fx->status = status;
	fx->answered = true;
}

/* All files, by what is in them. */
static double bytes_of(struct hfix *fx)
{
	char line[300];
	double bytes = 0;
	(void)snprintf(line, sizeof line, "du -sb '%s/" HISTORY_A ".git' | cut -f 1", fx->folder);
	FILE *pipe = popen(line, "re");
	assert_non_null(pipe);
	assert_int_equal(fscanf(pipe, "%lf", &bytes), 1);
	assert_int_equal(pclose(pipe), 0);
	return bytes;
}

/* By itself first, once nothing runs, then by hand. */
static void print_room(struct hfix *fx, unsigned n, bool decides)
{
	uint64_t before = 0;
	assert_int_equal(tree_bytes(path_in(fx, ""), &before, NULL), 0);
	AWAIT(fx, loose(fx) == 0);
	double packed = bytes_of(fx) / n;
	unsigned n_packs = packs(fx);
	fx->answered = false;
	long long began = ns_of(CLOCK_MONOTONIC);
	history_gc(fx->h, HISTORY_A, on_collected, fx);
	AWAIT(fx, fx->answered);
	assert_int_equal(fx->status, 0);
	double whole = bytes_of(fx) / n;
	print_message("%7u nodes: %.0f bytes a node on disk, %.0f packed (%u packs), %.0f after gc "
		      "(%.0f ms)\n",
		n, (double)before / n, packed, n_packs, whole, ms_since(CLOCK_MONOTONIC, began));
	if (decides)
		assert_true(packed < BYTES_PER_NODE && whole < BYTES_PER_NODE);
}

TEST(figures, of_a_history_that_grows)
{
	static const unsigned sizes[] = {10, 1000, 10000, 100000};
	const char *wanted = getenv("COPPICE_HISTORY_NODES");
	unsigned most = wanted ? (unsigned)strtoul(wanted, NULL, 10) : 10000, n = 0;
	struct hfix *fx = hfix_make();
	char expected[16];
	fx->keeping.idle_ms = 300;
	hfix_open(fx);
	for (size_t i = 0; i < ARRAY_LEN(sizes) && sizes[i] <= most; i++) {
		print_growth(fx, &n, sizes[i]);
		print_room(fx, n, sizes[i] >= 1000);
		print_commits(fx, &n);
		print_questions(fx, n);
	}
	(void)snprintf(expected, sizeof expected, "%u\n", n + 1);
	assert_git(fx, HISTORY_A, "rev-list --count main", expected);
	assert_sound(fx, HISTORY_A);
	/* The index is made anew from it. */
	hfix_close(fx);
	struct history_counts counts;
	long long began = ns_of(CLOCK_MONOTONIC);
	assert_int_equal(histories_reindex(fx->folder, NULL, &counts, NULL), 0);
	assert_int_equal(counts.nodes, n);
	print_message("%7u nodes: indexed anew in %.0f ms\n", n, ms_since(CLOCK_MONOTONIC, began));
	hfix_free(fx);
}

/* ---- working files ---- */

#define FILES_RUNS 200u

/* A run that changed so many small files, each to something that was not there yet. */
static void record_files(struct hfix *fx, unsigned i, unsigned n_files, double *ret_keep_ms)
{
	AUTO(buf_done) struct buf change;
	char id[16];
	buf_init(&change, 1 << 16);
	(void)snprintf(id, sizeof id, "f%u-%u", n_files, i);
	(void)buf_add_text(&change, "{\"changed\":[");
	long long began = ns_of(CLOCK_MONOTONIC);
	for (unsigned k = 0; k < n_files; k++) {
		char text[64], blob[HISTORY_NODE_SIZE];
		(void)snprintf(text, sizeof text, "%u,%u,%u\n", i, k, i * 7919 + k);
		(void)buf_addf(&change,
			"%s{\"path\":\"out/part-%u.csv\",\"mode\":\"100644\",\"bytes\":9,\"blob\":"
			"\"%s\"}",
			k ? "," : "", k, keep_blob(fx, text, blob));
	}
	*ret_keep_ms += ms_since(CLOCK_MONOTONIC, began);
	(void)buf_add_text(&change, "]}");
	if (n_files > 0)
		(void)run_with(fx, id, (const char *)change.data);
	else
		await_fine(fx, record_cell(fx, id, "x = 1", NULL));
}

TEST(figures, of_runs_with_files)
{
	static const unsigned counts[] = {0, 5, 0, 5};
	struct hfix *fx = hfix_new();
	for (size_t c = 0; c < ARRAY_LEN(counts); c++) {
		double keep_ms = 0;
		long long began = ns_of(CLOCK_MONOTONIC);
		for (unsigned i = 0; i < FILES_RUNS; i++)
			record_files(fx, (unsigned)c * FILES_RUNS + i, counts[c], &keep_ms);
		double all_ms = ms_since(CLOCK_MONOTONIC, began);
		print_message("a commit with %u changed files: %.2f ms, their contents before it "
			      "%.2f ms\n",
			counts[c], (all_ms - keep_ms) / FILES_RUNS, keep_ms / FILES_RUNS);
	}
	assert_sound(fx, HISTORY_A);
	hfix_free(fx);
}

static void print_folder(struct hfix *fx, const char *node, unsigned n)
{
	struct history_question files = {.what = HISTORY_FILES, .history = HISTORY_A, .node = node};
	struct history_question one = {.what = HISTORY_NODE, .history = HISTORY_A, .node = node};
	print_message(
		"a folder of %u files: read whole in %.0f ms, what changed of it in %.1f ms\n", n,
		ms_of_question(fx, &files), ms_of_question(fx, &one));
}

TEST(figures, of_a_folder_of_many_files)
{
	enum { N = 10000 };
	struct hfix *fx = hfix_new();
	AUTO(buf_done) struct buf change;
	struct told_content *told = calloc(N, sizeof *told);
	buf_init(&change, 16u << 20);
	(void)buf_add_text(&change, "{\"full\":true,\"changed\":[");
	long long began = ns_of(CLOCK_MONOTONIC);
	for (unsigned i = 0; i < N; i++) {
		char text[32], blob[HISTORY_NODE_SIZE];
		(void)snprintf(text, sizeof text, "file %u\n", i);
		assert_true(repo_blob_name(text_bytes(text), blob));
		history_keep(fx->h, &files_whose, blob, text_bytes(text), told_keep, &told[i]);
		(void)buf_addf(&change,
			"%s{\"path\":\"d%u/f%u\",\"mode\":\"100644\",\"bytes\":9,\"blob\":\"%s\"}",
			i ? "," : "", i % 50, i, blob);
	}
	for (unsigned i = 0; i < N; i++)
		await_content(fx, &told[i]);
	double keep_ms = ms_since(CLOCK_MONOTONIC, began);
	(void)buf_add_text(&change, "]}");
	began = ns_of(CLOCK_MONOTONIC);
	(void)run_with(fx, "all", (const char *)change.data);
	double all_ms = ms_since(CLOCK_MONOTONIC, began);
	began = ns_of(CLOCK_MONOTONIC);
	struct tape *t = run_with(fx, "one", "{\"removed\":[\"d7/f7\"]}");
	print_message(
		"%u contents kept in %.0f ms; a commit of all %.0f ms, of one of them %.1f ms\n", N,
		keep_ms, all_ms, ms_since(CLOCK_MONOTONIC, began));
	print_folder(fx, t->node, N - 1);
	free(told);
	hfix_free(fx);
}

RUN(TEST_ROW(figures, of_a_history_that_grows), TEST_ROW(figures, of_runs_with_files),
	TEST_ROW(figures, of_a_folder_of_many_files))
