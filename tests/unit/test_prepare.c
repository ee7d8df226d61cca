/* What of a model's text is code: tests/prepare/NAME.md is the text, NAME.json beside it what is
 * made of it. The names of the field cases begin with case-. */
#include "tests/lib/test.h"

#include <cjson/cJSON.h>
#include <glob.h>
#include <stdio.h>
#include <string.h>

#include "frontend-adapter/adapter.h"
#include "frontend-adapter/prepare.h"
#include "gateway/base/buf.h"

#define FILE_SIZE 65536
#define CASES_MIN 60

static void read_file(const char *path, struct buf *ret)
{
	char data[FILE_SIZE];
	FILE *file = fopen(path, "rbe");
	if (!file)
		fail_msg("%s is not there", path);
	assert_int_equal(buf_add(ret, data, fread(data, 1, sizeof data, file)), 0);
	(void)fclose(file); /* read only */
}

static cJSON *prepare(struct bytes text)
{
	/* A block of the exact size, so that a sanitizer sees a read past the end. */
	uint8_t *exact = malloc(text.len ? text.len : 1);
	cJSON *tree = NULL;
	struct err err = {0};
	assert_non_null(exact);
	if (text.len > 0)
		memcpy(exact, text.data, text.len);
	if (prepare_text((struct bytes){exact, text.len}, &tree, &err) != 0)
		fail_msg("%s", err.text);
	free(exact);
	return tree;
}

static cJSON *prepare_string(const char *text)
{
	return prepare((struct bytes){(const uint8_t *)text, strlen(text)});
}

static const char *text_of(const cJSON *tree, const char *key)
{
	return cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(tree, key));
}

static const cJSON *blocks_of(const cJSON *tree)
{
	return cJSON_GetObjectItemCaseSensitive(tree, "blocks");
}

typedef void each_fn(const char *path, struct bytes text);

static size_t each(const char *pattern, each_fn *fn)
{
	glob_t found;
	assert_int_equal(glob(pattern, 0, NULL, &found), 0);
	size_t n = found.gl_pathc;
	for (size_t i = 0; i < n; i++) {
		AUTO(buf_done) struct buf text;
		buf_init(&text, FILE_SIZE);
		read_file(found.gl_pathv[i], &text);
		fn(found.gl_pathv[i], (struct bytes){text.data, text.len});
	}
	globfree(&found);
	return n;
}

static void compare(const char *path, struct bytes text)
{
	char beside[512];
	AUTO(buf_done) struct buf json;
	buf_init(&json, FILE_SIZE);
	assert_true(snprintf(beside, sizeof beside, "%.*s.json", (int)strlen(path) - 3, path) > 0);
	read_file(beside, &json);
	cJSON *want = cJSON_Parse((const char *)json.data), *is = prepare(text);
	assert_non_null(want);
	if (!cJSON_Compare(want, is, true)) {
		char *shown = cJSON_Print(is);
		fail_msg("%s: %s", path, shown);
	}
	cJSON_Delete(want);
	cJSON_Delete(is);
}

TEST(prepare, case_37_fences_in_every_shape)
{
	assert_int_equal(each("tests/prepare/case-37?.md", compare), 12);
}

TEST(prepare, case_38_fences_inside_code_and_drafts_inside_thoughts)
{
	assert_int_equal(each("tests/prepare/case-38-*.md", compare), 2);
}

TEST(prepare, case_40_nothing_to_run_or_not_all_of_it)
{
	assert_int_equal(each("tests/prepare/case-40?.md", compare), 5);
}

TEST(prepare, every_text_gives_what_stands_beside_it)
{
	assert_true(each("tests/prepare/*.md", compare) >= CASES_MIN);
}

