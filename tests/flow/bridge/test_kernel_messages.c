/* What a kernel sends, right and wrong, little and much. */
#include <dirent.h>
#include <stdio.h>
#include <zmq.h>

#include "kernel-bridge/wire.h"
#include "tests/flow/bridge/fixture.h"

static bool has_one(struct fixture *fx)
{
	return fx->messages >= 1;
}

static bool has_three(struct fixture *fx)
{
	return fx->messages >= 3;
}

static void send_stream(struct fixture *fx, const char *content)
{
	script_send(fx->engine->kernel, CHANNEL_IOPUB, "stream", NULL, content);
}

/* A message of the kernel, as frames to be spoilt. */
static void encode(struct fixture *fx, struct jmsg **ret_msg, struct wire_head *ret_head)
{
	struct err err;

	assert_int_equal(jmsg_make(CHANNEL_IOPUB, "stream", "kernel-session", NULL,
				 "{\"text\":\"spoilt\"}", ret_msg, &err),
		0);
	wire_encode(&fx->engine->kernel->sign, *ret_msg, ret_head);
}

TEST(kernel_messages, drops_bad_ones_and_goes_on)
{
	static const struct bytes junk = {(const uint8_t *)"junk", 4};
	struct fixture fx;
	struct wire_head head;
	AUTO(jmsg_unrefp) struct jmsg *m = NULL;

	fixture_open(&fx);
	fixture_start(&fx);
	encode(&fx, &m, &head);
	struct script_kernel *k = fx.engine->kernel;
	/* Wrong signature, then no delimiter, then too few parts, then a header that is no object.
	 */
	head.signature[0] = head.signature[0] == '0' ? '1' : '0';
	script_send_raw(k, CHANNEL_IOPUB, head.frames, WIRE_HEAD);
	script_send_raw(k, CHANNEL_IOPUB, &junk, 1);
	script_send_raw(k, CHANNEL_IOPUB, head.frames, 3);
	struct bytes part[JMSG_PARTS] = {junk, m->part[1], m->part[2], m->part[3]};
	sign_hex(&k->sign, part, head.signature);
	head.frames[2] = junk;
	script_send_raw(k, CHANNEL_IOPUB, head.frames, WIRE_HEAD);
	send_stream(&fx, "{\"text\":\"good\"}");
	fixture_run(&fx, has_one);
	assert_string_equal(fx.content[0], "{\"text\":\"good\"}");
	assert_int_equal(fx.messages, 1);
	assert_int_equal(fx.notices, 1);
	assert_non_null(strstr(fx.notice, "wrong signature"));
	fixture_close(&fx);
}

TEST(kernel_messages, mends_after_the_check)
{
	struct fixture fx;

	fixture_open(&fx);
	fixture_start(&fx);
	AUTO(jmsg_unrefp) struct jmsg *m = NULL;
	struct wire_head head;
	encode(&fx, &m, &head);
	static const char nan_content[] = "{\"x\":NaN}";
	struct bytes part[JMSG_PARTS] = {m->part[0], m->part[1], m->part[2],
		{(const uint8_t *)nan_content, sizeof(nan_content) - 1}};
	sign_hex(&fx.engine->kernel->sign, part, head.signature);
	memcpy(head.frames + 2, part, sizeof(part));
	script_send_raw(fx.engine->kernel, CHANNEL_IOPUB, head.frames, WIRE_HEAD);
	fixture_run(&fx, has_one);
	assert_string_equal(fx.content[0], "{\"x\":null}");
	assert_int_equal(fx.notices, 0);
	fixture_close(&fx);
}

static bool request_came(struct fixture *fx)
{
	return fx->engine->kernel->requests[CHANNEL_SHELL] > 0;
}

TEST(kernel_messages, iopub_comes_before_shell)
{
	struct fixture fx;

	fixture_open(&fx);
	fixture_start(&fx);
	send_request(&fx, CHANNEL_SHELL, "execute_request");
	fixture_run(&fx, request_came);
	struct script_kernel *k = fx.engine->kernel;
	const struct jmsg *request = k->last[CHANNEL_SHELL];
	script_send(k, CHANNEL_SHELL, "execute_reply", request, "{}");
	script_send(k, CHANNEL_IOPUB, "stream", request, "{}");
	script_send(k, CHANNEL_IOPUB, "status", request, "{\"execution_state\":\"idle\"}");
	/* Both lie in our pipes before the loop looks, so the order is the bridge's. */
	(void)zmq_poll(NULL, 0, 200);
	fixture_run(&fx, has_three);
	assert_string_equal(fx.type[0], "stream");
	assert_string_equal(fx.type[1], "status");
	assert_string_equal(fx.type[2], "execute_reply");
	assert_int_equal(fx.channel[2], CHANNEL_SHELL);
	assert_true(fx.turns >= 1);
	fixture_close(&fx);
}

