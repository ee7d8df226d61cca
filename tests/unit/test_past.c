/* What a killed gateway leaves: the mapped file is read by the next one, and a message that comes
 * again is known. */
#include "gateway/spine/past.h"

#include <stdio.h>
#include <signal.h>
#include <string.h>
#include <sys/wait.h>
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

/* Pages of the mappings of that file. */
static long pages_of(const char *path)
{
	char line[512];
	bool inside = false;
	unsigned long from, to;
	long kb, sum = 0;
	FILE *f = fopen("/proc/self/smaps", "r");
	assert_non_null(f);
	while (fgets(line, sizeof line, f)) {
		if (sscanf(line, "%lx-%lx ", &from, &to) == 2) /* also one without a file */
			inside = strstr(line, path) != NULL;
		if (inside && sscanf(line, "Rss: %ld kB", &kb) == 1)
			sum += kb;
	}
	assert_int_equal(fclose(f), 0);
	return sum * 1024 / sysconf(_SC_PAGESIZE);
}

TEST(past, a_kernel_that_was_asked_once_holds_few_pages)
{
	struct fixture fx;
	setup(&fx);
	assert_non_null(live_client(fx.live, 1, "s1"));
	live_request_free(fx.live, live_request(fx.live, fx.m[0], 1));
	live_took(fx.live, fx.m[0], 1, 0);
	assert_in_range(pages_of(fx.path), 1, 8);
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
	live_request_free(fx.live, first);
	live_acked(fx.live, CHANNEL_SHELL, "abc");
	open_again(&fx);
	assert_int_equal(live_last_client(fx.live), 4);
	assert_string_equal(live_clients(fx.live)[0].session_id, "page");
	assert_int_equal(live_clients(fx.live)[0].next, 12);
	assert_int_equal(live_request_at(fx.live, 0)->order, 0);
	const struct live_request *row = live_request_at(fx.live, 1);
	assert_int_equal(row->order, 2);
	assert_true(row->is_sent);
	struct bytes frame = {.data = row->frame, .len = row->len};
	assert_int_equal(jmsg_from_frame(frame, &m, NULL), 0);
	assert_string_equal(m->msg_id, fx.m[1]->msg_id);
	jmsg_unref(m);
	assert_string_equal(live_acked_id(fx.live, CHANNEL_SHELL), "abc");
	teardown(&fx);
}

/* As many cells as a long notebook has: the file grows for them. */
TEST(past, many_requests_are_there_again)
{
	struct fixture fx;
	struct live_request *rows[1000];
	setup(&fx);
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		rows[i] = live_request(fx.live, fx.m[i % 4], i);
		assert_non_null(rows[i]);
	}
	live_request_free(fx.live, rows[700]);
	live_request_free(fx.live, rows[70]);
	assert_ptr_equal(live_request(fx.live, fx.m[0], 1070), rows[70]);
	assert_ptr_equal(live_request(fx.live, fx.m[0], 1700), rows[700]);
	assert_int_equal(live_take_unkept(fx.live), 0);
	open_again(&fx);
	for (size_t i = 0; i < ARRAY_LEN(rows); i++)
		assert_int_equal(
			live_request_at(fx.live, i)->client, i == 70 || i == 700 ? 1000 + i : i);
	assert_null(live_request_at(fx.live, 1024));
	teardown(&fx);
}

TEST(past, requests_without_a_row_are_counted)
{
	struct fixture fx;
	setup(&fx);
	for (size_t i = 0; i < LIVE_BLOCK; i++)
		assert_non_null(live_request(fx.live, fx.m[0], 1));
	char away[128];
	(void)snprintf(away, sizeof away, "%s.away", fx.path);
	assert_int_equal(rename(fx.path, away), 0); /* it cannot grow */
	assert_null(live_request(fx.live, fx.m[0], 1));
	live_unkept(fx.live, 1);
	live_unkept(fx.live, 1);
	live_unkept(fx.live, -1);
	assert_int_equal(rename(away, fx.path), 0);
	open_again(&fx);
	assert_int_equal(live_take_unkept(fx.live), 1);
	assert_int_equal(live_take_unkept(fx.live), 0);
	live_unkept(fx.live, -1);
	assert_int_equal(live_take_unkept(fx.live), 0);
	teardown(&fx);
}

/* A gateway that tells its client something and is killed by who has read it. */
static void tell_and_be_killed(struct live_client *row, const int fds[2])
{
	static char text[] = "tick";
	char got[sizeof text];
	struct iovec part = {.iov_base = text, .iov_len = sizeof text};
	pid_t child = fork();
	assert_true(child >= 0);
	if (child == 0) {
		struct mmsghdr *out = live_client_writes(row, row->next + 1, sizeof text);
		out->msg_hdr = (struct msghdr){.msg_iov = &part, .msg_iovlen = 1};
		(void)sendmmsg(fds[0], out, 1, 0); /* the other end sees whether it came */
		live_client_wrote(row, row->next + 1);
		(void)pause();
		_exit(0);
	}
	assert_int_equal(read(fds[1], got, sizeof got), sizeof got);
	assert_int_equal(kill(child, SIGKILL), 0);
	assert_int_equal(waitpid(child, NULL, 0), child);
}

/* The page reads, and the gateway is killed before it has noted that it wrote. */
TEST(past, what_a_client_read_it_had)
{
	struct fixture fx;
	int fds[2];
	setup(&fx);
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds), 0);
	struct live_client *row = live_client(fx.live, 4, "page");
	row->next = 1;
	for (uint64_t told = 2; told < 200; told++) {
		tell_and_be_killed(row, fds);
		assert_int_equal(live_client_had(row), told);
		live_client_wrote(row, live_client_had(row));
	}
	assert_int_equal(close(fds[0]), 0);
	assert_int_equal(close(fds[1]), 0);
	teardown(&fx);
}

/* What did not go, or not all of it, comes again. */
TEST(past, what_was_not_sent_whole_it_had_not)
{
	struct fixture fx;
	setup(&fx);
	struct live_client *row = live_client(fx.live, 4, "page");
	row->next = 12;
	struct mmsghdr *out = live_client_writes(row, 15, 100);
	assert_int_equal(live_client_had(row), 12);
	out->msg_len = 99;
	assert_int_equal(live_client_had(row), 12);
	out->msg_len = 100;
	assert_int_equal(live_client_had(row), 15);
	live_client_wrote(row, 14);
	assert_int_equal(live_client_had(row), 14);
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
	TEST_ROW(past, a_kernel_that_was_asked_once_holds_few_pages),
	TEST_ROW(past, a_client_passes_over_what_it_had),
	TEST_ROW(past, clients_and_requests_are_there_again),
	TEST_ROW(past, many_requests_are_there_again),
	TEST_ROW(past, requests_without_a_row_are_counted),
	TEST_ROW(past, what_a_client_read_it_had),
	TEST_ROW(past, what_was_not_sent_whole_it_had_not),
	TEST_ROW(past, a_file_of_another_size_is_begun_anew))
