#include "tests/lib/test.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <uv.h>
#include <cjson/cJSON.h>

#include "frontend-adapter/adapter.h"

#define SECRET "sk-4f1d9c77e0"
#define CHAT   "11111111-1111-4111-8111-111111111111"
#define KERNEL "22222222-2222-4222-8222-222222222222"
#define CODE   "key = '" SECRET "'"

static const char text[] =
	"{\"id\":\"" CHAT "\",\"title\":\"t\",\"owner\":\"ada\",\"kernel_id\":\"" KERNEL "\","
	"\"kernel_name\":\"\",\"created_us\":1,\"messages\":["
	"{\"role\":\"user\",\"content\":\"before\"},"
	"{\"role\":\"assistant\",\"content\":\"answer before\",\"records\":[\"r0\"]},"
	"{\"role\":\"user\",\"content\":\"my key is " SECRET "\"},"
	"{\"role\":\"assistant\",\"content\":\"```\\n" CODE "\\n```\",\"records\":[\"r1\"]}],"
	"\"records\":["
	"{\"id\":\"r0\",\"kernel_id\":\"" KERNEL
	"\",\"code\":\"a = 1\",\"prepared_code\":\"a = 1\","
	"\"status\":\"ok\",\"stdout\":\"one\",\"stderr\":\"\",\"outputs\":[]},"
	"{\"id\":\"r1\",\"kernel_id\":\"" KERNEL "\",\"code\":\"" CODE "\","
	"\"prepared_code\":\"" CODE "\",\"status\":\"error\",\"stdout\":\"" SECRET "\","
	"\"stderr\":\"" SECRET "\",\"outputs\":[{\"text\":\"" SECRET "\"}],"
	"\"error\":{\"evalue\":\"" SECRET "\"},\"started\":\"s\",\"new\":\"" SECRET "\"}]}";

struct fix {
	uv_loop_t loop;
	struct clock *clock;
	struct log log;
	char folder[64];
	struct chats *chats;
	bool closed;
};

static void write_file(const struct fix *fx, const char *name)
{
	char path[256];
	(void)snprintf(path, sizeof path, "%s/%s", fx->folder, name);
	int fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
	assert_int_equal(write(fd, text, sizeof text - 1), sizeof text - 1);
	assert_int_equal(close(fd), 0);
}

static void open_chats(struct fix *fx)
{
	const struct chats_setup setup = {.loop = &fx->loop,
		.clock = fx->clock,
		.log = &fx->log,
		.folder = fx->folder,
		.model_url = "",
		.model_name = ""};
	assert_int_equal(chats_open(&setup, &fx->chats, NULL), 0);
}

static struct fix *make(void)
{
	struct fix *fx = calloc(1, sizeof *fx);
	assert_int_equal(uv_loop_init(&fx->loop), 0);
	fx->clock = clock_new(&fx->loop);
	(void)snprintf(fx->folder, sizeof fx->folder, "/tmp/coppice-chat-XXXXXX");
	assert_non_null(mkdtemp(fx->folder));
	write_file(fx, CHAT ".json");
	open_chats(fx);
	return fx;
}

static void on_closed(void *data)
{
	*(bool *)data = true;
}

static void close_chats(struct fix *fx)
{
	fx->closed = false;
	chats_close(fx->chats, on_closed, &fx->closed);
	assert_true(fx->closed);
}

static void drop(struct fix *fx)
{
	char command[128];
	close_chats(fx);
	clock_close(fx->clock, NULL, NULL);
	(void)uv_run(&fx->loop, UV_RUN_DEFAULT);
	assert_int_equal(uv_loop_close(&fx->loop), 0);
	(void)snprintf(command, sizeof command, "rm -r '%s'", fx->folder);
	assert_int_equal(system(command), 0);
	free(fx);
}

static bool is_found(const struct fix *fx)
{
	char command[256];
	(void)snprintf(command, sizeof command, "grep -rqaF '" SECRET "' '%s'", fx->folder);
	return system(command) == 0;
}

static int forget(struct fix *fx, const char *kernel, const char *code)
{
	return chats_forget(
		fx->chats, kernel, (struct bytes){(const uint8_t *)code, strlen(code)}, NULL);
}

