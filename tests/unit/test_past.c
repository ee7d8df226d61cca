/* What a killed gateway leaves: the mapped file is read by the next one, and a message that comes
 * again is known. */
#include "gateway/spine/past.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "gateway/base/crypto.h"
#include "tests/lib/test.h"

struct fixture {
	char folder[64], path[96];
	struct live *live;
	struct jmsg *m[4];
};

static void setup(struct fixture *fx)
{
	assert_int_equal(crypto_init(NULL), 0);
	(void)snprintf(fx->folder, sizeof fx->folder, "/tmp/coppice-past-XXXXXX");
	assert_non_null(mkdtemp(fx->folder));
	(void)snprintf(fx->path, sizeof fx->path, "%s/live", fx->folder);
	assert_int_equal(live_open(fx->path, &fx->live, NULL), 0);
	for (size_t i = 0; i < ARRAY_LEN(fx->m); i++)
		assert_int_equal(jmsg_make(CHANNEL_IOPUB, "stream", "s", NULL, "{\"text\":\"x\"}",
					 &fx->m[i], NULL),
			0);
}

static void open_again(struct fixture *fx)
{
	live_close(fx->live);
	assert_int_equal(live_open(fx->path, &fx->live, NULL), 0);
}

static void teardown(struct fixture *fx)
{
	live_close(fx->live);
	for (size_t i = 0; i < ARRAY_LEN(fx->m); i++)
		jmsg_unref(fx->m[i]);
	assert_int_equal(unlink(fx->path), 0);
	assert_int_equal(rmdir(fx->folder), 0);
}

TEST(past, tells_what_is_in_the_file_from_what_comes_again)
{
	struct fixture fx;
	uint64_t to = 0;
	setup(&fx);
	live_took(fx.live, fx.m[0], 7, 0);
	live_took(fx.live, fx.m[1], 8, 0);
	live_took(fx.live, fx.m[2], 9, 3);
	open_again(&fx);
	struct past *p = past_new(fx.live, 8);
	assert_true(past_has(p, fx.m[0]));
	assert_true(past_has(p, fx.m[1]));
	assert_false(past_has(p, fx.m[2]));
	assert_false(past_has(p, fx.m[3]));
	assert_true(past_receiver(p, fx.m[2], &to));
	assert_int_equal(to, 3);
	assert_false(past_receiver(p, fx.m[3], &to));
	past_free(p);
	/* A second kill finds no numbers that were never written. */
	p = past_new(fx.live, 8);
	assert_false(past_receiver(p, fx.m[2], &to));
	past_free(p);
	teardown(&fx);
}

TEST(past, a_client_passes_over_what_it_had)
{
	struct fixture fx;
	setup(&fx);
	live_took(fx.live, fx.m[0], 9, 0);
	live_took(fx.live, fx.m[1], 10, 0);
	struct past *p = past_new(fx.live, 8);
	past_again(p, fx.m[1], 9); /* in another order than then */
	past_again(p, fx.m[3], 10);
	past_again(p, fx.m[0], 11);
	assert_false(past_had(p, 9, 10));
	assert_true(past_had(p, 9, 11));
	assert_false(past_had(p, 10, 11));
	assert_true(past_had(p, 11, 10));
	past_end(p);
	assert_true(past_had(p, 11, 10));
	assert_false(past_has(p, fx.m[0]));
	past_free(p);
	assert_false(past_had(NULL, 1, 2));
	teardown(&fx);
}

TEST(past, clients_and_requests_are_there_again)
{
	struct fixture fx;
	struct jmsg *m;
	setup(&fx);
	live_client(fx.live, 4, "page")->next = 12;
	struct live_request *first = live_request(fx.live, fx.m[0], 4);
	live_request(fx.live, fx.m[1], 4)->is_sent = true;
	live_request_free(first);
	live_acked(fx.live, CHANNEL_SHELL, "abc");
	open_again(&fx);
	assert_int_equal(live_last_client(fx.live), 4);
	assert_string_equal(live_clients(fx.live)[0].session_id, "page");
	assert_int_equal(live_clients(fx.live)[0].next, 12);
	assert_int_equal(live_requests(fx.live)[0].order, 0);
	const struct live_request *row = &live_requests(fx.live)[1];
	assert_int_equal(row->order, 2);
	assert_true(row->is_sent);
	struct bytes frame = {.data = row->frame, .len = row->len};
	assert_int_equal(jmsg_from_frame(frame, &m, NULL), 0);
	assert_string_equal(m->msg_id, fx.m[1]->msg_id);
	jmsg_unref(m);
	assert_string_equal(live_acked_id(fx.live, CHANNEL_SHELL), "abc");
	teardown(&fx);
}

TEST(past, a_file_of_another_size_is_begun_anew)
{
	struct fixture fx;
	setup(&fx);
	live_client(fx.live, 4, "page")->next = 12;
	live_close(fx.live);
	assert_int_equal(truncate(fx.path, 1000), 0);
	assert_int_equal(live_open(fx.path, &fx.live, NULL), 0);
	assert_int_equal(live_last_client(fx.live), 0);
	assert_int_equal(live_clients(fx.live)[0].number, 0);
	teardown(&fx);
}

RUN(TEST_ROW(past, tells_what_is_in_the_file_from_what_comes_again),
	TEST_ROW(past, a_client_passes_over_what_it_had),
	TEST_ROW(past, clients_and_requests_are_there_again),
	TEST_ROW(past, a_file_of_another_size_is_begun_anew))
