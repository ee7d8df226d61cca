/* What a kernel says over `ctl` beside its messages, and what it is answered. */
#include "tests/flow/bridge/docker_fixture.h"

TEST(docker_words, what_a_kernel_reports)
{
	struct fixture fx;
	adopted(&fx, HELLO "\"1:77:k\"]}");
	cJSON *welcome = hear(&fx, "welcome");
	assert_true(cJSON_IsTrue(cJSON_GetObjectItem(welcome, "reports")));
	cJSON_Delete(welcome);
	/* Of a line that has ended: no error. */
	say(&fx, "{\"type\":\"report\",\"line\":9,\"msg_id\":\"x\",\"data\":\"{}\"}");
	say(&fx, "{\"type\":\"report\",\"line\":1,\"msg_id\":\"m\",\"data\":\"{}\"}");
	until(&fx, &fx.reports);
	assert_string_equal(fx.bytes, "m {}");
	assert_int_equal(fx.reports, 1);
	teardown(&fx);
}

#define ANSWER_BYTES 70000u

/* Of the answer's data; *ret_size is its size. */
static size_t hear_piece(struct fixture *fx, size_t *ret_size)
{
	char packet[CTL_PACKET_MAX];
	uint64_t start_ns = uv_hrtime();
	ssize_t n = -1;
	while (n < 0 && uv_hrtime() - start_ns < GUARD_NS) {
		turn(fx);
		n = recv(fx->peer, packet, sizeof packet, MSG_DONTWAIT);
	}
	assert_true(n > 0);
	cJSON *m = cJSON_ParseWithLength(packet, (size_t)n);
	const char *data = cJSON_GetStringValue(cJSON_GetObjectItem(m, "data"));
	assert_non_null(data);
	size_t len = strlen(data);
	assert_true((data[0] & 0xc0) != 0x80); /* no half of a character */
	assert_int_equal(cJSON_GetNumberValue(cJSON_GetObjectItem(m, "id")), 12345678901);
	*ret_size = (size_t)cJSON_GetNumberValue(cJSON_GetObjectItem(m, "size"));
	cJSON_Delete(m);
	return len;
}

TEST(docker_words, what_a_kernel_asks_is_answered_in_pieces)
{
	struct fixture fx;
	char text[ANSWER_BYTES];
	size_t got = 0, size = 0;
	memset(text, '"', sizeof text);
	for (size_t i = 1; i + 1 < sizeof text; i += 2)
		memcpy(text + i, "ä", 2);
	text[sizeof text - 1] = '"';
	adopted(&fx, HELLO "\"1:77:k\"]}");
	cJSON_Delete(hear(&fx, "welcome"));
	say(&fx, "{\"type\":\"ask\",\"line\":9,\"id\":1,\"what\":\"log\",\"about\":\"\"}");
	say(&fx, "{\"type\":\"ask\",\"line\":1,\"id\":12345678901,\"what\":\"show\","
		 "\"about\":\"HEAD\"}");
	until(&fx, &fx.asks);
	assert_string_equal(fx.bytes, "show HEAD");
	fx.engine->ops->answer(
		fx.slot, 1, fx.asked, "ok", (struct bytes){(const uint8_t *)text, sizeof text});
	while (got < sizeof text) {
		got += hear_piece(&fx, &size);
		assert_int_equal(size, sizeof text);
	}
	assert_int_equal(got, sizeof text);
	fx.engine->ops->answer(fx.slot, 2, 1, "ok", (struct bytes){0}); /* nobody's */
	teardown(&fx);
}

TEST(docker_words, no_parks_are_asked_for_unless_they_are_wanted)
{
	struct fixture fx;
	adopted(&fx, HELLO "\"1:77:k\"],\"parks\":true}");
	cJSON *welcome = hear(&fx, "welcome");
	assert_null(cJSON_GetObjectItem(welcome, "parks_max"));
	cJSON_Delete(welcome);
	teardown(&fx);
}

