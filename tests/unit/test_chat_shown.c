/* Outputs within the result budget. The renderer is a fake: it answers when it is told to, with as
 * many bytes as it may, or fails. */
#include "tests/lib/test.h"

#include <cjson/cJSON.h>
#include <stdio.h>
#include <string.h>

#include "frontend-adapter/shown.h"
#include "gateway/base/base.h"
#include "tests/lib/fake_clock.c"

#define MAX 100000u

struct renderer {
	unsigned n, asked, most; /* waiting, ever, at once */
	render_done *done[8];
	void *data[8];
	size_t max_bytes[8];
	bool refuses;
};

int renderer_ask(struct renderer *r, const struct render_request *q, render_done *done, void *data,
	struct err *err)
{
	if (r->refuses)
		return err_set(err, E_UNAVAILABLE, "no");
	assert_true(r->n < ARRAY_LEN(r->done));
	assert_int_equal(q->to, RENDER_TO_PNG);
	r->done[r->n] = done;
	r->data[r->n] = data;
	r->max_bytes[r->n++] = q->max_bytes;
	r->asked++;
	r->most = r->n > r->most ? r->n : r->most;
	return 0;
}

static void answer(struct renderer *r, int status)
{
	static uint8_t picture[2 << 20];
	render_done *done = r->done[0];
	void *data = r->data[0];
	struct err err = {.code = status};
	const struct render_result result = {.body = {picture, r->max_bytes[0]}, .cut = true};
	r->n--;
	memmove(r->done, r->done + 1, r->n * sizeof *r->done);
	memmove(r->data, r->data + 1, r->n * sizeof *r->data);
	memmove(r->max_bytes, r->max_bytes + 1, r->n * sizeof *r->max_bytes);
	done(data, status, status == 0 ? &result : NULL, status == 0 ? NULL : &err);
}

struct fix {
	struct shown shown;
	struct renderer renderer;
	struct clock *clock;
	size_t told, updated, told_bytes;
	bool settled;
};

static void on_tell(void *data, struct cJSON *output)
{
	struct fix *fx = data;
	char *text = cJSON_PrintUnformatted(output);
	if (cJSON_IsTrue(cJSON_GetObjectItem(output, "update")))
		fx->updated++;
	else
		fx->told++;
	fx->told_bytes += strlen(text);
	free(text);
	cJSON_Delete(output);
}

static void on_settled(void *data)
{
	((struct fix *)data)->settled = true;
}

static struct fix *make(void)
{
	struct fix *fx = calloc(1, sizeof *fx);
	fx->clock = clock_new(NULL);
	const struct shown_to to = {
		.tell = on_tell, .data = fx, .renderer = &fx->renderer, .clock = fx->clock};
	shown_init(&fx->shown, MAX, &to);
	return fx;
}

static void drop(struct fix *fx)
{
	shown_done(&fx->shown);
	clock_close(fx->clock, NULL, NULL);
	free(fx);
}

static cJSON *content_of(const char *mime, size_t len, const char *display_id)
{
	cJSON *content = cJSON_CreateObject(), *data = cJSON_AddObjectToObject(content, "data");
	char *text = malloc(len + 1);
	memset(text, 'A', len);
	text[len] = '\0';
	(void)cJSON_AddStringToObject(data, mime, text);
	(void)cJSON_AddStringToObject(data, "text/plain", "p");
	(void)cJSON_AddObjectToObject(content, "metadata");
	if (display_id)
		(void)cJSON_AddStringToObject(
			cJSON_AddObjectToObject(content, "transient"), "display_id", display_id);
	free(text);
	return content;
}

static void add(struct fix *fx, const char *type, const char *mime, size_t len, const char *id)
{
	cJSON *content = content_of(mime, len, id);
	assert_int_equal(shown_add(&fx->shown, type, content), 0);
	cJSON_Delete(content);
}

static void show(struct fix *fx, const char *mime, size_t len)
{
	add(fx, "display_data", mime, len, NULL);
}

/* All of it, until it is settled. Returns the list, which is within the budget. */
static cJSON *settle(struct fix *fx, int status)
{
	if (shown_settle(&fx->shown, on_settled, fx)) {
		assert_false(fx->settled);
		for (int i = 0; !fx->settled; i++) {
			assert_true(i < 10000);
			answer(&fx->renderer, status);
		}
	}
	assert_int_equal(fx->renderer.n, 0);
	cJSON *list = shown_list(&fx->shown);
	char *text = cJSON_PrintUnformatted(list);
	assert_true(strlen(text) <= MAX + (size_t)cJSON_GetArraySize(list) + 2);
	free(text);
	return list;
}

