/* Contents of working files: what is forgotten goes, what is named stays, a copy has them. */
#include <signal.h>
#include <sys/stat.h>

#include "tests/lib/files_fixture.h"
#include "tests/lib/forget_fixture.h"

#define PLAIN "\"mode\":\"100644\","

/* 1 MiB with a text somewhere in it, that no compression would gain a fifth of. */
static const char *keep_chunk(struct hfix *fx, const char *text, char name[65])
{
	AUTO(buf_done) struct buf data;
	uint32_t seed = 7;
	buf_init(&data, CHUNK_BYTES);
	while (data.len < CHUNK_BYTES) {
		uint8_t byte = (uint8_t)(seed >> 24);
		seed = seed * 1664525u + 1013904223u;
		(void)buf_add(&data, &byte, 1);
	}
	memcpy(data.data + 5000, text, strlen(text));
	struct bytes bytes = {data.data, data.len};
	keep_as(fx, &files_whose, chunk_name(bytes, name), bytes);
	return name;
}

static struct tape *run_file(
	struct hfix *fx, const char *msg_id, const char *path, const char *text)
{
	char blob[HISTORY_NODE_SIZE], change[512];
	(void)snprintf(change, sizeof change,
		"{\"changed\":[{\"path\":\"%s\"," PLAIN "\"bytes\":%zu,\"blob\":\"%s\"}]}", path,
		strlen(text), keep_blob(fx, text, blob));
	return run_with(fx, msg_id, change);
}

static struct tape *run_chunk(
	struct hfix *fx, const char *msg_id, const char *path, const char *name)
{
	char change[512];
	(void)snprintf(change, sizeof change,
		"{\"changed\":[{\"path\":\"%s\"," PLAIN "\"bytes\":1048576,\"chunks\":[\"%s\"]}]}",
		path, name);
	return run_with(fx, msg_id, change);
}

static bool chunk_is_there(struct hfix *fx, const char *name)
{
	char path[256];
	(void)snprintf(path, sizeof path, "%s/" HISTORY_A ".git/chunks/%.2s/%s", fx->folder, name,
		name + 2);
	return access(path, F_OK) == 0;
}

static void make_old(struct hfix *fx, const char *name)
{
	char line[512];
	(void)snprintf(line, sizeof line,
		"touch -d '2 hours ago' '%s/" HISTORY_A ".git/chunks/%.2s/%s'", fx->folder, name,
		name + 2);
	shell(line);
}

static const char *lost_of(cJSON *files, const char *path)
{
	return text_at(entry_of(files, path), "lost");
}

