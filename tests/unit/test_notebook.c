#include <stdio.h>
#include <string.h>

#include "gateway/base/json.h"
#include "history/notebook.h"
#include "history/percent.h"
#include "tests/lib/test.h"

static struct bytes of(const char *text)
{
	return (struct bytes){(const uint8_t *)text, strlen(text)};
}

/* ---- scripts ---- */

static void assert_source(const struct cell *c, const char *expected)
{
	assert_string_equal(c->source.data ? (const char *)c->source.data : "", expected);
}

static char *script_of(const struct notebook *nb)
{
	struct buf b;
	buf_init(&b, 1 << 20);
	assert_int_equal(percent_write(nb, &b, NULL), 0);
	return (char *)buf_take(&b, NULL);
}

/* What a cell is in a script, without its first line and the blank one before. */
static void assert_in_script(const char *code, const char *expected)
{
	struct notebook nb, again;
	notebook_init(&nb);
	notebook_init(&again);
	(void)buf_add_text(&notebook_add(&nb, CELL_CODE)->source, code);
	(void)buf_add_text(&notebook_add(&nb, CELL_CODE)->source, "last");
	char *script = script_of(&nb);
	const char *cell = strstr(script, "\n# %%\n") + 6;
	char *end = strstr(script, "\n# %%\nlast\n");
	assert_non_null(end);
	*end = '\0';
	assert_string_equal(cell, expected);
	*end = '\n';
	assert_int_equal(percent_read(of(script), &again, NULL), 0);
	assert_int_equal(again.n, 2);
	assert_source(&again.cells[0], code);
	assert_source(&again.cells[1], "last");
	free(script);
	notebook_done(&nb);
	notebook_done(&again);
}

TEST(percent, code_comes_back_as_it_was)
{
	assert_in_script("x = 1\ny", "x = 1\ny\n");
	assert_in_script("", "");
	assert_in_script("if x:\n    pass\n\n\nz", "if x:\n    pass\n\n\nz\n");
	assert_in_script("\n\nx", "\n\nx\n");
	assert_in_script("s = 'it''s' # don't\nt", "s = 'it''s' # don't\nt\n");
}

TEST(percent, what_is_ipythons_is_a_comment)
{
	assert_in_script("%matplotlib inline\nx", "# %matplotlib inline\nx\n");
	assert_in_script("%%time\nx", "# %%time\nx\n");
	assert_in_script("if x:\n    !ls -l\n    %time y", "if x:\n    # !ls -l\n    # %time y\n");
	assert_in_script("files = !ls\nt = %time x", "# files = !ls\n# t = %time x\n");
	assert_in_script("print?\n?print\nx??", "# print?\n# ?print\n# x??\n");
	assert_in_script("ls -l\ncd = 1\ncat, x\nls", "# ls -l\ncd = 1\ncat, x\n# ls\n");
	assert_in_script("!ls \\\n  -l\nx", "# !ls \\\n#   -l\nx\n");
	assert_in_script("# %time x\n#%time y\n# # !z", "# # %time x\n# #%time y\n# # # !z\n");
	assert_in_script("x % y\nx %\\\ny\n'%s' % x", "x % y\nx %\\\ny\n'%s' % x\n");
}

TEST(percent, what_stands_in_a_text_is_none)
{
	assert_in_script("s = '''\n%d\n!x\n'''\n%time s", "s = '''\n%d\n!x\n'''\n# %time s\n");
	assert_in_script("s = \"\"\"a\"\"\"\n%time s", "s = \"\"\"a\"\"\"\n# %time s\n");
	assert_in_script("s = 'it\\'s'\n%time s", "s = 'it\\'s'\n# %time s\n");
	assert_in_script("s = '''\\'''\n%d'''\n%time s", "s = '''\\'''\n%d'''\n# %time s\n");
	assert_in_script("s = \"'''\"\n%time s", "s = \"'''\"\n# %time s\n");
	assert_in_script("x # '''\n%time s", "x # '''\n# %time s\n");
}

TEST(percent, what_looks_like_a_beginning_is_none)
{
	assert_in_script("# %%\nx", "# # %%\nx\n");
	assert_in_script("# %% title\n#%%\n    # %%", "# # %% title\n# #%%\n    # # %%\n");
	assert_in_script("# # %%\n## %%\n# %%% deep", "# # # %%\n# ## %%\n# # %%% deep\n");
	assert_in_script("# In[3]:\n# <codecell>", "# # In[3]:\n# # <codecell>\n");
	/* A text that nothing ends must not swallow the cells behind it. */
	assert_in_script("s = '''\n# %%", "s = '''\n# # %%\n");
}

