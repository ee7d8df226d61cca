#include "gateway/cli_graph.h"

#include <string.h>

/* Each column waits for the node that it leads to. */
struct columns {
	const char *wanted[GRAPH_COLUMNS];
	size_t n;
};

static size_t find(const struct columns *c, const char *id)
{
	size_t at = 0;
	while (at < c->n && strcmp(c->wanted[at], id) != 0)
		at++;
	return at;
}

static size_t open_column(struct columns *c, const char *id)
{
	if (c->n == GRAPH_COLUMNS)
		c->n--;
	c->wanted[c->n] = id;
	return c->n++;
}

/* Lines that grew from the same node come together above it. */
static void close_others(struct columns *c, size_t at, const char *id, struct buf *out)
{
	for (size_t i = c->n; i-- > at + 1;) {
		if (strcmp(c->wanted[i], id) != 0)
			continue;
		for (size_t k = 0; k < i; k++)
			(void)buf_addf(out, k == i - 1 ? "|/" : "| ");
		for (size_t k = i + 1; k < c->n; k++)
			(void)buf_addf(out, " /");
		(void)buf_addf(out, "\n");
		memmove(&c->wanted[i], &c->wanted[i + 1], (c->n - i - 1) * sizeof *c->wanted);
		c->n--;
	}
}

void graph_draw(const struct graph_node *nodes, size_t n, struct buf *out)
{
	struct columns c = {.n = 0};
	for (size_t i = 0; i < n; i++) {
		size_t at = find(&c, nodes[i].id);
		if (at == c.n)
			at = open_column(&c, nodes[i].id);
		close_others(&c, at, nodes[i].id, out);
		for (size_t k = 0; k < c.n; k++)
			(void)buf_addf(out, k == at ? "* " : "| ");
		(void)buf_addf(out, "%s\n", nodes[i].text);
		c.wanted[at] = nodes[i].parent ? nodes[i].parent : "";
		if (!*c.wanted[at]) {
			memmove(&c.wanted[at], &c.wanted[at + 1],
				(c.n - at - 1) * sizeof *c.wanted);
			c.n--;
		}
	}
}