static void assert_as_told(struct fix *fx)
{
	struct cJSON *tree = NULL;
	const struct chat_page page = {.limit = 10};
	assert_int_equal(chat_get(fx->chats, "ada", CHAT, true, &page, &tree, NULL), 0);
	char *all = cJSON_PrintUnformatted(tree);
	assert_null(strstr(all, SECRET));
	assert_non_null(strstr(all, "answer before"));
	assert_non_null(strstr(all, "\"content\":\"before\""));
	assert_non_null(strstr(all, "\"stdout\":\"one\""));
	assert_non_null(strstr(all, "\"id\":\"r1\""));
	assert_non_null(strstr(all, "\"code\":\"(forgotten)\""));
	assert_non_null(strstr(all, "\"status\":\"error\""));
	free(all);
	cJSON_Delete(tree);
}

TEST(chat_forget, the_record_goes_with_its_answer_and_what_was_asked)
{
	struct fix *fx = make();
	write_file(fx, CHAT "/r1.log");
	assert_true(is_found(fx));
	assert_int_equal(forget(fx, KERNEL, CODE), 0);
	assert_false(is_found(fx));
	assert_as_told(fx);
	close_chats(fx);
	open_chats(fx);
	assert_as_told(fx);
	drop(fx);
}

TEST(chat_forget, others_stay)
{
	struct fix *fx = make();
	assert_int_equal(forget(fx, KERNEL, "key = 'another'"), 0);
	assert_int_equal(forget(fx, CHAT, CODE), 0); /* of another kernel */
	assert_int_equal(forget(fx, KERNEL, ""), 0);
	assert_true(is_found(fx));
	drop(fx);
}

TEST(chat_forget, what_a_killed_process_left_half_written_goes)
{
	struct fix *fx = make();
	write_file(fx, CHAT ".json.a1B2c3");
	write_file(fx, CHAT "/" KERNEL ".json.a1B2c3");
	assert_int_equal(forget(fx, KERNEL, CODE), 0);
	assert_false(is_found(fx));
	drop(fx);
}

TEST(chat_forget, a_disk_that_fails_is_told)
{
	struct fix *fx = make();
	char moved[80];
	(void)snprintf(moved, sizeof moved, "%s.away", fx->folder);
	assert_int_equal(rename(fx->folder, moved), 0);
	assert_int_equal(forget(fx, KERNEL, CODE), E_IO);
	assert_int_equal(rename(moved, fx->folder), 0);
	drop(fx);
}

static const char *now_of(const void *data, const char *node)
{
	(void)data;
	return strcmp(node, "1111") == 0 ? "2222" : NULL;
}

static void assert_nodes(struct fix *fx, const char *first, const char *second)
{
	static const char *const ids[] = {"r0", "r1"};
	const char *const nodes[] = {first, second};
	for (size_t i = 0; i < ARRAY_LEN(ids); i++) {
		struct cJSON *tree = NULL;
		char begin[64];
		assert_int_equal(chat_record(fx->chats, "ada", ids[i], &tree, NULL), 0);
		char *all = cJSON_PrintUnformatted(tree);
		(void)snprintf(begin, sizeof begin, "{\"node\":%s,", nodes[i]);
		if (strncmp(all, begin, strlen(begin)) != 0)
			fail_msg("%s: %s", begin, all);
		free(all);
		cJSON_Delete(tree);
	}
}

/* A row's node is set as a gateway does that is told of it. */
TEST(chat_forget, records_are_told_the_new_ids)
{
	struct fix *fx = make();
	char command[512];
	close_chats(fx);
	(void)snprintf(command, sizeof command,
		"sed -i 's/\"id\":\"r0\",\"msg_id\":\"\",\"node\":null/\"id\":\"r0\",\"msg_id\":"
		"\"\",\"node\":\"1111\"/' '%s/" CHAT ".json'",
		fx->folder);
	assert_int_equal(system(command), 0);
	open_chats(fx);
	assert_nodes(fx, "\"1111\"", "null");
	chats_renamed(fx->chats, now_of, NULL);
	assert_nodes(fx, "\"2222\"", "null");
	close_chats(fx);
	open_chats(fx);
	assert_nodes(fx, "\"2222\"", "null");
	drop(fx);
}

RUN(TEST_ROW(chat_forget, the_record_goes_with_its_answer_and_what_was_asked),
	TEST_ROW(chat_forget, others_stay),
	TEST_ROW(chat_forget, what_a_killed_process_left_half_written_goes),
	TEST_ROW(chat_forget, a_disk_that_fails_is_told),
	TEST_ROW(chat_forget, records_are_told_the_new_ids))
