/* A bridge over the fake engine, and a watcher that takes notes. The fake clock moves with the
 * loop, never faster than real time, unless `frozen`; where a test waits for timers alone it is
 * moved on at once. Waits are for events; the guard only ends a hang. */
#ifndef COPPICE_BRIDGE_FIXTURE_H
#define COPPICE_BRIDGE_FIXTURE_H

#include <string.h>
#include <uv.h>

#include "tests/lib/fake_clock.h"
#include "tests/lib/fake_engine.h"
#include "tests/lib/test.h"

#define GUARD_NS    UINT64_C(120000000000)
#define TICK_MAX_MS 10
#define UNUSED	    __attribute__((unused))
#define NOTES_MAX   64

struct fixture {
	uv_loop_t loop;
	uv_timer_t tick;
	struct clock *clock;
	struct config config;
	struct log_sink sink;
	struct log log;
	struct bridge *bridge;
	struct fake_engine *engine;
	struct kernel *kernel;
	bool frozen;
	uint64_t ticked_ms;

	unsigned ready, turns, deaths, notices, answers, ended, messages;
	struct kernel_death death;
	struct err answer; /* the last; code 0: it was NULL */
	char notice[512];
	/* The first of what came. */
	char type[NOTES_MAX][64];
	char content[NOTES_MAX][64];
	enum channel channel[NOTES_MAX];
	void (*on_message)(struct fixture *fx, struct jmsg *m);
	void (*on_ready)(struct fixture *fx);
};

static void note_ready(void *data, const struct jmsg *reply)
{
	struct fixture *fx = data;

	assert_string_equal(reply->msg_type, "kernel_info_reply");
	fx->ready++;
	if (fx->on_ready)
		fx->on_ready(fx);
}

static void note_message(void *data, struct jmsg *m)
{
	struct fixture *fx = data;
	unsigned i = fx->messages++;

	if (fx->on_message)
		fx->on_message(fx, m);
	if (i >= NOTES_MAX)
		return;
	snprintf(fx->type[i], sizeof(fx->type[i]), "%s", m->msg_type);
	snprintf(fx->content[i], sizeof(fx->content[i]), "%.*s", (int)m->part[PART_CONTENT].len,
		(const char *)m->part[PART_CONTENT].data);
	fx->channel[i] = m->channel;
}

static void note_turn(void *data)
{
	struct fixture *fx = data;

	fx->turns++;
}

static void note_death(void *data, const struct kernel_death *death)
{
	struct fixture *fx = data;

	fx->deaths++;
	fx->death = *death;
}

static void note_notice(void *data, const char *text)
{
	struct fixture *fx = data;

	fx->notices++;
	snprintf(fx->notice, sizeof(fx->notice), "%s", text);
}

UNUSED static void note_answer(void *data, const struct err *err)
{
	struct fixture *fx = data;

	fx->answers++;
	fx->answer = err ? *err : (struct err){0};
}

static void note_ended(void *data)
{
	struct fixture *fx = data;

	fx->ended++;
}

static void on_tick(uv_timer_t *t)
{
	struct fixture *fx = t->data;
	uint64_t ms = uv_now(&fx->loop) - fx->ticked_ms;

	fx->ticked_ms = uv_now(&fx->loop);
	if (!fx->frozen)
		fake_clock_advance(fx->clock, ms < TICK_MAX_MS ? ms : TICK_MAX_MS);
}

static void fixture_look(struct fixture *fx, uv_run_mode mode)
{
	fake_clock_advance(fx->clock, 0);
	if (fx->engine)
		fake_engine_step(fx->engine);
	uv_run(&fx->loop, mode);
}

/* One look at everything; waits at most a tick. */
static void fixture_turn(struct fixture *fx)
{
	fixture_look(fx, UV_RUN_ONCE);
}

static void fixture_run(struct fixture *fx, bool (*done)(struct fixture *fx))
{
	uint64_t start_ns = uv_hrtime();

	while (!done(fx)) {
		fixture_turn(fx);
		if (uv_hrtime() - start_ns > GUARD_NS)
			fail_msg("waited in vain");
	}
}

/* So many looks, to see that nothing comes of something. */
UNUSED static void fixture_turns(struct fixture *fx, unsigned n)
{
	while (n-- > 0)
		fixture_turn(fx);
}

#define STEP_MS	     10
#define STEPS_A_WAIT 10 /* libzmq's threads are real: they get a moment now and then */

/* Time goes on by a step, and what falls due is seen to. */
static void fixture_step(struct fixture *fx, uint64_t nth)
{
	bool frozen = fx->frozen;

	fx->frozen = true;
	fake_clock_advance(fx->clock, STEP_MS);
	if (nth % STEPS_A_WAIT != 0)
		fixture_look(fx, UV_RUN_NOWAIT);
	else
		fixture_turn(fx);
	fx->frozen = frozen;
}

/* Time passes at once. */
UNUSED static void fixture_pass(struct fixture *fx, uint64_t ms)
{
	for (uint64_t nth = 1; nth <= ms / STEP_MS; nth++)
		fixture_step(fx, nth);
}

