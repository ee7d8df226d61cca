/* A run as history reads it: each line of the input is a message, its first byte the type (0: the
 * line is a whole frame), the second its parent, the rest its content. What becomes a record has
 * meta.json as JSON, outputs as JSON, and a commit message whose trailers are found again. */
#include <assert.h>
#include <stdio.h>
#include <string.h>

#include "gateway/base/json.h"
#include "history/record.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

#define ROOM (1u << 24)

static const char *const types[] = {"", "execute_request", "stream", "display_data",
	"execute_result", "error", "clear_output", "update_display_data", "status",
	"coppice_execution"};
static const char *const parents[] = {"m1", "m0", ""};

struct tape {
	struct bytes rest;
	struct jmsg *message;
};

static struct jmsg *message_of(uint8_t type, uint8_t parent, struct bytes content)
{
	char header[128], parent_header[64];
	struct jmsg *m = NULL;
	const char *name = types[type % ARRAY_LEN(types)];
	bool asks = strcmp(name, "execute_request") == 0;
	(void)snprintf(header, sizeof header,
		"{\"msg_id\":\"%s\",\"msg_type\":\"%s\",\"session\":\"s\"}", asks ? "m1" : "k",
		name);
	(void)snprintf(parent_header, sizeof parent_header, "{\"msg_id\":\"%s\"}",
		parents[parent % ARRAY_LEN(parents)]);
	struct jmsg_source source = {.channel = asks ? CHANNEL_SHELL : CHANNEL_IOPUB};
	source.part[PART_HEADER] = (struct bytes){(uint8_t *)header, strlen(header)};
	source.part[PART_PARENT] = (struct bytes){(uint8_t *)parent_header, strlen(parent_header)};
	source.part[PART_METADATA] = content;
	source.part[PART_CONTENT] = content;
	return jmsg_new(&source, false, &m, NULL) == 0 ? m : NULL;
}

static bool next_line(struct tape *t, struct bytes *ret)
{
	if (t->rest.len == 0)
		return false;
	const uint8_t *end = memchr(t->rest.data, '\n', t->rest.len);
	*ret = (struct bytes){t->rest.data, end ? (size_t)(end - t->rest.data) : t->rest.len};
	size_t used = ret->len + (end != NULL);
	t->rest = (struct bytes){t->rest.data + used, t->rest.len - used};
	return true;
}

/* Of a content that is no JSON object there is no message: the bridge has mended or dropped it. */
static int next(void *data, struct bytes *ret_frame, struct err *err)
{
	struct tape *t = data;
	struct bytes line;
	while (next_line(t, &line)) {
		if (line.len < 2)
			continue;
		struct bytes content = {line.data + 2, line.len - 2};
		*ret_frame = content;
		if (line.data[0] == '0')
			return 1;
		if (json_scan(content, NULL, 0, err) != 0 || !json_is_object(content))
			continue;
		jmsg_unref(t->message);
		t->message = message_of(line.data[0], line.data[1], content);
		if (!t->message)
			continue;
		*ret_frame = t->message->frame;
		return 1;
	}
	return 0;
}

static int no_outputs(void *data, const char *msg_id, struct outputs **ret_outputs, struct err *err)
{
	(void)data, (void)msg_id, (void)err;
	*ret_outputs = NULL;
	return 0;
}

static int no_update(void *data, const char *display_id, struct bytes content, struct err *err)
{
	(void)data, (void)display_id, (void)content, (void)err;
	return 0;
}

static void assert_json(const struct buf *b)
{
	struct err err;
	assert(json_scan((struct bytes){b->data, b->len}, NULL, 0, &err) == 0);
}

static void write_out(struct record *r)
{
	AUTO(buf_done) struct buf outputs, meta, amended, message;
	const struct history_run run = {
		.kernel_id = "k1", .kernelspec = "python3", .environment = "", .epoch = 1};
	const struct record_place place = {.run = &run, .branch = "main", .n = 7};
	struct err err;
	char found[64];
	buf_init(&outputs, ROOM);
	buf_init(&meta, ROOM);
	buf_init(&amended, ROOM);
	buf_init(&message, ROOM);
	assert(outputs_write(r->outputs, &outputs, &r->counts, &err) == 0);
	assert_json(&outputs);
	assert(record_meta(r, &place, &meta, &err) == 0);
	assert_json(&meta);
	struct bytes text = {meta.data, meta.len};
	assert(record_meta_amend(text, r->outputs, &amended, &err) == 0);
	assert(amended.len == meta.len && memcmp(amended.data, meta.data, meta.len) == 0);
	assert(record_message(r, &place, &message, &err) == 0);
	assert(strlen((char *)message.data) == message.len);
	assert(trailer_find((char *)message.data, "Node-Count", found, sizeof found));
	assert(strcmp(found, "7") == 0);
	assert(trailer_find((char *)message.data, "Kernel", found, sizeof found));
	assert(strcmp(found, "k1") == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	static const struct record_others others = {no_outputs, no_update, NULL};
	struct tape tape = {.rest = {data, len}};
	const struct history_source source = {.next = next, .data = &tape};
	struct record r;
	struct err err = {0};
	record_init(&r);
	int status = record_begin(&r, &source, &err);
	if (status == 0)
		status = record_rest(&r, &source, &others, &err);
	if (status == 0)
		write_out(&r);
	else
		assert(err.text[0]);
	record_done(&r);
	jmsg_unref(tape.message);
	return 0;
}