TEST(files_kept, what_a_forgotten_node_left_is_gone_from_those_after_it)
{
	struct hfix *fx = hfix_new();
	struct forgot g = {.leaves = false};
	char big[65], mine[65], change[1024], blob[2][HISTORY_NODE_SIZE];
	(void)keep_chunk(fx, "no secret", mine);
	(void)run_chunk(fx, "m0", "mine.bin", mine);
	struct tape *first = run_file(fx, "m1", "a.txt", "as it was");
	(void)snprintf(change, sizeof change,
		"{\"changed\":[{\"path\":\"secret.txt\"," PLAIN "\"bytes\":9,\"blob\":\"%s\"},"
		"{\"path\":\"a.txt\",\"mode\":\"100755\",\"bytes\":9,\"blob\":\"%s\"},"
		"{\"path\":\"big.bin\"," PLAIN "\"bytes\":1048576,\"chunks\":[\"%s\"]},"
		"{\"path\":\"dir\",\"mode\":\"40000\"}],"
		"\"lost\":[{\"path\":\"" SECRET "\",\"reason\":\"a socket\"}]}",
		keep_blob(fx, SECRET "\n", blob[0]), keep_blob(fx, "now " SECRET, blob[1]),
		keep_chunk(fx, SECRET, big));
	struct tape *secret = run_with(fx, "m2", change);
	struct tape *later = run_with(fx, "m3", "{}");
	struct tape *last = run_file(fx, "m4", "a.txt", "written again");
	assert_true(is_found(fx, SECRET) && chunk_is_there(fx, big));
	forget_fine(fx, &g, secret->node);
	assert_false(is_found(fx, SECRET));
	assert_false(chunk_is_there(fx, big));
	assert_true(chunk_is_there(fx, mine));
	assert_sound(fx, HISTORY_A);
	/* Of the node itself nothing is told, its folder is its parent's. */
	cJSON *node = ask_node(fx, now_of(&g, secret->node));
	assert_int_equal(cJSON_GetArraySize(cJSON_GetObjectItem(node, "files")), 0);
	assert_int_equal(cJSON_GetNumberValue(
				 cJSON_GetObjectItem(cJSON_GetObjectItem(node, "counts"), "files")),
		0);
	cJSON_Delete(node);
	cJSON *files = ask_files(fx, now_of(&g, secret->node));
	assert_int_equal(entries(files), 2);
	cJSON_Delete(files);
	/* Those after it know that something was there, so that no move takes it away. */
	files = ask_files(fx, now_of(&g, later->node));
	assert_int_equal(entries(files), 5);
	assert_non_null(strstr(lost_of(files, "secret.txt"), "forgotten"));
	assert_non_null(strstr(lost_of(files, "big.bin"), "forgotten"));
	assert_non_null(strstr(lost_of(files, "a.txt"), "forgotten"));
	assert_string_equal(text_at(entry_of(files, "a.txt"), "mode"), "100755");
	assert_null(cJSON_GetObjectItem(entry_of(files, "mine.bin"), "lost"));
	cJSON_Delete(files);
	files = ask_files(fx, now_of(&g, last->node));
	assert_null(cJSON_GetObjectItem(entry_of(files, "a.txt"), "lost"));
	assert_non_null(strstr(lost_of(files, "big.bin"), "forgotten"));
	cJSON_Delete(files);
	files = ask_files(fx, first->node);
	assert_null(cJSON_GetObjectItem(entry_of(files, "a.txt"), "lost"));
	cJSON_Delete(files);
	/* It goes on from there. */
	struct tape *next = run_file(fx, "m5", "b.txt", "more");
	files = ask_files(fx, next->node);
	assert_int_equal(entries(files), 6);
	cJSON_Delete(files);
	assert_sound(fx, HISTORY_A);
	free(g.json);
	hfix_free(fx);
}

TEST(files_kept, a_change_while_nothing_ran_can_be_forgotten)
{
	struct hfix *fx = hfix_new();
	struct forgot g = {.leaves = false};
	char blob[HISTORY_NODE_SIZE], change[512];
	(void)run_file(fx, "m1", "a.txt", "first");
	(void)snprintf(change, sizeof change,
		"{\"changed\":[{\"path\":\"" SECRET "\"," PLAIN "\"bytes\":9,\"blob\":\"%s\"}]}",
		keep_blob(fx, "of " SECRET, blob));
	struct tape *f = files_alone(fx, "scan-1", change);
	assert_true(is_found(fx, SECRET));
	forget_fine(fx, &g, f->node);
	assert_false(is_found(fx, SECRET));
	cJSON *node = ask_node(fx, now_of(&g, f->node));
	assert_string_equal(text_at(node, "kind"), "files");
	assert_true(cJSON_IsTrue(cJSON_GetObjectItem(node, "forgotten")));
	cJSON_Delete(node);
	assert_sound(fx, HISTORY_A);
	free(g.json);
	hfix_free(fx);
}

/* The same content, named by a node that is not forgotten. */
TEST(files_kept, what_another_node_names_stays)
{
	struct hfix *fx = hfix_new();
	struct forgot g = {.leaves = false};
	char name[65];
	(void)run_file(fx, "m1", "one.txt", "the same");
	(void)run_chunk(fx, "m2", "one.bin", keep_chunk(fx, "the same", name));
	struct tape *t = run_file(fx, "m3", "two.txt", "the same");
	struct tape *u = run_chunk(fx, "m4", "two.bin", name);
	forget_fine(fx, &g, t->node);
	const char *now = strdup(now_of(&g, u->node));
	forget_fine(fx, &g, now);
	assert_true(chunk_is_there(fx, name));
	cJSON *files = ask_files(fx, "main");
	assert_int_equal(entries(files), 2); /* of the last one, too, nothing is left */
	assert_null(cJSON_GetObjectItem(entry_of(files, "one.txt"), "lost"));
	assert_null(cJSON_GetObjectItem(entry_of(files, "one.bin"), "lost"));
	cJSON_Delete(files);
	assert_sound(fx, HISTORY_A);
	free((char *)(uintptr_t)now);
	free(g.json);
	hfix_free(fx);
}

