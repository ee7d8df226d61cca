#include "tests/lib/test.h"

#include <dirent.h>

#include "frontend-adapter/render/sanitise.h"
#include "tests/lib/safe_html.h"

#define SEEDS "tests/fuzz/seeds/render_sanitise"

struct made {
	struct buf html;
	struct sanitised said;
	int status;
};

static void make_of(struct made *m, const void *in, size_t len)
{
	buf_init(&m->html, 1u << 22);
	m->status = sanitise_html((struct bytes){in, len}, SAFE_SCOPE, &m->html, &m->said);
}

static void done(struct made *m)
{
	buf_done(&m->html);
}

static void becomes(const char *in, const char *out)
{
	struct made m;
	make_of(&m, in, strlen(in));
	assert_int_equal(m.status, 0);
	assert_string_equal(m.html.data ? (char *)m.html.data : "", out);
	done(&m);
}

static void declares(const char *in, const char *out)
{
	AUTO(buf_done) struct buf css;
	buf_init(&css, 10000);
	style_declarations((struct bytes){(const uint8_t *)in, strlen(in)}, false, &css);
	assert_string_equal(css.data ? (char *)css.data : "", out);
}

static void check_file(const char *name)
{
	char path[300];
	AUTO(buf_done) struct buf in;
	struct made m;
	buf_init(&in, 1 << 20);
	(void)snprintf(path, sizeof path, SEEDS "/%s", name); /* cut: cannot be opened */
	FILE *file = fopen(path, "rbe");
	assert_non_null(file);
	for (int c; (c = fgetc(file)) != EOF;)
		(void)buf_add(&in, &(uint8_t){(uint8_t)c}, 1);
	(void)fclose(file); /* read only */
	make_of(&m, in.data, in.len);
	assert_int_equal(m.status, 0);
	safe_read((struct bytes){m.html.data, m.html.len}, false); /* aborts */
	done(&m);
}

/* Each is a file of the fuzzer's seeds, named by what it tries. */
TEST(sanitise, no_attack_gets_through)
{
	unsigned n = 0;
	DIR *folder = opendir(SEEDS);
	assert_non_null(folder);
	for (struct dirent *e; (e = readdir(folder)) != NULL;) {
		if (e->d_name[0] == '.')
			continue;
		check_file(e->d_name);
		n++;
	}
	(void)closedir(folder); /* read only */
	assert_true(n >= 80);
}

TEST(sanitise, keeps_what_pandas_writes)
{
	becomes("<div>\n<style scoped>\n.dataframe tbody tr th:only-of-type { vertical-align: "
		"middle; }\n"
		"</style><table border=\"1\" class=\"dataframe\"><thead><tr style=\"text-align: "
		"right;\">"
		"<th></th><th>a</th></tr></thead><tbody><tr><th>0</th><td>1 &lt; "
		"2</td></tr></tbody></table>"
		"<p>1 rows \xc3\x97 1 columns</p></div>",
		"<div>\n<style>.scope .dataframe tbody tr th:only-of-type{vertical-align:middle;}\n"
		"</style><table border=\"1\" class=\"dataframe\"><thead><tr "
		"style=\"text-align:right;\">"
		"<th></th><th>a</th></tr></thead><tbody><tr><th>0</th><td>1 &lt; "
		"2</td></tr></tbody></table>"
		"<p>1 rows \xc3\x97 1 columns</p></div>");
}

TEST(sanitise, ids_meet_nothing_of_the_page)
{
	becomes("<style>#T_1 .col0, #T_1 th { color: red }</style><table id=\"T_1\"><tr>"
		"<td class=\"data col0\" id=\"a b\" headers=\"x y\">1</table>",
		"<style>.scope #u-T_1 .u-col0,.scope #u-T_1 th{color:red;}\n</style><table "
		"id=\"u-T_1\">"
		"<tbody><tr><td class=\"u-data u-col0\" id=\"u-a u-b\" headers=\"u-x "
		"u-y\">1</td></tr>"
		"</tbody></table>");
}

TEST(sanitise, scripts_leave_no_trace)
{
	becomes("a<script>alert(1)</script>b<noscript>c</noscript><!-- d -->", "ab");
	becomes("<x-y onclick=e>text</x-y>", "text");
	becomes("<button onclick=\"a()\">push</button><select><option>one</select>", "push");
}

TEST(sanitise, links_are_for_people)
{
	becomes("<a href=\"https://a.example/?b&c\">d</a>",
		"<a href=\"https://a.example/?b&amp;c\" rel=\"noopener noreferrer nofollow\" "
		"target=\"_blank\">d</a>");
	becomes("<a href=\"javascript:x\">d</a>", "<a>d</a>");
	becomes("<a href=\"#part\">d</a>", "<a href=\"#u-part\">d</a>");
}

TEST(sanitise, pictures_are_their_own_bytes)
{
	becomes("<img src=\"data:image/gif;base64,R0lGODlhAQ ABAAAAACw=\" width=\"5\" alt=\"a\">",
		"<img src=\"data:image/gif;base64,R0lGODlhAQABAAAAACw=\" width=\"5\" alt=\"a\">");
	becomes("<img src=\"http://a.example/b.png\" alt=\"a plot\">",
		"<span class=\"coppice-left-out\">[a plot]</span>");
}

TEST(sanitise, numbers_are_bounded)
{
	becomes("<table><tr><td colspan=99999999 rowspan=-1 width=9999999px height=50%>a</table>",
		"<table><tbody><tr><td colspan=\"1000\" width=\"20000\" "
		"height=\"50%\">a</td></tr></tbody>"
		"</table>");
}

