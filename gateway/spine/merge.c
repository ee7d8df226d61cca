#include "gateway/spine/merge.h"

#include <string.h>

bool merge_begin(struct merge *g, struct entry *first)
{
	if (!stream_text_read(first->msg, &g->like) || g->like.text.len >= MERGE_TEXT_MAX)
		return false;
	g->first = entry_ref(first);
	g->last = entry_ref(first);
	g->parts = 1;
	buf_init(&g->text, MERGE_TEXT_MAX);
	return true;
}

static bool same(struct bytes a, struct bytes b)
{
	return a.len == b.len && memcmp(a.data, b.data, a.len) == 0;
}

/* Of one execution, one stream, one kernel process. */
static bool belongs(const struct merge *g, const struct jmsg *m, const struct stream_text *what)
{
	const struct jmsg *like = g->first->msg;
	return same(g->like.name, what->name) &&
	       same(like->part[PART_PARENT], m->part[PART_PARENT]) &&
	       same(like->part[PART_METADATA], m->part[PART_METADATA]) &&
	       strcmp(like->session, m->session) == 0;
}

/* False: the bound is reached, or memory is out; what there is stays whole. */
static bool take(struct merge *g, struct bytes text)
{
	size_t have = g->parts == 1 ? g->like.text.len : g->text.len;
	if (have + text.len > MERGE_TEXT_MAX)
		return false;
	if (g->parts == 1 && buf_add(&g->text, g->like.text.data, have) != 0)
		return false;
	return buf_add(&g->text, text.data, text.len) == 0;
}

bool merge_add(struct merge *g, struct entry *e)
{
	struct stream_text what;
	if (g->parts == MERGE_PARTS_MAX || !stream_text_read(e->msg, &what))
		return false;
	if (!belongs(g, e->msg, &what) || !take(g, what.text))
		return false;
	entry_unref(g->last);
	g->last = entry_ref(e);
	g->parts++;
	return true;
}

static struct entry *build(const struct merge *g)
{
	AUTO(jmsg_unrefp) struct jmsg *m = NULL;
	struct stream_text whole = {.name = g->like.name, .text = {g->text.data, g->text.len}};
	if (stream_text_make(g->last->msg, &whole, &m, NULL) != 0)
		return NULL;
	return entry_new(m, g->first->number, g->first->to);
}

struct entry *merge_end(struct merge *g)
{
	struct entry *e = g->parts == 1 ? entry_ref(g->first) : build(g);
	entry_unref(g->first);
	entry_unref(g->last);
	buf_done(&g->text);
	return e;
}