/* A run waits for its contents or to be recorded while something is forgotten. */
TEST(files_kept, what_is_going_to_be_named_survives_a_forgetting)
{
	struct hfix *fx = hfix_new();
	struct forgot g = {.leaves = false};
	char blob[HISTORY_NODE_SIZE], name[65], change[512];
	struct tape *t = run_file(fx, "m1", "a.txt", "text " SECRET);
	(void)keep_blob(fx, "to be named", blob);
	(void)keep_chunk(fx, "to be named", name);
	forget_fine(fx, &g, t->node);
	assert_false(is_found(fx, SECRET));
	(void)snprintf(change, sizeof change,
		"{\"changed\":[{\"path\":\"b\"," PLAIN "\"bytes\":11,\"blob\":\"%s\"},"
		"{\"path\":\"c\"," PLAIN "\"bytes\":1048576,\"chunks\":[\"%s\"]}]}",
		blob, name);
	t = run_with(fx, "m2", change);
	cJSON *files = ask_files(fx, t->node);
	assert_null(cJSON_GetObjectItem(entry_of(files, "b"), "lost"));
	assert_null(cJSON_GetObjectItem(entry_of(files, "c"), "lost"));
	cJSON_Delete(files);
	assert_git(fx, HISTORY_A, "for-each-ref refs/coppice/held", "");
	assert_sound(fx, HISTORY_A);
	free(g.json);
	hfix_free(fx);
}

/* ---- gc, copies, removal ---- */

static void gc(struct hfix *fx)
{
	fx->answered = false;
	history_gc(fx->h, HISTORY_A, on_answer, fx);
	while (!fx->answered)
		(void)uv_run(&fx->loop, UV_RUN_ONCE);
	if (fx->status != 0)
		fail_msg("%s", fx->why);
}

TEST(files_kept, gc_takes_what_no_node_names)
{
	struct hfix *fx = hfix_new();
	char named[65], old[65], young[65];
	(void)run_chunk(fx, "m1", "d/named.bin", keep_chunk(fx, "named", named));
	(void)run_with(fx, "m2", "{\"removed\":[\"d/named.bin\"]}"); /* m1 still names it */
	(void)keep_chunk(fx, "old", old);
	(void)keep_chunk(fx, "young", young);
	make_old(fx, named);
	make_old(fx, old);
	gc(fx);
	assert_true(chunk_is_there(fx, named));
	assert_true(chunk_is_there(fx, young));
	assert_false(chunk_is_there(fx, old));
	/* One that is asked for is going to be named. */
	make_old(fx, young);
	assert_false(is_lacking(fx, young));
	gc(fx);
	assert_true(chunk_is_there(fx, young));
	assert_sound(fx, HISTORY_A);
	hfix_free(fx);
}

TEST(files_kept, a_copy_has_them_and_a_removal_takes_them)
{
	struct hfix *fx = hfix_new(), *copy = hfix_make();
	struct told_content t = {.told = false};
	char name[65], command[256];
	size_t n = 0;
	struct err err;
	(void)run_file(fx, "m1", "a.txt", "small");
	struct tape *last = run_chunk(fx, "m2", "big.bin", keep_chunk(fx, "large", name));
	if (histories_snapshot(fx->folder, copy->folder, &n, &err) != 0)
		fail_msg("%s", err.text);
	assert_int_equal(n, 1);
	fx->answered = false;
	history_remove(fx->h, HISTORY_A, on_answer, fx);
	while (!fx->answered)
		(void)uv_run(&fx->loop, UV_RUN_ONCE);
	assert_int_equal(fx->status, 0);
	(void)snprintf(
		command, sizeof command, "test -z \"$(find '%s' -path '*chunks*')\"", fx->folder);
	shell(command);
	hfix_open(copy); /* makes its index */
	cJSON *files = ask_files(copy, last->node);
	assert_int_equal(entries(files), 2);
	cJSON_Delete(files);
	history_content(copy->h, &files_whose, name, told_read, &t);
	await_content(copy, &t);
	assert_int_equal(t.status, 0);
	assert_int_equal(t.bytes.len, CHUNK_BYTES);
	assert_memory_equal(t.bytes.data + 5000, "large", 5);
	buf_done(&t.bytes);
	hfix_free(fx);
	hfix_free(copy);
}

/* ---- the end, and what comes after a death ---- */

