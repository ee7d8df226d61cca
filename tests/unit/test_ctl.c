#include "kernel-bridge/ctl.h"

#include <cjson/cJSON.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>
#include <uv.h>

#include "gateway/base/crypto.h"
#include "gateway/base/log.h"
#include "kernel-bridge/run_dir.h"
#include "tests/lib/test.h"

#define HELLO "{\"type\":\"hello\",\"version\":1,\"pid\":7}"

/* ---- the table against the document ---- */

/* A row of the document as it must be for a row of the table. */
static void print_row(const struct ctl_row *row, char *ret, size_t size)
{
	static const char *const directions[] = {
		[CTL_UP] = "up", [CTL_DOWN] = "down", [CTL_BOTH] = "both"};
	int n = snprintf(ret, size, "| %s | %s |", row->type, directions[row->direction]);
	for (const struct ctl_field *f = row->fields; f->name; f++)
		n += snprintf(ret + n, size - (size_t)n, " %s:%s%s", f->name,
			ctl_kind_name(f->kind), f->optional ? "?" : "");
	(void)snprintf(ret + n, size - (size_t)n, " | %u |\n", row->fds);
}

TEST(ctl_message, table_is_the_documents)
{
	char text[65536], line[512], *at;
	FILE *f = fopen("docs/PROTOCOL-ctl.md", "re");
	unsigned rows = 0;
	assert_non_null(f);
	size_t n = fread(text, 1, sizeof(text) - 1, f);
	text[n] = '\0';
	(void)fclose(f);

	for (unsigned i = 0; i < CTL_TYPES; i++) {
		print_row(ctl_row((enum ctl_type)i), line, sizeof(line));
		if (!strstr(text, line))
			fail_msg("the document has no row %s", line);
	}

	at = strstr(text, "| --- |");
	assert_non_null(at);
	while ((at = strchr(at, '\n')) && at[1] == '|')
		rows++, at++;
	assert_int_equal(rows, CTL_TYPES);
}

/* ---- reading and writing ---- */

static int read_text(const char *text, enum ctl_type *ret_type)
{
	struct cJSON *m = NULL;
	char about[CTL_TYPE_MAX];
	int rc = ctl_message_read(
		(struct bytes){(const uint8_t *)text, strlen(text)}, ret_type, &m, about, NULL);
	cJSON_Delete(m);
	return rc;
}

TEST(ctl_message, reads_what_fits_its_row)
{
	enum ctl_type type = CTL_ERROR;

	assert_int_equal(read_text(HELLO, &type), 0);
	assert_int_equal(type, CTL_HELLO);
	assert_int_equal(read_text("{\"type\":\"exited\",\"line\":1,\"code\":null,\"signal\":9,"
				   "\"oom\":false,\"left\":0,\"unknown\":[]}",
				 &type),
		0);
	assert_int_equal(type, CTL_EXITED);
}

TEST(ctl_message, refuses_what_does_not)
{
	static const char *const bad[] = {
		"",
		"[]",
		"nothing",
		"{\"type\":\"hello\"",
		"{\"version\":1,\"pid\":1}",
		"{\"type\":7}",
		"{\"type\":\"nonsense\"}",
		"{\"type\":\"start\"}", /* goes down only */
		"{\"type\":\"hello\",\"version\":1}",
		"{\"type\":\"hello\",\"version\":\"1\",\"pid\":1}",
		"{\"type\":\"hello\",\"version\":1.5,\"pid\":1}",
		"{\"type\":\"hello\",\"version\":1e300,\"pid\":1}",
		"{\"type\":\"hello\",\"version\":null,\"pid\":1}",
		"{\"type\":\"hello\",\"version\":1,\"pid\":1,\"image\":3}",
		"{\"type\":\"start_failed\",\"line\":1,\"reason\":\"\xff\"}",
	};
	enum ctl_type type = CTL_ERROR;

	for (size_t i = 0; i < ARRAY_LEN(bad); i++)
		if (read_text(bad[i], &type) == 0)
			fail_msg("taken: %s", bad[i]);
}

