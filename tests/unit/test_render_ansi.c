#include "tests/lib/test.h"

#include <string.h>

#include "frontend-adapter/render/ansi.h"

static void shows(const char *in, const char *html)
{
	struct ansi a;
	AUTO(buf_done) struct buf out;
	buf_init(&out, 100000);
	assert_int_equal(ansi_parse((struct bytes){(const uint8_t *)in, strlen(in)}, &a), 0);
	ansi_html(&a, &out);
	assert_string_equal(out.data ? (char *)out.data : "", html);
	ansi_done(&a);
}

TEST(ansi, colours_are_classes)
{
	shows("\x1b[31mred\x1b[0m plain", "<span class=\"ansi-red-fg\">red</span> plain");
	shows("\x1b[1;92;44mx\x1b[39my\x1b[22;49mz",
		"<span class=\"ansi-green-intense-fg ansi-blue-bg ansi-bold\">x</span>"
		"<span class=\"ansi-blue-bg ansi-bold\">y</span>z");
	shows("\x1b[3;4;7;2mx\x1b[23;24;27;22my",
		"<span class=\"ansi-italic ansi-underline ansi-inverse ansi-faint\">x</span>y");
	shows("\x1b[mx", "x");
}

TEST(ansi, many_colours_are_styles)
{
	shows("\x1b[38;5;208mx", "<span style=\"color:#ff8700;\">x</span>");
	shows("\x1b[48;2;1;2;255mx", "<span style=\"background-color:#0102ff;\">x</span>");
	shows("\x1b[38;5;9;1mx", "<span class=\"ansi-red-intense-fg ansi-bold\">x</span>");
	shows("\x1b[38;5;250mx", "<span style=\"color:#bcbcbc;\">x</span>");
	shows("\x1b[38mx\x1b[38;5my", "xy");
}

TEST(ansi, text_is_escaped)
{
	shows("<b>&\"'`\x1b[31m</b>",
		"&lt;b&gt;&amp;&quot;&#39;&#96;<span class=\"ansi-red-fg\">&lt;/b&gt;</span>");
	shows("a\xff\xc0\xbc z", "a\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd z");
}

TEST(ansi, a_line_is_written_over)
{
	shows("10%\r100%\ndone", "100%\ndone");
	shows("long line\rshort", "shortline");
	shows("abc\b\bX", "aXc");
	shows("\x1b[31m50\r\x1b[32m99\x1b[0m%", "<span class=\"ansi-green-fg\">99</span>%");
	shows("a\r\nb\r\n", "a\nb\n");
	shows("\xe4\xb8\xad\xe6\x96\x87\r\xe5\xad\x97", "\xe5\xad\x97\xe6\x96\x87");
}

TEST(ansi, other_sequences_are_passed_over)
{
	shows("a\x1b[2Jb\x1b[1;1Hc\x1b[?25ld", "abcd");
	shows("\x1b]8;;http://x\x07link\x1b]8;;\x07", "link");
	shows("\x1b]0;title\x1b\\x\x1bPq\x1b\\y\x1b(z", "xyz");
	shows("a\x1b", "a");
	shows("a\x1b[", "a");
	shows("a\x1b[31", "a");
	shows("a\x1b]never ended", "a");
	shows("\x1b\x1b[31mx", "<span class=\"ansi-red-fg\">x</span>");
	shows("a\x07\x01\x7f"
	      "b",
		"ab");
}

TEST(ansi, a_long_list_of_parameters_is_cut)
{
	struct ansi a;
	AUTO(buf_done) struct buf in;
	buf_init(&in, 100000);
	(void)buf_add_text(&in, "\x1b[");
	for (int i = 0; i < 1000; i++)
		(void)buf_add_text(&in, "99999999;");
	(void)buf_add_text(&in, "mx");
	assert_int_equal(ansi_parse((struct bytes){in.data, in.len}, &a), 0);
	assert_int_equal(a.text.len, 1);
	ansi_done(&a);
}

static void cuts(const char *in, size_t max, const char *out)
{
	AUTO(buf_done) struct buf text;
	buf_init(&text, 100000);
	bool cut = text_cut((struct bytes){(const uint8_t *)in, strlen(in)}, max, &text);
	assert_int_equal(cut, strlen(in) > max);
	assert_string_equal((char *)text.data, out);
}

TEST(ansi, cut_keeps_head_and_tail)
{
	cuts("short", 5, "short");
	cuts("one\ntwo\nthree\nfour\nfive\nsix\n", 15,
		"one\ntwo\n\x1b[0m[... 16 bytes left out ...]\nsix\n");
	cuts("\xe4\xb8\xad\xe4\xb8\xad\xe4\xb8\xad\xe4\xb8\xad\xe4\xb8\xad\xe4\xb8\xad", 9,
		"\xe4\xb8\xad\xe4\xb8\xad\n\x1b[0m[... 9 bytes left out ...]\n\xe4\xb8\xad");
}

RUN(TEST_ROW(ansi, colours_are_classes), TEST_ROW(ansi, many_colours_are_styles),
	TEST_ROW(ansi, text_is_escaped), TEST_ROW(ansi, a_line_is_written_over),
	TEST_ROW(ansi, other_sequences_are_passed_over),
	TEST_ROW(ansi, a_long_list_of_parameters_is_cut), TEST_ROW(ansi, cut_keeps_head_and_tail))
