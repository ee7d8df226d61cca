/* Bytes of a ZeroMQ peer, however they are cut, and of peers that are none. */
#include "kernel-bridge/zmtp.h"

#include <string.h>

#include "tests/lib/test.h"

#define FRAMES_MAX 4
#define TOTAL_MAX  1000
#define FRAME_MAX  600

static const char greeting[64] = "\xff\0\0\0\0\0\0\0\1\x7f\3\1NULL";
#define READY "\4\031\5READY\013Socket-Type\0\0\0\3PUB"

struct peer {
	struct zmtp z;
	uint8_t data[8192]; /* what it said */
	size_t len;
	/* what was made of it */
	char told[8192]; /* "a+b|c|": frames and messages; "^" up, "-" dropped */
};

static void say(struct peer *p, const void *data, size_t len)
{
	assert_true(p->len + len <= sizeof p->data);
	memcpy(p->data + p->len, data, len);
	p->len += len;
}

#define SAY(p, text) say(p, text, sizeof(text) - 1)

static void say_hello(struct peer *p)
{
	memset(p, 0, sizeof *p);
	p->z.frame_max = FRAME_MAX;
	say(p, greeting, sizeof greeting);
	SAY(p, READY);
}

static void say_frame(struct peer *p, size_t len, char fill, bool more)
{
	uint8_t head[ZMTP_HEAD_MAX];
	say(p, head, zmtp_frame_head(len, more, head));
	assert_true(p->len + len <= sizeof p->data);
	memset(p->data + p->len, fill, len);
	p->len += len;
}

static void tell(struct peer *p, const struct zmtp_step *s)
{
	if (s->what == ZMTP_UP)
		strcat(p->told, "^");
	if (s->what == ZMTP_DROPPED)
		strcat(p->told, "-");
	for (size_t i = 0; s->what == ZMTP_MESSAGE && i < s->n; i++) {
		strncat(p->told, (const char *)s->frames[i].data, s->frames[i].len);
		strcat(p->told, i + 1 < s->n ? "+" : "|");
	}
}

/* Hands it over in pieces of that length, each in memory of its own. */
static int hear(struct peer *p, size_t piece)
{
	struct bytes frames[FRAMES_MAX];
	size_t from = 0, end = 0;
	p->told[0] = '\0';
	p->z = (struct zmtp){.frame_max = FRAME_MAX};
	while (true) {
		struct zmtp_step s = {
			.frames = frames, .frames_max = FRAMES_MAX, .total_max = TOTAL_MAX};
		size_t len = end - from;
		uint8_t *copy = malloc(len ? len : 1);
		memcpy(copy, p->data + from, len);
		int rc = zmtp_next(&p->z, (struct bytes){copy, len}, &s, NULL);
		if (rc == 0)
			tell(p, &s);
		free(copy);
		if (rc != 0)
			return rc;
		from += s.used;
		assert_true(from <= end);
		if (s.what != ZMTP_WAIT || s.used > 0)
			continue;
		assert_true(s.need > end - from); /* else it would spin */
		if (end == p->len)
			return 0;
		end = end + piece < p->len ? end + piece : p->len;
	}
}

static void expect(struct peer *p, const char *told)
{
	for (size_t piece = 1; piece <= p->len; piece++) {
		assert_int_equal(hear(p, piece), 0);
		assert_string_equal(p->told, told);
	}
}

static void refuse(struct peer *p, int code)
{
	for (size_t piece = 1; piece <= p->len; piece++)
		assert_int_equal(hear(p, piece), code);
}

TEST(zmtp, messages_come_whole_however_they_are_cut)
{
	struct peer p;
	say_hello(&p);
	SAY(&p, "\0\3one");
	SAY(&p, "\1\1a\1\0\0\2bb");
	SAY(&p, "\4\005\4PING"); /* a command between messages */
	SAY(&p, "\3\0\0\0\0\0\0\0\2cc\0\1d");
	expect(&p, "^one|a++bb|cc+d|");
}

TEST(zmtp, long_frames_have_long_heads)
{
	struct peer p;
	char told[400] = "^";
	say_hello(&p);
	say_frame(&p, 255, 'x', true);
	say_frame(&p, 256, 'y', false);
	memset(told + 1, 'x', 255);
	told[256] = '+';
	memset(told + 257, 'y', 100);
	assert_int_equal(hear(&p, 100), 0);
	assert_memory_equal(p.told, told, 350);
}