TEST(sanitise, says_what_can_be_seen)
{
	struct made m;
	make_of(&m, "<div> \n<script>draw()</script></div>", 34);
	assert_false(m.said.visible);
	done(&m);
	make_of(&m, "<div>a</div>", 12);
	assert_true(m.said.visible);
	done(&m);
}

/* Some 200,000 deep: neither gumbo's tree nor the walk may go down all the way. */
TEST(sanitise, depth_is_bounded)
{
	AUTO(buf_done) struct buf in;
	struct made m;
	buf_init(&in, 1 << 21);
	for (int i = 0; i < 200000; i++)
		(void)buf_add_text(&in, "<div>");
	make_of(&m, in.data, in.len);
	assert_true(m.status == E_TOO_BIG || (m.status == 0 && m.said.cut));
	done(&m);
}

TEST(sanitise, a_ceiling_is_an_error)
{
	AUTO(buf_done) struct buf out;
	struct sanitised said;
	buf_init(&out, 10);
	assert_int_equal(sanitise_html((struct bytes){(const uint8_t *)"<p>a long text</p>", 18},
				 SAFE_SCOPE, &out, &said),
		E_TOO_BIG);
}

TEST(sanitise, style_keeps_what_it_understands)
{
	declares("color: RED; background-color:#fff;font-weight:bold",
		"color:RED;background-color:#fff;font-weight:bold;");
	declares("background: linear-gradient(90deg, #d65f5f 50.0%, transparent 50.0%)",
		"background:linear-gradient(90deg, #d65f5f 50.0%, transparent 50.0%);");
	declares("border: 1px\n\tsolid", "border:1px  solid;");
	declares("font-family: 'A B', \"\xe5\xae\x8b\"", "font-family:'A B', \"\xe5\xae\x8b\";");
}

TEST(sanitise, style_drops_the_rest)
{
	static const char *const bad[] = {"position:fixed", "z-index:9", "background:url(a)",
		"background:URL (a)", "color:re\\64", "color:red/**/", "width:expression(a)",
		"margin:-1px", "margin:1px -2px", "text-indent:-9em", "color:red!important",
		"font-family:'a", "font-family:\"a';b", "color:rgb(1,2", "color:rgb(1,2))",
		"color:", ":red", "color", "--a:b", "color:a{b}", "content:'x'",
		"background:image(a)", "transform:scale(9)", "color:a:b"};
	for (size_t i = 0; i < ARRAY_LEN(bad); i++)
		declares(bad[i], "");
}

TEST(sanitise, svg_is_xml_of_its_own)
{
	static const char in[] =
		"<?xml version='1.0'?><!DOCTYPE svg><svg viewbox='0 0 9 9'><defs>"
		"<clippath id=c><rect width=9 height=9 /></clippath></defs>"
		"<g clip-path='url(#c)' onclick=a><text>a &amp; b</text></g></svg>";
	AUTO(buf_done) struct buf out;
	buf_init(&out, 10000);
	assert_int_equal(sanitise_svg((struct bytes){(const uint8_t *)in, sizeof in - 1}, &out), 0);
	assert_string_equal((char *)out.data,
		"<svg xmlns=\"http://www.w3.org/2000/svg\" "
		"xmlns:xlink=\"http://www.w3.org/1999/xlink\" "
		"viewBox=\"0 0 9 9\"><defs><clipPath id=\"c\"><rect width=\"9\" "
		"height=\"9\"></rect>"
		"</clipPath></defs><g clip-path=\"url(#c)\"><text>a &amp; b</text></g></svg>");
}

/* Eight uses of eight uses of ... would be drawn sixteen million times. */
TEST(sanitise, a_use_does_not_multiply)
{
	static const char in[] =
		"<svg><g id=a><path d=M0 /></g><g id=b><use href=#a /><use href=#a /></g>"
		"<use href=#b /><g id=c><use href=#a /></g></svg>";
	AUTO(buf_done) struct buf out;
	buf_init(&out, 10000);
	assert_int_equal(sanitise_svg((struct bytes){(const uint8_t *)in, sizeof in - 1}, &out), 0);
	assert_non_null(strstr((char *)out.data, "<g id=\"b\"></g>"));
	assert_non_null(strstr((char *)out.data, "<g id=\"c\"><use xlink:href=\"#a\"></use></g>"));
}

TEST(sanitise, svg_without_an_svg)
{
	AUTO(buf_done) struct buf out;
	buf_init(&out, 1000);
	assert_int_equal(sanitise_svg((struct bytes){(const uint8_t *)"<p>", 3}, &out), E_INVALID);
	assert_int_equal(sanitise_svg((struct bytes){0}, &out), E_INVALID);
}

RUN(TEST_ROW(sanitise, no_attack_gets_through), TEST_ROW(sanitise, keeps_what_pandas_writes),
	TEST_ROW(sanitise, ids_meet_nothing_of_the_page),
	TEST_ROW(sanitise, scripts_leave_no_trace), TEST_ROW(sanitise, links_are_for_people),
	TEST_ROW(sanitise, pictures_are_their_own_bytes), TEST_ROW(sanitise, numbers_are_bounded),
	TEST_ROW(sanitise, says_what_can_be_seen), TEST_ROW(sanitise, depth_is_bounded),
	TEST_ROW(sanitise, a_ceiling_is_an_error),
	TEST_ROW(sanitise, style_keeps_what_it_understands),
	TEST_ROW(sanitise, style_drops_the_rest), TEST_ROW(sanitise, svg_is_xml_of_its_own),
	TEST_ROW(sanitise, a_use_does_not_multiply), TEST_ROW(sanitise, svg_without_an_svg))
