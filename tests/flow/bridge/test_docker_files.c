/* Working files over `ctl`: what comes and goes in pieces, and that what breaks the rules is
 * dropped and harms nothing else. */
#include "kernel-bridge/slot_files.h"
#include "tests/flow/bridge/docker_fixture.h"

#define TEXT_MAX 512

struct heard {
	unsigned files, contents, laid, rooms, gone;
	char text[TEXT_MAX]; /* of the last one, cut */
	size_t len;
	bool ready, last;
};

struct files_fixture {
	struct fixture fx;
	struct heard heard;
};

static struct heard *heard_of(void *data)
{
	return &CONTAINER_OF(data, struct files_fixture, fx)->heard;
}

static void note(struct heard *h, const char *name, struct bytes bytes)
{
	(void)snprintf(h->text, sizeof h->text, "%s %.*s", name,
		bytes.len < 200 ? (int)bytes.len : 200, (const char *)bytes.data);
	h->len = bytes.len;
}

static void on_files(void *data, unsigned line, const char *msg_id, struct bytes change)
{
	struct heard *h = heard_of(data);
	assert_true(line == 1 || line == 9);
	h->files++;
	note(h, msg_id, change);
}

static void on_content(void *data, const char *name, struct bytes bytes)
{
	struct heard *h = heard_of(data);
	h->contents++;
	h->gone += bytes.data ? 0 : 1;
	note(h, name, bytes);
}

static void on_laid(void *data, const struct slot_laid *laid)
{
	struct heard *h = heard_of(data);
	h->laid++;
	h->ready = laid->ready;
	h->last = laid->last;
	(void)snprintf(h->text, sizeof h->text, "%s %s %d", laid->id,
		laid->reason ? laid->reason : "-", cJSON_GetArraySize(laid->names));
}

static void on_room(void *data)
{
	heard_of(data)->rooms++;
}

static const struct slot_files_watcher files_watcher = {
	.on_files = on_files, .on_content = on_content, .on_laid = on_laid, .on_room = on_room};

static const struct slot_files_ops *begin(struct files_fixture *ff, bool wanted, const char *hello)
{
	memset(ff, 0, sizeof *ff);
	setup(&ff->fx);
	ff->fx.config.files = ff->fx.config.record = wanted;
	assert_int_equal(adopt(&ff->fx, NAME, getpid(), NULL), 0);
	ff->fx.slot->watcher.files = &files_watcher;
	come_back(&ff->fx, hello);
	cJSON *welcome = hear(&ff->fx, "welcome");
	assert_int_equal(cJSON_IsTrue(cJSON_GetObjectItem(welcome, "files")), wanted);
	cJSON_Delete(welcome);
	return ff->fx.engine->ops->files;
}

#define KNOWS HELLO "\"1:77:k\"],\"files\":true}"

/* A piece of `files` (name NULL) or of `content`. */
static void piece(struct fixture *fx, const char *name, const char *msg_id, long offset, long size,
	const char *data)
{
	AUTO(buf_done) struct buf b, text;
	buf_init(&b, CTL_PACKET_MAX);
	buf_init(&text, CTL_PACKET_MAX);
	assert_int_equal(
		base64_encode((struct bytes){(const uint8_t *)data, strlen(data)}, &text), 0);
	if (name)
		(void)buf_addf(&b, "{\"type\":\"content\",\"name\":\"%s\",", name);
	else
		(void)buf_addf(&b, "{\"type\":\"files\",\"line\":1,\"msg_id\":\"%s\",", msg_id);
	(void)buf_addf(&b, "\"offset\":%ld,\"size\":%ld,\"data\":\"%s\"}", offset, size,
		text.data ? (const char *)text.data : "");
	assert_false(b.failed);
	say(fx, (const char *)b.data);
}

static void assert_refused(struct fixture *fx, const char *about, const char *reason)
{
	cJSON *m = hear(fx, "error");
	assert_string_equal(cJSON_GetStringValue(cJSON_GetObjectItem(m, "about")), about);
	const char *said = cJSON_GetStringValue(cJSON_GetObjectItem(m, "reason"));
	if (!strstr(said, reason))
		fail_msg("%s", said);
	cJSON_Delete(m);
}

TEST(docker_files, a_change_and_its_contents_come_in_pieces)
{
	struct files_fixture ff;
	(void)begin(&ff, true, KNOWS);
	piece(&ff.fx, NULL, "m", 0, 10, "{\"full");
	piece(&ff.fx, "aa", NULL, 0, 4, "te"); /* another thing, in between */
	piece(&ff.fx, NULL, "m", 6, 10, "\":1}");
	until(&ff.fx, &ff.heard.files);
	assert_string_equal(ff.heard.text, "m {\"full\":1}");
	piece(&ff.fx, "aa", NULL, 2, 4, "xt");
	until(&ff.fx, &ff.heard.contents);
	assert_string_equal(ff.heard.text, "aa text");
	piece(&ff.fx, "bb", NULL, 0, 0, "");
	piece(&ff.fx, "cc", NULL, 0, -1, "");
	until(&ff.fx, &ff.heard.gone);
	assert_int_equal(ff.heard.contents, 3);
	assert_string_equal(ff.heard.text, "cc ");
	teardown(&ff.fx);
}