/* The same until something happened that only timers can bring: what depends on the scripted
 * kernel's sockets too would find its time limits over. */
UNUSED static void fixture_hurry(struct fixture *fx, bool (*done)(struct fixture *fx))
{
	uint64_t start_ns = uv_hrtime();

	for (uint64_t nth = 1; !done(fx); nth++) {
		fixture_step(fx, nth);
		if (uv_hrtime() - start_ns > GUARD_NS)
			fail_msg("waited in vain");
	}
}

static void fixture_open(struct fixture *fx)
{
	struct bridge_env env = {
		.loop = &fx->loop, .config = &fx->config, .log = &fx->log, .clock = NULL};
	struct engine *engine;
	struct err err = {0};

	memset(fx, 0, sizeof(*fx));
	assert_int_equal(crypto_init(&err), 0);
	uv_loop_init(&fx->loop);
	uv_timer_init(&fx->loop, &fx->tick);
	fx->tick.data = fx;
	fx->ticked_ms = uv_now(&fx->loop);
	uv_timer_start(&fx->tick, on_tick, 1, 1);
	log_init(&fx->log, NULL);
	fx->clock = env.clock = clock_new(&fx->loop);
	fx->config.max_kernels = 3;
	fx->config.parallel_starts = 2;
	fx->config.start_timeout = 60000;
	fx->config.message_limit = 1 << 20;
	fx->config.memory = 1 << 30;
	fx->engine = fake_engine_new(&env);
	engine = &fx->engine->engine;
	assert_int_equal(bridge_open_with(&env, &engine, 1, &fx->bridge, &err), 0);
}

static int fixture_begin(struct fixture *fx, __typeof__(kernel_start) *begin, struct err *err)
{
	const struct kernel_watcher watcher = {.on_ready = note_ready,
		.on_message = note_message,
		.on_turn = note_turn,
		.on_death = note_death,
		.on_notice = note_notice,
		.data = fx};
	struct kernel_start start = {.id = "11111111-2222-4333-8444-555555555555",
		.owner = "owner",
		.spec = &fx->engine->spec};

	return begin(fx->bridge, &start, &watcher, &fx->kernel, err);
}

static int fixture_try_start(struct fixture *fx, struct err *err)
{
	return fixture_begin(fx, kernel_start, err);
}

static bool is_ready(struct fixture *fx)
{
	return fx->ready > 0;
}

static bool is_ended(struct fixture *fx)
{
	return fx->ended > 0;
}

UNUSED static bool is_dead(struct fixture *fx)
{
	return fx->deaths > 0;
}

UNUSED static bool is_answered(struct fixture *fx)
{
	return fx->answers > 0;
}

UNUSED static bool is_noticed(struct fixture *fx)
{
	return fx->notices > 0;
}

UNUSED static void fixture_start(struct fixture *fx)
{
	struct err err = {0};

	assert_int_equal(fixture_try_start(fx, &err), 0);
	fixture_run(fx, is_ready);
	fx->ready = 0;
}

/* Only timers end its present line. */
static bool does_not_obey(struct fixture *fx)
{
	struct fake_engine *e = fx->engine;

	return e->tells_nothing || (e->kernel && e->kernel->script.rude);
}

static bool is_empty(struct fixture *fx)
{
	return fx->bridge->n_kernels == 0;
}

static void fixture_end(struct fixture *fx)
{
	if (!fx->kernel)
		return;
	fx->ended = 0;
	kernel_end(fx->kernel, note_ended, fx);
	assert_int_equal(fx->ended, 0);
	if (does_not_obey(fx))
		fixture_hurry(fx, is_ended);
	fixture_run(fx, is_ended);
	fixture_run(fx, is_empty);
	fx->kernel = NULL;
}

/* After the bridge. */
static void fixture_done(struct fixture *fx)
{
	fake_clock_advance(fx->clock, 0);
	clock_close(fx->clock, NULL, NULL);
	uv_close((uv_handle_t *)&fx->tick, NULL);
	uv_run(&fx->loop, UV_RUN_DEFAULT);
	assert_int_equal(uv_loop_close(&fx->loop), 0);
}

static void fixture_close(struct fixture *fx)
{
	fixture_end(fx);
	fx->engine = NULL;
	fx->ended = 0;
	bridge_close(fx->bridge, note_ended, fx);
	fixture_run(fx, is_ended);
	fixture_done(fx);
}

/* A request of a client. */
UNUSED static struct jmsg *make_request(enum channel channel, const char *msg_type)
{
	struct jmsg *m = NULL;
	struct err err;

	assert_int_equal(jmsg_make(channel, msg_type, "client-session", NULL, "{}", &m, &err), 0);
	return m;
}

UNUSED static void send_request(struct fixture *fx, enum channel channel, const char *msg_type)
{
	AUTO(jmsg_unrefp) struct jmsg *m = make_request(channel, msg_type);
	struct err err = {0};

	assert_int_equal(kernel_send(fx->kernel, m, &err), 0);
}

#endif