static size_t pictures(const cJSON *list)
{
	const cJSON *at;
	size_t n = 0;
	cJSON_ArrayForEach (at, list)
		n += cJSON_HasObjectItem(cJSON_GetObjectItem(at, "data"), "image/png") ? 1 : 0;
	return n;
}

static bool is_named(const struct fix *fx, const char *text)
{
	cJSON *list = cJSON_CreateArray();
	const cJSON *at;
	bool found = false;
	shown_add_truncated(&fx->shown, list);
	cJSON_ArrayForEach (at, list)
		found = found || strstr(at->valuestring, text);
	cJSON_Delete(list);
	return found;
}

TEST(shown, what_fits_stays_as_it_is)
{
	struct fix *fx = make();
	for (int i = 0; i < 9; i++)
		show(fx, "image/png", 10000);
	assert_int_equal(fx->told, 9);
	cJSON *list = settle(fx, 0);
	assert_int_equal(pictures(list), 9);
	assert_int_equal(fx->renderer.asked, 0);
	assert_int_equal(fx->told, 9);
	assert_false(is_named(fx, "scaled"));
	cJSON_Delete(list);
	drop(fx);
}

TEST(shown, pictures_that_are_too_long_together_are_scaled)
{
	struct fix *fx = make();
	show(fx, "image/png", 3000); /* a small one stays */
	for (int i = 0; i < 12; i++)
		show(fx, "image/png", 50000);
	size_t live = fx->told;
	assert_in_range(live, 1, 3);
	cJSON *list = settle(fx, 0);
	assert_int_equal(pictures(list), 13);
	assert_int_equal(fx->renderer.asked, 12);
	assert_in_range(fx->renderer.most, 1, 2);
	assert_true(is_named(fx, "12 pictures were scaled"));
	/* Each is told once, in the end those that were not; all within twice the budget. */
	assert_int_equal(fx->told, 13);
	assert_true(fx->told_bytes < 2 * MAX + 20000);
	const cJSON *small = cJSON_GetObjectItem(cJSON_GetArrayItem(list, 0), "data");
	assert_int_equal(strlen(cJSON_GetObjectItem(small, "image/png")->valuestring), 3000);
	cJSON_Delete(list);
	drop(fx);
}

TEST(shown, a_jpeg_becomes_a_png)
{
	struct fix *fx = make();
	show(fx, "image/jpeg", 150000);
	cJSON *list = settle(fx, 0);
	assert_int_equal(pictures(list), 1);
	const cJSON *data = cJSON_GetObjectItem(cJSON_GetArrayItem(list, 0), "data");
	assert_false(cJSON_HasObjectItem(data, "image/jpeg"));
	cJSON_Delete(list);
	drop(fx);
}

TEST(shown, what_cannot_be_scaled_is_left_out_and_named)
{
	for (int refuses = 0; refuses < 2; refuses++) {
		struct fix *fx = make();
		fx->renderer.refuses = refuses == 1;
		for (int i = 0; i < 5; i++)
			show(fx, "image/png", 50000);
		cJSON *list = settle(fx, E_INVALID);
		assert_int_equal(pictures(list), 0);
		assert_int_equal(cJSON_GetArraySize(list), 5); /* their texts are there */
		assert_true(is_named(fx, "image/png did not fit"));
		assert_int_equal(fx->told, 5);
		cJSON_Delete(list);
		drop(fx);
	}
}

TEST(shown, of_more_than_can_be_seen_the_first_stay)
{
	struct fix *fx = make();
	for (int i = 0; i < 40; i++)
		show(fx, "image/png", 50000);
	cJSON *list = settle(fx, 0);
	assert_in_range(pictures(list), 10, 16);
	for (int i = 0; i < 10; i++)
		assert_true(cJSON_HasObjectItem(
			cJSON_GetObjectItem(cJSON_GetArrayItem(list, i), "data"), "image/png"));
	assert_true(is_named(fx, "image/png did not fit"));
	cJSON_Delete(list);
	drop(fx);
}

TEST(shown, text_leaves_pictures_their_half)
{
	struct fix *fx = make();
	for (int i = 0; i < 4; i++)
		show(fx, "image/png", 50000);
	for (int i = 0; i < 20; i++)
		show(fx, "text/html", 10000);
	cJSON *list = settle(fx, 0);
	assert_int_equal(pictures(list), 4);
	assert_true(is_named(fx, "text/html did not fit"));
	cJSON_Delete(list);
	drop(fx);
}