/* Each is refused once, whatever more comes of it, and what follows is heard. */
TEST(docker_files, what_breaks_the_rules_is_dropped_alone)
{
	static const struct {
		long offset, size;
		const char *data, *reason;
	} bad[] = {{3, 6, "abc", "does not fit"}, {0, -7, "abc", "longer than"},
		{0, (4l << 20) + 1, "abc", "longer than"}, {0, 2, "abc", "does not fit"},
		{0, 3, "", "does not fit"}};
	struct files_fixture ff;
	(void)begin(&ff, true, KNOWS);
	for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
		piece(&ff.fx, NULL, "bad", bad[i].offset, bad[i].size, bad[i].data);
		assert_refused(&ff.fx, "files", bad[i].reason);
		if (bad[i].offset == 0)
			piece(&ff.fx, NULL, "bad", 3, bad[i].size, "def");
		ff.heard.files = 0;
		piece(&ff.fx, NULL, "good", 0, 3, "all");
		until(&ff.fx, &ff.heard.files);
		assert_string_equal(ff.heard.text, "good all");
	}
	/* Pieces out of order. */
	piece(&ff.fx, NULL, "m", 0, 9, "abc");
	piece(&ff.fx, NULL, "m", 6, 9, "ghi");
	assert_refused(&ff.fx, "files", "does not fit");
	piece(&ff.fx, NULL, "m", 3, 9, "def");
	piece(&ff.fx, "aa", NULL, 0, (1l << 20) + 1, "abc");
	assert_refused(&ff.fx, "content", "longer than");
	say(&ff.fx,
		"{\"type\":\"content\",\"name\":\"aa\",\"offset\":0,\"size\":3,\"data\":\"!\"}");
	assert_refused(&ff.fx, "content", "does not fit");
	piece(&ff.fx, "aa", NULL, 0, 3, "abc");
	until(&ff.fx, &ff.heard.contents);
	assert_int_equal(ff.heard.contents, 1);
	assert_int_equal(ff.heard.files, 1);
	assert_int_equal(ff.fx.gone, 0);
	teardown(&ff.fx);
}

TEST(docker_files, what_is_asked)
{
	static const char *const names[] = {"aa", "bb"};
	const struct kernel_want want = {.msg_id = "m", .names = names, .n = 2, .last = true};
	struct files_fixture ff;
	const struct slot_files_ops *ops = begin(&ff, true, KNOWS);
	assert_true(ops->has(ff.fx.slot));
	assert_int_equal(ops->want(ff.fx.slot, 1, &want, NULL), 0);
	cJSON *m = hear(&ff.fx, "want");
	assert_int_equal(cJSON_GetArraySize(cJSON_GetObjectItem(m, "names")), 2);
	assert_true(cJSON_IsTrue(cJSON_GetObjectItem(m, "last")));
	cJSON_Delete(m);
	assert_int_equal(ops->scan(ff.fx.slot, 1, "s", false, NULL), 0);
	m = hear(&ff.fx, "scan");
	assert_string_equal(cJSON_GetStringValue(cJSON_GetObjectItem(m, "id")), "s");
	assert_null(cJSON_GetObjectItem(m, "full"));
	cJSON_Delete(m);
	assert_int_equal(ops->scan(ff.fx.slot, 1, "t", true, NULL), 0);
	m = hear(&ff.fx, "scan");
	assert_true(cJSON_IsTrue(cJSON_GetObjectItem(m, "full")));
	cJSON_Delete(m);
	teardown(&ff.fx);
}

/* Size of what was put together; each packet is read as it comes. */
static size_t hear_all(struct fixture *fx, const char *type)
{
	size_t got = 0, size = 1;
	while (got < size) {
		AUTO(buf_done) struct buf piece;
		cJSON *m = hear(fx, type);
		const char *data = cJSON_GetStringValue(cJSON_GetObjectItem(m, "data"));
		buf_init(&piece, CTL_PACKET_MAX);
		assert_int_equal(cJSON_GetNumberValue(cJSON_GetObjectItem(m, "offset")), got);
		size = (size_t)cJSON_GetNumberValue(cJSON_GetObjectItem(m, "size"));
		assert_int_equal(
			base64_decode((struct bytes){(const uint8_t *)data, strlen(data)}, &piece),
			0);
		assert_true(piece.len <= 46080);
		got += piece.len;
		cJSON_Delete(m);
	}
	assert_int_equal(got, size);
	return got;
}

