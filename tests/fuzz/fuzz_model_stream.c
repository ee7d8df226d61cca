/* The body of a model's answer, cut into pieces: the first byte is their length (0: one piece).
 * Whatever comes, its text is bounded, and it ends well or with a sentence; cut anywhere else it
 * says the same. */
#include <assert.h>
#include <string.h>

#include "frontend-adapter/model_stream.h"
#include "gateway/base/json.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

#define TEXT_MAX 4096u

static void on_text(void *data, struct bytes text)
{
	assert(text.len > 0 && buf_add(data, text.data, text.len) == 0);
}

/* What clients get is JSON. */
static void assert_text(const struct buf *text)
{
	AUTO(buf_done) struct buf json;
	struct err err;
	buf_init(&json, 8 * TEXT_MAX);
	assert(buf_add_json_string(&json, text->data ? (char *)text->data : "", text->len) == 0);
	assert(json_scan((struct bytes){json.data, json.len}, NULL, 0, &err) == 0);
}

static int read_in_pieces(struct bytes all, size_t piece, struct buf *ret_text)
{
	struct model_stream s;
	struct err err = {0};
	model_stream_init(&s, TEXT_MAX, on_text, ret_text);
	while (all.len > 0) {
		size_t n = all.len < piece ? all.len : piece;
		if (!model_stream_add(&s, (struct bytes){all.data, n}))
			break;
		all.data += n;
		all.len -= n;
	}
	int status = model_stream_end(&s, &err);
	assert(status == err.code && (status == 0 || err.text[0]));
	model_stream_done(&s);
	return status;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	AUTO(buf_done) struct buf text, again;
	buf_init(&text, 2 * TEXT_MAX);
	buf_init(&again, 2 * TEXT_MAX);
	if (len == 0)
		return 0;
	struct bytes all = {data + 1, len - 1};
	int status = read_in_pieces(all, data[0] ? data[0] : SIZE_MAX, &text);
	assert_text(&text);
	assert(status == read_in_pieces(all, 1, &again) && text.len == again.len);
	assert(text.len == 0 || memcmp(text.data, again.data, text.len) == 0);
	return 0;
}
