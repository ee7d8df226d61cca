/* The outputs of a run: each line of the input is a message, its first byte the type. What is
 * written scans, is shown as JSON, and loaded again is written the same. */
#include <assert.h>
#include <string.h>

#include "gateway/base/json.h"
#include "history/outputs.h"
#include "history/spliced.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

static const char *const types[] = {"stream", "display_data", "execute_result", "error",
	"clear_output", "update_display_data", "status"};

static void take_line(struct outputs *o, struct bytes line)
{
	struct err err;
	if (line.len < 2)
		return;
	struct bytes content = {line.data + 1, line.len - 1};
	if (json_scan(content, NULL, 0, &err) == 0 && is_object(content))
		assert(outputs_message(o, types[line.data[0] % ARRAY_LEN(types)], content, &err) ==
			0);
}

static int some_file(void *data, const char *name, struct buf *ret_content, struct err *err)
{
	(void)data;
	(void)err;
	return buf_add_text(ret_content, name);
}

static void write_out(struct outputs *o, struct buf *json, struct buf *displays)
{
	struct outputs_counts counts;
	struct err err;
	assert(outputs_write(o, json, &counts, &err) == 0);
	assert(outputs_displays(o, displays, &err) == 0);
	assert(json_scan((struct bytes){json->data, json->len}, NULL, 0, &err) == 0);
	assert(json_scan((struct bytes){displays->data, displays->len}, NULL, 0, &err) == 0);
}

/* What was written, shown and amended by nothing. */
static void read_in(const struct buf *json, const struct buf *displays)
{
	AUTO(buf_done) struct buf again, same, shown;
	struct bytes stored = {json->data, json->len};
	struct outputs *o = outputs_new();
	struct err err;
	buf_init(&again, 1 << 24);
	buf_init(&same, 1 << 24);
	buf_init(&shown, 1 << 24);
	assert(outputs_load(o, stored, (struct bytes){displays->data, displays->len}, &err) == 0);
	write_out(o, &again, &same);
	assert(again.len == json->len && memcmp(again.data, json->data, json->len) == 0);
	outputs_free(o);
	assert(outputs_expand(stored, some_file, NULL, &shown, &err) == 0);
	assert(json_scan((struct bytes){shown.data, shown.len}, NULL, 0, &err) == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	AUTO(buf_done) struct buf json, displays;
	struct outputs *o = outputs_new();
	const uint8_t *end = data + len;
	buf_init(&json, 1 << 24);
	buf_init(&displays, 1 << 24);
	while (data < end) {
		const uint8_t *newline = memchr(data, '\n', (size_t)(end - data));
		const uint8_t *stop = newline ? newline : end;
		take_line(o, (struct bytes){data, (size_t)(stop - data)});
		data = stop + 1;
	}
	write_out(o, &json, &displays);
	outputs_free(o);
	read_in(&json, &displays);
	return 0;
}
