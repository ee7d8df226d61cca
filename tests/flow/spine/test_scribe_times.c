/* How long a cell ran, as it is recorded. */
#include "gateway/spine/desk.h"
#include "tests/lib/survive_fixture.h"

static struct fixture *recorded(void)
{
	struct fixture *fx = fixture_new();
	fx->gw.histories = fake_histories_new();
	fake_bridge_survive(fx->gw.bridge);
	assert_int_equal(fixture_start(fx), 0);
	fake_kernel_ready(fx->kernel);
	return fx;
}

/* Of the kernel's make, with the moments that it tells; "": none. */
static void say_at(struct fixture *fx, enum channel channel, const char *type,
	const struct jmsg *parent, const char *date, const char *started)
{
	char header[256], metadata[128] = "{}";
	const char *content =
		channel == CHANNEL_SHELL ? REPLY_OK : "{\"execution_state\":\"busy\"}";
	struct jmsg_source source = {.channel = channel};
	struct jmsg *m;
	(void)snprintf(header, sizeof header,
		"{\"msg_id\":\"%s of %s\",\"msg_type\":\"%s\",\"session\":\"k\",\"date\":\"%s\"}",
		type, parent->msg_id, type, date);
	if (*started)
		(void)snprintf(metadata, sizeof metadata, "{\"started\":\"%s\"}", started);
	source.part[PART_HEADER] = (struct bytes){(const uint8_t *)header, strlen(header)};
	source.part[PART_PARENT] = parent->part[PART_HEADER];
	source.part[PART_METADATA] = (struct bytes){(const uint8_t *)metadata, strlen(metadata)};
	source.part[PART_CONTENT] = (struct bytes){(const uint8_t *)content, strlen(content)};
	assert_int_equal(jmsg_new(&source, false, &m, NULL), 0);
	fake_kernel_says_again(fx->kernel, m);
	jmsg_unref(m);
}

/* Microseconds after the sending; NOT: not told. */
#define NOT INT64_MIN
struct told {
	int64_t busy, started, replied;
	int64_t from, to; /* what is recorded */
};

static void stamp(int64_t sent_us, int64_t after_us, char ret[CLOCK_STAMP_SIZE])
{
	ret[0] = '\0';
	if (after_us != NOT)
		clock_stamp(sent_us + after_us, ret);
}

/* Sent, and all of the answer read 20 ms later, in one turn. */
static void assert_told(const struct told *told)
{
	struct fixture *fx = recorded();
	struct page *p = page_open(fx, "s1");
	char busy[CLOCK_STAMP_SIZE], started[CLOCK_STAMP_SIZE], replied[CLOCK_STAMP_SIZE],
		facts[96];
	int64_t sent_us = clock_wall_us(fx->gw.clock);
	execute(p, "a");
	struct jmsg *m = kernel_takes(fx, "a");
	stamp(sent_us, told->busy, busy);
	stamp(sent_us, told->started, started);
	stamp(sent_us, told->replied, replied);
	advance(fx, 20);
	say_at(fx, CHANNEL_IOPUB, "status", m, busy, "");
	say_at(fx, CHANNEL_SHELL, "execute_reply", m, replied, started);
	say_status(fx->kernel, m, "idle");
	fake_kernel_turn(fx->kernel);
	jmsg_unref(m);
	advance(fx, 110);
	(void)snprintf(facts, sizeof facts, "\"running_us\":%lld,\"done_us\":%lld,",
		(long long)(sent_us + told->from), (long long)(sent_us + told->to));
	const struct jmsg *end = fake_histories_run(fx->gw.histories, 0)->end;
	if (!holds(end, facts))
		fail_msg("%.*s, not %s", (int)end->part[PART_CONTENT].len,
			(const char *)end->part[PART_CONTENT].data, facts);
	page_leave(p, 0);
	fixture_free(fx);
}

TEST(scribe_times, how_long_it_ran_is_the_kernel_s_word_where_it_can_be)
{
	static const struct told rows[] = {
		{1000, 1200, 4200, 1200, 4200}, /* ipykernel tells all three */
		{1000, NOT, 4000, 1000, 4000},
		{0, 0, 20000, 0, 20000},
		/* Else it is as long as the gateway saw: a guest says what it likes. */
		{NOT, NOT, NOT, 20000, 20000},
		{1000, 1200, NOT, 20000, 20000},
		{NOT, NOT, 4000, 20000, 20000},
		{1000, 4200, 1200, 20000, 20000},
		{-1, -1, 4000, 20000, 20000},
		{1000, 1200, 20001, 20000, 20000},
	};
	for (size_t i = 0; i < ARRAY_LEN(rows); i++)
		assert_told(&rows[i]);
}

RUN(TEST_ROW(scribe_times, how_long_it_ran_is_the_kernel_s_word_where_it_can_be))
