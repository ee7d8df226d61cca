/* The sanitiser: whatever comes in, what goes out is as tests/lib/safe_html.h reads it, both as
 * HTML and as SVG. */
#include "frontend-adapter/render/sanitise.h"
#include "tests/lib/safe_html.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	AUTO(buf_done) struct buf html, svg;
	struct sanitised said;
	buf_init(&html, 1u << 22);
	buf_init(&svg, 1u << 22);
	if (sanitise_html((struct bytes){data, len}, SAFE_SCOPE, &html, &said) == 0)
		safe_read((struct bytes){html.data, html.len}, false);
	if (sanitise_svg((struct bytes){data, len}, &svg) == 0)
		safe_read((struct bytes){svg.data, svg.len}, true);
	return 0;
}
