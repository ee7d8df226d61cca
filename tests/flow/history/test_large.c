#include "tests/lib/history_fixture.h"

#define FINE ",\"silent\":false,\"store_history\":true"

/* A line of /proc/self/status, in KiB. */
static long memory_kib(const char *key)
{
	char line[256];
	long kib = -1;
	FILE *file = fopen("/proc/self/status", "re");
	assert_non_null(file);
	while (fgets(line, sizeof line, file))
		if (strncmp(line, key, strlen(key)) == 0)
			kib = strtol(line + strlen(key) + 1, NULL, 10);
	assert_int_equal(fclose(file), 0);
	return kib;
}

/* What is in use now; the peak is counted from here. */
static long memory_from_here(void)
{
	FILE *file = fopen("/proc/self/clear_refs", "we");
	assert_non_null(file);
	assert_true(fputs("5", file) >= 0);
	assert_int_equal(fclose(file), 0);
	return memory_kib("VmRSS");
}

TEST(large, an_output_of_100_mb_costs_a_few_copies)
{
	struct hfix *fx = hfix_new();
	size_t len = 100u << 20;
	struct tape *t = tape_new(fx, "m1", "print(x)", FINE);
	AUTO(buf_done) struct buf content;
	buf_init(&content, 1u << 30);
	(void)buf_add_text(&content, "{\"name\":\"stdout\",\"text\":\"");
	assert_int_equal(buf_reserve(&content, len + 10), 0);
	for (size_t i = 0; i < len; i += 100) {
		char line[101];
		(void)snprintf(line, sizeof line, "%097zu \\n", i);
		(void)buf_add_text(&content, line);
	}
	(void)buf_add_text(&content, "\"}");
	tape_message(t, CHANNEL_IOPUB, "stream", "k", "m1", NULL,
		(struct bytes){content.data, content.len});
	buf_done(&content);
	tape_end(t, "ok", 1, "");
	long before = memory_from_here();
	hand_over(fx, t);
	await_fine(fx, t);
	long more = memory_kib("VmHWM") - before;
	/* A sanitizer keeps what was freed. */
#if !defined __SANITIZE_ADDRESS__ && !defined __SANITIZE_THREAD__
	assert_true(more < 3 * 100 * 1024);
#endif
	assert_sound(fx, HISTORY_A);
	struct history_question q = {.what = HISTORY_NODE, .history = HISTORY_A, .node = "HEAD"};
	cJSON *node = ask_tree(fx, &q);
	const cJSON *counts = cJSON_GetObjectItem(node, "counts");
	double bytes = cJSON_GetNumberValue(cJSON_GetObjectItem(counts, "stdout_bytes"));
	assert_int_equal((long)bytes, (long)(len + 99) / 100 * 99);
	cJSON_Delete(node);
	print_message("100 MB: %ld KiB more\n", more);
	hfix_free(fx);
}

TEST(large, a_hundred_thousand_small_outputs)
{
	struct hfix *fx = hfix_new();
	struct tape *t = tape_new(fx, "m1", "for x in y: print(x)", FINE);
	for (int i = 0; i < 100000; i++) {
		tape_say(t, i % 2 ? "stream" : "display_data",
			i % 2 ? "{\"name\":\"stdout\",\"text\":\"x\\n\"}"
			      : "{\"data\":{\"text/plain\":\"1\"},\"metadata\":{},\"transient\":{"
				"\"display_id\":\"d\"}}");
	}
	tape_end(t, "ok", 1, "");
	hand_over(fx, t);
	await_fine(fx, t);
	cJSON *node = ask_node(fx, "HEAD");
	assert_int_equal(cJSON_GetArraySize(cJSON_GetObjectItem(node, "outputs")), 100000);
	cJSON_Delete(node);
	hfix_free(fx);
}

TEST(large, json_as_deep_as_it_may_be)
{
	struct hfix *fx = hfix_new();
	struct tape *t = tape_new(fx, "m1", "deep", FINE);
	AUTO(buf_done) struct buf content;
	buf_init(&content, 1 << 16);
	(void)buf_add_text(&content, "{\"data\":{\"application/json\":");
	for (int i = 0; i < 500; i++)
		(void)buf_add_text(&content, "[");
	for (int i = 0; i < 500; i++)
		(void)buf_add_text(&content, "]");
	(void)buf_add_text(&content, "},\"metadata\":{}}");
	tape_say(t, "display_data", (char *)content.data);
	tape_end(t, "ok", 1, "");
	hand_over(fx, t);
	await_fine(fx, t);
	cJSON *node = ask_node(fx, "HEAD");
	assert_int_equal(cJSON_GetArraySize(cJSON_GetObjectItem(node, "outputs")), 1);
	cJSON_Delete(node);
	hfix_free(fx);
}

RUN(TEST_ROW(large, an_output_of_100_mb_costs_a_few_copies),
	TEST_ROW(large, a_hundred_thousand_small_outputs),
	TEST_ROW(large, json_as_deep_as_it_may_be))