TEST(files_kept, what_waits_at_the_end_is_told)
{
	struct hfix *fx = hfix_new();
	struct told_content t[40];
	char name[40][65];
	for (size_t i = 0; i < ARRAY_LEN(t); i++) {
		char text[32];
		(void)snprintf(text, sizeof text, "text %zu", i);
		t[i] = (struct told_content){.told = false};
		history_keep(fx->h, &files_whose, chunk_name(text_bytes(text), name[i]),
			text_bytes(text), told_keep, &t[i]);
	}
	hfix_close(fx);
	for (size_t i = 0; i < ARRAY_LEN(t); i++) {
		assert_true(t[i].told);
		assert_true(t[i].status == 0 || t[i].status == E_UNAVAILABLE);
	}
	hfix_open(fx);
	for (size_t i = 0; i < ARRAY_LEN(t); i++)
		assert_int_equal(is_lacking(fx, name[i]), t[i].status != 0);
	hfix_free(fx);
}

TEST(files_kept, more_than_may_wait_is_refused)
{
	struct hfix *fx = hfix_new();
	enum { N = HISTORY_CONTENTS_WAIT / HISTORY_CONTENT_MAX + 20 };
	struct told_content *t = calloc(N, sizeof *t);
	AUTO(buf_done) struct buf data;
	char name[65];
	unsigned refused = 0;
	buf_init(&data, HISTORY_CONTENT_MAX);
	while (data.len < HISTORY_CONTENT_MAX)
		(void)buf_add(&data, "0123456789abcdef", 16);
	struct bytes bytes = {data.data, data.len};
	(void)chunk_name(bytes, name);
	for (size_t i = 0; i < N; i++)
		history_keep(fx->h, &files_whose, name, bytes, told_keep, &t[i]);
	for (size_t i = 0; i < N; i++) {
		await_content(fx, &t[i]);
		assert_true(t[i].status == 0 || t[i].status == E_CAPACITY);
		refused += t[i].status != 0;
	}
	assert_true(refused < N);
	assert_int_equal(t[0].status, 0);
	/* Once they are told there is room again. */
	keep_as(fx, &files_whose, name, bytes);
	free(t);
	hfix_free(fx);
}

/* Killed while contents come: what has its name is whole, half ones go at the next start. */
TEST(files_kept, killed_while_contents_come)
{
	for (unsigned round = 1; round <= 6; round++) {
		struct hfix *fx = hfix_make();
		char name[65];
		pid_t pid = fork();
		assert_true(pid >= 0);
		if (pid == 0) {
			struct told_content t[64] = {{.told = false}};
			hfix_open(fx);
			for (unsigned i = 0; i < 64; i++) {
				char text[32];
				(void)snprintf(text, sizeof text, "text %u", i);
				history_keep(fx->h, &files_whose,
					chunk_name(text_bytes(text), name), text_bytes(text),
					told_keep, &t[i]);
				if (i % 8 == 7)
					await_content(fx, &t[i - i % 8]);
				if (i == 10 * round)
					(void)kill(getpid(), SIGKILL);
			}
			(void)kill(getpid(), SIGKILL);
		}
		int status;
		assert_int_equal(waitpid(pid, &status, 0), pid);
		assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
		hfix_open(fx);
		for (unsigned i = 0; i < 64; i++) {
			char text[32];
			struct told_content t = {.told = false};
			(void)snprintf(text, sizeof text, "text %u", i);
			if (is_lacking(fx, chunk_name(text_bytes(text), name)))
				continue;
			history_content(fx->h, &files_whose, name, told_read, &t);
			await_content(fx, &t);
			assert_int_equal(t.status, 0);
			assert_memory_equal(t.bytes.data, text, strlen(text));
			buf_done(&t.bytes);
		}
		char line[256];
		(void)snprintf(
			line, sizeof line, "test -z \"$(find '%s' -name 'tmp_*')\"", fx->folder);
		shell(line);
		hfix_free(fx);
	}
}

RUN(TEST_ROW(files_kept, what_a_forgotten_node_left_is_gone_from_those_after_it),
	TEST_ROW(files_kept, a_change_while_nothing_ran_can_be_forgotten),
	TEST_ROW(files_kept, what_another_node_names_stays),
	TEST_ROW(files_kept, what_is_going_to_be_named_survives_a_forgetting),
	TEST_ROW(files_kept, gc_takes_what_no_node_names),
	TEST_ROW(files_kept, a_copy_has_them_and_a_removal_takes_them),
	TEST_ROW(files_kept, what_waits_at_the_end_is_told),
	TEST_ROW(files_kept, more_than_may_wait_is_refused),
	TEST_ROW(files_kept, killed_while_contents_come))