TEST(percent, text_comes_back_too)
{
	static const char *const lines[] = {"%%", " %% x", "# %%", "# # %%", "#%%", "  # %%", "",
		"In[1]:", "# In[1]", "plain", "#", " #", "%%x", "<codecell>"};
	for (size_t i = 0; i < ARRAY_LEN(lines); i++) {
		struct notebook nb, again;
		notebook_init(&nb);
		notebook_init(&again);
		struct cell *c = notebook_add(&nb, CELL_MARKDOWN);
		(void)buf_addf(&c->source, "a\n%s\nz", lines[i]);
		char *script = script_of(&nb);
		assert_int_equal(percent_read(of(script), &again, NULL), 0);
		assert_int_equal(again.n, 1);
		assert_source(&again.cells[0], (const char *)nb.cells[0].source.data);
		free(script);
		notebook_done(&nb);
		notebook_done(&again);
	}
}

TEST(percent, scripts_of_others)
{
	static const char script[] =
		"\xef\xbb\xbf# ---\r\n# jupyter:\r\n#   kernelspec:\r\n"
		"#     display_name: \"R \\u00fc\"\r\n#     language: R\r\n#     name: ir\r\n"
		"# ---\r\n\r\nbefore = 1\r\n\r\n# %% [markdown]\r\n# # "
		"Title\r\n#\r\n#text\r\n\r\n\r\n"
		"# %% a title {\"a\": 1}\r\n%time x\r\n# %time y\r\n\r\n\r\n# %% [raw]\r\n# "
		"r\r\n#%%\r\nz";
	static const char *const sources[] = {
		"before = 1", "# Title\n\ntext", "%time x\n%time y", "r", "z"};
	struct notebook nb;
	notebook_init(&nb);
	assert_int_equal(percent_read(of(script), &nb, NULL), 0);
	assert_int_equal(nb.n, ARRAY_LEN(sources));
	for (size_t i = 0; i < ARRAY_LEN(sources); i++)
		assert_source(&nb.cells[i], sources[i]);
	assert_int_equal(nb.cells[1].kind, CELL_MARKDOWN);
	assert_int_equal(nb.cells[3].kind, CELL_RAW);
	assert_string_equal(nb.kernelspec, "ir");
	assert_non_null(strstr((const char *)nb.metadata.data, "\"R \xc3\xbc\""));
	notebook_done(&nb);
}

TEST(percent, a_script_without_cells_is_one)
{
	struct notebook nb;
	notebook_init(&nb);
	assert_int_equal(percent_read(of("# ---\nx = 1\n\ny = 2\n\n"), &nb, NULL), 0);
	assert_int_equal(nb.n, 1);
	assert_source(&nb.cells[0], "# ---\nx = 1\n\ny = 2");
	notebook_done(&nb);
}

static uint32_t next_random(uint32_t *state)
{
	*state = *state * 1664525u + 1013904223u;
	return *state >> 8;
}

TEST(percent, any_code_comes_back)
{
	static const char *const parts[] = {"# ", "#", "%%", "%", "time", " ", "\n", "'''", "\"",
		"'", "\\", "!", "?", "ls", "In[1]:", "=", "x", "    ", "\t", "<codecell>",
		"\xc3\xbc"};
	uint32_t dice = 1;
	for (int round = 0; round < 20000; round++) {
		struct notebook nb, again;
		notebook_init(&nb);
		notebook_init(&again);
		for (int c = 0; c < 3; c++) {
			struct cell *cell = notebook_add(&nb, CELL_CODE);
			unsigned n = next_random(&dice) % 12;
			for (unsigned i = 0; i < n; i++)
				(void)buf_add_text(&cell->source,
					parts[next_random(&dice) % ARRAY_LEN(parts)]);
			(void)buf_add_text(&cell->source, "."); /* blank lines at the end go */
		}
		char *script = script_of(&nb);
		assert_int_equal(percent_read(of(script), &again, NULL), 0);
		assert_int_equal(again.n, 3);
		for (size_t c = 0; c < 3; c++)
			assert_source(&again.cells[c], (const char *)nb.cells[c].source.data);
		char *second = script_of(&again);
		assert_string_equal(second, script);
		free(script);
		free(second);
		notebook_done(&nb);
		notebook_done(&again);
	}
}

/* ---- notebooks ---- */

static int read_text(const char *text, struct notebook *nb, struct err *err)
{
	notebook_init(nb);
	return notebook_read(of(text), nb, err);
}

#define CODE(members) "{\"nbformat\":4,\"cells\":[{\"cell_type\":\"code\"," members "}]}"

