#include "tests/lib/test.h"

#include <stdio.h>
#include <string.h>

#include "gateway/cli_graph.h"

static void assert_drawn(const struct graph_node *nodes, size_t n, const char *wanted)
{
	struct buf out;
	buf_init(&out, 4096);
	graph_draw(nodes, n, &out);
	(void)buf_add(&out, "", 1);
	assert_string_equal((const char *)out.data, wanted);
	buf_done(&out);
}

TEST(graph, a_line_is_a_line)
{
	static const struct graph_node nodes[] = {
		{"c", "b", "three"}, {"b", "a", "two"}, {"a", NULL, "one"}};
	assert_drawn(nodes, ARRAY_LEN(nodes), "* three\n* two\n* one\n");
}

TEST(graph, a_second_line_joins_where_it_began)
{
	static const struct graph_node nodes[] = {{"d", "c", "main.2"}, {"b2", "b", "main"},
		{"c", "a", "left"}, {"b", "a", "right"}, {"a", "", "one"}};
	assert_drawn(nodes, ARRAY_LEN(nodes),
		"* main.2\n"
		"| * main\n"
		"* | left\n"
		"| * right\n"
		"|/\n"
		"* one\n");
}

TEST(graph, three_lines_from_one_node)
{
	static const struct graph_node nodes[] = {
		{"b", "a", "b"}, {"c", "a", "c"}, {"d", "a", "d"}, {"a", "", "a"}};
	assert_drawn(nodes, ARRAY_LEN(nodes),
		"* b\n"
		"| * c\n"
		"| | * d\n"
		"| |/\n"
		"|/\n"
		"* a\n");
}

TEST(graph, more_lines_than_columns_are_drawn_too)
{
	struct graph_node nodes[2 * GRAPH_COLUMNS];
	char ids[2 * GRAPH_COLUMNS][8];
	for (size_t i = 0; i < ARRAY_LEN(nodes); i++) {
		(void)snprintf(ids[i], sizeof ids[i], "n%zu", i);
		nodes[i] = (struct graph_node){ids[i], "root", "x"};
	}
	struct buf out;
	buf_init(&out, 1 << 20);
	graph_draw(nodes, ARRAY_LEN(nodes), &out);
	assert_false(out.failed);
	buf_done(&out);
}

RUN(TEST_ROW(graph, a_line_is_a_line), TEST_ROW(graph, a_second_line_joins_where_it_began),
	TEST_ROW(graph, three_lines_from_one_node),
	TEST_ROW(graph, more_lines_than_columns_are_drawn_too))
