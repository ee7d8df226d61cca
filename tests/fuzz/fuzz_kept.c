/* What a kernel kept while there was no gateway, as its supervisor gives it back. The first byte of
 * the input: odd, one message as it is put together; even, packets of ctl, a line each. */
#include <cjson/cJSON.h>
#include <string.h>

#include "kernel-bridge/docker_line.h"
#include "kernel-bridge/kernel_adopt.h"
#include "tests/lib/fake_clock.c"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

struct setting {
	struct config config;
	struct docker docker;
	struct docker_slot slot;
	struct bridge bridge;
	struct kernel kernel;
	size_t n;
};

static void on_message(void *data, struct jmsg *m)
{
	struct setting *s = data;
	if (m->msg_id[0] == '\0' || m->frame.len == 0)
		abort(); /* nothing like it may pass the decoder */
	s->n++;
}

static void on_turn(void *data)
{
	(void)data; /* messages are looked at one by one */
}

static void on_notice(void *data, const char *text)
{
	(void)data;
	if (strlen(text) == 0)
		abort();
}

static void on_started(void *data, unsigned line, const struct endpoints *endpoints, long pid)
{
	(void)data, (void)line, (void)endpoints, (void)pid;
}

static void on_start_failed(void *data, unsigned line, const struct err *err)
{
	(void)data, (void)line, (void)err;
}

static void on_exit_(void *data, unsigned line, const struct line_exit *exit)
{
	(void)data, (void)line, (void)exit;
}

static void no_time(struct timer *t)
{
	(void)t; /* the clock of this test stands */
}

static void open_kernel(struct setting *s)
{
	struct kernel *k = &s->kernel;
	s->bridge.env.clock = s->docker.env.clock;
	s->bridge.env.config = &s->config;
	k->bridge = &s->bridge;
	k->line = 1;
	k->adoption = ADOPT_REPLAYS;
	k->watcher = (struct kernel_watcher){
		.on_message = on_message, .on_turn = on_turn, .on_notice = on_notice, .data = s};
	timer_init(&k->start_timer, no_time);
	kernel_adopt_init(k);
	/* An empty key, so that what lies behind the signature is reached. */
	if (sign_init(&k->sign, "", NULL) != 0)
		abort();
}

static void open_slot(struct setting *s)
{
	s->config.message_limit = 1 << 16;
	s->docker.env.config = &s->config;
	s->docker.env.clock = clock_new(NULL);
	list_init(&s->slot.lines);
	s->slot.docker = &s->docker;
	s->slot.left = true; /* there are no files of it */
	s->slot.base.watcher = (struct slot_watcher){.on_started = on_started,
		.on_start_failed = on_start_failed,
		.on_exit = on_exit_,
		.on_kept = kernel_on_kept,
		.on_kept_end = kernel_on_kept_end,
		.data = &s->kernel};
	(void)docker_line_adopt(&s->slot, 1, "key"); /* it lives in the slot's list */
}

static void packet(struct setting *s, struct bytes line)
{
	enum ctl_type type;
	cJSON *message = NULL;
	char about[CTL_TYPE_MAX];
	struct err err;
	if (ctl_message_read(line, &type, &message, about, &err) != 0)
		return;
	int rc = docker_line_message(&s->slot, type, message, &err);
	const struct docker_line *l = docker_line_find(&s->slot, 1); /* until it is said to end */
	if (rc == 0 && l && l->kept.data && l->kept.len >= l->kept.size)
		abort(); /* a whole message stays behind */
	cJSON_Delete(message);
}

static void packets(struct setting *s, struct bytes all)
{
	while (all.len > 0) {
		const uint8_t *end = memchr(all.data, '\n', all.len);
		size_t len = end ? (size_t)(end - all.data) : all.len;
		packet(s, (struct bytes){all.data, len});
		len += end != NULL;
		all.data += len;
		all.len -= len;
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	if (len == 0)
		return 0;
	struct setting *s = xcalloc(1, sizeof *s);
	struct bytes rest = {data + 1, len - 1};
	open_slot(s);
	open_kernel(s);
	if (data[0] & 1)
		kernel_on_kept(&s->kernel, 1, CHANNEL_IOPUB, rest);
	else
		packets(s, rest);
	size_t replayed = 0;
	LIST_EACH (at, &s->kernel.replayed)
		replayed++;
	kernel_adopt_last(&s->kernel);
	if (s->n != replayed)
		abort(); /* one was lost on the way to its reader */
	kernel_adopt_drop(&s->kernel);
	sign_done(&s->kernel.sign);
	docker_lines_drop(&s->slot);
	clock_close(s->docker.env.clock, NULL, NULL);
	free(s);
	return 0;
}
