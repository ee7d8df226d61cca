/* A kernel that one gateway left and the next one takes up; both are the same bridge, which knows
 * nothing of the kernel in between but its record. */
#ifndef COPPICE_ADOPT_FIXTURE_H
#define COPPICE_ADOPT_FIXTURE_H

#include <cjson/cJSON.h>
#include <stdio.h>

#include "tests/flow/bridge/fixture.h"

static struct kernel_start adopt_start_of(struct fixture *fx)
{
	return (struct kernel_start){.id = "11111111-2222-4333-8444-555555555555",
		.owner = "owner",
		.spec = &fx->engine->spec};
}

/* Takes the row over. */
static int adopt_try(struct fixture *fx, cJSON *row, struct err *err)
{
	const struct kernel_watcher watcher = {.on_ready = note_ready,
		.on_message = note_message,
		.on_turn = note_turn,
		.on_death = note_death,
		.on_notice = note_notice,
		.data = fx};
	const struct kernel_start start = adopt_start_of(fx);
	char *after[CHANNEL_HB] = {[CHANNEL_IOPUB] = (char[]){"last-iopub"}};
	int rc = kernel_adopt(fx->bridge, &start, row, after, &watcher, &fx->kernel, err);

	cJSON_Delete(row);
	if (rc < 0)
		fx->kernel = NULL;
	return rc;
}

/* The record of a kernel that runs and that nobody has any more. */
static cJSON *adopt_left(struct fixture *fx)
{
	unsigned removed = fx->engine->removed;
	cJSON *row;

	fixture_start(fx);
	row = kernel_record(fx->kernel);
	assert_non_null(row);
	assert_true(kernel_leave(fx->kernel));
	fx->kernel = NULL;
	assert_int_equal(fx->bridge->n_kernels, 0);
	assert_int_equal(fx->engine->removed, removed);
	return row;
}

static void adopt_begin(struct fixture *fx)
{
	struct err err = {0};

	assert_int_equal(adopt_try(fx, adopt_left(fx), &err), 0);
	assert_int_equal(kernel_state(fx->kernel), KERNEL_STARTING);
}

UNUSED static bool adopt_is_asked(struct fixture *fx)
{
	return fx->engine->replays > 0;
}

/* Up to the question for what was kept. */
UNUSED static void adopt_to_replay(struct fixture *fx)
{
	fx->engine->replays = 0;
	adopt_begin(fx);
	fixture_run(fx, adopt_is_asked);
	assert_int_equal(fx->ready, 0);
}

UNUSED static struct jmsg *adopt_message(const char *text)
{
	struct jmsg *m = NULL;
	char content[64];

	snprintf(content, sizeof(content), "{\"text\":\"%s\"}", text);
	assert_int_equal(
		jmsg_make(CHANNEL_IOPUB, "stream", "kernel-session", NULL, content, &m, NULL), 0);
	return m;
}

UNUSED static void adopt_keeps(struct fixture *fx, const char *text)
{
	AUTO(jmsg_unrefp) struct jmsg *m = adopt_message(text);

	fake_engine_keeps(fx->engine, CHANNEL_IOPUB, m);
}

#endif
