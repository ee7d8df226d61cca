#include "tests/lib/test.h"

#include <string.h>

#include "frontend-adapter/render/page.h"

/* The cells of the page's only block, "text@row,column+rows x columns" and so on. */
static struct page *read_page(const char *html)
{
	struct page *p = page_new();
	assert_int_equal(page_add_html(p, (struct bytes){(const uint8_t *)html, strlen(html)}), 0);
	return p;
}

static const struct table *only_table(const struct page *p)
{
	assert_int_equal(p->n, 1);
	assert_int_equal(p->block[0].kind, BLOCK_TABLE);
	return &p->block[0].table;
}

static void is_grid(const struct table *t, const char *expected)
{
	AUTO(buf_done) struct buf out;
	size_t n;
	const struct cell *c = table_cells(t, &n);
	buf_init(&out, 100000);
	for (size_t i = 0; i < n; i++) {
		(void)buf_addf(&out, "%s%s@%u,%u", i ? " " : "", c[i].text, c[i].row, c[i].column);
		if (c[i].rows > 1 || c[i].columns > 1)
			(void)buf_addf(&out, "+%ux%u", c[i].rows, c[i].columns);
	}
	assert_string_equal(out.data ? (char *)out.data : "", expected);
}

TEST(table, a_dataframe)
{
	struct page *p =
		read_page("<div><table border=1 "
			  "class=dataframe><thead><tr><th></th><th>a</th><th>b</th></tr></thead>"
			  "<tbody><tr><th>0</th><td>1</td><td>x <b>y</b>\n "
			  "z</td></tr></tbody></table></div>");
	const struct table *t = only_table(p);
	is_grid(t, "@0,0 a@0,1 b@0,2 0@1,0 1@1,1 x y z@1,2");
	assert_true(t->dataframe);
	assert_int_equal(t->header_rows, 1);
	assert_int_equal(t->rows, 2);
	assert_int_equal(t->columns, 3);
	page_free(p);
}

TEST(table, spans_of_a_multi_index)
{
	struct page *p = read_page(
		"<table><thead><tr><th></th><th></th><th colspan=2 halign=left>c</th></tr>"
		"</thead><tbody><tr><th rowspan=2>a</th><th>x</th><td>1</td><td>2</td></tr>"
		"<tr><th>y</th><td>3</td><td>4</td></tr></tbody></table>");
	const struct table *t = only_table(p);
	size_t n;
	is_grid(t, "@0,0 @0,1 c@0,2+1x2 a@1,0+2x1 x@1,1 1@1,2 2@1,3 y@2,1 3@2,2 4@2,3");
	assert_int_equal(table_cells(t, &n)[2].align, ALIGN_LEFT);
	page_free(p);
}

TEST(table, spans_are_bounded)
{
	struct page *p = read_page(
		"<table><tr><td rowspan=99999999>a<td colspan=99999999>b<tr><td>c</table>");
	const struct table *t = only_table(p);
	is_grid(t, "a@0,0+2x1 b@0,1+1x999 c@1,1");
	assert_int_equal(t->columns, TABLE_COLUMNS_MAX);
	page_free(p);
}

TEST(table, a_first_row_of_heads)
{
	struct page *p = read_page("<table><tr><th>a<th>b<tr><td>1<td>2</table>");
	assert_int_equal(only_table(p)->header_rows, 1);
	page_free(p);
	p = read_page("<table><tr><th>a<td>b</table>");
	assert_int_equal(only_table(p)->header_rows, 0);
	page_free(p);
}

TEST(table, colours_of_a_styler)
{
	struct page *p = read_page(
		"<style>#T_1_row0_col0, #T_1_row1_col0 { background-color: #08306b; color: "
		"#f1f1f1; } #other{color:red}</style><table id=T_1><caption>C</caption><tr>"
		"<td id=T_1_row0_col0>1<td style='color:red;font-weight:bold'>2</table>");
	const struct table *t = only_table(p);
	size_t n;
	const struct cell *c = table_cells(t, &n);
	assert_int_equal(n, 2);
	assert_int_equal(c[0].background, 0x08306b);
	assert_int_equal(c[0].colour, 0xf1f1f1);
	assert_int_equal(c[1].colour, 0xff0000);
	assert_true(c[1].bold);
	assert_string_equal(t->caption, "C");
	page_free(p);
}

TEST(table, a_long_cell_is_cut)
{
	AUTO(buf_done) struct buf html;
	size_t n;
	buf_init(&html, 1 << 20);
	(void)buf_add_text(&html, "<table><tr><td>");
	for (int i = 0; i < 10000; i++)
		(void)buf_add_text(&html, "\xe4\xb8\xad");
	struct page *p = read_page((char *)html.data);
	const char *text = table_cells(only_table(p), &n)[0].text;
	assert_true(strlen(text) < 2100);
	assert_string_equal(text + strlen(text) - 3, "\xe2\x80\xa6");
	page_free(p);
}

TEST(table, texts_and_tables_in_order)
{
	struct page *p = read_page(
		"<h3>Head</h3><p>One  two<br>three</p><table><tr><td>1</table><pre>a\n  b</pre>");
	static const enum block_kind kinds[] = {BLOCK_HEADING, BLOCK_TEXT, BLOCK_TABLE, BLOCK_MONO};
	assert_int_equal(p->n, 4);
	for (unsigned i = 0; i < 4; i++)
		assert_int_equal(p->block[i].kind, kinds[i]);
	assert_string_equal((char *)p->block[1].ansi.text.data, "One two\nthree");
	assert_string_equal((char *)p->block[3].ansi.text.data, "a\n  b");
	page_free(p);
}

TEST(table, other_html_is_not_drawn)
{
	static const char *const other[] = {"<svg></svg>", "<p>a<img src=b>",
		"<script>a</script><p>b", "<table><tr><td><canvas></canvas></table>", "<input>",
		"<math><mi>x</mi></math>", "<video></video>", "<template></template>",
		"<x-y>a</x-y>", "<iframe></iframe>"};
	for (size_t i = 0; i < ARRAY_LEN(other); i++) {
		struct page *p = page_new();
		struct bytes b = {(const uint8_t *)other[i], strlen(other[i])};
		assert_int_equal(page_add_html(p, b), E_INVALID);
		page_free(p);
	}
}

TEST(table, nothing_is_nothing)
{
	struct page *p = page_new();
	assert_int_equal(
		page_add_html(p, (struct bytes){(const uint8_t *)"<div> </div>", 12}), E_NOT_FOUND);
	assert_int_equal(page_add_html(p, (struct bytes){(const uint8_t *)"<table></table>", 15}),
		E_NOT_FOUND);
	page_free(p);
}

RUN(TEST_ROW(table, a_dataframe), TEST_ROW(table, spans_of_a_multi_index),
	TEST_ROW(table, spans_are_bounded), TEST_ROW(table, a_first_row_of_heads),
	TEST_ROW(table, colours_of_a_styler), TEST_ROW(table, a_long_cell_is_cut),
	TEST_ROW(table, texts_and_tables_in_order), TEST_ROW(table, other_html_is_not_drawn),
	TEST_ROW(table, nothing_is_nothing))