TEST(kernel_messages, prompts_arrive)
{
	struct fixture fx;

	fixture_open(&fx);
	fixture_start(&fx);
	send_request(&fx, CHANNEL_SHELL, "execute_request");
	fixture_run(&fx, request_came);
	struct script_kernel *k = fx.engine->kernel;
	/* As ipykernel does: to the routing id that the shell request came from. */
	memcpy(k->last_ident[CHANNEL_STDIN], k->last_ident[CHANNEL_SHELL],
		sizeof(k->last_ident[CHANNEL_STDIN]));
	script_send(k, CHANNEL_STDIN, "input_request", k->last[CHANNEL_SHELL], "{}");
	fixture_run(&fx, has_one);
	assert_int_equal(fx.channel[0], CHANNEL_STDIN);
	fixture_close(&fx);
}

static void check_order(struct fixture *fx, struct jmsg *m)
{
	char want[64];

	snprintf(want, sizeof(want), "{\"n\":%u}", fx->messages - 1);
	assert_true(bytes_equal(m->part[PART_CONTENT], want));
	/* Hold in the middle of a turn too. */
	if (fx->messages % 7000 == 0)
		kernel_hold(fx->kernel, true);
}

#define FLOOD 20000
static bool flood_is_over(struct fixture *fx)
{
	return fx->messages >= FLOOD;
}

TEST(kernel_messages, a_held_flood_is_whole)
{
	struct fixture fx;
	char content[64];

	fixture_open(&fx);
	fixture_start(&fx);
	fx.on_message = check_order;
	kernel_hold(fx.kernel, true);
	for (unsigned i = 0; i < FLOOD; i++) {
		snprintf(content, sizeof(content), "{\"n\":%u}", i);
		send_stream(&fx, content);
	}
	fixture_turns(&fx, 20);
	assert_int_equal(fx.messages, 0);
	kernel_hold(fx.kernel, false);
	for (unsigned held = 1; held <= FLOOD / 7000; held++) {
		while (fx.messages < held * 7000)
			fixture_turn(&fx);
		fixture_turns(&fx, 20);
		assert_int_equal(fx.messages, held * 7000);
		kernel_hold(fx.kernel, false);
	}
	fixture_run(&fx, flood_is_over);
	fixture_close(&fx);
}

/* A reply may be as large as any output, and a guest can send any number of them. */
TEST(kernel_messages, held_ones_wait_on_every_channel)
{
	static const enum channel held[] = {CHANNEL_SHELL, CHANNEL_CONTROL};
	struct fixture fx;

	fixture_open(&fx);
	fixture_start(&fx);
	kernel_hold(fx.kernel, true);
	for (size_t i = 0; i < ARRAY_LEN(held); i++) {
		unsigned before = fx.engine->kernel->requests[held[i]];

		send_request(&fx, held[i], "debug_request");
		while (fx.engine->kernel->requests[held[i]] == before)
			fixture_turn(&fx);
		script_send(fx.engine->kernel, held[i], "debug_reply",
			fx.engine->kernel->last[held[i]], "{}");
	}
	fixture_turns(&fx, 50);
	assert_int_equal(fx.messages, 0);
	kernel_hold(fx.kernel, false);
	while (fx.messages < ARRAY_LEN(held))
		fixture_turn(&fx);
	fixture_close(&fx);
}

static void send_big(struct fixture *fx, enum channel channel)
{
	static uint8_t big[3 << 20];
	struct bytes frame = {big, sizeof(big)};

	script_send_raw(fx->engine->kernel, channel, &frame, 1);
}

TEST(kernel_messages, too_large_a_frame_on_iopub_is_told_and_survived)
{
	struct fixture fx;

	fixture_open(&fx);
	fixture_start(&fx);
	send_stream(&fx, "{\"n\":1}");
	send_big(&fx, CHANNEL_IOPUB);
	fixture_run(&fx, is_noticed);
	assert_non_null(strstr(fx.notice, "larger than 1 MiB"));
	/* The new socket subscribes in its own time. */
	while (fx.messages < 2) {
		send_stream(&fx, "{\"n\":2}");
		fixture_turn(&fx);
	}
	assert_string_equal(fx.content[0], "{\"n\":1}");
	assert_string_equal(fx.content[1], "{\"n\":2}");
	assert_int_equal(kernel_state(fx.kernel), KERNEL_IDLE);
	fixture_close(&fx);
}

