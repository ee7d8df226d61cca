/* A file that somebody imports: as a notebook and as a script. What is taken is written, and what
 * is written is taken again and written the same. */
#include <assert.h>
#include <string.h>

#include "gateway/base/json.h"
#include "history/notebook.h"
#include "history/percent.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

static int write_it(const struct notebook *nb, bool script, struct buf *ret)
{
	struct notebook_style style = {0};
	struct err err;
	buf_init(ret, 1 << 26);
	return script ? percent_write(nb, ret, &err) : notebook_write(nb, &style, ret, &err);
}

static int read_it(struct bytes file, bool script, struct notebook *ret)
{
	struct err err;
	notebook_init(ret);
	int status = script ? percent_read(file, ret, &err) : notebook_read(file, ret, &err);
	assert(status == 0 || err.text[0]);
	if (status == 0)
		notebook_name_cells(ret);
	return status;
}

static void there_and_back(struct bytes file, bool script)
{
	AUTO(buf_done) struct buf first, second;
	struct notebook nb, again;
	buf_init(&first, 1);
	buf_init(&second, 1);
	if (read_it(file, script, &nb) == 0 && write_it(&nb, script, &first) == 0) {
		struct bytes text = {first.data, first.len};
		assert(script || json_scan(text, NULL, 0, NULL) == 0);
		int status = read_it(text, script, &again);
		assert(status == 0);
		assert(write_it(&again, script, &second) == 0);
		assert(first.len == second.len && memcmp(first.data, second.data, first.len) == 0);
		notebook_done(&again);
	}
	notebook_done(&nb);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	there_and_back((struct bytes){data, len}, false);
	there_and_back((struct bytes){data, len}, true);
	return 0;
}