TEST(ctl_message, writes_only_whole_rows_and_short_packets)
{
	char *text = NULL, big[CTL_PACKET_MAX];
	cJSON *m = ctl_message_new(CTL_ERROR);

	assert_int_equal(ctl_message_write(m, &text, NULL), E_INVALID);
	(void)cJSON_AddStringToObject(m, "about", "x");
	memset(big, 'x', sizeof(big) - 1);
	big[sizeof(big) - 1] = '\0';
	(void)cJSON_AddStringToObject(m, "reason", big);
	assert_int_equal(ctl_message_write(m, &text, NULL), E_TOO_BIG);
	cJSON_ReplaceItemInObjectCaseSensitive(m, "reason", cJSON_CreateString("y"));
	assert_int_equal(ctl_message_write(m, &text, NULL), 0);
	assert_string_equal(text, "{\"type\":\"error\",\"about\":\"x\",\"reason\":\"y\"}");
	free(text);
	cJSON_Delete(m);
}

/* ---- a connection ---- */

struct fixture {
	uv_loop_t loop;
	struct log log;
	char parent[64];
	struct run_dir run;
	struct run_slot slot;
	struct ctl *ctl;
	int peer; /* the supervisor's end */
	unsigned ups, messages, downs;
	long pid;
	enum ctl_type last;
	bool refuse; /* on_message finds no sense in it */
	int down_code;
	char down_text[256];
	bool closed;
};

static void on_up(void *data, long pid, const struct cJSON *hello)
{
	struct fixture *fx = data;
	(void)hello;
	fx->ups++;
	fx->pid = pid;
}

static int on_message(void *data, enum ctl_type type, const struct cJSON *m, struct err *err)
{
	struct fixture *fx = data;
	(void)m;
	fx->messages++;
	fx->last = type;
	return fx->refuse ? err_set(err, E_PROTOCOL, "no sense") : 0;
}

static void on_closed(void *data)
{
	struct fixture *fx = data;
	fx->closed = true;
}

static void on_down(void *data, const struct err *err)
{
	struct fixture *fx = data;
	fx->downs++;
	fx->down_code = err->code;
	(void)copy_text(fx->down_text, sizeof(fx->down_text), err->text, strlen(err->text));
	ctl_close(fx->ctl, on_closed, fx); /* as the engine does */
}

/* The descriptor is ready before the loop looks, so that a few turns without waiting are enough. */
static void turn(struct fixture *fx)
{
	for (int i = 0; i < 8; i++)
		(void)uv_run(&fx->loop, UV_RUN_NOWAIT);
}

static int connect_to(const struct fixture *fx)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	(void)snprintf(address.sun_path, sizeof(address.sun_path), "%.90s/ctl", fx->slot.sockets);
	if (connect(fd, (struct sockaddr *)&address, sizeof(address)) < 0) {
		(void)close(fd);
		return -1;
	}
	return fd;
}

static void setup(struct fixture *fx)
{
	char path[96];
	int fd = -1;
	memset(fx, 0, sizeof(*fx));
	assert_int_equal(crypto_init(NULL), 0);
	log_init(&fx->log, NULL);
	assert_int_equal(uv_loop_init(&fx->loop), 0);
	(void)snprintf(fx->parent, sizeof(fx->parent), "/tmp/coppice-test-XXXXXX");
	assert_non_null(mkdtemp(fx->parent));
	(void)snprintf(path, sizeof(path), "%s/run", fx->parent);
	assert_int_equal(run_dir_open(path, &fx->run, NULL), 0);
	assert_int_equal(run_slot_make(&fx->run, &fx->slot, NULL), 0);
	assert_int_equal(run_slot_listen(&fx->slot, "ctl", SOCK_SEQPACKET, 0666, &fd, NULL), 0);
	const struct ctl_watcher w = {on_up, on_message, on_down, NULL, fx};
	assert_int_equal(ctl_open(&fx->loop, &fx->log, fd, &w, &fx->ctl, NULL), 0);
	fx->peer = connect_to(fx);
	assert_true(fx->peer >= 0);
}