TEST(notebook, numbers_and_escapes_pass_as_they_are)
{
	struct notebook nb;
	struct notebook_style style = {0};
	struct buf out;
	buf_init(&out, 1 << 20);
	assert_int_equal(
		read_text(CODE("\"source\":\"\\u00fc\",\"execution_count\":12345678901234567,"
			       "\"metadata\":{\"n\":1e400},\"outputs\":[{\"output_type\":"
			       "\"display_data\",\"data\":{\"application/json\":"
			       "{\"n\":0.10000000000000000001}},\"metadata\":{}}]"),
			&nb, NULL),
		0);
	assert_int_equal(notebook_write(&nb, &style, &out, NULL), 0);
	const char *text = (const char *)out.data;
	assert_non_null(strstr(text, "\"n\": 0.10000000000000000001"));
	assert_non_null(strstr(text, "\"n\": 1e400"));
	assert_non_null(strstr(text, "\"execution_count\": 12345678901234567,"));
	assert_non_null(strstr(text, "\"source\": [\n    \"\xc3\xbc\"\n   ]"));
	buf_done(&out);
	notebook_done(&nb);
}

TEST(notebook, what_python_writes_beside_json_is_mended)
{
	struct notebook nb;
	assert_int_equal(read_text(CODE("\"source\":\"x\\ud800\",\"outputs\":[{\"output_type\":"
					"\"display_data\",\"data\":{\"application/json\":[NaN]}}]"),
				 &nb, NULL),
		0);
	assert_non_null(strstr((const char *)nb.cells[0].outputs.data, "[null]"));
	notebook_done(&nb);
}

TEST(notebook, cells_get_names_of_their_own)
{
	static const char *const ids[] = {"a", "a", "", "a b", "cell-1"};
	static const char *const fresh[] = {"", "f", "f", "f", ""};
	static const char *const expected[] = {"a", "f", "cell-1", "cell-2", "cell-3"};
	struct notebook nb;
	notebook_init(&nb);
	for (size_t i = 0; i < ARRAY_LEN(ids); i++) {
		struct cell *c = notebook_add(&nb, CELL_CODE);
		(void)snprintf(c->id, sizeof c->id, "%s", ids[i]);
		(void)snprintf(c->fresh, sizeof c->fresh, "%s", fresh[i]);
	}
	notebook_name_cells(&nb);
	for (size_t i = 0; i < ARRAY_LEN(ids); i++)
		assert_string_equal(nb.cells[i].id, expected[i]);
	notebook_done(&nb);
}

TEST(notebook, layout_is_jupyters)
{
	AUTO(buf_done) struct buf out;
	buf_init(&out, 4096);
	json_lay_out(of("{\"a\":[],\"b\" : [1,{\"c\":\"[{,:\\\"\"}],\"d\":{ }}"), 0, &out);
	assert_string_equal((const char *)out.data,
		"{\n \"a\": [],\n \"b\": [\n  1,\n  {\n   \"c\": "
		"\"[{,:\\\"\"\n  }\n ],\n \"d\": {}\n}");
}

TEST(notebook, what_is_no_text_there_becomes_one)
{
	struct notebook nb;
	notebook_init(&nb);
	struct cell *c = notebook_add(&nb, CELL_CODE);
	(void)buf_add_text(&c->outputs,
		"[{\"output_type\":\"display_data\",\"data\":{\"text/plain\":7,"
		"\"application/x+json\":[1],\"a/b+json\":{\"k\":\"v\"}},"
		"\"metadata\":{}}]");
	assert_int_equal(cell_make_valid(c, NULL), 0);
	assert_string_equal((const char *)c->outputs.data,
		"[{\"output_type\":\"display_data\",\"data\":{\"text/plain\":\"7\","
		"\"application/x+json\":[1],\"a/b+json\":\"{\\\"k\\\":\\\"v\\\"}\"},"
		"\"metadata\":{}}]");
	notebook_done(&nb);
}

RUN(TEST_ROW(percent, code_comes_back_as_it_was), TEST_ROW(percent, what_is_ipythons_is_a_comment),
	TEST_ROW(percent, what_stands_in_a_text_is_none),
	TEST_ROW(percent, what_looks_like_a_beginning_is_none),
	TEST_ROW(percent, text_comes_back_too), TEST_ROW(percent, scripts_of_others),
	TEST_ROW(percent, a_script_without_cells_is_one), TEST_ROW(percent, any_code_comes_back),
	TEST_ROW(notebook, numbers_and_escapes_pass_as_they_are),
	TEST_ROW(notebook, what_python_writes_beside_json_is_mended),
	TEST_ROW(notebook, cells_get_names_of_their_own), TEST_ROW(notebook, layout_is_jupyters),
	TEST_ROW(notebook, what_is_no_text_there_becomes_one))