static void prepare_again(const char *path, struct bytes text)
{
	cJSON *first = prepare(text);
	const char *code = text_of(cJSON_GetArrayItem(blocks_of(first), 0), "code");
	if (strcmp(text_of(first, "verdict"), "code") == 0) {
		cJSON *again = prepare_string(code);
		const cJSON *block = cJSON_GetArrayItem(blocks_of(again), 0);
		if (!block)
			fail_msg("%s: its own code is none", path);
		assert_string_equal(text_of(block, "code"), code);
		assert_int_equal(
			cJSON_GetArraySize(cJSON_GetObjectItemCaseSensitive(block, "changes")), 0);
		cJSON_Delete(again);
	}
	cJSON_Delete(first);
}

TEST(prepare, its_own_result_stays_as_it_is)
{
	(void)each("tests/prepare/case-*.md", prepare_again); /* their number is checked above */
}

static void cut_everywhere(const char *path, struct bytes text)
{
	for (size_t len = 0; len < text.len; len++) {
		cJSON *tree = prepare((struct bytes){text.data, len});
		const char *verdict = text_of(tree, "verdict");
		if (!verdict)
			fail_msg("%s: cut to %zu", path, len);
		cJSON_Delete(tree);
	}
}

TEST(prepare, a_text_cut_anywhere_has_a_verdict)
{
	(void)each("tests/prepare/*.md", cut_everywhere); /* their number is checked above */
}

static void same_codes(const char *path, const cJSON *a, const cJSON *b)
{
	assert_string_equal(text_of(a, "verdict"), text_of(b, "verdict"));
	assert_string_equal(text_of(a, "prose"), text_of(b, "prose"));
	if (cJSON_GetArraySize(blocks_of(a)) != cJSON_GetArraySize(blocks_of(b)))
		fail_msg("%s: not as many blocks", path);
	for (int i = 0; i < cJSON_GetArraySize(blocks_of(a)); i++)
		assert_string_equal(text_of(cJSON_GetArrayItem(blocks_of(a), i), "code"),
			text_of(cJSON_GetArrayItem(blocks_of(b), i), "code"));
}

static void with_crs(const char *path, struct bytes text)
{
	AUTO(buf_done) struct buf crs;
	buf_init(&crs, 2 * FILE_SIZE);
	if (text.len == 0 || memchr(text.data, '\r', text.len))
		return;
	for (size_t i = 0; i < text.len; i++)
		assert_int_equal(buf_addf(&crs, "%s", text.data[i] == '\n' ? "\r" : "") ||
					 buf_add(&crs, text.data + i, 1),
			0);
	cJSON *plain = prepare(text), *cr = prepare((struct bytes){crs.data, crs.len});
	same_codes(path, plain, cr);
	cJSON_Delete(plain);
	cJSON_Delete(cr);
}

TEST(prepare, line_ends_of_windows_change_no_code)
{
	(void)each("tests/prepare/*.md", with_crs); /* their number is checked above */
}

static void one_cell(const char *text, const char *want)
{
	struct prepared p = {0};
	enum prepared_is is;
	assert_int_equal(prepare_code(text, &is, &p, NULL), 0);
	assert_int_equal(is == PREPARED_CODE, want != NULL);
	if (want)
		assert_string_equal(p.code, want);
	prepared_done(&p);
}

TEST(prepare, what_the_model_wrote_is_kept_beside)
{
	struct prepared p = {0};
	enum prepared_is is;
	assert_int_equal(
		prepare_code(
			"```python\nx = “a”\n```\n```python\n%%bash\nls\n```\n```py\n$ pwd\n```",
			&is, &p, NULL),
		0);
	assert_int_equal(is, PREPARED_CODE);
	assert_string_equal(p.written, "x = “a”\n\n%%bash\nls\n\n$ pwd\n");
	assert_string_equal(p.code,
		"x = \"a\"\n\nget_ipython().run_cell_magic(\"bash\", \"\", \"ls\\n\")\n\n!pwd\n");
	assert_int_equal(cJSON_GetArraySize(p.changes), 2);
	prepared_done(&p);
}