static void teardown(struct fixture *fx)
{
	(void)close(fx->peer);
	if (fx->downs == 0)
		ctl_close(fx->ctl, on_closed, fx);
	assert_int_equal(uv_run(&fx->loop, UV_RUN_DEFAULT), 0);
	assert_true(fx->closed);
	assert_int_equal(uv_loop_close(&fx->loop), 0);
	run_slot_remove(&fx->slot);
	assert_int_equal(rmdir(fx->run.path), 0);
	run_dir_close(&fx->run);
	assert_int_equal(rmdir(fx->parent), 0);
}

static void say(struct fixture *fx, const char *text)
{
	assert_int_equal(send(fx->peer, text, strlen(text), MSG_NOSIGNAL), strlen(text));
	turn(fx);
}

/* What came down, "" if nothing. */
static const char *heard(struct fixture *fx, char ret[CTL_PACKET_MAX + 1])
{
	ssize_t n = recv(fx->peer, ret, CTL_PACKET_MAX, 0);
	ret[n > 0 ? n : 0] = '\0';
	return ret;
}

TEST(ctl, welcomes_a_supervisor)
{
	struct fixture fx;
	char text[CTL_PACKET_MAX + 1];
	setup(&fx);

	say(&fx, HELLO);

	assert_int_equal(fx.ups, 1);
	assert_int_equal(fx.pid, getpid());
	assert_string_equal(
		heard(&fx, text), "{\"type\":\"welcome\",\"version\":1,\"reports\":true}");
	teardown(&fx);
}

TEST(ctl, refuses_everybody_else_while_it_is_connected)
{
	struct fixture fx;
	char byte;
	setup(&fx);
	int waiting = connect_to(&fx);
	assert_true(waiting >= 0); /* it is in the listener's queue */

	say(&fx, HELLO);

	assert_int_equal(connect_to(&fx), -1);
	assert_true(recv(waiting, &byte, 1, 0) <= 0);
	assert_int_equal(send(waiting, HELLO, strlen(HELLO), MSG_NOSIGNAL), -1);
	assert_int_equal(fx.ups, 1);
	assert_int_equal(fx.downs, 0);
	(void)close(waiting);
	teardown(&fx);
}

TEST(ctl, names_both_versions_when_it_knows_not_the_others)
{
	struct fixture fx;
	setup(&fx);

	say(&fx, "{\"type\":\"hello\",\"version\":7,\"pid\":7}");

	assert_int_equal(fx.ups, 0);
	assert_int_equal(fx.down_code, E_PROTOCOL);
	assert_non_null(strstr(fx.down_text, "version 7"));
	assert_non_null(strstr(fx.down_text, "version 1"));
	teardown(&fx);
}

TEST(ctl, answers_nonsense_with_an_error)
{
	struct fixture fx;
	char text[CTL_PACKET_MAX + 1];
	setup(&fx);

	say(&fx, "{\"type\":\"started\",\"line\":1,\"pid\":2}"); /* before hello */
	assert_non_null(strstr(heard(&fx, text), "\"about\":\"started\""));
	say(&fx, HELLO);
	(void)heard(&fx, text);
	say(&fx, "not JSON");
	assert_non_null(strstr(heard(&fx, text), "\"type\":\"error\""));
	say(&fx, "{\"type\":\"teleport\"}");
	assert_non_null(strstr(heard(&fx, text), "\"about\":\"teleport\""));
	fx.refuse = true;
	say(&fx, "{\"type\":\"started\",\"line\":1,\"pid\":2}");
	assert_non_null(strstr(heard(&fx, text), "no sense"));

	assert_int_equal(fx.downs, 0);
	teardown(&fx);
}