TEST(docker_files, a_lay_goes_in_pieces_as_they_are_taken)
{
	static uint8_t content[1 << 20];
	struct files_fixture ff;
	const struct slot_files_ops *ops = begin(&ff, true, KNOWS);
	struct bytes entries = {(const uint8_t *)"{\"entries\":[]}", 14};
	assert_int_equal(ops->lay(ff.fx.slot, "l", "/work", entries, NULL), 0);
	assert_int_equal(hear_all(&ff.fx, "lay"), 14);
	until(&ff.fx, &ff.heard.rooms);
	say(&ff.fx, "{\"type\":\"laid\",\"id\":\"l\",\"ready\":false,\"names\":[\"aa\",\"bb\"],"
		    "\"last\":true}");
	until(&ff.fx, &ff.heard.laid);
	assert_string_equal(ff.heard.text, "l - 2");
	ff.heard.rooms = 0;
	for (int i = 0; i < 2; i++) /* more than the socket and the queue of `ctl` take */
		assert_int_equal(ops->lay_content(ff.fx.slot, "l", i ? "bb" : "aa",
					 (struct bytes){content, sizeof content}, NULL),
			0);
	turn(&ff.fx);
	assert_int_equal(ff.heard.rooms, 0);
	assert_int_equal(hear_all(&ff.fx, "lay_content"), sizeof content);
	assert_int_equal(hear_all(&ff.fx, "lay_content"), sizeof content);
	until(&ff.fx, &ff.heard.rooms);
	assert_int_equal(ops->lay_content(ff.fx.slot, "l", "cc", (struct bytes){0}, NULL), 0);
	cJSON *m = hear(&ff.fx, "lay_content");
	assert_int_equal(cJSON_GetNumberValue(cJSON_GetObjectItem(m, "size")), -1);
	cJSON_Delete(m);
	ff.heard.laid = 0;
	say(&ff.fx, "{\"type\":\"laid\",\"id\":\"l\",\"ready\":false,\"reason\":\"no room\","
		    "\"last\":true}");
	until(&ff.fx, &ff.heard.laid);
	assert_string_equal(ff.heard.text, "l no room 0");
	assert_false(ff.heard.ready);
	ops->lay_end(ff.fx.slot, "l", true);
	m = hear(&ff.fx, "lay_end");
	assert_true(cJSON_IsTrue(cJSON_GetObjectItem(m, "keep")));
	cJSON_Delete(m);
	teardown(&ff.fx);
}

TEST(docker_files, an_end_drops_what_waits)
{
	static uint8_t content[1 << 20];
	struct files_fixture ff;
	const struct slot_files_ops *ops = begin(&ff, true, KNOWS);
	assert_int_equal(ops->lay(ff.fx.slot, "l", "/work", (struct bytes){content, 14}, NULL), 0);
	for (int i = 0; i < 4; i++)
		assert_int_equal(ops->lay_content(ff.fx.slot, "l", "aa",
					 (struct bytes){content, sizeof content}, NULL),
			0);
	ops->lay_end(ff.fx.slot, "l", false);
	cJSON *m = hear(&ff.fx, "lay_end");
	assert_false(cJSON_IsTrue(cJSON_GetObjectItem(m, "keep")));
	cJSON_Delete(m);
	/* And so does the end of the slot. */
	assert_int_equal(ops->lay(ff.fx.slot, "l", "/work", (struct bytes){content, 14}, NULL), 0);
	for (int i = 0; i < 4; i++)
		assert_int_equal(ops->lay_content(ff.fx.slot, "l", "aa",
					 (struct bytes){content, sizeof content}, NULL),
			0);
	teardown(&ff.fx);
}

TEST(docker_files, nothing_is_told_where_one_side_does_not_know)
{
	struct files_fixture ff;
	struct err err;
	const struct slot_files_ops *ops = begin(&ff, false, KNOWS);
	assert_false(ops->has(ff.fx.slot));
	assert_int_equal(ops->scan(ff.fx.slot, 1, "s", false, &err), E_UNAVAILABLE);
	piece(&ff.fx, NULL, "m", 0, 3, "all");
	assert_refused(&ff.fx, "files", "told nothing of files");
	teardown(&ff.fx);
	ops = begin(&ff, true, HELLO "\"1:77:k\"]}"); /* an older image */
	assert_false(ops->has(ff.fx.slot));
	assert_int_equal(ff.heard.files, 0);
	teardown(&ff.fx);
}

RUN(TEST_ROW(docker_files, a_change_and_its_contents_come_in_pieces),
	TEST_ROW(docker_files, what_breaks_the_rules_is_dropped_alone),
	TEST_ROW(docker_files, what_is_asked),
	TEST_ROW(docker_files, a_lay_goes_in_pieces_as_they_are_taken),
	TEST_ROW(docker_files, an_end_drops_what_waits),
	TEST_ROW(docker_files, nothing_is_told_where_one_side_does_not_know))
