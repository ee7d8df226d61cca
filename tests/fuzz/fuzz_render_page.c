/* What is drawn, before it is drawn: terminal text as runs (whose HTML must be safe) and cut, HTML
 * as blocks and tables (whose cells must lie in their grid). */
#include <assert.h>

#include "frontend-adapter/render/page.h"
#include "tests/lib/safe_html.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

static void terminal(struct bytes in)
{
	AUTO(buf_done) struct buf html, cut;
	const struct ansi_run *run;
	struct ansi a;
	size_t at = 0;
	buf_init(&html, 1u << 24);
	buf_init(&cut, in.len + 200);
	(void)text_cut(in, 100, &cut); /* whether it was cut is seen by its length */
	assert(!cut.failed && cut.len <= (in.len < 200 ? in.len + 200 : in.len + 60));
	if (ansi_parse(in, &a) == 0) {
		size_t n = ansi_runs(&a, &run);
		for (size_t i = 0; i < n; at += run[i++].len)
			assert(run[i].from == at && run[i].len > 0);
		assert(at == a.text.len);
		ansi_html(&a, &html);
		safe_read((struct bytes){html.data, html.len}, false);
	}
	ansi_done(&a);
}

static void check_table(const struct table *t)
{
	size_t n;
	const struct cell *c = table_cells(t, &n);
	assert(t->header_rows <= t->rows);
	for (size_t i = 0; i < n; i++) {
		assert(c[i].rows > 0 && c[i].row + c[i].rows <= t->rows);
		assert(c[i].columns > 0 && c[i].column + c[i].columns <= t->columns);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	struct bytes in = {data, len};
	struct page *p = page_new();
	terminal(in);
	(void)page_add_html(p, in); /* what there is by then must be sound */
	for (unsigned i = 0; i < p->n; i++)
		if (p->block[i].kind == BLOCK_TABLE)
			check_table(&p->block[i].table);
	page_free(p);
	return 0;
}