TEST(ctl, answers_no_error_to_an_error)
{
	struct fixture fx;
	char text[CTL_PACKET_MAX + 1];
	setup(&fx);
	say(&fx, HELLO);
	(void)heard(&fx, text);

	say(&fx, "{\"type\":\"error\",\"about\":\"start\",\"reason\":\"x\"}");
	say(&fx, "{\"type\":\"error\"}");

	assert_string_equal(heard(&fx, text), "");
	assert_int_equal(fx.messages, 0);
	teardown(&fx);
}

TEST(ctl, closes_on_a_packet_that_is_too_long)
{
	struct fixture fx;
	static char big[CTL_PACKET_MAX + 2];
	setup(&fx);
	say(&fx, HELLO);
	memset(big, ' ', sizeof(big) - 1);

	say(&fx, big);

	assert_int_equal(fx.downs, 1);
	assert_int_equal(fx.down_code, E_PROTOCOL);
	teardown(&fx);
}

TEST(ctl, reads_a_bounded_number_of_packets_a_turn)
{
	struct fixture fx;
	const char *m = "{\"type\":\"started\",\"line\":1,\"pid\":2}";
	setup(&fx);
	say(&fx, HELLO);
	int size = 1 << 20;
	assert_int_equal(setsockopt(fx.peer, SOL_SOCKET, SO_SNDBUF, &size, sizeof(size)), 0);
	unsigned sent = 0;
	while (send(fx.peer, m, strlen(m), MSG_NOSIGNAL) > 0)
		sent++;
	/* A queue holds ten packets as a rule; a turn may see it filled again. */
	(void)uv_run(&fx.loop, UV_RUN_NOWAIT);

	assert_true(fx.messages > 0);
	assert_true(fx.messages <= CTL_TURN_MAX);
	for (unsigned i = 0; i <= sent; i++)
		turn(&fx);
	assert_int_equal(fx.messages, sent);
	teardown(&fx);
}

TEST(ctl, closes_after_a_thousand_malformed_packets)
{
	struct fixture fx;
	char text[CTL_PACKET_MAX + 1];
	setup(&fx);
	say(&fx, HELLO);

	for (unsigned i = 0; i < CTL_BAD_MAX - 1; i++) {
		say(&fx, "x");
		(void)heard(&fx, text);
	}
	assert_int_equal(fx.downs, 0);
	say(&fx, "x");

	assert_int_equal(fx.downs, 1);
	assert_int_equal(fx.down_code, E_PROTOCOL);
	teardown(&fx);
}

TEST(ctl, tells_the_end_of_the_supervisor)
{
	struct fixture fx;
	setup(&fx);
	say(&fx, HELLO);

	assert_int_equal(shutdown(fx.peer, SHUT_RDWR), 0);
	turn(&fx);

	assert_int_equal(fx.downs, 1);
	assert_int_equal(fx.down_code, E_UNAVAILABLE);
	assert_true(fx.closed);
	teardown(&fx);
}

static cJSON *start_message(void)
{
	cJSON *m = ctl_message_new(CTL_START);
	(void)cJSON_AddNumberToObject(m, "line", 1);
	(void)cJSON_AddStringToObject(m, "kernel", "k");
	(void)cJSON_AddStringToObject(m, "key", "secret");
	(void)cJSON_AddStringToObject(m, "cwd", "/work");
	(void)cJSON_AddObjectToObject(m, "env");
	(void)cJSON_AddArrayToObject(m, "endpoints");
	(void)cJSON_AddFalseToObject(m, "fresh");
	return m;
}

static size_t receive_fds(int fd, char *text, size_t size, int *ret_fds)
{
	union {
		struct cmsghdr align;
		char bytes[CMSG_SPACE(sizeof(int) * CTL_FDS_MAX)];
	} control;
	struct iovec part = {text, size - 1};
	struct msghdr m = {.msg_iov = &part,
		.msg_iovlen = 1,
		.msg_control = control.bytes,
		.msg_controllen = sizeof(control.bytes)};
	ssize_t n = recvmsg(fd, &m, MSG_CMSG_CLOEXEC);
	struct cmsghdr *head = n > 0 ? CMSG_FIRSTHDR(&m) : NULL;
	text[n > 0 ? n : 0] = '\0';
	if (!head)
		return 0;
	memcpy(ret_fds, CMSG_DATA(head), head->cmsg_len - CMSG_LEN(0));
	return (head->cmsg_len - CMSG_LEN(0)) / sizeof(int);
}

