/* Every file of tests/wire/decode is one WebSocket message and what becomes of it. Lines: framing,
 * type, expect (ok or a close code), then for ok channel, msg_type, content, buffers (their
 * lengths); the message itself is its `text` and `hex` lines one after the other. */
#include "tests/lib/test.h"

#include <glob.h>
#include <stdio.h>
#include <string.h>

#include "gateway/base/buf.h"
#include "gateway/door/decode.h"

#define FRAMES "tests/wire/decode/*.frame"
#define ENOUGH 50

struct sample {
	struct inbound in;
	struct buf data;
	unsigned expect; /* close code, 0: ok */
	bool counts_buffers;
	char channel[16], msg_type[64], content[256], buffers[64];
};

static void add_hex(struct buf *b, const char *hex)
{
	for (; hex[0] && hex[1]; hex += 2) {
		unsigned value;
		assert_int_equal(sscanf(hex, "%2x", &value), 1);
		uint8_t byte = (uint8_t)value;
		assert_int_equal(buf_add(b, &byte, 1), 0);
	}
}

static void take(char *to, size_t size, const char *from)
{
	assert_true(copy_text(to, size, from, strlen(from)));
}

static void read_line(struct sample *s, const char *key, const char *value)
{
	if (strcmp(key, "framing") == 0)
		s->in.framing = strcmp(value, "v1") == 0 ? FRAMING_V1 : FRAMING_LEGACY;
	else if (strcmp(key, "type") == 0)
		s->in.binary = strcmp(value, "binary") == 0;
	else if (strcmp(key, "expect") == 0)
		s->expect = strcmp(value, "ok") == 0 ? 0 : (unsigned)strtoul(value, NULL, 10);
	else if (strcmp(key, "channel") == 0)
		take(s->channel, sizeof s->channel, value);
	else if (strcmp(key, "msg_type") == 0)
		take(s->msg_type, sizeof s->msg_type, value);
	else if (strcmp(key, "content") == 0)
		take(s->content, sizeof s->content, value);
	else if (strcmp(key, "text") == 0)
		assert_int_equal(buf_add_text(&s->data, value), 0);
	else if (strcmp(key, "hex") == 0)
		add_hex(&s->data, value);
	else if (strcmp(key, "buffers") == 0) {
		s->counts_buffers = true;
		take(s->buffers, sizeof s->buffers, value);
	} else
		fail_msg("unknown key %s", key);
}

static void read_sample(const char *path, struct sample *s)
{
	char line[4096];
	memset(s, 0, sizeof *s);
	buf_init(&s->data, 1 << 20);
	FILE *f = fopen(path, "re");
	assert_non_null(f);
	while (fgets(line, sizeof line, f)) {
		line[strcspn(line, "\n")] = '\0';
		char *value = strchr(line, ' ');
		if (line[0] == '#' || !value)
			continue;
		*value = '\0';
		read_line(s, line, value + 1);
	}
	fclose(f);
	s->in.data = (struct bytes){s->data.data, s->data.len};
}

static void check_message(const struct sample *s, const struct jmsg *m)
{
	char lengths[64] = "";
	assert_string_equal(channel_name(m->channel), s->channel);
	assert_string_equal(m->msg_type, s->msg_type);
	assert_string_equal(m->msg_id, "m1");
	if (s->content[0])
		assert_true(bytes_equal(m->part[PART_CONTENT], s->content));
	for (size_t i = 0; i < m->n_buffers; i++)
		snprintf(lengths + strlen(lengths), sizeof lengths - strlen(lengths), "%s%zu",
			i > 0 ? " " : "", m->buffers[i].len);
	if (s->counts_buffers)
		assert_string_equal(lengths, s->buffers);
}

static void check_file(const char *path)
{
	struct sample s;
	struct err err = {0};
	struct jmsg *m = NULL;
	read_sample(path, &s);
	int status = decode_message(&s.in, &m, &err);
	unsigned code = status == 0 ? 0 : decode_close_code(status);
	if (code != s.expect)
		fail_msg("%s: %u, not %u (%s)", path, code, s.expect, err.text);
	if (status == 0)
		check_message(&s, m);
	else
		assert_null(m);
	jmsg_unref(m);
	buf_done(&s.data);
}

TEST(decode, every_sample_is_taken_or_refused_as_it_says)
{
	glob_t found;
	assert_int_equal(glob(FRAMES, 0, NULL, &found), 0);
	assert_true(found.gl_pathc >= ENOUGH);
	for (size_t i = 0; i < found.gl_pathc; i++)
		check_file(found.gl_pathv[i]);
	globfree(&found);
}

/* Each cut of a good message is refused, and read no further than it goes (sanitizers tell). */
TEST(decode, no_beginning_of_a_message_is_one)
{
	static const char *const paths[] = {"tests/wire/decode/v1_buffers.frame",
		"tests/wire/decode/b_plain.frame", "tests/wire/decode/a_plain.frame"};
	for (unsigned i = 0; i < ARRAY_LEN(paths); i++) {
		struct sample s;
		read_sample(paths[i], &s);
		for (size_t len = 0; len < s.data.len; len++) {
			struct jmsg *m = NULL;
			uint8_t *copy = malloc(len ? len : 1);
			memcpy(copy, s.data.data, len);
			s.in.data = (struct bytes){copy, len};
			int status = decode_message(&s.in, &m, NULL);
			/* Format B does not say where its last buffer ends. */
			if (i != 1)
				assert_int_not_equal(status, 0);
			jmsg_unref(m);
			free(copy);
		}
		buf_done(&s.data);
	}
}

RUN(TEST_ROW(decode, every_sample_is_taken_or_refused_as_it_says),
	TEST_ROW(decode, no_beginning_of_a_message_is_one))
