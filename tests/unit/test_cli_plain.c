#include <string.h>

#include "gateway/cli_plain.h"
#include "gateway/cli_push.h"
#include "tests/lib/test.h"

static void assert_plain(const char *text, const char *expected)
{
	AUTO(buf_done) struct buf b;
	buf_init(&b, 4096);
	(void)buf_add_text(&b, "> ");
	cli_plain_add(&b, text, strlen(text));
	assert_string_equal((const char *)b.data + 2, expected);
}

TEST(plain, text_stays)
{
	assert_plain("a\n\tb \xc3\xbc \xe4\xb8\xad \xf0\x9f\x98\x80",
		"a\n\tb \xc3\xbc \xe4\xb8\xad "
		"\xf0\x9f\x98\x80");
	assert_plain("", "");
}

TEST(plain, sequences_go)
{
	assert_plain("a\033[1;31mb\033[0mc", "abc");
	assert_plain("a\033]0;title\ab\033]8;;http://x\033\\link", "ablink");
	assert_plain("a\033Pq...\033\\b\033(Bc\033=d", "abcd");
	assert_plain("a\033", "a");
	assert_plain("a\033[", "a");
	assert_plain("a\033[31", "a");
	assert_plain("a\033]never ends\nb", "a\nb");
	assert_plain("a\033[\033[31mb", "ab");
}

TEST(plain, controls_are_marks)
{
	assert_plain("a\bb\x7f\x01", "a?b??");
	assert_plain("\xc2\x9b"
		     "31m \xe2\x80\xae \xe2\x81\xa6 \xe2\x80\xa8 \xef\xbb\xbf \xf3\xa0\x81\x81",
		"?31m ? ? ? ? ?");
	assert_plain("\xff\xfe \xc3( \xe2\x80", "?? ?( ??");
}

TEST(plain, a_line_is_its_last_writing)
{
	assert_plain("x\n10%\r20%\r100%\n", "x\n100%\n");
	assert_plain("a\r\nb\r\n", "a\nb\n");
	assert_plain("kept\r", "kept");
	assert_plain("\rfirst", "first");
	assert_plain("a\r\033[Kb", "b");
}

TEST(plain, one_line_has_a_width)
{
	AUTO(buf_done) struct buf b;
	buf_init(&b, 4096);
	cli_plain_line(&b,
		"a\nb\t\033[c\xc3\xbc"
		"def",
		8);
	assert_string_equal((const char *)b.data, "a b ?[c\xc3\xbc");
}

TEST(push, addresses)
{
	static const char *const good[] = {"file:///srv/x.git", "http://h/x", "https://u@h:8/x",
		"ssh://git@h/x.git", "git://h/x", "ada@h:x.git", "h:x", "./x.git", "/srv/x.git",
		"../x"};
	static const char *const wrong[] = {"", "-x", "--upload-pack=x", "ext::sh -c x", "ext::x",
		"fd::7", "foo::bar", "ftp://h/x", "HTTP://h/x", "ssh://-oProxyCommand=x/y",
		"ssh://u@-oProxyCommand=x/y", "-oProxyCommand=x:y", "u@-oProxyCommand=x:y", "x y",
		"x\ny", "\x1b[2J", "x", "origin"};
	for (size_t i = 0; i < ARRAY_LEN(good); i++)
		if (push_url_check(good[i], NULL) != 0)
			fail_msg("%s", good[i]);
	for (size_t i = 0; i < ARRAY_LEN(wrong); i++)
		if (push_url_check(wrong[i], NULL) != E_INVALID)
			fail_msg("%s", wrong[i]);
}

RUN(TEST_ROW(plain, text_stays), TEST_ROW(plain, sequences_go), TEST_ROW(plain, controls_are_marks),
	TEST_ROW(plain, a_line_is_its_last_writing), TEST_ROW(plain, one_line_has_a_width),
	TEST_ROW(push, addresses))
