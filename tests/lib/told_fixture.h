/* A kernel whose container tells of its files. Included by one file per program. */
#ifndef COPPICE_TOLD_FIXTURE_H
#define COPPICE_TOLD_FIXTURE_H

#include "tests/lib/moves_fixture.h"

#define BLOB_A "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
#define BLOB_B "bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb"
#define BLOB_C "cccccccccccccccccccccccccccccccccccccccc"
#define CHUNK  "dddddddddddddddddddddddddddddddddddddddddddddddddddddddddddddddd"

#define ENTRY(path, blob)                                                                          \
	"{\"path\":\"" path "\",\"mode\":\"100644\",\"bytes\":9,\"blob\":\"" blob "\"}"
#define CHANGE(full, changed, removed)                                                             \
	"{\"full\":" full ",\"changed\":[" changed "],\"removed\":[" removed "],\"lost\":[]}"
#define A_CSV	CHANGE("false", ENTRY("a.csv", BLOB_A), "")
#define B_CSV	CHANGE("false", ENTRY("b.csv", BLOB_B), "")
#define NOTHING CHANGE("false", "", "")

static inline struct fixture *with_files(void)
{
	struct fixture *fx = fixture_new();
	fx->gw.histories = fake_histories_new();
	fake_bridge_survive(fx->gw.bridge);
	fake_bridge_files(fx->gw.bridge);
	assert_int_equal(fixture_start(fx), 0);
	fake_kernel_ready(fx->kernel);
	return fx;
}

/* A cell runs, and its reply says "same", "changed" or "later". */
static inline void runs(struct fixture *fx, struct page *p, const char *id, const char *said)
{
	char metadata[64];
	(void)snprintf(metadata, sizeof metadata, "{\"coppice\":{\"files\":\"%s\"}}", said);
	execute(p, id);
	answers_with(fx, id, metadata);
	advance(fx, 110);
}

/* All of that Change comes, and its contents as "of a", "of b" ... */
static inline void tells(struct fixture *fx, const char *msg_id, const char *change)
{
	fake_kernel_files(fx->kernel, msg_id, change);
	settle(fx);
	if (strcmp(fake_kernel_wants(fx->kernel), "last") != 0) {
		char wants[256], *rest, *name;
		(void)snprintf(wants, sizeof wants, "%s", fake_kernel_wants(fx->kernel));
		for (name = strtok_r(wants, " ", &rest); name; name = strtok_r(NULL, " ", &rest)) {
			char content[8];
			(void)snprintf(content, sizeof content, "of_%c", name[0]);
			if (strcmp(name, "last") != 0)
				fake_kernel_content(fx->kernel, name, content);
		}
		settle(fx);
	}
	advance(fx, 110);
}

/* The last run that the recorder was given. */
static inline const struct fake_run *last_run(const struct fixture *fx)
{
	const struct histories *h = fx->gw.histories;
	size_t n = fake_histories_n(h) + fake_histories_waiting(h);
	assert_true(n > 0);
	return fake_histories_run(h, n - 1);
}

static inline void assert_facts(const struct fixture *fx, const char *what)
{
	const struct jmsg *end = last_run(fx)->end;
	if (!holds(end, what))
		fail_msg("%s is not in %.*s", what, (int)end->part[PART_CONTENT].len,
			(const char *)end->part[PART_CONTENT].data);
}

static inline void assert_no_facts(const struct fixture *fx)
{
	assert_false(holds(last_run(fx)->end, "\"files"));
}

static inline size_t n_runs(const struct fixture *fx)
{
	return fake_histories_n(fx->gw.histories) + fake_histories_waiting(fx->gw.histories);
}

static inline void files_done_with(struct fixture *fx, struct page *p)
{
	page_leave(p, 0);
	fixture_free(fx);
}

#endif