TEST(ctl, passes_descriptors_and_keeps_none)
{
	struct fixture fx;
	char text[CTL_PACKET_MAX + 1];
	int fds[CTL_FDS_MAX], got[CTL_FDS_MAX];
	setup(&fx);
	say(&fx, HELLO);
	(void)heard(&fx, text);
	for (size_t i = 0; i < CTL_FDS_MAX; i++)
		fds[i] = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

	assert_int_equal(ctl_send(fx.ctl, start_message(), fds, CTL_FDS_MAX, NULL), 0);

	assert_int_equal(receive_fds(fx.peer, text, sizeof(text), got), CTL_FDS_MAX);
	assert_non_null(strstr(text, "\"type\":\"start\""));
	for (size_t i = 0; i < CTL_FDS_MAX; i++)
		(void)close(got[i]);
	for (size_t i = 0; i < CTL_FDS_MAX; i++)
		assert_int_equal(fcntl(fds[i], F_GETFD), -1);
	teardown(&fx);
}

TEST(ctl, closes_descriptors_that_it_cannot_send)
{
	struct fixture fx;
	setup(&fx);
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

	assert_int_equal(ctl_send(fx.ctl, start_message(), &fd, 1, NULL), E_UNAVAILABLE);

	assert_int_equal(fcntl(fd, F_GETFD), -1);
	teardown(&fx);
}

static cJSON *kill_message(void)
{
	cJSON *m = ctl_message_new(CTL_KILL);
	(void)cJSON_AddNumberToObject(m, "line", 1);
	return m;
}

TEST(ctl, keeps_a_bounded_queue_for_a_supervisor_that_does_not_read)
{
	struct fixture fx;
	char text[CTL_PACKET_MAX + 1];
	unsigned sent = 0, got = 0;
	setup(&fx);
	say(&fx, HELLO);

	while (ctl_send(fx.ctl, kill_message(), NULL, 0, NULL) == 0)
		assert_true(++sent < 100000);

	assert_true(sent >= CTL_QUEUE_MAX);
	assert_string_equal(
		heard(&fx, text), "{\"type\":\"welcome\",\"version\":1,\"reports\":true}");
	for (unsigned i = 0; i <= sent; i++) {
		turn(&fx);
		while (heard(&fx, text)[0])
			got++;
	}
	assert_int_equal(got, sent); /* all of it, once it reads */
	assert_int_equal(fx.downs, 0);
	teardown(&fx);
}

RUN(TEST_ROW(ctl_message, table_is_the_documents), TEST_ROW(ctl_message, reads_what_fits_its_row),
	TEST_ROW(ctl_message, refuses_what_does_not),
	TEST_ROW(ctl_message, writes_only_whole_rows_and_short_packets),
	TEST_ROW(ctl, welcomes_a_supervisor),
	TEST_ROW(ctl, refuses_everybody_else_while_it_is_connected),
	TEST_ROW(ctl, names_both_versions_when_it_knows_not_the_others),
	TEST_ROW(ctl, answers_nonsense_with_an_error), TEST_ROW(ctl, answers_no_error_to_an_error),
	TEST_ROW(ctl, closes_on_a_packet_that_is_too_long),
	TEST_ROW(ctl, reads_a_bounded_number_of_packets_a_turn),
	TEST_ROW(ctl, closes_after_a_thousand_malformed_packets),
	TEST_ROW(ctl, tells_the_end_of_the_supervisor),
	TEST_ROW(ctl, passes_descriptors_and_keeps_none),
	TEST_ROW(ctl, closes_descriptors_that_it_cannot_send),
	TEST_ROW(ctl, keeps_a_bounded_queue_for_a_supervisor_that_does_not_read))
