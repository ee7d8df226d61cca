#include "gateway/spine/journal_segment.h"

#define MARK_EVERY (64u << 10)

struct segment *segment_new(unsigned index)
{
	struct segment *s = xcalloc(1, sizeof *s);
	list_init(&s->link);
	s->index = index;
	return s;
}

void segment_free(struct segment *s)
{
	list_remove(&s->link);
	free(s->marks);
	free(s);
}

/* Without memory a mark is left out: a reader then begins further back. */
static void add_mark(struct segment *s, uint64_t number)
{
	if (s->n_marks == s->marks_size) {
		size_t size = s->marks_size ? s->marks_size * 2 : 8;
		struct mark *marks = realloc(s->marks, size * sizeof *marks);
		if (!marks)
			return;
		s->marks = marks;
		s->marks_size = size;
	}
	s->marks[s->n_marks++] = (struct mark){.number = number, .offset = s->bytes};
}

void segment_grew(struct segment *s, uint64_t first, uint64_t last, uint64_t bytes)
{
	if (s->bytes == 0)
		s->first = first;
	uint64_t marked = s->n_marks ? s->marks[s->n_marks - 1].offset : 0;
	if (s->bytes - marked >= MARK_EVERY)
		add_mark(s, first);
	s->last = last;
	s->bytes += bytes;
}

uint64_t segment_offset(const struct segment *s, uint64_t number)
{
	uint64_t offset = 0;
	for (size_t i = 0; i < s->n_marks && s->marks[i].number <= number; i++)
		offset = s->marks[i].offset;
	return offset;
}