TEST(zmtp, too_many_parts_or_bytes_are_gone_over)
{
	struct peer p;
	say_hello(&p);
	for (unsigned i = 0; i < FRAMES_MAX; i++)
		SAY(&p, "\1\1a");
	SAY(&p, "\0\1z\0\4next");
	say_frame(&p, FRAME_MAX, 'x', true);
	say_frame(&p, FRAME_MAX, 'y', true);
	SAY(&p, "\0\0\0\5again");
	expect(&p, "^-next|-again|");
}

TEST(zmtp, a_frame_over_the_limit_is_not_waited_for)
{
	struct peer p;
	say_hello(&p);
	SAY(&p, "\0\2ok");
	SAY(&p, "\2\0\0\0\0\0\0\2\x59"); /* 601 bytes, none of which came */
	refuse(&p, E_TOO_BIG);
	assert_string_equal(p.told, "^ok|");
	say_hello(&p);
	SAY(&p, "\1\1a\1\1a\1\1a\1\1a\1\1a\2\0\0\0\0\0\0\2\x59"); /* in one that is dropped */
	refuse(&p, E_TOO_BIG);
}

TEST(zmtp, what_is_none_is_refused)
{
	static const struct {
		const char *text;
		size_t len;
	} frames[] = {
		{"\x08\1a", 3}, {"\x80\1a", 3},
		{"\5\1a", 3},				   /* reserved flags, a command with more */
		{"\1\1a\4\1b", 6},			   /* a command amid a message */
		{"\1\1a\1\1a\1\1a\1\1a\1\1a\4\1b", 18},	   /* amid a dropped one */
		{"\2\xff\xff\xff\xff\xff\xff\xff\xff", 9}, /* 2^64 - 1 */
		{"\6\0\0\0\0\0\1\0\1", 9},		   /* a command of 64 KiB and one */
	};
	struct peer p;
	for (unsigned i = 0; i < ARRAY_LEN(frames); i++) {
		say_hello(&p);
		say(&p, frames[i].text, frames[i].len);
		refuse(&p, E_PROTOCOL);
	}
}

TEST(zmtp, peers_that_do_not_take_us_are_refused)
{
	struct peer p;
	memset(&p, 0, sizeof p);
	SAY(&p, "HTTP/1.1 400 Bad Request\r\n");
	refuse(&p, E_PROTOCOL);
	say_hello(&p);
	p.data[10] = 2; /* an old version */
	refuse(&p, E_PROTOCOL);
	say_hello(&p);
	memcpy(p.data + 12, "CURVE", 5);
	refuse(&p, E_PROTOCOL);
	memset(&p, 0, sizeof p);
	say(&p, greeting, sizeof greeting);
	SAY(&p, "\4\013\5ERROR\4away");
	refuse(&p, E_PROTOCOL);
	memset(&p, 0, sizeof p);
	say(&p, greeting, sizeof greeting);
	SAY(&p, "\0\3one"); /* a message before READY */
	refuse(&p, E_PROTOCOL);
}

TEST(zmtp, hello_is_a_greeting_and_a_ready)
{
	uint8_t hello[ZMTP_HELLO_MAX];
	static const char ready[] =
		"\4\053\5READY\013Socket-Type\0\0\0\6DEALER\10Identity\0\0\0\2me";
	size_t len = zmtp_hello("DEALER", "me", hello);
	assert_int_equal(len, 64 + sizeof ready - 1);
	assert_memory_equal(hello + 64, ready, sizeof ready - 1);
	/* Whatever a routing id may be, it fits. */
	char id[65];
	memset(id, 'x', 64);
	id[64] = '\0';
	assert_true(zmtp_hello("DEALER", id, hello) <= ZMTP_HELLO_MAX);
	assert_true(zmtp_hello("SUB", NULL, hello) > 64);
}

RUN(TEST_ROW(zmtp, messages_come_whole_however_they_are_cut),
	TEST_ROW(zmtp, long_frames_have_long_heads),
	TEST_ROW(zmtp, too_many_parts_or_bytes_are_gone_over),
	TEST_ROW(zmtp, a_frame_over_the_limit_is_not_waited_for),
	TEST_ROW(zmtp, what_is_none_is_refused),
	TEST_ROW(zmtp, peers_that_do_not_take_us_are_refused),
	TEST_ROW(zmtp, hello_is_a_greeting_and_a_ready))
