/* What can be told of Python without its parser: prose or program, and what is mended in it. */
#include "tests/lib/test.h"

#include <cjson/cJSON.h>
#include <string.h>

#include "frontend-adapter/mend.h"
#include "frontend-adapter/python.h"

static struct bytes as_bytes(const char *text)
{
	return (struct bytes){(const uint8_t *)text, strlen(text)};
}

static void look_all(const char *const *texts, size_t n, enum py_look want)
{
	for (size_t i = 0; i < n; i++)
		if (py_look(as_bytes(texts[i])) != want)
			fail_msg("%s: %d", texts[i], py_look(as_bytes(texts[i])));
}

TEST(python, programs_look_like_programs)
{
	static const char *const texts[] = {"import math", "from . import a",
		"from ...a.b import c as d", "x = 1", "x: int = 1", "x, = y", "a.b[0] += 1",
		"print(1)", "f(x)(y)", "6*7", "%time f()", "r = !id", "%%bash\nany thing",
		"@d\ndef f(): pass", "if x: y()", "lambda x: f(x)", "async def f():\n  await g()",
		"type X = int", "x = 1 if y else 2", "'''doc'''\nx = 1", "f(a, b=1, *c, **d)",
		"x = [i for i in y if i]", "del x, y; print(x)", "x = \\\n  1", "f(\n  1,\n\n  2)",
		"x = {'a': 1}", "assert f(x) == ...", "df['a']"};
	look_all(texts, ARRAY_LEN(texts), PY_CODE);
}

TEST(python, prose_and_data_do_not)
{
	static const char *const texts[] = {"", "Done", "Hello, world", "I can't", "Note: this",
		"42", "[1, 2]", "{\"a\": 1}", "yes/no", "Use sum(x) here.", "sum(x).", "- f(x)",
		"* f(x)", "1. f(x)", "> f(x)", "# Title", "f(x) = x", "f(x) -> int", "a (b)",
		"https://a.b/c?d=e", "x = y z", "what is f(x)?", "import this and that",
		"(see f(x)", "class of f(x)", "!ls", "%pip install x", "f(x) for y"};
	for (size_t i = 0; i < ARRAY_LEN(texts); i++)
		if (py_look(as_bytes(texts[i])) == PY_CODE)
			fail_msg("%s", texts[i]);
}

TEST(python, what_ends_in_the_midst_is_cut)
{
	static const char *const texts[] = {"f(1,", "x = [1", "x = '''a\n", "x = 'a",
		"def f():", "if x:\n", "for i in range(3):\n    # nothing yet\n"};
	look_all(texts, ARRAY_LEN(texts), PY_CUT);
}

/* NULL for rule: it stays as it is. */
static void mend(const char *code, const char *rule, const char *want)
{
	AUTO(buf_done) struct buf is;
	cJSON *changes = cJSON_CreateArray();
	buf_init(&is, 1 << 16);
	assert_int_equal(mend_python(as_bytes(code), &is, changes, NULL), 0);
	assert_string_equal((const char *)is.data, want);
	assert_int_equal(cJSON_GetArraySize(changes), rule != NULL);
	if (rule)
		assert_string_equal(
			cJSON_GetObjectItem(cJSON_GetArrayItem(changes, 0), "rule")->valuestring,
			rule);
	cJSON_Delete(changes);
}

static void keep(const char *code)
{
	mend(code, NULL, code);
}

TEST(mend, signs_that_python_cannot_read)
{
	mend("x\xc2\xa0= 1", "spaces", "x = 1");
	mend("x = 1\xe2\x80\x8b", "spaces", "x = 1");
	mend("x = 3 \xe2\x88\x92 1", "spaces", "x = 3 - 1");
	mend("f\xef\xbc\x88x\xef\xbc\x89", "spaces", "f(x)");
	mend("f(\xe2\x80\x9cit's\xe2\x80\x9d)", "quotes", "f(\"it's\")");
	mend("f(\xe2\x80\x98it\xe2\x80\x99s\xe2\x80\x99)", "quotes", "f('it\xe2\x80\x99s')");
	mend("f(\"a\xe2\x80\x9d)", "quotes", "f(\"a\")");
}

TEST(mend, the_same_signs_where_python_can)
{
	keep("x = 'a\xc2\xa0'  # \xc2\xa0");
	keep("x = '\xe2\x80\x9c \xe2\x80\x9d \xef\xbc\x88'");
	keep("x = '''\n\xe2\x80\x9c\xc2\xa0\n'''");
	keep("x = f\"{y['\xe2\x80\x99']}\"");
	keep("\xc3\xa9t\xc3\xa9 = 1");
}

TEST(mend, lines_of_a_terminal)
{
	mend("$ ls\nx = 1", "shell-line", "!ls\nx = 1");
	mend("if x:\n  pip install a\n", "shell-line", "if x:\n  %pip install a\n");
	mend(">>> x\n1", "prompt", "x\n");
	mend("In [12]: x = 1\n   ...: y\nOut[12]: 3", "prompt", "x = 1\ny\n");
	keep("!pip install a");
	keep("pip = install");
	keep("x = '''\n$ ls\npip install a\n>>> b\n'''");
	keep("%%bash\n$ ls\npip install a");
	keep("f(a,\n$ b)");
}

TEST(mend, backends_but_never_show)
{
	mend("matplotlib.use('TkAgg')  # x\n", "backend", "%matplotlib inline\n");
	mend("%matplotlib qt5", "backend", "%matplotlib inline");
	keep("plt.show()\nplt.show(block=True)");
	keep("%matplotlib inline\n%matplotlib widget");
	keep("matplotlib.use(x)");
	keep("matplotlib.use('Agg'); x = 1");
	keep("df\n");
}

RUN(TEST_ROW(python, programs_look_like_programs), TEST_ROW(python, prose_and_data_do_not),
	TEST_ROW(python, what_ends_in_the_midst_is_cut),
	TEST_ROW(mend, signs_that_python_cannot_read),
	TEST_ROW(mend, the_same_signs_where_python_can), TEST_ROW(mend, lines_of_a_terminal),
	TEST_ROW(mend, backends_but_never_show))
