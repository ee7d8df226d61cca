/* What the model is told of a conversation that is longer than it may be. */
#include "tests/lib/test.h"

#include <cjson/cJSON.h>
#include <stdio.h>
#include <string.h>

#include "frontend-adapter/prompt.h"
#include "gateway/base/json_tree.h"

#define MAX 20000u

static void add(cJSON *said, const char *role, char letter, size_t len)
{
	char *text = malloc(len + 1);
	memset(text, letter, len);
	text[len] = '\0';
	prompt_add(said, role, text);
	free(text);
}

/* The first letter of each message but the first. */
static void assert_letters(const cJSON *messages, const char *want)
{
	char found[64] = "";
	for (const cJSON *m = messages->child->next; m; m = m->next)
		strncat(found, cJSON_GetObjectItem(m, "content")->valuestring, 1);
	assert_string_equal(found, want);
}

static size_t size_of(const cJSON *messages)
{
	size_t size = 0;
	const cJSON *m;
	cJSON_ArrayForEach (m, messages)
		size += strlen(cJSON_GetObjectItem(m, "content")->valuestring);
	return size;
}

static cJSON *given(const char *said, size_t len)
{
	cJSON *list = cJSON_CreateArray();
	for (; *said; said++)
		add(list, *said >= 'a' ? "assistant" : "user", *said, len);
	cJSON *messages = prompt_messages(list);
	cJSON_Delete(list);
	return messages;
}

TEST(prompt, what_fits_is_told_whole)
{
	cJSON *messages = given("AaBbC", 3000);
	struct prompt_left_out left_out = {0};
	assert_int_equal(prompt_bound(messages, messages->child->prev, MAX, &left_out, NULL), 0);
	assert_letters(messages, "AaBbC");
	assert_int_equal(left_out.messages, 0);
	assert_int_equal(left_out.bytes, 0);
	cJSON_Delete(messages);
}

TEST(prompt, the_oldest_questions_go_first_with_their_answers)
{
	cJSON *messages = given("AaBbbCcD", 4000);
	struct prompt_left_out left_out = {0};
	assert_int_equal(prompt_bound(messages, messages->child->prev, MAX, &left_out, NULL), 0);
	assert_string_equal(cJSON_GetObjectItem(messages->child, "role")->valuestring, "system");
	assert_letters(messages, "CcD");
	assert_int_equal(left_out.messages, 5);
	assert_int_equal(left_out.bytes, 20000);
	assert_true(size_of(messages) <= MAX);
	cJSON_Delete(messages);
}

TEST(prompt, of_the_question_itself_earlier_tries_go)
{
	cJSON *messages = given("AaB", 4000);
	const cJSON *question = messages->child->prev;
	struct prompt_left_out left_out = {0};
	static const char tries[] = "1x2y3z";
	for (size_t i = 0; tries[i]; i++)
		add(messages, i % 2 ? "assistant" : "user", tries[i], 4000);
	assert_int_equal(prompt_bound(messages, question, MAX, &left_out, NULL), 0);
	assert_letters(messages, "By3z");
	assert_int_equal(left_out.messages, 5);
	cJSON_Delete(messages);
}

TEST(prompt, a_last_message_that_is_too_long_is_cut_in_its_middle)
{
	cJSON *messages = given("A", 4000);
	const cJSON *question = messages->child->prev;
	struct prompt_left_out left_out = {0};
	cJSON *list = cJSON_CreateArray();
	for (int i = 0; i < 10000; i++)
		(void)cJSON_AddItemToArray(list, cJSON_CreateString("北京"));
	char *text = cJSON_PrintUnformatted(list);
	prompt_add(messages, "user", text);
	assert_int_equal(prompt_bound(messages, question, MAX, &left_out, NULL), 0);
	const char *cut = cJSON_GetObjectItem(messages->child->prev, "content")->valuestring;
	assert_memory_equal(cut, text, 100);
	assert_string_equal(cut + strlen(cut) - 100, text + strlen(text) - 100);
	assert_non_null(strstr(cut, "bytes left out"));
	assert_in_range(size_of(messages), MAX - 200, MAX);
	assert_int_equal(left_out.messages, 0);
	char again[64];
	(void)snprintf(again, sizeof again, "[... %zu bytes left out ...]", left_out.bytes);
	assert_non_null(strstr(cut, again));
	/* It is text still: what is no UTF-8 would not scan. */
	for (const char *at = cut; *at; at++)
		assert_false((at[0] & 0xc0) == 0x80 && at > cut && (at[-1] & 0x80) == 0);
	free(text);
	cJSON_Delete(list);
	cJSON_Delete(messages);
}

TEST(prompt, a_question_that_is_too_long_is_refused)
{
	struct err err = {0};
	char *text = malloc(MAX + 1);
	memset(text, 'x', MAX);
	text[MAX] = '\0';
	assert_int_equal(prompt_fits(text, MAX, &err), E_TOO_BIG);
	assert_non_null(strstr(err.text, "model_history"));
	text[MAX / 2] = '\0';
	assert_int_equal(prompt_fits(text, MAX, &err), 0);
	free(text);
}

RUN(TEST_ROW(prompt, what_fits_is_told_whole),
	TEST_ROW(prompt, the_oldest_questions_go_first_with_their_answers),
	TEST_ROW(prompt, of_the_question_itself_earlier_tries_go),
	TEST_ROW(prompt, a_last_message_that_is_too_long_is_cut_in_its_middle),
	TEST_ROW(prompt, a_question_that_is_too_long_is_refused))