TEST(kernel_messages, too_large_a_frame_on_shell_is_told_and_survived)
{
	struct fixture fx;

	fixture_open(&fx);
	fixture_start(&fx);
	send_request(&fx, CHANNEL_SHELL, "execute_request");
	fixture_run(&fx, request_came);
	send_big(&fx, CHANNEL_SHELL);
	fixture_run(&fx, is_noticed);
	assert_non_null(strstr(fx.notice, "channel shell"));
	send_request(&fx, CHANNEL_SHELL, "execute_request");
	while (fx.engine->kernel->requests[CHANNEL_SHELL] < 2)
		fixture_turn(&fx);
	script_send(fx.engine->kernel, CHANNEL_SHELL, "execute_reply",
		fx.engine->kernel->last[CHANNEL_SHELL], "{}");
	fixture_run(&fx, has_one);
	assert_string_equal(fx.type[0], "execute_reply");
	fixture_close(&fx);
}

TEST(kernel_messages, buffers_travel)
{
	static const uint8_t bytes[] = {0, 255, 10};
	const struct bytes buffers[] = {{bytes, 3}, {bytes, 0}, {bytes, 1}};
	struct fixture fx;
	struct err err = {0};
	AUTO(jmsg_unrefp) struct jmsg *plain = make_request(CHANNEL_SHELL, "comm_msg");
	AUTO(jmsg_unrefp) struct jmsg *m = NULL;
	struct jmsg_source source = {.channel = CHANNEL_SHELL, .buffers = buffers, .n_buffers = 3};

	memcpy(source.part, plain->part, sizeof(source.part));
	assert_int_equal(jmsg_new(&source, false, &m, &err), 0);
	fixture_open(&fx);
	fixture_start(&fx);
	assert_int_equal(kernel_send(fx.kernel, m, &err), 0);
	fixture_run(&fx, request_came);
	const struct jmsg *got = fx.engine->kernel->last[CHANNEL_SHELL];
	assert_int_equal(got->n_buffers, 3);
	assert_memory_equal(got->buffers[0].data, bytes, 3);
	assert_int_equal(got->buffers[1].len, 0);
	fixture_close(&fx);
}

static unsigned count_descriptors(void)
{
	DIR *dir = opendir("/proc/self/fd");
	unsigned n = 0;

	while (readdir(dir))
		n++;
	closedir(dir);
	return n;
}

/* Of a kernel's: ten here, five sockets, five listeners and four connections at the scripted other
 * end, and what libzmq's two contexts keep for themselves once they are used. */
#define DESCRIPTORS_MAX (10 + 14 + 8)

/* Not a descriptor more after many losses than before the first. */
TEST(kernel_messages, losses_cost_no_descriptors)
{
	struct fixture fx;

	fixture_open(&fx);
	unsigned before = count_descriptors();
	fixture_start(&fx);
	unsigned with_kernel = count_descriptors();
	assert_in_range(with_kernel - before, 1, DESCRIPTORS_MAX);
	for (int i = 0; i < 3; i++) {
		fx.notices = 0;
		send_big(&fx, CHANNEL_IOPUB);
		fixture_run(&fx, is_noticed);
		fx.messages = 0;
		while (fx.messages < 1) {
			send_stream(&fx, "{}");
			fixture_turn(&fx);
		}
		fixture_pass(&fx, 1500); /* notices are not told more than once a second */
	}
	/* libzmq closes its descriptors in its own time. */
	while (count_descriptors() > with_kernel)
		fixture_turn(&fx);
	fixture_close(&fx);
}

RUN(TEST_ROW(kernel_messages, drops_bad_ones_and_goes_on),
	TEST_ROW(kernel_messages, mends_after_the_check),
	TEST_ROW(kernel_messages, iopub_comes_before_shell),
	TEST_ROW(kernel_messages, prompts_arrive), TEST_ROW(kernel_messages, a_held_flood_is_whole),
	TEST_ROW(kernel_messages, held_ones_wait_on_every_channel),
	TEST_ROW(kernel_messages, too_large_a_frame_on_iopub_is_told_and_survived),
	TEST_ROW(kernel_messages, too_large_a_frame_on_shell_is_told_and_survived),
	TEST_ROW(kernel_messages, buffers_travel),
	TEST_ROW(kernel_messages, losses_cost_no_descriptors))
