/* Cells with a time limit. Included by one file per program. */
#ifndef COPPICE_LIMITS_FIXTURE_H
#define COPPICE_LIMITS_FIXTURE_H

#include "tests/lib/moves_fixture.h"

#define LIMIT_MS 30000
#define UNDO	 "%coppice undo"

/* Three cells ran; a is before b, b before c. A fourth, "d", runs, and "e" is held behind it. */
static inline struct fixture *with_limit(const char *tier, struct page **ret_page)
{
	struct fixture *fx = with_cells(ret_page);
	fx->gw.config.time_limit_standard = LIMIT_MS;
	fx->gw.config.time_limit_premium = 4 * LIMIT_MS;
	(void)snprintf(fx->owner.tier, sizeof fx->owner.tier, "%s", tier);
	return fx;
}

static inline struct jmsg *runs(struct fixture *fx, struct page *p, const char *id)
{
	execute(p, id);
	struct jmsg *m = kernel_takes(fx, id);
	say_status(fx->kernel, m, "busy");
	return m;
}

static inline void ends(struct fixture *fx, struct jmsg *m, const char *reply)
{
	if (strcmp(reply, REPLY_ERROR) == 0)
		fake_kernel_say(fx->kernel, CHANNEL_IOPUB, "error", m, REPLY_ERROR);
	say_reply(fx->kernel, m, reply);
	say_status(fx->kernel, m, "idle");
	fake_kernel_turn(fx->kernel);
	jmsg_unref(m);
}

static inline const struct fake_run *run_of(struct fixture *fx, const char *id)
{
	for (size_t i = 0; i < fake_histories_n(fx->gw.histories); i++) {
		const struct fake_run *run = fake_histories_run(fx->gw.histories, i);
		if (strcmp(run->request->msg_id, id) == 0)
			return run;
	}
	fail_msg("%s is not recorded", id);
	return NULL;
}

static inline void assert_recorded(struct fixture *fx, const char *id, const char *status)
{
	char text[64];
	record_all(fx);
	(void)snprintf(text, sizeof text, "\"status\":\"%s\"", status);
	assert_true(holds(run_of(fx, id)->end, text));
}

/* The cell is killed and the kernel dead of it. */
static inline void killed(struct fixture *fx, struct jmsg *m)
{
	advance(fx, LIMIT_MS);
	assert_int_equal(fake_kernel_kills(fx->kernel), 0);
	advance(fx, 2000);
	assert_int_equal(fake_kernel_kills(fx->kernel), 1);
	assert_false(fake_kernel_is_looked_for(fx->kernel));
	assert_state(fx, "busy");
	fake_kernel_die(fx->kernel, DEATH_SIGNAL, 9, "killed");
	assert_true(fake_kernel_is_looked_for(fx->kernel));
	jmsg_unref(m);
}

static inline void leave(struct fixture *fx, struct page *p)
{
	page_leave(p, 0);
	fixture_free(fx);
}

#endif
