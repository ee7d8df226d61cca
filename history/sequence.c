#include "history/sequence.h"

#include <string.h>
#include <git2.h>

#include "gateway/base/hash.h"

#define SEQUENCE_MAX (256u << 20)

struct interned {
	struct bytes item;
	uint32_t number;
	UT_hash_handle hh;
};

void interner_done(struct interner *t)
{
	struct interned *at, *next;
	HASH_ITER (hh, t->table, at, next) {
		HASH_DEL(t->table, at);
		free(at);
	}
	*t = (struct interner){0};
}

static uint32_t intern(struct interner *t, struct bytes item)
{
	struct interned *found = NULL;
	const void *key = item.len > 0 ? (const void *)item.data : "";
	HASH_FIND(hh, t->table, key, item.len, found);
	if (!found) {
		found = xcalloc(1, sizeof *found);
		found->item = item;
		found->number = t->n++;
		HASH_ADD_KEYPTR(hh, t->table, key, item.len, found);
	}
	return found->number;
}

void sequence_init(struct sequence *s)
{
	buf_init(&s->numbers, SEQUENCE_MAX);
}

void sequence_done(struct sequence *s)
{
	buf_done(&s->numbers);
}

void sequence_add(struct sequence *s, struct interner *t, struct bytes item)
{
	uint32_t number = intern(t, item);
	(void)buf_add(&s->numbers, &number, sizeof number); /* latched */
}

size_t sequence_count(const struct sequence *s)
{
	return s->numbers.len / sizeof(uint32_t);
}

/* ---- differences ---- */

static void put_lines(const struct sequence *s, struct buf *ret)
{
	for (size_t i = 0; i < sequence_count(s) && !ret->failed; i++) {
		uint32_t number;
		memcpy(&number, s->numbers.data + i * sizeof number, sizeof number);
		(void)buf_addf(ret, "%x\n", number); /* latched */
	}
}

struct telling {
	int (*on_hunk)(void *data, const struct hunk *hunk);
	void *data;
	int status;
};

/* Git counts from 1, and names the line before where there is none. */
static size_t place(int start, int n)
{
	return (size_t)(n > 0 ? start - 1 : start);
}

static int on_git_hunk(const git_diff_delta *delta, const git_diff_hunk *h, void *data)
{
	struct telling *t = data;
	struct hunk hunk = {place(h->old_start, h->old_lines), (size_t)h->old_lines,
		place(h->new_start, h->new_lines), (size_t)h->new_lines};
	(void)delta;
	t->status = t->on_hunk(t->data, &hunk);
	return t->status == 0 ? 0 : GIT_EUSER;
}

int sequence_diff(const struct sequence *from, const struct sequence *to,
	int (*on_hunk)(void *data, const struct hunk *hunk), void *data, struct err *err)
{
	AUTO(buf_done) struct buf a, b;
	struct telling t = {on_hunk, data, 0};
	git_diff_options options;
	buf_init(&a, SEQUENCE_MAX);
	buf_init(&b, SEQUENCE_MAX);
	put_lines(from, &a);
	put_lines(to, &b);
	int status = buf_check(&from->numbers, "a difference", err);
	if (status == 0)
		status = buf_check(&to->numbers, "a difference", err);
	if (status == 0)
		status = buf_check(&a, "a difference", err);
	if (status == 0)
		status = buf_check(&b, "a difference", err);
	if (status != 0)
		return status;
	(void)git_diff_options_init(&options, GIT_DIFF_OPTIONS_VERSION); /* a version it knows */
	options.context_lines = 0;
	options.flags = GIT_DIFF_FORCE_TEXT;
	int code = git_diff_buffers(a.data ? (void *)a.data : "", a.len, NULL,
		b.data ? (void *)b.data : "", b.len, NULL, &options, NULL, NULL, on_git_hunk, NULL,
		&t);
	if (t.status != 0)
		return t.status;
	return code == 0 ? 0 : err_set(err, E_NOMEM, "a difference cannot be made");
}

/* ---- lines ---- */

/* Length of the line end at `at`, 0 if there is none. */
static size_t line_end(struct bytes text, size_t at)
{
	const uint8_t *c = text.data + at;
	size_t left = text.len - at;
	if (*c == '\r')
		return left > 1 && c[1] == '\n' ? 2 : 1;
	if ((*c >= '\n' && *c <= '\f') || (*c >= 0x1c && *c <= 0x1e))
		return 1;
	if (left > 1 && c[0] == 0xc2 && c[1] == 0x85)
		return 2;
	if (left > 2 && c[0] == 0xe2 && c[1] == 0x80 && (c[2] == 0xa8 || c[2] == 0xa9))
		return 3;
	return 0;
}

bool text_line_next(struct bytes text, size_t *at, struct bytes *ret_line)
{
	size_t begin = *at, end = begin, n = 0;
	while (end < text.len && (n = line_end(text, end)) == 0)
		end++;
	*at = end < text.len ? end + n : text.len;
	*ret_line = (struct bytes){text.data + begin, *at - begin};
	return *at > begin;
}