TEST(prepare, all_runs_of_an_answer_are_one_cell)
{
	one_cell("```python\nx = 1\n```\n```python\nx\n```", "x = 1\n\nx\n");
	one_cell("```python\n%%bash -e\necho \"a\"\n```", "%%bash -e\necho \"a\"\n");
	one_cell("```python\nx = 1\n```\n```python\n%%bash -e\necho \"a\"\n```\n```py\nx\n```",
		"x = 1\n\nget_ipython().run_cell_magic(\"bash\", \"-e\", \"echo "
		"\\\"a\\\"\\n\")\n\nx\n");
	one_cell("{\"cells\":[{\"cell_type\":\"code\",\"source\":\"x = 1\"},"
		 "{\"cell_type\":\"code\",\"source\":\"%%time\"}]}",
		"x = 1\n\nget_ipython().run_cell_magic(\"time\", \"\", \"\")\n");
	one_cell("Add the numbers.", NULL);
	one_cell("```pycon\n>>>\n```", NULL);
	one_cell("```python\nprint(", NULL);
	one_cell("```bash\nls\n```", NULL);
}

static void fill(struct buf *text, const char *unit, size_t len)
{
	while (text->len + strlen(unit) <= len)
		assert_int_equal(buf_add_text(text, unit), 0);
}

/* Each took minutes for one megabyte while time grew with the square of it. */
TEST(prepare, hostile_texts_of_full_size_end)
{
	static const char *const units[] = {"![[]()", "*a **a ", "+ - * ", ">", "((",
		"- ```python\nx\n", "```md\n```x\n```\n", "<code>\n", "<think></think>\n",
		"```python\n'''\n```\n", "\xe2\x80\x9c", "[{\"code\":", "\\\n", "`"};
	for (size_t i = 0; i < ARRAY_LEN(units); i++) {
		cJSON *tree = NULL;
		AUTO(buf_done) struct buf text;
		buf_init(&text, PREPARE_TEXT_MAX);
		fill(&text, units[i], PREPARE_TEXT_MAX / 2);
		fill(&text, "\n", PREPARE_TEXT_MAX - 1);
		int status = prepare_text((struct bytes){text.data, text.len}, &tree, NULL);
		assert_true(status == 0 || status == E_TOO_BIG);
		cJSON_Delete(tree);
	}
}

TEST(prepare, what_is_too_long_or_of_too_many_parts_is_refused)
{
	cJSON *tree = NULL;
	struct err err = {0};
	AUTO(buf_done) struct buf text;
	buf_init(&text, PREPARE_TEXT_MAX + 1);
	fill(&text, "```a\n```\n", 9 * 1001);
	assert_int_equal(prepare_text((struct bytes){text.data, text.len}, &tree, &err), E_TOO_BIG);
	fill(&text, "x", PREPARE_TEXT_MAX + 1);
	assert_int_equal(prepare_text((struct bytes){text.data, text.len}, &tree, &err), E_TOO_BIG);
	assert_null(tree);
}

RUN(TEST_ROW(prepare, case_37_fences_in_every_shape),
	TEST_ROW(prepare, case_38_fences_inside_code_and_drafts_inside_thoughts),
	TEST_ROW(prepare, case_40_nothing_to_run_or_not_all_of_it),
	TEST_ROW(prepare, every_text_gives_what_stands_beside_it),
	TEST_ROW(prepare, its_own_result_stays_as_it_is),
	TEST_ROW(prepare, a_text_cut_anywhere_has_a_verdict),
	TEST_ROW(prepare, line_ends_of_windows_change_no_code),
	TEST_ROW(prepare, all_runs_of_an_answer_are_one_cell),
	TEST_ROW(prepare, what_the_model_wrote_is_kept_beside),
	TEST_ROW(prepare, hostile_texts_of_full_size_end),
	TEST_ROW(prepare, what_is_too_long_or_of_too_many_parts_is_refused))
