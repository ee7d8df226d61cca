/* What coppice-render reads: a head line and a bundle, from the bytes to the HTML that it makes of
 * them. PNG is drawn by libraries of others and costs too much to explore. */
#include <assert.h>
#include <string.h>

#include "frontend-adapter/render/render.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

static void draw(const struct request *r)
{
	struct result result = {0};
	struct err err = {0};
	buf_init(&result.bytes, r->max_bytes);
	int status = render_html(r, &result, &err);
	assert(status == 0 || status == E_NOT_FOUND || status == E_TOO_BIG || status == E_INVALID);
	assert(status != 0 || (result.from && result.bytes.len <= r->max_bytes));
	buf_done(&result.bytes);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	AUTO(buf_done) struct buf in;
	struct request r;
	struct err err = {0};
	buf_init(&in, len + 1);
	(void)buf_add(&in, data, len); /* it fits */
	int status = request_parse(&in, &r, &err);
	if (status == 0)
		draw(&r);
	else
		assert(err.text[0]);
	request_done(&r);
	return 0;
}
