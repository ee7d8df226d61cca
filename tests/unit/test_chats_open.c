/* What a start does with conversations that cannot be read. */
#include "tests/lib/test.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <uv.h>

#include "frontend-adapter/adapter.h"

#define CHAT "11111111-1111-4111-8111-111111111111"

struct fix {
	uv_loop_t loop;
	struct clock *clock;
	struct log log;
	char folder[64], path[128];
	bool closed;
};

static void given(struct fix *fx)
{
	*fx = (struct fix){.folder = "/tmp/coppice-chats-XXXXXX"};
	assert_int_equal(uv_loop_init(&fx->loop), 0);
	fx->clock = clock_new(&fx->loop);
	assert_non_null(mkdtemp(fx->folder));
	(void)snprintf(fx->path, sizeof fx->path, "%s/" CHAT ".json", fx->folder); /* fits */
}

static int open_chats(struct fix *fx, struct chats **ret, struct err *err)
{
	const struct chats_setup setup = {.loop = &fx->loop,
		.clock = fx->clock,
		.log = &fx->log,
		.folder = fx->folder,
		.model_url = "",
		.model_name = ""};
	return chats_open(&setup, ret, err);
}

static void on_closed(void *data)
{
	*(bool *)data = true;
}

static void done(struct fix *fx)
{
	clock_close(fx->clock, NULL, NULL);
	(void)uv_run(&fx->loop, UV_RUN_DEFAULT);
	assert_int_equal(uv_loop_close(&fx->loop), 0);
	assert_int_equal(remove(fx->path), 0);
	assert_int_equal(rmdir(fx->folder), 0);
}

/* It would not be there, and what history says of its runs would be told to nobody. */
TEST(chats_open, one_that_cannot_be_read_is_an_error_that_names_it)
{
	struct fix fx;
	struct err err = {0};
	struct chats *chats = NULL;
	given(&fx);
	assert_int_equal(mkdir(fx.path, 0700), 0);
	assert_int_equal(open_chats(&fx, &chats, &err), E_IO);
	assert_null(chats);
	assert_non_null(strstr(err.text, fx.path));
	done(&fx);
}

TEST(chats_open, what_is_no_conversation_is_passed_over)
{
	struct fix fx;
	struct chats *chats = NULL;
	struct cJSON *tree;
	given(&fx);
	int fd = open(fx.path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
	assert_int_equal(write(fd, "{\"id\":", 6), 6);
	assert_int_equal(close(fd), 0);
	assert_int_equal(open_chats(&fx, &chats, NULL), 0);
	assert_int_equal(
		chat_get(chats, "ada", CHAT, true, &(struct chat_page){.limit = 1}, &tree, NULL),
		E_NOT_FOUND);
	chats_close(chats, on_closed, &fx.closed);
	assert_true(fx.closed);
	done(&fx);
}

RUN(TEST_ROW(chats_open, one_that_cannot_be_read_is_an_error_that_names_it),
	TEST_ROW(chats_open, what_is_no_conversation_is_passed_over))