TEST(shown, an_update_takes_the_room_of_what_it_replaces)
{
	struct fix *fx = make();
	add(fx, "display_data", "image/png", 60000, "d");
	for (int i = 0; i < 100; i++)
		add(fx, "update_display_data", "image/png", 60000, "d");
	cJSON *list = settle(fx, 0);
	assert_int_equal(fx->renderer.asked, 0);
	assert_int_equal(pictures(list), 1);
	assert_false(is_named(fx, "did not fit"));
	/* What was not told live is told in the end. */
	assert_int_equal(fx->told, 1);
	assert_in_range(fx->updated, 1, 2);
	assert_int_equal(cJSON_GetArraySize(list), 1);
	cJSON_Delete(list);
	drop(fx);
}

/* However much comes: what is held is bounded, and nothing of it is left out. */
TEST(shown, too_much_that_is_held_is_scaled_before_the_end)
{
	struct fix *fx = make();
	size_t most = 0;
	fx->shown.max = 3 << 20;
	for (int i = 0; i < 100; i++) {
		show(fx, "image/png", 1 << 20);
		most = fx->shown.pictures > most ? fx->shown.pictures : most;
		while (shown_scales(&fx->shown))
			answer(&fx->renderer, 0);
	}
	assert_true(most < SHOWN_HELD_MAX + (2 << 20));
	assert_in_range(fx->renderer.asked, 90, 500);
	assert_true(shown_settle(&fx->shown, on_settled, fx));
	while (!fx->settled)
		answer(&fx->renderer, 0);
	cJSON *list = shown_list(&fx->shown);
	assert_int_equal(pictures(list), 100);
	assert_true(fx->shown.pictures + fx->shown.plain <= fx->shown.max);
	assert_int_equal(fx->told, 100);
	assert_false(is_named(fx, "did not fit"));
	cJSON_Delete(list);
	drop(fx);
}

/* The run ends while they are. */
TEST(shown, an_end_amid_it_waits)
{
	struct fix *fx = make();
	fx->shown.max = 3 << 20;
	for (int i = 0; !shown_scales(&fx->shown); i++) {
		assert_true(i < 100);
		show(fx, "image/png", 1 << 20);
	}
	assert_true(shown_settle(&fx->shown, on_settled, fx));
	while (!fx->settled)
		answer(&fx->renderer, 0);
	assert_true(fx->shown.pictures + fx->shown.plain <= fx->shown.max);
	drop(fx);
}

TEST(shown, patience_has_an_end)
{
	struct fix *fx = make();
	for (int i = 0; i < 6; i++)
		show(fx, "image/png", 50000);
	assert_true(shown_settle(&fx->shown, on_settled, fx));
	fake_clock_advance(fx->clock, 61000);
	while (!fx->settled)
		answer(&fx->renderer, 0);
	assert_int_equal(fx->renderer.asked, 2);
	assert_int_equal(fx->shown.n_scaled, 2);
	assert_true(is_named(fx, "image/png did not fit"));
	drop(fx);
}

TEST(shown, cleared_is_gone)
{
	struct fix *fx = make();
	for (int i = 0; i < 100; i++) {
		show(fx, "image/png", 60000);
		shown_clear(&fx->shown);
	}
	assert_int_equal(fx->told, 100);
	show(fx, "image/png", 10);
	cJSON *list = settle(fx, 0);
	assert_int_equal(cJSON_GetArraySize(list), 1);
	cJSON_Delete(list);
	drop(fx);
}

RUN(TEST_ROW(shown, what_fits_stays_as_it_is),
	TEST_ROW(shown, pictures_that_are_too_long_together_are_scaled),
	TEST_ROW(shown, a_jpeg_becomes_a_png),
	TEST_ROW(shown, what_cannot_be_scaled_is_left_out_and_named),
	TEST_ROW(shown, of_more_than_can_be_seen_the_first_stay),
	TEST_ROW(shown, text_leaves_pictures_their_half),
	TEST_ROW(shown, an_update_takes_the_room_of_what_it_replaces),
	TEST_ROW(shown, too_much_that_is_held_is_scaled_before_the_end),
	TEST_ROW(shown, an_end_amid_it_waits), TEST_ROW(shown, patience_has_an_end),
	TEST_ROW(shown, cleared_is_gone))