/* Told for a line that ended, too. */
TEST(docker_words, what_is_parked_is_told)
{
	struct fixture fx;
	setup(&fx);
	fx.config.parks = 3;
	assert_int_equal(adopt(&fx, NAME, getpid(), NULL), 0);
	come_back(&fx, HELLO "\"1:77:k\"],\"parks\":true}");
	cJSON *welcome = hear(&fx, "welcome");
	assert_int_equal(cJSON_GetObjectItem(welcome, "parks_max")->valueint, 3);
	cJSON_Delete(welcome);
	say(&fx, "{\"type\":\"parked\",\"line\":9,\"msg_id\":\"m\",\"park\":7,\"pid\":80,"
		 "\"data\":\"{}\"}");
	until(&fx, &fx.parked);
	assert_int_equal(fx.park, 7);
	assert_string_equal(fx.bytes, "m {}");
	say(&fx, "{\"type\":\"not_parked\",\"line\":1,\"msg_id\":\"n\","
		 "\"reason\":\"a thread runs\"}");
	until(&fx, &fx.not_parked);
	assert_string_equal(fx.bytes, "n a thread runs");
	fx.engine->ops->release(fx.slot, 7);
	cJSON *release = hear(&fx, "release");
	assert_int_equal(cJSON_GetObjectItem(release, "park")->valueint, 7);
	cJSON_Delete(release);
	say(&fx, "{\"type\":\"unparked\",\"park\":7,\"reason\":\"released\"}");
	until(&fx, &fx.unparked);
	assert_string_equal(fx.bytes, "released");
	teardown(&fx);
}

static const char *member(const cJSON *m, const char *name)
{
	return cJSON_GetStringValue(cJSON_GetObjectItem(m, name));
}

/* Beside the line that runs; five listeners come with it. */
TEST(docker_words, a_line_is_begun_from_a_park)
{
	struct fixture fx;
	struct err err;
	adopted(&fx, HELLO "\"1:77:k\"],\"parks\":true}");
	cJSON_Delete(hear(&fx, "welcome"));
	const struct line_start start = {
		.line = 2, .kernel_id = "k", .spec = &fx.spec, .key = "newkey"};
	assert_int_equal(fx.engine->ops->revive(fx.slot, &start, 7, NULL), 0);
	cJSON *revive = hear(&fx, "revive");
	assert_int_equal(cJSON_GetObjectItem(revive, "line")->valueint, 2);
	assert_int_equal(cJSON_GetObjectItem(revive, "park")->valueint, 7);
	assert_string_equal(member(revive, "key"), "newkey");
	assert_string_equal(member(revive, "kernel"), "k");
	const cJSON *endpoints = cJSON_GetObjectItem(revive, "endpoints");
	assert_int_equal(cJSON_GetArraySize(endpoints), CHANNEL_COUNT);
	assert_string_equal(cJSON_GetStringValue(cJSON_GetArrayItem(endpoints, 0)),
		"ipc:///run/coppice/shell-2");
	cJSON_Delete(revive);
	char path[160];
	(void)snprintf(path, sizeof path, "%s/shell-2", fx.sockets);
	assert_int_equal(access(path, F_OK), 0);
	say(&fx, "{\"type\":\"revived\",\"line\":2,\"data\":\"{1}\"}");
	until(&fx, &fx.revived);
	assert_int_equal(fx.line, 2);
	assert_string_equal(fx.bytes, "{1}");
	assert_true(fx.engine->ops->revive(fx.slot, &start, 7, &err) < 0); /* the number is used */
	assert_true(fx.engine->ops->revive(fx.slot, &start, 0, &err) < 0);
	teardown(&fx);
}

RUN(TEST_ROW(docker_words, no_parks_are_asked_for_unless_they_are_wanted),
	TEST_ROW(docker_words, what_is_parked_is_told),
	TEST_ROW(docker_words, a_line_is_begun_from_a_park),
	TEST_ROW(docker_words, what_a_kernel_reports),
	TEST_ROW(docker_words, what_a_kernel_asks_is_answered_in_pieces))
