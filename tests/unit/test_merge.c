#include "tests/lib/test.h"

#include <stdio.h>
#include <string.h>

#include "gateway/spine/merge.h"

#define PARENT "{\"msg_id\":\"a\",\"msg_type\":\"execute_request\",\"session\":\"s\"}"

struct says {
	const char *type, *parent, *metadata, *content, *session;
	enum channel channel;
};

static struct jmsg *message(const struct says *says, const char *id)
{
	char header[256];
	struct jmsg *m;
	int len = snprintf(header, sizeof header,
		"{\"msg_id\":\"%s\",\"msg_type\":\"%s\",\"session\":\"%s\"}", id, says->type,
		says->session);
	struct jmsg_source source = {.channel = says->channel};
	const char *part[JMSG_PARTS] = {header, says->parent, says->metadata, says->content};
	for (unsigned i = 0; i < JMSG_PARTS; i++)
		source.part[i] = (struct bytes){(const uint8_t *)part[i], strlen(part[i])};
	source.part[PART_HEADER].len = (size_t)len;
	assert_int_equal(jmsg_new(&source, false, &m, NULL), 0);
	return m;
}

static struct entry *entry_of(const struct says *says, uint64_t number)
{
	char id[24];
	(void)snprintf(id, sizeof id, "m%llu", (unsigned long long)number);
	struct jmsg *m = message(says, id);
	struct entry *e = entry_new(m, number, JOURNAL_TO_ALL);
	jmsg_unref(m);
	return e;
}

static struct entry *out(const char *text, uint64_t number)
{
	char content[256];
	(void)snprintf(content, sizeof content, "{\"name\": \"stdout\", \"text\": \"%s\"}", text);
	return entry_of(
		&(struct says){"stream", PARENT, "{}", content, "k", CHANNEL_IOPUB}, number);
}

static void assert_part(const struct jmsg *m, unsigned part, const char *text)
{
	if (!bytes_equal(m->part[part], text))
		fail_msg("%.*s", (int)m->part[part].len, (const char *)m->part[part].data);
}

TEST(merge, texts_are_joined_as_they_were_written)
{
	struct merge g;
	struct entry *part[] = {out("a\\n", 7), out("\\u00e9\\\"", 9), out("", 10),
		out("\303\251\\ud83e\\uddea", 12)};
	assert_true(merge_begin(&g, part[0]));
	for (size_t i = 1; i < ARRAY_LEN(part); i++)
		assert_true(merge_add(&g, part[i]));
	struct entry *e = merge_end(&g);
	assert_int_equal(e->number, 7);
	assert_string_equal(e->msg->msg_id, "m12");
	assert_part(e->msg, PART_PARENT, PARENT);
	assert_part(e->msg, PART_CONTENT,
		"{\"name\":\"stdout\",\"text\":\"a\\n\\u00e9\\\"\303\251\\ud83e\\uddea\"}");
	entry_unref(e);
	for (size_t i = 0; i < ARRAY_LEN(part); i++)
		entry_unref(part[i]);
}

TEST(merge, one_alone_stays_itself)
{
	struct merge g;
	struct entry *e = out("a", 7);
	assert_true(merge_begin(&g, e));
	assert_ptr_equal(merge_end(&g), e);
	entry_unref(e);
	assert_int_equal(e->refs, 1);
	entry_unref(e);
}

TEST(merge, only_like_with_like)
{
	static const char text[] = "{\"name\":\"stdout\",\"text\":\"b\"}";
	static const char reversed[] = " { \"text\":\"b\", \"name\":\"stdout\" } ";
	static const struct {
		bool fits;
		struct says says;
	} rows[] = {
		{true, {"stream", PARENT, "{}", text, "k", CHANNEL_IOPUB}},
		{true, {"stream", PARENT, "{}", reversed, "k", CHANNEL_IOPUB}},
		{false, {"stream", PARENT, "{}", "{\"name\":\"stderr\",\"text\":\"b\"}", "k",
				CHANNEL_IOPUB}},
		{false, {"stream", "{}", "{}", text, "k", CHANNEL_IOPUB}},
		{false, {"stream", PARENT, "{\"a\":1}", text, "k", CHANNEL_IOPUB}},
		{false, {"stream", PARENT, "{}", text, "another", CHANNEL_IOPUB}},
		{false, {"stream", PARENT, "{}", text, "k", CHANNEL_SHELL}},
		{false, {"display_data", PARENT, "{}", text, "k", CHANNEL_IOPUB}},
		{false, {"stream", PARENT, "{}", "{\"name\":\"stdout\",\"text\":\"b\",\"x\":1}",
				"k", CHANNEL_IOPUB}},
		{false, {"stream", PARENT, "{}",
				"{\"text\":\"c\",\"name\":\"stdout\",\"text\":\"b\"}", "k",
				CHANNEL_IOPUB}},
		{false, {"stream", PARENT, "{}", "{\"name\":\"stdout\",\"text\":3}", "k",
				CHANNEL_IOPUB}},
		{false, {"stream", PARENT, "{}", "{\"name\":\"stdout\"}", "k", CHANNEL_IOPUB}},
		{false, {"stream", PARENT, "{}", "{}", "k", CHANNEL_IOPUB}},
	};
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		struct merge g;
		struct entry *a = out("a", 1), *b = entry_of(&rows[i].says, 2);
		assert_true(merge_begin(&g, a));
		if (merge_add(&g, b) != rows[i].fits)
			fail_msg("row %zu", i);
		struct entry *e = merge_end(&g);
		assert_true((e != a) == rows[i].fits);
		entry_unref(e);
		assert_int_equal(a->refs + b->refs, 2);
		entry_unref(a);
		entry_unref(b);
	}
}

static struct entry *long_one(size_t len, uint64_t number)
{
	char *content = calloc(1, len + 64);
	(void)snprintf(content, len + 64, "{\"name\":\"stdout\",\"text\":\"%0*d\"}", (int)len, 7);
	struct entry *e = entry_of(
		&(struct says){"stream", PARENT, "{}", content, "k", CHANNEL_IOPUB}, number);
	free(content);
	return e;
}

TEST(merge, never_more_than_its_bound)
{
	struct merge g;
	struct entry *huge = long_one(MERGE_TEXT_MAX, 1), *half = long_one(MERGE_TEXT_MAX / 2, 2);
	struct entry *more = out("b", 3);
	assert_false(merge_begin(&g, huge));
	assert_true(merge_begin(&g, half));
	assert_true(merge_add(&g, half));
	assert_false(merge_add(&g, more));
	struct entry *e = merge_end(&g);
	struct stream_text what;
	assert_true(stream_text_read(e->msg, &what));
	assert_int_equal(what.text.len, MERGE_TEXT_MAX);
	entry_unref(e);
	entry_unref(huge);
	entry_unref(half);
	entry_unref(more);
}

TEST(merge, never_of_more_parts_than_its_bound)
{
	struct merge g;
	struct entry *nothing = out("", 1);
	unsigned n = 1;
	assert_true(merge_begin(&g, nothing));
	while (n <= MERGE_PARTS_MAX && merge_add(&g, nothing))
		n++;
	assert_int_equal(n, MERGE_PARTS_MAX);
	entry_unref(merge_end(&g));
	entry_unref(nothing);
}

RUN(TEST_ROW(merge, texts_are_joined_as_they_were_written), TEST_ROW(merge, one_alone_stays_itself),
	TEST_ROW(merge, only_like_with_like), TEST_ROW(merge, never_more_than_its_bound),
	TEST_ROW(merge, never_of_more_parts_than_its_bound))
