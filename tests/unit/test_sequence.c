#include <string.h>

#include "gateway/base/err.h"
#include "history/repo.h"
#include "history/sequence.h"
#include "tests/lib/test.h"

TEST(sequence, lines_are_pythons)
{
	static const char text[] = "a\nb\r\nc\rd\x0b"
				   "e\x0c"
				   "f\x1c"
				   "g\xc2\x85h\xe2\x80\xa8i\xe2\x80\xaaj\n\nk";
	static const size_t lengths[] = {2, 3, 2, 2, 2, 2, 3, 4, 6, 1, 1};
	struct bytes whole = {(const uint8_t *)text, sizeof text - 1}, line;
	size_t n = 0;
	for (size_t at = 0; text_line_next(whole, &at, &line); n++)
		assert_int_equal(line.len, lengths[n]);
	assert_int_equal(n, ARRAY_LEN(lengths));
}

struct applied {
	const char *from, *to;
	size_t at;
	char text[256];
};

static int apply(void *data, const struct hunk *h)
{
	struct applied *a = data;
	(void)strncat(a->text, a->from + a->at, h->at - a->at);
	(void)strncat(a->text, a->to + h->new_at, h->new_n);
	a->at = h->at + h->n;
	return 0;
}

static void assert_becomes(const char *from, const char *to)
{
	struct applied a = {from, to, 0, ""};
	struct interner table = {0};
	struct sequence x, y;
	sequence_init(&x);
	sequence_init(&y);
	for (const char *c = from; *c; c++)
		sequence_add(&x, &table, (struct bytes){(const uint8_t *)c, 1});
	for (const char *c = to; *c; c++)
		sequence_add(&y, &table, (struct bytes){(const uint8_t *)c, 1});
	assert_int_equal(sequence_diff(&x, &y, apply, &a, NULL), 0);
	(void)strcat(a.text, from + a.at);
	assert_string_equal(a.text, to);
	sequence_done(&x);
	sequence_done(&y);
	interner_done(&table);
}

TEST(sequence, one_becomes_the_other)
{
	static const char *const texts[] = {"", "a", "b", "ab", "ba", "abcabba", "cbabac", "aaaa",
		"aabaa", "xyzabcabba", "abcabbaxyz", "qwertyuiop"};
	assert_int_equal(repo_library_start(NULL), 0);
	for (size_t i = 0; i < ARRAY_LEN(texts); i++)
		for (size_t k = 0; k < ARRAY_LEN(texts); k++)
			assert_becomes(texts[i], texts[k]);
	repo_library_end();
}

RUN(TEST_ROW(sequence, lines_are_pythons), TEST_ROW(sequence, one_becomes_the_other))
